"""Refine summary: chunk by chunk, a loop of the graph refines one summary, then writes a headline for it."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph

CHUNK = 420


def _diary(name: str, trip: str, troubles: list[str]) -> str:
    days = [
        f"Day {day}. {name} went on with {trip}. In the morning there was {trouble}, so the start was late. In the "
        f"afternoon {name} met people who knew about {trouble} and gave good advice. The evening was quiet, with soup "
        f"and bread, and {name} wrote down what had been learnt about {trouble} and what is still to do."
        for day, trouble in enumerate(troubles, 1)
    ]
    return "\n".join(days)


INPUTS = [
    {"text": _diary("Ada", "the walk along the coast", ["thick fog", "a closed path", "a torn boot", "strong wind"])},
    {"text": _diary("Ben", "the ride to the border", ["a flat tyre", "loose gravel", "a lost map"])},
    {"text": _diary("Cleo", "the trip on the canal", ["a broken lock", "low water", "a noisy engine", "heavy rain"])},
    {"text": _diary("Dan", "the climb to the hut", ["fresh snow", "a missing rope", "a sore knee"])},
    {"text": _diary("Eva", "the journey by train", ["a strike", "a full carriage", "a forgotten bag", "a detour"])},
    {"text": _diary("Finn", "the paddle down the river", ["rapids", "mosquitoes", "a leaking boat", "a fallen tree"])},
    {"text": _diary("Gwen", "the tour of the islands", ["a late ferry", "rough sea", "no cash"])},
    {"text": _diary("Hugo", "the hike in the desert", ["great heat", "an empty well", "a sandstorm", "cold nights"])},
    {"text": _diary("Ida", "the ski tour to the lake", ["thin ice", "a lost glove", "a steep slope", "early dark"])},
    {"text": _diary("Jan", "the drive to the north", ["a cracked window", "a closed road", "reindeer"])},
    {"text": _diary("Kira", "the walk over the moor", ["deep mud", "a missing sign", "midges", "a swollen stream"])},
    {"text": _diary("Leo", "the sail around the cape", ["a torn sail", "a dead calm", "a lost anchor"])},
]

INITIAL = ChatPromptTemplate.from_messages(
    [("human", "Write a summary of about 50 words of the following text.\n\n{context}")]
)
REFINE = ChatPromptTemplate.from_template(
    "Produce a final summary of about 60 words.\n\n"
    "Existing summary up to this point:\n{existing_answer}\n\n"
    "New context:\n------------\n{context}\n------------\n\n"
    "Given the new context, refine the original summary."
)
HEADLINE = ChatPromptTemplate.from_template("Write a headline of about 8 words for this summary.\n\nSummary: {summary}")


class State(TypedDict, total=False):
    text: str
    contents: list[str]
    index: int
    summary: str
    headline: str


def split(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def should_refine(state: State) -> Literal["refine_summary", "write_headline"]:
    return "write_headline" if state["index"] >= len(state["contents"]) else "refine_summary"


def build(parts: Any) -> Any:
    initial_chain = INITIAL | parts.llm | StrOutputParser()
    refine_chain = REFINE | parts.llm | StrOutputParser()
    headline_chain = HEADLINE | parts.llm | StrOutputParser()

    def generate_initial_summary(state: State) -> State:
        contents = split(state["text"], CHUNK)
        return {"contents": contents, "summary": initial_chain.invoke({"context": contents[0]}), "index": 1}

    def refine_summary(state: State) -> State:
        content = state["contents"][state["index"]]
        summary = refine_chain.invoke({"existing_answer": state["summary"], "context": content})
        return {"summary": summary, "index": state["index"] + 1}

    def write_headline(state: State) -> State:
        return {"headline": headline_chain.invoke({"summary": state["summary"]}).strip().rstrip(".")}

    graph = StateGraph(State)
    graph.add_node("generate_initial_summary", generate_initial_summary)
    graph.add_node("refine_summary", refine_summary)
    graph.add_node("write_headline", write_headline)
    graph.add_edge(START, "generate_initial_summary")
    graph.add_conditional_edges("generate_initial_summary", should_refine)
    graph.add_conditional_edges("refine_summary", should_refine)
    graph.add_edge("write_headline", END)
    return graph.compile()
