"""Components that work on the thread of the program alone: early calls find that out, and nobody else does."""

from __future__ import annotations

import sqlite3
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.graph import START, StateGraph

import accel

TOPICS = "tides rivers ice sand reefs wind rain".split()


class State(TypedDict, total=False):
    topic: str
    plan: str
    found: str


class Pages(BaseRetriever):
    database: Any

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [Document(text) for (text,) in self.database.execute("select body from pages where topic = ?", [query])]


class Client:
    """Of nobody's framework."""

    def __init__(self, database: Any) -> None:
        self._database = database

    def find(self, topic: str) -> str:
        (found,) = self._database.execute("select body from pages where topic = ?", [topic]).fetchone()
        return str(found)


accel.register(Pages, readonly=True, local=True)
accel.register(Client, methods=["find"], readonly=True, local=True)


@pytest.mark.parametrize("kind", [Pages, Client])
def test_a_connection_of_one_thread(kind: Any) -> None:
    database = sqlite3.connect(":memory:")  # as SQLite has it, for the thread that opens it
    database.execute("create table pages (topic, body)")
    database.executemany("insert into pages values (?, ?)", [(topic, f"All about {topic}") for topic in TOPICS])
    component = Pages(database=database) if kind is Pages else Client(database)
    model = FakeListChatModel(responses=["A plan."], sleep=0.01)

    def find(state: State) -> State:
        if kind is Pages:
            return {"found": component.invoke(state["topic"])[0].page_content}
        return {"found": component.find(state["topic"])}

    graph = StateGraph(State)
    graph.add_node("plan", lambda state: {"plan": model.invoke(state["topic"]).content})
    graph.add_node("find", find)
    graph.add_edge(START, "plan").add_edge("plan", "find")
    fast = accel.accelerate(graph.compile())
    for topic in TOPICS:
        assert fast.invoke({"topic": topic})["found"] == f"All about {topic}"
        accel.settle()
    assert fast.report().issued == 1, "it is not tried again"
    assert "it fails on any thread but the program's own" in fast.plan.disqualified.values()
    database.close()
