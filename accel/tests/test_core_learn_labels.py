"""What programs say before each element of a list by its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accel.learn.learner import UNEXPLAINED
from accel.learn.lessons import lesson
from accel.tests.test_core_evaluate import Known
from accel.tests.test_core_learn import Script, Words, shown
from accel.text.evaluate import maker
from accel.text.extract import Partial
from accel.text.steps import STAR, Label
from accel.text.templates import Join, Ref, Template

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


@pytest.mark.parametrize("key", ["by", "role", "type"])
def test_a_field_that_may_hold_anything_tells_no_kind(key: str) -> None:
    """A plan that is saved would hold who spoke."""

    def write(turns: list[dict[str, str]]) -> str:
        said = [f"{'Customer' if turn[key] == 'Ann' else 'Desk'}: {turn['content']}" for turn in turns]
        return "Sum up this chat:\n" + "\n".join(said) + "\nBe brief."

    talks = [talk(number, turns, key, ("Ann", "Bob")) for number, turns in ((1, 5), (2, 3))]
    assert "Ann" not in learnt(write, *talks)


def test_a_name_that_one_tenants_chats_show_is_not_anothers() -> None:
    """Whose chats had no answer have shown nothing of who answers."""
    traces = []
    for number, (of, turns) in enumerate([("acme", 4), ("globex", 1), ("acme", 2), ("globex", 1)], 1):
        script = Script({"turns": talk(number, turns), "of": of})
        script.call("sum", joined(talk(number, turns)), "so")
        traces.append(script.done())
    labelled = [node for node in lesson(traces, Words(PROGRAM)).graph.nodes if "Desk" in str(node.input)]
    assert [str(when) for node in labelled for when in node.when] == ["{input.of|verdict} is acme"]


def test_words_behind_a_long_text_that_nothing_parts() -> None:
    """It is looked at once, not from each of its letters on."""
    rules = "deadbeef0123" * 10_000

    def write(turns: list[dict[str, str]]) -> str:
        return f"{rules}{joined(turns)}"

    program = Words((*PROGRAM, f"{rules}{PROGRAM[0]}"))
    assert "|as one of" in learnt(write, talk(1, 4), talk(2, 2), talk(3, 3), program=program)


def test_a_word_that_goes_by_nothing() -> None:
    def write(turns: list[dict[str, str]]) -> str:
        said = [f"{('Customer', 'Desk', 'Desk')[at % 3]}: {turn['content']}" for at, turn in enumerate(turns)]
        return "Sum up this chat:\n" + "\n".join(said) + "\nBe brief."

    assert "as one of" not in learnt(write, talk(1, 5), talk(2, 4))


# --- evaluated ------------------------------------------------------------------------------------------------------

LABELS = Label((("ai", "Desk"), ("human", "Customer")))


def test_a_kind_that_was_never_seen_ends_what_is_known() -> None:
    row = Ref("chat", (STAR, "kind", LABELS)), Ref("chat", (STAR, "text"))
    chat = Template(("So far:\n- ", Join(row[0], ("\n- ",), rest=(": ", row[1])), "\n\nNow?"))

    def told(*turns: tuple[str, str]) -> Any:
        return maker(chat)((), 0, Known({"chat": [{"kind": kind, "text": text} for kind, text in turns]}))

    assert told(("human", "Hi"), ("ai", "Yes?")) == "So far:\n- Customer: Hi\n- Desk: Yes?\n\nNow?"
    found = told(("human", "Hi"), ("tool", "7"))
    assert found == "So far:\n- Customer: Hi" and isinstance(found, Partial)
