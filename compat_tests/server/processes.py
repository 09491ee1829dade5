"""Servers in processes of their own: `python -m compat_tests.server.processes model` or `… application URL`.

A server listens at a port that the system chose, and says so in its first line.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

ROOT = Path(__file__).resolve().parents[2]
GRACE_S = 5
"""How long a server that is told to end waits for requests that are running."""
BACKLOG = 2048


def serve(kind: str, *arguments: str) -> None:
    if kind == "model":
        from compat_tests.server.openai_server import create_app as create_model

        app = create_model()
    else:
        from compat_tests.server.rag_server import create_app

        app = create_app(*arguments)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(BACKLOG)  # before anybody is told of it
    os.write(sys.stdout.fileno(), f"http://127.0.0.1:{listening.getsockname()[1]}\n".encode())
    faulthandler.register(signal.SIGUSR1)  # prints what all threads are doing
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=GRACE_S, backlog=BACKLOG)
    uvicorn.Server(config).run(sockets=[listening])


class Process:
    """A running server."""

    def __init__(self, kind: str, *arguments: str) -> None:
        paths = [str(ROOT), str(ROOT / "adapters"), str(ROOT / "backends"), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        # fmt: off
        self._process = subprocess.Popen(
            [sys.executable, "-m", "compat_tests.server.processes", kind, *arguments],
            stdout=subprocess.PIPE, cwd=ROOT, env=environment, text=True,
        )
        # fmt: on
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"the {kind} server did not start (exit code {self._process.wait()})")

    def terminate(self, within_s: float) -> float | None:
        """Tell it to end: the seconds that took, or None if it had to be killed."""
        started = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        return time.monotonic() - started

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def both() -> Iterator[tuple[Process, Process]]:
    """The model server and the application server."""
    model = Process("model")
    try:
        application = Process("application", f"{model.url}/v1")
        try:
            yield model, application
        finally:
            application.kill()
    finally:
        model.kill()


if __name__ == "__main__":
    serve(*sys.argv[1:])
