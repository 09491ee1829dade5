"""Printed lists and dicts: found in texts again, and learnt with the options they were printed with."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import pprint
import textwrap
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.tests.test_core_learn import TOPICS, Script, learnt, shown
from accel.text.dumps import Dump, dumped, is_plain, styles_of
from accel.text.extract import Open, Partial
from accel.text.paths import UNKNOWN, step_into
from accel.text.steps import COUNT
from accel.text.values import same

LEAVES = st.none() | st.booleans() | st.integers(-999, 999) | st.floats(allow_nan=False) | st.text(max_size=12)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
RECORDS = st.dictionaries(st.text(max_size=6), VALUES, min_size=1, max_size=4) | st.lists(
    VALUES, min_size=1, max_size=4
)
STYLES: dict[str, Callable[[Any], str]] = {
    "str": str,
    "json": json.dumps,
    "json indent 2": partial(json.dumps, indent=2),
    "json indent 4 sorted": partial(json.dumps, indent=4, sort_keys=True),
    "json compact": partial(json.dumps, separators=(",", ":")),
    "json text": partial(json.dumps, ensure_ascii=False),
    "json indent 2 sorted text": partial(json.dumps, indent=2, sort_keys=True, ensure_ascii=False),
}


@given(RECORDS, st.sampled_from(sorted(STYLES)), st.sampled_from(["", "Findings (don't repeat): ", "One\n\n"]))
def test_what_is_found_is_there_and_is_printed_in_one_of_its_styles(value: Any, style: str, before: str) -> None:
    printed = STYLES[style](value)
    text = f"{before}{printed}\nGo on."
    for at, end, found in dumped(text):
        if at == len(before) and end == at + len(printed):
            shown = {dump.shown(value) for dump in styles_of(printed)}
            assert same(found, value) and (printed in shown if is_plain(value) else shown == {None})
            break
    else:
        small = len(printed) < 8 or printed[1:].lstrip()[:1] in ("]", "}")
        assert small or "Infinity" in printed or "inf" in printed


@pytest.mark.parametrize(
    "text",
    ["", "as shown in [1] and [2]", "{name} goes here", "[see the notes", "{'a': }", "f(x) = {x | x > 0}", "[[[[[[[["]
    + ["one of {'a', 'b', 'c'}", "a[{'x', 'y'}, 1]", "{1: 'one', 2: 'two'}", "[b'raw', 1j]", "['a', ('b', {'c'})]"]
    + ["[{'deep': " * 400 + "'value'" + "}]" * 400, '[{"deep": ' * 400 + '"value"' + "}]" * 400],
)
def test_what_only_looks_like_one(text: str) -> None:
    assert list(dumped(text)) == []


def test_a_value_within_another_keeps_its_margin() -> None:
    inner = {"problem": "slow", "lines": [1, 2]}
    text = json.dumps({"a": inner}, indent=2)
    at = text.index("{", 1)
    (end,) = (end for start, end, _ in dumped(text) if start == at)
    assert Dump("json", 2, margin=2) in set(styles_of(text[at:end]))
    assert Dump("json", 2, margin=2).shown(inner) == text[at:end]


@pytest.mark.parametrize("value", [Open([1]), [Partial("ab")], {"a": UNKNOWN}, "text", [object()]])
def test_what_is_not_known_to_its_end_is_not_printed(value: Any) -> None:
    assert step_into(value, Dump("json")) is UNKNOWN


def test_elements_are_counted_when_all_are_known() -> None:
    assert step_into(["a", "b"], COUNT) == "2" and step_into(Open(["a", "b"]), COUNT) is UNKNOWN


APOSTROPHE = "'"


def review(script: Script, topic: str) -> dict[str, Any]:
    found = {"problem": f"dust on {topic}", "severity": len(topic), "again": None}
    script.call("a", f"Look at {topic}", json.dumps(found, indent=1))
    return found


@pytest.mark.parametrize("style", sorted(STYLES))
def test_a_printed_object_is_known_when_the_answer_is(style: str) -> None:
    def program(script: Script, topic: str) -> None:
        script.call("b", f"Findings:\n{STYLES[style](review(script, topic))}\nSum them up.", "fine")

    known = shown(learnt(program))[-1]
    assert known.startswith(": Findings:\\n{main.decode.content|json|as ")
    assert known.endswith("}\\nSum them up.") and known.count("{") == 1


SOURCES = (ast, json.decoder, pprint, copy)
"""Texts as prompts hold them, with literals of each kind: sets, tuples, bytes, numbers as keys."""


@pytest.mark.parametrize("module", SOURCES, ids=lambda module: module.__name__)
def test_a_prompt_with_a_page_of_a_program_is_learnt(module: ModuleType) -> None:
    pages = textwrap.wrap(inspect.getsource(module), 2000, replace_whitespace=False)

    def program(script: Script, topic: str) -> None:
        odd = f"KINDS = [{{'{topic}', 'a'}}, 2], {{1: b'{topic}', 'other': None}}, [1j, ('{topic}',)]"
        found = [{"text": f"{page}\n{odd} # {number}", "at": number} for number, page in enumerate(pages[:3])]
        script.call("search", {"query": topic, "k": 3}, found, op="searching")
        for page in found:
            script.call("note", f"Question: {topic}\n\nPage {page['at']}:\n{page['text']}", "fine")

    assert shown(learnt(program))[-1].endswith("\\n{main.searching[*].text}")


def test_printed_objects_of_a_loop_are_joined() -> None:
    """They are known one by one, long before the program has put the dict together."""

    def program(script: Script, topic: str) -> None:
        items = [f"the {topic}", f"a map of {topic}", f"no {topic}"][: 3 - (topic == TOPICS[0])]
        script.trace.input["items"] = items
        found = {}
        for item in items:
            found[item] = {"problem": f"dust on {item}", "severity": len(item)}
            script.call("a", f"Look at {item}", json.dumps(found[item]))
        script.call("b", json.dumps(list(found.values()), indent=2), "fine")

    assert "{join main.decode[*].content|json|as json indent 2 margin 2 by ',\\n  '}" in shown(learnt(program))[-1]


def test_texts_in_a_printed_dict_have_the_quotes_they_need() -> None:
    def program(script: Script, topic: str) -> None:
        title = script.call(
            "a", f"Name a book on {topic}", f"All about {topic}, {'no' if len(topic) % 2 else 'don' + APOSTROPHE}t"
        )
        script.call("b", f"Headers: { {'title': title, 'pages': 9} }", "fine")

    topics = next([a, b] for a in TOPICS for b in (*TOPICS, "tea", "salt") if len(a) % 2 != len(b) % 2)
    assert shown(learnt(program, topics))[-1] == ": Headers: {'title': {main.decode.content|as quoted}, 'pages': 9}"


def test_how_many_there_are() -> None:
    def program(script: Script, topic: str) -> None:
        script.trace.input["items"] = [f"{topic} {n}" for n in range(3 + len(topic) % 3)]
        count = len(script.trace.input["items"])
        script.call("a", f"Sort these {count} things of {topic}", "fine")

    topics = next([a, b] for a in TOPICS for b in (*TOPICS, "tea", "salt") if len(a) % 3 != len(b) % 3)
    assert shown(learnt(program, topics))[-1] == ": Sort these {input.items|count} things of {input.q}"
