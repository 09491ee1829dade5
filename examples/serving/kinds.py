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


def _langgraph(start: Start) -> Process:
    """LangGraph's development server: one process, whatever `workers` says, and nothing on disk."""
    command = [start.python, "-m", "langgraph_cli", "dev", "--port", "{port}", "--no-browser", "--no-reload"]
    command += ["--n-jobs-per-worker", "16", "--server-log-level", "ERROR"]
    told = {"LANGGRAPH_DISABLE_FILE_PERSISTENCE": "true", "LANGSMITH_TRACING": "false", "LOG_LEVEL": "ERROR"}
    return Process(command, {**start.environment, **told}, "/ok", HERE)


def _run(n: int, seed: str) -> list[Talk]:
    bodies = [{"assistant_id": "rag", "input": {"question": question}} for question in questions(n, seed)]
    return [[Request("/runs/wait", body)] for body in bodies]


def _asked(n: int, seed: str) -> list[Talk]:
    """Every other answer is streamed."""
    paths = ("/ask", "/ask/stream")
    bodies = [
        {"question": question, "thread": f"thread-{number % 7}", "request": f"request-{number}"}
        for number, question in enumerate(questions(n, seed))
    ]
    return [[Request(paths[number % 2], body)] for number, body in enumerate(bodies)]


def _said(n: int, seed: str) -> list[Talk]:
    """Conversations of two turns; in every other one answers are streamed."""
    turns = [
        Request(("/chat", "/chat/stream")[number % 4 // 2], {"conversation": f"{seed} {number // 2}", "message": said})
        for number, said in enumerate(questions(n, seed))
    ]
    return [turns[first : first + 2] for first in range(0, n, 2)]


KINDS = {
    "fastapi": Kind(_uvicorn("examples.serving.fastapi_app:create_app"), _asked),
    "prefork": Kind(_gunicorn, _asked),
    "langgraph": Kind(_langgraph, _run),
    "chat": Kind(_uvicorn("examples.serving.chat_app:create_app"), _said),
}
