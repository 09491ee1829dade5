"""Invariant 5 where a private address is reached through others: a proxy, or an answer that leads on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from langchain_openai import ChatOpenAI
from llama_index.llms.openai import OpenAI

from accel.parts.components import facts_of
from accel.parts.identities import surroundings
from accel.parts.network import http, routes

PUBLIC, NEAR = "http://proxy.example.com:3128", "http://10.0.0.9:3128"
PRIVATE = "http://10.1.2.3/v1"
MODELS = "models.example.com"


def chat(**given: Any) -> ChatOpenAI:
    return ChatOpenAI(model="m", base_url=PRIVATE, api_key="k", **given)


def by_client(proxy: str) -> ChatOpenAI:
    return chat(http_client=httpx.Client(proxy=proxy), http_async_client=httpx.AsyncClient())


def by_coroutines(proxy: str) -> ChatOpenAI:
    return chat(http_client=httpx.Client(), http_async_client=httpx.AsyncClient(proxy=proxy))


def by_mounts(proxy: str) -> ChatOpenAI:
    transport = httpx.HTTPTransport(proxy=proxy)
    return chat(http_client=httpx.Client(mounts={"all://": transport}), http_async_client=httpx.AsyncClient())


def by_a_field(proxy: str) -> ChatOpenAI:
    return chat(openai_proxy=proxy)


WAYS = (by_client, by_coroutines, by_mounts, by_a_field)


@pytest.mark.parametrize("way", WAYS)
def test_a_private_address_behind_a_proxy_is_where_the_proxy_is(way: Callable[[str], ChatOpenAI]) -> None:
    assert not facts_of(way(PUBLIC)).local
    assert facts_of(way(NEAR)).local


def test_a_proxy_for_other_addresses_is_none_for_this_one() -> None:
    mounts = {"all://": httpx.HTTPTransport(proxy=PUBLIC), "all://10.1.2.3": None}
    model = chat(http_client=httpx.Client(mounts=mounts), http_async_client=httpx.AsyncClient())
    assert facts_of(model).local


def of_langchain() -> ChatOpenAI:
    return chat(http_client=httpx.Client(), http_async_client=httpx.AsyncClient())


def with_clients_to_come() -> OpenAI:
    return OpenAI(model="m", api_base=PRIVATE, api_key="k")


@pytest.mark.parametrize("make", [of_langchain, with_clients_to_come])
def test_a_proxy_of_the_processs_variables(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in surroundings.NAMES:
        monkeypatch.delenv(name, raising=False)
    assert facts_of(make()).local
    monkeypatch.setenv("HTTP_PROXY", PUBLIC)
    monkeypatch.setenv("http_proxy", PUBLIC)
    assert not facts_of(make()).local
    monkeypatch.setenv("NO_PROXY", "10.1.2.3")
    monkeypatch.setenv("no_proxy", "10.1.2.3")
    assert facts_of(make()).local


class Leads(BaseHTTPRequestHandler):
    """Answers that somebody else has it: for what is asked at a private name, one at a public one."""

    def do_POST(self) -> None:
        leads = self.headers["host"].startswith("127.")
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(307 if leads else 200)
        if leads:
            self.send_header("location", f"http://{MODELS}:{self.server.server_address[1]}{self.path}")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def leading(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    asked = socket.getaddrinfo

    def here(host: Any, *given: Any, **more: Any) -> Any:
        return asked("127.0.0.1" if host in (MODELS, MODELS.encode()) else host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", here)
    monkeypatch.setattr(routes, "_led", {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), Leads)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_an_address_whose_answers_lead_on_is_where_they_lead(leading: str) -> None:
    http.install()
    model, other = ChatOpenAI(model="m", base_url=leading, api_key="k"), of_langchain()
    assert facts_of(model).local
    with httpx.Client(follow_redirects=True, trust_env=False) as client:
        assert client.post(f"{leading}/chat", json={}).status_code == 200
    assert not facts_of(model).local
    assert facts_of(other).local
