"""Trip by days: stations of a journey as lines, a date for each from the day of departure, a note on each, a diary."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

INPUTS = [
    {"journey": journey, "departure": departure, "nights": nights}
    for journey, departure, nights in (
        ("along the Danube by bicycle", "2026-05-04", 2), ("from Oslo to Bergen", "2026-06-28", 1),
        ("through the Pyrenees on foot", "2026-07-30", 1), ("around Lake Constance", "2026-04-11", 3),
        ("down the Loire by canoe", "2026-08-26", 2), ("to the islands of Brittany", "2026-09-12", 1),
        ("across Scotland by train", "2026-10-29", 2), ("over the passes of Tyrol", "2026-06-01", 1),
        ("from Porto to Santiago", "2027-03-27", 1), ("through the vineyards of Alsace", "2026-09-29", 2),
        ("along Hadrian's wall", "2026-05-30", 1), ("to the lakes of Masuria", "2026-07-18", 4),
    )
]  # fmt: skip

STATIONS = "Name 4 stations of a journey {journey}, one per line, at most 5 words each."
DAY = "It is {day}. Write in about 45 words what a traveller sees in {station} at that time of the year."
BOOK = "Ask an inn in {station} in about 35 words for a room from {arrival} to {leaving}."
DIARY = "Write the preface of a diary, about 60 words, that covers {first} to {last} ({days} days).\n\n{notes}"


class Journey(TypedDict, total=False):
    journey: str
    departure: str
    nights: int
    stations: list[dict[str, str]]
    notes: list[str]
    letters: list[str]
    diary: str


def build(parts: Any) -> Any:
    llm = parts.llm

    def plan(state: Journey) -> Journey:
        text = llm.invoke(STATIONS.format(journey=state["journey"])).content
        day = date.fromisoformat(state["departure"])
        stations = []
        for name in (line.strip() for line in text.splitlines() if line.strip()):
            leaving = day + timedelta(days=state["nights"])
            stations.append({"name": name, "arrival": day.isoformat(), "leaving": leaving.isoformat()})
            day = leaving
        return {"stations": stations}

    def describe(state: Journey) -> Journey:
        notes = []
        for station in state["stations"]:
            day = date.fromisoformat(station["arrival"]).strftime("%A, %d %B")
            notes.append(llm.invoke(DAY.format(day=day, station=station["name"])).content)
        return {"notes": notes}

    def book(state: Journey) -> Journey:
        letters = []
        for station in state["stations"]:
            prompt = BOOK.format(station=station["name"], arrival=station["arrival"], leaving=station["leaving"])
            letters.append(llm.invoke(prompt).content)
        return {"letters": letters}

    def diary(state: Journey) -> Journey:
        first, last = state["stations"][0]["arrival"], state["stations"][-1]["leaving"]
        days = (date.fromisoformat(last) - date.fromisoformat(first)).days
        prompt = DIARY.format(first=first, last=last, days=days, notes="\n\n".join(state["notes"]))
        return {"diary": llm.invoke(prompt).content}

    graph = StateGraph(Journey)
    graph.add_node("plan", plan)
    graph.add_node("describe", describe)
    graph.add_node("book", book)
    graph.add_node("write_diary", diary)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "describe")
    graph.add_edge("describe", "book")
    graph.add_edge("book", "write_diary")
    graph.add_edge("write_diary", END)
    return graph.compile()
