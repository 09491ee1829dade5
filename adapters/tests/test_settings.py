"""What stores, retrievers and declared objects of the program's are set to: a node changes it for each tenant."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from requests.auth import HTTPBasicAuth

import accel

from .core_fakes import Chat, Store, World, chain, have_begun, naming

TENANTS = ("ann", "bob", "ann", "bob", "eve")
TOPICS = [f"{what} of {where}" for where in ("Iceland", "Norway", "Chile") for what in ("rivers", "lakes", "hills")]
Made = tuple[Callable[[str], str], Callable[[str], Any]]
"""How it is asked, and how a tenant is set."""


@dataclass
class Settings:
    tenant: str = "nobody"


class Retriever(BaseRetriever):
    world: Any
    search_kwargs: dict[str, Any] = {}
    settings: Any = None
    names: list[str] = []

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        self.world.serve("retriever", query)
        of = self.search_kwargs.get("tenant") or (self.settings and self.settings.tenant) or self.names[0]
        return [Document(page_content=f"{of}'s {query}")]


class Pages(Store):
    settings: Any = None
    asked = 0

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self.world.serve("store", query)
        self.asked += 1
        return [Document(page_content=f"{self.settings['of'][0]}'s {query}")]


class Desk:
    """Extends nothing."""

    def __init__(self, world: World) -> None:
        self.world, self.tenant, self.headers, self.asked = world, "nobody", {"of": "nobody"}, 0

    def by_name(self, query: str) -> str:
        self.world.serve("desk", query)
        self.asked += 1
        return f"{self.tenant}'s {query}"

    def by_headers(self, query: str) -> str:
        self.world.serve("desk", query)
        return f"{self.headers['of']}'s {query}"


accel.register(Retriever, readonly=True, local=True, concurrency=8)
accel.register(Pages, readonly=True, local=True, concurrency=8)
accel.register(Desk, methods=["by_name", "by_headers"], readonly=True, local=True, concurrency=8)


def retriever(world: World, tell: Callable[[Any, str], Any], **fields: Any) -> Made:
    made = Retriever(world=world, **fields)
    return lambda query: made.invoke(query)[0].page_content, lambda tenant: tell(made, tenant)


def store(world: World) -> Made:
    made = Pages(world, {})
    made.settings = {"of": ("nobody",)}
    return (
        lambda query: made.similarity_search(query)[0].page_content,
        lambda tenant: made.settings.update(of=(tenant,)),
    )


def desk(world: World, method: str, tell: Callable[[Any, str], Any]) -> Made:
    made = Desk(world)
    return getattr(made, method), lambda tenant: tell(made, tenant)


CASES: dict[str, Callable[[World], Made]] = {
    "an item of a dict": lambda world: retriever(
        world, lambda made, tenant: made.search_kwargs.update(tenant=tenant), search_kwargs={"k": 4}
    ),
    "a dict": lambda world: retriever(
        world, lambda made, tenant: setattr(made, "search_kwargs", {"tenant": tenant}), names=["nobody"]
    ),
    "an attribute of an object": lambda world: retriever(
        world, lambda made, tenant: setattr(made.settings, "tenant", tenant), settings=Settings()
    ),
    "an object": lambda world: retriever(
        world, lambda made, tenant: setattr(made, "settings", Settings(tenant)), names=["nobody"]
    ),
    "an item of a list": lambda world: retriever(
        world, lambda made, tenant: made.names.__setitem__(0, tenant), names=["nobody"]
    ),
    "a store's": store,
    "a text of what extends nothing": lambda world: desk(
        world, "by_name", lambda made, tenant: setattr(made, "tenant", tenant)
    ),
    "a dict of it": lambda world: desk(world, "by_headers", lambda made, tenant: made.headers.update(of=tenant)),
}


def program(world: World, ask: Callable[[str], str], tell: Callable[[str], Any]) -> Any:
    model = Chat(world)

    def log_in(state: Any) -> dict[str, str]:
        world.node("log in")
        tell(state["c"])
        return {}

    def find(state: Any) -> dict[str, str]:
        world.node("find")
        return {"b": ask(f"about the {state['q']}")}

    return chain(("first", naming(world, model)), ("log in", log_in), ("find", find))


@pytest.mark.parametrize("which", CASES)
def test_what_it_is_set_to(which: str) -> None:
    """No answer is another tenant's, and no question is asked in the name of one."""
    world = World()
    ask, tell = CASES[which](world)
    fast = accel.accelerate(program(world, ask, tell))
    for topic, tenant in zip(TOPICS, TENANTS, strict=False):
        world.forget()
        assert fast.invoke({"q": topic, "c": tenant})["b"] == f"{tenant}'s about the {topic}"
        assert accel.settle()
        assert len(world.texts("about")) == 1


@pytest.mark.parametrize("which", CASES)
def test_what_stays_as_it_was_set_is_early(which: str) -> None:
    """Although its calls count something."""
    world = World()
    ask, tell = CASES[which](world)
    tell("ann")
    fast = accel.accelerate(program(world, ask, lambda tenant: None))
    for topic in TOPICS[:4]:
        world.forget()
        assert fast.invoke({"q": topic, "c": "ann"})["b"] == f"ann's about the {topic}"
        assert accel.settle()
    assert world.texts("about", early=True)


# --- sessions of requests -------------------------------------------------------------------------------------------


class Host(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[str] = []
        """In whose name."""
        self.sets_cookies = False


class Answers(BaseHTTPRequestHandler):
    server: Host

    def log_message(self, *_: object) -> None:
        pass

    def log_in(self, tenant: str) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.send_header("set-cookie", f"session={tenant}; Path=/")
        self.end_headers()

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["content-length"])))
        who = f"{self.headers.get('x-tenant')} {self.headers.get('authorization')} {self.headers.get('cookie')}"
        if query.startswith("log in"):
            self.log_in(query.split()[-1])
            return
        self.server.asked.append(who)
        body = json.dumps(f"{who} {query}").encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        if self.server.sets_cookies:
            self.send_header("set-cookie", f"__cf_bm={len(self.server.asked)}; Path=/")
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def host() -> Iterator[Host]:
    with Host() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


class Crm:
    def __init__(self, url: str) -> None:
        self.http, self.url = requests.Session(), url

    def search(self, query: str) -> str:
        return str(self.http.post(self.url, json=query).json())


accel.register(Crm, methods=["search"], readonly=True, local=True, concurrency=8)
SETS: dict[str, Callable[[Crm, str], Any]] = {
    "a header": lambda crm, tenant: crm.http.headers.update({"x-tenant": tenant}),
    "its credentials": lambda crm, tenant: setattr(crm.http, "auth", HTTPBasicAuth(tenant, "word")),
    "a cookie": lambda crm, tenant: crm.http.cookies.set("tenant", tenant),
    "a log-in": lambda crm, tenant: crm.http.post(crm.url, json=f"log in {tenant}"),
}


@pytest.mark.parametrize("which", SETS)
def test_what_a_session_sends_with(which: str, host: Host) -> None:
    plain, fast = (Crm(f"http://127.0.0.1:{host.server_port}") for _ in range(2))
    world = World()
    app = accel.accelerate(program(world, fast.search, lambda tenant: SETS[which](fast, tenant)))
    for topic, tenant in zip(TOPICS, TENANTS, strict=False):
        SETS[which](plain, tenant)
        expected = plain.search(f"about the {topic}")
        host.asked.clear()
        assert app.invoke({"q": topic, "c": tenant})["b"] == expected
        assert accel.settle()
        assert len(host.asked) == 1 and expected.startswith(host.asked[0])


def test_a_session_that_stays_as_it_was_set_is_asked_early(host: Host) -> None:
    """Also where each answer sets a cookie of a carrier's."""
    host.sets_cookies = True
    world, crm = World(), Crm(f"http://127.0.0.1:{host.server_port}")
    crm.http.headers["x-tenant"] = "ann"
    app = accel.accelerate(program(world, crm.search, lambda tenant: have_begun()))
    for topic in TOPICS[:5]:
        host.asked.clear()
        assert app.invoke({"q": topic, "c": "ann"})["b"].startswith("ann ")
        assert accel.settle() and len(host.asked) == 1
    assert app.report().retired >= 3
