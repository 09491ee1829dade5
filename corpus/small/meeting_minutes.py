"""Meeting minutes: questions on one transcript by a list of messages that changes in place, then the minutes."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph

PLACES = (
    "bakery", "harbour office", "choir", "allotment club", "bike workshop", "film archive", "ferry", "orchard",
    "toy library", "rowing club", "weaving mill", "observatory",
)  # fmt: skip
TOPICS = (
    ("a second oven", "early shifts"), ("the broken crane", "winter berths"), ("the spring concert", "new scores"),
    ("the shared shed", "water butts"), ("spare parts", "the repair evening"), ("damp reels", "the open day"),
    ("night sailings", "fuel"), ("the cider press", "grafting"),
    ("missing pieces", "the summer loan"), ("the leaking boat", "the autumn race"), ("the third loom", "dyes"),
    ("the stuck dome", "school visits"),
)  # fmt: skip


def transcript(place: str, first: str, second: str) -> str:
    return "\n".join(
        [
            f"Chair: Welcome to the meeting of the {place}. We begin with {first}.",
            f"Noor: I have asked three firms about {first}. The middle offer is the best one.",
            "Petra: Then let us take it, but only if it is done before June.",
            "Noor: I will write to them on Monday.",
            f"Chair: Good. What about {second}?",
            f"Iwan: Nobody wants to be responsible for {second}. I can do it until autumn.",
            f"Petra: We have no money left for {second}, as far as I know.",
            "Chair: We will look at the accounts and come back to it.",
        ]
    )


INPUTS = [
    {"place": place, "transcript": transcript(place, *topics)} for place, topics in zip(PLACES, TOPICS, strict=True)
]

QUESTIONS = {
    "decisions": "Which decisions were made? List 3 decisions, one per line.",
    "actions": "Who does what next? List 3 actions with a name each, one per line.",
    "open_points": "What stays open? List 2 open points, one per line.",
}


class State(TypedDict, total=False):
    place: str
    transcript: str
    decisions: list[str]
    actions: list[str]
    open_points: list[str]
    minutes: str


def lines(text: str) -> list[str]:
    return [line.strip("-* ") for line in text.splitlines() if line.strip()]


def build(parts: Any) -> Any:
    def ask(state: State) -> State:
        messages: list[BaseMessage] = [
            SystemMessage("You read the transcript of a meeting and answer briefly."),
            HumanMessage(f"Transcript of the {state['place']}:\n\n{state['transcript']}"),
        ]
        found: State = {}
        for name, question in QUESTIONS.items():
            messages.append(HumanMessage(question))
            found[name] = lines(parts.llm.invoke(messages).text)  # type: ignore[literal-required]
            messages.pop()
        return found

    def write_minutes(state: State) -> State:
        messages: list[BaseMessage] = [SystemMessage("You write minutes of about 100 words.")]
        prompt = f"Write the minutes of the meeting of the {state['place']}."
        for name in QUESTIONS:
            points = "\n".join(f"* {point}" for point in state[name])  # type: ignore[literal-required]
            prompt += f"\n\n{name.replace('_', ' ').capitalize()}:\n{points}"
        messages.append(HumanMessage(prompt))
        return {"minutes": parts.llm.invoke(messages).text}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_node("write_minutes", write_minutes)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "write_minutes")
    graph.add_edge("write_minutes", END)
    return graph.compile()
