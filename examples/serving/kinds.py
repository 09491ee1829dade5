"""The servers that `load` knows: how each is started, and what its clients ask."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .processes import Process, uvicorn_command

HERE = Path(__file__).parent
_WORDS = (
    "how why when where old new deep bright cold quiet river stone glass paper engine garden winter machine".split()
)


@dataclass(frozen=True)
class Request:
    path: str
    body: dict[str, Any]


Talk = list[Request]
"""What one client asks, one after the other."""


@dataclass(frozen=True)
class Start:
    """How a server is started. `python`: of an environment that has it."""

    model_url: str
    accelerated: bool
    workers: int = 1
    plan_file: Path | None = None
    python: str = sys.executable

    @property
    def environment(self) -> dict[str, str]:
        told = {"MODEL_URL": f"{self.model_url}/v1", "ACCELERATED": str(int(self.accelerated))}
        return told | ({"PLAN_FILE": str(self.plan_file)} if self.plan_file else {})


@dataclass(frozen=True)
class Kind:
    start: Callable[[Start], Process]
    talks: Callable[[int, str], list[Talk]]
    """As many requests as asked for, in talks. No question is asked twice."""
    answer: Callable[[str], Any] = lambda text: json.loads(text.splitlines()[-1])
    """What can be compared, of the text of a response."""


def questions(n: int, seed: str) -> list[str]:
    rng = random.Random(seed)
    return [f"{' '.join(rng.sample(_WORDS, 4))} {seed} {number}?" for number in range(n)]


def _uvicorn(factory: str) -> Callable[[Start], Process]:
    return lambda start: Process(uvicorn_command(factory, start.workers), start.environment, "/healthz")


def _gunicorn(start: Start) -> Process:
    command = [start.python, "-m", "gunicorn", "--config", str(HERE / "gunicorn_conf.py"), "--log-level", "error"]
    environment = {**start.environment, "BIND": "fd://0", "WORKERS": str(start.workers)}
    return Process([*command, "examples.serving.prefork:app"], environment, "/healthz")


def _asked(n: int, seed: str) -> list[Talk]:
    """Every other answer is streamed."""
    paths = ("/ask", "/ask/stream")
    bodies = [
        {"question": question, "thread": f"thread-{number % 7}", "request": f"request-{number}"}
        for number, question in enumerate(questions(n, seed))
    ]
    return [[Request(paths[number % 2], body)] for number, body in enumerate(bodies)]


KINDS = {
    "fastapi": Kind(_uvicorn("examples.serving.fastapi_app:create_app"), _asked),
    "prefork": Kind(_gunicorn, _asked),
}
