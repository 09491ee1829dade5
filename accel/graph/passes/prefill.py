"""Prefill split (Ayo, pass 3): a prompt whose beginning is known before its end is prefilled up to a hole boundary.

Marks the boundaries, and how much must have become known for another part to pay: the engine's profile says that.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...engine.profile import Profile
from ...text.templates import Join, Ref, Template
from ..ir import Graph, Node

USUAL_TOKENS = 50
"""Without a profile: about two blocks of a prefix cache."""


def prefill(graph: Graph, profiles: Mapping[str, Profile]) -> Graph:
    llm = profiles.get("llm")
    least = llm.split_tokens if llm is not None else USUAL_TOKENS

    def split(node: Node) -> Node:
        if not (node.predictable and node.op.splittable):
            return node
        last = None
        for leaf in node.leaves():
            if isinstance(leaf, Template):
                last = leaf
        if last is None:
            return node
        holes = [i for i, part in enumerate(last.parts) if isinstance(part, Ref | Join)]
        # The first hole may be known long before the others; nothing is gained in front of the only one.
        cuts = tuple(holes if any(isinstance(part, Join) for part in last.parts) else holes[1:])
        return node.scheduled(prefills=cuts, prefill_tokens=least if cuts else 0)

    return graph.map(split)


def summary(graph: Graph, profiles: Mapping[str, Profile]) -> str:
    if prefill(graph, profiles) is graph:
        return "no prompt has a beginning that may be known before its end"
    return "" if "llm" in profiles else f"without a profile, {USUAL_TOKENS} tokens are taken to pay"
