"""Loops of one kind of call: a chat model, an embedding model or a retriever is asked once for each item of the input.

They show what a call costs, where programs of other shapes show what it gains. Built like the programs of `served`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

import accel
from corpus.components import Model, Vectors, sequence
from corpus.served import ASYNC, questions

ITEMS = 16
"""Of an input."""
DOCUMENTS = 48

Ask = Callable[[str], Any]
AsyncAsk = Callable[[str], Awaitable[Any]]


class State(TypedDict, total=False):
    items: list[str]
    answers: list[Any]


@dataclass(frozen=True)
class Loop:
    """A graph of one node. `component`: both ways to ask a new component, one that waits by this scale and is vouched
    for, or one that isn't."""

    component: Callable[[float, bool], tuple[Ask, AsyncAsk]]

    def build(self, style: str, scale: float, vouched: bool = True) -> Any:
        asked, asked_async = self.component(scale, vouched)

        def work(state: State) -> State:
            return {"answers": [asked(item) for item in state["items"]]}

        async def awork(state: State) -> State:
            return {"answers": [await asked_async(item) for item in state["items"]]}

        return sequence(State, awork if style == ASYNC else work)

    def ask(self, app: Any, question: str, items: int = ITEMS) -> Any:
        return app.invoke(_input(question, items))

    async def aask(self, app: Any, question: str, items: int = ITEMS) -> Any:
        return await app.ainvoke(_input(question, items))


def _input(question: str, items: int) -> State:
    return {"items": [f"{question} Part {number}." for number in range(items)]}


class UnknownModel(Model):
    """The same, and nobody vouches for it: what is declared of a class doesn't hold for its own methods."""

    _generate, _agenerate = Model._generate, Model._agenerate


class UnknownVectors(Vectors):
    """The same of an embedding model."""

    embed_documents = Vectors.embed_documents
    embed_query, aembed_query = Vectors.embed_query, Vectors.aembed_query


class UnknownStore(InMemoryVectorStore):
    """The same of a vector store."""

    similarity_search, asimilarity_search = (
        InMemoryVectorStore.similarity_search,
        InMemoryVectorStore.asimilarity_search,
    )


def _chat_model(scale: float, vouched: bool) -> tuple[Ask, AsyncAsk]:
    llm = (Model if vouched else UnknownModel)(scale=scale)

    async def asked_async(item: str) -> str:
        return (await llm.ainvoke(f"Answer this in two sentences: {item}")).text

    return lambda item: llm.invoke(f"Answer this in two sentences: {item}").text, asked_async


def _embeddings(scale: float, vouched: bool) -> tuple[Ask, AsyncAsk]:
    model = (Vectors if vouched else UnknownVectors)(scale)

    async def asked_async(item: str) -> list[float]:
        return await model.aembed_query(item)

    return lambda item: model.embed_query(item), asked_async


def _retriever(scale: float, vouched: bool) -> tuple[Ask, AsyncAsk]:
    store = InMemoryVectorStore(Vectors(scale)) if vouched else UnknownStore(UnknownVectors(scale))
    store.add_texts([f"About this: {text}" for text in questions(DOCUMENTS, "documents")])
    if vouched:
        accel.register(store, readonly=True)
    retriever = store.as_retriever(search_kwargs={"k": 2})

    async def asked_async(item: str) -> list[Document]:
        return await retriever.ainvoke(item)

    return retriever.invoke, asked_async


LOOPS = {"chat model": Loop(_chat_model), "embeddings": Loop(_embeddings), "retriever": Loop(_retriever)}
