"""Programs and the processes they leave behind, however detached."""

import os
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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

    def gone(self) -> None:
        """Raises AssertionError if something is left."""
        _, alive = psutil.wait_procs(self.left(), timeout=GONE_S)
        left = [" ".join(process.cmdline()) for process in alive if process.is_running()]
        assert not left, f"left after {GONE_S:.0f} s: {left}"


def _environment(process: psutil.Process) -> bytes:
    """A process that has given itself a title has put part of it over its environment: psutil reads it up to there."""
    return Path(f"/proc/{process.pid}/environ").read_bytes()


@contextmanager
def marked(command: Sequence[str], environment: dict[str, str] | None = None) -> Iterator[Program]:
    """Start a program in a session of its own."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        command,
        env={**os.environ, **(environment or {}), "ACCEL_TEST_MARK": mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
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
