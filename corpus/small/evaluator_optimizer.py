"""Museum labels: a text is written, judged with yes or no, and rewritten with feedback, three rounds at most."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph

ASYNC = True
INPUTS = [
    {"exhibit": exhibit, "audience": audience, "rounds": 0}
    for exhibit, audience in (
        ("a bronze ship's bell from 1740", "children"), ("a loom for silk ribbons", "visitors in a hurry"),
        ("the skeleton of a cave bear", "school classes"), ("a map of trade winds drawn by hand", "sailors"),
        ("an early electric tram motor", "engineers"), ("a chest of painted wedding linen", "tourists"),
        ("a Roman glass bottle with a handle", "collectors"), ("a telescope with a cracked lens", "teenagers"),
        ("a diver's helmet made of copper", "families"), ("a letter press with wooden type", "students"),
        ("a mammoth's tooth from a gravel pit", "farmers"), ("a doll's house with a lit kitchen", "grandparents"),
    )
]  # fmt: skip
MAX_ROUNDS = 3

WRITE = ChatPromptTemplate.from_messages(
    [
        ("system", "You write labels for a museum. A label has about 60 words."),
        ("human", "Describe {exhibit} to {audience}."),
    ]
)
JUDGE = ChatPromptTemplate.from_messages(
    [
        ("system", "You are an editor."),
        ("human", "Should this label be written again for {audience}? Answer yes or no.\n\nLabel: {label}"),
    ]
)
CRITICIZE = ChatPromptTemplate.from_template(
    "Tell the writer of this label in about 30 words what {audience} would miss.\n\nLabel: {label}"
)
REWRITE = ChatPromptTemplate.from_messages(
    [
        ("system", "You write labels for a museum. A label has about 60 words."),
        ("human", "Improve the label on {exhibit}.\n\nLabel: {label}\n\nFeedback: {feedback}"),
    ]
)


class State(TypedDict, total=False):
    exhibit: str
    audience: str
    label: str
    feedback: str
    accepted: bool
    rounds: int


def build(parts: Any) -> Any:
    writer = WRITE | parts.llm | StrOutputParser()
    judge = JUDGE | parts.llm.bind(max_tokens=8) | StrOutputParser()
    critic = CRITICIZE | parts.llm | StrOutputParser()
    rewriter = REWRITE | parts.llm | StrOutputParser()

    async def generate(state: State) -> State:
        chain = rewriter if state.get("feedback") else writer
        return {"label": await chain.ainvoke(state), "rounds": state["rounds"] + 1}

    async def evaluate(state: State) -> State:
        verdict = await judge.ainvoke({"audience": state["audience"], "label": state["label"]})
        if "yes" not in verdict.lower():
            return {"accepted": True}
        return {"accepted": False, "feedback": await critic.ainvoke(state)}

    def route(state: State) -> Literal["generate", "__end__"]:
        if state["accepted"] or state["rounds"] >= MAX_ROUNDS:
            return END
        return "generate"

    graph = StateGraph(State)
    graph.add_node("generate", generate)
    graph.add_node("evaluate", evaluate)
    graph.add_edge(START, "generate")
    graph.add_edge("generate", "evaluate")
    graph.add_conditional_edges("evaluate", route)
    return graph.compile()
