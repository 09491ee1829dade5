"""What a program leaves out of a list, as somebody may not see it, nobody is asked about."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core import VectorStoreIndex
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

import accel
from accel.run.scope import scope

from .core_fakes import Chat, State, Store, World, chain
from .llamaindex_programs import BatchedLetters, Scribe

ORDERS = {
    "tides": "theirs mine theirs mine mine",
    "reefs": "mine theirs mine theirs mine",
    "moors": "mine mine theirs theirs mine",
    "fjords": "mine mine mine theirs theirs",
}
"""Whose documents a search finds, the best one first."""


class Found(Store):
    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self.world.serve("store", query)
        owners = ORDERS[query].split()
        return [
            Document(page_content=f"page {number} on {query}, {owner}", metadata={"owner": owner})
            for number, owner in enumerate(owners)
        ]


def notes(world: World, model: Any, apart: bool) -> Any:
    """A note on each document that is mine. `apart`: a node of its own leaves the others out."""
    store = Found(world)

    def find(state: State) -> State:
        found = store.similarity_search(state["q"])
        return {"a": [each for each in found if each.metadata["owner"] == "mine"] if apart else found}

    def note(state: State) -> State:
        told = []
        for document in state["a"]:
            if document.metadata["owner"] == "mine":
                told.append(model.invoke(f"Note {document.page_content} for {state['q']}").content)
                assert accel.settle(), "what this call has shown is learnt"
        return {"c": told}

    return chain(("find", find), ("note", note))


@pytest.mark.parametrize("apart", [False, True])
def test_what_a_node_has_left_out_before_is_not_asked_about_inside_a_run(apart: bool) -> None:
    """The first two documents are mine, so this run alone looks as if all were asked about."""
    world = World()
    accel.register(Found, readonly=True, local=True, concurrency=8)
    fast = accel.accelerate(notes(world, Chat(world), apart))
    for topic in ORDERS:
        fast.invoke({"q": topic})
        assert accel.settle()
    assert [text for text in world.texts("Note") if "theirs" in text] == []
    assert len(world.texts("Note")) == sum(owners.count("mine") for owners in map(str.split, ORDERS.values()))


class Mine(BaseNodePostprocessor):
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [node for node in nodes if node.node.metadata["owner"] == "mine"]


ASKED: list[str] = []


class Reader(Scribe):
    def _answer(self, prompt: str) -> str:
        ASKED.append(prompt)
        here = scope.get()
        if here is not None and not here.early:
            assert accel.settle(), "what the calls before have shown is learnt"
        return super()._answer(prompt)


def test_what_a_postprocessor_has_left_out_is_not_asked_about_in_the_first_request() -> None:
    accel.register(Reader, pure=True, local=True, concurrency=8)
    texts = [f"What is on page {number}? (mine)" for number in range(3)]
    texts += [f"Zebras zigzag in zone {number}. (theirs)" for number in range(3)]
    nodes = [TextNode(text=text, metadata={"owner": text.split("(")[1].strip(")")}) for text in texts]
    engine = VectorStoreIndex(nodes, embed_model=BatchedLetters()).as_query_engine(
        llm=Reader(), similarity_top_k=6, node_postprocessors=[Mine()], response_mode="accumulate"
    )
    fast = accel.accelerate(engine)
    for question in ("What is on the page?", "What is on that page?"):
        fast.query(question)
        assert accel.settle()
    assert len(ASKED) == 6
    assert not any("theirs" in prompt for prompt in ASKED)


def test_what_a_run_leaves_out_late_is_asked_about_by_none_after_it() -> None:
    """After many runs that left nothing out, and although no early call of it was in vain: it was not made."""
    world = World()
    model = Chat(world)

    def work(state: State) -> State:
        for note in state["a"]:
            if not note.startswith("secret"):
                model.invoke(f"Note on {note}")
                world.node("asked")
        return {"b": "done"}

    fast = accel.accelerate(chain(("work", work)), budget=accel.Budget(max_issued=3))

    def run(number: int, secret: int | None = None) -> list[str]:
        world.forget()
        fast.plan.pace.news()
        notes = [f"{place} of lighthouse {number}, keeper {place * number}" for place in range(7)]
        fast.invoke({"q": "", "a": [f"secret {note}" if at == secret else note for at, note in enumerate(notes)]})
        assert accel.settle()
        return world.texts(early=True)

    for number in range(30):
        made = run(number)
    assert made, "this would show nothing"
    run(30, secret=5)
    for number in range(31, 34):
        assert not [text for text in run(number, secret=2) if "secret" in text]
