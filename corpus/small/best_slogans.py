"""Slogans: ten lines are written, each gets a score, and the first three by score are worked out and compared."""

from __future__ import annotations

import asyncio
import re
from typing import Any, TypedDict

from langgraph.graph import StateGraph

ASYNC = True
INPUTS = [
    {"product": product}
    for product in (
        "a bicycle bell that sings", "socks for early risers", "a kettle without a switch", "soap made of sea salt",
        "an umbrella for two", "a pencil that can't break", "bread in jars", "a lamp for balconies",
        "a tent with a chimney", "a clock for kitchens", "shoes of felt", "a bag made of old sails",
    )
]  # fmt: skip
KEPT = 3

WRITE = "Write 10 slogans of at most 9 words, one per line, for {product}."
JUDGE = """How well does this slogan sell {product}? Answer with a score from 1 to 100.

Slogan: {slogan}"""
SPOT = "Write a radio spot of about 45 words that ends with the slogan.\n\nSlogan: {slogan}\nProduct: {product}"
CHOOSE = """These are the best {count} slogans for {product}, the best one first:

{ranked}

Recommend one of them to the owner in about 60 words."""


class Campaign(TypedDict, total=False):
    product: str
    slogans: list[str]
    ranked: list[tuple[str, int]]
    spots: list[str]
    advice: str


def to_score(text: str) -> int:
    digits = re.findall(r"\d+", text)
    return int(digits[0]) if digits else 0


def build(parts: Any) -> Any:
    llm = parts.llm

    async def write(state: Campaign) -> Campaign:
        text = (await llm.ainvoke(WRITE.format(product=state["product"]))).content
        return {"slogans": [line.strip() for line in text.splitlines() if line.strip()]}

    async def rank(state: Campaign) -> Campaign:
        asked = [JUDGE.format(product=state["product"], slogan=slogan) for slogan in state["slogans"]]
        answers = await asyncio.gather(*(llm.ainvoke(prompt) for prompt in asked))
        scored = [(s, to_score(a.content)) for s, a in zip(state["slogans"], answers, strict=True)]
        return {"ranked": sorted(scored, key=lambda pair: pair[1], reverse=True)[:KEPT]}

    async def record(state: Campaign) -> Campaign:
        spots = []
        for slogan, _ in state["ranked"]:
            spots.append((await llm.ainvoke(SPOT.format(slogan=slogan, product=state["product"]))).content)
        return {"spots": spots}

    async def choose(state: Campaign) -> Campaign:
        ranked = "\n".join(f"{n}. {slogan} ({score} points)" for n, (slogan, score) in enumerate(state["ranked"], 1))
        prompt = CHOOSE.format(count=len(state["ranked"]), product=state["product"], ranked=ranked)
        return {"advice": (await llm.ainvoke(prompt)).content}

    graph = StateGraph(Campaign)
    graph.add_sequence([write, rank, record, choose])
    graph.set_entry_point("write")
    graph.set_finish_point("choose")
    return graph.compile()
