"""Invariant 2, inside clients: what a program gives to the client of a listed component (hooks, authentication,
transports, middleware) is code of its own, and runs when the program calls, on its threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import anthropic
import httpx
import ollama
import openai
import pytest
import requests
from langchain_ollama import ChatOllama
from langchain_openai import AzureChatOpenAI, ChatOpenAI, OpenAIEmbeddings
from langchain_tavily import TavilySearch
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.ollama import Ollama  # type: ignore[import-untyped]
from llama_index.llms.openai import OpenAI

import accel
from accel import accelerate
from accel.parts.components import facts_of
from adapters.tests import three_calls
from adapters.tests.three_calls import environment, url

__all__ = ["environment", "url"]
"""Fixtures."""

pytestmark = pytest.mark.usefixtures("environment")
TOPICS = ("bees and their hives", "iron smelting in Sweden", "the far side of the moon")
told: list[object] = []
_user = threading.local()


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    told.clear()
    _user.name = "ann"


def tell(request: Any) -> Any:
    told.append(getattr(_user, "name", "nobody"))
    return request


async def atell(request: Any) -> None:
    tell(request)


class Signing(httpx.Auth):
    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        yield tell(request)


class Telling(httpx.HTTPTransport):
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return super().handle_request(tell(request))


class ATelling(httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await super().handle_async_request(tell(request))


class Own(httpx.Client):
    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        return super().send(tell(request), **options)


def later_hook() -> httpx.Client:
    client = httpx.Client()
    client.event_hooks["request"].append(tell)
    return client


GIVEN: dict[str, Callable[[], httpx.Client]] = {
    "hook": lambda: httpx.Client(event_hooks={"request": [tell]}),
    "hook of an object": lambda: httpx.Client(event_hooks={"request": [partial(tell)]}),
    "hook that is Python's": lambda: httpx.Client(event_hooks={"request": [told.append]}),
    "auth": lambda: httpx.Client(auth=Signing()),
    "function": lambda: httpx.Client(auth=tell),
    "transport": lambda: httpx.Client(transport=Telling()),
    "mount": lambda: httpx.Client(mounts={"http://": Telling()}),
    "subclass": lambda: Own(),
}
CLIENTS: dict[str, Callable[[Any], Any]] = {
    "langchain": lambda client: ChatOpenAI(model="m", temperature=0, http_client=client),
    "sdk": lambda client: openai.OpenAI(http_client=client).chat.completions,
}


@pytest.mark.parametrize(("of", "given"), [("langchain", "hook"), ("sdk", "auth")])
def test_no_code_that_a_client_was_given_runs_early(of: str, given: str) -> None:
    with GIVEN[given]() as http:
        model = CLIENTS[of](http)

        def ask(state: Any, prompt: str) -> str:
            asked = [{"role": "user", "content": prompt}]
            told.append("call")
            if of == "langchain":
                return str(model.invoke(asked).content)
            return str(model.create(model="m", messages=asked).choices[0].message.content)

        fast = accelerate(three_calls.program(ask))
        for topic in TOPICS:
            fast.invoke({"topic": topic})
            assert accel.settle(10)
        asked, report = told.copy(), fast.report()
    assert report.issued == 0 and asked[::2] == ["call"] * len(asked[::2])
    assert len(asked) == 2 * 3 * len(TOPICS) and "nobody" not in asked
    cls = type(model).__name__
    assert f"{cls} is not called early: its client was given" in str(report)
    assert f"accel.register({cls}, pure=True)" in str(report)


def test_no_coroutine_that_a_client_was_given_runs_early() -> None:
    with asyncio.Runner() as runner:
        http = httpx.AsyncClient(auth=Signing(), event_hooks={"request": [atell]}, transport=ATelling())
        model = ChatOpenAI(model="m", temperature=0, http_async_client=http)

        async def ask(state: Any, prompt: str) -> str:
            told.append("call")
            return str((await model.ainvoke(prompt)).content)

        fast = accelerate(three_calls.program(ask, is_async=True))
        for topic in TOPICS:
            runner.run(fast.ainvoke({"topic": topic}))
            assert accel.settle(10)
        runner.run(http.aclose())
    assert fast.report().issued == 0 and told == ["call", "ann", "ann", "ann"] * (3 * len(TOPICS))


def test_what_a_node_gives_to_its_client_runs_with_no_early_call() -> None:
    with httpx.Client() as http:
        model = ChatOpenAI(model="m", temperature=0, http_client=http)

        def ask(state: Any, prompt: str) -> str:
            if prompt.startswith("Write") and state["topic"] == TOPICS[-1]:
                answer = str(model.invoke(prompt).content)
                http.auth = tell  # type: ignore[assignment]
                return answer
            return str(model.invoke(prompt).content)

        fast = accelerate(three_calls.program(ask, is_async=False))
        for topic in (*TOPICS[:2], TOPICS[0]):
            fast.invoke({"topic": topic})
            assert accel.settle(10)
        assert fast.report().issued > 0
        fast.invoke({"topic": TOPICS[-1]})
        assert accel.settle(10)
    assert "nobody" not in told


UNLISTED: dict[str, Callable[[], Any]] = {
    "embeddings": lambda: OpenAIEmbeddings(http_client=httpx.Client(auth=tell)),
    "embeddings, async": lambda: OpenAIEmbeddings(http_async_client=httpx.AsyncClient(auth=tell)),
    "azure": lambda: AzureChatOpenAI(
        azure_endpoint="https://models.example.com", api_version="1", http_client=httpx.Client(auth=tell)
    ),
    "llama_index": lambda: OpenAI(model="gpt-4o", http_client=httpx.Client(auth=tell)),
    "llama_index, async": lambda: OpenAI(model="gpt-4o", async_http_client=httpx.AsyncClient(auth=tell)),
    "llama_index, embeddings": lambda: OpenAIEmbedding(http_client=httpx.Client(auth=tell)),
    "llama_index, ollama": lambda: Ollama(model="m", client=ollama.Client(auth=tell)),
    "ollama": lambda: ollama.Client(event_hooks={"response": [tell]}),
    "ollama, async": lambda: ollama.AsyncClient(transport=ATelling()),
    "langchain, ollama": lambda: ChatOllama(model="m", client_kwargs={"auth": tell}),
    "anthropic": lambda: anthropic.Anthropic(api_key="k", http_client=anthropic.DefaultHttpxClient(auth=tell)).messages,
    "a transport of a function": lambda: ChatOpenAI(
        http_client=httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(200)))
    ),
    "a hook that came later": lambda: ChatOpenAI(http_client=later_hook()),
}


@pytest.mark.parametrize("of", CLIENTS)
@pytest.mark.parametrize("given", GIVEN)
def test_nobody_vouches_for_a_client_with(given: str, of: str) -> None:
    facts = facts_of(CLIENTS[of](GIVEN[given]()))
    assert not facts.pure and "its client was given" in facts.reason


@pytest.mark.parametrize("name", UNLISTED)
def test_nobody_vouches_for_what_a_client_was_given(name: str) -> None:
    facts = facts_of(UNLISTED[name]())
    assert not facts.pure and "its client was given" in facts.reason


LISTED: dict[str, Callable[[], Any]] = {
    "plain": lambda: ChatOpenAI(),
    "settings": lambda: ChatOpenAI(
        timeout=3, http_client=httpx.Client(limits=httpx.Limits(max_connections=3), timeout=9, verify=False)
    ),
    "proxy": lambda: ChatOpenAI(http_client=httpx.Client(proxy="http://127.0.0.1:9")),
    "password": lambda: ChatOpenAI(http_client=httpx.Client(auth=("ann", "secret"))),
    "transport": lambda: ChatOpenAI(http_client=httpx.Client(transport=httpx.HTTPTransport(retries=2))),
    "headers": lambda: ChatOpenAI(default_headers={"x-app": "a"}, http_client=httpx.Client(headers={"x": "y"})),
    "default client": lambda: openai.OpenAI(http_client=openai.DefaultHttpxClient(verify=False)).chat.completions,
    "azure": lambda: AzureChatOpenAI(azure_endpoint="https://models.example.com", api_version="1"),
    "anthropic": lambda: anthropic.AsyncAnthropic(api_key="k").messages,
    "ollama": lambda: ollama.Client(timeout=3),
    "langchain, ollama": lambda: ChatOllama(model="m", client_kwargs={"timeout": 3}),
    "llama_index": lambda: OpenAI(model="gpt-4o"),
    "llama_index, ollama": lambda: Ollama(model="m"),
    "tavily": lambda: TavilySearch(tavily_api_key="k"),
}


@pytest.mark.parametrize("name", LISTED)
def test_what_a_client_is_made_with_leaves_it_listed(name: str) -> None:
    made = LISTED[name]()
    for _ in range(2):
        facts = facts_of(made)
        assert facts.pure and facts.reason.startswith("listed: ")


def test_what_a_client_is_given_later_is_seen_then() -> None:
    http = httpx.Client()
    model = ChatOpenAI(http_client=http)
    assert facts_of(model).pure
    http.auth = tell
    assert not facts_of(model).pure
    http.auth = None
    assert facts_of(model).pure
    http.event_hooks = {"request": [tell]}
    assert not facts_of(model).pure
    http.event_hooks = {}
    assert facts_of(model).pure
    http.send = tell  # type: ignore[method-assign,assignment]
    assert not facts_of(model).pure
    accel.register(model, pure=True)
    assert facts_of(model).pure, "somebody vouches for it"


def test_what_a_session_was_given_is_seen() -> None:
    from accel.parts.identities.own_code import own_code

    class Sends:
        def __init__(self) -> None:
            self.session = requests.Session()

    sends = Sends()
    assert not own_code(sends)
    sends.session.hooks["response"].append(tell)
    assert "tell" in own_code(sends)
    sends.session.hooks["response"].clear()
    sends.session.auth = tell
    assert "tell" in own_code(sends)
    sends.session.auth = ("ann", "secret")
    assert not own_code(sends)
    sends.session.mount("https://", type("Mine", (requests.adapters.HTTPAdapter,), {})())
    assert "Mine" in own_code(sends)
