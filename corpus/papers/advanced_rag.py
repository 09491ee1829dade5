"""Document question answering with query expansion, reranking and refinement (Ayo, figures 2d and 6, and section 7).

Index the uploaded document as the naive program does (256 tokens, overlap 30); write 3 search queries; retrieve 16
chunks for each; rerank all that were found for the question and keep the top 3; answer from the best chunk and refine
the answer with each of the other two.

Calls per request: 4 of the model (1 + a chain of 3), 1 addition to the store, 3 searches, 1 reranking.
What waits for what: the queries for the question only, so not for the indexing; a search for the addition and its own
line of the queries; the reranking for all searches; each refinement for the answer before it.
By hand: the queries are written and embedded beside the indexing, and the searches run at once.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words, lines, unique
from corpus.papers.uploads import document_inputs, index_node

PAPER = "Ayo, document QA with advanced RAG: up to 2.09x at low and 2.03x at high request rates"
QUERIES = 3
PASSAGES = 3


class State(TypedDict, total=False):
    id: str
    document: str
    question: str
    chunk_ids: list[str]
    queries: list[str]
    candidates: list[Document]
    passages: list[str]
    answers: list[str]
    answer: str


class ByHandState(State, total=False):
    query_vectors: list[list[float]]


def expand_prompt(question: str) -> str:
    return (
        f"Write {QUERIES} search queries, one per line and nothing else. Each should look for another part of what "
        f"answers the question below.\n\nQuestion: {question}"
    )


def first_prompt(question: str, passage: str, words: int) -> str:
    return (
        f"Answer the question in about {words} words, using nothing but the passage below.\n\n"
        f"Question: {question}\n\nPassage:\n{passage}"
    )


def refine_prompt(question: str, answer: str, passage: str, words: int) -> str:
    return (
        f"Improve the existing answer to the question with what the new passage adds, and write the whole answer again "
        f"in about {words} words.\n\nQuestion: {question}\n\nExisting answer: {answer}\n\nNew passage:\n{passage}"
    )


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    sizes = parts.sizes
    planner = parts.llm.bind(max_tokens=sizes.list_tokens)

    async def expand(state: State) -> dict[str, Any]:
        written = await planner.ainvoke(expand_prompt(state["question"]))
        return {"queries": lines(written.text, QUERIES) or [state["question"]]}

    async def retrieve(state: State) -> dict[str, Any]:
        found: list[Document] = []
        for query in state["queries"]:
            found += await parts.store.asimilarity_search(query, k=sizes.candidates, filter={"doc": state["id"]})
        return {"candidates": unique(found)}

    builder = StateGraph(State)
    builder.add_node("index", index_node(parts))
    builder.add_node("expand", expand)
    builder.add_node("retrieve", retrieve)
    builder.add_edge(START, "index")
    builder.add_edge("index", "expand")
    builder.add_edge("expand", "retrieve")
    _rank_and_refine(builder, parts)
    return builder.compile()


def build_by_hand(parts: Parts) -> CompiledStateGraph[ByHandState, None, State, State]:
    sizes = parts.sizes
    planner = parts.llm.bind(max_tokens=sizes.list_tokens)

    async def expand(state: State) -> dict[str, Any]:
        written = await planner.ainvoke(expand_prompt(state["question"]))
        queries = lines(written.text, QUERIES) or [state["question"]]
        vectors = await asyncio.gather(*(parts.embeddings.aembed_query(query) for query in queries))
        return {"queries": queries, "query_vectors": vectors}

    async def retrieve(state: ByHandState) -> dict[str, Any]:
        searches = (
            parts.store.asimilarity_search_by_vector(vector, k=sizes.candidates, filter={"doc": state["id"]})
            for vector in state["query_vectors"]
        )
        return {"candidates": unique(hit for hits in await asyncio.gather(*searches) for hit in hits)}

    builder = StateGraph(ByHandState, input_schema=State, output_schema=State)
    builder.add_node("index", index_node(parts))
    builder.add_node("expand", expand)
    builder.add_node("retrieve", retrieve)
    builder.add_edge(START, "index")
    builder.add_edge(START, "expand")
    builder.add_edge(["index", "expand"], "retrieve")
    _rank_and_refine(builder, parts)
    return builder.compile()


def _rank_and_refine(builder: StateGraph[Any, None, State, State], parts: Parts) -> None:
    """The chain at the end, which leaves nothing to run at once."""
    words = about_words(parts.sizes.answer_tokens)
    writer = parts.llm.bind(max_tokens=parts.sizes.answer_tokens)

    async def rerank(state: State) -> dict[str, Any]:
        ranked = await parts.reranker.acompress_documents(state["candidates"], state["question"])
        return {"passages": [document.page_content for document in ranked[:PASSAGES]]}

    async def synthesize(state: State) -> dict[str, Any]:
        question = state["question"]
        answers: list[str] = []
        for passage in state["passages"]:
            if not answers:
                prompt = first_prompt(question, passage, words)
            else:
                prompt = refine_prompt(question, answers[-1], passage, words)
            written = await writer.ainvoke(prompt)
            answers.append(written.text)
        return {"answers": answers, "answer": answers[-1]}

    builder.add_node("rerank", rerank)
    builder.add_node("synthesize", synthesize)
    builder.add_edge("retrieve", "rerank")
    builder.add_edge("rerank", "synthesize")
    builder.add_edge("synthesize", END)


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing: every request brings its document."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return document_inputs(data_sets, count, seed, "advanced_rag")
