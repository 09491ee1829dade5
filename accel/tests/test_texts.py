"""Which words are the program's own."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from accel.parts.texts import columns_of, standing_texts, texts_of_program
from accel.parts.wording import Texts

PROMPT = "Summarise {text} in one line for a {reader}."
PROMPTS = {
    "brief": "Say it briefly, please",
    "note of ann": "The diagnosis is bad",
    "letter": "Write a letter to {name}, kindly",
}
STYLES: dict[str, Any] = {
    "novel": {"ending": "They lived happily ever after"},
    "ann": {"letter": "Your secret admirer writes"},
}
note = "nothing yet"
NOTES: list[Any] = [SimpleNamespace(text="The diagnosis is worse")]


def helper(text: str, style: str = "in plain words") -> str:
    """Write like Hemingway."""
    return PROMPT.format(text=text, reader="child") + style


class Node:
    greeting = "Dear reader of this"

    def __init__(self) -> None:
        self.sign = "Yours, the machine"
        self.seen = "nothing so far"

    def __call__(self, state: dict[str, str]) -> str:
        global note
        note = state["note"]
        self.seen = state["note"]
        text = f"Explain to {state['q']}: {note}" + PROMPTS["brief"] + PROMPTS[state["q"]] + self.greeting
        text += STYLES["novel"]["ending"] + STYLES[state["q"]]["letter"]
        return helper(text) + self.sign + self.seen + "".join(one.text for one in NOTES)


@dataclass
class Role:
    name: str
    hint: Any


def says(value: Any, held: bool) -> Any:
    return None


def nothing(value: Any) -> bool:
    return False


def texts(*roots: Any) -> Texts:
    """Where nothing tells how they are used."""
    standing = standing_texts(roots, nothing, nothing, says)
    found = texts_of_program(roots, nothing, nothing, says, standing)
    return Texts(text for text, place in found.items() if place is None or not place.among)


@pytest.mark.parametrize(
    "text",
    [
        "Explain to ", ": ", "Summarise ", " in one line for a ", "in plain words", "Say it briefly, please",
        "SUMMARISE\n  child: explain to", "Dear reader of this", "Yours, the machine", "Write like Hemingway.", "7", "",
        "They lived happily ever after",
        "Explain to : Say it briefly, please\n\nYours, the machine",
    ],
)  # fmt: skip
def test_constants_of_code_templates_and_what_code_names_are_the_program_s(text: str) -> None:
    assert texts(Node().__call__).cover(text)
    assert texts(functools.partial(Node())).cover(text)


@pytest.mark.parametrize(
    "text",
    [
        "The diagnosis is bad", "The diagnosis is worse", "bad", "Explain to ann: ", "nothing yet",
        "The prognosis is grim", "Explain to 4711", "words", "Summarise ann in one line",
        "Your secret admirer writes",
    ],
)  # fmt: skip
def test_what_code_chooses_by_a_value_or_sets_while_it_runs_is_not(text: str) -> None:
    node = Node()
    node.seen = "The prognosis is grim"
    assert not texts(node.__call__).cover(text)


def test_texts_side_by_side_are_told_from_those_that_code_names() -> None:
    standing = standing_texts([Node()], nothing, nothing, says)
    found = texts_of_program([Node()], nothing, nothing, says, standing)
    among = {text: place.among for text, place in found.items() if place is not None and place.among}
    assert among["The diagnosis is bad"] == tuple(PROMPTS.values()) and among["note of ann"] == tuple(PROMPTS)
    assert "Say it briefly, please" in found and "Say it briefly, please" not in among


@pytest.mark.parametrize(
    ("value", "columns"),
    [
        (["a b", "c d"], [("a b", "c d")]),
        ({"x": "a", "y": "b"}, [("x", "y"), ("a", "b")]),
        ({1: "a", 2: "b"}, [("a", "b")]),
        ([{"name": "x", "n": 1}, {"name": "y", "n": 2}], [("x", "y")]),
        ([Role("x", "p"), Role("y", 1)], [("x", "y")]), ([SimpleNamespace(role="x"), SimpleNamespace(role="y")], []),
        ({"x": {"role": "a"}, "y": {"role": "b"}}, [("x", "y"), ("a", "b")]),
        (["alone"], []), ([], []), ({}, []), (["a", 1], []), ("ab", []), ({"a", "b"}, []), (["data"] * 33, []),
    ],
)  # fmt: skip
def test_columns_of_short_lists_and_dicts(value: Any, columns: list[tuple[str, ...]]) -> None:
    assert list(columns_of(value)) == columns


def test_a_piece_in_the_middle_of_a_word_covers_nothing() -> None:
    found = Texts(["ann", "a", "bad"])
    assert not found.cover("banner") and not found.cover("annabad") and found.cover("ann, bad")


def test_what_is_left_of_a_text_without_the_program_s_words() -> None:
    found = Texts(["Explain to {name} that ", " in two lines, please", "As you know"])
    assert found.beyond("Explain to Ann Miller that") == "Ann Miller"
    assert found.beyond("Explain to Ann that all is lost in two lines, please.") == "Ann that all is lost"
    assert found.beyond("All is lost, as you know") == "All is lost,"
    assert found.beyond("Explain to Ann that 2026-11-10, in two lines, please") == "Ann that 2026-11-10,"
    assert found.beyond("As you know 17 of 2026/explain to Ann") == "17 of 2026/explain to Ann"
    assert found.beyond("Explain to all that") == "all" and found.beyond("As you know,") == found.beyond("") == ""


def test_a_count_that_the_program_computes_names_nobody_and_a_longer_number_does() -> None:
    found = Texts(["Answer in about ", " words."])
    assert found.cover("Answer in about 150 words.") and not found.cover("Answer in about 4711 words.")


def test_what_a_library_s_tool_takes_is_the_library_s() -> None:
    """Its choices, defaults and descriptions, but nothing of its code."""
    tavily = pytest.importorskip("langchain_tavily", reason="an integration with a schema")
    tool = SimpleNamespace(args_schema=tavily.tavily_search.TavilySearchInput)
    found = Texts(texts_of_program([tool], lambda value: value is tool, nothing, says))
    assert found.cover("basic") and found.cover("ultra-fast") and found.cover("finance")
    assert not found.cover("invoices")
