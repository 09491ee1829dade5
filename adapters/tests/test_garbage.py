"""A run that is over leaves nothing to the garbage collector, whose turns an event loop feels."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, StateGraph

import accel
from accel.process import threads
from accel.reports.pictures.bars import after
from accel.run.plans.plan import MAX_WAITING
from accel.run.run import Run
from accel.run.scope import scope


class Chat(BaseChatModel):
    """Answers a little later, and knows in which runs."""

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 64}
    runs: ClassVar[list[weakref.ref[Run]]] = []
    gone: ClassVar[threading.Semaphore] = threading.Semaphore(0)
    """Released for each of them whose run is no more."""
    was_early: ClassVar[threading.Event] = threading.Event()

    @property
    def _llm_type(self) -> str:
        return "chat"

    def _answer(self, messages: Any) -> ChatResult:
        here = scope.get()
        if here is not None:
            gone = self.gone
            self.runs.append(weakref.ref(here.run, lambda _: gone.release()))
            if here.early:
                self.was_early.set()
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"about {messages[-1].content} and more"))])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        time.sleep(0.002)
        return self._answer(messages)

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(0.002)
        return self._answer(messages)


class State(TypedDict, total=False):
    question: str
    notes: list[str]


PARTS = ("its history", "its people", "its food", "its weather")
EARLY = "Turin"
"""A run on this goes on when something was early."""
WAIT_S = 30.0


def program(asynchronous: bool) -> Any:
    llm = Chat()

    def notes(state: State) -> dict[str, list[str]]:
        if state["question"] == EARLY:
            assert llm.was_early.wait(WAIT_S)
        return {"notes": [llm.invoke(f"Write on {part} of {state['question']}").text for part in PARTS]}

    async def anotes(state: State) -> dict[str, list[str]]:
        if state["question"] == EARLY:
            assert await asyncio.to_thread(llm.was_early.wait, WAIT_S)
        return {"notes": [(await llm.ainvoke(f"Write on {part} of {state['question']}")).text for part in PARTS]}

    builder = StateGraph(State)
    builder.add_node("notes", anotes if asynchronous else notes)
    builder.add_edge(START, "notes")
    builder.add_edge("notes", END)
    return accel.accelerate(builder.compile())


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "coroutines"])
def test_a_run_is_gone_when_it_is_over(asynchronous: bool, no_collection: None) -> None:
    """As soon as the threads that were in it have let it go."""
    Chat.runs[:], Chat.gone = [], threading.Semaphore(0)
    Chat.was_early.clear()
    fast = program(asynchronous)
    for place in ("Lisbon", "Oslo", EARLY):
        given = {"question": place}
        asyncio.run(fast.ainvoke(given)) if asynchronous else fast.invoke(given)
        accel.settle()
    assert fast.report().retired
    for _ in Chat.runs:
        assert Chat.gone.acquire(timeout=WAIT_S), "a run stays"


def test_runs_that_wait_for_a_lesson_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those in which a loop was to be learnt, while the learner has no time."""
    posted: list[Any] = []
    monkeypatch.setattr(threads.learner, "post", lambda work, first=False: posted.append(work))
    Chat.runs[:] = []
    fast = program(asynchronous=False)
    for number in range(3 * MAX_WAITING):
        fast.plan.pace.news()
        fast.invoke({"question": f"Lisbon {number}"})
    gc.collect()
    alive = {run for ref in Chat.runs if (run := ref()) is not None}
    assert 0 < len(alive) <= MAX_WAITING + 1
    assert len(posted) <= 2 * (MAX_WAITING + 1)
    assert fast.plan.own_s > 0.0, "what following has taken counts, also of runs that nobody learns from"


def test_models_of_earlier_runs_are_gone() -> None:
    """A program that makes one for each request has its connections, too."""
    made: list[weakref.ref[Chat]] = []

    def answer(state: State) -> Any:
        llm = Chat()
        made.append(weakref.ref(llm))
        words = f"{len(made) ** 7:x}"  # nobody foresees them, so that all runs are kept to be learnt from
        return {"notes": [llm.invoke(f"{state['question']}: {part} {words}").text for part in PARTS]}

    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    fast = accel.accelerate(graph.compile())
    alive = []
    for number in range(20):
        fast.plan.pace.news()
        fast.invoke({"question": f"Lisbon {number}"})
        assert accel.settle()
        gc.collect()
        alive.append(sum(ref() is not None for ref in made))
    assert len(made) == 20
    assert max(alive[4:]) <= 4, "of the last run, and what the plan may call"
    assert "answer" in str(fast.report()), "which the last run is still told by"
    first = fast.plan.traces[0]
    assert {call.component for call in first.calls} == {None}
    assert {bar.what for lane in after(first, "").lanes for bar in lane.bars} == {"Chat"}
