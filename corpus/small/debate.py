"""Debate: three personas speak in turn for two rounds over a shared transcript, then a moderator sums up."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph

INPUTS = [
    {"motion": "Cities should be free of cars."},
    {"motion": "Homework should be abolished."},
    {"motion": "Museums should return what they took."},
    {"motion": "Everyone should learn to code."},
    {"motion": "Zoos do more good than harm."},
    {"motion": "Voting should be compulsory."},
    {"motion": "Space travel is worth its cost."},
    {"motion": "The working week should have four days."},
    {"motion": "Children should choose their own school."},
    {"motion": "Old buildings should not be torn down."},
    {"motion": "Meat should cost twice as much."},
    {"motion": "Trains should be free on Sundays."},
]
ROUNDS = 2
PERSONAS = {
    "Economist": "an economist who counts costs and benefits",
    "Activist": "an activist who speaks for people without a voice",
    "Historian": "a historian who has seen it all before",
}


class Debate(TypedDict, total=False):
    motion: str
    messages: list[BaseMessage]
    speaker: int
    verdict: str


def build(parts: Any) -> Any:
    llm = parts.llm
    names = list(PERSONAS)

    def opening(state: Debate) -> Debate:
        return {"messages": [HumanMessage(content=f"The motion is: {state['motion']}", name="Moderator")], "speaker": 0}

    def speak(state: Debate) -> Debate:
        messages = state["messages"]
        name = names[state["speaker"] % len(names)]
        transcript = "\n".join(f"{message.name}: {message.content}" for message in messages)
        response = llm.invoke(
            [
                SystemMessage(content=f"You are {PERSONAS[name]}. You take part in a debate."),
                HumanMessage(content=f"{transcript}\n\n{name}, say what you think in about 35 words."),
            ]
        )
        messages.append(AIMessage(content=response.content.strip(), name=name))
        return {"messages": messages, "speaker": state["speaker"] + 1}

    def next_speaker(state: Debate) -> str:
        return "speak" if state["speaker"] < ROUNDS * len(names) else "moderate"

    def moderate(state: Debate) -> Debate:
        transcript = "\n".join(f"- {message.name}: {message.content}" for message in state["messages"][1:])
        response = llm.invoke(
            [
                SystemMessage(content="You are a fair moderator."),
                HumanMessage(
                    content=f"Sum up the debate in about 70 words.\n\nMotion: {state['motion']}\n\n{transcript}"
                ),
            ]
        )
        return {"verdict": response.content}

    builder = StateGraph(Debate)
    builder.add_node("opening", opening)
    builder.add_node("speak", speak)
    builder.add_node("moderate", moderate)
    builder.add_edge(START, "opening")
    builder.add_edge("opening", "speak")
    builder.add_conditional_edges("speak", next_speaker, ["speak", "moderate"])
    builder.add_edge("moderate", END)
    return builder.compile()
