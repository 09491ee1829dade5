"""Invariants 4 and 5: a result retires once; reads never pass writes."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langgraph.types import RetryPolicy

import accel
from accel import accelerate
from adapters.tests.core_fakes import (
    Chat,
    Embed,
    OwnedStore,
    ReadonlyStore,
    RemoteChat,
    SampledChat,
    State,
    Store,
    StreamingChat,
    World,
    chain,
    three,
    train,
)

TOPIC = "beaches of Portugal"
A = f"answer to <Alpha asks: {TOPIC}>"


def early_before(world: World, node: str, text: str) -> None:
    """Let `node` begin only after an early call with `text` is over."""
    world.hooks[node] = lambda: world.wait_early(text)


# --- 4. a result retires once ---------------------------------------------------------------------------------------


def test_equal_prompts_get_a_sample_each() -> None:
    world = World()
    model = SampledChat(world)

    def ask(state: State) -> State:
        world.node("ask")
        return {"b": [model.invoke(f"Beta asks: {state['q']}") for _ in range(3)]}

    fast = accelerate(chain(("first", lambda state: {"a": model.invoke(f"Alpha asks: {state['q']}").content}),
                            ("ask", ask)))  # fmt: skip
    for topic in ("volcanoes of Iceland", "glaciers of Norway", TOPIC):
        world.forget()
        messages = fast.invoke({"q": topic})["b"]
        assert accel.settle()
        assert len({message.content for message in messages}) == 3
        assert len(world.texts("Beta asks")) == 3, "no sample is used twice, none is made in vain"


def test_an_embedding_is_made_once_and_handed_out_as_copies() -> None:
    world = World()
    embed = Embed(world)

    def a(state: State) -> State:
        first = embed.embed_query(state["q"])
        kept = list(first)
        first.append(13.0)
        first[0] = -1.0
        second = embed.embed_query(state["q"])
        second.clear()
        return {"a": kept, "b": embed.embed_query(state["q"])}

    fast = accelerate(chain(("a", a)))
    result = fast.invoke({"q": TOPIC})
    assert result["a"] == result["b"] == [float(len(TOPIC)), 1.0]
    assert len(world.calls) == 1


def test_lists_of_embeddings_are_copied_inside_too() -> None:
    world = World()
    embed = Embed(world)

    def a(state: State) -> State:
        first = embed.embed_documents([state["q"], "more"])
        kept = [list(vector) for vector in first]
        first[0][0] = -1.0
        return {"a": kept, "b": embed.embed_documents([state["q"], "more"])}

    result = accelerate(chain(("a", a))).invoke({"q": TOPIC})
    assert result["a"] == result["b"]
    assert len(world.calls) == 2


def test_the_learner_keeps_what_was_answered_not_what_the_program_made_of_it() -> None:
    world = World()
    model = Chat(world)

    def a(state: State) -> State:
        message = model.invoke(f"Alpha asks: {state['q']}")
        kept = message.content
        message.content = "changed"
        return {"a": kept}

    def b(state: State) -> State:
        return {"b": model.invoke(f"Beta reads: {state['a']}").content}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)
    assert "Beta reads: {a.decode.content}" in str(fast.plan.graph)
    assert fast.invoke({"q": TOPIC})["b"] == f"answer to <Beta reads: {A}>"


def test_a_retry_gets_calls_of_its_own() -> None:
    world = World()
    model = SampledChat(world)
    fail = {"once": False}

    def a(state: State) -> State:
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        answer = model.invoke(f"Beta asks: {state['q']}").content
        if fail.pop("once", False):
            raise ConnectionError(answer)
        return {"b": answer}

    builder = chain(("a", a), ("b", b)).builder
    builder.nodes["b"].retry_policy = RetryPolicy(max_attempts=2, initial_interval=0.001, retry_on=ConnectionError)
    fast = accelerate(builder.compile())
    train(fast)
    world.forget()
    fail["once"] = True
    fast.invoke({"q": TOPIC})
    assert world.visits == ["b", "b"]
    assert len(world.texts("Beta asks")) == 2


# --- 5. reads never pass writes --------------------------------------------------------------------------------------


def reading(world: World, store: Store) -> Any:
    """a asks, b reads what the store has on the question, c asks about what was read."""
    model = Chat(world)

    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        found = store.similarity_search(f"Beta looks for {state['q']}")
        return {"b": [document.page_content for document in found]}

    def c(state: State) -> State:
        world.node("c")
        return {"c": model.invoke(f"Gamma reads: {'; '.join(state['b'])}").content}

    fast = accelerate(chain(("a", a), ("b", b), ("c", c)))
    train(fast)
    world.forget()
    return fast


ROWS = {"1": "the first thing that is known", "2": "the second thing that is known"}


def test_an_early_read_of_a_foreign_store_is_read_again_after_an_invisible_write() -> None:
    world = World()
    store = Store(world, ROWS)
    fast = reading(world, store)

    def write() -> None:
        world.wait_early("Beta looks")
        store.rows["1"] = "something newer"

    world.hooks["b"] = write
    assert fast.invoke({"q": TOPIC})["b"] == ["something newer", ROWS["2"]]


def test_an_early_read_of_a_foreign_store_feeds_what_comes_after_it() -> None:
    world = World()
    fast = reading(world, Store(world, ROWS))
    early_before(world, "b", "Gamma reads")
    result = fast.invoke({"q": TOPIC})
    assert result["c"] == "answer to <Gamma reads: " + "; ".join(ROWS.values()) + ">"
    assert len(world.texts("Beta looks", early=False)) == 1, "the program's own read still happens"
    assert world.texts("Gamma reads", early=False) == [], "what was derived retires by exact match"


@pytest.mark.parametrize("cls", [OwnedStore, ReadonlyStore])
def test_an_early_read_of_an_owned_or_readonly_store_retires(cls: type[Store]) -> None:
    world = World()
    fast = reading(world, cls(world, ROWS))
    early_before(world, "b", "Beta looks")
    fast.invoke({"q": TOPIC})
    assert world.texts("Beta looks", early=False) == []


@pytest.mark.parametrize("within_run", [True, False])
def test_a_write_between_issue_and_demand_makes_the_program_read_again(within_run: bool) -> None:
    world = World()
    store = OwnedStore(world, ROWS)
    fast = reading(world, store)

    def write() -> None:
        world.wait_early("Beta looks")
        if within_run:
            store.add_texts(["something newer"])
        else:
            other = threading.Thread(target=store.add_texts, args=(["something newer"],))
            other.start()
            other.join()

    world.hooks["b"] = write
    assert fast.invoke({"q": TOPIC})["b"] == [*ROWS.values(), "something newer"]


def test_no_read_is_issued_past_a_write_of_the_program() -> None:
    world = World()
    store, model = OwnedStore(world), Chat(world)

    def a(state: State) -> State:
        world.node("a")
        answer = model.invoke(f"Alpha asks: {state['q']}").content
        store.add_texts([str(answer)])
        return {"a": answer}

    def b(state: State) -> State:
        return {"b": [d.page_content for d in store.similarity_search(f"Beta looks for {state['q']}", k=100)]}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)
    world.forget()
    world.hooks["a"] = lambda: accel.settle()  # type: ignore[assignment]
    assert fast.invoke({"q": TOPIC})["b"][-1] == A
    order = [call.text for call in world.calls if call.component == "store"]
    assert order == [f"add {A}", f"Beta looks for {TOPIC}"]


def test_the_async_twins_share_the_resource() -> None:
    world = World()
    store = OwnedStore(world, ROWS)
    fast = reading(world, store)

    def write() -> None:
        world.wait_early("Beta looks")
        other = threading.Thread(target=lambda: asyncio.run(store.aadd_texts(["something newer"])))
        other.start()
        other.join()

    world.hooks["b"] = write
    assert fast.invoke({"q": TOPIC})["b"] == [*ROWS.values(), "something newer"]


def test_partial_decodes_give_the_unstreamed_answer() -> None:
    world = World()
    world.answer = lambda text: "1. first of all~\n2. then the second~\n3. and the third" if "List" in text else text
    model = StreamingChat(world)

    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"List things about {state['q']}").content}

    def b(state: State) -> State:
        lines = [line.split(". ", 1)[1] for line in state["a"].split("\n")]
        return {"b": [model.invoke(f"Explain more of: {line}").content for line in lines]}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)
    world.forget()
    gate = world.gates["piece 2"] = threading.Event()
    outcome: list[Any] = []
    program = threading.Thread(target=lambda: outcome.append(fast.invoke({"q": TOPIC})))
    program.start()
    world.wait_early("Explain more of: first of all", over=False)
    assert not outcome, "the list is still being decoded"
    gate.set()
    program.join()
    assert outcome[0]["a"] == "1. first of all\n2. then the second\n3. and the third"
    assert outcome[0]["b"] == [f"Explain more of: {x}" for x in ("first of all", "then the second", "and the third")]


def test_a_model_is_remote_unless_somebody_says_otherwise() -> None:
    world = World()
    fast = accelerate(three(world, RemoteChat(world)))
    train(fast, ("one topic", "two topics", "three topics"))
    assert "its endpoint has not seen all values yet" in str(fast.report())
