"""An ordinary LangGraph program: answer questions about the Python packages installed here from their own descriptions.

Expand the question into search queries, retrieve for each of them, write a note on every passage found, and answer from
the notes. Plain functions on any chat model and any vector store of LangChain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from importlib.metadata import distributions
from operator import itemgetter
from typing import Any, TypedDict, cast

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.vectorstores import VectorStore
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

SHORTEST_DESCRIPTION_WORDS = 500
PASSAGES_PER_PACKAGE = 4  # descriptions begin with what a package is for; many end in years of release notes
PASSAGE_WORDS = 120
QUERIES = 3


class State(TypedDict, total=False):
    question: str
    queries: list[str]
    passages: list[Document]
    notes: list[str]
    answer: str


# --- documents


def package_passages() -> list[Document]:
    """The beginnings of the long descriptions of all installed packages, in passages, by package name."""
    described = {found.name.lower(): cast(Message, found.metadata) for found in distributions() if found.name}
    texts = {name: str(metadata.get_payload() or "") for name, metadata in described.items()}
    passages: list[Document] = []
    for name, text in sorted(texts.items(), key=itemgetter(0)):
        if len(text.split()) >= SHORTEST_DESCRIPTION_WORDS:
            for words in list(_passages(readable(text)))[:PASSAGES_PER_PACKAGE]:
                passages.append(Document(page_content=words, metadata={"package": name}))
    return passages


def readable(text: str) -> str:
    """Without images, badges, HTML tags and the targets of links."""
    text = re.sub(r"<[^>]*>|^\.\. .*$|^\s+:\w+:.*$", " ", text, flags=re.MULTILINE)
    text = re.sub(r"!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])", " ", text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def _passages(text: str) -> Iterator[str]:
    words = text.split()
    for start in range(0, len(words), PASSAGE_WORDS):
        yield " ".join(words[start : start + PASSAGE_WORDS])


def ingest(store: VectorStore) -> int:
    """Put the passages into the store; returns how many there are."""
    passages = package_passages()
    ids = [str(number) for number in range(len(passages))]
    store.add_texts([p.page_content for p in passages], [p.metadata for p in passages], ids=ids)
    return len(passages)


# --- the program


def build_graph(llm: BaseChatModel, store: VectorStore) -> CompiledStateGraph[State, None, State, State]:
    """Input: {"question": str}. Output: the whole state."""
    retriever = store.as_retriever()
    planner = llm.bind(max_tokens=64)
    note_taker = llm.bind(max_tokens=64)
    writer = llm.bind(max_tokens=120)

    def expand(state: State) -> dict[str, Any]:
        prompt = (
            f"Write {QUERIES} different search queries that help to answer the question below. "
            f"Write one query per line and nothing else.\n\nQuestion: {state['question']}"
        )
        lines = planner.invoke(prompt).text.splitlines()
        return {"queries": [line.strip() for line in lines if line.strip()][:QUERIES]}

    def retrieve(state: State) -> dict[str, Any]:
        passages: dict[str | None, Document] = {}
        for query in state["queries"]:
            for passage in retriever.invoke(query):
                passages.setdefault(passage.id, passage)
        return {"passages": list(passages.values())}

    def take_notes(state: State) -> dict[str, Any]:
        notes = []
        for passage in state["passages"]:
            prompt = (
                "Read the passage from the documentation of a Python package. In two or three sentences, note what it "
                f"says that helps to answer the question.\n\nQuestion: {state['question']}\n\n"
                f"Passage from {passage.metadata['package']}:\n{passage.page_content}"
            )
            notes.append(note_taker.invoke(prompt).text)
        return {"notes": notes}

    def answer(state: State) -> dict[str, Any]:
        notes = "\n\n".join(state["notes"])
        prompt = (
            f"Answer the question in one paragraph, using the notes.\n\nQuestion: {state['question']}\n\n"
            f"Notes:\n{notes}"
        )
        return {"answer": writer.invoke(prompt).text}

    builder = StateGraph(State)
    builder.add_node("expand", expand)
    builder.add_node("retrieve", retrieve)
    builder.add_node("take_notes", take_notes)
    builder.add_node("answer", answer)
    builder.add_edge(START, "expand")
    builder.add_edge("expand", "retrieve")
    builder.add_edge("retrieve", "take_notes")
    builder.add_edge("take_notes", "answer")
    builder.add_edge("answer", END)
    return builder.compile()
