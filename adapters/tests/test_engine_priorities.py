"""What engines are told about calls: whose they are, how deep, and whether the program waits for them."""

from __future__ import annotations

from typing import Any

import pytest

import accel
from accel import engine
from accel.engine import Priority
from accel.run.calls.batch import Batch, scope_of
from adapters.tests.core_fakes import Chat, Embed, OwnedStore, State, World, chain, three, train


def watched(world: World) -> list[tuple[str, Priority, int]]:
    """The calls that reach components from now on: input, priority, and its value at that moment."""
    seen: list[tuple[str, Priority, int]] = []
    answer = world.answer

    def look(text: str) -> str:
        urgency = engine.priority.get()
        seen.append((text, urgency, urgency.value))
        return answer(text)

    world.answer = look
    return seen


def test_calls_of_a_run_say_whose_they_are_and_how_deep() -> None:
    world = World()
    fast = accel.accelerate(three(world, Chat(world=world)))
    train(fast)
    seen = watched(world)
    began = engine.priority.get()
    for topic in ("moss", "fern"):
        fast.invoke({"q": topic})
    assert len({urgency.run for _, urgency, _ in seen}) == 2 and all(urgency.run for _, urgency, _ in seen)
    first, second = sorted({urgency.run for _, urgency, _ in seen})
    arrivals = {urgency.run: urgency.arrived_s for _, urgency, _ in seen}
    assert arrivals[first] < arrivals[second], "names ascend as runs begin"
    depths = {node.schedule.depth for node in fast.plan.graph.nodes if node.op.engine == "llm"}
    assert {urgency.depth for _, urgency, _ in seen} <= depths
    assert {value for _, _, value in seen} <= {0, 1}
    assert engine.priority.get() is began, "the caller's own is left alone"


def test_without_early_work_demands_are_as_deep_as_their_nodes() -> None:
    world = World()
    graph = three(world, Chat(world=world))
    fast = accel.accelerate(graph)
    train(fast)
    off = accel.accelerate(graph, plan=fast.plan, speculate="off")
    seen = watched(world)
    off.invoke({"q": "moss"})
    in_order = [node.schedule.depth for node in fast.plan.graph.nodes if node.op.engine == "llm"]
    assert [urgency.depth for _, urgency, _ in seen] == in_order
    assert [value for _, _, value in seen] == [0] * len(in_order)


@pytest.mark.parametrize("speculate", ["likely", "off"])
@pytest.mark.parametrize("iterated", [False, True])
def test_the_runs_of_a_batch_are_one_to_an_engine(speculate: Any, iterated: bool) -> None:
    world = World()
    graph = three(world, Chat(world=world))
    fast = accel.accelerate(graph)
    train(fast)
    fast = accel.accelerate(graph, plan=fast.plan, speculate=speculate)
    seen = watched(world)
    began = engine.priority.get()
    inputs = [{"q": topic} for topic in ("moss", "fern", "heather")]
    fast.batch(iter(inputs) if iterated else inputs)
    assert len({urgency.run for _, urgency, _ in seen}) == 1 and all(urgency.batch for _, urgency, _ in seen)
    assert {urgency.depth for _, urgency, _ in seen} > {0}, "what depends on them is known as in any run"
    assert engine.priority.get() is began
    assert len({urgency.query for _, urgency, _ in seen}) == len(inputs), "but told apart"
    seen.clear()
    fast.invoke({"q": "ivy"})
    assert seen and not any(urgency.batch for _, urgency, _ in seen)


def test_calls_say_when_what_they_begin_with_is_used_again() -> None:
    world = World()
    model = Chat(world=world)

    def draft(state: State) -> State:
        return {"a": model.invoke(f"{state['q']}: what is it?").content}

    def check(state: State) -> State:
        return {"b": model.invoke(f"{state['q']}: is it right that {state['a']}?").content}

    fast = accel.accelerate(chain(("draft", draft), ("check", check)))
    train(fast)
    seen = watched(world)
    fast.invoke({"q": "moss"})
    assert {text.partition(": ")[2][:4]: urgency.next_use for text, urgency, _ in seen} == {"what": 1, "is i": 0}


def test_a_call_of_a_batch_that_nobody_follows_says_so_too() -> None:
    world = World()
    seen = watched(world)
    batch = Batch()
    with scope_of(batch):
        Chat(world=world).invoke("Name a moss")
    Chat(world=world).invoke("Name a fern")
    assert [(urgency.batch, urgency.run, value) for _, urgency, value in seen] == [
        (True, batch.name, 0),
        (False, "", 0),
    ]


class EmbeddingStore(OwnedStore):
    """Embeds what it is given."""

    def __init__(self, world: World, embed: Embed) -> None:
        super().__init__(world)
        self.embed = embed

    def add_texts(self, texts: Any, metadatas: Any = None, **kwargs: Any) -> list[str]:
        self.embed.embed_documents(list(texts))
        return super().add_texts(texts, metadatas, **kwargs)


def test_a_call_that_is_part_of_another_is_at_least_as_deep() -> None:
    world = World()
    store, model = EmbeddingStore(world, Embed(world)), Chat(world=world)

    def index(state: State) -> State:
        store.add_texts([f"all about {state['q']}"])
        return {"a": "indexed"}

    def look(state: State) -> State:
        found = store.similarity_search(state["q"], k=9)
        return {"b": model.invoke(f"Sum up: {found[-1].page_content}").content}

    fast = accel.accelerate(chain(("index", index), ("look", look)))
    train(fast)
    seen = watched(world)
    fast.invoke({"q": "moss"})
    depths = {text: urgency.depth for text, urgency, _ in seen}
    assert depths["all about moss"] >= depths["add all about moss"] > 0
