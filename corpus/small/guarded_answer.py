"""Guarded answer: a guard says yes or no, then facts and examples are drafted and merged, or it refuses."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

ASYNC = True
INPUTS = [
    {"question": question}
    for question in (
        "Why does bread rise?", "How is paper made from rags?", "How do locks on canals work?",
        "Which fireworks can I mix at home?", "What keeps a bicycle upright?", "How do magnets lose their strength?",
        "Why do violins sound different?", "How can I read my neighbour's mail?",
        "Why is the sea salty?", "How do bees find the way home?",
        "Which pills may I take to stay awake?", "What makes a rainbow round?",
    )
]  # fmt: skip

GUARD = ChatPromptTemplate.from_messages(
    [
        ("system", "You are a guard for a science helpline for children."),
        ("human", "May this question be answered safely? Answer only yes or no.\n\nQuestion: {question}"),
    ]
)
FACTS = ChatPromptTemplate.from_messages(
    [
        ("system", "You explain science to children."),
        ("human", "Write down 4 facts as bullet points that answer the question.\n\nQuestion: {question}"),
    ]
)
EXAMPLES = ChatPromptTemplate.from_messages(
    [
        ("system", "You explain science to children."),
        ("human", "Describe two examples from daily life in about 60 words.\n\nQuestion: {question}"),
    ]
)
MERGE = ChatPromptTemplate.from_template(
    "Write an answer of about 90 words for a child of ten.\n\nQuestion: {question}\n\n{facts}\n\n{examples}"
)
REFUSE = ChatPromptTemplate.from_template(
    "Decline kindly in about 25 words and suggest to ask an adult.\n\nQuestion: {question}"
)


class State(TypedDict, total=False):
    question: str
    allowed: bool
    facts: str
    examples: str
    answer: str


def build(parts: Any) -> Any:
    llm, text = parts.llm, StrOutputParser()

    async def guard(state: State) -> Command[Literal["draft", "refuse"]]:
        verdict = await (GUARD | llm | text).ainvoke({"question": state["question"]})
        allowed = verdict.strip().lower().startswith("yes")
        return Command(update={"allowed": allowed}, goto="draft" if allowed else "refuse")

    async def draft(state: State) -> State:
        facts = await (FACTS | llm | text).ainvoke({"question": state["question"]})
        examples = await (EXAMPLES | llm | text).ainvoke({"question": state["question"]})
        return {"facts": facts, "examples": examples}

    async def merge(state: State) -> State:
        return {"answer": await (MERGE | llm | text).ainvoke(state)}

    async def refuse(state: State) -> State:
        return {"answer": await (REFUSE | llm | text).ainvoke({"question": state["question"]})}

    graph = StateGraph(State)
    for node in (guard, draft, merge, refuse):
        graph.add_node(node)
    graph.add_edge(START, "guard")
    graph.add_edge("draft", "merge")
    graph.add_edge("merge", END)
    graph.add_edge("refuse", END)
    return graph.compile()
