"""Digest by OpenAI's own client: no model of the framework, a summary and a verdict per article, and an overview."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import StateGraph

from corpus.factories import openai_client

ASYNC = True
TOWNS = "Alba Brunn Cassel Dorn Elster Falk Gera Halm Ilmenau Jena Koth Lauf".split()
INPUTS = [
    {
        "reader": f"a reader in {town}",
        "articles": [
            f"In {town} the bridge is closed for {3 + k} weeks, and the ferry takes bicycles only.",
            f"The choir of {TOWNS[(k + 5) % len(TOWNS)]} has won a prize for songs that nobody had written down.",
            f"A baker of {town} gives away {20 + 7 * k} loaves a day since the mill burnt.",
        ],
    }
    for k, town in enumerate(TOWNS)
]


class Digest(TypedDict, total=False):
    reader: str
    articles: list[str]
    summaries: list[str]
    worth: list[bool]
    overview: str


def build(parts: Any) -> Any:
    client = openai_client()

    async def ask(prompt: str) -> str:
        completion = await client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": prompt}]
        )
        return completion.choices[0].message.content or ""

    async def summarize(state: Digest) -> Digest:
        return {"summaries": [await ask(f"Summarize this article in a sentence:\n\n{a}") for a in state["articles"]]}

    async def judge(state: Digest) -> Digest:
        worth = []
        for article in state["articles"]:
            said = await ask(f"Is this article of interest to {state['reader']}? Answer yes or no.\n\n{article}")
            worth.append(said.strip().lower().startswith("yes"))
        return {"worth": worth}

    async def overview(state: Digest) -> Digest:
        kept = [s for s, worth in zip(state["summaries"], state["worth"], strict=True) if worth]
        lines = "\n".join(f"* {summary}" for summary in kept)
        return {"overview": await ask(f"Write an overview for {state['reader']} of:\n\n{lines}")}

    graph = StateGraph(Digest)
    graph.add_sequence([summarize, judge, ("write_overview", overview)])
    graph.set_entry_point("summarize")
    graph.set_finish_point("write_overview")
    return graph.compile()
