"""Models that a program makes for each call, as public templates do: real clients, against a server that answers."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypedDict

import openai
import pytest
from langchain.chat_models import init_chat_model
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.graph import START, StateGraph
from llama_index.embeddings.openai import OpenAIEmbedding
from pydantic import PrivateAttr

import accel
from accel import accelerate
from accel.parts.identities.identity import Identities, identity_of
from adapters.tests import three_calls
from adapters.tests.three_calls import State, environment, url

__all__ = ["environment", "url"]
"""Fixtures."""

TOPICS = ("bees", "iron smelting", "the far side of the moon")


pytestmark = pytest.mark.usefixtures("environment")

Make = Callable[[State], Any]


def program(make: Make, is_async: bool = False) -> Any:
    def plain(state: State, prompt: str) -> Any:
        return make(state).invoke(prompt).content

    async def coroutine(state: State, prompt: str) -> Any:
        return (await make(state).ainvoke(prompt)).content

    return three_calls.program(coroutine if is_async else plain, is_async)


def retired(graph: Any, inputs: list[State], run: Callable[[Any, State], Any]) -> int:
    """Of the last run; the results of all are those of the plain program."""
    fast = accelerate(graph)
    before = 0
    for value in inputs:
        before = fast.report().retired
        assert run(fast, value) == run(graph, value)
        assert accel.settle(10)
    total: int = fast.report().retired
    return total - before


def invoke(graph: Any, value: State) -> Any:
    return graph.invoke(value)


MAKES: dict[str, Make] = {
    "by its class": lambda state: ChatOpenAI(model="m", temperature=0),
    "by name": lambda state: init_chat_model("openai:m", temperature=0),
    "with tools": lambda state: init_chat_model("openai:m").bind(stop=["END"]),
}


INPUTS: list[State] = [{"topic": topic} for topic in TOPICS]


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_calls_of_models_made_per_call_are_made_early(make: Make) -> None:
    assert retired(program(make), INPUTS, invoke) >= 1


def test_coroutines_of_models_made_per_call_are_started_early() -> None:
    with asyncio.Runner() as runner:
        graph = program(MAKES["by its class"], is_async=True)
        assert retired(graph, INPUTS, lambda program, value: runner.run(program.ainvoke(value))) >= 1


def test_a_tenant_s_key_is_used_only_after_the_program_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run has a key of its own. What the run's first call used, its next may."""
    used: list[tuple[str, str]] = []
    send = openai.OpenAI.request

    def noted(self: openai.OpenAI, cast_to: Any, options: Any, **more: Any) -> Any:
        used.append((str(self.api_key), options.json_data["messages"][0]["content"]))
        return send(self, cast_to, options, **more)

    monkeypatch.setattr(openai.OpenAI, "request", noted)
    graph = program(lambda state: ChatOpenAI(model="m", temperature=0, api_key=state["key"]))  # type: ignore[arg-type]
    inputs: list[State] = [{"topic": topic, "key": f"sk-{topic}"} for topic in TOPICS]
    retired(graph, inputs, invoke)
    for topic in TOPICS:
        assert {key for key, prompt in used if topic in prompt} == {f"sk-{topic}"}


# --- identity ---------------------------------------------------------------------------------------------------------

SAME: dict[str, Callable[[], Any]] = {
    "ChatOpenAI": lambda: ChatOpenAI(model="m"),
    "OpenAIEmbeddings": lambda: OpenAIEmbeddings(model="m"),
    "ChatOllama": lambda: ChatOllama(model="m"),
}


@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
def test_clients_made_alike_are_the_same(make: Callable[[], Any]) -> None:
    assert identity_of(make(), False) == identity_of(make(), False)


def test_a_used_client_is_the_same_as_a_new_one() -> None:
    used = ChatOpenAI(model="m")
    used.invoke("Good morning.")
    assert identity_of(used, False) == identity_of(ChatOpenAI(model="m"), False)


def test_a_client_made_with_the_first_use_is_nothing_of_its_own() -> None:
    """Or the first run of a program would call two components where the next ones call one."""
    embedding = OpenAIEmbedding(api_key="sk-of-all")
    before = identity_of(embedding, False)
    assert embedding._client is None and embedding._get_client() is embedding._client
    assert identity_of(embedding, False) == before
    embedding.api_key = "sk-of-ann"
    assert identity_of(embedding, False) != before


def replaced(model: ChatOpenAI, **client: Any) -> ChatOpenAI:
    model.root_client = openai.OpenAI(**client)
    return model


OTHERS: dict[str, Callable[[], Any]] = {
    "key": lambda: ChatOpenAI(model="m", api_key="sk-of-ann"),  # type: ignore[arg-type]
    "address": lambda: ChatOpenAI(model="m", base_url="http://127.0.0.1:9/v1"),
    "headers": lambda: ChatOpenAI(model="m", default_headers={"x-tenant": "ann"}),
    "time": lambda: ChatOpenAI(model="m", timeout=3),
    "organization": lambda: ChatOpenAI(model="m", organization="ann's"),
    "client": lambda: ChatOpenAI(model="m", http_client=openai.DefaultHttpxClient()),
    "root client": lambda: replaced(ChatOpenAI(model="m"), base_url="http://127.0.0.1:9/v1"),
    "root client's key": lambda: replaced(ChatOpenAI(model="m"), api_key="sk-of-ann"),
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_clients_made_otherwise_are_others(make: Callable[[], Any]) -> None:
    assert identity_of(make(), False) != identity_of(ChatOpenAI(model="m"), False)


CHANGES: dict[str, Callable[[Any], None]] = {
    "key": lambda model: setattr(model.root_client, "api_key", "sk-of-ann"),
    "address": lambda model: setattr(model.root_client, "base_url", "http://127.0.0.1:9/v1"),
    "headers": lambda model: model.root_client._custom_headers.update({"x-tenant": "ann"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_client_that_was_changed_after_a_look_stands_for_no_other(change: Callable[[Any], None]) -> None:
    one, other, run = ChatOpenAI(model="m"), ChatOpenAI(model="m"), Identities()
    before = run.of(one, False)
    assert before == run.of(other, False) and run.untouched(one)
    change(one)
    assert run.of(one, False) == identity_of(one, False) != before == run.of(other, False)
    assert not run.untouched(one) and run.untouched(other)


def test_connections_with_settings_of_their_own_are_their_own() -> None:
    """A TLS context does not tell which certificates it holds."""

    def model(verify: ssl.SSLContext | bool) -> Any:
        made = ChatOpenAI(model="m")
        made.root_client = openai.OpenAI(http_client=openai.DefaultHttpxClient(verify=verify))
        return made

    assert identity_of(model(ssl.create_default_context()), False) != identity_of(model(True), False)


def test_a_client_of_a_user_s_own_class_is_only_itself() -> None:
    class Own(openai.OpenAI):
        pass

    def model() -> Any:
        made = ChatOpenAI(model="m")
        made.root_client = Own()
        return made

    assert identity_of(model(), False) != identity_of(model(), False)


class Tagged(BaseChatModel):
    tag: str
    _asked: list[tuple[str, str]] = PrivateAttr()

    def __init__(self, asked: list[tuple[str, str]], **fields: Any) -> None:
        super().__init__(**fields)
        self._asked = asked

    @property
    def _llm_type(self) -> str:
        return "tagged"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        text = str(messages[-1].content)
        self._asked.append((self.tag, text))
        time.sleep(0.02)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"A reply to: {text}"))])


accel.register(Tagged, pure=True, concurrency=8, local=True)


def test_what_goes_to_each_tenant_s_model_goes_to_no_other_before() -> None:
    """Neither to the one that all share, nor to another one of the tenant's."""
    asked: list[tuple[str, str]] = []
    shared = Tagged(asked, tag="shared")

    def of(name: str) -> Callable[[Any], Any]:
        def node(state: Any) -> Any:
            tag = "shared" if name in ("first", "last") else f"{name[:3]} of {state['tenant']}"
            model = shared if tag == "shared" else Tagged(asked, tag=tag)
            return {name: model.invoke(f"{name} about {state['topic']}").content}

        return node

    names = ("first", "own", "own again", "key", "key again", "last")
    graph = StateGraph(TypedDict("Told", dict.fromkeys(("topic", "tenant", *names), str)))  # type: ignore[operator]
    for before, name in pairwise((START, *names)):
        graph.add_node(f"{name} node", of(name))
        graph.add_edge(before if before == START else f"{before} node", f"{name} node")
    fast = accelerate(graph.compile())
    for topic, tenant in zip(("bees", "iron", "moon", "bread", "salt", "glass"), "aabbcd", strict=True):
        asked.clear()
        fast.invoke({"topic": topic, "tenant": tenant})
        assert accel.settle(10)
        whose = {name: "shared" if name in ("first", "last") else f"{name[:3]} of {tenant}" for name in names}
        assert {tag for tag, text in asked if text == f"own about {topic}"} == {whose["own"]}
        assert all(tag == whose[text.removesuffix(f" about {topic}")] for tag, text in asked), asked
