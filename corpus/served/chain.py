"""Chain with nothing to gain: a prompt, a model and a parser in each of three nodes, about all that the last one wrote.

Calls per request: 3 of the model.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from corpus.components import Model, sequence
from corpus.served import ASYNC

DRAFT = ChatPromptTemplate.from_template("Answer this question: {question}")
IMPROVE = ChatPromptTemplate.from_template("{draft}\n\nSay this again in better words.")
SHORTEN = ChatPromptTemplate.from_template("{text}\n\nSay this again in half the words.")


class State(TypedDict, total=False):
    question: str
    draft: str
    text: str
    answer: str


def build(style: str, scale: float) -> Any:
    llm, parser = Model(scale=scale), StrOutputParser()
    drafting, improving, shortening = (prompt | llm | parser for prompt in (DRAFT, IMPROVE, SHORTEN))

    def write(state: State) -> State:
        return {"draft": drafting.invoke({"question": state["question"]})}

    def improve(state: State) -> State:
        return {"text": improving.invoke({"draft": state["draft"]})}

    def shorten(state: State) -> State:
        return {"answer": shortening.invoke({"text": state["text"]})}

    async def awrite(state: State) -> State:
        return {"draft": await drafting.ainvoke({"question": state["question"]})}

    async def aimprove(state: State) -> State:
        return {"text": await improving.ainvoke({"draft": state["draft"]})}

    async def ashorten(state: State) -> State:
        return {"answer": await shortening.ainvoke({"text": state["text"]})}

    nodes = (awrite, aimprove, ashorten) if style == ASYNC else (write, improve, shorten)
    return sequence(State, *nodes)


def ask(app: Any, question: str) -> Any:
    return app.invoke({"question": question})


async def aask(app: Any, question: str) -> Any:
    return await app.ainvoke({"question": question})
