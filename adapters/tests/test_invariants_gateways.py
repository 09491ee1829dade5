"""Invariant 6, behind a gateway: one address, several recipients. What one model, account or vendor was sent in a run
is not sent early to another one at the same host."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest
from langchain_core.runnables import RunnableConfig
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.graph import START, StateGraph
from llama_index.llms.openai import OpenAI
from pydantic import SecretStr

import accel
from accel import accelerate
from accel.parts.identities.credentials import Keys
from accel.parts.network.recipients import recipient
from adapters.tests.catching_up import catch_up
from adapters.tests.three_calls import State

GATEWAY = "https://gateway.example.com"


def model(model: str = "trusted", key: str = "k", path: str = "/v1", **given: Any) -> ChatOpenAI:
    return ChatOpenAI(model=model, api_key=SecretStr(key), base_url=GATEWAY + path, temperature=0, **given)


OTHERS: dict[str, dict[str, Any]] = {
    "model": {"model": "cheap"},
    "account": {"key": "of-another-account"},
    "vendor": {"path": "/vendor-b/v1"},
    "header": {"default_headers": {"x-provider": "cheap"}},
    "route": {"extra_body": {"provider": {"order": ["cheap"]}}},
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_one_recipient_has_is_not_sent_to_another_at_the_same_host(other: str) -> None:
    sent: list[str] = []

    def answer(to: str) -> Callable[[httpx.Request], httpx.Response]:
        def answers(request: httpx.Request) -> httpx.Response:
            time.sleep(0.02)  # what makes an early call worth while
            text = json.loads(request.content)["messages"][-1]["content"]
            sent.append(f"{to}: {text}")
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text[::-1]}}
            body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            return httpx.Response(200, json=body)

        return answers

    def client(to: str) -> httpx.Client:
        return httpx.Client(transport=httpx.MockTransport(answer(to)))

    trusted, cheap = model(http_client=client("trusted")), model(**OTHERS[other], http_client=client("cheap"))
    for each in (trusted, cheap):
        accel.register(each, pure=True, concurrency=8)

    def look(state: State) -> State:
        return {"outline": str(trusted.invoke(f"Is this personal? {state['topic']}").content)}

    def work(state: State) -> State:
        asked = trusted if "secret" in state["topic"] else cheap
        return {name: str(asked.invoke(f"{name} {state['topic']}").content) for name in ("keywords", "both")}  # type: ignore[return-value]

    graph = StateGraph(State).add_node("look", look).add_node("work", work).add_edge(START, "look")
    fast = accelerate(graph.add_edge("look", "work").compile(), speculate="likely")
    for topic in ("bees and hives", "iron in Sweden", "the far side of the moon", "bread of long ago"):
        fast.invoke({"topic": topic})
        assert accel.settle(10)
    sent.clear()
    fast.invoke({"topic": "my secret number 123-45"})
    assert accel.settle(10)
    assert [text for text in sent if text.startswith("cheap")] == []


@pytest.mark.parametrize("always", [True, False], ids=["every call", "not the first"])
def test_a_header_that_a_run_brings_tells_whose_the_calls_are(always: bool) -> None:
    """One that all calls of a run have keeps none of them; what another account has is not sent to this one early."""
    sent: list[tuple[str, str]] = []

    def answers(request: httpx.Request) -> httpx.Response:
        time.sleep(0.02)  # what makes an early call worth while
        text = json.loads(request.content)["messages"][-1]["content"]
        sent.append((request.headers.get("x-tenant", "none"), text))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text[::-1]}}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return httpx.Response(200, json=body)

    shared = model(http_client=httpx.Client(transport=httpx.MockTransport(answers)))
    accel.register(shared, pure=True, concurrency=8)
    early_before_work: list[list[tuple[str, str]]] = []

    def look(state: State, config: RunnableConfig) -> State:
        headers = {"x-tenant": config["configurable"]["tenant"]} if always else {}
        outline = str(shared.invoke(f"Is this personal? {state['topic']}", extra_headers=headers).content)
        catch_up()
        early_before_work.append(list(sent))
        return {"outline": outline}

    def work(state: State, config: RunnableConfig) -> State:
        headers = {"x-tenant": config["configurable"]["tenant"]}
        return {
            name: str(shared.invoke(f"{name} {state['topic']}", extra_headers=headers).content)  # type: ignore[misc]
            for name in ("keywords", "both")
        }

    graph = StateGraph(State).add_node("look", look).add_node("work", work).add_edge(START, "look")
    fast = accelerate(graph.add_edge("look", "work").compile())
    topics = ("bees and hives", "iron in Sweden", "the far side of the moon", "bread of long ago", "a letter to Anna")
    for topic, tenant in zip(
        topics, ("ann-of-leeds", "ben-of-ghent", "ann-of-leeds", "ben-of-ghent", "cleo"), strict=True
    ):
        sent.clear()
        fast.invoke({"topic": topic}, {"configurable": {"tenant": tenant}})
        assert accel.settle(10)
        asked = [f"Is this personal? {topic}", f"keywords {topic}", f"both {topic}"]
        assert sorted(sent) == sorted(zip((tenant if always else "none", tenant, tenant), asked, strict=True))
    assert len(early_before_work[-1]) == (3 if always else 1)


def of(component: Any, **asked: Any) -> Any:
    return recipient(component, Keys().note(component), {"args": [], "kwargs": asked})


def test_equal_models_behind_a_gateway_are_one_recipient() -> None:
    assert (
        of(model()) == of(model()) == of(ChatOpenAI(model="trusted", api_key=SecretStr("k"), base_url=f"{GATEWAY}/v1"))
    )
    assert of(model(), model="cheap") == of(model("cheap")) != of(model())
    assert of(model(), extra_body={"models": ["cheap"]}) != of(model())
    client = openai.OpenAI(base_url=GATEWAY, api_key="k")
    one = of(client.chat.completions, model="trusted")
    assert one == of(openai.OpenAI(base_url=GATEWAY, api_key="k").chat.completions, model="trusted")
    assert one != of(client.chat.completions, model="cheap")
    assert one != of(openai.OpenAI(base_url=GATEWAY, api_key="other").chat.completions, model="trusted")
    assert of(OpenAI(model="a", api_base=GATEWAY, api_key="k")) != of(OpenAI(model="b", api_base=GATEWAY, api_key="k"))


def test_all_models_of_a_vendor_under_one_key_are_one_recipient() -> None:
    vendor = {"api_key": SecretStr("k"), "base_url": "https://api.openai.com/v1"}
    assert of(ChatOpenAI(model="a", **vendor)) == of(ChatOpenAI(model="b", temperature=0.3, **vendor))
    vendor["api_key"] = SecretStr("of-another-account")
    assert of(ChatOpenAI(model="a", **vendor)) != of(ChatOpenAI(model="a", api_key=SecretStr("k")))


def test_where_it_is_not_told_who_gets_it_the_instance_is_its_own_recipient() -> None:
    given = {"model": "m", "base_url": GATEWAY, "api_key": lambda: "k"}
    one, other = ChatOpenAI(**given), ChatOpenAI(**given)
    assert of(one) != of(other) and of(one) != of(one), "a function may give another key each time"
    client = openai.OpenAI(base_url=GATEWAY, api_key="k")
    assert of(client.chat.completions) == id(client.chat.completions)
    server = "http://models.example.com:11434"
    assert of(ChatOllama(model="m", base_url=server)) == of(ChatOllama(model="m", base_url=server))
    assert of(ChatOllama(model="m", base_url=server)) != of(ChatOllama(model="n", base_url=server))
    assert of(OpenAIEmbeddings(api_key=SecretStr("k"), base_url=GATEWAY)) != of(model())
