"""What objects of the program's do when Accel looks at them, and what nodes change while others wait."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import END, START, StateGraph

import accel
from accel.run.ongoing import open_runs

from .core_fakes import (
    WAIT_S,
    Chat,
    State,
    Store,
    StreamingChat,
    UnknownChat,
    World,
    as_text,
    chain,
    have_begun,
    naming,
    until,
)

TOPICS = ("rivers of Iceland", "lakes of Norway", "hills of Chile", "seas of Japan")


class Language(str):
    """Equal whatever the case, and without a hash."""

    def __eq__(self, other: object) -> bool:
        return self.lower() == str(other).lower()

    __hash__ = None  # type: ignore[assignment]


class Vault:
    def get_secret_value(self) -> str:
        raise ConnectionError("the vault does not answer")


class Rows(list[str]):
    """Reads a database when it is gone through."""

    def __iter__(self) -> Iterator[str]:
        raise ConnectionError("the database does not answer")


class Proxy:
    """Of a request that there is not."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("outside of a request")


@pytest.mark.parametrize("held", [Language("en"), Vault(), Rows(), Proxy()], ids=lambda held: type(held).__name__)
@pytest.mark.parametrize("mode", ["watch", "on"])
def test_a_field_that_raises_when_it_is_looked_at(held: Any, mode: Any) -> None:
    """The program never asks it anything."""
    model = UnknownChat(World(), secret=held)
    fast = accel.accelerate(chain(("ask", lambda state: {"a": model.invoke(state["q"]).content})))
    with accel.mode(mode):
        for topic in TOPICS:
            assert fast.invoke({"q": topic})["a"] == f"answer to <{topic}>"


@accel.pure
def sized(text: str, request: Any) -> int:
    return len(text)


def test_an_argument_that_raises_when_it_is_asked() -> None:
    fast = accel.accelerate(chain(("count", lambda state: {"a": str(sized(state["q"], Proxy()))})))
    for topic in TOPICS:
        assert fast.invoke({"q": topic})["a"] == str(len(topic))


# --- changed while the program waits --------------------------------------------------------------------------------


class Client(Chat):
    tenant: str = "house"
    _sent: list[str] = []

    def _result(self, messages: Any, kwargs: Any) -> ChatResult:
        sent_as = self.tenant  # as a request is built: before it is answered
        self._sent.append(sent_as)
        said = self._world.serve(self.label, as_text(messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"as {sent_as}: {said}"))])


accel.register(Client, pure=True, local=True, concurrency=8)


def beside(world: World, talk: Callable[[Any], Any], tune: Callable[[], Any]) -> Any:
    """A node that talks, and one beside it that sets something."""
    model = Chat(world)

    def think(state: Any) -> Any:
        world.node("think")
        return {"a": model.invoke(f"Which words name the {state['q']}?").content}

    def talks(state: Any) -> Any:
        world.node("talk")
        return {"b": talk(f"Tell of the {state['q']}")}

    builder = StateGraph(State)
    builder.add_node("think", think)
    builder.add_node("talk", talks)
    builder.add_node("tune", lambda state: {"c": tune()})
    builder.add_edge(START, "think")
    for name in ("talk", "tune"):
        builder.add_edge("think", name)
        builder.add_edge(name, END)
    return builder.compile()


def joined(text: str) -> None:
    """Until the program waits for an early call with this text."""
    until(
        lambda: any(call.joined for run in open_runs() for call in run.calls.all() if text in str(call.input)),
        "the program joined nothing",
    )


def test_a_call_that_the_program_waits_for_is_its_own() -> None:
    """What another node sets meanwhile is for that node's next call."""
    world, held = World(), threading.Event()
    client = Client(world)

    def tune() -> str:
        if held.is_set():
            joined("Tell")
            client.tenant = "guest"
            world.gates["Tell"].set()
        return "tuned"

    fast = accel.accelerate(beside(world, lambda text: client.invoke(text).content, tune))
    for topic in TOPICS[:3]:
        fast.invoke({"q": topic})
        assert accel.settle()
    world.gates["Tell"] = threading.Event()
    held.set()
    client._sent.clear()
    told = fast.invoke({"q": TOPICS[3]})["b"]
    assert told == f"as house: answer to <Tell of the {TOPICS[3]}>" and client._sent == ["house"]


class Sampled(StreamingChat):
    temperature: float = 0.5
    _number: Any = None

    def _words(self, messages: Any) -> Iterator[ChatGenerationChunk]:
        self._world.serve(self.label, as_text(messages))
        number = next(SAMPLES)
        for at in range(4):
            gate = self._world.gates.get(f"piece {at}")
            if gate is not None:
                assert gate.wait(WAIT_S)
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"[{number}.{at}]"))


SAMPLES = itertools.count()
accel.register(Sampled, pure=True, local=True, concurrency=8, streams_equal=True)


def test_a_stream_that_is_read_goes_on_when_its_model_is_set_otherwise() -> None:
    world, held, started = World(), threading.Event(), threading.Event()
    talker = Sampled(world)

    def talk(text: str) -> str:
        pieces = []
        for chunk in talker.stream(text):
            pieces.append(chunk.text)
            started.set()
        return "".join(pieces)

    def tune() -> str:
        if held.is_set():
            assert started.wait(WAIT_S)
            talker.temperature = 0.7
            world.gates["piece 2"].set()
        return "tuned"

    fast = accel.accelerate(beside(world, talk, tune))
    for topic in TOPICS[:3]:
        fast.invoke({"q": topic})
        assert accel.settle()
    world.gates["piece 2"] = threading.Event()
    started.clear()
    held.set()
    world.forget()
    told = fast.invoke({"q": TOPICS[3]})["b"]
    number = told[1 : told.index(".")]
    assert told == "".join(f"[{number}.{at}]" for at in range(4)) and len(world.texts("Tell")) == 1


# --- functions in an input ------------------------------------------------------------------------------------------

USER = "nobody"
HELD = {"user": "nobody"}
REQUEST = threading.local()


def by_variable(row: Document) -> bool:
    return bool(row.metadata["owner"] == USER)


def by_item(row: Document) -> bool:
    return bool(row.metadata["owner"] == HELD["user"])


def by_thread(row: Document) -> bool:
    return bool(row.metadata["owner"] == getattr(REQUEST, "user", None))


def by_another(row: Document) -> bool:
    return by_variable(row)


class Owned(Store):
    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self.world.serve("store", query)
        rows = [Document(page_content=f"{owner}'s {query}", metadata={"owner": owner}) for owner in ("ann", "bob")]
        return list(filter(kwargs["filter"], rows))


accel.register(Owned, readonly=True, local=True, concurrency=8)


@pytest.mark.parametrize("allowed", [by_variable, by_item, by_thread, by_another])
def test_a_filter_that_reads_who_is_logged_in(allowed: Callable[[Document], bool]) -> None:
    world = World()
    model, store = Chat(world), Owned(world)

    def log_in(state: Any) -> Any:
        global USER
        USER = HELD["user"] = REQUEST.user = state["c"]
        have_begun()
        return {}

    def find(state: Any) -> Any:
        world.node("find")
        REQUEST.user = state["c"]
        return {"b": [row.page_content for row in store.similarity_search(f"on {state['q']}", filter=allowed)]}

    fast = accel.accelerate(chain(("first", naming(world, model)), ("log in", log_in), ("find", find)))
    for topic, who in zip(TOPICS, ("ann", "bob", "ann", "bob"), strict=True):
        assert fast.invoke({"q": topic, "c": who})["b"] == [f"{who}'s on {topic}"]
        assert accel.settle()
