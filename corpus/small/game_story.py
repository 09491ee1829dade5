"""Role play: a supervisor picks who speaks next in a structured form, characters are closures, a narrator ends it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

INPUTS = [
    {"scene": scene, "story": [f"Narrator: {opening}"]}
    for scene, opening in (
        ("a lighthouse in a storm", "The lamp goes out, and something knocks at the door."),
        ("a market under the city", "A blind trader sells a key that hums."),
        ("the last train to the mountains", "The conductor asks for tickets to a station that is not there."),
        ("a library without windows", "One book breathes."),
        ("a frozen canal", "Under the ice, a hand waves back."),
        ("a feast of the river people", "The guest of honour casts two shadows."),
        ("a tower of clocks", "All of them stop but the smallest."),
        ("a garden of statues", "There is one more of them than yesterday."),
        ("a mill on the moor", "The wheel turns, but the stream is dry."),
        ("an inn at the crossroads", "Every guest has signed with the same name."),
        ("a bridge in the fog", "Someone on the other side calls for a doctor."),
        ("a mine below the abbey", "The bell rings from under the floor."),
    )
]
CHARACTERS = {
    "smith": "Orla, a smith who trusts only what she can touch",
    "scribe": "Fenn, a scribe who talks too much when he is afraid",
    "thief": "Tamsin, a thief with a good heart and quick hands",
    "healer": "Brother Ivo, a healer who is tired of war",
    "captain": "Captain Reyes, who gives orders even in her sleep",
}
MAX_TURNS = 4


class Turn(BaseModel):
    """Who continues the story."""

    speaker: Literal["smith", "scribe", "thief", "healer", "captain", "narrator"] = Field(
        description="Narrator ends the story"
    )
    stage_direction: str = Field(max_length=80, description="What the speaker should do")


class Story(TypedDict, total=False):
    scene: str
    story: Annotated[list[str], operator.add]
    speaker: str
    stage_direction: str
    ending: str


def build(parts: Any) -> Any:
    director = parts.llm.with_structured_output(Turn)

    def supervise(state: Story) -> Story:
        so_far = "\n".join(state["story"])
        cast = "\n".join(f"- {name}: {who}" for name, who in CHARACTERS.items())
        turn: Turn = director.invoke(
            f"You direct a role play in {state['scene']}.\n\nCharacters:\n{cast}\n\nStory so far:\n{so_far}\n\n"
            f"Who continues the story?"
        )
        return {"speaker": turn.speaker, "stage_direction": turn.stage_direction}

    def character(name: str) -> Callable[[Story], Story]:
        def speak(state: Story) -> Story:
            so_far = "\n".join(state["story"][-3:])
            line = parts.llm.invoke(
                f"You are {CHARACTERS[name]}. You are in {state['scene']}. Continue with about 35 words.\n\n"
                f"Stage direction: {state['stage_direction']}\n\n{so_far}"
            ).text
            return {"story": [f"{name.title()}: {line}"]}

        return speak

    def narrate(state: Story) -> Story:
        so_far = "\n".join(state["story"])
        prompt = f"Write the end of this story in {state['scene']}, in about 70 words.\n\n{so_far}"
        return {"ending": parts.llm.invoke(prompt).text}

    def next_speaker(state: Story) -> str:
        return "narrator" if len(state["story"]) > MAX_TURNS else state["speaker"]

    graph = StateGraph(Story)
    graph.add_node("supervise", supervise)
    graph.add_node("narrator", narrate)
    for name in CHARACTERS:
        graph.add_node(name, character(name))
        graph.add_edge(name, "supervise")
    graph.add_edge(START, "supervise")
    graph.add_conditional_edges("supervise", next_speaker, [*CHARACTERS, "narrator"])
    graph.add_edge("narrator", END)
    return graph.compile()
