"""An early call must not send anything away through a component it calls itself (invariant 6)."""

from __future__ import annotations

import threading
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langgraph.graph import END, START, StateGraph

import accel


class RemoteEmbeddings(Embeddings):
    """Sends every text to a provider; knows how often it was asked, and when the program said it was its turn."""

    base_url = "https://api.example.com/v1"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        LOG.append((text, TURN[-1]))
        ASKED.set()
        return [float(len(text))]


class LocalStore(VectorStore):
    def __init__(self, embedding: Embeddings) -> None:
        self.embedding = embedding

    def add_texts(self, texts: Any, metadatas: Any = None, **kwargs: Any) -> list[str]:
        return []

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **kwargs: Any) -> LocalStore:
        return cls(embedding)

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        vector = self.embedding.embed_query(query)
        return [Document(page_content=f"{query} {vector}")]


LOG: list[tuple[str, str]] = []
ASKED = threading.Event()
TURN = ["nobody"]


class State(TypedDict, total=False):
    question: str
    found: list[str]


def build(store: LocalStore) -> Any:
    def think(state: State) -> State:
        TURN.append("think")
        accel.settle()  # all that was published has been followed: what may be issued is
        if state["question"].endswith("?"):
            assert ASKED.wait(60)
        return {}

    def search(state: State) -> State:
        TURN.append("search")
        return {"found": [d.page_content for d in store.similarity_search(state["question"])]}

    graph = StateGraph(State)
    graph.add_node("think", think)
    graph.add_node("search", search)
    graph.add_edge(START, "think")
    graph.add_edge("think", "search")
    graph.add_edge("search", END)
    return graph.compile()


@pytest.mark.parametrize("egress", ["known", "inputs"])
def test_a_local_search_does_not_tell_a_remote_embedder_early(egress: str) -> None:
    LOG.clear()
    TURN[:] = ["nobody"]
    embeddings = RemoteEmbeddings()
    accel.register(embeddings, pure=True, concurrency=4)
    store = accel.register(LocalStore(embeddings), pure=True, concurrency=4, local=True, readonly=True)
    fast = accel.accelerate(build(store), egress=egress)
    for number in range(4):
        ASKED.clear()
        mark = "?" if egress == "inputs" and number == 3 else "."  # then the first node waits for the early search
        assert fast.invoke({"question": f"what is the capital of country {number}{mark}"})["found"]
        accel.settle()
    early = [text for text, turn in LOG if turn != "search"]
    if egress == "known":
        assert early == []
    else:
        assert early, "allowed, and nothing stands in the way: the check above must be able to fail"
