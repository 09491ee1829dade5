"""Objects that stand for others (Flask's `request`, Django's `request.user`, lazy settings) are never asked: some
raise, others read a database when they are looked at. They are wherever programs have objects."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
import wrapt
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, StateGraph

import accel

QUESTIONS = ("bees", "iron", "the moon", "bread")


class Raising:
    """As outside of a request."""

    def _no(self, *args: Any) -> Any:
        raise RuntimeError("outside of a request")

    __class__ = property(_no)  # type: ignore[assignment]
    __getattr__ = __eq__ = __hash__ = __bool__ = __repr__ = __str__ = __iter__ = __len__ = __contains__ = _no  # type: ignore[assignment]


class Lazy:
    """As Django's: whatever is asked of it, it loads first."""

    def __init__(self, load: Callable[[], Any]) -> None:
        object.__setattr__(self, "load", load)

    __class__ = property(lambda self: type(self.load()))  # type: ignore[assignment]
    __iter__ = lambda self: iter(self.load())  # noqa: E731
    __len__ = lambda self: len(self.load())  # noqa: E731
    __bool__ = lambda self: bool(self.load())  # noqa: E731
    __eq__ = lambda self, other: self.load() == other  # noqa: E731  # type: ignore[assignment]
    __hash__ = lambda self: hash(str(self.load()))  # noqa: E731  # type: ignore[assignment]
    __getitem__ = lambda self, key: self.load()[key]  # noqa: E731

    def __getattr__(self, name: str) -> Any:
        return getattr(self.load(), name)


class Slotted(Raising):
    """One that keeps nothing itself, and asks another one for `__dict__`."""

    __slots__ = ()
    __dict__ = property(Raising._no)  # type: ignore[assignment]


def raising(loaded: list[str]) -> Any:
    return Raising()


def slotted(loaded: list[str]) -> Any:
    return Slotted()


def lazy(loaded: list[str]) -> Any:
    return Lazy(lambda: loaded.append("loaded") or {"name": "ann"})


def lazy_proxy(loaded: list[str]) -> Any:
    return wrapt.LazyObjectProxy(lambda: loaded.append("loaded") or {"name": "ann"})


class Row(Mapping[str, Any]):
    """As of a database that reads a column when it is asked for."""

    def __init__(self, loaded: list[str]) -> None:
        self.loaded = loaded

    def __getitem__(self, name: str) -> Any:
        self.loaded.append(name)
        return name

    def __iter__(self) -> Any:
        self.loaded.append("names")
        return iter(("name", "city"))

    def __len__(self) -> int:
        self.loaded.append("size")
        return 2


class Detached(Mapping[str, Any]):
    """One whose connection is closed."""

    def _no(self, *args: Any) -> Any:
        raise RuntimeError("no connection")

    __getitem__ = __iter__ = __len__ = _no


class LazyDict(dict[str, Any]):
    """It fills itself when it is read."""

    def __init__(self, loaded: list[str]) -> None:
        self.loaded = loaded

    def __getitem__(self, name: str) -> Any:
        self.loaded.append(name)
        return name

    def keys(self) -> Any:
        self.loaded.append("names")
        return {"name": 1}.keys()


class Related:
    """A field that reads what it is about when it is looked at."""

    def __get__(self, record: Any, of: Any = None) -> Any:
        if record is None:
            return ""
        vars(record)["loaded"].append("related")
        return "a relative"

    def __set__(self, record: Any, value: Any) -> None:
        pass


@dataclass
class Record:
    loaded: Any
    related: str = Related()  # type: ignore[assignment]


class Asked:
    """It notes every attribute that is asked for."""

    def __init__(self, loaded: list[str]) -> None:
        self.loaded = loaded

    def __getattribute__(self, name: str) -> Any:
        object.__getattribute__(self, "loaded").append(name)
        return object.__getattribute__(self, name)


class Registry(type):
    """Of classes that look up what they have not, and raise."""

    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError(name)


class Registered(metaclass=Registry):
    pass


def registered(loaded: list[str]) -> Any:
    return Registered()


def detached(loaded: list[str]) -> Any:
    return Detached()


class Model(BaseChatModel):
    held: Any = None

    @property
    def _llm_type(self) -> str:
        return "model"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        time.sleep(0.02)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"A reply to: {messages[-1].content}"))])


accel.register(Model, pure=True, concurrency=8, local=True)


class State(TypedDict, total=False):
    topic: str
    first: str
    second: str
    held: Any


class Holder:
    def __init__(self, value: Any) -> None:
        self.value, self.values, self.by_name = value, [value], {"value": value}


class Node:
    def __init__(self, model: Model, value: Any) -> None:
        self.model, self.value = model, value

    def __call__(self, state: State) -> State:
        return {"second": str(self.model.invoke(f"Second {state['topic']}").content)}


variable: Any = None


def program(place: str, value: Any) -> Any:
    global variable
    variable = value if place == "global" else None
    fields = {"field": value, "list in a field": [value], "object in a field": Holder(value)}
    model = Model(held=fields.get(place))
    if place == "attribute of a model":
        model.__dict__["further"] = value
    cell = {"closure": value, "list": [value, {"value": value}], "object": Holder(value)}.get(place)
    given = {"extra": value} if place == "argument" else {}

    def first(state: State, default: Any = value if place == "default" else None) -> State:
        cell, variable, default  # noqa: B018  a node refers to them, and leaves them alone
        told: State = {"first": str(model.invoke(f"First {state['topic']}").content)}
        return {**told, "held": value} if place == "state" else told

    def second(state: State) -> State:
        cell  # noqa: B018
        return {"second": str(model.invoke(f"Second {state['topic']}", **given).content)}

    if place == "attribute of a function":
        second.marker = value  # type: ignore[attr-defined]
    graph = StateGraph(State).add_node("first", first)
    graph.add_node("second", Node(model, value) if place == "node" else second)
    return graph.add_edge(START, "first").add_edge("first", "second").add_edge("second", END).compile()


def asked(graph: Any, place: str, value: Any) -> list[Any]:
    found = []
    for topic in QUESTIONS:
        given: State = {"topic": topic, "held": value} if place == "input" else {"topic": topic}
        found.append(graph.invoke(given)["second"])
        assert accel.settle(10)
    return found


PLACES = (
    "closure", "global", "default", "list", "object", "node", "attribute of a function", "attribute of a model",
    "field", "list in a field", "object in a field", "argument", "state", "input",
)  # fmt: skip


@pytest.mark.parametrize(
    "kind", [raising, slotted, lazy, lazy_proxy, Row, detached, LazyDict, Record, Asked, registered]
)
@pytest.mark.parametrize("place", PLACES)
def test_what_stands_for_another_object_is_left_alone(place: str, kind: Callable[[list[str]], Any]) -> None:
    loaded: list[str] = []
    value = kind(loaded)
    plain = asked(program(place, value), place, value)
    by_itself = len(loaded)  # the frameworks look at some

    loaded.clear()
    value = kind(loaded)
    fast = accel.accelerate(program(place, value))
    assert asked(fast, place, value) == plain
    report = fast.report()
    assert str(report) and len(loaded) == by_itself
    if place in ("closure", "global", "default", "list", "object", "node", "attribute of a function"):
        assert report.retired > 0, "it kept the program's calls from being early"
