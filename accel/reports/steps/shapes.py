"""What an input is made of, without its texts: how many characters of the program's own, and the names of what is
pasted in between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...text.templates import Counter, Join, Leaf, Ref, Spread, Template, refs_in
from ...text.values import Opaque, Tree, leaves
from ...trace.beside import BESIDE
from ...trace.record import CallRecord
from .steps import REQUEST, name_of

if TYPE_CHECKING:
    from ...graph.ir import Graph
    from ...run.plans.plan import Plan

_CLASS = re.compile(r"\w+(\.\w+)+")
"""What objects are told by in an input: the name of a class."""
LONGEST = 4_000
"""Of a text that was asked for, in characters."""
MOST = 12
"""Leaves of an input that are told one by one."""


def shape_of(plan: Plan, call: CallRecord) -> list[str]:
    """A line for every text of a call's input: by its template where one is known, else its length."""
    nodes = [node for node in plan.graph.by_site.get(call.site, ()) if node.predictable and not node.schedule.stage_of]
    lines = list(_learnt(nodes[0].input, plan.graph)) if len(nodes) == 1 else list(_lengths(call.input))
    return lines[:MOST] + [f"and {len(lines) - MOST} more"] * (len(lines) > MOST)


def texts_of(call: CallRecord) -> list[str]:
    """What was asked and answered, in full."""
    asked = [f"asked: {_cut(text)}" for text in _texts(call.input)]
    return asked + [f"answered: {_cut(text)}" for text in _texts(call.output)]


def _texts(tree: Tree) -> Iterator[str]:
    return (leaf for _, leaf in leaves(tree) if isinstance(leaf, str) and leaf.strip() and not _CLASS.fullmatch(leaf))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … {len(text) - LONGEST} more characters"


def _characters(count: int) -> str:
    return f"{count} character{'s' * (count != 1)}"


def _learnt(tree: Tree, graph: Graph) -> Iterator[str]:
    if isinstance(tree, Template):
        yield " + ".join(_part(part, graph) for part in tree.parts)
    elif isinstance(tree, Spread):
        yield from _learnt(tree.leaf, graph)
    elif isinstance(tree, Leaf):
        yield " + ".join(dict.fromkeys(_named(ref, graph) for ref in refs_in(tree)))
    elif isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from _learnt(value, graph)


def _part(part: str | Ref | Join | Counter, graph: Graph) -> str:
    if isinstance(part, str):
        return _characters(len(part))
    if isinstance(part, Counter):
        return "a number"
    if isinstance(part, Join):
        named = " and ".join(dict.fromkeys(_named(ref, graph) for ref in part.refs))
        return f"all of {named}" if part.ref.stars else named
    return _named(part, graph)


def _named(ref: Ref, graph: Graph) -> str:
    """Whose value it is."""
    node = graph.by_name[ref.node]
    if node.site:
        return f"`{name_of(node)}`"
    if node.gathers:
        return f"all of {' and '.join(dict.fromkeys(_named(part, graph) for part in node.refs()))}"
    if node.relay is not None:
        return " or ".join(dict.fromkeys(_named(handed, graph) for handed in node.relay.refs))
    if ref.node == REQUEST:
        return f"the request's {ref.field[0]}" if ref.field and isinstance(ref.field[0], str) else "the request"
    if ref.node == BESIDE:
        return f"the run's {'.'.join(step for step in ref.path if isinstance(step, str))}"
    name, _, way = ref.node.rpartition(".")
    return f"what `{name}` {_WAYS[way]}"


_WAYS = {"in": "was given", "out": "returned", "answers": "was answered"}


def _lengths(tree: Tree) -> Iterator[str]:
    yield from (_characters(len(text)) for text in _texts(tree))
    yield from ("an object" for _, leaf in leaves(tree) if isinstance(leaf, Opaque))
