"""The cover of a text: where values stand in it, which of the places are taken, and what looking for them costs."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.learn.covers.beginnings import FEW, Beginnings
from accel.learn.covers.cover import CHARACTER, CUT, HOLE, Place, _places, cheapest, cover, in_common
from accel.learn.covers.holes import Hole
from accel.learn.covers.index import Values
from accel.learn.covers.readings import ALL, READINGS, without
from accel.learn.lessons import lesson
from accel.tests.test_core_learn import TOPICS, Script, Words, learnt, shown
from accel.text.steps import STAR
from accel.text.templates import Counter, Join, Ref
from accel.trace.record import Trace

ACCEL = str(Path(accel.__file__).parent)
SMALL = st.text("ab ", max_size=30)
SLACK = 1.15
"""What looking for few values one by one saves in the small runs."""


@given(
    st.lists(st.text("ab", min_size=3, max_size=9), max_size=2 * FEW), st.lists(SMALL, max_size=3), st.integers(0, 9)
)
def test_what_begins_in_a_text_is_found_wherever_it_stands(things: list[str], texts: list[str], later: int) -> None:
    begun = Beginnings[str](3, 6)
    for thing in things[later:]:
        begun.add(thing, thing, len(thing))
    for text in texts:
        list(begun.find(text))  # what is added after a first look is found as well
    for thing in things[:later]:
        begun.add(thing, thing, len(thing))
    for text in texts:
        found = {(at, thing) for at, thing in begun.find(text) if text.startswith(thing, at)}
        assert found == {(at, thing) for thing in things for at in range(len(text)) if text.startswith(thing, at)}


def saved(places: Sequence[Place]) -> int:
    return sum((place.end - place.at) * CHARACTER - place.cost for place in places)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 9), st.sampled_from([HOLE, HOLE + CUT])), max_size=8))
def test_the_cheapest_places_are_no_dearer_than_any_others(drawn: list[tuple[int, int, int]]) -> None:
    places = [Place(at, at + length, (), cost) for at, length, cost in drawn]
    chosen = cheapest(places)
    assert all(one.end <= other.at for one, other in itertools.pairwise(chosen))
    for number in range(len(places) + 1):
        for some in itertools.combinations(sorted(places, key=lambda place: place.at), number):
            if all(one.end <= other.at for one, other in itertools.pairwise(some)):
                assert saved(chosen) >= saved(some)


@given(SMALL, SMALL, st.integers(0, 5), st.integers(0, 40))
def test_how_much_of_a_value_stands_at_a_place(text: str, value: str, at: int, likely: int) -> None:
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(text[at:], value, strict=False))
    assert in_common(text, at, value, likely) == len(list(same))


def covered(text: str, *values: str) -> list[str]:
    """The text with the known values in brackets."""
    known = Values()
    known.outputs["input"] = list(values)
    known.add("input", (), list(values), 0, early=True, texts=False)
    parts = iter(cover(known, text, 1, 8))
    shown = [next(parts)]
    at = len(str(shown[0]))
    for hole, literal in zip(parts, parts, strict=True):
        assert isinstance(hole, Hole) and isinstance(literal, str)
        end = text.index(literal, at + 1) if literal else len(text)
        shown += [f"[{text[at:end]}]", literal]
        at = end + len(literal)
    return [str(part) for part in shown if part]


@pytest.mark.parametrize(
    ("text", "values", "parts"),
    [
        ("On the red fox: go", ["the red fox"], ["On ", "[the red fox]", ": go"]),
        ("the red fox sat", ["the red fox", "red fox sat"], ["[the red fox]", " sat"]),
        ("one two three four", ["one two three", "two three four"], ["one ", "[two three four]"]),
        ("alpha beta, and gamma", ["alpha beta", "beta, and g", "and gamma"], ["[alpha beta]", ", ", "[and gamma]"]),
        ("nothing of it", ["something else"], ["nothing of it"]),
    ],
)  # fmt: skip
def test_a_text_is_covered_so_that_the_fewest_characters_are_literal(
    text: str, values: list[str], parts: list[str]
) -> None:
    assert covered(text, *values) == parts


def test_an_answer_without_the_white_space_around_it() -> None:
    def program(script: Script, topic: str) -> None:
        answer = script.call("a", f"Describe {topic} in short.", f"\n  All about {topic}.\n\nAnd at length.\n")
        script.call("b", f"Check: {answer.strip()}", "fine")

    assert shown(learnt(program))[-1] == ": Check: {main.decode.content|strip}"


SAYS = "Judge the answer.\nAs an example: (see https://example.org/id/1-0). Always say so.\nAnswer: "


def test_what_the_program_says_with_the_words_around_it_is_no_value_of_a_run() -> None:
    """What these runs find stands in the prompt whatever others find."""

    def run(topic: str) -> Trace:
        script = Script({"q": topic})
        script.call("find", {"query": topic}, ["https://example.org/id/1-0"], op="searching")
        script.call("a", f"{SAYS}{topic}", "fine")
        return script.done()

    def learnt_by(program: Words) -> str:
        return shown(lesson(list(map(run, TOPICS)), program).graph)[-1]

    template = ": Judge the answer.\\nAs an example: (see {}). Always say so.\\nAnswer: {{input.q}}"
    assert learnt_by(Words([SAYS])) == template.format("https://example.org/id/1-0")
    # With other words around it, it may be what was found.
    assert learnt_by(Words([SAYS.replace("Always", "Never")])) == template.format("{main.searching[0]}")


@pytest.mark.parametrize(
    ("said", "template"),
    [("Answer in", ": Answer in {input.lang}: {input.q}"), ("Answer in Nynorsk", ": Answer in Nynorsk: {input.q}")],
    ids=["by nobody else", "by the program"],
)
def test_a_short_text_that_every_run_was_given_is_a_value_unless_the_program_says_it(said: str, template: str) -> None:
    def run(topic: str) -> Trace:
        script = Script({"q": topic, "lang": "Nynorsk"})
        script.call("a", f"Answer in Nynorsk: {topic}", "fine")
        return script.done()

    program = Words([said])
    assert shown(lesson(list(map(run, TOPICS)), program).graph)[-1] == template


def test_a_short_text_within_a_word_or_a_number_is_no_value() -> None:
    def run(topic: str) -> Trace:
        script = Script({"q": topic, "lang": "norsk", "limit": 250})
        script.call("a", f"Answer in Nynorsk, in 250 words: {topic}", "fine")
        return script.done()

    program = Words()
    found = lesson(list(map(run, TOPICS)), program)
    assert shown(found.graph)[-1] == ": Answer in Nynorsk, in 250 words: {input.q}"


def test_readings_have_names_of_their_own_and_can_be_switched_off() -> None:
    assert len(ALL) == len(READINGS)
    assert without("clip") == ALL - {"clip"}
    with pytest.raises(KeyError, match="no reading is called clipped"):
        without("clipped")


def passages(number: int, topic: str) -> Trace:
    """A run that finds so many passages, and pastes them into three prompts."""
    script = Script({"q": topic})
    found = [{"page_content": f"Passage {n} on {topic}: " + "many words follow. " * 9} for n in range(number)]
    script.call("find", {"query": topic}, found, op="searching")
    for site in ("one", "two", "three"):
        script.call(site, f"{site.title()} of {topic}:\n" + "\n\n".join(row["page_content"] for row in found), "fine")
    return script.done()


def lines_of_lesson(traces: Sequence[Trace]) -> int:
    """How many lines of Accel's a lesson executes, each pass of a loop counted."""
    count = 0

    def line(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(lambda frame, event, arg: line if frame.f_code.co_filename.startswith(ACCEL) else None)
    try:
        lesson(traces)
    finally:
        sys.settrace(before)
    return count


def test_the_work_of_a_lesson_grows_with_its_traces_and_no_faster() -> None:
    small, large = (lines_of_lesson([passages(number, topic) for topic in ("owls", "elks")]) for number in (50, 200))
    assert large < 4 * small * SLACK


def places_of(number: int) -> int:
    """How many places so many passages with one heading have in a text that they are pasted into."""
    known = Values()
    passages = [f"Of the notes on the house. {chr(0x4E00 + n)} " + f"Words of {n}. " * 9 for n in range(number)]
    known.outputs["input"] = passages
    known.add("input", (), passages, 0, early=True, texts=False)
    return sum(1 for _ in _places(known, "\n\n".join(passages), 1, 8))


def test_values_that_begin_alike_have_no_place_each_wherever_one_of_them_stands() -> None:
    assert places_of(40) < 4 * places_of(10) * SLACK


def test_joined_texts_are_those_of_the_outputs_as_they_are() -> None:
    known = Values()
    items = Join(Ref("search", (STAR, "text")), (", ",))
    first = Join(Ref("search", (STAR, "text")), (", ",), limit=Counter(1))
    shown = []
    for words in (("oak", "elm"), ("oak", "ash"), ("oak", "ash")):
        known.outputs["search"] = [{"text": word} for word in words]
        shown.append([known.joined(items, (), 0), *(known.joined(first, (), position) for position in range(2))])
    assert shown == [["oak, elm", "oak", "oak, elm"], *[["oak, ash", "oak", "oak, ash"]] * 2]
    known.forget("search")
    assert known.joined(items, (), 0) == ""
