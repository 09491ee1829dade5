"""Invariant 6: a text that runs had in common goes early to a remote endpoint only if the endpoint has it in this run,
or the program says it by itself at this moment."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate

import accel
from accel import accelerate
from adapters.tests.core_fakes import RemoteChat, State, World, chain

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "rivers of Siberia", "deserts of Chile", "forests of Gabon")
NOTES = {"ann": "the diagnosis of Ann Miller is grim", "bob": "the diagnosis of Bob Smith is good"}
DATABASE = sqlite3.connect(":memory:", check_same_thread=False)
DATABASE.execute("create table notes(text)")
LOCAL, HELD = threading.local(), SimpleNamespace(note="", date="", notes=dict[str, str]())
NOTE = NOTES["ann"]
RECORD = {"note": NOTES["ann"], "visits": "many"}
PROMPT = ChatPromptTemplate.from_template("the case as it was filed: {topic}")
TONE = "Be as kind as you can be"
TONES = {"kind": "Be as brief as {topic} allows", "stern": "Be as stern as {topic} allows"}


def remember(user: str) -> None:
    global NOTE
    NOTE = HELD.note = RECORD["note"] = os.environ["ACCEL_TEST_NOTE"] = NOTES[user]
    HELD.date = {"ann": "2026-11-10", "bob": "2026-11-11"}[user]
    HELD.notes["last"] = NOTES[user]
    LOCAL.user = user
    DATABASE.execute("delete from notes")
    DATABASE.execute("insert into notes values(?)", (NOTES[user],))
    PROMPT.messages[0].prompt.template = f"{NOTES[user]}: {{topic}}"  # type: ignore[union-attr]


@pytest.fixture(autouse=True)
def ann() -> Iterator[None]:
    remember("ann")
    yield
    os.environ.pop("ACCEL_TEST_NOTE")


PLACES: dict[str, Callable[[str], str]] = {
    "a database": lambda topic: DATABASE.execute("select text from notes").fetchone()[0] + topic,
    "an object": lambda topic: HELD.note + topic,
    "an entry": lambda topic: HELD.notes["last"] + topic,
    "the environment": lambda topic: os.environ["ACCEL_TEST_NOTE"] + topic,
    "a date": lambda topic: f"today is {HELD.date} and {topic}",
    "one of several": lambda topic: NOTES[LOCAL.user] + topic,
    "a variable": lambda topic: NOTE + topic,
    "a record": lambda topic: RECORD["note"] + topic,
    "a prompt": lambda topic: PROMPT.format(topic=topic),
}


def program(world: World, say: Callable[[str], str]) -> Any:
    """Its endpoint has the topic with the first call; the second and third one wait for nothing else."""
    model = RemoteChat(world)

    def node(name: str) -> Callable[[State], State]:
        def run(state: State) -> State:
            world.node(name)
            asked = f"Alpha asks: {state['q']}" if name == "a" else f"Explain in {name} that {say(state['q'])}"
            return {name: model.invoke(asked).content}  # type: ignore[misc]

        return run

    return chain(*((name, node(name)) for name in ("a", "b", "c")))


def asked(fast: Any, number: int) -> None:
    fast.invoke({"q": TOPICS[number % 5] + f" in {1900 + number}"})
    assert accel.settle()


@pytest.mark.parametrize("say", PLACES.values(), ids=PLACES)
def test_what_the_program_says_no_longer_does_not_leave_early(say: Callable[[str], str]) -> None:
    world = World()
    fast = accelerate(program(world, say))
    for number in range(4):
        asked(fast, number)
    for number, user in enumerate(("bob", "ann", "bob", "bob"), 4):
        remember(user)
        world.forget()
        asked(fast, number)
        others = ("Ann Miller", "11-10") if user == "bob" else ("Bob Smith", "11-11")
        assert not any(other in text for text in world.texts() for other in others)


def test_what_the_endpoint_has_in_this_run_goes_early() -> None:
    """After the first call that holds the note, the next one needs no other leave."""
    world = World()
    fast = accelerate(program(world, PLACES["a database"]))
    for number in range(4):
        asked(fast, number)
    world.forget()
    world.hooks["c"] = lambda: world.wait_early("Explain in c")
    asked(fast, 4)
    assert not world.texts("Explain in b", early=True)


OWN: dict[str, Callable[[str], str]] = {
    "a constant": lambda topic: f"the matter of {topic} is hard",
    "a variable": lambda topic: f"{TONE}: {topic}",
    "a prompt": lambda topic: PROMPT.format(topic=topic),
    "a record": lambda topic: RECORD["visits"] + " times more than " + topic,
}


@pytest.mark.parametrize("say", OWN.values(), ids=OWN)
def test_what_the_program_says_by_itself_goes_early(say: Callable[[str], str]) -> None:
    world = World()
    fast = accelerate(program(world, say))
    for number in range(4):
        asked(fast, number)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("Explain in b")
    asked(fast, 4)


def test_one_of_several_templates_is_judged_like_a_value() -> None:
    world = World()
    fast = accelerate(program(world, lambda topic: TONES[LOCAL.tone].format(topic=topic)))
    LOCAL.tone = "kind"
    for number in range(4):
        asked(fast, number)
    LOCAL.tone = "stern"
    world.forget()
    asked(fast, 4)
    assert not any("brief" in text for text in world.texts())


class Desk:
    note = ""


DESK = Desk()


@pytest.mark.parametrize("speculate", ["auto", "likely"])
def test_what_an_attribute_no_longer_says_is_not_sent_where_all_may_leave(speculate: Any) -> None:
    """It came in after the program was accelerated, as somebody's."""
    world, DESK.note = World(), ""
    fast = accelerate(program(world, lambda topic: DESK.note + topic), egress="inputs", speculate=speculate)
    for number in range(8):
        DESK.note = NOTES["ann" if number < 4 else "bob"]
        if number == 3:
            world.hooks["a"] = lambda: world.wait_early("Explain in b that the diagnosis of Ann Miller")
        elif number == 4:
            world.hooks.clear()
            world.forget()
        asked(fast, number)
    assert not any("Ann Miller" in text for text in world.texts())


@pytest.mark.parametrize("speculate", ["auto", "likely"])
def test_what_no_place_shows_is_not_sent_once_a_run_had_something_else(speculate: Any) -> None:
    """Though the next one may begin before anything is learnt from that."""
    world = World()
    fast = accelerate(program(world, PLACES["a database"]), egress="inputs", speculate=speculate)
    for number in range(4):
        asked(fast, number)
    remember("bob")
    fast.invoke({"q": "caves of Peru"})
    world.forget()
    for topic in ("islands of Greece", "lakes of Kenya", "capes of Wales"):
        fast.invoke({"q": topic})
    assert accel.settle()
    assert not any("Ann Miller" in text for text in world.texts())


EVERY = {"facts": "Give the bare facts about it", "doubts": "Say what is doubtful about it"}
NOTED = ["the first note about everybody", "the second note about everybody"]


def asking(world: World, asks: Callable[[State], list[str]]) -> Any:
    """The endpoint has the topic with the first call; those of the second node wait for nothing else."""
    model = RemoteChat(world)

    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": [model.invoke(f"{text}: {state['q']}").content for text in asks(state)]}

    return chain(("a", a), ("b", b))


GONE_THROUGH: dict[str, tuple[Callable[[State], list[str]], str]] = {
    "values": (lambda state: [text for _, text in EVERY.items()], "Say what is doubtful"),
    "keys": (lambda state: [f"Explain {key} on it" for key in EVERY], "Explain doubts"),
    "a list": (lambda state: NOTED, "the second note"),
    "in one text": (lambda state: [f"Use {', '.join(NOTED)}, and tell"], "Use the first note"),
}


@pytest.mark.parametrize(("asks", "said"), GONE_THROUGH.values(), ids=GONE_THROUGH)
def test_texts_that_every_run_goes_through_go_early(asks: Callable[[State], list[str]], said: str) -> None:
    world = World()
    fast = accelerate(asking(world, asks))
    for number in range(4):
        asked(fast, number)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early(said)
    asked(fast, 4)


def test_texts_that_it_chooses_among_do_not() -> None:
    """Two of the runs' kinds of text have been seen; which one comes next, only the program knows."""
    world = World()
    fast = accelerate(asking(world, lambda state: [EVERY[LOCAL.tone]]))
    for number, LOCAL.tone in enumerate(("facts", "facts", "doubts", "doubts")):
        asked(fast, number)
    LOCAL.tone = "facts"
    world.forget()
    asked(fast, 4)
    assert not world.texts("Say what", early=True)
    assert not world.texts("Give the", early=True)


@pytest.fixture
def noted() -> Iterator[list[str]]:
    before = NOTED[:]
    yield NOTED
    NOTED[:] = before


def test_a_list_that_has_changed_since_is_gone_through_no_more(noted: list[str]) -> None:
    world = World()
    fast = accelerate(asking(world, lambda state: NOTED))
    for number in range(4):
        asked(fast, number)
    noted[1] = NOTES["bob"]
    for number in range(4, 7):
        world.forget()
        asked(fast, number)
        assert not any("the second note" in text for text in world.texts())
    noted[1] = NOTES["ann"]
    world.forget()
    asked(fast, 7)
    assert not any("Bob Smith" in text for text in world.texts())


def test_a_run_that_leaves_one_out_shows_that_they_are_chosen() -> None:
    world = World()
    fast = accelerate(asking(world, lambda state: NOTED[: LOCAL.count]))
    for number, LOCAL.count in enumerate((2, 2, 2, 1, 1, 1)):
        asked(fast, number)
    world.forget()
    asked(fast, 6)
    assert not world.texts("the second note")


def test_what_it_looks_up_is_judged_like_a_value() -> None:
    """A run looks one text up; that the endpoint may have another one of them, no run has shown."""
    world = World(answer=lambda text: ("facts", "doubts")[len(text) % 2])
    fast = accelerate(asking(world, lambda state: [EVERY[state["a"]]]))
    for number in (*range(4), 9, 14, 98, 103):
        asked(fast, number)
    world.forget()
    for number in (5, 97, 6, 99):
        asked(fast, number)
    assert len({text.split(":")[0] for text in world.texts() if not text.startswith("Alpha")}) == 2
    assert not world.texts("Say what", early=True) and not world.texts("Give the", early=True)
