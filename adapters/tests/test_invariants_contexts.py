"""Invariant 10, context by context: everything that comes in beside the input is a dimension of its own."""

from __future__ import annotations

import contextvars
import itertools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from pydantic import BaseModel

import accel
from accel import accelerate
from adapters.tests.catching_up import catch_up
from adapters.tests.core_fakes import Chat, State, World, after_thinking, chain

REQUEST: ContextVar[Any] = ContextVar("invariants_contexts_request")
TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "rivers of Siberia", "deserts of Chile", "forests of Gabon")
NOTES = {"ann": "the diagnosis is bad", "ben": "the diagnosis is good", "eve": "the diagnosis is open"}
_ids = itertools.count(1)

Ask = Callable[[Any, str, str], Any]
"""Runs a program for a tenant, on a topic."""


@dataclass
class Request:
    tenant: str
    id: int = field(default_factory=lambda: next(_ids))


class User(BaseModel):
    name: str


class Plain:
    def __init__(self, tenant: str) -> None:
        self.number, self.user = next(_ids), User(name=tenant)


@dataclass
class Runtime:
    tenant: str
    request: int


def in_var(value: Any, fast: Any, topic: str) -> Any:
    def run() -> Any:
        REQUEST.set(value)
        return fast.invoke({"q": topic})

    return contextvars.copy_context().run(run)


def by_object(tenant: str, fast: Any, topic: str) -> Any:
    return in_var(Request(tenant), fast, topic)


def by_plain_object(tenant: str, fast: Any, topic: str) -> Any:
    return in_var(Plain(tenant), fast, topic)


def by_dict(tenant: str, fast: Any, topic: str) -> Any:
    return in_var({"tenant": tenant, "id": next(_ids)}, fast, topic)


def by_configurable(tenant: str, fast: Any, topic: str) -> Any:
    return fast.invoke({"q": topic}, {"configurable": {"tenant": tenant, "thread_id": str(next(_ids))}})


def by_metadata(tenant: str, fast: Any, topic: str) -> Any:
    return fast.invoke({"q": topic}, {"metadata": {"tenant": tenant, "request": next(_ids)}})


def by_tags(tenant: str, fast: Any, topic: str) -> Any:
    return fast.invoke({"q": topic}, {"tags": [f"tenant:{tenant}", f"request:{next(_ids)}"]})


def by_bare_tag(tenant: str, fast: Any, topic: str) -> Any:
    return fast.invoke({"q": topic}, {"tags": [tenant], "metadata": {"request": next(_ids)}})


def by_thread(tenant: str, fast: Any, topic: str) -> Any:
    return fast.invoke({"q": topic}, {"configurable": {"thread_id": tenant}})


def by_runtime_context(tenant: str, fast: Any, topic: str) -> Any:
    return fast.invoke({"q": topic}, context=Runtime(tenant, next(_ids)))


def by_runtime_dict(tenant: str, fast: Any, topic: str) -> Any:
    return fast.invoke({"q": topic}, context={"tenant": tenant, "request": next(_ids)})


def by_field(tenant: str, fast: Any, topic: str) -> Any:
    return fast.invoke({"q": topic, "c": tenant})


def by_nested_field(tenant: str, fast: Any, topic: str) -> Any:
    return fast.invoke({"q": topic, "c": {"user": {"org": f"{tenant.title()} Corp", "seats": 3}}})


def by_listed_field(tenant: str, fast: Any, topic: str) -> Any:
    return fast.invoke({"q": topic, "c": [{"role": "user", "id": tenant, "says": f"please tell me of {topic}"}]})


WAYS = (
    by_object, by_plain_object, by_dict, by_configurable, by_metadata, by_tags, by_bare_tag, by_thread,
    by_runtime_context, by_runtime_dict,
)  # fmt: skip
current = ["nobody"]
"""The tenant, as the program knows it."""


def program(world: World, prompt: Callable[[str, str], str]) -> Any:
    """b's prompt is made of the question and of the tenant."""
    model = Chat(world)

    def a(state: State) -> State:
        world.node("a")
        return {"a": "ready"}

    def b(state: State) -> State:
        world.node("b")
        return {"b": model.invoke(prompt(state["q"], current[0])).content}

    builder = StateGraph(State, context_schema=Runtime)
    builder.add_node("a", a)
    builder.add_node("b", b)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", END)
    return builder.compile()


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    current[0] = "nobody"


def ask(way: Ask, tenant: str, fast: Any, topic: str) -> Any:
    current[0] = tenant
    result = way(tenant, fast, topic)  # type: ignore[arg-type]
    assert accel.settle()
    return result


@pytest.mark.parametrize("way", WAYS)
def test_many_requests_of_one_tenant_say_nothing_about_another(way: Ask) -> None:
    """The texts are the program's own, which one depends on the tenant."""
    world = World()
    fast = accelerate(program(world, lambda q, tenant: f"{'Console' if tenant == 'ann' else 'Praise'} us for {q}."))
    for topic in TOPICS[:4]:
        ask(way, "ann", fast, topic)
    world.forget()
    ask(way, "ben", fast, TOPICS[4])
    assert world.texts() == [f"Praise us for {TOPICS[4]}."]


@pytest.mark.parametrize("way", [way for way in WAYS if way is not by_bare_tag])
def test_what_two_tenants_have_shown_is_early_for_a_third(way: Ask) -> None:
    """The program's own text: nothing of it depends on who asks."""
    world = World()
    fast = accelerate(program(world, lambda q, tenant: f"Write a short note about {q}."))
    for tenant, topic in zip(("ann", "ben", "ann", "ben"), TOPICS, strict=False):
        ask(way, tenant, fast, topic)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("Write a short note")
    ask(way, "eve", fast, TOPICS[4])
    assert len(world.texts("Write", early=True)) == 1


@pytest.mark.parametrize("way", [by_object, by_configurable, by_metadata, by_tags, by_runtime_context])
def test_what_one_tenant_has_shown_is_early_for_it_whatever_the_request(way: Ask) -> None:
    world = World()
    fast = accelerate(program(world, lambda q, tenant: f"Write a short note about {q}."))
    for topic in TOPICS[:3]:
        ask(way, "ann", fast, topic)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("Write a short note")
    ask(way, "ann", fast, TOPICS[4])
    assert len(world.texts("Write", early=True)) == 1


def test_an_object_that_cannot_be_compared_equals_nothing() -> None:
    world = World()
    fast = accelerate(program(world, lambda q, tenant: f"About {q}: {NOTES[tenant].upper()}"))
    for topic in TOPICS[:4]:
        current[0] = "ann"
        in_var(object(), fast, topic)
        assert accel.settle()
    world.forget()
    current[0] = "ben"
    in_var(object(), fast, TOPICS[4])
    assert world.texts() == [f"About {TOPICS[4]}: THE DIAGNOSIS IS GOOD"]
    report = str(fast.report())
    assert "invariants_contexts_request" in report and "plan_scope" in report


def test_text_that_is_nobody_s_known_is_used_in_no_other_tenant_s_run() -> None:
    """Two tenants happen to have the same text; a third one has not."""
    world, notes = World(), {"ann": "the diagnosis is bad", "ben": "the diagnosis is bad", "eve": "nothing was found"}
    fast = accelerate(program(world, lambda q, tenant: f"About {q}: {notes[tenant].upper()}"))
    for tenant, topic in zip(("ann", "ben", "ann", "ben"), TOPICS, strict=False):
        ask(by_configurable, tenant, fast, topic)
    world.forget()
    ask(by_configurable, "eve", fast, TOPICS[4])
    assert world.texts() == [f"About {TOPICS[4]}: NOTHING WAS FOUND"]
    assert "neither the program's nor a known value" in str(fast.report())


@pytest.mark.parametrize("way", [by_field, by_nested_field, by_listed_field])
def test_text_looked_up_by_a_field_of_the_input_is_used_for_no_other_value(way: Ask) -> None:
    """A question is a new one each time, and says nothing about whose the text is."""
    world = World()
    fast = accelerate(program(world, lambda q, tenant: f"About {q}: {NOTES[tenant].upper()}"))
    for topic in TOPICS[:3]:
        ask(way, "ann", fast, topic)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("About")
    ask(way, "ann", fast, TOPICS[3])
    assert len(world.texts("About", early=True)) == 1
    del world.hooks["b"]
    world.forget()
    ask(way, "ben", fast, TOPICS[4])
    assert world.texts() == [f"About {TOPICS[4]}: THE DIAGNOSIS IS GOOD"]
    report = " ".join(str(fast.report()).split())
    assert "the input's c" in report and "plan_scope" in report


def test_text_that_is_nobody_s_known_is_not_saved(tmp_path: Any) -> None:
    world, path = World(), tmp_path / "plan.json"
    fast = accelerate(program(world, lambda q, tenant: f"About {q}: {NOTES[tenant].upper()}"))
    for topic in TOPICS[:3]:
        ask(by_thread, "ann", fast, topic)
    fast.save_plan(str(path))
    assert "DIAGNOSIS" not in path.read_text() and "ann" not in path.read_text()


def test_a_runtime_context_that_changes_between_issue_and_demand_counts() -> None:
    world = World()
    model = Chat(world)

    def b(state: State) -> Any:
        runtime: Any = get_runtime(Runtime)
        if state["q"] == TOPICS[4]:
            model.invoke("Look at the context")
            world.wait_early("Write")
            runtime.context.tenant = "somebody else"
        return model.invoke(f"Write about {state['q']}").content

    fast = accelerate(after_thinking(world, b))
    for topic in (*TOPICS[:3], TOPICS[4]):
        fast.invoke({"q": topic}, context=Runtime("ann", 1))
        assert accel.settle()
    assert len(world.texts(f"Write about {TOPICS[4]}", early=False)) == 1


def test_a_chain_s_context_counts_too() -> None:
    from langchain_core.runnables import RunnableLambda

    world = World()
    model = Chat(world)

    def first(q: str) -> str:
        world.node("a")
        return q

    def second(q: str) -> Any:
        world.node("b")
        return model.invoke(f"About {q}: {NOTES[current[0]].upper()}").content

    fast = accelerate(RunnableLambda(first) | RunnableLambda(second))
    for tenant, topic in (*(("ann", topic) for topic in TOPICS[:4]), ("ben", TOPICS[4])):
        world.forget()
        current[0] = tenant
        fast.invoke(topic, {"metadata": {"tenant": tenant, "request": next(_ids)}})
        assert accel.settle()
    assert world.texts() == [f"About {TOPICS[4]}: THE DIAGNOSIS IS GOOD"]


def test_a_graph_without_contexts_is_as_early_as_before() -> None:
    world = World()
    fast = accelerate(chain(*((name, node(world, name)) for name in "ab")))
    for topic in TOPICS[:3]:
        fast.invoke({"q": topic})
        assert accel.settle()
    assert fast.report().retired > 0


def node(world: World, name: str) -> Any:
    model = Chat(world)

    def run(state: State) -> Any:
        world.node(name)
        catch_up()
        return {name: model.invoke(f"{name} asks {state['q']}").content}

    return run
