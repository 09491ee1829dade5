"""Intake form: `key: value` lines of a message fill a dict in place, gaps get a question each, a letter goes out."""

from __future__ import annotations

import re
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

INPUTS = [
    {"message": message}
    for message in (
        "Name: Lucia Ferro\nItem: a violin with a crack\nDeadline: before Easter\nBest regards, Lucia",
        "Hello,\nname: P. Okafor\nphone: 0551 88 21 17\nitem: grandfather clock, stands still\nbudget: 300",
        "Item: an oil painting of a dog\nPhone: 0711 4432\nBudget: as little as possible",
        "Name: Harbour Museum\nItem: ship's figurehead, worm in the wood\nBudget: 12000\nDeadline: June",
        "name: Aino\nitem: porcelain cup in nine pieces\nphone: +358 40 1234\ndeadline: no hurry\nbudget: 80",
        "Good morning! Do you also repair accordions?\nName: B. Lindqvist\nDeadline: 3 weeks",
        "Item: leather trunk\nColour: red\nPhone: call me\nName: Jo",
        "Name: Sister Agnes\nItem: psalter, binding torn\nPhone: 089 7712\nBudget: 450\nDeadline: Advent",
        "Name: Emil Brandt\nItem: rocking horse without a tail\nPhone: 0331 50 62\nRegards, Emil",
        "Dear restorers,\nitem: globe with a dent\nbudget: about 150\ndeadline: end of May",
        "Name: Theatre on the Quay\nPhone: 040 9981\nItem: velvet curtain, moths\nDeadline: first night\nBudget: 2500",
        "Item: music box, plays too fast\nName: R. Silva\nPhone: ask my son\nBudget: open",
    )
]
FIELDS = {
    "name": "the name of the customer",
    "phone": "a phone number with digits",
    "item": "what is to be restored",
    "budget": "a budget as a number",
    "deadline": "when it has to be ready",
}


class Intake(TypedDict, total=False):
    message: str
    form: dict[str, str]
    problems: list[str]
    questions: dict[str, str]
    estimate: str
    letter: str


def validate(form: dict[str, str]) -> list[str]:
    problems = [field for field in FIELDS if not form.get(field)]
    for field in ("phone", "budget"):
        if form.get(field) and not re.search(r"\d{2,}", form[field]):
            problems.append(field)
    return problems


def build(parts: Any) -> Any:
    def complete(prompt: str) -> str:
        return str(parts.llm.invoke(prompt).content).strip()

    def read_message(state: Intake) -> Intake:
        form = dict.fromkeys(FIELDS, "")
        for line in state["message"].splitlines():
            key, colon, value = line.partition(":")
            if colon and key.strip().lower() in form:
                form[key.strip().lower()] = value.strip()
        return {"form": form, "problems": validate(form)}

    def guess_gaps(state: Intake) -> Intake:
        form = state["form"]
        if not form["item"]:
            form["item"] = complete(f"Name in about 6 words the thing that needs repair.\n\n{state['message']}")
        form["material"] = complete(f"Name in at most 4 words the main material.\n\nThing: {form['item']}")
        return {"form": form}

    def ask_back(state: Intake) -> Intake:
        questions: dict[str, str] = {}
        for field in state["problems"]:
            questions[field] = complete(
                f"You work for a restorer. Ask the customer in one polite sentence for {FIELDS[field]}.\n\n"
                f"Their message:\n{state['message']}"
            )
        return {"questions": questions}

    def estimate(state: Intake) -> Intake:
        form = state["form"]
        prompt = (
            f"Estimate in about 40 words how a restorer would proceed and how long it takes.\n\n"
            f"Thing: {form['item']}\nMaterial: {form['material']}\nDeadline: {form['deadline'] or 'unknown'}"
        )
        return {"estimate": complete(prompt)}

    def write_letter(state: Intake) -> Intake:
        known = "\n".join(f"{key.title()}: {value}" for key, value in state["form"].items() if value)
        open_points = "\n".join(f"* {question}" for question in state.get("questions", {}).values()) or "none"
        letter = complete(
            f"Write a letter of about 80 words to {state['form']['name'] or 'the customer'}.\n\n"
            f"{known}\n\nEstimate: {state['estimate']}\n\nOpen points:\n{open_points}"
        )
        return {"letter": letter}

    graph = StateGraph(Intake)
    graph.add_sequence([read_message, guess_gaps])
    for node in (ask_back, estimate, write_letter):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "read_message")
    graph.add_conditional_edges("guess_gaps", lambda state: "ask_back" if state["problems"] else "estimate")
    graph.add_edge("ask_back", "estimate")
    graph.add_edge("estimate", "write_letter")
    graph.add_edge("write_letter", END)
    return graph.compile()
