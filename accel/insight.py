"""What every accelerated object can tell about itself, whatever its framework."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from .errors import ConfigurationError
from .process.threads import learner
from .reports.explain import Format, explain
from .reports.report import Report
from .reports.timeline import timeline
from .run.plan import Plan
from .run.saved import save
from .run.scope import scope
from .run.settings import Settings
from .run.waiting import loop_here

SETTLE_S = 60.0


class HasPlan(Protocol):
    """What an adapter keeps with an accelerated object."""

    @property
    def plan(self) -> Plan: ...
    @property
    def settings(self) -> Settings: ...


_PYDANTIC_STATE = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")


def shallow(obj: Any, cls: type) -> Any:
    """An object of this class that holds what `obj` holds; for classes that one of them is derived from the other."""
    made: Any = object.__new__(cls)
    made.__dict__.update(obj.__dict__)
    for name in _PYDANTIC_STATE:
        if hasattr(obj, name):
            object.__setattr__(made, name, copy.copy(getattr(obj, name)))
    return made


class Insight:
    """Mixed into accelerated objects, in front of their own class. `_run_once` and `_arun_once` run the program on one
    input.

    Copies are made by the object's own class, and then accelerated as it is: with the same plan, which is about the
    program, but with an empty one in another process.
    """

    __slots__ = ()
    _accel: HasPlan

    def _run_once(self, value: Any, **options: Any) -> Any:
        raise NotImplementedError

    async def _arun_once(self, value: Any, **options: Any) -> Any:
        raise NotImplementedError

    def _passes(self, asynchronous: bool = False) -> bool:
        """Whether a call of it goes on as without Accel, or as part of the run that it is inside of."""
        if scope.get() is not None:
            return True
        return not self._accel.plan.pace.follows(loop_here() if asynchronous else None)

    def _plain(self) -> Any:
        """This object, as its own class without Accel has it."""
        classes = type(self).__mro__
        return shallow(self, classes[classes.index(Insight) + 1])

    def _like(self, plain: Any) -> Any:
        """`plain`, accelerated as this object is."""
        raise NotImplementedError

    def _remade(self, plain: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """A function of a module, and what it takes to accelerate `plain` as this object is, with an empty plan."""
        raise NotImplementedError

    def __copy__(self) -> Any:
        return self._like(copy.copy(self._plain()))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Any:
        return self._like(copy.deepcopy(self._plain(), memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._remade(self._plain())

    @property
    def plan(self) -> Plan:
        """What Accel has learnt about this program; can be given to `accelerate(..., plan=...)`."""
        return self._accel.plan

    def report(self) -> Report:
        """What was gained per request, what would gain more, and what became of every call; `Report.priced` adds what
        it costs."""
        return Report(self._accel.plan, self._accel.settings, nodes=hasattr(self._accel, "pure_nodes"))

    def explain(self, *, graph: bool = False, format: Format = "text", path: str | None = None) -> str:
        """Which call waits for which, and what starts when, in words. `format`: as "text", a "mermaid" flowchart or an
        "svg" picture, written to `path`, too, if one is given. `graph`: the compiler's view instead: the learnt graph,
        what every pass made of it or why nothing, and the graph that runs follow."""
        return explain(self._accel.plan, graph=graph, format=format, path=path)

    def timeline(self, path: str, *, texts: bool = False) -> None:
        """Draw the last run, before and after, as one HTML page, or for Perfetto if `path` ends in ``.json``.
        `texts`: with what prompts and answers say, not only with their lengths."""
        learner.settle(SETTLE_S)
        if self._accel.plan.last is None:
            raise ConfigurationError("There is no run to draw yet.", "Run the program first.")
        timeline(self._accel.plan.last, path, plan=self._accel.plan, texts=texts)

    def warmup(self, inputs: Iterable[Any], **options: Any) -> None:
        """Run the program on these inputs, effects included, and wait until Accel has learnt from them: two at least,
        and of different words, as what one run has shown may be somebody's data."""
        self._accel.plan.pace.news()
        for value in inputs:
            self._run_once(value, **options)
        learner.settle(SETTLE_S)

    async def awarmup(self, inputs: Iterable[Any], **options: Any) -> None:
        """`warmup` of a program of coroutines."""
        self._accel.plan.pace.news()
        for value in inputs:
            await self._arun_once(value, **options)
        await asyncio.to_thread(learner.settle, SETTLE_S)

    def save_plan(self, path: str) -> None:
        """Write the learnt templates as JSON: no components, no secrets, no one's data."""
        learner.settle(SETTLE_S)
        save(self._accel.plan, path)
