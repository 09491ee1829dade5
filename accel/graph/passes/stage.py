"""Stage decomposition (Ayo, pass 2): what a component's call begins with becomes a primitive of its own.

A search embeds its query: that needs nothing a write could change, so the embedding no longer waits where the search
must. An addition to a store embeds its texts: what is more than the engine's measured efficient batch goes in
micro-batches, each of them taken in while the next is embedded; all become visible together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...engine.profile import Profile
from ...text.values import Tree
from ..ir import Graph, Node
from ..ops import OPS


def stage(graph: Graph, profiles: Mapping[str, Profile]) -> Graph:
    nodes: list[Node] = []
    names = set(graph.by_name)
    for node in graph.nodes:
        first = None if node.first is None or node.schedule.begins_with else _first(node, profiles)
        if first is not None:
            while first.name in names:
                first = replace(first, name=f"{first.name}'")
            names.add(first.name)
            nodes.append(first)
            node = node.scheduled(begins_with=first.name, pipelined=bool(first.schedule.batch_tokens))
        nodes.append(node)
    return graph if len(nodes) == len(graph.nodes) else replace(graph, nodes=tuple(nodes))


def _first(node: Node, profiles: Mapping[str, Profile]) -> Node | None:
    """The node for what `node` begins with; None if nothing is gained by having one."""
    assert node.first is not None
    op = OPS[node.first.op]
    alone = replace(node, name=f"{node.name}.{op.name}", op=op, method=node.first.method, first=None)
    alone = alone.scheduled(stage_of=node.name)
    if node.op.effect == "writes":
        profile = profiles.get(op.name)
        if profile is None or not op.batchable:
            return None
        alone = replace(alone, many=True, site="").proven(reason=f"the texts that {node.name} is given")
        return alone.scheduled(
            batch_tokens=_micro_batch_tokens(profile),
            under_way=max(1, profile.slots) + 2,  # while some are served, enough waits for a whole batch
        )
    if not node.predictable or not op.issuable:
        return None
    level = node.level
    if level is not None:  # one query may be searched for in several ways
        level = replace(level, distinct=True) if level.domain is not None else None
    found = _at(node.input, node.first.path)
    return replace(alone, input={"args": [found], "kwargs": {}}, level=level, many=level is not None)


def _micro_batch_tokens(profile: Profile) -> int:
    efficient = profile.efficient_batch_tokens
    return min(efficient, profile.batch_tokens) if profile.batch_tokens else efficient


def _at(tree: Tree, path: tuple[str | int, ...]) -> Tree:
    for step in path:
        tree = tree[step]
    return tree


def summary(graph: Graph, profiles: Mapping[str, Profile]) -> str:
    calls = [node for node in graph.nodes if node.first is not None]
    if not calls:
        return "no call is known to begin with a primitive that could be done on its own"
    said = []
    if any(node.op.effect == "writes" and node.first.op not in profiles for node in calls if node.first is not None):
        said.append("no micro-batches: the embedding engine has no profile (engine.profile())")
    if any(node.op.effect != "writes" and not node.predictable for node in calls):
        said.append("a search that isn't predicted embeds its query itself")
    return "; ".join(said)
