"""Invariants 6 and 7: what stays here, and how many may be inside a component."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.rate_limiters import InMemoryRateLimiter
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

import accel
from accel import accelerate
from adapters.tests.core_fakes import (
    Chat,
    NarrowChat,
    RemoteChat,
    State,
    World,
    chain,
    three,
    train,
)

TOPIC = "beaches of Portugal"
A, B = f"answer to <Alpha asks: {TOPIC}>", f"answer to <Beta asks: {TOPIC}>"
C = f"answer to <Gamma joins {A} with {B}.>"
RESULT = {"q": TOPIC, "a": A, "b": B, "c": C}


def ready(world: World, model: Any, other: Any = None, graph: Any = None, **options: Any) -> Any:
    """`three` (or `graph`), trained, with nothing in the log."""
    fast = accelerate(graph or three(world, model, other), **options)
    train(fast)
    world.forget()
    return fast


# --- 6. data doesn't leave early ------------------------------------------------------------------------------------


def test_nothing_goes_early_to_a_remote_endpoint_that_has_not_got_it() -> None:
    world = World()
    remote = RemoteChat(world, label="remote")
    fast = ready(world, Chat(world, label="local"), remote)
    for _ in range(2):
        world.forget()
        assert fast.invoke({"q": TOPIC}) == RESULT
        assert [c.text for c in world.calls if c.early and c.component == "remote"] == []
    assert accel.settle() and 'egress="inputs"' in str(fast.report())


def test_a_remote_endpoint_gets_early_what_it_got_before() -> None:
    world = World()
    fast = ready(world, RemoteChat(world))
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    assert fast.invoke({"q": TOPIC}) == RESULT
    assert not world.texts("Alpha asks", early=True), "before the first call it had nothing"


def test_two_remote_endpoints_are_not_one() -> None:
    world = World()
    other = RemoteChat(world, label="other", base_url="https://elsewhere.example.com/v1")
    fast = ready(world, RemoteChat(world, label="remote"), other)
    assert fast.invoke({"q": TOPIC}) == RESULT
    assert accel.settle()
    assert [c.text for c in world.calls if c.early and c.component == "other"] == []


def test_inputs_may_go_early_if_the_user_says_so() -> None:
    world = World()
    fast = ready(world, RemoteChat(world), egress="inputs")
    world.hooks["a"] = lambda: world.wait_early("Beta asks")
    assert fast.invoke({"q": TOPIC}) == RESULT


def test_a_field_that_looks_like_a_private_address_makes_nothing_local() -> None:
    """Which fields of an unlisted class tell where its data goes, nobody knows."""
    world = World()
    fast = ready(world, RemoteChat(world, base_url="http://192.168.1.20:8000/v1"))
    early: list[list[str]] = []
    world.hooks["a"] = lambda: early.append(world.texts(early=True)) if accel.settle() else None
    assert fast.invoke({"q": TOPIC}) == RESULT
    assert early == [[]]


def test_what_a_sanitizer_removed_does_not_leave_through_an_early_call() -> None:
    world = World()
    remote = RemoteChat(world)

    def clean(state: State) -> State:
        world.node("clean")
        return {"a": state["q"].replace("secret", "[removed]")}

    def b(state: State) -> State:
        world.node("b")
        return {"b": remote.invoke(f"Beta asks: {state['a']}").content}

    fast = accelerate(chain(("clean", clean), ("b", b)))
    train(fast, ("volcanoes of Iceland", "glaciers of Norway", "rivers of Finland"))
    world.forget()
    assert fast.invoke({"q": "the secret 4711"})["b"] == "answer to <Beta asks: the [removed] 4711>"
    assert accel.settle()
    assert world.texts() == ["Beta asks: the [removed] 4711"]


def started_in(world: World, fast: Any, config: Any = None, **options: Any) -> list[str]:
    """What was called in a run that may stop on its way."""
    fast.invoke({"q": TOPIC}, config, **options)
    assert accel.settle()
    return world.texts()


class PatientSaver(InMemorySaver):
    """Lets Accel follow the run between its nodes."""

    def put(self, *args: Any, **kwargs: Any) -> Any:
        assert accel.settle()
        return super().put(*args, **kwargs)


BEFORE, AFTER = {"interrupt_before": ["b"]}, {"interrupt_after": ["a"]}


@pytest.mark.parametrize(
    ("where", "at_run"),
    [
        (BEFORE, False),
        (BEFORE, True),
        (AFTER, False),
        (AFTER, True),
    ],
)
def test_nothing_is_issued_past_a_static_interrupt(where: dict[str, list[str]], at_run: bool) -> None:
    world = World()
    options = {} if at_run else where
    fast = accelerate(three(world, Chat(world), checkpointer=PatientSaver(), **options))
    for number, topic in enumerate(("volcanoes of Iceland", "glaciers of Norway")):
        config = {"configurable": {"thread_id": str(number)}}
        fast.invoke({"q": topic}, config)
        fast.invoke(None, config)
        assert accel.settle()
    world.forget()
    config = {"configurable": {"thread_id": "last"}}
    assert started_in(world, fast, config, **(where if at_run else {})) == [f"Alpha asks: {TOPIC}"]
    assert fast.invoke(None, config) == RESULT


def test_nothing_is_issued_past_a_declared_guard_until_it_has_let_the_run_pass() -> None:
    world = World()
    model = Chat(world)

    def guard(state: State) -> State:
        world.node("guard")
        if "forbidden" in state["q"]:
            raise PermissionError(state["q"])
        return {}

    def b(state: State) -> State:
        world.node("b")
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    def c(state: State) -> State:
        world.node("c")
        return {"c": model.invoke(f"Gamma asks: {state['q']}").content}

    builder = chain(("guard", guard), ("b", b), ("c", c)).builder
    builder.nodes["guard"].metadata = {"guard": True}
    fast = accelerate(builder.compile())
    train(fast)
    world.forget()
    with pytest.raises(PermissionError):
        fast.invoke({"q": "forbidden things"})
    assert accel.settle()
    assert world.texts() == []


def test_nothing_is_issued_past_a_node_that_ever_raised() -> None:
    world = World()
    model = Chat(world)

    def check(state: State) -> State:
        world.node("check")
        if "forbidden" in state["q"]:
            raise PermissionError(state["q"])
        return {}

    def b(state: State) -> State:
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    fast = accelerate(chain(("check", check), ("b", b)))
    train(fast)
    for question in ("forbidden things", "more forbidden things"):
        with pytest.raises(PermissionError):
            fast.invoke({"q": question})
    assert accel.settle()
    world.forget()
    with pytest.raises(PermissionError):
        fast.invoke({"q": "the most forbidden things"})
    assert accel.settle()
    assert world.texts() == []


def test_nothing_is_issued_past_a_node_that_ever_interrupted() -> None:
    world = World()
    model = Chat(world)

    def ask(state: State) -> State:
        world.node("ask")
        return {"a": interrupt("May I?")}

    def b(state: State) -> State:
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    fast = accelerate(chain(("ask", ask), ("b", b), checkpointer=InMemorySaver()))
    for number, topic in enumerate(("volcanoes of Iceland", "glaciers of Norway")):
        config = {"configurable": {"thread_id": str(number)}}
        fast.invoke({"q": topic}, config)
        fast.invoke(Command(resume="yes"), config)
        assert accel.settle()
    world.forget()
    assert started_in(world, fast, {"configurable": {"thread_id": "last"}}) == []


# --- 7. no concurrency a component has not agreed to ----------------------------------------------------------------


def test_an_unknown_instance_is_entered_by_one_call_at_a_time() -> None:
    world = World()
    model = NarrowChat(world)

    def a(state: State) -> State:
        world.node("a")
        return {"a": [model.invoke(f"Alpha {i} asks: {state['q']}").content for i in range(4)]}

    def think(state: State) -> State:
        world.node("think")
        return {"c": "thought"}

    def b(state: State) -> State:
        world.node("b")
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    fast = accelerate(chain(("a", a), ("think", think), ("b", b)))
    train(fast, ("volcanoes of Iceland", "glaciers of Norway", "rivers of Finland"))
    world.hooks["think"] = lambda: world.wait_early("Beta asks")  # nobody is inside
    assert fast.invoke({"q": TOPIC})["b"] == B
    assert world.most["chat"] == 1


def test_a_declared_number_of_calls_at_a_time_is_kept() -> None:
    class Pair(Chat):
        pass

    accel.register(Pair, concurrency=2)
    world = World()
    model = Pair(world)

    def a(state: State) -> State:
        world.node("a")
        return {"a": [model.invoke(f"Alpha {i} asks: {state['q']}").content for i in range(5)]}

    fast = accelerate(chain(("a", a)))
    train(fast)
    gate = world.gates["asks: beaches"] = threading.Event()
    run = threading.Thread(target=fast.invoke, args=({"q": TOPIC},))
    run.start()
    world.wait(lambda: world.inside["chat"] == 2)
    assert accel.settle()
    assert world.inside["chat"] == 2
    gate.set()
    run.join()


@pytest.mark.parametrize("limit", [1, 2])
def test_early_and_demanded_work_together_respect_max_concurrency(limit: int) -> None:
    world = World()
    model = Chat(world)

    def a(state: State) -> State:
        world.node("a")
        return {"a": [model.invoke(f"Alpha {i} asks: {state['q']}").content for i in range(5)]}

    fast = accelerate(chain(("a", a)))
    train(fast)
    world.most.clear()
    for topic in (TOPIC, "rivers of Finland"):
        fast.invoke({"q": topic}, {"max_concurrency": limit})
        assert accel.settle()
    assert world.most["chat"] <= limit


def test_a_rate_limited_model_is_not_called_early() -> None:
    world = World()
    limiter = InMemoryRateLimiter(requests_per_second=1e6, max_bucket_size=1e6)
    fast = ready(world, Chat(world, rate_limiter=limiter))
    assert fast.invoke({"q": TOPIC}) == RESULT
    assert world.texts(early=True) == []
    assert "rate limiter" in str(fast.report()) or accel.settle() and "rate limiter" in str(fast.report())


def test_where_a_cache_may_answer_nothing_is_called_early() -> None:
    world = World()
    set_llm_cache(InMemoryCache())
    try:
        fast = ready(world, Chat(world))
        assert fast.invoke({"q": TOPIC}) == RESULT
        assert fast.invoke({"q": TOPIC}) == RESULT
        assert len(world.calls) == 3, "the second run is answered by the cache"
        assert world.texts(early=True) == []
    finally:
        set_llm_cache(None)
