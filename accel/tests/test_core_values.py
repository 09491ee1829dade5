"""Values as trees: snapshots don't change, keys tell types apart, exact trees can be built again."""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.text import values
from accel.text.values import MAX_LEAVES, Opaque, exactly, freeze, leaves, rebuild, same, shape, snapshot, thaw

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
keys = st.text(max_size=4) | st.sampled_from(["$plain", "$tuple", "$card", "$", "message"])
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=20
)
programs_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4) | st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=20,
)


@dataclasses.dataclass
class Card:
    name: str
    marks: list[int]


class Sealed:
    """Nothing is known of it."""


@pytest.fixture(autouse=True)
def card_view(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_views", "_exact_views", "_builders", "_TAGS"):
        monkeypatch.setattr(values, name, getattr(values, name).copy())
    values.add_view(
        Card, lambda c: {"$card": c.name, "marks": c.marks}, "$card", lambda t: Card(t["$card"], t["marks"])
    )


def equal(left: Any, right: Any) -> bool:
    """Equality that tells types apart and takes NaN for itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, float):
        return left.hex() == right.hex() or (math.isnan(left) and math.isnan(right))
    return bool(left == right)


@given(st.lists(programs_values, max_size=3))
def test_an_exact_snapshot_can_be_built_again(value: list[Any]) -> None:
    assert equal(thaw(snapshot(value, exact=True)), value)


@given(st.lists(programs_values, max_size=3))
def test_what_was_built_again_looks_the_same(value: list[Any]) -> None:
    tree = snapshot(value, exact=True)
    assert freeze(snapshot(thaw(tree), exact=True)) == freeze(tree)


@given(programs_values, programs_values)
def test_exact_keys_are_equal_for_equal_values_only(left: Any, right: Any) -> None:
    frozen = [freeze(snapshot([value], exact=True)) for value in (left, right)]
    assert (frozen[0] == frozen[1]) == equal(left, right)


@given(trees)
def test_keys_hash_and_equal_themselves(tree: Any) -> None:
    again = rebuild(tree, lambda _, leaf: leaf)
    assert freeze(tree) == freeze(again)
    assert hash(freeze(tree)) == hash(freeze(again))
    assert same(tree, again)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, True), (0, False), (1, 1.0), (0.0, -0.0), ("1", 1), (None, "None"), ([], {}), ([1], [True]), (["a"], "a"),
     ({"a": 1}, ["a", 1]), ([[]], []), ({"a": None}, {}), ("", None), ({"a": 1, "b": 2}, {"a": 2, "b": 1})],
)  # fmt: skip
def test_keys_tell_apart(left: Any, right: Any) -> None:
    assert freeze(left) != freeze(right)
    assert not same(left, right)


def test_the_order_of_a_dict_is_a_difference_in_calls_alone() -> None:
    one, other = [{"a": 1, "b": [2]}], [{"b": [2], "a": 1}]
    assert freeze(one) == freeze(other) and same(one, other)
    assert exactly(one) != exactly(other)
    assert exactly(one) == exactly([{"a": 1, "b": [2]}]) != exactly([{"a": 1, "b": [True]}])


def test_not_a_number_equals_itself() -> None:
    assert freeze(math.nan) == freeze(float("nan"))


def test_a_snapshot_does_not_follow_later_changes() -> None:
    value = {"rows": [{"n": 1}], "card": Card("ace", [1])}
    tree = snapshot(value)
    value["rows"][0]["n"] = 2  # type: ignore[index]
    value["card"].marks.append(2)  # type: ignore[attr-defined]
    assert tree == {"rows": [{"n": 1}], "card": {"$card": "ace", "marks": [1]}}


def test_views_build_again_and_inside_each_other() -> None:
    value = [Card("ace", [1, 2]), {"$card": "not a card"}, (Card("two", []),)]
    assert equal(thaw(snapshot(value, exact=True)), value)


def test_exact_looks_only_into_what_it_can_build() -> None:
    @dataclasses.dataclass
    class Plain:
        name: str

    class Text(str):
        pass

    for value in (Plain("x"), Text("x"), MappingProxyType({"a": 1}), {1: "a"}, Sealed(), Sealed, len):
        tree = snapshot([value], exact=True)
        assert tree == [Opaque(value)]
        assert thaw(tree)[0] is value
    assert snapshot(Plain("x")) == {"name": "x"}
    assert snapshot(MappingProxyType({"a": 1})) == {"a": 1}


def test_code_of_the_programs_gives_no_value() -> None:
    @dataclasses.dataclass(slots=True)
    class Point:
        x: int
        y: int

    class Half(float):
        def __float__(self) -> float:
            raise AssertionError

    class Named(dict[str, int]):
        name = "x"

    class Read(dict[str, int]):
        def __getitem__(self, key: str) -> int:
            raise AssertionError

    @dataclasses.dataclass
    class Asked:
        x: int

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError

    class Equal(type):
        def __eq__(cls, other: object) -> bool:
            return False

    class Unhashable(metaclass=Equal):
        pass

    odd = [Unhashable()]
    assert snapshot(odd[0]) == Opaque(odd[0])
    assert snapshot(odd) == Opaque(odd)
    read, behind = Read(a=1), MappingProxyType(Read(a=1))
    assert snapshot([Point(1, 2), Half(0.5), Named(a=1), OrderedDict(a=1)]) == [
        {"x": 1, "y": 2},
        0.5,
        {"a": 1},
        {"a": 1},
    ]
    assert snapshot([read, behind]) == [Opaque(read), Opaque(behind)]
    asked = object.__new__(Asked)
    opaque = snapshot(asked)
    assert type(opaque) is Opaque and opaque.obj is asked, "what it holds nobody knows, so it equals no other one"


def test_opaque_leaves_are_equal_by_identity() -> None:
    one, other = [1], [1]
    assert Opaque(one) == Opaque(one) != Opaque(other)
    assert len({Opaque(one), Opaque(one), Opaque(other)}) == 2
    assert freeze([Opaque(one)]) != freeze([Opaque(other)])
    assert Opaque(one) != one


def test_too_large_too_deep_and_cyclic_values_are_opaque() -> None:
    large = [[0] for _ in range(MAX_LEAVES)]
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    cycle: list[Any] = []
    cycle.append(cycle)
    for value in (large, deep, cycle):
        assert snapshot(value) == Opaque(value)


@given(trees)
def test_leaves_lead_back_to_their_values(tree: Any) -> None:
    for path, leaf in leaves(tree):
        value = tree
        for step in path:
            value = value[step]
        assert value is leaf


@given(trees)
def test_leaves_and_rebuild_visit_the_same(tree: Any) -> None:
    seen: list[Any] = []

    def leaf(path: Any, value: Any) -> Any:
        seen.append((path, freeze(value)))
        return value

    assert same(rebuild(tree, leaf), tree)
    assert seen == [(path, freeze(value)) for path, value in leaves(tree)]


def test_shapes() -> None:
    assert shape({"a": [1, "x"]}) == shape({"a": [2, "y"]})
    assert shape({"a": [1]}) != shape({"a": ["1"]})
    assert shape([1]) != shape([1, 2])
    assert shape(Opaque(1)) == "opaque"
