"""What a program keeps out by an `if`, and what it says to some alone, is in no early call for others."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage

import accel

from .core_fakes import Chat, Store, World, chain, naming

TOPICS = [f"{what} of {where}" for where in ("Iceland", "Norway", "Chile") for what in ("rivers", "lakes", "hills")]
HEADS = {"acme": "Acme agreed in May with its bank upon", "globex": "Globex notes for its clerks"}
Given = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Runs that teach, one that follows, and words that are in none of its early calls."""

    writes: Callable[[Given], str]
    before: list[Given]
    then: Given
    never: str


def hinted(of: Any, number: int = 0) -> Given:
    return {"c": of, "b": f"matter number {number * 53}" if number else ""}


def headed(given: Given) -> str:
    return f"{HEADS[given['c']]}: {given['b']}\n" if given["b"] else ""


def consented(given: Given) -> str:
    return f"Hint: {given['b']}\n" if given["b"] and given["c"] else ""


def filtered(given: Given) -> str:
    return "".join(f"{note}\n" for note in given["c"] if not note.startswith("internal"))


def flagged(given: Given) -> str:
    return f"{given['c']['record']}\n" if given["c"]["consent"] else ""


def flags(active: bool, consent: bool, number: int) -> Given:
    return {"c": {"active": active, "consent": consent, "record": f"record {number * 7919} of a patient"}}


def noted(number: int, kinds: str) -> Given:
    named = {"p": "note", "i": "internal: note"}
    return {"c": [f"{named[kind]} {number * 37 + at} on case {number * 101 + at * 7}" for at, kind in enumerate(kinds)]}


def sent_to(given: Given) -> str:
    return f"Deliver it to {given['c']['shipping']}.\n"


def addresses(number: int, other: str = "") -> Given:
    home = f"{number * 17} Elm Street in Leeds"
    return {"c": {"home": home, "shipping": other or home}}


CASES = {
    "an address that was equal to another": Case(
        sent_to, [addresses(1), addresses(2), addresses(3)], addresses(4, "8 Office Park in York"), "Elm Street",
    ),
    "a tenant's heading": Case(
        headed, [hinted("acme", 1), hinted("globex"), hinted("acme", 2), hinted("globex"), hinted("acme", 3),
                 hinted("globex")],
        hinted("globex", 4), "Acme",
    ),
    "a heading that one run has shown": Case(
        headed, [hinted("acme", 1), hinted("globex")], hinted("globex", 1), "Acme",
    ),
    "without consent": Case(
        consented, [hinted(True, 1), hinted(False), hinted(True, 2), hinted(False), hinted(True, 3), hinted(False)],
        hinted(False, 4), "matter",
    ),
    "two flags that were equal": Case(
        flagged, [flags(at % 2 == 0, at % 2 == 0, at) for at in range(6)], flags(True, False, 6), "record",
    ),
    "left out at the end": Case(filtered, [noted(1, "ppi"), noted(2, "pp")], noted(3, "pip"), "internal"),
    "left out at the beginning": Case(
        filtered, [noted(1, "ipp"), noted(2, "pp"), noted(3, "pp")], noted(4, "pip"), "internal",
    ),
    "filtered": Case(
        filtered,
        [{"c": ["internal: Ben owes 411", "Ann wrote 331", "Ben wrote 907"]}, {"c": []}, {"c": []}],
        {"c": ["Dan wrote 7171", "internal: Dan is ill since 17", "Eva wrote 8181"]}, "internal",
    ),
}  # fmt: skip


def asked(world: World, writes: Callable[[Given], str]) -> Any:
    model = Chat(world)

    def second(state: Any) -> dict[str, str]:
        world.node("second")
        return {"b": model.invoke(f"Tell of the {state['q']}\n{writes(state)}Be brief.").content}

    return chain(("first", naming(world, model)), ("second", second))


@pytest.mark.parametrize("which", CASES)
def test_what_is_withheld(which: str) -> None:
    case, world = CASES[which], World()
    fast = accel.accelerate(asked(world, case.writes))
    for topic, given in zip(TOPICS, [*case.before, case.then], strict=False):
        world.forget()
        fast.invoke({"q": topic, **given})
        assert accel.settle()
    assert not [text for text in world.texts(early=True) if case.never in text]
    assert any(f"Tell of the {topic}" in text for text in world.texts())


def test_a_heading_of_a_file_is_nobody_elses(tmp_path: Path) -> None:
    """Nothing of the program says it."""
    path, world = tmp_path / "heads.json", World()
    path.write_text(json.dumps({"ann": "Her oncologist Dr. Weiss asks", "bob": "His dentist Dr. Blum asks"}))

    def writes(given: Given) -> str:
        return f"{json.loads(path.read_text())[given['c']]}: {given['b']}\n" if given["b"] else ""

    fast = accel.accelerate(asked(world, writes))
    runs = [hinted("ann", 1), hinted("bob"), hinted("ann", 2), hinted("bob"), hinted("bob", 1), hinted("bob", 3)]
    for topic, given in zip(TOPICS, runs, strict=False):
        fast.invoke({"q": topic, **given})
        assert accel.settle()
        sent = [text for text in world.texts(early=True) if "Weiss" in text]
        assert not sent or given["c"] == "ann"
        world.forget()
    plan = tmp_path / "plan.json"
    fast.save_plan(str(plan))
    assert "Weiss" not in plan.read_text()


def test_messages_that_a_filter_leaves_out() -> None:
    """Two runs without any show nothing of it."""
    world = World()
    model = Chat(world)

    def second(state: Any) -> dict[str, str]:
        world.node("second")
        kept = [note for note in state["c"] if not note.text.startswith("internal")]
        asks = HumanMessage(f"Tell of the {state['q']}")
        return {"b": model.invoke([SystemMessage("Be kind."), *kept, asks]).content}

    fast = accel.accelerate(chain(("first", naming(world, model)), ("second", second)))
    chats = [["Ann wrote 331", "Ben wrote 907"], [], [], ["Dan wrote 7171", "internal: Dan is ill"]]
    for topic, notes in zip(TOPICS, chats, strict=False):
        world.forget()
        fast.invoke({"q": topic, "c": list(map(HumanMessage, notes))})
        assert accel.settle()
    assert not [text for text in world.texts(early=True) if "internal" in text]


class Filtered(Store):
    """Gives the rows whose keys its filter holds."""

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        told = str(kwargs.get("filter"))
        self.world.serve("store", f"{query} {told}")
        return [Document(page_content=text) for key, text in self.rows.items() if key in told]


accel.register(Filtered, pure=True, local=True, concurrency=8, readonly=True)
FILTERS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "a key": (lambda of: {of: True}, "acme", "globex"),
    "a key inside": (lambda of: {"acl": {of: {"exists": True}}}, "acme", "globex"),
    "a flag": (lambda of: {"internal": of}, True, False),
    "a flag by a name": (lambda of: {"internal": of == "staff"}, "staff", "guest"),
    "nothing": (lambda of: None if of == "staff" else {"of": of}, "staff", "guest"),
}


@pytest.mark.parametrize("which", FILTERS)
def test_a_filter_that_goes_by_who_asks(which: str) -> None:
    """Its keys and flags are no words of the program's."""
    by, one, other = FILTERS[which]
    world = World()
    model, store = Chat(world), Filtered(world, {"acme": "Acme's plans", "globex": "Globex' plans", "True": "salaries"})

    def second(state: Any) -> dict[str, str]:
        world.node("second")
        found = store.similarity_search(state["q"], filter=by(state["c"]))
        told = " ".join(each.page_content for each in found)
        return {"b": model.invoke(f"Answer by {told}: {state['q']}").content}

    fast = accel.accelerate(chain(("first", naming(world, model)), ("second", second)))
    for topic, of in zip(TOPICS, (one, one, one, one, other), strict=False):
        world.forget()
        fast.invoke({"q": topic, "c": of})
        assert accel.settle()
        searches = {text for text in world.texts() if text.startswith(topic)}
        assert searches == {f"{topic} {by(of)}"}
        assert of == other or topic in TOPICS[:3] or world.texts(topic, early=True)
