"""Programs for batches: two nodes ask, first of a context that several inputs share, then of each one's question."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, StateGraph

import accel

ASKED: list[str] = []
"""What models were asked, in this order."""


class State(TypedDict, total=False):
    question: str
    context: str
    summary: Any
    answer: Any


class Steps:
    """What models wait for, and do; of all of them, so that they stay equal."""

    entered = threading.Semaphore(0)
    go_on = threading.Event()
    fails_on = "nothing"

    @classmethod
    def reset(cls) -> None:
        ASKED.clear()
        cls.entered, cls.go_on, cls.fails_on = threading.Semaphore(0), threading.Event(), "nothing"
        cls.go_on.set()


async def until(condition: Callable[[], bool]) -> None:
    """As the loop goes round; other threads may be who changes it."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


class Sampler(BaseChatModel):
    """Nobody says that it repeats what it said."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        text = self._asked(messages)
        assert Steps.go_on.wait(30.0)
        return self._answer(text)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> ChatResult:
        text = self._asked(messages)
        await until(Steps.go_on.is_set)
        return self._answer(text)

    def _asked(self, messages: list[BaseMessage]) -> str:
        text = str(messages[-1].content)
        ASKED.append(text)
        Steps.entered.release()
        return text

    def _answer(self, text: str) -> ChatResult:
        if Steps.fails_on in text:
            raise RuntimeError(f"no answer to {text}")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"It is said that {text}."))])


class Oracle(Sampler):
    """Declared: it says the same to everybody."""


accel.register(Sampler, pure=True, concurrency=64)
accel.register(Oracle, deterministic=True, concurrency=64)


def graph_of(llm: BaseChatModel) -> Any:
    def summarise(state: State) -> State:
        return {"summary": llm.invoke(f"the summary of {state['context']}")}

    def answer(state: State) -> State:
        return {"answer": llm.invoke(f"{state['question']}, by {state['summary'].content}")}

    return _compiled(summarise, answer)


def coroutines_of(llm: BaseChatModel) -> Any:
    async def summarise(state: State) -> State:
        return {"summary": await llm.ainvoke(f"the summary of {state['context']}")}

    async def answer(state: State) -> State:
        return {"answer": await llm.ainvoke(f"{state['question']}, by {state['summary'].content}")}

    return _compiled(summarise, answer)


def _compiled(summarise: Any, answer: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("summarise", summarise)
    builder.add_node("answer", answer)
    builder.add_edge(START, "summarise")
    builder.add_edge("summarise", "answer")
    builder.add_edge("answer", END)
    return builder.compile()


def inputs(count: int = 12, contexts: int = 3) -> list[State]:
    return [{"question": f"question {number}", "context": f"context {number % contexts}"} for number in range(count)]


def plainly(result: Any) -> Any:
    """Without the ids of messages, which are new in each run."""
    if not isinstance(result, dict):
        return repr(result)
    return {
        key: (value.content, value.response_metadata) if isinstance(value, AIMessage) else value
        for key, value in result.items()
    }


def ids(results: list[Any]) -> list[str]:
    return [result[name].id for result in results for name in ("summary", "answer")]


# --- a program that is killed


def noting_graph(path: str, killed_at: int = -1) -> Any:
    """Its node notes every input in a file; at one of them the process is killed."""

    def note(state: State) -> State:
        number = int(state["question"].split()[1])
        if number == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{number}\n")
        return {"answer": AIMessage(f"answer {number}", id=f"id {number}")}

    builder = StateGraph(State)
    builder.add_node("note", note)
    builder.add_edge(START, "note")
    builder.add_edge("note", END)
    return builder.compile()


if __name__ == "__main__":
    import sys

    noted, journal, at = sys.argv[1:]
    fast = accel.accelerate(noting_graph(noted, int(at)))
    fast.batch(inputs(40), {"max_concurrency": 2}, resume=journal)
