"""Self-consistency: a question is answered five times at some temperature, and what most answers say is explained."""

from __future__ import annotations

import asyncio
import re
from typing import Any, TypedDict

from langgraph.graph import StateGraph

ASYNC = True
INPUTS = [
    {"question": f"{who} has {a} {what} and gives away every {n}th of them. How many are left?"}
    for who, a, what, n in (
        ("Ada", 24, "marbles", 3), ("Ben", 35, "stamps", 5), ("Cleo", 48, "shells", 4), ("Dan", 63, "nails", 7),
        ("Eva", 30, "pears", 6), ("Finn", 72, "tickets", 8), ("Gita", 54, "beads", 9), ("Hugo", 20, "eggs", 2),
        ("Ida", 81, "coins", 3), ("Jan", 44, "plums", 4), ("Kai", 90, "cards", 10), ("Lea", 56, "buttons", 7),
    )
]  # fmt: skip

SOLVE = """Solve the riddle. Think in a sentence, then give the number behind "Answer:".

{question}"""
FORM = r"(One divides|First one counts|Take away) (the groups|what is given|every part)\. Answer: (12|14|16|18)"
EXPLAIN = """The answer to the riddle is {number}. Explain to a child in about 60 words why.

{question}"""
HARDER = "Make a harder riddle in about 40 words whose answer is {number}, too.\n\n{question}"
SAMPLES = 5


class Riddle(TypedDict, total=False):
    question: str
    samples: list[str]
    number: str
    confidence: str
    explanation: str
    harder: str


def final(text: str) -> str:
    match = re.search(r"Answer:\s*(\d+)", text)
    return match.group(1) if match else ""


def build(parts: Any) -> Any:
    samplers = [parts.llm.bind(temperature=0.7, seed=seed, regex=FORM) for seed in range(SAMPLES)]

    async def sample(state: Riddle) -> Riddle:
        prompt = SOLVE.format(question=state["question"])
        found = await asyncio.gather(*(sampler.ainvoke(prompt) for sampler in samplers))
        return {"samples": [message.content for message in found]}

    async def agree(state: Riddle) -> Riddle:
        numbers = [final(text) for text in state["samples"]]
        best = max(set(numbers), key=lambda number: (numbers.count(number), number))
        return {"number": best, "confidence": f"{numbers.count(best) / len(numbers):.0%}"}

    async def explain(state: Riddle) -> Riddle:
        message = await parts.llm.ainvoke(EXPLAIN.format(number=state["number"], question=state["question"]))
        return {"explanation": f"{message.content} ({state['confidence']} sure)"}

    async def harder(state: Riddle) -> Riddle:
        message = await parts.llm.ainvoke(HARDER.format(number=state["number"], question=state["question"]))
        return {"harder": message.content}

    graph = StateGraph(Riddle)
    graph.add_sequence([sample, agree, ("write_explanation", explain), ("write_harder", harder)])
    graph.set_entry_point("sample")
    graph.set_finish_point("write_harder")
    return graph.compile()
