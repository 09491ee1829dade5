"""Servers in processes of their own: `python -m examples.serving.processes MODULE:FACTORY [WORKERS]`.

Each gets a socket that listens already, at a port that the system chose: nobody waits for a port, and none is taken
twice.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import psutil
import uvicorn
from uvicorn.supervisors import Multiprocess

ROOT = Path(__file__).resolve().parents[2]
GRACE_S = 5
"""How long a server that is told to end waits for requests that are running."""
BACKLOG = 2048
START_S = 120.0
CONNECTS = 7
"""Attempts to reach a server that opens its port itself, with growing pauses: half a minute together."""


def serve(factory: str, workers: int = 1) -> None:
    """On the socket that is this process's standard input."""
    faulthandler.register(signal.SIGUSR1)  # prints what all threads are doing
    listening = socket.socket(fileno=os.dup(sys.stdin.fileno()))
    config = uvicorn.Config(
        factory, factory=True, workers=workers, log_level="critical", timeout_graceful_shutdown=GRACE_S, backlog=BACKLOG
    )
    if workers == 1:
        uvicorn.Server(config).run(sockets=[listening])
    else:
        Multiprocess(config, sockets=[listening]).run()


def uvicorn_command(factory: str, workers: int = 1) -> list[str]:
    return [sys.executable, "-m", "examples.serving.processes", factory, str(workers)]


def model_server() -> Process:
    """It speaks OpenAI's protocol, below `/v1` of its address."""
    return Process(uvicorn_command("examples.serving.model_server:create_app"), ready="/served")


class Process:
    """A running server, with the processes that it started."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        ready: str = "/",
        folder: Path = ROOT,
    ) -> None:
        """`ready`: what it answers as soon as it can, with whatever status. `{port}` in the command: of a server that
        opens its port itself."""
        paths = [str(ROOT), str(ROOT / "adapters"), str(ROOT / "backends"), os.environ.get("PYTHONPATH", "")]
        surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **(environment or {})}
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            port = listening.getsockname()[1]
            if "{port}" in command:
                command = [word.format(port=port) for word in command]
                listening.close()
            else:
                listening.listen(BACKLOG)  # before anybody is told of it
            self.url = f"http://127.0.0.1:{port}"
            given = subprocess.DEVNULL if listening.fileno() < 0 else listening.fileno()
            # fmt: off
            self._process = subprocess.Popen(
                command, stdin=given, stdout=subprocess.DEVNULL, cwd=folder, env=surroundings
            )
            # fmt: on
        try:
            with httpx.Client(transport=httpx.HTTPTransport(retries=CONNECTS), timeout=START_S) as http:
                http.get(f"{self.url}{ready}")
        except httpx.HTTPError as error:
            self.kill()
            raise RuntimeError(f"{' '.join(command)} did not start (exit code {self._process.returncode})") from error

    def worked_s(self) -> float:
        """Processor time so far, of all its processes."""
        own = psutil.Process(self._process.pid)
        return sum(sum(one.cpu_times()[:2]) for one in (own, *own.children(recursive=True)))

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
        if self._process.poll() is None:
            children = psutil.Process(self._process.pid).children(recursive=True)
            for one in (self._process, *children):
                one.kill()
        self._process.wait()


if __name__ == "__main__":
    serve(sys.argv[1], *map(int, sys.argv[2:]))
