"""The smallest programs of what the soak and the load have found."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, StateGraph

import accel
from accel.run.waits.waiting import patience_s

LONG_S = 30.0
"""Ends what hangs: nothing here takes a second."""


class State(TypedDict, total=False):
    question: str
    topic: str
    answer: str


class Halting(BaseChatModel):
    """Stops in a call whose prompt is to stop, until it is let go."""

    stop: Any = None
    halted: Any = None
    go_on: Any = None

    @property
    def _llm_type(self) -> str:
        return "halting"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        text = str(messages[-1].content)
        if self.stop.at and self.stop.at in text:
            self.halted.set()
            self.go_on.wait()
        return _echoed(text)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        text = str(messages[-1].content)
        if self.stop.at and self.stop.at in text:
            self.halted.set()
            await self.go_on.wait()
        return _echoed(text)


class HaltingTwo(Halting):
    """Takes two calls at a time."""


accel.register(Halting, pure=True, concurrency=1, local=True)
accel.register(HaltingTwo, pure=True, concurrency=2, local=True)


def switch() -> SimpleNamespace:
    """With a lock, so that it is no part of what a model is."""
    return SimpleNamespace(at="", lock=threading.Lock())


def _echoed(text: str) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=AIMessage(f"re {text}"))])


def program(model: Halting, between: Any) -> Any:
    """Asks for a topic, does something else, and writes about the topic: early, as the topic is known by then."""

    def first(state: State) -> State:
        return {"topic": str(model.invoke(f"Topic of {state['question']}").content)}

    async def afirst(state: State) -> State:
        return {"topic": str((await model.ainvoke(f"Topic of {state['question']}")).content)}

    def last(state: State) -> State:
        return {"answer": str(model.invoke(f"Write on {state['topic']}").content)}

    async def alast(state: State) -> State:
        return {"answer": str((await model.ainvoke(f"Write on {state['topic']}")).content)}

    is_async = asyncio.iscoroutinefunction(between)
    graph = StateGraph(State)
    graph.add_node("first", afirst if is_async else first)
    graph.add_node("between", between)
    graph.add_node("last", alast if is_async else last)
    graph.add_edge(START, "first")
    graph.add_edge("first", "between")
    graph.add_edge("between", "last")
    graph.add_edge("last", END)
    return accel.accelerate(graph.compile())


def test_an_early_call_that_stalls_keeps_nobody_else_from_the_component() -> None:
    model = Halting(stop=switch(), halted=threading.Event(), go_on=threading.Event())
    thinking = threading.Event()
    thinking.set()

    def between(state: State) -> State:
        thinking.wait()
        return {}

    fast = program(model, between)
    fast.warmup([{"question": "tides"}, {"question": "moors"}])
    model.stop.at = "Write on"
    thinking.clear()
    run = threading.Thread(target=fast.invoke, args=({"question": "dunes"},), daemon=True)
    said: list[Any] = []
    elsewhere = threading.Thread(target=lambda: said.append(model.invoke("hello").content), daemon=True)
    try:
        run.start()
        assert model.halted.wait(LONG_S)
        elsewhere.start()
        elsewhere.join(patience_s(Halting) + LONG_S)  # longer where the machine was slow to answer before
        assert said == ["re hello"]
    finally:
        model.go_on.set()
        thinking.set()
        run.join(LONG_S)


async def test_cancelling_one_who_waits_for_an_early_call_leaves_the_others_alone() -> None:
    model = HaltingTwo(stop=switch(), halted=asyncio.Event(), go_on=asyncio.Event())
    thinking = asyncio.Event()
    thinking.set()

    async def between(state: State) -> State:
        await thinking.wait()
        return {}

    fast = program(model, between)
    await fast.awarmup([{"question": "tides"}, {"question": "moors"}])
    model.stop.at = "Write on"
    thinking.clear()
    run = asyncio.create_task(fast.ainvoke({"question": "dunes"}))
    async with asyncio.timeout(LONG_S):
        await model.halted.wait()
    # Now an early call is inside, and one of the program's own: no place is left for these.
    full, one, other = (asyncio.create_task(model.ainvoke(text)) for text in ("Write on nothing", "one", "other"))
    await asyncio.wait([one, other], timeout=0.3)  # as far as they come
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)
    model.go_on.set()
    thinking.set()
    async with asyncio.timeout(LONG_S):
        assert (await other).content == "re other"
        assert (await full).content == "re Write on nothing"
        assert "dunes" in (await run)["answer"]


def test_a_loop_that_ends_closes_a_stream_that_somebody_left() -> None:
    complaints: list[Any] = []

    async def between(state: State) -> State:
        return {}

    async def leave() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        stream = program(Halting(stop=switch()), between).astream({"question": "tides"})
        await anext(aiter(stream))
        await loop.shutdown_asyncgens()  # as `asyncio.run` does

    asyncio.run(leave())
    assert complaints == []
