"""Handover of a chat, however long: its mood, a summary of all messages, advice by the last four, and a note."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langgraph.graph import END, START, MessagesState, StateGraph

TALKS = {
    "a rain jacket that came in the wrong size": 1,
    "a tent pole that broke on the first night": 4,
    "a parcel that the neighbour never got": 2,
    "boots that leak after a month": 0,
    "a stove that does not light in the cold": 3,
    "a refund that has not come for ten days": 5,
    "a rope that is shorter than it says": 1,
    "a lamp whose charger is missing": 2,
    "a voucher that the shop does not take": 0,
    "a sleeping bag that smells of oil": 4,
    "a map that shows another valley": 3,
    "a bottle that cannot be opened": 2,
}
"""What customers write about, and how often the desk has answered so far."""
SAID = (
    ("It is about {about}. I have had it since May.", "I am sorry to hear that. Do you have the number of your order?"),
    ("Yes, it ends in {tail}. I have written to you before.", "Thank you, I have found it. What would help you most?"),
    ("I need it before the weekend, as we go to the hills.", "I will ask the store whether they have another one."),
    ("Nobody called me, although you said so on Monday.", "That should not have been. You are on top of the list now."),
    ("So what happens now? I cannot wait for ever.", "We can send another one, or give the money back."),
)  # fmt: skip


def _talk(number: int, about: str, rounds: int) -> dict[str, Any]:
    messages = []
    for asked, answered in SAID[:rounds]:
        messages.append(("user", asked.format(about=about, tail=417 + 31 * number)))
        messages.append(("assistant", answered))
    return {"messages": [*messages, ("user", f"Can somebody else look at this? It is {about}.")]}


INPUTS = [_talk(number, about, rounds) for number, (about, rounds) in enumerate(TALKS.items())]

ADVISE = ChatPromptTemplate.from_messages(
    [
        ("system", "You advise the desk of a shop for outdoor gear. Say in 60 words what it should offer, and why."),
        MessagesPlaceholder("recent"),
        ("human", "What should the desk offer now?"),
    ]
)  # fmt: skip
SUMMARY = SystemMessage("Summarize the chat for a colleague in about 80 words: what was asked, promised and done.")


class Handover(MessagesState):
    mood: str
    summary: str
    advice: str
    note: str


def build(parts: Any) -> Any:
    advise_chain = ADVISE | parts.llm

    def mood(state: Handover) -> dict[str, Any]:
        last = state["messages"][-1].content
        return {"mood": parts.llm.invoke(f"One word for the mood of a customer who writes: {last}").text.strip()}

    def summarize(state: Handover) -> dict[str, Any]:
        return {"summary": parts.llm.invoke([SUMMARY, *state["messages"]]).text}

    def advise(state: Handover) -> dict[str, Any]:
        return {"advice": advise_chain.invoke({"recent": state["messages"][-4:]}).text}

    def write(state: Handover) -> dict[str, Any]:
        prompt = (
            f"Write the note of a handover. The customer is {state['mood']}.\n\n{state['summary']}\n\n{state['advice']}"
        )
        return {"note": parts.llm.invoke([HumanMessage(prompt)]).text}

    graph = StateGraph(Handover)
    graph.add_sequence([mood, summarize, advise, write])
    graph.add_edge(START, "mood")
    graph.add_edge("write", END)
    return graph.compile()
