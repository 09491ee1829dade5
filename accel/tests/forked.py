"""Forks in tests: what a child finds is told to its parent, which does not wait for ever."""

from __future__ import annotations

import json
import os
import select
import signal
import traceback
import warnings
from collections.abc import Callable
from typing import Any

PATIENCE_S = 60


class Fork:
    """One fork: in the child `report` ends it with what it found, in the parent `found` waits for that."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that the parent has threads is what is tested
            self.pid = os.fork()
        self.child = self.pid == 0

    def report(self, work: Callable[[], Any]) -> None:
        try:
            found = work()
        except BaseException:  # noqa: BLE001 - told by the parent
            found = traceback.format_exc()
        os.write(self._write, json.dumps(found).encode())
        os._exit(0)

    def found(self) -> Any:
        os.close(self._write)
        ready, _, _ = select.select([self._read], [], [], PATIENCE_S)
        if not ready:
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        text = os.read(self._read, 1 << 20).decode()
        os.close(self._read)
        assert ready, "the child hangs"
        return json.loads(text)


def in_child(work: Callable[[], Any]) -> Any:
    fork = Fork()
    if fork.child:
        fork.report(work)
    return fork.found()
