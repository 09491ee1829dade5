"""Travel planner: days as a structured list, the parts of each day by `gather` in a loop, tips and a packing list."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

ASYNC = True
INPUTS = [
    {"country": country, "travellers": travellers}
    for country, travellers in (
        ("Portugal", "a couple who like tiles and fish"), ("Scotland", "four friends who hike"),
        ("Slovenia", "a family with a baby"), ("Morocco", "a painter and her mother"),
        ("Estonia", "two students with little money"), ("Vietnam", "a cook who wants to learn"),
        ("Uruguay", "birdwatchers with heavy lenses"), ("Iceland", "a school class from Ghent"),
        ("Japan", "two brothers who love trains"), ("Ireland", "a choir on tour"),
        ("Albania", "a couple with folding bicycles"), ("Canada", "a grandmother and her grandson"),
    )
]  # fmt: skip
PARTS_OF_DAY = ("morning", "afternoon", "evening")


class Day(BaseModel):
    town: str = Field(max_length=40, description="Where the day is spent")
    theme: str = Field(max_length=60, description="What the day is about")


class Itinerary(BaseModel):
    """A journey, day by day."""

    days: list[Day] = Field(min_length=2, max_length=3)


class Trip(TypedDict, total=False):
    country: str
    travellers: str
    days: list[Day]
    programme: list[dict[str, str]]
    tips: list[str]
    packing: str


def build(parts: Any) -> Any:
    llm = parts.llm
    itinerary_llm = llm.with_structured_output(Itinerary)

    async def plan_days(state: Trip) -> Trip:
        itinerary = await itinerary_llm.ainvoke(
            f"Plan a journey through {state['country']} for {state['travellers']}. Each day has a town and a theme."
        )
        return {"days": itinerary.days}

    async def plan_part(state: Trip, day: Day, part: str) -> str:
        response = await llm.ainvoke(
            f"Suggest in about 30 words what {state['travellers']} do in the {part}.\n\n"
            f"Town: {day.town} ({state['country']})\nTheme of the day: {day.theme}"
        )
        return response.content

    async def plan_day(state: Trip, number: int, day: Day) -> dict[str, str]:
        texts = await asyncio.gather(*[plan_part(state, day, part) for part in PARTS_OF_DAY])
        return {"title": f"Day {number}: {day.theme}", **dict(zip(PARTS_OF_DAY, texts, strict=True))}

    async def plan_programme(state: Trip) -> Trip:
        return {"programme": [await plan_day(state, number, day) for number, day in enumerate(state["days"], 1)]}

    async def find_tips(state: Trip) -> Trip:
        async def tip(day: dict[str, str]) -> str:
            text = " ".join(day[part] for part in PARTS_OF_DAY)
            prompt = f"Write one tip in one sentence for travellers who do this in a day.\n\n{text}"
            return (await llm.ainvoke(prompt)).content

        return {"tips": await asyncio.gather(*map(tip, state["programme"]))}

    async def pack(state: Trip) -> Trip:
        themes = ", ".join(day.theme for day in state["days"])
        prompt = (
            f"Which things do {state['travellers']} need? List 6 things for their packing list, one per line.\n\n"
            f"Country: {state['country']}\nThemes: {themes}"
        )
        return {"packing": (await llm.ainvoke(prompt)).content}

    graph = StateGraph(Trip)
    graph.add_node("plan_days", plan_days)
    graph.add_node("plan_programme", plan_programme)
    graph.add_node("find_tips", find_tips)
    graph.add_node("pack", pack)
    graph.add_edge(START, "plan_days")
    graph.add_edge("plan_days", "plan_programme")
    graph.add_edge("plan_programme", "find_tips")
    graph.add_edge("find_tips", "pack")
    graph.add_edge("pack", END)
    return graph.compile()
