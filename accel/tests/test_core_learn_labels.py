"""What programs say before each element by its kind, and where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accel.learn.learner import UNEXPLAINED
from accel.learn.lessons import lesson
from accel.tests.test_core_evaluate import Known
from accel.tests.test_core_learn import Script, Words, shown
from accel.text.evaluate import has_gap, maker
from accel.text.extract import Open, Partial
from accel.text.steps import STAR, Label
from accel.text.templates import Instead, Join, Ref, Template

SAYS = {"user": "Customer", "assistant": "Desk"}
PROGRAM = (
    "Sum up this chat:\n",
    "Customer",
    "Desk",
    ": ",
    "\n",
    "Be brief.",
    "Nothing was said yet.",
    "user",
    "assistant",
    "1",
)
Written = Callable[[list[dict[str, str]]], str]


def talk(
    number: int, turns: int, key: str = "role", kinds: tuple[str, str] = ("user", "assistant")
) -> list[dict[str, str]]:
    return [{key: kinds[at % 2], "content": f"what chat {number * 37} says at {at}"} for at in range(turns)]


def line(turn: dict[str, str], key: str = "role") -> str:
    return f"{SAYS.get(turn[key], 'Desk')}: {turn['content']}"


def learnt(write: Written, *talks: list[dict[str, str]], program: Words | None = None) -> str:
    traces = []
    for turns in talks:
        script = Script({"turns": turns})
        script.call("sum", write(turns), "so")
        traces.append(script.done())
    return shown(lesson(traces, program or Words(PROGRAM)).graph)[-1]


def joined(turns: list[dict[str, str]]) -> str:
    return "Sum up this chat:\n" + "\n".join(map(line, turns)) + "\nBe brief."


def ended(turns: list[dict[str, str]]) -> str:
    return "Sum up this chat:\n" + "".join(line(turn) + "\n" for turn in turns) + "Be brief."


def otherwise(turns: list[dict[str, str]]) -> str:
    return "Sum up this chat:\n" + ("\n".join(map(line, turns)) or "Nothing was said yet.") + "\nBe brief."


ROW = '{input.turns[*].role|as one of {"assistant": "Desk", "user": "Customer"}}: {input.turns[*].content}'


def test_a_word_that_goes_by_a_field_of_the_element() -> None:
    assert learnt(joined, talk(1, 5), talk(2, 2)) == f": Sum up this chat:\\n{{join {ROW} by '\\n'}}\\nBe brief."


def test_the_last_one_may_follow_in_another_form() -> None:
    def write(turns: list[dict[str, str]]) -> str:
        *before, last = turns
        return "Sum up this chat:\n" + "\n".join(map(line, before)) + f"\n\nBe brief.: {last['content']}"

    told = learnt(write, *(talk(number, turns) for number, turns in enumerate((5, 3, 7, 5), 1)))
    before = "input.turns|but the last(1)[*]"
    assert told.startswith(f': Sum up this chat:\\n{{join {{{before}.role|as one of {{"assistant": "Desk", "user": "C')


def test_words_that_the_program_does_not_say_are_somebodys() -> None:
    assert learnt(joined, talk(1, 5), talk(2, 2), program=Words((PROGRAM[0], "Be brief."))) == f"? {UNEXPLAINED}"


def test_a_field_that_may_hold_anything_tells_no_kind() -> None:
    """A plan that is saved would hold who spoke."""

    def write(turns: list[dict[str, str]]) -> str:
        said = [f"{'Customer' if turn['by'] == 'Ann' else 'Desk'}: {turn['content']}" for turn in turns]
        return "Sum up this chat:\n" + "\n".join(said) + "\nBe brief."

    talks = [talk(number, turns, "by", ("Ann", "Bob")) for number, turns in ((1, 5), (2, 3))]
    assert "Ann" not in learnt(write, *talks)


def test_a_word_that_goes_by_nothing() -> None:
    def write(turns: list[dict[str, str]]) -> str:
        said = [f"{('Customer', 'Desk', 'Desk')[at % 3]}: {turn['content']}" for at, turn in enumerate(turns)]
        return "Sum up this chat:\n" + "\n".join(said) + "\nBe brief."

    assert "as one of" not in learnt(write, talk(1, 5), talk(2, 4))


@pytest.mark.parametrize("write", [joined, ended, otherwise])
def test_one_run_shows_what_is_said_where_there_is_no_element(write: Written) -> None:
    """The text of the others does not: they may have been put together in either way."""
    traces = []
    for number, turns in enumerate((4, 0, 3), 1):
        script = Script({"turns": talk(number, turns), "q": f"chat {number}"})
        script.call("sum", write(talk(number, turns)), "so")
        traces.append(script.done())
    (node,) = (node for node in lesson(traces, Words(PROGRAM)).graph.nodes if node.site)
    assert node.evidence.always
    (join,) = (part for part in node.input.parts if isinstance(part, Join))
    said = "Nothing was said yet." if write is otherwise else ""
    assert join.empty == Instead(said, 0, 1 if write is ended else 0)


def test_nothing_is_foreseen_of_a_list_without_elements_before_a_run_has_shown_it() -> None:
    traces = []
    for number, turns in enumerate((4, 3), 1):
        script = Script({"turns": talk(number, turns)})
        script.call("sum", joined(talk(number, turns)), "so")
        traces.append(script.done())
    (node,) = (node for node in lesson(traces, Words(PROGRAM)).graph.nodes if node.site)
    assert has_gap(maker(node.input)((), 0, Known({"input": {"turns": []}})))


# --- evaluated ------------------------------------------------------------------------------------------------------

LABELS = Label((("ai", "Desk"), ("human", "Customer")))


def chat(empty: Instead | None) -> Template:
    row = Ref("chat", (STAR, "kind", LABELS)), Ref("chat", (STAR, "text"))
    return Template(("So far:\n- ", Join(row[0], ("\n- ",), rest=(": ", row[1]), empty=empty), "\n\nNow?"))


def told(tree: Any, *turns: tuple[str, str], whole: bool = True) -> Any:
    said = [{"kind": kind, "text": text} for kind, text in turns]
    return maker(tree)((), 0, Known({"chat": said if whole else Open(said)}))


def test_a_kind_that_was_never_seen_ends_what_is_known() -> None:
    assert told(chat(None), ("human", "Hi"), ("ai", "Yes?")) == "So far:\n- Customer: Hi\n- Desk: Yes?\n\nNow?"
    found = told(chat(None), ("human", "Hi"), ("tool", "7"))
    assert found == "So far:\n- Customer: Hi" and isinstance(found, Partial)


@pytest.mark.parametrize(
    ("empty", "shown"),
    [
        (Instead(), "So far:\n- \n\nNow?"),
        (Instead("", 2, 0), "So far:\n\n\nNow?"),
        (Instead("nothing", 2, 1), "So far:\nnothing\nNow?"),
    ],
)
def test_what_is_said_instead_of_elements(empty: Instead, shown: str) -> None:
    assert told(chat(empty)) == shown and not has_gap(told(chat(empty)))
    begun = told(chat(empty), whole=False)
    assert shown.startswith(begun) and has_gap(begun), "what may be left out is not known to be said"


def test_nothing_is_known_behind_elements_that_may_be_missing() -> None:
    found = told(chat(None))
    assert found == "So far:\n- " and isinstance(found, Partial)
