"""Declared components for the traps of waiting: they call each other, take locks, and stall where a test says so."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langgraph.graph import START, StateGraph

import accel
from compat_tests.traps import WAIT_S, Chat, State, result_of, text_of

LATER: defaultdict[str, threading.Event] = defaultdict(threading.Event)
"""What components wait for, by name."""
ENTERED: defaultdict[str, threading.Event] = defaultdict(threading.Event)
"""Texts that a component has been entered with."""


class SelfCalling(Embeddings):
    """A query is a list of one document."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), float(ord(text[0])), 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        await asyncio.sleep(0)
        return (await self.aembed_documents([text]))[0]


class Locked(SelfCalling):
    """One call at a time, whoever makes it; but for calls inside calls."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        with self.lock:
            return super().embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        with self.lock:
            return self.embed_documents([text])[0]


class EmbeddingRetriever(BaseRetriever):
    embedding: Any

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        return [Document(str(self.embedding.embed_query(query)))]

    async def _aget_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        return [Document(str(await self.embedding.aembed_query(query)))]


class Stalling(Chat):
    """A prompt with `stall` in it is answered after `LATER["stall"]`; awaited, never."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        text = text_of(messages)
        ENTERED[text].set()
        if "stall" in text:
            LATER["stall"].wait()
        return result_of(f"about {text}")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        text = text_of(messages)
        ENTERED[text].set()
        if "stall" in text:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return result_of(f"about {text}")


class Guarded(Chat):
    """Takes a lock that the program holds, too."""

    lock: Any

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        with self.lock:
            return result_of(f"about {text_of(messages)}")


class SlowShelf(VectorStore):
    """Declared, but others may write to it: an early search only feeds predictions. A search that isn't the program's
    own goes on when the program's own has come."""

    def __init__(self) -> None:
        self.demanding = False

    @classmethod
    def from_texts(cls, texts: list[str], embedding: Embeddings, *args: Any, **kwargs: Any) -> SlowShelf:
        raise NotImplementedError

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        ENTERED[query].set()
        if LATER["own search"].is_set() or self.demanding:
            LATER[query].set()
        else:
            LATER[query].wait()
        return [Document(f"found for {query}")]


def shelf(embedding: Embeddings) -> InMemoryVectorStore:
    store = InMemoryVectorStore(embedding)
    store.add_texts(["amber", "basin of cedar", "delta"])
    return store


KINDS: dict[str, Callable[[Any], Any]] = {
    "embeddings": lambda embedding: embedding,
    "store": shelf,
    "retriever": lambda embedding: accel.register(EmbeddingRetriever(embedding=embedding), pure=True, local=True),
}
METHODS = {"embeddings": "embed_query", "store": "similarity_search", "retriever": "invoke"}


def declared(component: Any, n: int) -> Any:
    return accel.register(component, pure=True, local=True, concurrency=n)


def plainly(answer: Any) -> Any:
    return [found.page_content for found in answer] if answer and hasattr(answer[0], "page_content") else answer


def asker(kind: str, n: int, cls: type[Embeddings] = SelfCalling) -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    """A component of this kind around embeddings that call themselves, n at a time: how to ask it."""
    component, method = KINDS[kind](declared(cls(), n)), METHODS[kind]

    def ask(text: str) -> Any:
        return plainly(getattr(component, method)(text))

    async def aask(text: str) -> Any:
        return plainly(await getattr(component, f"a{method}")(text))

    return ask, aask


Node = Callable[[State], Any]


def in_a_row(*nodes: tuple[str, Node]) -> Any:
    graph = StateGraph(State)
    graph.add_sequence(list(nodes))
    graph.add_edge(START, nodes[0][0])
    return graph.compile()


def settled(state: State) -> State:
    """A node: what can be early is."""
    accel.settle(WAIT_S)
    return {}


def given(topic: str) -> State:
    return {"topic": topic, "parts": [f"part {number} of {topic}" for number in range(8)]}


def asks(ask: Callable[[str], Any], *names: str) -> Any:
    """In a loop, one by one, and several at once."""

    def one(name: str) -> Node:
        return lambda state: {"notes": [str(ask(f"{name} on {state['topic']}"))]}

    def loop(state: State) -> State:
        notes = []
        for part in state["parts"]:
            notes.append(str(ask(f"in a loop: {part}")))
            if len(notes) == 3:
                accel.settle(WAIT_S)
        return {"notes": notes}

    def several(state: State) -> State:
        with ThreadPoolExecutor(8) as pool:
            found = [pool.submit(copy_context().run, ask, f"at once: {part}") for part in state["parts"]]
            return {"notes": [str([each.result() for each in found])]}

    nodes = ((name, one(name)) for name in names)
    return in_a_row(("settled", settled), ("loop", loop), *nodes, ("several", several))


def asks_async(ask: Callable[[str], Any], *names: str) -> Any:
    """The same as coroutines."""

    def one(name: str) -> Node:
        async def run(state: State) -> State:
            return {"notes": [str(await ask(f"{name} on {state['topic']}"))]}

        return run

    async def ready(state: State) -> State:
        await asyncio.to_thread(accel.settle, WAIT_S)
        return {}

    async def loop(state: State) -> State:
        notes = []
        for part in state["parts"]:
            notes.append(str(await ask(f"in a loop: {part}")))
            if len(notes) == 3:
                await asyncio.to_thread(accel.settle, WAIT_S)
        return {"notes": notes}

    async def several(state: State) -> State:
        return {"notes": [str(await asyncio.gather(*(ask(f"at once: {part}") for part in state["parts"])))]}

    nodes = ((name, one(name)) for name in names)
    return in_a_row(("settled", ready), ("loop", loop), *nodes, ("several", several))
