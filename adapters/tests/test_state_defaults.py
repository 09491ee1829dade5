"""What a state holds by default is the program's own text, as long as nobody changes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from pydantic import BaseModel, Field

import accel
from accel import accelerate
from accel.parts.program.texts import said_by_program, standing_texts
from adapters.tests.core_fakes import Chat, World

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "deserts of Chile", "rivers of Peru")
SCHEMA: dict[str, Any] = {"title": "Facts", "fields": {"age": "How old the oldest part of it is said to be"}}


@dataclass
class Plain:
    q: str
    form: dict[str, Any] = field(default_factory=lambda: SCHEMA)
    a: str = ""
    b: str = ""


class Model(BaseModel):
    q: str
    form: dict[str, Any] = Field(default_factory=lambda: SCHEMA)
    a: str = ""
    b: str = ""


@pytest.fixture(autouse=True)
def _unchanged() -> Iterator[None]:
    before = json.dumps(SCHEMA)
    yield
    SCHEMA.update(json.loads(before))


def program(world: World, kind: Any) -> Any:
    model = Chat(world)

    def asked(state: Any, what: str) -> str:
        form = json.dumps(state.form, indent=4)
        return str(model.invoke(f"{what} {state.q} by this:\n{form}").content)

    def a(state: kind) -> Any:
        world.node("a")
        return {"a": asked(state, "Look for facts on"), "form": state.form}

    def b(state: kind) -> Any:
        world.node("b")
        return {"b": asked(state, "Judge what is said of")}

    builder = StateGraph(kind)
    builder.add_sequence([a, b])
    builder.add_edge(START, "a")
    return builder.compile()


@pytest.mark.parametrize("kind", [Plain, Model])
def test_what_the_state_holds_by_default_stands_in_prompts(kind: Any) -> None:
    world = World(answer=lambda text: f"{len(text)} words")
    fast = accelerate(program(world, kind))
    for topic in TOPICS:
        world.forget()
        fast.invoke({"q": topic})
        assert accel.settle()
    assert world.texts("Judge", early=True)


def test_what_has_come_into_a_default_is_somebody_s_data() -> None:
    world = World()
    fast = accelerate(program(world, Plain))
    SCHEMA["fields"] = {"debt": "What the customers of acme corporation owe us in dollars"}
    for topic in TOPICS:
        world.forget()
        fast.invoke({"q": topic})
        assert accel.settle()
    assert "acme" not in str(fast.plan.graph)


RECORDS = {f"patient {number} of the ward": f"diagnosis number {number} of somebody" for number in range(9)}


@dataclass
class Picks:
    q: str
    found: list[str] = field(default_factory=lambda: [text for name, text in RECORDS.items() if name == "nobody"])


def test_what_a_default_chooses_from_is_not_the_program_s_text() -> None:
    texts = said_by_program([Picks], lambda value: False, lambda value: False, lambda value, held: None).texts
    standing = standing_texts([Picks], lambda value: False, lambda value: False, lambda value, held: None)
    assert not any("diagnosis" in text or "patient" in text for text in texts)
    assert not {hash(text) for text in RECORDS.values()} & standing.texts
