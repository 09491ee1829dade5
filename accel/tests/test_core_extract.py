"""Extractors: an item is closed only when no continuation of the text can change it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accel.extract import EXTRACTORS, Open, extract

texts = st.text(st.sampled_from(list("ab1.)(-*•–:, \n\r\t\"'{}[]#é")), max_size=60) | st.text(max_size=60)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)
containers = json_values.filter(lambda value: isinstance(value, list | dict))
prose = st.text(st.sampled_from(list("Here are the items: \n`json")), max_size=20)


def is_beginning(part: Any, whole: Any) -> bool:
    """Whether `part`, in which `Open` lists and unfinished objects may grow, can become `whole`."""
    if isinstance(part, list):
        if not isinstance(whole, list) or len(part) > len(whole):
            return False
        if not isinstance(part, Open) and len(part) != len(whole):
            return False
        return all(map(is_beginning, part, whole))
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and is_beginning(part[key], whole[key]) for key in part)
    return type(part) is type(whole) and bool(part == whole)


@pytest.mark.parametrize(
    ("name", "text", "items"),
    [
        ("lines", "one\n\n  two  \r\nthree", ["one", "two", "three"]),
        ("lines", "", []),
        ("numbered", "Sure:\n1. one\n 2) two\n(3) three\n4: four\n5.\nno number\n10. ten",
         ["one", "two", "three", "four", "ten"]),
        ("bullets", "- one\n* two\n• three\n–  four\n-five\ntext", ["one", "two", "three", "four"]),
        ("commas", "one, two,, three ,", ["one", "two", "three"]),
        ("json", '["one", 2, null]', ["one", 2, None]),
        ("json", 'Sure!\n```json\n{"a": ["x"]}\n```\nAnything else?', {"a": ["x"]}),
        ("json", 'a [remark] first: ["one"] and [later]', ["one"]),
        ("json", '{"a": "} ]", "b": "\\"]"}', {"a": "} ]", "b": '"]'}),
        ("json", "nothing here", None),
        ("json", "[not json]", None),
    ],
)  # fmt: skip
def test_items_of_a_finished_text(name: str, text: str, items: Any) -> None:
    found = extract(name, text)
    assert found == items
    assert not isinstance(found, Open)


@pytest.mark.parametrize(
    ("name", "text", "items"),
    [
        ("lines", "one\ntw", ["one"]),
        ("lines", "one\ntwo\n", ["one", "two"]),
        ("numbered", "1. one\n2. tw", ["one"]),
        ("bullets", "- one\n- tw", ["one"]),
        ("commas", "one, tw", ["one"]),
        ("json", '["one", "tw', ["one"]),
        ("json", '["one", "two"', ["one", "two"]),
        ("json", "[1, 2", [1]),
        ("json", "[1, 2,", [1, 2]),
        ("json", "[1, -", [1]),
        ("json", "[1, 2 ", [1, 2]),
        ("json", '[["one", "tw', [["one"]]),
    ],
)
def test_closed_items_of_an_unfinished_text(name: str, text: str, items: Any) -> None:
    found = extract(name, text, done=False)
    assert found == items
    assert isinstance(found, Open)


def test_an_object_at_the_edge_shows_only_its_closed_fields() -> None:
    assert extract("json", '{"score": 4', done=False) == {}
    assert extract("json", '{"score": 42, "why": "be', done=False) == {"score": 42}
    found = extract("json", '{"why": "because", "rows": ["a", "b', done=False)
    assert found == {"why": "because", "rows": ["a"]}
    assert isinstance(found["rows"], Open)


def test_a_list_inside_a_closed_list_is_closed() -> None:
    found = extract("json", '[["one", "two"], ["thr', done=False)
    assert found == [["one", "two"], []]
    assert isinstance(found, Open) and not isinstance(found[0], Open) and isinstance(found[1], Open)


@pytest.mark.parametrize("name", [name for name in EXTRACTORS if name != "json"])
@given(text=texts, cut=st.integers(0, 60))
def test_items_closed_in_a_beginning_are_the_first_of_all(name: str, text: str, cut: int) -> None:
    assert is_beginning(extract(name, text[:cut], done=False), extract(name, text))
    assert is_beginning(extract(name, text[:cut], done=False), extract(name, text, done=False))


@given(containers, prose, prose, st.integers(0, 300), st.booleans(), st.sampled_from([None, 2]))
def test_json_closed_in_a_beginning_stays(
    value: Any, before: str, after: str, cut: int, ascii_only: bool, indent: int | None
) -> None:
    text = before + json.dumps(value, ensure_ascii=ascii_only, indent=indent) + after
    assert extract("json", text) == json.loads(json.dumps(value))
    part = extract("json", text[:cut], done=False)
    assert part is None or is_beginning(part, extract("json", text))


@given(containers, st.integers(0, 300), st.integers(0, 300))
@example([0, "\x1f\x1f"], 3, 12)  # a digit inside a string that is still open
@example({"a": {"": None}, "b": "]"}, 12, 24)  # a bracket inside a string that is still open
def test_closed_json_only_grows(value: Any, one: int, other: int) -> None:
    text = json.dumps(value)
    shorter, longer = (extract("json", text[:n], done=False) for n in sorted((one, other)))
    assert shorter is None or is_beginning(shorter, longer)


@pytest.mark.parametrize("name", EXTRACTORS)
@given(text=texts)
def test_any_text_is_taken(name: str, text: str) -> None:
    for done in (True, False):
        found = extract(name, text, done)
        assert found is None or isinstance(found, list | dict)
        assert not (done and isinstance(found, Open))


def test_deep_nesting_and_lone_surrogates_give_nothing() -> None:
    assert extract("json", "[" * 100_000) is None
    assert extract("json", '["\ud800"]') is None
