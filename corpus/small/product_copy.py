"""Product copy: features as a comma-separated list, a paragraph per feature, gathered, a slogan and the page."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langgraph.graph import StateGraph

ASYNC = True
INPUTS = [
    {"product": "a kettle that whistles quietly", "audience": "night workers"},
    {"product": "a rucksack made of old sails", "audience": "students"},
    {"product": "a lamp that follows the sun", "audience": "people in the north"},
    {"product": "a board game about trams", "audience": "families"},
    {"product": "headphones without batteries", "audience": "travellers"},
    {"product": "a notebook of stone paper", "audience": "engineers in the field"},
    {"product": "a folding canoe", "audience": "people with small flats"},
    {"product": "a mattress of wool", "audience": "light sleepers"},
    {"product": "a bell for bicycles with two tones", "audience": "commuters"},
    {"product": "a pan of cast iron", "audience": "people who cook outside"},
    {"product": "an umbrella for two", "audience": "couples of different height"},
    {"product": "a clock without a display", "audience": "people who meditate"},
]

FEATURES = """You are a copywriter.
List 4 features of {product}, separated by commas.

Audience: {audience}"""

PARAGRAPH = """You are a copywriter.
Write about 50 words on one feature of {product}.

Feature: {feature}
Audience: {audience}"""

SLOGAN = """You are a copywriter.
Write a slogan of about 8 words for {product}, loved by {audience}.

Content:
{paragraphs}"""


class Copy(TypedDict, total=False):
    product: str
    audience: str
    features: list[str]
    paragraphs: list[str]
    slogan: str
    page: str


def build(parts: Any) -> Any:
    async def complete(template: str, **values: str) -> str:
        response = await parts.llm.ainvoke(template.format(**values))
        return response.text.strip()

    async def find_features(state: Copy) -> Copy:
        text = await complete(FEATURES, product=state["product"], audience=state["audience"])
        return {"features": [feature.strip().rstrip(".") for feature in text.split(",")]}

    async def write_paragraphs(state: Copy) -> Copy:
        common = {"product": state["product"], "audience": state["audience"]}
        paragraphs = await asyncio.gather(
            *(complete(PARAGRAPH, feature=feature, **common) for feature in state["features"])
        )
        return {"paragraphs": list(paragraphs)}

    async def write_slogan(state: Copy) -> Copy:
        slogan = await complete(
            SLOGAN,
            product=state["product"],
            audience=state["audience"],
            paragraphs="\n\n".join(state["paragraphs"]),
        )
        return {"slogan": slogan}

    async def lay_out(state: Copy) -> Copy:
        page = "# {slogan}\n\n".format(slogan=state["slogan"])
        for feature, paragraph in zip(state["features"], state["paragraphs"], strict=True):
            page += f"## {feature.capitalize()}\n\n{paragraph}\n\n"
        return {"page": page.strip()}

    graph = StateGraph(Copy)
    graph.add_node("find_features", find_features)
    graph.add_node("write_paragraphs", write_paragraphs)
    graph.add_node("write_slogan", write_slogan)
    graph.add_node("lay_out", lay_out)
    graph.set_entry_point("find_features")
    graph.add_edge("find_features", "write_paragraphs")
    graph.add_edge("write_paragraphs", "write_slogan")
    graph.add_edge("write_slogan", "lay_out")
    graph.set_finish_point("lay_out")
    return graph.compile()
