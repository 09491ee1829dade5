"""Programs and the processes they leave behind, however detached. The table of processes changes while it is read."""

import os
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

GONE_S = 45.0
"""How long what has been told to end may take: a worker of Ray that is only just starting when its raylet is killed
looks for it for about 25 seconds before it gives up."""


@dataclass
class Program:
    process: "subprocess.Popen[str]"
    mark: str

    def left(self) -> list[psutil.Process]:
        """Processes with our mark in their environment, which all descendants inherit."""
        found = []
        for process in psutil.process_iter():
            try:
                ended = process.status() == psutil.STATUS_ZOMBIE
                if process.pid != self.process.pid and not ended and self.mark.encode() in _environment(process):
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def gone(self, within_s: float = GONE_S) -> None:
        """Raises AssertionError if something is left. Looks again: what ends may have started others on its way."""
        until_s = time.monotonic() + within_s
        while left := self.left():
            staying = stay(left, until_s - time.monotonic())
            assert not staying, f"left after {within_s:.0f} s: {staying}"


def stay(processes: Iterable[psutil.Process], within_s: float = GONE_S) -> list[str]:
    """Those that have not ended within this time, in words."""
    _, alive = psutil.wait_procs(list(processes), timeout=max(0.0, within_s))
    return [said for process in alive if (said := _in_words(process))]


def _in_words(process: psutil.Process) -> str:
    """Empty if it has ended meanwhile."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return ""
        return f"{process.pid} {' '.join(process.cmdline())}"
    except psutil.Error:
        return ""


def _environment(process: psutil.Process) -> bytes:
    """A process that has given itself a title has put part of it over its environment: psutil reads it up to there."""
    return Path(f"/proc/{process.pid}/environ").read_bytes()


@contextmanager
def marked(command: Sequence[str], environment: dict[str, str] | None = None, **options: Any) -> Iterator[Program]:
    """Start a program in a session of its own."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        command,
        env={**os.environ, **(environment or {}), "ACCEL_TEST_MARK": mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    program = Program(process, mark)
    try:
        yield program
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
        for left in program.left():
            left.kill()
