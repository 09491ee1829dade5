"""The embedding that a search begins with, on its own: when it may, what it is shared with, and what it never does."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest
from langchain_core.vectorstores import InMemoryVectorStore

import accel
import accel_local
from accel import accelerate
from accel.graph.passes import without
from accel.graph.rules import EGRESS
from accel.run.plans.plan import Plan
from accel.run.scope import scope
from adapters.tests.catching_up import catch_up
from adapters.tests.core_fakes import State, World, chain
from adapters.tests.stage_fakes import Coroutines, Elementwise, Narrow, Remote, store_with, vector

TOPICS = ("volcanoes of Iceland", "glaciers of Norway")
TOPIC = "beaches of Portugal"
QUERY = f"query: about {TOPIC}"
TENANT: ContextVar[str] = ContextVar("stages_tenant", default="nobody")


@pytest.fixture
def world() -> World:
    return World()


def found(documents: Any) -> list[str]:
    return [document.page_content for document in documents]


def write_then_search(world: World, store: Any, searches: int = 1) -> Any:
    """Adds a note to the store, and looks for the question there afterwards."""

    def write(state: State) -> State:
        world.node("write")
        number = len(state["q"])
        store.add_texts([f"first note {number}", f"second note {number}"], ids=[f"1 {number}", f"2 {number}"])
        return {"a": number}

    def search(state: State) -> State:
        world.node("search")
        return {"b": [found(store.similarity_search(f"about {state['q']}", k=90 + n)) for n in range(searches)]}

    return chain(("write", write), ("search", search))


def train(fast: Any, world: World) -> None:
    for topic in TOPICS:
        fast.invoke({"q": topic})
        assert accel.settle()
    world.forget()


def embedded(world: World) -> list[tuple[str, bool]]:
    """Embedder and whether it was early, for every embedding of the query."""
    return [(call.component, call.early) for call in world.calls if call.text == QUERY]


def test_a_query_is_embedded_while_the_write_before_its_search_goes_on(world: World) -> None:
    plain = write_then_search(World(), store_with(Elementwise(World())))
    fast = accelerate(write_then_search(world, store_with(Elementwise(world))))
    train(fast, world)
    for topic in TOPICS:
        plain.invoke({"q": topic})
    world.hooks["write"] = lambda: world.wait_early(QUERY)  # before anything is written
    result = fast.invoke({"q": TOPIC})
    assert embedded(world) == [("embed", True)], "the search took the vector that was there"
    assert result == plain.invoke({"q": TOPIC})
    assert {"first note 19", "second note 19"} <= set(result["b"][0]), "and found what had just been written"
    counts = fast.plan.history[-1]
    assert counts.wasted == 0 and counts.retired >= 1
    assert "begins with search.searching.embedding" in str(fast.plan.graph)


async def test_a_query_is_embedded_early_on_the_loop_too(world: World) -> None:
    asked = asyncio.Event()

    class Telling(Coroutines):
        async def aembed_query(self, text: str) -> list[float]:
            asked.set()
            return await super().aembed_query(text)

    store = store_with(accel.register(Telling(world), pure=True, local=True, concurrency=4))

    async def write(state: State) -> State:
        world.node("write")
        if state["q"] == TOPIC:
            await asyncio.wait_for(asked.wait(), 20)
        await store.aadd_texts([f"note on {state['q']}"], ids=[state["q"]])
        return {"a": 1}

    async def search(state: State) -> State:
        return {"b": found(await store.asimilarity_search(f"about {state['q']}", k=9))}

    fast = accelerate(chain(("write", write), ("search", search)))
    for topic in (*TOPICS, TOPIC):
        world.forget()
        asked.clear()
        result = await fast.ainvoke({"q": topic})
        assert accel.settle()
    assert sorted(result["b"]) == [f"note on {topic}" for topic in (TOPIC, *reversed(TOPICS))]
    assert embedded(world) == [("embed", True)]
    assert fast.plan.history[-1].wasted == 0


def test_without_the_pass_the_query_waits_for_the_write(world: World) -> None:
    fast = accelerate(write_then_search(world, store_with(Elementwise(world))), plan=Plan(without("stage")))
    train(fast, world)
    world.hooks["write"] = lambda: world.forget() if embedded(world) else None
    fast.invoke({"q": TOPIC})
    assert [call.text.split(":")[0] for call in world.calls] == ["texts", "query"]


@pytest.mark.parametrize("egress", ["known", "inputs"])
def test_a_remote_embedder_is_not_told_before_the_program_tells_it(world: World, egress: str) -> None:
    fast = accelerate(write_then_search(world, store_with(Remote(world))), egress=egress)
    train(fast, world)
    if egress == "inputs":
        world.hooks["write"] = lambda: world.wait_early(QUERY)
    fast.invoke({"q": TOPIC})
    assert embedded(world) == [("embed", egress == "inputs")]
    if egress == "known":
        assert accel.settle()
        assert fast.plan.reasons["search.searching.embedding"].rule is EGRESS


def test_a_remote_embedder_may_be_asked_early_what_it_has_been_told(world: World) -> None:
    """The write sends the text, the query is a part of it: nothing new leaves."""
    store = store_with(Remote(world))

    def write(state: State) -> State:
        store.add_texts([state["q"]], ids=["it"])
        return {}

    def think(state: State) -> State:
        world.node("think")
        return {}

    def search(state: State) -> State:
        return {"b": found(store.similarity_search(state["q"]))}

    fast = accelerate(chain(("write", write), ("think", think), ("search", search)))
    train(fast, world)
    world.hooks["think"] = lambda: world.wait_early(f"query: {TOPIC}")
    fast.invoke({"q": TOPIC})
    assert [(c.text, c.early) for c in world.calls] == [(f"texts: {TOPIC}", False), (f"query: {TOPIC}", True)]


def test_another_embedder_in_the_store_gets_its_own_call(world: World) -> None:
    store = store_with(Elementwise(world))
    fast = accelerate(write_then_search(world, store))
    train(fast, world)

    def exchange() -> None:
        world.wait_early(QUERY)
        store._embedding = Elementwise(world, "other")

    world.hooks["write"] = exchange
    fast.invoke({"q": TOPIC})
    assert [name for name, _ in embedded(world)] == ["embed", "other"]
    assert fast.plan.history[-1].wasted == 1


def test_an_embedding_that_failed_early_is_asked_again(world: World) -> None:
    fast = accelerate(write_then_search(world, store_with(Elementwise(world))))
    train(fast, world)
    world.errors["query"] = ValueError("the embedder is down")

    def repaired() -> None:
        world.wait_early(QUERY)
        catch_up()  # its failure has been seen
        del world.errors["query"]

    world.hooks["write"] = repaired
    assert fast.invoke({"q": TOPIC})["b"][0]
    assert len(embedded(world)) == 2


def test_an_embedding_that_fails_for_good_is_the_searchs_error(world: World) -> None:
    fast = accelerate(write_then_search(world, store_with(Elementwise(world))))
    train(fast, world)
    world.errors["query"] = ValueError("the embedder is down")
    with pytest.raises(ValueError, match="the embedder is down"):
        fast.invoke({"q": TOPIC})


def test_what_the_user_set_in_a_context_variable_is_what_the_embedder_sees(world: World) -> None:
    class OfTenant(Elementwise):
        def embed_query(self, text: str) -> list[float]:
            self.world.serve(self.name, f"query: {text} of {TENANT.get()}")
            return vector(text)

    store = store_with(accel.register(OfTenant(world), pure=True, local=True, concurrency=4, elementwise=True))

    def write(state: State) -> State:
        store.add_texts(["note"], ids=["1"])
        return {}

    def search(state: State) -> State:
        world.node("search")
        token = TENANT.set("a tenant")
        try:
            return {"b": found(store.similarity_search(state["q"]))}
        finally:
            TENANT.reset(token)

    fast = accelerate(chain(("write", write), ("search", search)))
    train(fast, world)
    fast.invoke({"q": TOPIC})
    assert [call.text for call in world.calls if not call.early][-1] == f"query: {TOPIC} of a tenant"


def test_searches_for_one_query_share_its_embedding(world: World) -> None:
    fast = accelerate(write_then_search(world, store_with(Elementwise(world)), searches=3))
    train(fast, world)
    world.hooks["write"] = lambda: world.wait_early(QUERY)
    result = fast.invoke({"q": TOPIC})
    assert embedded(world) == [("embed", True)]
    assert [len(hits) for hits in result["b"]] == [6, 6, 6]
    assert fast.plan.history[-1].wasted == 0


def test_an_early_search_takes_the_vector_that_is_being_made_for_it(world: World) -> None:
    """Nothing is written: the search is early, too, and joins; when the program comes, both become urgent."""
    store = store_with(Elementwise(world))
    store.add_texts(["something", "something else"])
    urgent: list[Any] = []

    class Watched(Elementwise):
        def embed_query(self, text: str) -> list[float]:
            if TOPIC in text:
                urgent.append(accel.engine.priority.get())
            return super().embed_query(text)

    store._embedding = accel.register(Watched(world), pure=True, local=True, concurrency=4, elementwise=True)

    def think(state: State) -> State:
        world.node("think")
        return {"a": 1}

    def search(state: State) -> State:
        world.node("search")
        return {"b": found(store.similarity_search(f"about {state['q']}"))}

    fast = accelerate(chain(("think", think), ("search", search)))
    train(fast, world)
    world.gates["query"] = gate = threading.Event()
    world.hooks["think"] = lambda: world.wait_early(QUERY, over=False)

    def asked() -> None:
        assert urgent[0].value > 0
        urgent[0].on_raise(gate.set)

    world.hooks["search"] = asked
    assert len(fast.invoke({"q": TOPIC})["b"]) == 2
    assert len(world.texts("query")) == 1
    assert urgent[0].value == 0
    assert fast.plan.history[-1].wasted == 0


def test_an_embedder_for_one_call_at_a_time_is_never_entered_twice(world: World) -> None:
    fast = accelerate(write_then_search(world, store_with(Narrow(world)), searches=2))
    train(fast, world)
    for topic in (TOPIC, "rivers of Peru", "deserts of Chile"):
        fast.invoke({"q": topic})
        assert accel.settle()
    assert world.most["embed"] == 1


def test_a_store_that_may_do_otherwise_is_not_taken_apart(world: World) -> None:
    base = type(store_with(Elementwise(world)))

    class Rewriting(base):  # type: ignore[misc, valid-type]
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> Any:
            return super().similarity_search(f"passage for {query}", k, **kwargs)

    given = store_with(Elementwise(world))
    store = Rewriting(given.embeddings, "stages", dimension=4, engine=given._engine)
    fast = accelerate(write_then_search(world, store))
    train(fast, world)
    fast.invoke({"q": TOPIC})
    assert "begins with" not in str(fast.plan.graph.by_name["search.searching"])
    assert embedded(world) == []


def test_langchains_own_store_is_taken_apart_like_ours(world: World) -> None:
    store = InMemoryVectorStore(Elementwise(world))

    def write(state: State) -> State:
        world.node("write")
        store.add_texts([f"note on {state['q']}"], ids=[state["q"]])
        return {}

    def search(state: State) -> State:
        return {"b": found(store.similarity_search(f"about {state['q']}", k=1))}

    fast = accelerate(chain(("write", write), ("search", search)))
    train(fast, world)
    world.hooks["write"] = lambda: world.wait_early(QUERY)
    fast.invoke({"q": TOPIC})
    assert world.texts("query") == [QUERY]
    assert "micro-batches" not in str(fast.plan.graph), "its additions are its own affair"


def test_a_dropped_embedding_leaves_no_search_waiting(world: World) -> None:
    """The run ends while an early search waits for an early embedding: both are given up, nothing raises."""
    store = store_with(Elementwise(world))

    def think(state: State) -> State:
        world.node("think")
        return {"a": 1}

    def maybe(state: State) -> State:
        world.node("maybe")
        if state["q"] == TOPIC:
            raise RuntimeError("no more")
        return {"b": found(store.similarity_search(f"about {state['q']}"))}

    fast = accelerate(chain(("think", think), ("maybe", maybe)))
    train(fast, world)
    gate = world.gates["query"] = threading.Event()
    world.hooks["think"] = lambda: world.wait_early(QUERY, over=False)
    with pytest.raises(RuntimeError, match="no more"):
        fast.invoke({"q": TOPIC})
    gate.set()
    world.wait(lambda: all(call.over for call in world.calls))
    assert accel.settle()
    assert scope.get() is None
    assert accel_local.run(store._store().count()) == 0
