"""Invariant 10 where one object serves several users: what is one's stays with that one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.config import get_store
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore, GetOp
from langgraph.store.memory import InMemoryStore

import accel
from accel import accelerate
from adapters.tests.core_fakes import TENANT, Chat, State, World, after_thinking, chain
from adapters.tests.test_invariants import asked_by


def test_what_one_tenant_s_runs_have_in_common_stays_with_that_tenant() -> None:
    """A text that the program takes from somewhere, for each tenant another one."""
    world, notes = World(), {"ann": "the diagnosis is bad", "ben": "the diagnosis is good"}
    model = Chat(world)

    def explain(state: State) -> Any:
        return model.invoke(f"Explain to {TENANT.get()}: {notes[TENANT.get()].upper()}").content

    fast = accelerate(after_thinking(world, explain))
    for topic in ("volcanoes of Iceland", "glaciers of Norway"):
        asked_by("ann", fast, topic)
    world.hooks["b"] = lambda: world.wait_early("Explain to ann")
    asked_by("ann", fast, "rivers of Siberia")
    del world.hooks["b"]
    world.forget()
    asked_by("ben", fast, "deserts of Chile")
    assert all("BAD" not in text for text in world.texts())


def test_two_questions_that_differ_in_an_id_are_one_question() -> None:
    world = World()
    model = Chat(world)

    def join(state: State) -> Any:
        return model.invoke(f"Join {' '.join(sorted(state['q'].split()))}").content

    fast = accelerate(after_thinking(world, join))
    for number in range(3):
        fast.invoke({"q": "volcanoes of Iceland", "c": f"request-{number}"})
        assert accel.settle()
    world.forget()
    fast.invoke({"q": "deserts of Chile", "c": "request-3"})
    assert world.texts("Join") == ["Join Chile deserts of"]


def test_another_tenant_s_component_is_not_called() -> None:
    world = World()
    models = {name: Chat(world, label=name) for name in ("ann", "ben")}

    def a(state: State) -> State:
        world.node("a")
        return {"a": models["ann"].invoke("Be ready") and "ready" if state["q"] == "never" else "ready"}

    def b(state: State) -> State:
        world.node("b")
        return {"b": models[TENANT.get()].invoke(f"Beta asks: {state['q']}").content}

    fast = accelerate(chain(("a", a), ("b", b)))
    for topic in ("volcanoes of Iceland", "glaciers of Norway", "rivers of Siberia"):
        asked_by("ann", fast, topic)
    world.forget()
    asked_by("ben", fast, "deserts of Chile")
    assert [(call.component, call.text) for call in world.calls] == [("ben", "Beta asks: deserts of Chile")]


@dataclass
class Rooms:
    """What a program has for each of its tenants."""

    model: Any


@pytest.mark.parametrize("kept", [Rooms, lambda model: ("rooms", model), lambda model: {"model": model}])
def test_what_a_tenant_s_entry_leads_to_is_not_called_for_another_one(kept: Any) -> None:
    """The tenant is a part of the request, which no context shows."""
    world = World()
    rooms = {name: kept(model=Chat(world, label=name)) for name in ("ann", "ben")}

    def b(state: State) -> Any:
        tenant = state["q"].partition(":")[0]
        entry = rooms[tenant]
        model = entry.model if isinstance(entry, Rooms) else entry["model" if isinstance(entry, dict) else 1]
        return model.invoke(f"Beta asks: {state['q']}").content

    fast = accelerate(after_thinking(world, b))
    for question in ("ann: volcanoes", "ann: glaciers", "ann: rivers", "ann: geysers"):
        fast.invoke({"q": question})
        assert accel.settle()
    world.forget()
    fast.invoke({"q": "ben: deserts"})
    assert [call.component for call in world.calls if call.text.startswith("Beta")] == ["ben"]


def test_a_saved_plan_knows_the_contexts_it_was_learnt_in(tmp_path: Any) -> None:
    world, path = World(), str(tmp_path / "plan.json")
    notes = {"ann": "the diagnosis is bad", "ben": "the diagnosis is good"}

    def a(state: State) -> State:
        world.node("a")
        return {"a": "ready"}

    def b(state: State) -> State:
        world.node("b")
        return {"b": Chat(world).invoke(f"Explain: {notes[TENANT.get()].upper()}").content}

    program = chain(("a", a), ("b", b))
    fast = accelerate(program)
    for topic in ("volcanoes of Iceland", "glaciers of Norway"):
        asked_by("ann", fast, topic)
    fast.save_plan(path)
    again = accelerate(program, plan=path)
    world.forget()
    asked_by("ben", again, "deserts of Chile")
    assert world.texts() == ["Explain: THE DIAGNOSIS IS GOOD"]


def test_a_field_of_a_json_text_tells_tenants_apart_like_a_field() -> None:
    """As where a request's body is handed to a graph whole."""
    world, notes = World(), {"ann": "the diagnosis is bad", "ben": "the diagnosis is good"}
    model = Chat(world)

    def explain(state: State) -> Any:
        org = json.loads(state["c"])["org"]
        return model.invoke(f"Explain to {org}: {notes[org].upper()}, {state['q']}").content

    fast = accelerate(after_thinking(world, explain))
    topics = ("volcanoes of Iceland", "glaciers of Norway", "rivers of Siberia", "deserts of Chile")
    for org, topic in zip(("ann", "ann", "ann", "ben"), topics, strict=True):
        world.forget()
        fast.invoke({"q": topic, "c": json.dumps({"about": topic, "org": org})})
        assert accel.settle()
    assert world.texts("Explain") == ["Explain to ben: THE DIAGNOSIS IS GOOD, deserts of Chile"]


@pytest.mark.parametrize("read", ["get", "search", "runtime", "batch"])
def test_what_is_found_in_langgraph_s_store_is_in_no_plan(read: str) -> None:
    world, store = World(), InMemoryStore()
    model = Chat(world)

    def text() -> str:
        found: BaseStore = get_store() if read != "runtime" else get_runtime().store  # type: ignore[assignment]
        if read == "search":
            return str(found.search(("notes",))[0].value["text"])
        item = found.batch([GetOp(("notes",), "it")])[0] if read == "batch" else found.get(("notes",), "it")
        return str(item.value["text"])  # type: ignore[union-attr]

    def explain(state: State) -> Any:
        return model.invoke(f"Explain: {text()} On {state['q']}").content

    fast = accelerate(after_thinking(world, explain, store=store))
    topics = ("volcanoes of Iceland", "glaciers of Norway", "rivers of Siberia", "deserts of Chile")
    for org, topic in zip(("ann", "ann", "ann", "ben"), topics, strict=True):
        world.forget()
        store.put(("notes",), "it", {"text": f"The confidential playbook of the house of {org}."})
        fast.invoke({"q": topic})
        assert accel.settle()
    assert world.texts("Explain") == ["Explain: The confidential playbook of the house of ben. On deserts of Chile"]
