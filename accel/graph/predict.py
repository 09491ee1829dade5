"""The elements of one node as far as they are known, and where their outputs stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from ..text.evaluate import Env, Make, maker
from ..text.extract import Open
from ..text.paths import DROPPED, UNKNOWN, Index, enumerate_stars, follow, has_gap
from ..text.steps import Star
from ..text.templates import Bound, Collect, Ref
from ..text.values import Tree, freeze
from .ir import Level, Node, When


def nested(bindings: Sequence[Index], values: Sequence[Tree], dims: int, complete: bool, sparse: bool = False) -> Tree:
    """The outputs of a node with many, as lists in lists: one level for each star its elements run over. What follows
    the last known one is open. The innermost position counts the elements there are, or is the binding's, too, where
    they are `sparse`; the others are the bindings'."""
    if dims <= 1:
        placed = _placed([binding[0] for binding in bindings], values) if sparse else values
        return list(placed) if complete else Open(placed)
    groups: list[tuple[list[Index], list[Tree]]] = []
    for binding, value in zip(bindings, values, strict=True):
        while len(groups) <= binding[0]:
            groups.append(([], []))
        groups[binding[0]][0].append(binding[1:])
        groups[binding[0]][1].append(value)
    last = len(groups) - 1
    lists = [nested(inner, held, dims - 1, complete or i < last, sparse) for i, (inner, held) in enumerate(groups)]
    return lists if complete else Open(lists)


def _placed(places: Sequence[int], values: Sequence[Tree]) -> list[Tree]:
    placed: list[Tree] = [DROPPED] * (max(places, default=-1) + 1)
    for place, value in zip(places, values, strict=True):
        placed[place] = value
    return placed


def told(ancestry: Sequence[bool], place: Index) -> Index | None:
    """What a visit's place, or the beginning of one, says of a node's outputs (`Node.ancestry`); None if it is none of
    those that the node tells apart."""
    numbers = list(zip(place, ancestry, strict=False))
    if len(numbers) < len(place) or any(number and not tells for number, tells in numbers):
        return None
    return tuple(number for number, tells in numbers if tells)


def is_kin(domain: Ref, ancestry: Sequence[bool], binding: Index, framework_node: str, place: Index) -> bool:
    """Whether an element that goes by what a framework node was given or returned, and a call inside the visit with
    this place, have the same visits around them, as far as they have any in common."""
    own, other = framework_node.split(":"), domain.node.rpartition(".")[0].split(":")
    common = sum(1 for _ in takewhile(lambda names: names[0] == names[1], zip(own, other, strict=False)))
    shared = 2 * common - (common in (0, len(own), len(other)))
    steps, stars = iter(domain.path), iter(binding)
    for number, tells in zip(place[: max(0, shared)], ancestry, strict=False):
        step = next(steps) if tells else 0
        if (next(stars, number) if isinstance(step, Star) else step) != number:
            return False
    return True


def laid_out(
    values: Mapping[Index, Tree], dims: int, is_closed: Callable[[Index], bool], before: Index = ()
) -> list[Tree]:
    """Values where their indices say, as lists in lists; those lists are open to which more may come."""
    groups: dict[int, dict[Index, Tree]] = {}
    for index, value in values.items():
        groups.setdefault(index[0], {})[index[1:]] = value
    numbers = range(max(groups, default=-1) + 1)
    items = [
        groups.get(n, {}).get((), UNKNOWN)
        if dims == 1
        else laid_out(groups.get(n, {}), dims - 1, is_closed, (*before, n))
        for n in numbers
    ]
    return items if is_closed(before) else Open(items)


class Prediction:
    """The elements of one node as far as they are known: inputs in order, gaps included."""

    __slots__ = ("bindings", "complete", "decided", "inputs")

    def __init__(self, inputs: list[Tree], bindings: list[Index], complete: bool, decided: bool = True) -> None:
        self.inputs = inputs
        self.bindings = bindings
        self.complete = complete
        """Whether the number of elements is final."""
        self.decided = decided
        """Whether the calls will be made, as far as the node's decisions tell."""


def decide(decisions: Sequence[When], binding: Index, env: Env) -> bool | None:
    """Whether a call is made; None while that is not known."""
    answers: set[bool | None] = set()
    for when in decisions:
        said = follow(env.value(when.ref.node), when.ref.path, binding[: when.ref.stars])
        if when.only and said is not UNKNOWN and said not in when.yes:
            return False
        answers.add(True if said in when.yes else False if said in when.no else None)
    return answers.pop() if len(answers) == 1 else True if not answers else None


def making(node: Node) -> Make:
    """How the inputs of its elements are made; of one that gathers, a collected list stands for what is in it."""
    make = maker(node.input)
    if not node.gathers:
        return make
    spread = [isinstance(leaf, Collect) for leaf in node.input]

    def gathered(binding: Index, position: int, env: Env) -> Tree:
        items: list[Tree] = []
        for value, is_list in zip(make(binding, position, env), spread, strict=True):
            if not is_list:
                items.append(value)
            elif isinstance(value, list):
                items += value
            if is_list and (not isinstance(value, list) or isinstance(value, Open)):
                return Open(items)
        return items

    return gathered


def cap_of(level: Level, env: Env) -> int | None:
    """How many elements there are at most: none as long as the number that says so is not known."""
    if not isinstance(level.cap, Bound):
        return level.cap
    number = follow(env.value(level.cap.ref.node), level.cap.ref.path)
    return max(0, number + level.cap.more) if isinstance(number, int) else 0


def predict(node: Node, env: Env, make: Make | None = None) -> Prediction:
    """The inputs of all elements of `node` in program order, without those that the program drops (equal ones, or by a
    decision). `make`: the `maker` of the node's input."""
    make = make or making(node)
    level = node.level
    if level is None or level.domain is None:
        made = decide(node.when, (), env)
        count = (1 if level is None else level.repeat) if made is not False else 0
        one = make((), 0, env) if count else UNKNOWN
        return Prediction([one] * count, [()] * count, True, made is True)
    value = env.value(level.domain.node)
    tuples, complete = enumerate_stars(value, level.domain.path) if value is not UNKNOWN else ([], False)
    inputs: list[Tree] = []
    bindings: list[Index] = []
    seen: set[Any] = set()
    cap = cap_of(level, env)
    for index in tuples:
        if cap is not None and len(inputs) >= cap:
            break
        if index[0] < level.first:
            continue
        if node.when:
            made = decide(node.when, index, env)
            if made is None:
                return Prediction(inputs, bindings, False)
            if not made:
                continue
        item = make(index, len(inputs), env)
        if level.distinct:
            if has_gap(item):
                return Prediction(inputs, bindings, False)  # an equal one may still drop out: positions aren't final
            key = freeze(item)
            if key in seen:
                continue
            seen.add(key)
        inputs.append(item)
        bindings.append(index)
    return Prediction(inputs, bindings, level.exact and (complete or (cap is not None and len(inputs) >= cap)))
