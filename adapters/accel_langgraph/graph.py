"""`accelerate` for compiled LangGraph graphs: a shallow copy of a subclass of the same name.

The copy runs the same nodes in the same loop. Each run gets a handle (a ContextVar), each node tells when it starts and
ends, and everything else happens at the component boundary.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_RESUMING
from langgraph._internal._runnable import RunnableCallable  # guarded: see test_framework_facts
from langgraph.func import _TaskFunction  # guarded as well
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from langgraph.types import Command

from accel.errors import AccelError, ConfigurationError, WrongObject, choose, kind_of
from accel.graph.topology import START, Control, Topology
from accel.insight import of_program, shallow
from accel.parts.functions import pure
from accel.parts.methods.patches import enable
from accel.parts.references import Ways
from accel.run import switch
from accel.run.demands.streams import astreamed, streamed
from accel.run.drive import begin
from accel.run.plans.plan import Plan
from accel.run.run import Run
from accel.run.settings import PASSING, Settings
from accel.run.unfollowed import Unfollowed

from .awaited import only_awaited
from .batches import Batches
from .chains import accelerate_chain
from .components import install_all
from .hosts import asked_by, configurable_of, host_of, references_of, within_s
from .topology import Compiled, topology_of
from .visits import watch, watched

_OWN = frozenset({"_accel"})
F = TypeVar("F", bound=Callable[..., Any])


class Acceleration:
    """What an accelerated graph carries: the graph it was made from, its plan and settings."""

    program = "graph"

    def __init__(self, graph: Compiled, settings: Settings, plan: Plan, pure_nodes: frozenset[str]) -> None:
        self.graph = graph
        self.pure_nodes = pure_nodes
        self.settings = settings
        self.plan = plan
        self.topology = plan.topology = topology_of(graph)
        self.roots = [*(node.bound for node in graph.nodes.values()), *_branches(graph), *_schemas(graph)]
        self.opened = (Runnable, Pregel, _TaskFunction, *{type(node) for node in graph.nodes.values()})
        self.ways = Ways()
        self._looked = False
        if not plan.pace.never:
            self._look()

    def _look(self) -> None:
        """At the program as it is before it runs."""
        program = self.graph.builder if isinstance(self.graph, CompiledStateGraph) else self.graph
        references = references_of(self.roots, self.opened, self.ways)
        self.plan.keys.look(program, references.components)
        self.plan.look(references)
        self._looked = True  # last: another thread that begins meanwhile looks as well

    def begin(
        self, fast: Compiled, settings: Settings, value: Any, config: RunnableConfig | None, options: dict[str, Any]
    ) -> Run | Unfollowed:
        """The handle of a new run."""
        if settings is PASSING:
            return Unfollowed(self.plan)
        if not self._looked:
            self._look()
        install_all()
        watch()
        configurable = configurable_of(fast.config, config)
        resumes = bool(configurable.get(CONFIG_KEY_RESUMING))  # inside a graph that does: nodes before won't run again
        fresh = value is not None and not isinstance(value, Command) and not resumes
        control = Control(
            self.topology if fresh else self.topology.from_within,
            self.plan.barriers,
            _names(options.get("interrupt_before") or fast.interrupt_before_nodes, self.topology),
            _names(options.get("interrupt_after") or fast.interrupt_after_nodes, self.topology),
        )
        host = host_of(
            (fast.config, config),
            control,
            references_of(self.roots, self.opened, self.ways),
            options.get("stream_mode"),
            options.get("context"),
        )
        run = begin(self.plan, settings, host, None if resumes else value)
        run.trace.resumed = not fresh
        answers = isinstance(value, Command) and value.resume is not None
        if not (fresh or answers or isinstance(self.graph, CompiledStateGraph)):
            run.silence()  # tasks that are done won't run again, and nothing tells where it goes on
        return run


def _branches(graph: Compiled) -> list[Any]:
    """What chooses where its conditional edges lead."""
    builder = graph.builder if isinstance(graph, CompiledStateGraph) else None
    named = builder.branches.values() if builder is not None else ()
    return [branch.path for branches in named for branch in branches.values()]


def _schemas(graph: Compiled) -> list[type]:
    """The classes of its states, whose defaults are the program's."""
    builder = graph.builder if isinstance(graph, CompiledStateGraph) else None
    if builder is None:
        return []
    own = (builder.state_schema, builder.input_schema, builder.output_schema)
    return [*own, *(node.input_schema for node in builder.nodes.values())]


def _names(given: Any, topology: Topology) -> Iterable[str]:
    return topology.successors if given == "*" else given


def _as_of(method: Any) -> Callable[[F], F]:
    """With the words and the signature of the method that it stands for."""

    def shown(function: F) -> F:
        return cast(F, wraps(method)(function))

    return shown


class Accelerated(Batches):
    """Mixed in front of the graph's own class."""

    __slots__ = ()
    _accel: Acceleration
    config: RunnableConfig | None

    @_as_of(CompiledStateGraph.stream)
    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        inner: Callable[..., Any] = super().stream  # type: ignore[misc]
        settings = self._accel_heeded(config, options)
        if settings is None:
            return inner(input, config, **options)  # type: ignore[no-any-return]
        return streamed(
            lambda: self._accel_begin(settings, input, config, options), lambda: inner(input, config, **options)
        )

    @_as_of(CompiledStateGraph.astream)
    def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        inner: Callable[..., Any] = super().astream  # type: ignore[misc]
        settings = self._accel_heeded(config, options, asynchronous=True)
        if settings is None:
            return inner(input, config, **options)  # type: ignore[no-any-return]
        return astreamed(
            lambda: self._accel_begin(settings, input, config, options), lambda: inner(input, config, **options)
        )

    def _accel_heeded(
        self, config: RunnableConfig | None, options: dict[str, Any], asynchronous: bool = False
    ) -> Settings | None:
        if switch.off or options.get("version") == "v3":
            return None
        return self._accel_settings(asynchronous, asked_by(self.config, config), within_s(self.config, config))

    def _accel_begin(
        self, settings: Settings, input: Any, config: RunnableConfig | None, options: dict[str, Any]
    ) -> Run | Unfollowed:
        return self._accel.begin(self, settings, input, config, options)  # type: ignore[arg-type]

    def copy(self, update: dict[str, Any] | None = None) -> Any:
        """As the graph's own `copy`, and accelerated with the same plan."""
        mine = {key: value for key, value in self.__dict__.items() if key not in _OWN and key != "nodes"}
        plain = self._accel.graph.copy(
            {**{k: v for k, v in mine.items() if k in _constructor_names(self)}, **(update or {})}
        )
        return self._accel_like(plain)

    def _accel_plain(self) -> Any:
        plain = super()._accel_plain()
        del plain._accel
        plain.nodes = self._accel.graph.nodes
        return plain

    def _accel_like(self, plain: Any) -> Any:
        accel = self._accel
        return _wrap(plain, accel.settings, accel.plan, accel.pure_nodes, type(self))

    def _accel_remade(self, plain: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return accelerate_object, (plain, self._accel.settings, None, tuple(self._accel.pure_nodes))

    def _accel_run(self, value: Any, **options: Any) -> Any:
        return self.invoke(value, **options)  # type: ignore[attr-defined]

    async def _accel_arun(self, value: Any, **options: Any) -> Any:
        return await self.ainvoke(value, **options)  # type: ignore[attr-defined]

    def _accel_awaited(self) -> bool:
        return only_awaited(self)


def _constructor_names(graph: Any) -> frozenset[str]:
    names = {"builder", "schema_to_mapper"}
    names.update(k for k in graph.__dict__ if not k.startswith("_"))
    return frozenset(names - {"nodes", "__orig_class__"})


# --- nodes ----------------------------------------------------------------------------------------------------------


def _with_pure_function(name: str, runnable: Any) -> Any:
    """A copy of a node's runnable whose function is declared pure."""
    steps = list(getattr(runnable, "steps", ()))
    if not steps or not isinstance(steps[0], RunnableCallable) or steps[0].func_accepts:
        raise ConfigurationError(
            f"Node {name!r} can't be declared pure: it isn't a plain function of the state.",
            "Declare functions it calls with accel.pure instead, or let it take nothing but the state.",
        )
    first = copy.copy(steps[0])
    first.func = pure(first.func) if first.func is not None else None
    first.afunc = pure(first.afunc) if first.afunc is not None else None
    changed = copy.copy(runnable)
    changed.steps = [first, *steps[1:]]
    return changed


def _observed(name: str, node: Any, declared_pure: bool) -> Any:
    """A copy of a node whose runnable tells the run when it starts and ends.

    `PregelNode.node` is what the loop runs; `bound` stays the same object, so drawing, subgraph discovery and cache
    identity don't change.
    """
    runnable = node.node
    if runnable is None or name == START:
        return node
    if "node" not in vars(type(node)):
        raise AccelError(
            "This version of LangGraph has no PregelNode.node; Accel can't see its nodes.",
            "Install langgraph>=1.1,<1.3.",
        )
    if declared_pure:
        runnable = _with_pure_function(name, runnable)
    seen = copy.copy(node)
    seen.__dict__["node"] = watched(runnable, name)
    return seen


# --- accelerate -----------------------------------------------------------------------------------------------------


def _class_of(cls: type) -> type:
    same = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls.__name__, (Accelerated, cls), {**of_program(cls), **same})


def _wrap(
    graph: Compiled, settings: Settings, plan: Plan, pure_nodes: frozenset[str] = frozenset(), cls: type | None = None
) -> Any:
    # A shallow copy: LangGraph's own copy() loses mappers and allow-lists.
    fast: Compiled = shallow(graph, cls or _class_of(type(graph)))
    fast.nodes = {name: _observed(name, node, name in pure_nodes) for name, node in graph.nodes.items()}
    fast._accel = Acceleration(graph, settings, plan, pure_nodes)  # type: ignore[attr-defined]
    enable()
    install_all()
    watch()
    return fast


def accelerate_object(graph: Compiled, settings: Settings, plan: Plan | None, pure_nodes: Iterable[str]) -> Any:
    """An accelerated copy of a compiled graph, an entrypoint or a chain; itself if it is accelerated already."""
    if isinstance(graph, Accelerated):
        return graph
    if isinstance(graph, type):
        raise WrongObject(
            f"accelerate() takes a graph or a chain, not {kind_of(graph)}.",
            "Give the object, not its class, such as accelerate(builder.compile()).",
        )
    if not isinstance(graph, Pregel):
        return accelerate_chain(graph, settings, plan, tuple(pure_nodes))
    nodes = sorted(set(graph.nodes) - {START})
    unknown = [name for name in pure_nodes if name not in nodes]
    if unknown:
        raise ConfigurationError(
            f"pure_nodes names {unknown[0]!r}, which is not a node of this graph.",
            choose(unknown[0], nodes, "Its nodes are"),
        )
    return _wrap(graph, settings, plan or Plan(), frozenset(pure_nodes))
