"""What a LangGraph graph says about where control may go, what stops a run, and what a cache may answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.func import _TaskFunction  # guarded: see test_framework_facts
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel

from accel.graph.topology import END, START, Topology
from accel.parts.references import referenced
from accel.text.objects import is_a

from .middleware import has_guard

Compiled = Pregel[Any, Any, Any, Any]


def topology_of(graph: Compiled) -> Topology:
    """Static edges and possible branches of a graph; unknown destinations count as anywhere."""
    builder = getattr(graph, "builder", None)
    if builder is None:
        return _functional(graph)
    names = frozenset(builder.nodes)
    anywhere = names | {END}
    successors: dict[str, set[str]] = {name: set() for name in (START, *names)}
    always: dict[str, set[str]] = {name: set() for name in successors}
    for start, end in builder.edges:
        successors[start].add(end)
        always[start].add(end)
    for starts, end in builder.waiting_edges:
        for start in starts:
            successors[start] |= {end, END}  # alone it leads nowhere
    for start, branches in builder.branches.items():
        for branch in branches.values():
            successors[start] |= set(branch.ends.values()) if branch.ends else anywhere
    for name, spec in builder.nodes.items():
        if spec.ends:
            successors[name] |= set(spec.ends)
        if not successors[name]:
            successors[name].add(END)
    guards = {name for name, node in graph.nodes.items() if any(map(_guards, _graphs_in(node)))}
    caching = {
        name
        for name, node in graph.nodes.items()
        if any(map(_cached, _graphs_in(node))) or (graph.cache is not None and _calls_cached_tasks(node))
    }
    return Topology(
        {name: frozenset(ends) for name, ends in successors.items()},
        {name: frozenset(ends) for name, ends in always.items()},
        tuple((frozenset(starts), end) for starts, end in builder.waiting_edges),
        guards=_guards(graph) | guards,
        cached=_cached(graph),
        caching=frozenset(caching),
    )


def _functional(graph: Compiled) -> Topology:
    """An `@entrypoint` is one node. Of a graph that somebody put together of `Pregel`'s own parts nothing is known."""
    names = frozenset(graph.nodes) - {START}
    if graph.cache is not None or len(names) != 1:
        return Topology({}, caching=names if graph.cache is not None else frozenset())
    return Topology({START: names, **{name: frozenset({END}) for name in names}})


def _graphs_in(node: Any) -> Iterator[Compiled]:
    """The graphs that a node runs, and those inside them."""
    for graph in node.subgraphs:
        if is_a(graph, Pregel):
            yield graph
            for inner in graph.nodes.values():
                yield from _graphs_in(inner)


def _calls_cached_tasks(node: Any) -> bool:
    """Whether the code of a node refers to a `@task` with a cache policy."""

    def is_cached(value: Any) -> bool:
        return is_a(value, _TaskFunction) and value.cache_policy is not None

    opened = (Runnable, Pregel, _TaskFunction, type(node))
    found = referenced([node.bound], is_cached, lambda value: is_a(value, opened))
    return any(is_cached(one.component) for one in found.values())


def _guards(graph: Compiled) -> frozenset[str]:
    """Those that are marked, and those of an agent's middleware."""
    specs = graph.builder.nodes.items() if is_a(graph, CompiledStateGraph) else ()
    return frozenset(name for name, spec in specs if (spec.metadata or {}).get("guard") or has_guard(spec.runnable))


def _cached(graph: Compiled) -> frozenset[str]:
    """Nodes with a cache policy, also where the graph itself has no cache: it may get that of a graph around it."""
    return frozenset(name for name, node in graph.nodes.items() if node.cache_policy or graph.cache_policy)
