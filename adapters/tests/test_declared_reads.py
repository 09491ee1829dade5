"""Invariant 3 with components that a program declares, and whose code reads what nobody hands over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import StructuredTool
from pydantic import PrivateAttr

import accel
from accel import accelerate
from accel.parts.components import facts_of
from adapters.tests.core_fakes import TOPICS, Chat, UnknownChat, World, after_thinking, train

TOPIC = "beaches of Portugal"
REQUEST = threading.local()
Ask = Callable[[str], Any]


def tenant() -> str:
    return str(getattr(REQUEST, "tenant", "nobody"))


class Session:
    """What a program keeps its requests in."""

    def __init__(self) -> None:
        self._local = threading.local()

    @property
    def tenant(self) -> str:
        return str(getattr(self._local, "tenant", "nobody"))


SESSION = Session()


@pytest.fixture
def world() -> Iterator[World]:
    REQUEST.tenant = SESSION._local.tenant = "ann"
    yield World()
    del REQUEST.tenant, SESSION._local.tenant


class ByFunction(UnknownChat):
    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": tenant()})


class ByObject(UnknownChat):
    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": SESSION.tenant})


class ByField(UnknownChat):
    _session: Any = PrivateAttr(default_factory=lambda: SESSION)

    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": self._session.tenant})


class ByClass(UnknownChat):
    of_request: ClassVar[Any] = REQUEST

    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": self.of_request.tenant})


class ByImport(UnknownChat):
    def _result(self, messages: Any, kwargs: Any) -> Any:
        from adapters.tests.test_declared_reads import REQUEST as request

        return super()._result(messages, {"tenant": getattr(request, "tenant", "nobody")})


class Desk:
    def __init__(self, world: World) -> None:
        self.world = world

    def find(self, topic: str) -> str:
        return f"{self.world.serve('desk', topic)} for {tenant()}"


class Shelf(BaseRetriever):
    desk: Any

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        return [Document(self.desk.find(query))]


accel.register(Desk, methods=["find"], readonly=True, local=True)
accel.register(Shelf, readonly=True, local=True)
for model in (ByFunction, ByObject, ByField, ByClass, ByImport):
    accel.register(model, pure=True, local=True, concurrency=8)


def early(world: World) -> list[str]:
    """What was asked early but by the first node, whose model reads nothing."""
    return [text for text in world.texts(early=True) if not text.startswith("Alpha")]


def asking(model: type[UnknownChat]) -> Callable[[World], tuple[Any, Ask]]:
    def made(world: World) -> tuple[Any, Ask]:
        component = model(world)
        return component, lambda q: component.invoke(f"Beta asks: {q}").content

    return made


def by_client(world: World) -> tuple[Any, Ask]:
    desk = Desk(world)
    return desk, desk.find


def by_retriever(world: World) -> tuple[Any, Ask]:
    shelf = Shelf(desk=Desk(world))
    return shelf, lambda q: shelf.invoke(q)[0].page_content


def by_tool(world: World) -> tuple[Any, Ask]:
    def find(q: str) -> str:
        """Find it."""
        return f"{world.serve('tool', q)} for {tenant()}"

    tool = accel.register(StructuredTool.from_function(find), readonly=True, local=True)
    return tool, lambda q: tool.invoke({"q": q})


def by_pure_function(world: World) -> tuple[Any, Ask]:
    def find(q: str) -> str:
        return f"{world.serve('function', q)} for {tenant()}"

    return find, accel.pure(find)


MODELS = (ByFunction, ByObject, ByField, ByClass, ByImport)


@pytest.mark.parametrize(
    "made",
    [*map(asking, MODELS), by_client, by_retriever, by_tool, by_pure_function],
    ids=lambda made: made.__qualname__,
)
def test_what_reads_a_thread_local_is_not_early(world: World, made: Callable[[World], tuple[Any, Ask]]) -> None:
    component, ask = made(world)
    plain = after_thinking(world, lambda state: ask(state["q"])).invoke({"q": TOPIC})
    fast = accelerate(after_thinking(world, lambda state: ask(state["q"])))
    train(fast, (*TOPICS, "lakes of Malawi"))
    world.forget()
    assert fast.invoke({"q": TOPIC}) == plain
    assert not early(world), "they would be nobody's"
    why = facts_of(component).reason
    assert "a threading.local" in why and "ContextVar" in why
    assert accel.settle() and any(why in str(reason) for reason in fast.plan.reasons.values())


def test_what_only_others_read_says_nothing(world: World) -> None:
    """Its nodes use one, and so do methods that no call of the component runs."""

    class Apart(Chat):
        def of_this_thread(self) -> str:
            return tenant()

    accel.register(Apart, pure=True, local=True, concurrency=8)
    model = Apart(world)
    fast = accelerate(after_thinking(world, lambda state: model.invoke(f"Beta asks: {state['q']}").content + tenant()))
    train(fast)
    world.hooks["b"] = lambda: world.wait_early(f"Beta asks: {TOPIC}")
    assert fast.invoke({"q": TOPIC})["b"].endswith("ann")
    assert facts_of(model).pure
