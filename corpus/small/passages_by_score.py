"""Reranked answers: passages get a score as JSON, those below a bound fall, the best four answer, and are counted."""

from __future__ import annotations

import json
from typing import Any, TypedDict

from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph

DOCUMENTS = [
    f"{bird}: {note}"
    for bird in ("The swift", "The wren", "The heron", "The jay", "The dipper", "The crane")
    for note in (
        "it builds its nest where no cat can climb.",
        "its call is heard long before sunrise in April.",
        "it eats what it finds at the edge of the water.",
        "it leaves in autumn and comes back to the same place.",
    )
]
INPUTS = [
    {"question": question}
    for question in (
        "Which birds leave in autumn?", "Where does a wren build its nest?", "Who sings before sunrise?",
        "What does the dipper eat?", "How can I tell a jay by its call?", "Do cranes come back to the same place?",
        "Is a cat a danger for swifts?", "Which bird lives at the edge of the water?",
        "When is the heron heard first?", "What should a box for nests look like?",
        "Which of them stay in winter?", "Why do birds call in April?",
    )
]  # fmt: skip

SCORE = """Rate how much the passage helps with the question.
Answer as JSON with the field "score" (a number from 0 to 10).

Question: {question}

Passage: {passage}"""
ANSWER = """Answer the question in about 60 words from the passages.

{context}

Question: {question}"""
CHECK = "Is the answer supported by {count} passages? Say yes or no.\n\nAnswer: {answer}\n\n{context}"


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    best: list[dict[str, Any]]
    answer: str
    supported: str


def build(parts: Any) -> Any:
    llm = parts.llm

    def retrieve(state: State) -> State:
        return {"documents": parts.store.similarity_search(state["question"], k=8)}

    def rerank(state: State) -> State:
        rated = []
        for number, document in enumerate(state["documents"]):
            text = llm.invoke(SCORE.format(question=state["question"], passage=document.page_content)).content
            try:
                score = json.loads(text)["score"]
            except (ValueError, KeyError):
                score = 0
            rated.append({"number": number, "score": score, "text": document.page_content})
        best = sorted((one for one in rated if one["score"] >= 3), key=lambda one: (-one["score"], one["number"]))
        return {"best": best[:4]}

    def answer(state: State) -> State:
        context = "\n".join(f"[{place}] {one['text']}" for place, one in enumerate(state["best"], start=1))
        return {"answer": llm.invoke(ANSWER.format(context=context, question=state["question"])).content}

    def check(state: State) -> State:
        context = "\n\n".join(one["text"] for one in state["best"])
        prompt = CHECK.format(count=len(state["best"]), answer=state["answer"], context=context)
        return {"supported": llm.invoke(prompt).content.strip().lower()}

    builder = StateGraph(State)
    builder.add_node("retrieve", retrieve)
    builder.add_node("rerank", rerank)
    builder.add_node("generate", answer)
    builder.add_node("check", check)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "rerank")
    builder.add_edge("rerank", "generate")
    builder.add_edge("generate", "check")
    builder.add_edge("check", END)
    return builder.compile()
