"""Methods that somebody puts in the place of a component's own: mocks, whose users expect that nothing else is called,
and wrappers, which say what they wrap."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, ClassVar, TypedDict
from unittest import mock

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, StateGraph

import accel
from accel import accelerate
from accel.parts.methods import patches
from accel.parts.methods.methods import METHODS, Method, build_call, read_call


class Sent(BaseChatModel):
    """Remembers what was sent."""

    sent: ClassVar[list[str]] = []

    @property
    def _llm_type(self) -> str:
        return "sent"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        time.sleep(0.02)  # what makes an early call worth while
        self.sent.append(str(messages[-1].content))
        return answer(f"Reply to {messages[-1].content}")


accel.register(Sent, pure=True, concurrency=8, local=True)


def answer(text: str) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


class State(TypedDict, total=False):
    topic: str
    outline: str
    keywords: str


def program(model: BaseChatModel) -> Any:
    graph = StateGraph(State)
    graph.add_node("outlining", lambda state: {"outline": model.invoke(f"Outline {state['topic']}").content})
    graph.add_node("finding", lambda state: {"keywords": model.invoke(f"Keywords of {state['topic']}").content})
    graph.add_edge(START, "outlining")
    graph.add_edge("outlining", "finding")
    return accelerate(graph.compile())


def early(fast: Any, topic: str) -> int:
    """How many calls of this run were answered by early ones."""
    before: int = fast.report().retired
    fast.invoke({"topic": topic})
    assert accel.settle(10)
    retired: int = fast.report().retired
    return retired - before


@pytest.fixture
def model() -> Sent:
    return Sent()


@pytest.fixture
def fast(model: Sent) -> Any:
    made = program(model)
    for topic in ("bees", "iron", "bread"):
        early(made, topic)
    assert early(made, "the moon") >= 1, "learnt"
    return made


def fake(self: Sent, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
    time.sleep(0.05)  # long enough for early calls
    return answer("mocked")


def mocked_on_the_class(model: Sent, fake: Callable[..., Any]) -> Any:
    return mock.patch.object(Sent, "_generate", fake)


def mocked_on_the_object(model: Sent, fake: Callable[..., Any]) -> Any:
    return mock.patch.dict(vars(model), {"_generate": functools.partial(fake, model)})


@pytest.mark.parametrize("mocked", [mocked_on_the_class, mocked_on_the_object])
def test_what_is_mocked_is_not_called_behind_the_mock(model: Sent, fast: Any, mocked: Callable[..., Any]) -> None:
    before = len(model.sent)
    with mocked(model, fake):
        assert fast.invoke({"topic": "tides"})["keywords"] == "mocked"
        assert accel.settle(10)
        assert model.sent[before:] == []
    assert fast.invoke({"topic": "sand"})["keywords"] == "Reply to Keywords of sand"


def test_a_wrapper_that_says_what_it_wraps_calls_it(model: Sent, fast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As tracing does that begins after the first run."""
    inner = Sent._generate

    @functools.wraps(inner)
    def traced(self: Sent, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        return inner(self, messages, *args, **kwargs)

    assert patches.stands(model, "_generate")
    monkeypatch.setattr(Sent, "_generate", traced)
    assert patches.stands(model, "_generate")
    monkeypatch.setattr(Sent, "_generate", lambda self, *args, **kwargs: inner(self, *args, **kwargs))
    assert not patches.stands(model, "_generate"), "it doesn't say so"


class Speaker:
    def say(self, text: str) -> str:
        return f"says {text}"


class Thin(Speaker):
    def say(self, text: str) -> str:
        return super().say(text.strip())


def test_the_leaf_of_a_class_that_passes_its_calls_on_is_its_base_s() -> None:
    method = Method("say", "saying", "tool", "sync", read_call, build_call, str)
    patches.enable()
    with mock.patch.object(Thin, "say", mock.MagicMock(return_value="a mock's")):
        assert not patches.pass_on(Thin, "say")
    assert patches.pass_on(Thin, "say")
    patches.install(Speaker, method)
    thin = Thin()
    try:
        assert patches.has_leaf(thin, "say") and patches.stands(thin, "say")
        assert patches.original(thin, method)(" a ") == "says  a "
        assert thin.say(" a ") == "says a"
        with mock.patch.object(Thin, "say", lambda self, text: "a mock's"):
            assert not patches.stands(thin, "say")
        with mock.patch.object(Speaker, "say", lambda self, text: "a mock's"):
            assert not patches.stands(thin, "say")
    finally:
        patches.uninstall()
        METHODS.pop(("saying", "say"), None)
    assert patches.original(thin, method)(" a ") == "says a"
