"""Essay grading: four criteria get a score each with a remark, the mean becomes a grade, and a letter tells it."""

from __future__ import annotations

import re
from typing import Any, TypedDict

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph

TOPICS = (
    "why the tide comes twice a day", "a walk through an empty town", "what a lighthouse keeper dreams of",
    "the smell of rain", "a letter to a glacier", "how bread changed the world", "the last tram of the night",
    "my grandfather's toolbox", "a map without names", "the sound of snow", "a day without clocks",
    "why bridges hum",
)  # fmt: skip
BEGINNINGS = (
    "Nobody had asked me before, so I will write about {topic}.", "Some things are best told slowly: {topic} is one.",
    "My brother says that {topic} is not a subject for an essay. I disagree.",
    "I have thought about {topic} since the summer.",
)  # fmt: skip
ENDS = (
    "In the end it is the small things that stay with us.", "I would not want to live without it, and nobody should.",
    "That is all I know, and it is more than I knew in spring.",
)  # fmt: skip
INPUTS = [
    {"pupil": pupil, "essay": f"{BEGINNINGS[k % len(BEGINNINGS)].format(topic=topic)} {ENDS[k % len(ENDS)]}"}
    for k, (pupil, topic) in enumerate(
        zip("Aino Bela Carl Dora Emil Fay Gus Hana Ilse Jens Kira Leon".split(), TOPICS, strict=True)
    )
]
CRITERIA = {
    "relevance": "how well the essay keeps to its topic",
    "structure": "how its parts follow from each other",
    "depth": "how far its thoughts go",
    "grammar": "how correct its language is",
}

SCORE = ChatPromptTemplate.from_template(
    "You judge essays by {what}. Begin with a score from 1 to 9, then a sentence that gives the reason.\n\n{essay}"
)
LETTER = ChatPromptTemplate.from_template(
    "Write a letter of about 80 words to {pupil}, whose essay gets the grade {grade} ({mean:.1f} of 9 points).\n"
    "The strongest side of it is the {best}, the weakest the {worst}."
)
PARENTS = ChatPromptTemplate.from_template(
    "Tell the parents of {pupil} in about 40 words what the grade {grade} means and what to practise: {worst}."
)


class Grading(TypedDict, total=False):
    pupil: str
    essay: str
    scores: dict[str, float]
    mean: float
    grade: str
    letter: str
    parents: str


def extract_score(text: str) -> float:
    match = re.search(r"\d+(?:\.\d+)?", text)
    return float(match.group()) if match else 0.0


def build(parts: Any) -> Any:
    scorer = SCORE | parts.llm | StrOutputParser()

    def judge(state: Grading) -> Grading:
        scores = {}
        for name, what in CRITERIA.items():
            scores[name] = extract_score(scorer.invoke({"what": what, "essay": state["essay"]}))
        return {"scores": scores}

    def grade(state: Grading) -> Grading:
        mean = sum(state["scores"].values()) / len(state["scores"])
        return {"mean": mean, "grade": "A" if mean >= 7 else "B" if mean >= 5 else "C" if mean >= 3 else "D"}

    def tell(state: Grading) -> Grading:
        ordered = sorted(state["scores"], key=lambda name: -state["scores"][name])
        told = {**state, "best": ordered[0], "worst": ordered[-1]}
        letter = (LETTER | parts.llm | StrOutputParser()).invoke(told)
        return {"letter": letter, "parents": (PARENTS | parts.llm | StrOutputParser()).invoke(told)}

    graph = StateGraph(Grading)
    graph.add_node("judge", judge)
    graph.add_node("grading", grade)
    graph.add_node("tell", tell)
    graph.add_edge(START, "judge")
    graph.add_edge("judge", "grading")
    graph.add_edge("grading", "tell")
    graph.add_edge("tell", END)
    return graph.compile()
