"""Hypothetical answers: an invented passage finds real ones, a model scores each in a structured form, and answers."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

ASYNC = True
DOCUMENTS = [
    f"{plant} in a pot: {advice}"
    for plant in ("Basil", "Rosemary", "A lemon tree", "Lavender", "A fern", "Chilli", "Mint")
    for advice in (
        "water it in the morning and let the soil dry between two waterings.",
        "yellow leaves mean that the roots stand in water or that iron is missing.",
        "in winter it needs a cool and bright place without frost.",
        "cut it back after it has flowered, but never into the old wood.",
        "the commonest guests are aphids, which soap and a soft brush drive away.",
    )
]
INPUTS = [
    {"question": "Why do the leaves of my lemon tree turn yellow?"},
    {"question": "Where does rosemary spend the winter?"},
    {"question": "How often should basil be watered in a hot kitchen?"},
    {"question": "When do I cut back lavender on the balcony?"},
    {"question": "What drives aphids away from chilli plants?"},
    {"question": "Does a fern need a bright window?"},
    {"question": "Can mint and basil share a pot?"},
    {"question": "What do brown tips on a fern tell me?"},
    {"question": "May mint stay outside in the frost?"},
    {"question": "Why does my basil have yellow leaves?"},
    {"question": "How do I cut rosemary that has become woody?"},
    {"question": "Do aphids harm a lemon tree in winter?"},
]
KEPT = 3

HYPOTHESIS = ChatPromptTemplate.from_messages(
    [
        ("system", "You write for a handbook of gardening."),
        ("human", "Write a passage of about 50 words that answers the question.\n\nQuestion: {question}"),
    ]
)
GRADE = ChatPromptTemplate.from_messages(
    [
        ("system", "You grade passages by how much they help to answer a question."),
        ("human", "Question: {question}\n\nPassage: {passage}"),
    ]
)
ANSWER = ChatPromptTemplate.from_messages(
    [
        ("system", "You answer in about 70 words, from the passages alone, and name them by their numbers."),
        ("human", "{passages}\n\nQuestion: {question}"),
    ]
)


class Grade(BaseModel):
    """The worth of a passage."""

    score: int = Field(ge=0, le=10, description="0: off the topic, 10: answers the question")


class State(TypedDict, total=False):
    question: str
    hypothesis: str
    documents: list[Document]
    ranked: list[tuple[int, Document]]
    answer: str


def build(parts: Any) -> Any:
    hypothesize = HYPOTHESIS | parts.llm | StrOutputParser()
    grader = GRADE | parts.llm.with_structured_output(Grade)
    responder = ANSWER | parts.llm | StrOutputParser()

    async def write_hypothesis(state: State) -> State:
        return {"hypothesis": await hypothesize.ainvoke({"question": state["question"]})}

    async def search(state: State) -> State:
        return {"documents": await parts.store.asimilarity_search(state["hypothesis"], k=6)}

    async def rerank(state: State) -> State:
        ranked: list[tuple[int, Document]] = []
        for document in state["documents"]:
            grade = await grader.ainvoke({"question": state["question"], "passage": document.page_content})
            ranked.append((grade.score, document))
        ranked.sort(key=lambda pair: pair[0], reverse=True)
        return {"ranked": ranked[:KEPT]}

    async def answer(state: State) -> State:
        passages = "\n\n".join(f"({i + 1}) {doc.page_content}" for i, (_, doc) in enumerate(state["ranked"]))
        return {"answer": await responder.ainvoke({"passages": passages, "question": state["question"]})}

    graph = StateGraph(State)
    graph.add_node("write_hypothesis", write_hypothesis)
    graph.add_node("search", search)
    graph.add_node("rerank", rerank)
    graph.add_node("answer", answer)
    graph.add_edge(START, "write_hypothesis")
    graph.add_edge("write_hypothesis", "search")
    graph.add_edge("search", "rerank")
    graph.add_edge("rerank", "answer")
    graph.add_edge("answer", END)
    return graph.compile()
