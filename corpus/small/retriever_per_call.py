"""Retrieval agent of a template: steps of a plan, each with a retriever as a context manager and a model of its own."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from corpus.factories import init_chat_model, make_retriever

ASYNC = True
DOCUMENTS = [
    f"{room}: {note}"
    for room in ("The boiler room", "The archive", "The workshop", "The greenhouse", "The garage", "The attic")
    for note in (
        "the key hangs behind the door, and is to be signed for.",
        "the lamps were renewed in spring and last for ten years.",
        "water came in after the storm, and a bucket stands below the window.",
        "it is heated to twelve degrees, in winter to fifteen.",
    )
]
INPUTS = [
    {"question": question}
    for question in (
        "Where do I get the key of the archive?", "Which rooms were wet after the storm?",
        "How warm is the greenhouse in January?", "Who renews the lamps of the garage?",
        "What do I do about the bucket in the attic?", "When were the lamps of the workshop changed?",
        "Can plants stay in the boiler room?", "Which key has to be signed for?", "Where does water come in?",
        "How long will the lamps last?", "Is the attic heated?", "What stands below the window of the garage?",
    )
]  # fmt: skip

PLAN = "You plan research for the staff of a large house. Write 3 search queries, one per line, for the question."
ANSWER = "You answer the staff of a large house in about 70 words, from these documents alone.\n\n{documents}"


class State(TypedDict, total=False):
    question: str
    queries: list[str]
    documents: list[Document]
    answer: str


def format_docs(documents: list[Document]) -> str:
    return "\n".join(f"<document>\n{document.page_content}\n</document>" for document in documents)


def build(parts: Any) -> Any:
    async def generate_queries(state: State, *, config: RunnableConfig) -> State:
        model = init_chat_model(parts, max_tokens=config.get("configurable", {}).get("query_tokens", 96))
        response = await model.ainvoke([SystemMessage(PLAN), HumanMessage(state["question"])], config)
        return {"queries": [line for line in response.content.splitlines() if line.strip()]}

    async def retrieve(state: State, *, config: RunnableConfig) -> State:
        found: dict[str, Document] = {}
        for query in state["queries"]:
            with make_retriever(parts, k=3) as retriever:
                for document in await retriever.ainvoke(query, config):
                    found[document.page_content] = document
        return {"documents": list(found.values())}

    async def respond(state: State, *, config: RunnableConfig) -> State:
        model = init_chat_model(parts)
        system = SystemMessage(ANSWER.format(documents=format_docs(state["documents"])))
        return {"answer": (await model.ainvoke([system, HumanMessage(state["question"])], config)).content}

    builder = StateGraph(State)
    builder.add_node(generate_queries)
    builder.add_node(retrieve)
    builder.add_node(respond)
    builder.add_edge(START, "generate_queries")
    builder.add_edge("generate_queries", "retrieve")
    builder.add_edge("retrieve", "respond")
    builder.add_edge("respond", END)
    return builder.compile()
