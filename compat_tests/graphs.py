"""The program that most differential tests share."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from compat_tests.fakes import Parts

TOPICS = ("quartz 11", "meadow 22", "harbor 33", "quartz 11")


class Topic(TypedDict, total=False):
    topic: str
    queries: list[str]
    notes: Annotated[list[str], operator.add]
    answer: str


def lines(message: Any) -> list[str]:
    return [line.split(". ", 1)[-1] for line in message.content.splitlines()]


def research(parts: Parts) -> StateGraph[Any, Any, Any, Any]:
    """Expand, a note per query in a plain loop, answer: the shape most of these tests share."""

    def expand(state: Topic) -> Topic:
        return {"queries": lines(parts.local.invoke(f"Give a numbered list of queries for {state['topic']}"))}

    def take_notes(state: Topic) -> Topic:
        notes = []
        for query in state["queries"]:
            found = parts.library.similarity_search(query, k=1)[0].page_content
            notes.append(str(parts.local.invoke(f"Note on {query} from: {found}").content))
        return {"notes": notes}

    def answer(state: Topic) -> Topic:
        return {"answer": str(parts.local.invoke(f"Answer {state['topic']} from " + "\n".join(state["notes"])).content)}

    graph = StateGraph(Topic)
    graph.add_node("expand", expand)
    graph.add_node("take_notes", take_notes)
    graph.add_node("answer", answer)
    graph.add_edge(START, "expand")
    graph.add_edge("expand", "take_notes")
    graph.add_edge("take_notes", "answer")
    graph.add_edge("answer", END)
    return graph
