"""Evaluate a template against what a run knows: the value, a known prefix, or unknown.

That answer is all the runtime needs to issue a call early or to prefill the beginning of its prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from .dumps import Dump
from .extract import Open, Partial, extract
from .functions import Computed
from .steps import Clip, Count, Each, Edit, Escape, Extract, Head, Items, Label, Star, Step, Strip, Unique, Verdict
from .templates import Collect, Counter, Field, Join, Leaf, Spread, Talk, Template, Whole
from .turns import CALLS, Called
from .values import Opaque, Tree, Vector, freeze

Index = tuple[int, ...]


class _Unknown:
    __slots__ = ()

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = _Unknown()
"""Not known yet, or never (a path that the value doesn't have)."""


class _Dropped:
    __slots__ = ()

    def __repr__(self) -> str:
        return "dropped"


DROPPED = _Dropped()
"""In a list of outputs: the call isn't made for this element."""


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


def step_into(value: Tree, step: Step, whole: bool = False) -> Tree:
    """One step of a path; `UNKNOWN` where the value has no such step. `whole`: somebody has seen that it has no gap."""
    if isinstance(step, str):
        return value.get(step, UNKNOWN) if isinstance(value, dict) else UNKNOWN
    if isinstance(step, int):
        if not isinstance(value, list) or (step < 0 and isinstance(value, Open)):
            return UNKNOWN  # what is last in an open list may not stay last
        return value[step] if -len(value) <= step < len(value) and value[step] is not DROPPED else UNKNOWN
    if isinstance(step, Unique):
        return value
    if isinstance(step, Each):
        return _each(value, step) if isinstance(value, list) and (whole or not has_gap(value)) else UNKNOWN
    if isinstance(step, Computed):
        return _computed(value, step, whole)
    if isinstance(step, Items):
        return step.shown(value) if isinstance(value, dict) else UNKNOWN
    if isinstance(step, Count):
        counts = isinstance(value, list) and not isinstance(value, Open)
        return step.shown([item for item in value if item is not DROPPED]) if counts else UNKNOWN
    if isinstance(step, Dump):
        shown = step.shown(value) if isinstance(value, list | dict) and not has_gap(value) else None
        return shown if shown is not None else UNKNOWN
    done = not isinstance(value, Partial)
    if isinstance(step, Verdict | Called):
        said = step.of(value, done) if isinstance(step, Verdict) else step.of(value)
        return said if said is not None else UNKNOWN
    if not isinstance(value, str):
        return UNKNOWN
    if isinstance(step, Extract):
        return extract(step.name, value, done)
    if isinstance(step, Strip):
        return value.strip() if done else Partial(value.lstrip().rstrip())
    if isinstance(step, Escape):
        if done:
            return step.shown(value)
        # Which quotes it takes shows at the end.
        return Partial(step.shown(value)) if step.name.startswith("json") else UNKNOWN
    if isinstance(step, Edit):
        return step.shown(value) if done else UNKNOWN  # the end of a text may change what stands before
    if isinstance(step, Label):
        said = step.of(value) if done else None
        return said if said is not None else UNKNOWN
    if isinstance(step, Head):
        return step.shown(value) if done or step.end in value else value
    if isinstance(step, Clip):
        return str(value[: step.n]) if done or len(value) >= step.n else value
    raise TypeError(f"a star must be bound before it is followed: {step}")


def _each(items: list[Tree], each: Each) -> Tree:
    found = [follow(item, each.path) for item in items if item is not DROPPED]
    return UNKNOWN if any(item is UNKNOWN for item in found) else found


def _computed(value: Tree, step: Computed, whole: bool) -> Tree:
    """Only of what is there as a whole: all of it may count."""
    if value is DROPPED or (not whole and has_gap(value)):
        return UNKNOWN
    try:
        if isinstance(value, list) and any(item is DROPPED for item in value):
            value = [item for item in value if item is not DROPPED]
        return step.of(value)
    except LookupError:
        return UNKNOWN


def follow(value: Tree, path: tuple[Step, ...], binding: Index = ()) -> Tree:
    """`value` followed along `path`, its stars bound in order by `binding`."""
    bound = iter(binding)
    for step in path:
        if value is UNKNOWN:
            return UNKNOWN
        value = step_into(value, next(bound) if isinstance(step, Star) else step)
    return value


def replaces(state: Tree, field: Field, given: Tree) -> bool:
    """Whether a state of the program has something else in this field than the run was given."""
    held = follow(state, field)
    return held is not UNKNOWN and held != given


def enumerate_stars(value: Tree, path: tuple[Step, ...], binding: Index = ()) -> tuple[list[Index], bool]:
    """All index tuples of the path's stars that are known so far, in order, and whether that is all of them.

    `binding` fixes the leading stars. The values behind the tuples may still be unknown.
    """
    found: list[Index] = []
    complete = _enumerate(value, path, 0, (), binding, found)
    if path and isinstance(path[-1], Unique):
        return _first_of_equals(value, path, found, complete)
    return found, complete


def _enumerate(value: Tree, path: tuple[Step, ...], at: int, index: Index, binding: Index, found: list[Index]) -> bool:
    """Put the tuples that begin with `index` into `found`; whether that is all of them."""
    while at < len(path) and not isinstance(path[at], Star):
        value = step_into(value, path[at])
        at += 1
    if at == len(path):
        found.append(index)
        return True
    if len(index) < len(binding):
        place = binding[len(index)]
        return _enumerate(step_into(value, place), path, at + 1, (*index, place), binding, found)
    if not isinstance(value, list):
        return False
    for place, item in enumerate(value):
        # Keep the order: nothing after a gap is enumerated.
        if item is not DROPPED and not _enumerate(item, path, at + 1, (*index, place), binding, found):
            return False
    return not isinstance(value, Open)


def _first_of_equals(
    value: Tree, path: tuple[Step, ...], found: list[Index], complete: bool
) -> tuple[list[Index], bool]:
    """The first of equal elements, up to one that isn't known yet: it may be equal to any."""
    first: dict[Any, Index] = {}
    for index in found:
        item = follow(value, path, index)
        if has_gap(item):
            return list(first.values()), False
        first.setdefault(freeze(item), index)
    return list(first.values()), complete


def as_text(value: Tree) -> str | None:
    """How a hole shows the value in a text; None for what Accel doesn't paste."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    return None


def rows_of(join: Join, binding: Index, position: int, env: Env) -> Iterator[list[str | None] | None]:
    """The values of every row in order, up to the first gap: None instead of a value, or of a row."""
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
                out[-1] = out[-1][: len(out[-1]) - empty.before]
            if isinstance(joined, Partial) or (isinstance(joined, NoElement) and empty is None):
                return Partial("".join([*out, joined]))
            if isinstance(joined, NoElement) and empty is not None:
                joined, less = empty.said, empty.behind
            out.append(joined)
        else:
            value = follow(env.value(part.node), part.path, binding[: part.stars])
            text = as_text(value)
            if text is None:
                return Partial("".join(out))
            out.append(text)
            if isinstance(text, Partial):
                return Partial("".join(out))
    return "".join(out)


_WHOLE = frozenset((str, int, float, bool, type(None), Vector, Opaque))


def has_gap(tree: Tree) -> bool:
    """Whether anything in the tree is still unknown, open or partial."""
    kind = type(tree)
    if kind in _WHOLE:
        return False
    if kind is dict:
        for value in tree.values():  # not `any`: this is asked of every value, again and again
            if type(value) not in _WHOLE and has_gap(value):
                return True
        return False
    if tree is UNKNOWN or isinstance(tree, Open | Partial):
        return True
    if isinstance(tree, dict):
        return any(map(has_gap, tree.values()))
    if isinstance(tree, list):
        for item in tree:
            if type(item) not in _WHOLE and has_gap(item):
                return True
    return False


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
