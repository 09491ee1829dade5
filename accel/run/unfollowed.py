"""A run that nobody follows: it is counted among those under way (`crowd`), and engines are told that its calls belong
together (`engine.admission`)."""

from __future__ import annotations

from ..engine import Priority, Session, priority
from ..process.clock import now_s
from .ongoing import new_name
from .plans.plan import Plan
from .scope import Within


class Unfollowed:
    """`finish` must be called exactly once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.member = plan.pace.crowd.join(followed=False)
        around = priority.get()
        self._session: Session | None = None
        self._urgency = around
        if plan.used.engines and around.session is None:  # else it is part of another one
            self._session = Session(new_name(), program=plan.says.program)
            run = around.run if around.batch else self._session.name
            self._urgency = Priority(0, run, now_s(), batch=around.batch, session=self._session, outline=around.outline)

    def inside(self) -> Within[Priority]:
        """Around the program's own code."""
        return Within(priority, self._urgency)

    def finish(self, completed: bool) -> None:
        self.member.returned()
        if self._session is not None:
            self._session.end()
