"""`accelerate` for chains without a graph: LangChain's sequences, parallels, lambdas, branches, fallbacks, retries.

A copy of a subclass of the same name opens a run around each call; all else is the class's own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.pregel import Pregel

from accel.errors import ConfigurationError, WrongObject, kind_of
from accel.graph.topology import Control, Topology
from accel.insight import Insight, of_program, shallow
from accel.parts.methods.patches import enable
from accel.parts.references import Ways
from accel.run import switch
from accel.run.batches.journal import Serde
from accel.run.demands.streams import astreamed, inside, streamed
from accel.run.drive import begin
from accel.run.plans.plan import Plan
from accel.run.run import Run
from accel.run.settings import PASSING, Settings
from accel.run.unfollowed import Unfollowed

from .awaited import only_awaited
from .batches import serde
from .components import install_all, is_component
from .hosts import asked_by, host_of, references_of, within_s

_OPENED = (Runnable, Pregel)
_MODULE = "langchain_core.runnables."


class Acceleration:
    """What an accelerated chain and its copies carry: plan and settings."""

    program = "chain"

    def __init__(self, chain: Any, settings: Settings, plan: Plan) -> None:
        self.settings = settings
        self.plan = plan
        self.ways = Ways()
        self._looked = False
        if not plan.pace.never:
            self._look(chain)

    def _look(self, chain: Any) -> None:
        """At the program as it is before it runs."""
        references = references_of([chain], _OPENED, self.ways)
        self.plan.keys.look(chain, references.components)
        self.plan.look(references)
        self._looked = True  # last: another thread that begins meanwhile looks as well

    def begin(self, chain: Any, settings: Settings, value: Any, config: RunnableConfig | None) -> Run | Unfollowed:
        """The handle of a new run."""
        if settings is PASSING:
            return Unfollowed(self.plan)
        if not self._looked:
            self._look(chain)
        install_all()
        control = Control(Topology({}), self.plan.barriers, (), ())
        references = references_of([chain], _OPENED, self.ways)
        host = host_of((getattr(chain, "config", None), config), control, references)
        return begin(self.plan, settings, host, value)


class AcceleratedChain(Insight):
    """Mixed in front of the chain's own class."""

    __slots__ = ()
    _accel: Acceleration
    _accel_configured = True

    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        inner: Callable[..., Any] = super().invoke  # type: ignore[misc]
        settings = self._accel_heeded(config)
        if settings is None:
            return inner(input, config, **options)
        run = self._accel.begin(self, settings, input, config)
        completed = False
        try:
            with inside(run):
                result = inner(input, config, **options)
            completed = True
            return result
        finally:
            run.finish(completed)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        inner: Callable[..., Any] = super().ainvoke  # type: ignore[misc]
        settings = self._accel_heeded(config, asynchronous=True)
        if settings is None:
            return await inner(input, config, **options)
        run = self._accel.begin(self, settings, input, config)
        completed = False
        try:
            with inside(run):
                result = await inner(input, config, **options)
            completed = True
            return result
        finally:
            run.finish(completed)

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        inner: Callable[..., Iterator[Any]] = super().stream  # type: ignore[misc]
        settings = self._accel_heeded(config)
        if settings is None:
            return inner(input, config, **options)
        begin = partial(self._accel.begin, self, settings, input, config)
        return streamed(begin, lambda: inner(input, config, **options))

    def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        inner: Callable[..., AsyncIterator[Any]] = super().astream  # type: ignore[misc]
        settings = self._accel_heeded(config, asynchronous=True)
        if settings is None:
            return inner(input, config, **options)
        begin = partial(self._accel.begin, self, settings, input, config)
        return astreamed(begin, lambda: inner(input, config, **options))

    def _accel_heeded(self, config: RunnableConfig | None, asynchronous: bool = False) -> Settings | None:
        if switch.off:
            return None
        layers = (getattr(self, "config", None), config)
        return self._accel_settings(asynchronous, asked_by(*layers), within_s(*layers))

    def _accel_like(self, plain: Any) -> Any:
        return shallow(plain, type(self))

    def _accel_remade(self, plain: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return accelerate_chain, (plain, self._accel.settings, None, ())

    def _accel_serde(self) -> Serde:
        return serde()

    def _accel_run(self, value: Any, **options: Any) -> Any:
        return self.invoke(value, **options)

    async def _accel_arun(self, value: Any, **options: Any) -> Any:
        return await self.ainvoke(value, **options)

    def _accel_awaited(self) -> bool:
        return only_awaited(self)


def is_chain(obj: Any) -> bool:
    return isinstance(obj, Runnable) and type(obj).__module__.startswith(_MODULE) and not is_component(obj)


def accelerate_chain(chain: Any, settings: Settings, plan: Plan | None, pure_nodes: tuple[str, ...]) -> Any:
    """An accelerated copy of a chain; itself if it is accelerated already."""
    if isinstance(chain, AcceleratedChain):
        return chain
    if not is_chain(chain):
        raise WrongObject(
            f"accelerate() takes a chain of LangChain's runnables, not {kind_of(chain)}: a model, prompt, parser or "
            "tool by itself has nothing to issue early.",
            "Accelerate the chain or the graph that calls it, such as accelerate(prompt | model | parser).",
        )
    if pure_nodes:
        raise ConfigurationError("pure_nodes names nodes of a graph.", "Declare functions with accel.pure instead.")
    cls: Any = type(chain)
    same = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    fast_class = type(cls)(cls.__name__, (AcceleratedChain, cls), {**of_program(cls), **same})
    # On the class, which is this object's and its copies' own: fields of pydantic models must stay as they are.
    type.__setattr__(fast_class, "_accel", Acceleration(chain, settings, plan or Plan()))
    enable()
    install_all()
    return shallow(chain, fast_class)
