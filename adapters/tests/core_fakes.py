"""Small components that say who called them, early or not, and that wait where a test wants them to."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.vectorstores import VectorStore
from langgraph.graph import END, START, StateGraph
from pydantic import PrivateAttr
from typing_extensions import TypedDict

import accel
from accel.run.ongoing import open_runs
from accel.run.scope import scope

WAIT_S = 20.0
TENANT: ContextVar[str] = ContextVar("core_fakes_tenant", default="nobody")


@dataclass(eq=False)
class Entry:
    """One call that reached a component."""

    component: str
    text: str
    early: bool
    over: bool = False


@dataclass(eq=False)
class World:
    """What happened in the components of one test, and what they shall do."""

    calls: list[Entry] = field(default_factory=list)
    gates: dict[str, threading.Event] = field(default_factory=dict)
    """A call whose text holds the key waits for the event."""
    errors: dict[str, Exception] = field(default_factory=dict)
    """A call whose text holds the key raises."""
    hooks: dict[str, Callable[[], None]] = field(default_factory=dict)
    """By node name: runs when the node starts."""
    visits: list[str] = field(default_factory=list)
    answer: Callable[[str], str] = staticmethod(lambda text: f"answer to <{text}>")
    inside: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)
    """By component: the most calls that were ever inside at once."""
    cond: threading.Condition = field(default_factory=threading.Condition)

    def serve(self, component: str, text: str) -> str:
        here = scope.get()
        entry = Entry(component, text, here is not None and here.early)
        with self.cond:
            self.calls.append(entry)
            inside = self.inside[component] = self.inside.get(component, 0) + 1
            self.most[component] = max(self.most.get(component, 0), inside)
            self.cond.notify_all()
        try:
            for key, gate in list(self.gates.items()):
                if key in text:
                    assert gate.wait(WAIT_S), f"nobody opened the gate {key!r}"
            for key, error in list(self.errors.items()):
                if key in text:
                    raise error
            return self.answer(text)
        finally:
            with self.cond:
                self.inside[component] -= 1
                entry.over = True
                self.cond.notify_all()

    def node(self, name: str) -> None:
        """First line of every node: note the visit, let Accel follow the run up to here, do what the test wants."""
        with self.cond:
            self.visits.append(name)
            self.cond.notify_all()
        assert accel.settle()
        have_begun()
        hook = self.hooks.get(name)
        if hook is not None:
            hook()

    def wait(self, what: Callable[[], bool]) -> None:
        with self.cond:
            assert self.cond.wait_for(what, WAIT_S), f"never happened; calls were {self.calls}"

    def wait_early(self, text: str, over: bool = True) -> None:
        """Until an early call whose text begins with `text` has started (or ended)."""
        self.wait(lambda: any(c.early and c.text.startswith(text) and (c.over or not over) for c in self.calls))

    def texts(self, part: str = "", early: bool | None = None) -> list[str]:
        return [c.text for c in self.calls if c.text.startswith(part) and (early is None or c.early == early)]

    def forget(self) -> None:
        self.calls.clear()
        self.visits.clear()


def until(what: Callable[[], bool], never: str) -> None:
    """Wait for what nobody tells of."""
    until_s = monotonic() + WAIT_S
    while not what():
        assert monotonic() < until_s, never
        threading.Event().wait(0.001)


def have_begun() -> None:
    """Until threads have begun what was issued to them: a call that the program reaches before them is its own."""
    until(
        lambda: (
            not any(
                call.state == "queued" and call.standing == "early" and call.loop is None and call.lender is None
                for run in open_runs()
                for call in run.calls.all()
            )
        ),
        "an early call has not begun",
    )


def naming(world: World, model: Any) -> Callable[[Any], dict[str, str]]:
    """A node `first` that asks which words name what a run is about."""

    def first(state: Any) -> dict[str, str]:
        world.node("first")
        return {"a": model.invoke(f"Which words name the {state['q']}?").content}

    return first


def as_text(messages: list[BaseMessage]) -> str:
    return "\n".join(str(message.content) for message in messages)


class UnknownChat(BaseChatModel):
    """A model of a user: nobody declared anything. No state in its code; one call at a time; remote."""

    label: str = "chat"
    style: str = ""
    secret: Any = None
    base_url: str = ""
    _world: World = PrivateAttr()

    def __init__(self, world: World, **fields: Any) -> None:
        super().__init__(**fields)
        self._world = world

    @property
    def _llm_type(self) -> str:
        return "core-fake"

    def _result(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> ChatResult:
        text = as_text(messages)
        said = self._world.serve(self.label, text) + self.style + str(kwargs or "")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return self._result(messages, kwargs)


class Chat(UnknownChat):
    """Declared pure, local, eight calls at a time."""


class NarrowChat(UnknownChat):
    """Nothing but local is declared: so one call at a time."""


class RemoteChat(UnknownChat):
    """A stateless client of a service elsewhere."""

    base_url: str = "https://api.example.com/v1"


class TenantChat(Chat):
    """Its answer depends on a ContextVar."""

    def _result(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> ChatResult:
        said = f"{TENANT.get()}: {self._world.serve(self.label, as_text(messages))}"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])


class SampledChat(Chat):
    """Every call gives another sample."""

    def _result(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> ChatResult:
        said = self._world.serve(self.label, as_text(messages))
        with self._world.cond:
            number = self._world.inside["samples"] = self._world.inside.get("samples", 0) + 1
        message = AIMessage(f"{said} sample {number}", id=f"sample-{number}")
        return ChatResult(generations=[ChatGeneration(message=message)])


class CountingChat(UnknownChat):
    """Its answers depend on the order of calls."""

    count: int = 0

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.count += 1
        return self._result(messages, {"number": self.count})


class StreamingChat(Chat):
    """Streams its answer word by word; `gates` hold single words back."""

    def _words(self, messages: list[BaseMessage]) -> Iterator[ChatGenerationChunk]:
        text = self._world.serve(self.label, as_text(messages))
        for position, piece in enumerate(text.split("~")):
            gate = self._world.gates.get(f"piece {position}")
            if gate is not None:
                assert gate.wait(WAIT_S)
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))

    def _result(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> ChatResult:
        said = "".join(chunk.text for chunk in self._words(messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        yield from self._words(messages)


class Embed(Embeddings):
    """Declared pure and local: a vector from the length of the text."""

    def __init__(self, world: World) -> None:
        self.world = world

    def embed_query(self, text: str) -> list[float]:
        self.world.serve("embed", text)
        return [float(len(text)), 1.0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(self.world.serve("embed", text))), 1.0] for text in texts]


class Store(VectorStore):
    """Somebody else's store: `rows` may change behind Accel's back."""

    def __init__(self, world: World, rows: dict[str, str] | None = None) -> None:
        self.world = world
        self.rows = dict(rows or {})

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self.world.serve("store", query)
        return [Document(page_content=text) for text in list(self.rows.values())[:k]]

    def add_texts(self, texts: Iterable[str], metadatas: Any = None, **kwargs: Any) -> list[str]:
        for text in texts:
            self.world.serve("store", f"add {text}")
            self.rows[text] = text
        return []

    @classmethod
    def from_texts(cls, texts: list[str], embedding: Embeddings, metadatas: Any = None, **kwargs: Any) -> Store:
        raise NotImplementedError


class OwnedStore(Store):
    """All writes pass through this class."""

    __accel__ = {"pure": True, "local": True, "concurrency": 8, "owned": True}


class ReadonlyStore(Store):
    """Declared readonly."""


accel.register(Chat, pure=True, local=True, concurrency=8)
accel.register(NarrowChat, pure=True, local=True)
accel.register(StreamingChat, pure=True, local=True, concurrency=8, streams_equal=True)
accel.register(RemoteChat, pure=True, concurrency=8)
accel.register(Embed, pure=True, local=True, concurrency=8, elementwise=True)
accel.register(Store, pure=True, local=True, concurrency=8)
accel.register(ReadonlyStore, readonly=True)


class State(TypedDict, total=False):
    q: str
    a: Any
    b: Any
    c: Any


def chain(*nodes: tuple[str, Callable[..., Any]], **options: Any) -> Any:
    """A compiled graph of these nodes, one after the other."""
    builder = StateGraph(State)
    names = [START, *(name for name, _ in nodes), END]
    for name, function in nodes:
        builder.add_node(name, function)
    for left, right in zip(names, names[1:], strict=False):
        builder.add_edge(left, right)
    return builder.compile(**options)


def forked(*nodes: Callable[..., Any], guard: str = "", **options: Any) -> Any:
    """A compiled graph of these functions one after the other, but for the last two: of those the one runs that ``a``
    names."""
    *row, last, left, right = (node.__name__ for node in nodes)
    builder = StateGraph(State)
    for node in nodes:
        builder.add_node(node.__name__, node, metadata={"guard": node.__name__ == guard})
    for before, after in itertools.pairwise([START, *row, last]):
        builder.add_edge(before, after)
    builder.add_conditional_edges(last, lambda state: state["a"], [left, right])
    builder.add_edge(left, END)
    builder.add_edge(right, END)
    return builder.compile(**options)


def after_thinking(world: World, *nodes: Callable[[State], Any], **options: Any) -> Any:
    """a asks a model about the question; then these functions run, nodes b, c, ..., which return what they found."""
    model = Chat(world)

    def node(name: str, function: Callable[[State], Any]) -> tuple[str, Callable[[State], Any]]:
        def visit(state: State) -> Any:
            world.node(name)
            return {name: function(state)}

        return name, visit

    def asks(state: State) -> Any:
        return model.invoke(f"Alpha asks: {state['q']}").content

    return chain(*(node(*pair) for pair in zip("abc", (asks, *nodes), strict=False)), **options)


def three(world: World, model: Any, other: Any = None, **options: Any) -> Any:
    """a and b ask about the question, c puts both answers together."""
    other = other or model

    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": other.invoke(f"Beta asks: {state['q']}").content}

    def c(state: State) -> State:
        world.node("c")
        return {"c": model.invoke(f"Gamma joins {state['a']} with {state['b']}.").content}

    return chain(("a", a), ("b", b), ("c", c), **options)


TOPICS = ("volcanoes of Iceland", "glaciers of Norway")


def train(fast: Any, topics: Iterable[str] = TOPICS, config: Any = None) -> None:
    """Two runs with different inputs, and the learning after them."""
    for topic in topics:
        fast.invoke({"q": topic}, config)
        assert accel.settle()
