"""A run that nobody follows: engines are told all the same that its calls belong together (`engine.admission`)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ..engine import Priority, Session, priority
from ..process.clock import now_s
from . import names
from .plan import Plan


class Unfollowed:
    """`finish` must be called exactly once."""

    def __init__(self, plan: Plan) -> None:
        around = priority.get()
        self._session = Session(names.new(), program=plan.says.program)
        run = around.run if around.batch else self._session.name
        self._urgency = Priority(0, run, now_s(), batch=around.batch, session=self._session)

    @contextmanager
    def inside(self) -> Generator[None, None, None]:
        """Around the program's own code."""
        token = priority.set(self._urgency)
        try:
            yield
        finally:
            priority.reset(token)

    def finish(self, completed: bool) -> None:
        self._session.end()


def belongs_to_one() -> bool:
    """Whether the code here is part of a run already that nobody follows."""
    return priority.get().session is not None
