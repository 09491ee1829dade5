"""Interview guide: nodes that name the next one by `Command`, a pydantic state, and questions of a rising level."""

from __future__ import annotations

from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from pydantic import BaseModel, Field

INPUTS = [
    {"role": "a tram driver", "applicant": "drove lorries for nine years and knows the city well"},
    {"role": "a head gardener", "applicant": "studied botany and led a nursery with four apprentices"},
    {"role": "a sound engineer", "applicant": "mixed concerts in small clubs and repairs old tape machines"},
    {"role": "a midwife", "applicant": "worked abroad for two years and speaks three languages"},
    {"role": "a data analyst", "applicant": "taught mathematics and automates spreadsheets at night"},
    {"role": "a pastry chef", "applicant": "baked bread in a village and won a prize with a plum cake"},
    {"role": "a ship's electrician", "applicant": "wired ferries in dry dock and is never seasick"},
    {"role": "a librarian", "applicant": "catalogued a private collection of maps by herself"},
    {"role": "a forester", "applicant": "planted oaks for the army and keeps bees at home"},
    {"role": "a school cook", "applicant": "fed two hundred guests a day in a canteen by the docks"},
    {"role": "a stage manager", "applicant": "ran an amateur theatre and never lost a prop"},
    {"role": "a bicycle courier", "applicant": "rode races until last year and repairs what breaks"},
]
MAX_QUESTIONS = 3


class Question(BaseModel):
    text: str
    good_answer: str


class Interview(BaseModel):
    role: str
    applicant: str
    skills: list[str] = Field(default_factory=list)
    questions: list[Question] = Field(default_factory=list)
    needs_task: bool = False
    task: str | None = None
    guide: str = ""


def build(parts: Any) -> Any:
    def ask(prompt: str) -> str:
        return parts.llm.invoke(prompt).content.strip()

    def find_skills(state: Interview) -> Command[Literal["write_question"]]:
        text = ask(
            f"You prepare a job interview for {state.role}.\n"
            f"Name {MAX_QUESTIONS} skills to ask for, one per line, without numbers.\n\n"
            f"The applicant {state.applicant}."
        )
        skills = [line.strip() for line in text.split("\n") if line.strip()]
        return Command(goto="write_question", update={"skills": skills[:MAX_QUESTIONS]})

    def write_question(state: Interview) -> Command[Literal["write_question", "decide_on_task"]]:
        number = len(state.questions)
        skill = state.skills[number]
        question = ask(
            f"Write one interview question in one sentence for {state.role} about this skill: {skill}\n\n"
            f"It is question {number + 1} of {len(state.skills)}. The applicant {state.applicant}."
        )
        good_answer = ask(f"Say in about 30 words what a good answer to this would mention.\n\n{question}")
        questions = [*state.questions, Question(text=question, good_answer=good_answer)]
        done = len(questions) == len(state.skills)
        return Command(goto="decide_on_task" if done else "write_question", update={"questions": questions})

    def decide_on_task(state: Interview) -> Command[Literal["write_task", "write_guide"]]:
        verdict = ask(
            f"Should the applicant for {state.role} also solve a practical task? Answer yes or no.\n\n"
            f"The applicant {state.applicant}."
        )
        needs_task = verdict.lower().startswith("yes")
        return Command(goto="write_task" if needs_task else "write_guide", update={"needs_task": needs_task})

    def write_task(state: Interview) -> Command[Literal["write_guide"]]:
        skills = "; ".join(state.skills)
        task = ask(f"Describe a practical task for {state.role} in about 50 words.\n\nSkills: {skills}")
        return Command(goto="write_guide", update={"task": task})

    def write_guide(state: Interview) -> Command[Literal["__end__"]]:
        listed = "\n".join(
            f"{number}) {question.text}\n   Expect: {question.good_answer}"
            for number, question in enumerate(state.questions, start=1)
        )
        task = f"\n\nPractical task: {state.task}" if state.task else ""
        guide = ask(f"Write an introduction of about 60 words to this guide to an interview.\n\n{listed}{task}")
        return Command(goto=END, update={"guide": f"{guide}\n\n{listed}{task}"})

    graph = StateGraph(Interview)
    for node in (find_skills, write_question, decide_on_task, write_task, write_guide):
        graph.add_node(node)
    graph.add_edge(START, "find_skills")
    return graph.compile()
