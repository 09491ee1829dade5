"""Five programs as servers run them, on engines that wait; each in a module of its own, with plain and with awaited
nodes."""

from __future__ import annotations

import random
from importlib import import_module
from typing import Any, Protocol, cast

THREADS, ASYNC = "threads", "async"
STYLES = (ASYNC, THREADS)
MODULES = {
    "fan-out": "fan_out",
    "retrieve and grade": "retrieve_and_grade",
    "agent": "agent",
    "chain": "chain",
    "query engine": "query_engine",
}
NOTHING_TO_GAIN = "chain"
_SUBJECTS = "tide harbour signal meadow copper lantern orbit granite velvet summit ember willow prism cargo".split()
_RELATIONS = "shape slow carry outlast hide follow weaken replace feed divide".split()


class Program(Protocol):
    """What a module of a program has."""

    def build(self, style: str, scale: float) -> Any:
        """The object to accelerate. `scale`: of everything that its components wait."""

    def ask(self, app: Any, question: str) -> Any:
        """What came out, in a form that can be compared."""

    async def aask(self, app: Any, question: str) -> Any: ...


def program(name: str) -> Program:
    """Imported when it is asked for: one framework is enough for most."""
    return cast(Program, import_module(f"corpus.served.{MODULES[name]}"))


def questions(n: int, seed: str) -> list[str]:
    """No two alike, whatever the seed."""
    rng = random.Random(seed)
    made = []
    for number in range(n):
        one, other = rng.sample(_SUBJECTS, 2)
        made.append(f"How does the {one} {rng.choice(_RELATIONS)} the {other} in case {seed}-{number}?")
    return made
