"""What is learnt of texts that programs cut off: at their first sentence or line, or after so many characters."""

from __future__ import annotations

from typing import Any

import pytest

from accel.tests.test_core_learn import Script, learnt, shown
from accel.text.extract import Partial
from accel.text.paths import step_into
from accel.text.steps import Head

PAGES = {
    "boats": "Boats of the north. They are built by eye, without plans.\nThe builder signs the keel.",
    "salt": "Salt of Zanzibar. It is boiled in pans, at night.\nThe fires are fed with husks.",
    "tea": "Tea in the hills. It grows on terraces, in fog.\nWomen pick it.",
}


def cut(how: Any, whole: bool = False) -> str:
    """The last input of a program that pastes a page cut off, with the page after it or not."""

    def program(script: Script, topic: str) -> None:
        found = script.call("s", [f"pages on {topic}"], [{"text": PAGES[topic]}], op="searching")
        page = found[0]["text"]
        script.call("a", f"Title: {how(page)}\n\n{page * whole}\nGo on.", "fine")

    return shown(learnt(program, ["boats", "salt"]))[-1]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("how", "step"),
    [
        (lambda page: page.split(".")[0], '|up to ". "'),
        (lambda page: page.splitlines()[0], '|up to "\\n"'),
        (lambda page: page.partition(", ")[0], '|up to ", "'),
    ],
    ids=["sentence", "line", "comma"],
)
def test_the_first_part_of_a_text(how: Any, step: str, whole: bool) -> None:
    known = cut(how, whole).replace('\\"', '"')
    assert f"Title: {{main.searching[0].text{step}}}" in known


def test_a_first_part_that_happens_to_be_as_long_every_time() -> None:
    titles = {"boats": "Boats of the far north.", "spice": "Spice of the far south."}

    def program(script: Script, topic: str) -> None:
        found = script.call("s", [f"pages on {topic}"], [{"title": titles[topic]}], op="searching")
        script.call("a", f"Title: {found[0]['title'].rstrip('.')}\nGo on.", "fine")

    known = shown(learnt(program, list(titles)))[-1].replace('\\"', '"')
    assert 'Title: {main.searching[0].title|up to "."}' in known


def test_so_many_characters() -> None:
    assert "Title: {main.searching[0].text[:25]}\\n" in cut(lambda page: page[:25])


def test_a_blank_after_the_last_character_is_the_text_s() -> None:
    """Both values happen to go on with one where they are cut off."""

    def program(script: Script, topic: str) -> None:
        found = script.call("s", [f"pages on {topic}"], [f"what is {topic} good for and since when"], op="searching")
        script.call("a", f"Explain {found[0][:30]} and be brief.", "fine")

    topics = ["canyon462 zqb4q tundra", "meadow171 zqa8q leaves"]
    assert {len(f"what is {topic}") for topic in topics} == {30}
    assert shown(learnt(program, topics))[-1] == ": Explain {main.searching[0][:30]} and be brief."


def test_a_text_that_begins_as_a_known_one_by_chance() -> None:
    def program(script: Script, topic: str) -> None:
        page = script.call("p", f"Write on {topic}", f"A page about the {topic}, all of it")
        script.call("a", f"A page about the weather.\n{page}", "fine")

    assert shown(learnt(program))[-1] == ": A page about the weather.\\n{main.decode.content}"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("Whales. They", "Whales"),
        (Partial("Whales. Th"), "Whales"),
        (Partial("Whales."), Partial("Whales.")),
        ("Whales", "Whales"),
    ],
)
def test_a_first_part_is_known_when_what_ends_it_is(text: str, known: str) -> None:
    found = step_into(text, Head(". "))
    assert found == known and isinstance(found, Partial) == isinstance(known, Partial)
