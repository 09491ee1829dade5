"""Paths followed through values: what a step gives, where stars run, and what is not known yet."""

from __future__ import annotations

from typing import Any

from .dumps import Dump
from .extract import Open, Partial, extract
from .functions import Computed
from .steps import Clip, Count, Each, Edit, Escape, Extract, Head, Items, Label, Star, Step, Strip, Unique, Verdict
from .templates import Field
from .turns import Called
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
        return step.shown(value, done)
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


def is_missing(value: Tree, path: tuple[Step, ...]) -> bool:
    """Whether it is known that there is nothing along this path: no such field, None or an empty text."""
    for step in path:
        if _is_coming(value):
            return False
        if isinstance(step, str) and isinstance(value, dict) and step not in value:
            return not _may_grow(value)
        value = step_into(value, step)
    return value is None or (value == "" and not _is_coming(value))


def _is_coming(value: Tree) -> bool:
    return value is UNKNOWN or isinstance(value, Open | Partial)


def _may_grow(value: Tree) -> bool:
    """Whether more fields of a dict may come: what is known of it ends in the middle."""
    if any(map(_is_coming, value.values())):
        return True
    while isinstance(value, dict | list) and value and not _is_coming(value):
        value = next(reversed(value.values())) if isinstance(value, dict) else value[-1]
    return _is_coming(value)


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
