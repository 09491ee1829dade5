"""Framework nodes tell their run when they start and what they return: those of the accelerated graph, and those of
every graph that runs inside one of them, at any depth.

`PregelNode.node` is what LangGraph's loop runs; `bound` stays the same object, so drawing, subgraph discovery and cache
identity don't change.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from langchain_core.load.serializable import Serializable
from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_SCRATCHPAD  # guarded: see test_framework_facts
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.pregel._read import PregelNode  # guarded: see test_framework_facts

from accel.graph.topology import START
from accel.parts.methods import patches
from accel.process.properties import cached_property
from accel.run.scope import Scope, scope
from accel.run.waits.inner import Closing, step
from accel.trace.record import Visit

_END = object()


class _Node(cached_property[Any]):
    """`PregelNode.node`: inside a framework node of a run, one that tells the run."""

    def __get__(self, node: Any, owner: Any = None) -> Any:
        runnable = super().__get__(node, owner)
        here = scope.get() if node is not None and runnable is not None else None
        if here is None or here.early or here.visit is None or here.run.closed:
            return runnable
        # A Pydantic model, of a graph that somebody put together of `Pregel`'s own parts, can't be copied like this.
        copies = "_accel_node" not in vars(runnable) and not isinstance(runnable, Serializable)
        return watched(runnable) if copies else runnable

    def __set__(self, node: Any, runnable: Any) -> None:
        vars(node)["node"] = runnable  # with a setter, this is asked before what the node has kept


def watch() -> None:
    """Have the nodes of graphs inside nodes tell their run. Idempotent."""
    made = vars(PregelNode)["node"]
    if not isinstance(made, _Node):
        asked = _Node(made.func)
        asked.__set_name__(PregelNode, "node")
        patches.put(PregelNode, "node", asked)


def watched(runnable: Any, name: str = "") -> Any:
    """A copy of a node's runnable that tells the run. `name`: of an outermost node; others have it in their
    configuration."""
    shadow: Any = object.__new__(_watching(type(runnable)))
    shadow.__dict__.update(runnable.__dict__)
    shadow._accel_node = name
    return shadow


def _visit(node: Any, value: Any, config: RunnableConfig | None) -> tuple[Scope, Visit] | None:
    """Where a node runs, and its visit; None outside of runs (or beyond the end of one, as what a node has started may
    go on), and where an early call came here."""
    here = scope.get()
    if here is None or here.early or here.run.closed:
        return None
    about = (config or {}).get("metadata") or {}
    # "outer:task|inner:task"; what stands before the last node is the same for all nodes of one run of a graph.
    graph, _, own = str(about.get("langgraph_checkpoint_ns", "")).rpartition("|")
    name = node._accel_node if here.visit is None else own.partition(":")[0]
    if name in ("", START):
        return None
    answers = _answers(config) if here.run.trace.resumed else ()
    visit = here.run.enter(name, value, here.visit, graph, _order(about), answers=answers)
    return here._replace(visit=visit), visit


def _order(about: Mapping[str, Any]) -> tuple[int, ...]:
    """The superstep that a node runs in, and which of all `Send`s of that step it is for."""
    step, path = about.get("langgraph_step"), about.get("langgraph_path", ())
    return tuple(part for part in (step, *path) if type(part) is int)


def _fail(here: Scope, visit: Visit, error: BaseException) -> None:
    if isinstance(error, ParentCommand):
        here.run.leave(visit, error.args[0])  # its result, for a graph further out
    else:
        here.run.fail(visit, error, pauses=isinstance(error, GraphInterrupt))


def _answers(config: RunnableConfig | None) -> Sequence[Any]:
    """What a node finds answered of what its `interrupt()`s asked before: that of earlier pauses, and of the last one,
    which it takes when it asks."""
    pad = ((config or {}).get("configurable") or {}).get(CONFIG_KEY_SCRATCHPAD)
    if pad is None:
        return ()
    last = pad.get_null_resume(False)  # given by `Command(resume=...)` to whoever asks first
    return [*pad.resume, *([last] if last is not None else [])]


_watchers: dict[type, type] = {}


def _watching(cls: type) -> type:
    """A subclass of a node's runnable class that reports entry and exit to the current run."""
    if cls in _watchers:
        return _watchers[cls]

    def invoke(self: Any, input: Any, config: Any = None, **kwargs: Any) -> Any:
        begun = _visit(self, input, config)
        if begun is None:
            return cls.invoke(self, input, config, **kwargs)  # type: ignore[attr-defined]
        here, visit = begun
        token = scope.set(here)
        try:
            output = cls.invoke(self, input, config, **kwargs)  # type: ignore[attr-defined]
        except BaseException as error:
            _fail(here, visit, error)
            raise
        finally:
            scope.reset(token)
        here.run.leave(visit, output)
        return output

    async def ainvoke(self: Any, input: Any, config: Any = None, **kwargs: Any) -> Any:
        begun = _visit(self, input, config)
        if begun is None:
            return await cls.ainvoke(self, input, config, **kwargs)  # type: ignore[attr-defined]
        here, visit = begun
        token = scope.set(here)
        try:
            output = await cls.ainvoke(self, input, config, **kwargs)  # type: ignore[attr-defined]
        except BaseException as error:
            _fail(here, visit, error)
            raise
        finally:
            scope.reset(token)
        here.run.leave(visit, output)
        return output

    async def astream(self: Any, input: Any, config: Any = None, **kwargs: Any) -> AsyncIterator[Any]:
        parts = cls.astream(self, input, config, **kwargs)  # type: ignore[attr-defined]
        begun = _visit(self, input, config)
        if begun is None:
            async for part in parts:
                yield part
            return
        here, visit = begun
        output: Any = None
        try:
            async with Closing(parts):
                while True:
                    token = scope.set(here)
                    try:
                        part = await step(parts, _END)
                    finally:
                        scope.reset(token)
                    if part is _END:
                        break
                    output = part
                    yield output
        except BaseException as error:
            _fail(here, visit, error)
            raise
        here.run.leave(visit, output)

    members = {"invoke": invoke, "ainvoke": ainvoke, "astream": astream, "__module__": cls.__module__}
    _watchers[cls] = type(cls.__name__, (cls,), members)
    return _watchers[cls]
