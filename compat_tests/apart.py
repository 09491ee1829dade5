"""Tests in a process of their own: one that hangs fails, says where it stood, and leaves nothing behind."""

from __future__ import annotations

import faulthandler
import functools
import importlib
import math
import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["compat_tests.traps"])
WITHIN_S = 40.0
"""Under the tests' own limit. Nothing here takes more than a few seconds."""


def apart(test: Callable[..., None] | None = None, *, within_s: float = WITHIN_S) -> Any:
    """Runs the test function apart; its arguments travel."""
    if test is None:
        return functools.partial(apart, within_s=within_s)

    @functools.wraps(test)
    def run(**arguments: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            said = Path(folder, "said")
            said.touch()
            process = PROCESSES.Process(
                target=_inside, args=(test.__module__, test.__name__, arguments, str(said), within_s), daemon=True
            )
            process.start()
            process.join(within_s + 10.0)
            if process.is_alive():
                process.kill()
                process.join()
            assert process.exitcode == 0, said.read_text() or f"ended with {process.exitcode}"

    return run


def _inside(module: str, name: str, arguments: dict[str, Any], said: str, within_s: float) -> None:
    from accel.learn import view
    from accel.run.gains import hopes

    view.AT_ONCE_S = -1.0  # components here take no time: see conftest.py
    hopes.LEAST_S = math.inf
    with open(said, "w") as file:
        faulthandler.dump_traceback_later(within_s, exit=True, file=file)
        try:
            getattr(importlib.import_module(module), name).__wrapped__(**arguments)
        except BaseException:  # noqa: BLE001 - told to the process that waits
            file.write(traceback.format_exc())
            file.flush()
            os._exit(1)
    faulthandler.cancel_dump_traceback_later()
    os._exit(0)  # what the test left in threads is its own matter
