"""Corrective retrieval: what was found is graded before it is used, and searched for again if nothing is relevant.

The shape of LangGraph's tutorial on corrective RAG, after the paper of that name (Yan et al., 2024), with a second
search of the same store in place of one of the web. Retrieve 4 passages; grade each yes or no, one call each; if any is
relevant answer from those, else rewrite the query and retrieve again, at most 2 rounds; then answer from what there is.
The corpus and the questions are SQuAD's. The light model grades and rewrites.

Calls per request of r rounds: 4r + (r - 1) of the light model, 1 of the model, r searches.
What waits for what: the 4 grades for the search only; the branch for all 4 grades; the answer for the branch, and its
passages for the grades.
By hand: the grades of a round are asked at once (`abatch`).
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.papers.data import DataSets
from corpus.papers.parts import Node, Parts
from corpus.papers.text import about_words, draw, lines, passages

PAPER = "none of the papers has it; the gain by hand is the number to stand beside"
PASSAGES = 4
ROUNDS = 2
CORPUS = "corpus"
BATCH = 100


class State(TypedDict, total=False):
    question: str
    query: str
    rounds: int
    found: list[Document]
    relevant: list[Document]
    answer: str


def grade_prompt(question: str, passage: Document) -> str:
    return (
        "Does the passage help to answer the question? Answer yes or no.\n\n"
        f"Question: {question}\n\nPassage:\n{passage.page_content}"
    )


def rewrite_prompt(question: str, query: str) -> str:
    return (
        "A search found nothing that helps to answer the question. Write a better search query in about 10 words, on a "
        f"single line and nothing else.\n\nQuestion: {question}\n\nQuery: {query}"
    )


def answer_prompt(question: str, documents: list[Document], words: int) -> str:
    shown = "\n\n".join(document.page_content for document in documents)
    return (
        f"Answer the question in about {words} words, using the passages.\n\nQuestion: {question}\n\nPassages:\n{shown}"
    )


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    grader = parts.light_llm.bind(max_tokens=parts.sizes.grade_tokens)

    async def grade(state: State) -> dict[str, Any]:
        relevant = []
        for passage in state["found"]:
            verdict = await grader.ainvoke(grade_prompt(state["question"], passage))
            if "yes" in verdict.text.lower():
                relevant.append(passage)
        return {"relevant": relevant}

    return _graph(parts, grade)


def build_by_hand(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    grader = parts.light_llm.bind(max_tokens=parts.sizes.grade_tokens)

    async def grade(state: State) -> dict[str, Any]:
        verdicts = await grader.abatch([grade_prompt(state["question"], passage) for passage in state["found"]])
        graded = zip(state["found"], verdicts, strict=True)
        return {"relevant": [passage for passage, verdict in graded if "yes" in verdict.text.lower()]}

    return _graph(parts, grade)


def _graph(parts: Parts, grade: Node) -> CompiledStateGraph[State, None, State, State]:
    sizes = parts.sizes
    rewriter = parts.light_llm.bind(max_tokens=sizes.list_tokens)
    writer = parts.llm.bind(max_tokens=sizes.answer_tokens)

    async def retrieve(state: State) -> dict[str, Any]:
        query = state.get("query") or state["question"]
        found = await parts.store.asimilarity_search(query, k=PASSAGES, filter={"doc": CORPUS})
        return {"query": query, "found": found, "rounds": state.get("rounds", 0) + 1}

    def decide(state: State) -> Literal["rewrite", "generate"]:
        return "generate" if state["relevant"] or state["rounds"] >= ROUNDS else "rewrite"

    async def rewrite(state: State) -> dict[str, Any]:
        written = await rewriter.ainvoke(rewrite_prompt(state["question"], state["query"]))
        return {"query": (lines(written.text, 1) or [state["question"]])[0]}

    async def generate(state: State) -> dict[str, Any]:
        documents = state["relevant"] or state["found"]
        written = await writer.ainvoke(answer_prompt(state["question"], documents, about_words(sizes.answer_tokens)))
        return {"answer": written.text}

    builder = StateGraph(State)
    builder.add_node("retrieve", retrieve)
    builder.add_node("grade", grade)
    builder.add_node("rewrite", rewrite)
    builder.add_node("generate", generate)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "grade")
    builder.add_conditional_edges("grade", decide, ["rewrite", "generate"])
    builder.add_edge("rewrite", "retrieve")
    builder.add_edge("generate", END)
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """The corpus goes into the store, under a name that no request's document has."""
    texts = passages(data_sets, parts.sizes)
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        ids = [f"{CORPUS}/{start + position}" for position in range(len(batch))]
        await parts.store.aadd_texts(batch, metadatas=[{"doc": CORPUS} for _ in batch], ids=ids)


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [{"question": question} for question in draw(data_sets.questions, count, seed)]
