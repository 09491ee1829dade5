"""Invariant 3, clients that a program changes in place: one object is not always the same one.

A node tells the client that all tenants share whose run it is. What left early before that left for somebody else.
"""

from __future__ import annotations

import enum
import functools
import itertools
import json
import re
import threading
from collections import ChainMap, Counter, UserDict, UserList, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar, TypedDict

import anthropic
import httpx
import ollama
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.graph import START, StateGraph
from llama_index.llms.openai import OpenAI as LlamaOpenAI
from pydantic import BaseModel, SecretStr

import accel
from accel import accelerate
from accel.parts.identities.identity import Identities, identity_of
from accel.parts.identities.looks import MAX_OPENED
from adapters.tests.core_fakes import Chat, World, have_begun

Request = tuple[str, str]
"""Who it says that asks, and where; and what it asks."""


class Server(ThreadingHTTPServer):
    """Answers differ with whatever a request says beside its text."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[Request] = []
        self.asked = threading.Event()
        self.sets_cookie = self.sessions = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        given = body.get("input") or [part["content"] for part in body["messages"]]
        text = "\n".join(map(str, given)) if isinstance(given, list) else str(given)
        cookies = {name: one.value for name, one in SimpleCookie(self.headers.get("cookie", "")).items()}
        names = ("authorization", "x-api-key", "x-tenant", "openai-organization")
        who = f"{self.path}|{cookies.get('tenant')}|{[self.headers.get(name) for name in names]}"
        self.server.requests.append((who, text))
        self.server.asked.set()
        opens = re.search(r"Open a session for (\w+)", text)
        answer = f"{opens[1]}'s" if opens else f"{who} was told {text}"
        opened = opens[1] if opens else f"s{len(text)}" if self.server.sessions else ""
        self._answer(json.dumps(self._body(answer)).encode(), f"tenant={opened}; Path=/" if opened else "")

    def _body(self, answer: str) -> Any:
        if "embeddings" in self.path:
            vector = [float(ord(letter)) for letter in (answer * 2)[-300:]]
            rows = [{"object": "embedding", "index": 0, "embedding": vector}]
            return {"object": "list", "data": rows, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        message = {"role": "assistant", "content": answer}
        if self.path.startswith("/v1/messages"):
            content = [{"type": "text", "text": answer}]
            usage = {"input_tokens": 1, "output_tokens": 1}
            return {"id": "i", "type": "message", "model": "m", **message, "content": content, "usage": usage}
        if self.path.startswith("/api/chat"):
            return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": "i", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}

    def _answer(self, body: bytes, session: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if self.server.sets_cookie:
            self.send_header("set-cookie", f"__cf_bm={len(self.server.requests)}")
        if session:
            self.send_header("set-cookie", session)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    made = Server(), Server()
    for one in made:
        threading.Thread(target=one.serve_forever, args=(0.01,), daemon=True).start()
    yield made
    for one in made:
        one.shutdown()
        one.server_close()


@dataclass
class Made:
    """A component: how it is asked, its SDK's client and what that sends with."""

    ask: Callable[[str], str]
    client: Any
    http: Any


_patience = itertools.count(100)


def chat_openai(url: str, own: bool = True) -> Made:
    http = httpx.Client() if own else None
    # LangChain keeps one client for all models of an address and a timeout.
    model = ChatOpenAI(
        model="m", base_url=f"{url}/v1", api_key=SecretStr("k"), http_client=http, timeout=next(_patience)
    )
    return Made(lambda text: str(model.invoke(text).content), model.root_client, model.root_client._client)


def chat_openai_of_langchain_s(url: str) -> Made:
    return chat_openai(url, own=False)


def sdk_openai(url: str) -> Made:
    http = httpx.Client()
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", http_client=http)

    def ask(text: str) -> str:
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
        return str(answer.choices[0].message.content)

    return Made(ask, client, http)


def openai_module(url: str) -> Made:
    """The client that `openai` itself is, whose settings are the module's."""
    module: Any = openai
    module.api_key, module.base_url, module.organization, module.default_headers = "k", f"{url}/v1/", None, {}

    def ask(text: str) -> str:
        answer = openai.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
        return str(answer.choices[0].message.content)

    return Made(ask, module, None)


@pytest.fixture(autouse=True)
def module_as_it_was() -> Iterator[None]:
    yield
    module: Any = openai
    module.api_key = module.base_url = module.organization = module.default_headers = None


def embeddings(url: str) -> Made:
    http = httpx.Client()
    model = OpenAIEmbeddings(
        model="m", base_url=f"{url}/v1", api_key=SecretStr("k"), http_client=http, check_embedding_ctx_length=False
    )
    return Made(lambda text: str(model.embed_query(text)), model.client._client, http)


def sdk_anthropic(url: str) -> Made:
    client = anthropic.Anthropic(base_url=url, api_key="k")

    def ask(text: str) -> str:
        answer = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": text}])
        return str(answer.content[0].text)  # type: ignore[union-attr]

    return Made(ask, client, client._client)


def chat_ollama(url: str) -> Made:
    model = ChatOllama(model="m", base_url=url, disable_streaming=True)
    return Made(lambda text: str(model.invoke(text).content), model._client, model._client._client)


def sdk_ollama(url: str) -> Made:
    client = ollama.Client(host=url)

    def ask(text: str) -> str:
        return str(client.chat(model="m", messages=[{"role": "user", "content": text}]).message.content)

    return Made(ask, client, client._client)


def llamaindex(url: str) -> Made:
    http = httpx.Client()
    model = LlamaOpenAI(model="gpt-4o", api_base=f"{url}/v1", api_key="k", http_client=http)
    return Made(lambda text: str(model.complete(text)), model, http)


class Shop:
    """A client of a user's own, that is declared."""

    def __init__(self, url: str) -> None:
        self.url, self.http = url, httpx.Client()

    def ask(self, text: str) -> str:
        body = {"messages": [{"content": text}]}
        return str(self.http.post(f"{self.url}/v1/x", json=body).json()["choices"][0]["message"]["content"])


accel.register(Shop, methods=["ask"], readonly=True, concurrency=8)


def shop(url: str) -> Made:
    made = Shop(url)
    return Made(made.ask, made, made.http)


Change = Callable[[Made, str, tuple[Server, Server]], object]
CHANGES: dict[str, Change] = {
    "header": lambda made, tenant, _: made.http.headers.update({"x-tenant": tenant}),
    "cookie": lambda made, tenant, _: made.http.cookies.set("tenant", tenant),
    "parameter": lambda made, tenant, _: setattr(made.http, "params", {"tenant": tenant}),
    "authentication": lambda made, tenant, _: setattr(made.http, "auth", (tenant, "p")),
    "attribute of the authentication": lambda made, tenant, _: _authenticate(made.http, tenant),
    "address": lambda made, tenant, servers: setattr(made.client, "base_url", f"{servers[tenant == 't1'].url}/v1"),
    "key": lambda made, tenant, _: setattr(made.client, "api_key", f"k-{tenant}"),
    "organization": lambda made, tenant, _: setattr(made.client, "organization", tenant),
    "query": lambda made, tenant, _: setattr(made.client, "_custom_query", {"tenant": tenant}),
    "item of the query": lambda made, tenant, _: made.client._custom_query.update({"tenant": tenant}),
    "item of the module's headers": lambda made, tenant, _: made.client.default_headers.update({"x-tenant": tenant}),
    "item of the headers": lambda made, tenant, _: made.client._custom_headers.update({"x-tenant": tenant}),
}


class _Auth(httpx.Auth):
    tenant = ""

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        request.headers["x-tenant"] = self.tenant
        yield request


def _authenticate(http: httpx.Client, tenant: str) -> None:
    if not isinstance(http.auth, _Auth):
        http.auth = _Auth()
    http.auth.tenant = tenant


OF_OPENAI = [name for name in CHANGES if "module" not in name]
OF_HTTP = ["header", "cookie", "parameter"]
KINDS: list[tuple[Callable[[str], Made], list[str]]] = [
    (chat_openai, OF_OPENAI),
    (sdk_openai, OF_OPENAI),
    (chat_openai_of_langchain_s, ["header", "address", "query", "key"]),
    (embeddings, ["header", "address", "item of the query", "key"]),
    (sdk_anthropic, [*OF_HTTP, "key", "item of the headers"]),
    (chat_ollama, OF_HTTP),
    (sdk_ollama, OF_HTTP),
    (llamaindex, OF_HTTP),
    (shop, OF_HTTP),
    (openai_module, ["key", "address", "organization", "item of the module's headers"]),
]
CASES = [pytest.param(kind, name, id=f"{kind.__name__}, {name}") for kind, names in KINDS for name in names]


class State(TypedDict, total=False):
    topic: str
    tenant: str
    first: str
    second: str
    both: str
    notes: list[str]


Tell = Callable[[str], object]


def at_the_beginning(ask: Callable[[str], str], tell: Tell, asked: threading.Event) -> Any:
    def begin(state: State) -> State:
        asked.wait(0.03)  # what would be early leaves now
        tell(state["tenant"])
        return {}

    return chain(
        begin,
        lambda state: {"first": ask(f"Classify this question: {state['topic']}")},
        lambda state: {"second": ask(f"Summarise this question: {state['topic']}")},
        lambda state: {"both": ask(f"Combine {state['first']} with {state['second']}")},
    )


def between_nodes(ask: Callable[[str], str], tell: Tell, asked: threading.Event) -> Any:
    def change(state: State) -> State:
        asked.wait(0.03)
        tell(state["tenant"])
        return {}

    return chain(
        lambda state: {"first": ask(f"Classify this question: {state['topic']}")},
        change,
        lambda state: {"second": ask(f"Summarise this question: {state['topic']}")},
        lambda state: {"both": ask(f"Combine {state['first']} with {state['second']}")},
    )


def between_items(ask: Callable[[str], str], tell: Tell, asked: threading.Event) -> Any:
    def loop(state: State) -> State:
        notes = []
        for number in range(4):
            asked.clear()
            tell(f"{state['tenant']}{number // 2}")
            notes.append(ask(f"Note {number} about this question: {state['topic']}"))
            asked.wait(0.02)
        return {"notes": notes}

    return chain(loop, lambda state: {"both": ask(f"Combine {' '.join(state['notes'])}")})


def chain(*nodes: Callable[[State], Any]) -> Any:
    graph = StateGraph(State)
    graph.add_sequence([(f"node {number}", node) for number, node in enumerate(nodes)])
    graph.add_edge(START, "node 0")
    return graph.compile()


TENANTS = ("t0", "t0", "t0", "t1", "t2", "t1")


def runs(graph: Any, servers: tuple[Server, Server], tenants: tuple[str, ...]) -> list[tuple[Any, list[Request]]]:
    told = []
    for number, tenant in enumerate(tenants):
        for server in servers:
            server.requests.clear()
            server.asked.clear()
        result = graph.invoke({"topic": f"what do people in town {number} eat?", "tenant": tenant})
        assert accel.settle(10)
        told.append((result, [(f"{at} {who}", text) for at, one in enumerate(servers) for who, text in one.requests]))
    return told


PROGRAMS = (at_the_beginning, between_nodes, between_items)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_what_a_node_changes_in_a_client(
    kind: Callable[[str], Made], name: str, program: Callable[..., Any], servers: tuple[Server, Server]
) -> None:
    """Nothing is answered, or even asked, in the name of another tenant."""

    def make() -> Any:
        made = kind(servers[0].url)
        return program(made.ask, lambda tenant: CHANGES[name](made, tenant, servers), servers[0].asked)

    plain = runs(make(), servers, TENANTS)
    for (result, requests), (expected, sent) in zip(runs(accelerate(make()), servers, TENANTS), plain, strict=True):
        assert result == expected
        assert set(requests) == set(sent)


@pytest.mark.parametrize("sets_cookie", [False, True])
@pytest.mark.parametrize(
    "kind", [chat_openai, sdk_openai, chat_openai_of_langchain_s, embeddings, chat_ollama, sdk_ollama, shop]
)
def test_clients_that_stay_as_they_are_are_called_early(
    kind: Callable[[str], Made], sets_cookie: bool, servers: tuple[Server, Server]
) -> None:
    """Also those that get a cookie of a carrier's with each answer."""
    servers[0].sets_cookie = sets_cookie
    made = kind(servers[0].url)
    fast = accelerate(at_the_beginning(made.ask, lambda _: accel.settle() and have_begun(), servers[0].asked))
    before = fast.report().retired
    for _, requests in runs(fast, servers, TENANTS):
        assert len(requests) == 3
    assert fast.report().retired - before >= 3


def test_a_cookie_of_a_log_in_is_the_program_s(servers: tuple[Server, Server]) -> None:
    """Its answer sets it, as those of calls set theirs."""

    def make() -> Any:
        made = chat_openai(servers[0].url)

        def log_in(tenant: str) -> None:
            request = httpx.Request("POST", servers[0].url)
            answer = httpx.Response(200, request=request, headers={"set-cookie": f"tenant={tenant}"})
            made.http.cookies.extract_cookies(answer)

        return at_the_beginning(made.ask, log_in, servers[0].asked)

    plain = runs(make(), servers, TENANTS)
    for (result, requests), (expected, sent) in zip(runs(accelerate(make()), servers, TENANTS), plain, strict=True):
        assert result == expected
        assert set(requests) == set(sent)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", [chat_openai, chat_openai_of_langchain_s, sdk_openai, chat_ollama, llamaindex])
def test_a_session_that_the_answer_to_a_call_opens(
    kind: Callable[[str], Made], program: Callable[..., Any], servers: tuple[Server, Server]
) -> None:
    """Whoever answers knows from then on who asks."""

    def make() -> Any:
        made = kind(servers[0].url)
        return program(made.ask, lambda tenant: made.ask(f"Open a session for {tenant}"), servers[0].asked)

    plain = runs(make(), servers, TENANTS)
    for (result, requests), (expected, sent) in zip(runs(accelerate(make()), servers, TENANTS), plain, strict=True):
        assert result == expected
        assert set(requests) == set(sent)


@pytest.mark.parametrize("kind", [chat_openai, chat_openai_of_langchain_s, sdk_openai, llamaindex])
def test_a_session_that_an_early_answer_would_open(kind: Callable[[str], Made], servers: tuple[Server, Server]) -> None:
    """The server begins to open one with each answer: the program's own call does, in its turn."""

    def make() -> Any:
        return at_the_beginning(kind(servers[0].url).ask, lambda _: None, servers[0].asked)

    def results(graph: Any) -> list[Any]:
        told = []
        for servers[0].sessions in (False, True):
            told += [result for result, _ in runs(graph, servers, TENANTS)]
        return told

    assert results(accelerate(make())) == results(make())


# --- objects of the program's own classes -----------------------------------------------------------------------------


class Inner:
    def __init__(self) -> None:
        self.tone = "plain"
        self.of: Any = None


class Slotted:
    __slots__ = ("inner", "rows", "tone")

    def __init__(self) -> None:
        self.tone, self.inner, self.rows = "plain", Inner(), {"a": [1]}
        self.inner.of = self


class Configured(Chat):
    """Answers as it is configured."""

    configuration: Any = None

    def _result(self, messages: list[Any], kwargs: dict[str, Any]) -> Any:
        held = self.configuration
        told = [held.tone, held.inner.tone, held.rows]
        messages = [*messages[:-1], messages[-1].model_copy(update={"content": f"{messages[-1].content} {told}"})]
        return super()._result(messages, kwargs)


accel.register(Configured, pure=True, local=True, concurrency=8)

OWN: dict[str, Callable[[Any, str], object]] = {
    "attribute": lambda held, tenant: setattr(held, "tone", tenant),
    "inner attribute": lambda held, tenant: setattr(held.inner, "tone", tenant),
    "rows": lambda held, tenant: held.rows["a"].append(tenant),
}


def _namespace() -> Any:
    return SimpleNamespace(tone="plain", inner=Inner(), rows={"a": [1]})


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("change", OWN.values(), ids=OWN)
@pytest.mark.parametrize("make", [Slotted, _namespace])
def test_what_a_node_changes_in_an_object_of_its_own(
    make: Callable[[], Any], change: Callable[[Any, str], object], program: Callable[..., Any]
) -> None:
    never = threading.Event()
    never.set()

    def build() -> Any:
        held = make()
        model = Configured(world=World(), configuration=held)
        return program(lambda text: str(model.invoke(text).content), lambda tenant: change(held, tenant), never)

    graph, fast = build(), accelerate(build())
    for number, tenant in enumerate(TENANTS):
        value = {"topic": f"what do people in town {number} eat?", "tenant": tenant}
        assert fast.invoke(value) == graph.invoke(value)
        assert accel.settle(10)


class Holder:
    def __init__(self, **held: Any) -> None:
        self.__dict__.update(held)


def identity(held: Any) -> Any:
    return identity_of(Holder(held=held), by_object=False)


class Tone:
    """A configuration of a program's own."""

    def __init__(self, tone: str = "plain", **more: Any) -> None:
        self.tone = tone
        self.__dict__.update(more)

    def told(self) -> str:
        return self.tone


class Narrow:
    __slots__ = ("inner",)

    def __init__(self) -> None:
        self.inner = Tone()


class Rows(dict[str, Any]):
    tone = "plain"

    def __init__(self) -> None:
        super().__init__()
        self.tone = "plain"


class Free(BaseModel, extra="allow"):
    """Its settings come from a file."""


class Recorder:
    """One of its fields has the name that SDKs give to what they record."""

    def __init__(self) -> None:
        self._state = Tone()


class Word(str):
    """A text with more to it."""

    inner: Tone


def _word() -> Word:
    made = Word("word")
    made.inner = Tone()
    return made


def _round() -> Tone:
    made = Tone()
    made.__dict__["itself"] = [made]
    return made


HELD: dict[str, tuple[Callable[[], Any], Callable[[Any], Tone]]] = {
    "itself": (Tone, lambda held: held),
    "in another": (lambda: Tone(inner=Tone()), lambda held: held.inner),
    "in a list of another": (lambda: Tone(rows=[{"a": Tone()}]), lambda held: held.rows[0]["a"]),
    "in a slot": (Narrow, lambda held: held.inner),
    "that holds itself": (_round, lambda held: held),
    "with further names": (lambda: SimpleNamespace(inner=Tone()), lambda held: held.inner),
    "of a class of dicts": (Rows, lambda held: held),
    "in layers": (lambda: ChainMap({}, {"a": Tone()}), lambda held: held["a"]),
    "in a dict of another kind": (lambda: UserDict({"a": Tone()}), lambda held: held["a"]),
    "in a list of another kind": (lambda: UserList([Tone()]), lambda held: held[0]),
    "behind a view": (lambda: MappingProxyType({"a": Tone()}), lambda held: held["a"]),
    "beyond a model's fields": (lambda: Free(inner=Tone()), lambda held: held.inner),  # type: ignore[call-arg]
    "under the name of a record": (Recorder, lambda held: held._state),
    "of a text": (_word, lambda held: held.inner),
    "behind a method": (lambda: Tone().told, lambda held: held.__self__),
    "behind a part of a method": (lambda: functools.partial(Tone().told), lambda held: held.func.__self__),
    "behind a method of a dict": (lambda: {"a": Tone()}.get, lambda held: held.__self__["a"]),
    "beside a queue": (lambda: Tone(rows=deque([1])), lambda held: held),
}


@pytest.mark.parametrize(("make", "inner"), HELD.values(), ids=HELD)
def test_objects_of_the_program_s_own_classes_are_compared_by_what_they_hold(make: Any, inner: Any) -> None:
    client, identities = Holder(held=make()), Identities()
    before = identities.of(client, by_object=False)
    assert before == identity(held=make()) and identities.of(client, by_object=False) is before
    inner(client.__dict__["held"]).tone = "brief"
    changed = identities.of(client, by_object=False)
    assert changed != before and changed == identity_of(client, by_object=False)
    inner(client.__dict__["held"]).tone = "plain"
    assert identities.of(client, by_object=False) == before


class Mood(enum.Enum):
    GOOD = 1


def test_a_member_of_an_enumeration_is_compared_by_what_it_was_given_too(monkeypatch: pytest.MonkeyPatch) -> None:
    client, identities = Holder(held=Mood.GOOD), Identities()
    before = identities.of(client, by_object=False)
    assert identities.of(client, by_object=False) == before
    monkeypatch.setattr(Mood.GOOD, "tone", "brief", raising=False)
    assert identities.of(client, by_object=False) != before


class Regional(Chat):
    """What it says depends on its class."""

    region: ClassVar[str] = "north"
    asked: ClassVar[int] = 0
    log: ClassVar[list[str]] = []

    def _result(self, messages: list[Any], kwargs: dict[str, Any]) -> Any:
        type(self).asked += 1
        Regional.log.append(self.region)
        return super()._result(messages, kwargs)


class Fixed:
    tone = "plain"


def test_what_a_class_holds_for_all_its_objects_is_part_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for made in (Regional(world=World()), Holder(held=Fixed()), Holder(held=Fixed)):
        identities = Identities()
        before = identities.of(made, by_object=False)
        assert identities.of(made, by_object=False) is before
        with monkeypatch.context() as patch:
            patch.setattr(Regional, "region", "south")
            patch.setattr(Fixed, "tone", "brief")
            assert identities.of(made, by_object=False) != before
        assert identities.of(made, by_object=False) == before


class Finder(BaseRetriever):
    """A store of the program's own: whose it reads, which rows, and what it counts."""

    tenant: str = "a"
    asked: int = 0
    rows: list[int] = [1]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.asked += 1
        return [Document(f"{self.tenant}: {query}")]


def test_plain_settings_of_a_store_of_the_program_s_own_are_part_of_it() -> None:
    store, identities = Finder(), Identities()
    before = identities.of(store, by_object=True)
    store.invoke("what")
    assert identities.of(store, by_object=True) == before, "what it counts is its own affair"
    store.rows.append(2)
    assert identities.of(store, by_object=True) != before, "a short list may say what it reads"
    store.rows.pop()
    assert identities.of(store, by_object=True) == before
    store.tenant = "b"
    assert identities.of(store, by_object=True) != before
    store.tenant = "a"
    assert identities.of(store, by_object=True) == before != identity_of(Finder(), by_object=True)


def test_what_calls_count_and_keep_in_their_class_is_no_configuration() -> None:
    model = Regional(world=World())
    before = identity_of(model, by_object=False)
    model.invoke("Go on")
    assert Regional.asked == len(Regional.log) == 1 and identity_of(model, by_object=False) == before


def test_bytes_that_can_be_changed_are_compared_by_what_they_are() -> None:
    made = Holder(held=bytearray(b"plain"))
    before = identity_of(made, by_object=False)
    assert identity(held=bytearray(b"plain")) == before
    made.__dict__["held"][:] = b"brief"
    assert identity_of(made, by_object=False) != before


def test_a_dict_that_code_of_its_own_tells_is_never_the_same() -> None:
    class Told(dict[str, str]):
        def __getitem__(self, name: str) -> str:
            return f"{name} of today"

    made, identities = Holder(held=Told(a="b")), Identities()
    assert identities.of(made, by_object=False) != identities.of(made, by_object=False)


class Desk(Tone):
    """Counts and keeps what a model is asked, and says how it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.last, self.log = 0, "", list[str]()
        self.by_text, self.times = dict[str, int](), Counter[str]()

    def note(self, text: str) -> None:
        self.count += 1
        self.last = text
        self.log.append(text)
        self.by_text[text] = self.count
        self.times[text] += 1

    def speak(self, tone: str) -> None:
        self.tone = tone


class Counting(Chat):
    desk: Any = None

    def _result(self, messages: list[Any], kwargs: dict[str, Any]) -> Any:
        self._note(str(messages[-1].content))
        return super()._result(messages, kwargs)

    def _note(self, text: str) -> None:
        self.desk.note(text)


def test_what_calls_count_and_keep_is_no_configuration_and_what_others_set_is() -> None:
    model = Counting(world=World(), desk=Desk())
    before = identity_of(model, by_object=False)
    model.invoke("Go on")
    assert model.desk.count == 1 and identity_of(model, by_object=False) == before
    model.desk.speak("brief")
    assert identity_of(model, by_object=False) != before


class Settings(Tone):
    def update(self, tone: str) -> None:
        self.tone = tone


class Updating(Chat):
    """What it does to objects of its own call is called like what sets its settings."""

    desk: Any = None

    def _result(self, messages: list[Any], kwargs: dict[str, Any]) -> Any:
        told = {"tone": self.desk.tone}
        told.update(kwargs)
        message = SimpleNamespace(tone="")
        message.tone = str(told)
        return super()._result(messages, kwargs)


def test_what_has_the_name_of_a_setting_in_a_call_is_none() -> None:
    model = Updating(world=World(), desk=Settings())
    before = identity_of(model, by_object=False)
    model.invoke("Go on")
    assert identity_of(model, by_object=False) == before
    model.desk.update("brief")
    assert identity_of(model, by_object=False) != before


def test_an_object_that_holds_a_lock_keeps_records_and_is_only_itself() -> None:
    client = Holder(held=Tone(lock=threading.Lock()))
    before = identity_of(client, by_object=False)
    client.__dict__["held"].tone = "brief"
    assert identity_of(client, by_object=False) == before != identity(held=Tone(lock=threading.Lock()))


def test_what_holds_more_than_can_be_looked_at_is_never_the_same() -> None:
    client, identities = Holder(held=[Tone() for _ in range(MAX_OPENED + 1)]), Identities()
    assert identities.of(client, by_object=False) != identities.of(client, by_object=False)


def test_a_watched_object_that_another_thread_changes_is_another_one() -> None:
    """Looks go on while it changes, and none of them fails."""
    rows: dict[Any, Any] = {}
    client, identities, over = Holder(held=Tone(rows=rows)), Identities(), threading.Event()

    def change() -> None:
        for number in range(20_000):
            rows[number] = number
            rows.pop(number - 3, None)
        over.set()

    thread = threading.Thread(target=change)
    thread.start()
    while not over.is_set():
        identities.of(client, by_object=False)
    thread.join()
    assert identities.of(client, by_object=False) == identity_of(client, by_object=False)


# --- in any order -----------------------------------------------------------------------------------------------------


NAMES = st.sampled_from(["header", "cookie", "query", "key", "none"])
STEPS = st.lists(st.tuples(NAMES, st.sampled_from("ab")), max_size=3)


@settings(max_examples=15, deadline=None)
@given(st.lists(STEPS, min_size=3, max_size=6))
def test_any_changes_between_any_calls(requests: list[list[tuple[str, str]]]) -> None:
    """Each run makes its changes, with a call after each."""
    pair = Server(), Server()
    for one in pair:
        threading.Thread(target=one.serve_forever, args=(0.01,), daemon=True).start()

    def make() -> Any:
        made = chat_openai(pair[0].url)

        def loop(state: State) -> State:
            notes = []
            for number, (name, tenant) in enumerate([("none", ""), *requests[int(state["tenant"])]]):
                if name != "none":
                    CHANGES[name](made, tenant, pair)
                notes.append(made.ask(f"Note {number} about this question: {state['topic']}"))
            return {"notes": notes}

        return chain(loop, lambda state: {"both": made.ask(f"Combine {' '.join(state['notes'])}")})

    try:
        order = tuple(str(number) for number in range(len(requests)))
        plain, fast = runs(make(), pair, order), runs(accelerate(make()), pair, order)
        assert [result for result, _ in fast] == [result for result, _ in plain]
    finally:
        for one in pair:
            one.shutdown()
            one.server_close()
