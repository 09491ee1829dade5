"""What a batch is going to ask of language models: the calls of the learnt graph, for every input, with the tokens that
they took in the runs it was learnt from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from ...engine.placement import Operator
from ...graph.ir import Graph, Node
from ...trace.record import CallRecord, Trace


def outline(graph: Graph, traces: Sequence[Trace], inputs: int) -> tuple[Operator, ...]:
    """Of engines of ours; empty where nothing is known, or some model is another's."""
    calls: defaultdict[str, list[CallRecord]] = defaultdict(list)
    for trace in traces:
        for call in trace.calls:
            calls[call.site].append(call)
    nodes = [node for node in graph.nodes if node.op.engine == "llm"]
    if not inputs or any(not calls[node.site] for node in nodes):
        return ()
    found: list[Operator] = []
    for node in nodes:
        records = calls[node.site]
        model = engine_of(records[-1].component)
        if model is None:
            return ()
        each = len(records) / len(traces) / len(graph.by_site[node.site])
        read, wrote = (mean(call.tokens[place] for call in records) for place in (0, 1))
        found.append(Operator(
            node.name, model, max(1, round(inputs * each)), round(read), round(wrote), tuple(_before(graph, node))
        ))  # fmt: skip
    return tuple(found)


def engine_of(component: Any) -> str | None:
    """The label of the engine behind a drop-in class of ours."""
    label = getattr(getattr(component, "engine_config", None), "label", None)
    return label if isinstance(label, str) else None


def _before(graph: Graph, node: Node) -> Iterator[str]:
    """The calls of language models that it waits for, directly or through others."""
    seen: set[str] = set()
    todo = [*graph.producers[node.name], *node.schedule.after]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            before = graph.by_name[name]
            if before.op.engine == "llm":
                yield name
            todo += [*graph.producers[name], *before.schedule.after]
