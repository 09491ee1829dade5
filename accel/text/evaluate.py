"""Evaluate a template against what a run knows: the value, a known prefix, or unknown.

That answer is all the runtime needs to issue a call early or to prefill the beginning of its prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from .extract import Open, Partial
from .paths import UNKNOWN, Index, as_text, enumerate_stars, follow, has_gap, is_missing, step_into
from .templates import Collect, Counter, Join, Leaf, Spread, Talk, Template, Whole
from .turns import CALLS
from .values import Tree, freeze


class NoElement(str):
    """What a join without elements gives; see `Join.empty`."""

    __slots__ = ()


class Env(Protocol):
    """What is known: for every node its output; for a node with many outputs a list of them, `Open` while more may
    come, with `UNKNOWN` in the gaps."""

    def value(self, node: str) -> Tree: ...

    def joined(self, join: Join, binding: Index, position: int) -> str:
        """The joined text, `NoElement` if there is nothing to join; a `Partial` up to the first gap."""
        out: list[str] = []
        for i, item in enumerate(_items(join, binding, position, self)):
            if i and item is not None:
                out.extend(part if isinstance(part, str) else str(i + part.offset) for part in join.sep)
            if item is not None:
                out.append(item)
            if item is None or isinstance(item, Partial):
                return Partial("".join(out))
        return "".join(out) if out else NoElement()


def rows_of(join: Join, binding: Index, position: int, env: Env) -> Iterator[list[str | None] | None]:
    """The values of every row in order, up to the first gap: None instead of a value, or of a row."""
    if not join.ref.stars and is_missing(env.value(join.ref.node), join.ref.path):
        return
    limit = join.limit.offset + position if isinstance(join.limit, Counter) else join.limit
    columns: list[list[str | None]] = []
    ends: list[int] = []
    for ref in join.refs:
        value = env.value(ref.node)
        tuples, complete = enumerate_stars(value, ref.path, binding[: join.bound])
        columns.append([as_text(follow(value, ref.path, index)) for index in tuples[:limit]])
        if complete or (limit is not None and len(tuples) >= limit):
            ends.append(len(columns[-1]))
    known = min(map(len, columns))
    for row in range(known):
        yield [column[row] for column in columns]
    if known not in ends:
        yield None


def _items(join: Join, binding: Index, position: int, env: Env) -> Iterator[str | None]:
    """The elements of a join in order, a `Partial` where one is still growing; None at the first gap."""
    for row in rows_of(join, binding, position, env):
        text = _row_text(join, row) if row is not None else None
        yield text
        if text is None or isinstance(text, Partial):
            return


def _row_text(join: Join, values: list[str | None]) -> str | None:
    """A row with its values; a `Partial` up to the first gap, None if that is its beginning."""
    coming = iter(values)
    out: list[str] = []
    for part in join.row:
        text = part if isinstance(part, str) else next(coming)
        if text is None:
            return Partial("".join(out)) if out else None
        out.append(text)
        if isinstance(text, Partial):
            return Partial("".join(out))
    return "".join(out)


def text_of(template: Template, binding: Index, position: int, env: Env) -> str:
    """The text; a `Partial` of what is known up to the first gap."""
    out: list[str] = []
    less = 0
    for part in template.parts:
        if isinstance(part, str):
            out.append(part[less:])
            less = 0
        elif isinstance(part, Counter):
            out.append(str(position + part.offset))
        elif isinstance(part, Join):
            joined, empty = env.joined(part, binding, position), part.empty
            if not joined and out and empty is not None and isinstance(joined, NoElement | Partial):
                out[-1] = out[-1][: max(0, len(out[-1]) - empty.before)]
            if isinstance(joined, Partial) or (isinstance(joined, NoElement) and empty is None):
                return Partial("".join([*out, joined]))
            if isinstance(joined, NoElement) and empty is not None:
                joined, less = empty.said, empty.behind
            out.append(joined)
        else:
            value = follow(env.value(part.node), part.path, binding[: part.stars])
            text = as_text(value) if value is not None else None  # most programs say something else then
            if text is None:
                return Partial("".join(out))
            out.append(text)
            if isinstance(text, Partial):
                return Partial("".join(out))
    return "".join(out)


def leaf_of(leaf: Leaf, binding: Index, position: int, env: Env) -> Tree:
    if isinstance(leaf, Template):
        return text_of(leaf, binding, position, env)
    if isinstance(leaf, Talk):
        return talk_of(leaf, maker(leaf.start)(binding, position, env), env)
    value = env.value(leaf.ref.node)
    if isinstance(leaf, Whole):
        return follow(value, leaf.ref.path, binding[: leaf.ref.stars])
    if value is UNKNOWN:
        return UNKNOWN
    return collected(leaf, value, binding)


def talk_of(talk: Talk, start: Tree, env: Env) -> Tree:
    """The messages, with gaps for results that are missing; unknown before the last answer."""
    if not isinstance(start, list):
        return UNKNOWN
    added: list[Tree] = []
    for taken in talk.turns:
        answer = follow(env.value(taken.answer.node), taken.answer.path)
        if not isinstance(answer, dict) or has_gap(answer):
            return UNKNOWN
        lists = [env.value(ref.node) for ref in taken.results]
        given = [[step_into(held, at) for held in lists] for at in range(len(answer.get(CALLS, ())))]
        results = [next((one for one in held if one is not UNKNOWN), UNKNOWN) for held in given]
        added += taken.turn.messages(answer, results)
    at = len(start) - talk.after
    return [*start[:at], *added, *start[at:]]


def collected(collect: Collect, value: Tree, binding: Index) -> Tree:
    """The list, `Open` up to the first element that isn't known; an element that may equal it could drop out."""
    tuples, complete = enumerate_stars(value, collect.ref.path, binding[: collect.bound])
    items: list[Tree] = []
    seen: set[Any] = set()
    for index in tuples:
        if collect.limit is not None and len(items) >= collect.limit:
            return items
        item = follow(value, collect.ref.path, index)
        if has_gap(item):
            return Open(items)
        if collect.distinct is not None:
            key = freeze(follow(item, collect.distinct))
            if key in seen:
                continue
            seen.add(key)
        items.append(item)
    if collect.limit is not None and len(items) >= collect.limit:
        return items
    return items if complete else Open(items)


Make = Callable[[Index, int, Env], Tree]
"""Gives a node's input for the element with this binding at this position; see `has_gap` for what is missing."""


def maker(tree: Tree) -> Make:
    """How the inputs are made that this tree of templates stands for. What depends on nothing, they share."""
    return _maker(tree) or (lambda binding, position, env: tree)


def _maker(tree: Tree) -> Make | None:
    if isinstance(tree, Talk):
        start = maker(tree.start)
        return lambda binding, position, env: talk_of(tree, start(binding, position, env), env)
    if isinstance(tree, Leaf):
        return lambda binding, position, env: leaf_of(tree, binding, position, env)
    if isinstance(tree, Spread):
        return _maker(tree.leaf)
    if not isinstance(tree, dict | list):
        return None
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    parts = [(key, make) for key, value in items if (make := _maker(value)) is not None]
    spread = isinstance(tree, list) and any(isinstance(value, Spread) for value in tree)

    def fill(binding: Index, position: int, env: Env) -> Tree:
        made: Any = tree.copy()
        for key, make in reversed(parts):
            made[key] = make(binding, position, env)
            if spread and isinstance(tree[key], Spread):
                made[key : key + 1] = _elements(made[key])
        return made

    return fill if parts else None


def _elements(value: Tree) -> list[Tree]:
    """What stands in a list for a list that is spread there; where it is not known to its end, with a gap."""
    if not isinstance(value, list):
        return [UNKNOWN]
    return [*value, UNKNOWN] if isinstance(value, Open) else value
