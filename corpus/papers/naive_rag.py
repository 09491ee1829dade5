"""Question answering over a document that is uploaded with the question (Ayo, figure 2c and section 7).

Index the document in chunks of 256 tokens that overlap by 30 (by words, 200 and 23: English has about 0.78 words a
token), at most 48 of them; retrieve the 3 chunks nearest to the question; answer by tree synthesis: one call per chunk,
then one that combines. The documents are articles of SQuAD, one question each, and every request brings its own copy.

Calls per request: 4 of the model, 1 addition to the store, 1 search.
What waits for what: the search for the addition and the question; the 3 answers for the search; the last for all 3.
By hand: the question is embedded beside the indexing, and the 3 answers are written at once.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words
from corpus.papers.uploads import document_inputs, index_node

PAPER = "Ayo, document QA with naive RAG: up to 1.62x at low and 1.67x at high request rates"
PASSAGES = 3


class State(TypedDict, total=False):
    id: str
    document: str
    question: str
    chunk_ids: list[str]
    passages: list[Document]
    partial_answers: list[str]
    answer: str


class ByHandState(State, total=False):
    question_vector: list[float]


def partial_prompt(question: str, passage: Document, words: int) -> str:
    return (
        f"Answer the question in about {words} words, using nothing but the passage below. If the passage does not "
        f"help, say what is missing.\n\nQuestion: {question}\n\nPassage:\n{passage.page_content}"
    )


def combine_prompt(question: str, partial_answers: list[str], words: int) -> str:
    answers = "\n\n".join(partial_answers)
    return (
        f"Several people have answered the question below, each from another passage of a document. Combine what they "
        f"say into one answer in about {words} words.\n\nQuestion: {question}\n\nTheir answers:\n{answers}"
    )


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    sizes = parts.sizes
    reader = parts.llm.bind(max_tokens=sizes.note_tokens)
    writer = parts.llm.bind(max_tokens=sizes.answer_tokens)

    async def retrieve(state: State) -> dict[str, Any]:
        found = await parts.store.asimilarity_search(state["question"], k=PASSAGES, filter={"doc": state["id"]})
        return {"passages": found}

    async def synthesize(state: State) -> dict[str, Any]:
        question = state["question"]
        partial_answers: list[str] = []
        for passage in state["passages"]:
            partial = await reader.ainvoke(partial_prompt(question, passage, about_words(sizes.note_tokens)))
            partial_answers.append(partial.text)
        combined = await writer.ainvoke(combine_prompt(question, partial_answers, about_words(sizes.answer_tokens)))
        return {"partial_answers": partial_answers, "answer": combined.text}

    builder = StateGraph(State)
    builder.add_node("index", index_node(parts))
    builder.add_node("retrieve", retrieve)
    builder.add_node("synthesize", synthesize)
    builder.add_edge(START, "index")
    builder.add_edge("index", "retrieve")
    builder.add_edge("retrieve", "synthesize")
    builder.add_edge("synthesize", END)
    return builder.compile()


def build_by_hand(parts: Parts) -> CompiledStateGraph[ByHandState, None, State, State]:
    sizes = parts.sizes
    reader = parts.llm.bind(max_tokens=sizes.note_tokens)
    writer = parts.llm.bind(max_tokens=sizes.answer_tokens)

    async def embed_question(state: State) -> dict[str, Any]:
        return {"question_vector": await parts.embeddings.aembed_query(state["question"])}

    async def retrieve(state: ByHandState) -> dict[str, Any]:
        found = await parts.store.asimilarity_search_by_vector(
            state["question_vector"], k=PASSAGES, filter={"doc": state["id"]}
        )
        return {"passages": found}

    async def synthesize(state: State) -> dict[str, Any]:
        question, words = state["question"], about_words(sizes.note_tokens)
        partials = await asyncio.gather(
            *(reader.ainvoke(partial_prompt(question, passage, words)) for passage in state["passages"])
        )
        partial_answers: list[str] = [partial.text for partial in partials]
        combined = await writer.ainvoke(combine_prompt(question, partial_answers, about_words(sizes.answer_tokens)))
        return {"partial_answers": partial_answers, "answer": combined.text}

    builder = StateGraph(ByHandState, input_schema=State, output_schema=State)
    builder.add_node("index", index_node(parts))
    builder.add_node("embed_question", embed_question)
    builder.add_node("retrieve", retrieve)
    builder.add_node("synthesize", synthesize)
    builder.add_edge(START, "index")
    builder.add_edge(START, "embed_question")
    builder.add_edge(["index", "embed_question"], "retrieve")
    builder.add_edge("retrieve", "synthesize")
    builder.add_edge("synthesize", END)
    return builder.compile()


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing: every request brings its document."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return document_inputs(data_sets, count, seed, "naive_rag")
