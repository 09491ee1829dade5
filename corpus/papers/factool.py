"""Checks a model's answer claim by claim against a corpus (Alto, figure 1 and sections 2.2 and 6, after FacTool).

Answer the question; extract the answer's claims, one per line; per claim write 2 search queries; per query look through
the corpus with BM25; per claim rerank what was found and keep the best; per claim judge. Three nested levels: request,
claim, query. The corpus and the questions are SQuAD's. Alto embeds each query with ColBERT and ranks per query; here a
cross-encoder ranks per claim.

Calls per request with c claims: 2 + 2c of the model, 2c searches, c rerankings.
What waits for what: the claims for the answer; everything of a claim for its own line of the claims, and of a query for
its own line of the queries; nothing of one claim for another.
By hand: after the claims, `Send` starts one branch per claim, and the searches of a claim run at once.
"""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from corpus.papers.bm25 import BM25Retriever
from corpus.papers.data import DataSets
from corpus.papers.parts import Parts
from corpus.papers.text import about_words, draw, lines, unique

PAPER = "Alto, FacTool: 1.26x at the median and 1.25x at the 99th percentile, against LangGraph pipelined by hand"
QUERIES = 2


class State(TypedDict, total=False):
    question: str
    answer: str
    claims: list[str]
    queries: list[list[str]]
    found: list[list[Document]]
    evidence: list[list[str]]
    verdicts: list[str]


class ByHandState(TypedDict, total=False):
    question: str
    answer: str
    claims: list[str]
    queries: Annotated[list[list[str]], operator.add]
    found: Annotated[list[list[Document]], operator.add]
    evidence: Annotated[list[list[str]], operator.add]
    verdicts: Annotated[list[str], operator.add]


class Claim(TypedDict):
    claim: str


def answer_prompt(question: str, words: int) -> str:
    return f"Answer the question in about {words} words, with facts that can be checked.\n\nQuestion: {question}"


def extract_prompt(answer: str, most: int) -> str:
    return (
        f"Write the {most} most important claims of the text below, one per line and nothing else. Make each a short "
        f"sentence that can be checked without the text.\n\nText:\n{answer}"
    )


def queries_prompt(claim: str) -> str:
    return (
        f"Write {QUERIES} search queries, one per line and nothing else. They should find passages that support or "
        f"refute the claim below.\n\nClaim: {claim}"
    )


def judge_prompt(claim: str, evidence: list[str], words: int) -> str:
    shown = "\n\n".join(evidence)
    return (
        f"Compare the claim with the evidence and write a verdict in about {words} words: first whether the claim is "
        f"supported, refuted or left open, and then why.\n\nClaim: {claim}\n\nEvidence:\n{shown}"
    )


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    sizes = parts.sizes
    searcher = _searcher(parts)
    planner = parts.llm.bind(max_tokens=sizes.list_tokens)
    judge = parts.llm.bind(max_tokens=sizes.verdict_tokens)

    async def write_queries(state: State) -> dict[str, Any]:
        queries = []
        for claim in state["claims"]:
            written = await planner.ainvoke(queries_prompt(claim))
            queries.append(lines(written.text, QUERIES) or [claim])
        return {"queries": queries}

    async def search(state: State) -> dict[str, Any]:
        found = []
        for queries in state["queries"]:
            hits: list[Document] = []
            for query in queries:
                hits += await searcher.ainvoke(query)
            found.append(unique(hits))
        return {"found": found}

    async def rank(state: State) -> dict[str, Any]:
        evidence = []
        for claim, documents in zip(state["claims"], state["found"], strict=True):
            ranked = await parts.reranker.acompress_documents(documents, claim)
            evidence.append([document.page_content for document in ranked[: sizes.evidence]])
        return {"evidence": evidence}

    async def judge_claims(state: State) -> dict[str, Any]:
        verdicts = []
        for claim, evidence in zip(state["claims"], state["evidence"], strict=True):
            verdict = await judge.ainvoke(judge_prompt(claim, evidence, about_words(sizes.verdict_tokens)))
            verdicts.append(verdict.text)
        return {"verdicts": verdicts}

    builder = StateGraph(State)
    _answer_and_extract(builder, parts)
    builder.add_node("write_queries", write_queries)
    builder.add_node("search", search)
    builder.add_node("rank", rank)
    builder.add_node("judge_claims", judge_claims)
    builder.add_edge("extract_claims", "write_queries")
    builder.add_edge("write_queries", "search")
    builder.add_edge("search", "rank")
    builder.add_edge("rank", "judge_claims")
    builder.add_edge("judge_claims", END)
    return builder.compile()


def build_by_hand(parts: Parts) -> CompiledStateGraph[ByHandState, None, ByHandState, ByHandState]:
    sizes = parts.sizes
    searcher = _searcher(parts)
    planner = parts.llm.bind(max_tokens=sizes.list_tokens)
    judge = parts.llm.bind(max_tokens=sizes.verdict_tokens)

    def each_claim(state: ByHandState) -> list[Send]:
        return [Send("check_claim", {"claim": claim}) for claim in state["claims"]]

    async def check_claim(state: Claim) -> dict[str, Any]:
        claim = state["claim"]
        written = await planner.ainvoke(queries_prompt(claim))
        queries = lines(written.text, QUERIES) or [claim]
        searches = await asyncio.gather(*(searcher.ainvoke(query) for query in queries))
        documents = unique(hit for hits in searches for hit in hits)
        ranked = await parts.reranker.acompress_documents(documents, claim)
        evidence = [document.page_content for document in ranked[: sizes.evidence]]
        verdict = await judge.ainvoke(judge_prompt(claim, evidence, about_words(sizes.verdict_tokens)))
        return {"queries": [queries], "found": [documents], "evidence": [evidence], "verdicts": [verdict.text]}

    builder = StateGraph(ByHandState)
    _answer_and_extract(builder, parts)
    builder.add_node("check_claim", check_claim)
    builder.add_conditional_edges("extract_claims", each_claim, ["check_claim"])
    builder.add_edge("check_claim", END)
    return builder.compile()


def _searcher(parts: Parts) -> BM25Retriever:
    if not parts.passages:
        raise ValueError("factool searches Parts.passages, which are empty: give passages(data_sets, sizes).")
    return BM25Retriever(texts=parts.passages, k=parts.sizes.claim_hits)


def _answer_and_extract(builder: StateGraph[Any, None, Any, Any], parts: Parts) -> None:
    """The beginning, a chain in both programs."""
    sizes = parts.sizes
    writer = parts.llm.bind(max_tokens=sizes.answer_tokens)
    reader = parts.llm.bind(max_tokens=sizes.list_tokens)

    async def write_answer(state: State) -> dict[str, Any]:
        written = await writer.ainvoke(answer_prompt(state["question"], about_words(sizes.answer_tokens)))
        return {"answer": written.text}

    async def extract_claims(state: State) -> dict[str, Any]:
        written = await reader.ainvoke(extract_prompt(state["answer"], sizes.claims))
        return {"claims": lines(written.text, sizes.claims) or [state["answer"]]}

    builder.add_node("write_answer", write_answer)
    builder.add_node("extract_claims", extract_claims)
    builder.add_edge(START, "write_answer")
    builder.add_edge("write_answer", "extract_claims")


async def prepare(parts: Parts, data_sets: DataSets) -> None:
    """Nothing: the keyword index is made from `Parts.passages` when the program is built."""


def inputs(data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]:
    return [{"question": question} for question in draw(data_sets.questions, count, seed)]
