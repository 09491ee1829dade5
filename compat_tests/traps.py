"""What the named traps share: an ordinary program around one component, run plain and accelerated.

The accelerated arm gives early calls every chance: before the program makes a call, all that can be early is. A
declared component among the program's own, the canary, shows that something was.
"""

from __future__ import annotations

import asyncio
import operator
import re
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

import accel

WAIT_S = 20.0
"""How long anything may take that ought to happen at once."""
REQUEST: ContextVar[str] = ContextVar("request", default="none")
TOPICS = ("amber basin 1", "cedar delta 2", "ember fjord 3 skip", "grove heron 4", "island jetty 5 skip", "kelp moor 6")

Wrap = Callable[[Any], Any]
Ask = Callable[[str], Any]


class State(TypedDict, total=False):
    topic: str
    parts: list[str]
    notes: Annotated[list[str], operator.add]


def text_of(messages: list[BaseMessage]) -> str:
    return str(messages[-1].content)


def result_of(text: str) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


class Chat(BaseChatModel):
    """What custom chat models have in common."""

    @property
    def _llm_type(self) -> str:
        return "trap"


class Canary(Chat):
    """Declared, so it may be early; its watcher knows when it has been entered. (Not in fields of its own: a model that
    has changed is another model.)"""

    number: int = 0

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        WATCHERS[self.number].entered[text_of(messages)].set()
        return result_of(f"the end of {text_of(messages)}")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


accel.register(Canary, pure=True, local=True, concurrency=8)


@dataclass(eq=False)
class Watcher:
    """Of one arm."""

    canary: Canary
    entered: defaultdict[str, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))
    learnt: bool = False
    """Whether the program has been."""

    def catch_up(self, topic: str) -> None:
        """Until what can be early is: the program's last call is the canary's."""
        accel.settle(WAIT_S)
        if self.learnt:
            assert self.entered[f"close {topic}"].wait(WAIT_S), "nothing was early"


WATCHERS: dict[int, Watcher] = {}


def watcher() -> Watcher:
    number = len(WATCHERS)
    WATCHERS[number] = Watcher(Canary(number=number))
    return WATCHERS[number]


@dataclass(frozen=True)
class Visit:
    """One call of a component, and where it found itself."""

    method: str
    text: str
    in_thread_of_node: bool
    in_task_of_node: bool
    thread: str
    request: str


@dataclass(eq=False)
class Here:
    """Where the node is that runs now, and who visited the component."""

    visits: list[Visit] = field(default_factory=list)
    thread: int = 0
    task: Any = None

    def arrive(self) -> None:
        self.thread, self.task = threading.get_ident(), current_task()

    def visit(self, method: str, text: str) -> None:
        thread = re.sub(r"\d+", "", threading.current_thread().name)
        mine, task = threading.get_ident() == self.thread, current_task()
        self.visits.append(Visit(method, text, mine, task is self.task, thread, REQUEST.get()))


def current_task() -> Any:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def program(ask: Ask, watch: Watcher, here: Here | None = None) -> Any:
    """Three nodes that ask the component about the topic (the second one not always), between two of our own."""
    graph = StateGraph(State)

    def node(name: str) -> Callable[[State], State]:
        def run(state: State) -> State:
            if here is not None:
                here.arrive()
            if name == "second" and "skip" in state["topic"]:
                return {"notes": ["skipped"]}
            return {"notes": [str(ask(f"{name} on {state['topic']}"))]}

        return run

    def opening(state: State) -> State:
        watch.catch_up(state["topic"])
        return {}

    def closing(state: State) -> State:
        return {"notes": [str(watch.canary.invoke(f"close {state['topic']}").content)]}

    names = ("first", "second", "third")
    graph.add_sequence([("opening", opening), *((name, node(name)) for name in names), ("closing", closing)])
    graph.add_edge(START, "opening")
    return graph.compile()


def program_async(ask: Callable[[str], Awaitable[Any]], watch: Watcher, here: Here | None = None) -> Any:
    """The same as coroutines."""
    graph = StateGraph(State)

    def node(name: str) -> Callable[[State], Awaitable[State]]:
        async def run(state: State) -> State:
            if here is not None:
                here.arrive()
            if name == "second" and "skip" in state["topic"]:
                return {"notes": ["skipped"]}
            return {"notes": [str(await ask(f"{name} on {state['topic']}"))]}

        return run

    async def opening(state: State) -> State:
        await asyncio.to_thread(watch.catch_up, state["topic"])
        return {}

    async def closing(state: State) -> State:
        return {"notes": [str((await watch.canary.ainvoke(f"close {state['topic']}")).content)]}

    names = ("first", "second", "third")
    graph.add_sequence([("opening", opening), *((name, node(name)) for name in names), ("closing", closing)])
    graph.add_edge(START, "opening")
    return graph.compile()


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - whatever a program raises is compared
        return f"{type(error).__name__}: {error}"


def run_async(graph: Any, given: State) -> Any:
    return asyncio.run(graph.ainvoke(given))


def each_topic(
    graph: Any, watch: Watcher, *, asynchronous: bool = False, topics: tuple[str, ...] = TOPICS
) -> list[Any]:
    """The outcome of a run on each topic; from the third one on the accelerated arm has learnt."""
    found = []
    for position, topic in enumerate(topics):
        if position == 2 and hasattr(graph, "report"):
            accel.settle(WAIT_S)
            watch.learnt = True
        REQUEST.set(f"request {position}")
        given = {"topic": topic}
        found.append(outcome(partial(run_async, graph, given) if asynchronous else partial(graph.invoke, given)))
    return found


def eagerly(graph: Any) -> Any:
    """Unknown components count as remote: so also what their endpoint has not seen."""
    return accel.accelerate(graph, egress="inputs")


def plain_and_fast(make: Callable[[], Any], ask: Callable[[Any], Ask]) -> tuple[Any, Any]:
    """What the program gives around a component, and the component afterwards; plain, and accelerated."""
    arms = []
    for wrap in (lambda graph: graph, eagerly):
        component, watch = make(), watcher()
        graph = wrap(program(ask(component), watch))
        found = each_topic(graph, watch)
        if hasattr(graph, "report"):
            assert graph.report().retired >= len(TOPICS) - 2, f"the canary's calls ought to be early: {graph.report()}"
        arms.append((found, component))
    return arms[0], arms[1]


def felt_by_nobody(make: Callable[[], Any], ask: Callable[[Any], Ask]) -> tuple[Any, Any]:
    """Asserts that the program's results are equal; gives the component of either arm."""
    (want, plain), (got, fast) = plain_and_fast(make, ask)
    assert got == want, f"\naccelerated: {got}\nplain:       {want}"
    return plain, fast
