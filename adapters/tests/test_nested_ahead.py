"""Nested fan-outs: what is known of a later list doesn't wait for the end of an earlier one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import accel
from accel import accelerate
from accel.graph.ir import Evidence, Level, Node
from accel.graph.ops import OPS
from accel.run.plans.ahead import behind_gaps, may_go_ahead
from accel.text.extract import Open
from accel.text.paths import DROPPED, UNKNOWN
from accel.text.steps import STAR, Extract
from accel.text.templates import Counter, Ref, Template
from adapters.tests.core_fakes import Chat, State, World, after_thinking

INPUTS = [{"q": f"{topic} coast", "c": [f"{topic} bay", f"{topic} cape"]} for topic in ("northern", "eastern", "old")]


def said(text: str) -> str:
    topic = text.rpartition(" of ")[2]
    return f"upper {topic}\nlower {topic}" if text.startswith("List") else f"answer to <{text}>"


def program(world: World) -> Any:
    """After thinking, lists the parts of every item, then writes a note on each part."""
    model = Chat(world)

    def notes(state: State) -> list[str]:
        lists = [model.invoke(f"List parts of {item}").content.split("\n") for item in state["c"]]
        parts = [part for found in lists for part in found]
        return [model.invoke(f"Note on {part}").content for part in parts]

    return after_thinking(world, notes)


def trained(world: World, graph: Any) -> Any:
    fast = accelerate(graph)
    for value in INPUTS[:2]:
        fast.invoke(value)
        assert accel.settle()
    world.forget()
    return fast


def test_elements_behind_an_open_list_go_early() -> None:
    world = World(answer=said)
    fast = trained(world, program(world))
    first = world.gates["List parts of old bay"] = threading.Event()

    def goes_on() -> None:
        world.wait_early("Note on lower old cape")
        assert not world.texts("Note on upper old bay")
        first.set()

    world.hooks["b"] = goes_on
    assert fast.invoke(INPUTS[2])["b"] == [
        f"answer to <Note on {part} old {place}>" for place in ("bay", "cape") for part in ("upper", "lower")
    ]
    assert len(world.texts("Note")) == 4, "nothing was asked twice"


PARTS = Ref("lists", (STAR, "content", Extract("lines"), STAR))


@pytest.mark.parametrize(
    ("level", "parts", "may"),
    [
        (Level(PARTS, seen=4), ("Note on ", PARTS), True),
        (Level(PARTS, seen=4), ("Note ", Counter(1), " on ", PARTS), False),
        (Level(PARTS, cap=2, seen=4), ("Note on ", PARTS), False),
        (Level(PARTS, seen=4, distinct=True), ("Note on ", PARTS), False),
        (Level(Ref("lists", (STAR, "content")), seen=4), ("Note on ", Ref("lists", (STAR, "content"))), False),
    ],
)
def test_elements_that_depend_on_those_before_them_wait(level: Level, parts: Any, may: bool) -> None:
    node = Node("note", OPS["decode"], Template(parts), "site", level=level, many=True, evidence=Evidence("verified"))
    assert may_go_ahead(node) == may


def test_what_is_behind_a_gap() -> None:
    path = (STAR, "parts", STAR)
    value = [{"parts": ["a"]}, {"parts": Open(["b", "c"])}, UNKNOWN, {"parts": [DROPPED, "d"]}]
    assert list(behind_gaps(value, path)) == [(3, 1)]
    assert list(behind_gaps(value[:1], path)) == []
