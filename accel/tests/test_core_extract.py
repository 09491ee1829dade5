"""Extractors: an item is closed only when no continuation of the text can change it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accel.text.extract import EXTRACTORS, Open, extract

texts = st.text(st.sampled_from(list("ab1.)(-*•–:, \n\r\t\"'{}[]#é")), max_size=60) | st.text(max_size=60)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)
marks = (
    "one", "two words", "A", "ix", "Step", "Key: ", "Key:", "Other Key:", "1", "2", "23", ".", ")", "(", "[", "]", ":",
    "-", "*", "**", "_", "__", "•", "—", "– ", "#", "##", "###", "---", "===", " ", "  ", "\n", "\n\n", "\n   ", "\t",
    "\r\n", ";", ",", "|", "||", " / ", "//", "->", "=>", "~", "`", "```", "```py\n", "<", "</", ">", "<a>", "</a>",
    '<b x="1">', "</b>", "<br/>", "<sep>", "[SEP]", '{"a": 1}', '{"a": "x"}', '"', "'", "\u2028", "\x1c", "!", "?",
    "✔", "\ufe0f", "\u20e3",
)  # fmt: skip
marked = st.lists(st.sampled_from(marks), max_size=25).map("".join)
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
        ("numbered", "1 - one\n#2 two\n[3] three\n**4.** four\n5 – five\n6.5 is a number\n1-2",
         ["one", "two", "three", "four", "five"]),
        ("bullets", "+ one\n— two\n· three\n▪four\n◦ five\n+six\n---\n**bold**",
         ["one", "two", "three", "four", "five"]),
        ("numbered", "1\ufe0f\u20e3 one\n2\ufe0f\u20e3two", ["one", "two"]),
        ("bullets", "✅ one\n🔹two\n✔\ufe0f three\n➤ four", ["one", "two", "three", "four"]),
        ("steps", "Step 1: one\n## Chapter II. two\n**Part 3:** three\nVersion 2.5", ["one", "two", "three"]),
        ("lettered", "a) one\nB. two\n(c) three\niv. four\ne.g. this", ["one", "two", "three", "four"]),
        ("lines", "one\n\n  two  \r\n", ["one", "two"]),
        ("unmarked", 'Sure:\n1. "one"\n- **two**\n# three\n4) `four`', ["Sure:", "one", "two", "three", "four"]),
        ("numbered-wrapped", "Sure:\n1. one\n  on\n\n  2. inner\n2. two\nend", ["one\n  on\n\n  2. inner", "two\nend"]),
        ("bullets-wrapped", "- one\n  - inner\n- two", ["one\n  - inner", "two"]),
        ("steps-wrapped", "**Step 1:** one\nthen\n**Step 2:** two", ["one\nthen", "two"]),
        ("lettered-wrapped", "a) one\nthen\nb) two", ["one\nthen", "two"]),
        ("keys", "# Title: Norway\n- **Aim**: fish\n**Cost:** 2\nAim: none\nEnd:\nSee this. Now: x\nhttp://x",
         {"Title": "Norway", "Aim": "fish", "Cost": "2"}),
        ("pairs", "1. **One**: a\n2. Two - b\n3. None\nOne: c",
         [{"key": "One", "value": "a"}, {"key": "Two", "value": "b"}, {"key": "One", "value": "c"}]),
        ("sections", "Hm.\nThought: one\nof: two\n**Final Answer:**\n- three\nThought: four",
         {"Thought": "one\nof: two", "Final Answer": "- three"}),
        ("headings", "# All\n## One\na\n### In\nb\n## Two\n",
         {"#": [{"title": "All", "body": "## One\na\n### In\nb\n## Two"}],
          "##": [{"title": "One", "body": "a\n### In\nb"}, {"title": "Two", "body": ""}],
          "###": [{"title": "In", "body": "b"}]}),
        ("xml", '<a><b x="1"> one </b>\n<b>two<b></b><br/></a><c>',
         {"b": ["one", "two<b>"], "a": ['<b x="1"> one </b>\n<b>two<b></b><br/>']}),
        ("fenced", "So ```this``` is:\n```sql\nselect 1\n```\n```\ntwo```", ["select 1", "two"]),
        ("bold", "**one** and **two\nthree**", ["one"]),
        ("commas", "one, two,, three ,", ["one", "two", "three"]),
        ("listed", '"one", two, and three.', ["one", "two", "three"]),
        ("semicolons", "one; two;", ["one", "two"]),
        ("semicolons", "one", []),
        ("pipes", "| one | two |", ["one", "two"]),
        ("tabs", "one\ttwo", ["one", "two"]),
        ("slashes", "one / two/2 / three", ["one", "two/2", "three"]),
        ("arrows", "one -> two → three => four", ["one", "two", "three", "four"]),
        ("paragraphs", "one\nof\n \ntwo", ["one\nof", "two"]),
        ("rules", "one\n---\ntwo\n\n***\nthree --- four", ["one", "two", "three --- four"]),
        ("separated", "one ### two ### three", ["one", "two", "three"]),
        ("separated", "one\n<sep>\ntwo || three", ["one", "two || three"]),
        ("jsonl", '{"a": 1}\nnothing {}\n{"a": 2},\n{not}', [{"a": 1}, {"a": 2}]),
        ("jsonl", '{"a": 1}', []),
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
        ("semicolons", "one; tw", ["one"]),
        ("semicolons", "on", []),
        ("numbered-wrapped", "1. one\n2", []),
        ("numbered-wrapped", "1. one\n2.", []),
        ("numbered-wrapped", "1. one\n2. ", ["one"]),
        ("numbered-wrapped", "1. one\n2.5 of it", []),
        ("bullets-wrapped", "- one\n-", []),
        ("bullets-wrapped", "- one\n- ", ["one"]),
        ("fenced", "```\none``", []),
        ("fenced", "```\none```", ["one"]),
        ("bold", "**one*", []),
        ("rules", "one\n---", []),
        ("rules", "one\n---\n", ["one"]),
        ("paragraphs", "one\n", []),
        ("paragraphs", "one\n\n", ["one"]),
        ("pairs", "One: a\nTwo: b", [{"key": "One", "value": "a"}]),
        ("jsonl", '{"a": 1}\n{"a": 2}', []),
        ("jsonl", '{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
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


def test_named_parts_show_as_they_are_closed() -> None:
    assert extract("keys", "Title: one\nAim: tw", done=False) == {"Title": "one"}
    assert extract("sections", "Title: one\nmore\nAim", done=False) == {}
    assert extract("sections", "Title: one\nmore\nAim:\n", done=False) == {"Title": "one\nmore"}
    tags = extract("xml", "<b>one</b><b>two</b", done=False)
    assert tags == {"b": ["one"]} and isinstance(tags["b"], Open)
    titles = extract("headings", "## One\na\n## Two\nb\n# Th", done=False)
    assert titles == {"##": [{"title": "One", "body": "a"}, {"title": "Two"}]} and isinstance(titles["##"], Open)


def test_a_list_inside_a_closed_list_is_closed() -> None:
    found = extract("json", '[["one", "two"], ["thr', done=False)
    assert found == [["one", "two"], []]
    assert isinstance(found, Open) and not isinstance(found[0], Open) and isinstance(found[1], Open)


@pytest.mark.parametrize("name", [name for name in EXTRACTORS if name != "json"])
@given(text=marked | texts)
def test_what_is_closed_in_a_beginning_stays(name: str, text: str) -> None:
    whole = extract(name, text)
    before: Any = [] if isinstance(whole, list) else {}
    for cut in range(len(text) + 1):
        part = extract(name, text[:cut], done=False)
        assert is_beginning(part, whole)
        assert is_beginning(before, part) if cut else not part
        before = part


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
