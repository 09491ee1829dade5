"""A user's module: graphs on a model that answers by its prompt, as `accel check` is given them."""

from __future__ import annotations

import asyncio
import itertools
import operator
import threading
from collections import deque
from typing import Annotated, Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send, interrupt
from pydantic import Field

import accel
from accel.run.scope import scope
from adapters.tests.catching_up import catch_up

KEY = "sk-live-0123456789abcdefghij"
INPUTS = [{"question": "apples and pears"}, {"question": "the north coast"}, {"question": "a painted door"}]
PATIENCE_S = 0.5


class Tally:
    """How often a model was asked: no part of what it is."""

    def __init__(self) -> None:
        self.count = 0


class Oracle(BaseChatModel):
    """`samples`: no two answers are the same. `leaks`: what it says of itself holds its key."""

    api_key: str = KEY
    samples: bool = False
    leaks: bool = False
    tally: Any = Field(default_factory=Tally)

    @property
    def _llm_type(self) -> str:
        return "oracle"

    def _say(self, messages: list[BaseMessage]) -> AIMessage:
        catch_up()  # a demand takes time
        self.tally.count += 1
        text = str(messages[-1].content)
        if "fragile" in text:
            raise ValueError(f"no answer to {text}")
        number = f" #{self.tally.count}" if self.samples else ""
        about: dict[str, Any] = {"created": self.tally.count, "id": f"chatcmpl-{self.tally.count:09}"}
        if self.leaks:
            about["request"] = {"authorization": f"Bearer {self.api_key}", "header": self.api_key}
        return AIMessage(f"<{text}>{number}", response_metadata=about)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._say(messages))])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(0)
        return self._generate(messages)


class Streaming(Oracle):
    """Says its answer word by word where somebody listens."""

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        for word in str(self._say(messages).content).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(word + " "))


accel.register(Oracle, pure=True, concurrency=8, local=True, twins=True)
accel.register(Streaming, pure=True, concurrency=8, local=True, twins=True)


class State(TypedDict, total=False):
    question: str
    one: str
    two: str
    three: str


def three_calls(model: BaseChatModel) -> Any:
    """The third call needs the first two, which need only the question."""
    builder: Any = StateGraph(State)
    builder.add_node("first", lambda state: {"one": model.invoke(f"One: {state['question']}").content})
    builder.add_node("second", lambda state: {"two": model.invoke(f"Two: {state['question']}").content})
    builder.add_node("third", lambda state: {"three": model.invoke(f"Join {state['one']}, {state['two']}").content})
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", "third")
    builder.add_edge("third", END)
    return builder


builder = three_calls(Oracle())
graph = builder.compile()
chain = PromptTemplate.from_template("Describe {question}") | Oracle() | (lambda message: message.content)


def sampled() -> Any:
    return three_calls(Oracle(samples=True)).compile()


def streaming() -> Any:
    return three_calls(Streaming(samples=True)).compile()


def leaking() -> Any:
    return three_calls(Oracle(leaks=True)).compile()


async def awaited() -> Any:
    """Nodes that are coroutines."""
    model = Oracle(samples=True)

    async def one(state: State) -> State:
        return {"one": str((await model.ainvoke(f"One: {state['question']}")).content)}

    async def two(state: State) -> State:
        return {"two": str((await model.ainvoke(f"Two: {state['question']}")).content)}

    made: Any = StateGraph(State)
    made.add_sequence([one, two])
    made.add_edge(START, "one")
    await asyncio.sleep(0)
    return made.compile()


def opinions() -> Any:
    """Asks a sampled model the same three times, one after the other, and once more side by side."""
    model = Oracle(samples=True)

    class Votes(TypedDict, total=False):
        question: str
        votes: Annotated[list[str], operator.add]

    def ask(state: Any) -> Any:
        return {"votes": [str(model.invoke(f"Vote: {state['question']}").content)]}

    def thrice(state: Any) -> Any:
        return {"votes": [str(model.invoke(f"Opinion: {state['question']}").content) for _ in range(3)]}

    made: Any = StateGraph(Votes)
    made.add_node("ask", ask)
    made.add_node("thrice", thrice)
    made.add_edge(START, "thrice")
    made.add_conditional_edges("thrice", lambda state: [Send("ask", state)] * 3, ["ask"])
    return made.compile()


def chatting() -> Any:
    """Messages, as LangGraph's reducer takes them."""
    model = Oracle()

    class Talk(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]

    made: Any = StateGraph(Talk)
    made.add_node("talk", lambda state: {"messages": [model.invoke(state["messages"])]})
    made.add_edge(START, "talk")
    return made.compile()


# --- what is declared, and isn't true

_notes = deque[str]()
"""Accel compares plain data in variables, and does not look into this."""
_early = threading.Event()


def _recall(question: str) -> str:
    here = scope.get()
    if here is not None and here.early:
        _early.set()
    return f"{question}: {len(_notes)} notes"


recall = accel.pure(_recall)


def wrong(model: BaseChatModel | None = None) -> Any:
    """Declares a function pure that reads what the node before it writes, and asks the model about what it gave."""
    model = model or Oracle()

    def write(state: State) -> State:
        _notes.clear()
        said = str(model.invoke(f"Note on {state['question']}").content)
        if scope.get() is not None:
            _early.wait(PATIENCE_S)  # for an early call, if there is one
        _early.clear()
        _notes.append(said)
        return {"one": said}

    def read(state: State) -> State:
        return {"two": recall(state["question"])}

    def tell(state: State) -> State:
        return {"three": str(model.invoke(f"Tell {state['two']}").content)}

    made: Any = StateGraph(State)
    made.add_sequence([write, read, tell])
    made.add_edge(START, "write")
    return made.compile()


def gathering() -> Any:
    """Keeps what it was asked in a store of its own, and finds more with each run."""
    model, kept = Oracle(), list[str]()

    def keep(state: State) -> State:
        kept.append(state["question"])
        return {"one": ", ".join(kept)}

    made: Any = StateGraph(State)
    made.add_node("keep", keep)
    made.add_node("first", lambda state: {"two": model.invoke(f"Two: {state['question']}").content})
    made.add_node("second", lambda state: {"three": model.invoke(f"Three: {state['question']}").content})
    made.add_edge(START, "keep")
    made.add_edge("keep", "first")
    made.add_edge("first", "second")
    return made.compile()


_runs = itertools.count()


def restless() -> Any:
    """Differs from run to run by itself."""
    made: Any = StateGraph(State)
    made.add_node("count", lambda state: {"one": f"run {next(_runs)}"})
    made.add_edge(START, "count")
    return made.compile()


def asking() -> Any:
    """Pauses for a person, on a thread that is saved, and says who runs it."""

    def ask(state: State, config: RunnableConfig) -> State:
        one = str(Oracle().invoke(f"Ask of {state['question']} for {config['configurable'].get('user')}").content)
        return {"one": one, "two": str(interrupt(one))}

    made: Any = StateGraph(State)
    made.add_node("ask", ask)
    made.add_edge(START, "ask")
    return made.compile(checkpointer=InMemorySaver())
