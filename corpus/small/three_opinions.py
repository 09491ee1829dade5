"""Town council: three personas with prompts of their own give opinions, a motion merges them, each votes on it."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import StateGraph

INPUTS = [
    {"question": question}
    for question in (
        "Should the market square be closed to cars?", "Should street lamps be switched off after midnight?",
        "Should the old mill become a hostel?", "Should the swimming pool open in winter?",
        "Should every roof carry solar panels?", "Should dogs be allowed in the river park?",
        "Should the town buy the empty cinema?", "Should bus rides be free for pupils?",
        "Should shops be open on Sundays?", "Should the old bridge be for bicycles alone?",
        "Should the fountain be turned off in dry summers?", "Should the fair move to the meadow by the river?",
    )
]  # fmt: skip

PERSONAS = {
    "shopkeeper": (
        "You run a small shop in the town and watch every penny.",
        "The council asks: {question} What does it mean for trade? About 50 words.",
    ),
    "engineer": (
        "You are the town's engineer. You care for what can be built and maintained.",
        "{question} Describe in about 60 words what has to be done, and at what cost.",
    ),
    "grandmother": (
        "You have lived here for eighty years.",
        "My dear, tell us in about 40 words how you see it. {question}",
    ),
}


class State(TypedDict, total=False):
    question: str
    opinions: dict[str, str]
    motion: str
    votes: dict[str, str]
    result: str


def vote_of(text: str) -> str:
    return "no" if text.strip().lower().startswith("no") else "yes"


def build(parts: Any) -> Any:
    llm = parts.llm

    def collect(state: State) -> State:
        opinions = {}
        for name, (role, prompt) in PERSONAS.items():
            messages = [SystemMessage(role), HumanMessage(prompt.format(question=state["question"]))]
            opinions[name] = llm.invoke(messages).text
        return {"opinions": opinions}

    def merge(state: State) -> State:
        said = "\n\n".join(f"The {name} says: {opinion}" for name, opinion in state["opinions"].items())
        prompt = f"Write a motion of about 60 words that takes up these opinions.\n\n{state['question']}\n\n{said}"
        return {"motion": llm.invoke(prompt).text}

    def vote(state: State) -> State:
        votes = {}
        for name, (role, _) in PERSONAS.items():
            ballot = f"Do you agree to this motion? Say yes or no.\n\n{state['motion']}"
            votes[name] = vote_of(llm.invoke([SystemMessage(role), HumanMessage(ballot)]).text)
        winner, count = Counter(votes.values()).most_common(1)[0]
        return {"votes": votes, "result": f"{winner} with {count} of {len(votes)}"}

    graph = StateGraph(State)
    graph.add_sequence([collect, merge, vote])
    graph.set_entry_point("collect")
    graph.set_finish_point("vote")
    return graph.compile()
