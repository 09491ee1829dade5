"""Fan-out: a question is divided, each part is answered and checked, one after the other, and a last call joins them.

Calls per request: 14 of the model, in 4 nodes.
"""

from __future__ import annotations

from typing import Any, TypedDict

from corpus.components import Model, sequence
from corpus.served import ASYNC

PLAN = "Write 6 parts of this question, one per line and nothing else.\n\nQuestion: {question}"
NOTE = "Answer this part of a question in two sentences: {part}"
CHECK = "Is this note sound? Say yes or no.\n\nNote: {note}"
JOIN = "Answer the question from these notes.\n\nQuestion: {question}\n\nNotes:\n{notes}"


class State(TypedDict, total=False):
    question: str
    parts: list[str]
    notes: list[str]
    sound: list[str]
    answer: str


def build(style: str, scale: float) -> Any:
    return _awaited(Model(scale=scale)) if style == ASYNC else _plain(Model(scale=scale))


def _plain(llm: Model) -> Any:
    def plan(state: State) -> State:
        return {"parts": llm.invoke(PLAN.format(question=state["question"])).text.splitlines()}

    def answer(state: State) -> State:
        return {"notes": [llm.invoke(NOTE.format(part=part)).text for part in state["parts"]]}

    def check(state: State) -> State:
        verdicts = [llm.invoke(CHECK.format(note=note)).text for note in state["notes"]]
        return {"sound": [note for note, verdict in zip(state["notes"], verdicts, strict=True) if verdict == "yes"]}

    def join(state: State) -> State:
        notes = "\n".join(state["sound"])
        return {"answer": llm.invoke(JOIN.format(question=state["question"], notes=notes)).text}

    return sequence(State, plan, answer, check, join)


def _awaited(llm: Model) -> Any:
    async def plan(state: State) -> State:
        return {"parts": (await llm.ainvoke(PLAN.format(question=state["question"]))).text.splitlines()}

    async def answer(state: State) -> State:
        return {"notes": [(await llm.ainvoke(NOTE.format(part=part))).text for part in state["parts"]]}

    async def check(state: State) -> State:
        verdicts = [(await llm.ainvoke(CHECK.format(note=note))).text for note in state["notes"]]
        return {"sound": [note for note, verdict in zip(state["notes"], verdicts, strict=True) if verdict == "yes"]}

    async def join(state: State) -> State:
        notes = "\n".join(state["sound"])
        return {"answer": (await llm.ainvoke(JOIN.format(question=state["question"], notes=notes))).text}

    return sequence(State, plan, answer, check, join)


def ask(app: Any, question: str) -> Any:
    return app.invoke({"question": question})


async def aask(app: Any, question: str) -> Any:
    return await app.ainvoke({"question": question})
