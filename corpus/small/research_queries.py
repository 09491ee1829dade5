"""Research assistant: search queries from a template, a note per query in a loop, a report of the notes."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph

ASYNC = True
DOCUMENTS = [
    f"Note {n} on {subject}: {detail}."
    for n, (subject, detail) in enumerate(
        (subject, detail)
        for subject in ("tides", "glaciers", "volcanoes", "reefs", "deserts", "rivers", "forests", "storms")
        for detail in ("how they begin", "what they move", "who depends on them", "how they are measured")
    )
]
INPUTS = [
    {"topic": topic}
    for topic in (
        "tides near harbours", "glaciers that calve", "volcanoes under ice", "reefs and fishing",
        "deserts that grow", "rivers in flood", "forests after fire", "storms in winter",
        "tides and migrating birds", "glaciers that feed rivers", "volcanoes near towns", "reefs after storms",
    )
]  # fmt: skip

PLAN = ChatPromptTemplate.from_messages(
    [
        ("system", "You plan research. Write 4 search queries, one per line and nothing else."),
        ("human", "Topic: {topic}"),
    ]
)
NOTE = ChatPromptTemplate.from_template(
    "Write a note of about 40 words that answers the query.\n\nQuery: {query}\n\nPassages:\n{passages}"
)
REPORT = ChatPromptTemplate.from_template("Write a report of about 120 words on {topic} from these notes.\n\n{notes}")


class State(TypedDict, total=False):
    topic: str
    queries: list[str]
    notes: list[str]
    report: str


def build(parts: Any) -> Any:
    retriever = parts.store.as_retriever(search_kwargs={"k": 3})

    async def plan(state: State) -> State:
        written = await (PLAN | parts.llm).ainvoke({"topic": state["topic"]})
        return {"queries": [line.strip() for line in written.text.splitlines() if line.strip()]}

    async def take_notes(state: State) -> State:
        notes = []
        for query in state["queries"]:
            found = await retriever.ainvoke(query)
            passages = "\n\n".join(document.page_content for document in found)
            note = await (NOTE | parts.llm).ainvoke({"query": query, "passages": passages})
            notes.append(note.text)
        return {"notes": notes}

    async def write(state: State) -> State:
        notes = "\n".join(f"- {note}" for note in state["notes"])
        report = await (REPORT | parts.llm).ainvoke({"topic": state["topic"], "notes": notes})
        return {"report": report.text}

    graph = StateGraph(State)
    graph.add_node("plan", plan)
    graph.add_node("take_notes", take_notes)
    graph.add_node("write", write)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "take_notes")
    graph.add_edge("take_notes", "write")
    graph.add_edge("write", END)
    return graph.compile()
