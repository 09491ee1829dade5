"""GETs of hosts that were declared: real clients of `requests` and `httpx`, against a server that answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import certifi
import httpx
import pytest
import requests
from langgraph.graph import START, StateGraph

import accel
from accel import accelerate
from accel.errors import ConfigurationError
from accel.parts.methods.epochs import epoch, resource_of
from accel.parts.network import hosts, web
from adapters.tests.test_sdk_clients import TOPICS, last_run, program
from adapters.tests.three_calls import State

TAKES_S = 0.04
"""An answer: what makes an early call worth while."""

Ask = Callable[[str], Any]


class Host(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        """Verb, query and headers."""
        self.takes_s = TAKES_S

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def queries(self) -> list[str]:
        return [query for _, query, _ in self.asked]


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Host

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query).get("q", [""])[0]
        self.server.asked.append((self.command, query, dict(self.headers)))
        time.sleep(self.server.takes_s)
        body = json.dumps({"hits": [f"What there is to say of {query}", "more"]}).encode()
        self.send_response(302 if parts.path == "/moved" else 200)
        if parts.path == "/moved":
            self.send_header("Location", f"/find?{parts.query}")
        if parts.path == "/marked":
            self.send_header("Set-Cookie", "seen=yes; Path=/")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()


@pytest.fixture
def host() -> Iterator[Host]:
    with Host() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            accel.register(server.url, readonly=True, concurrency=8)
            yield server
        finally:
            server.shutdown()
            thread.join()
            hosts.forget(server.url)


def first_hit(response: Any) -> str:
    assert response.status_code == 200
    return str(response.json()["hits"][0])


def check(host: Host, ask: Ask, **run: Any) -> None:
    """All three calls are seen, and one at least is early; none is made that the unmodified program does not make."""
    demanded, retired = last_run(program(ask), **run)
    assert demanded == 3 and retired >= 1
    assert len(host.asked) == 2 * 3 * len(TOPICS)
    assert all(host.queries.count(query) == 2 for query in host.queries)


def get(host: Host) -> Ask:
    return lambda prompt: first_hit(requests.get(f"{host.url}/find", params={"q": prompt}, timeout=5))


def test_a_function_of_requests(host: Host) -> None:
    check(host, get(host))


def test_a_function_of_httpx(host: Host) -> None:
    check(host, lambda prompt: first_hit(httpx.get(f"{host.url}/find", params={"q": prompt})))


def test_a_session(host: Host) -> None:
    with requests.Session() as session:
        session.headers["X-Purpose"] = "tests"
        check(host, lambda prompt: first_hit(session.get(f"{host.url}/find", params={"q": prompt})))
    assert {headers["X-Purpose"] for _, _, headers in host.asked} == {"tests"}


def test_a_client(host: Host) -> None:
    with httpx.Client(base_url=host.url, headers={"X-Purpose": "tests"}) as client:
        check(host, lambda prompt: first_hit(client.get("/find", params={"q": prompt}, timeout=httpx.Timeout(5))))
    assert {headers["X-Purpose"] for _, _, headers in host.asked} == {"tests"}


def test_a_client_that_was_made_before_anybody_looked(host: Host) -> None:
    """With what it was made is not known, and its connections are the program's: it is let be."""
    accel.uninstall()
    with httpx.Client() as client:
        demanded, _ = last_run(program(lambda prompt: first_hit(client.get(f"{host.url}/find", params={"q": prompt}))))
    assert demanded == 0 and all(host.queries.count(query) == 2 for query in host.queries)


def test_an_early_one_takes_none_of_the_programs_connections(host: Host) -> None:
    limits = httpx.Limits(max_connections=1)
    with httpx.Client(limits=limits, timeout=httpx.Timeout(5, pool=0.001)) as client:
        check(host, lambda prompt: first_hit(client.get(f"{host.url}/find", params={"q": prompt})))


def test_parameters_go_in_their_order(host: Host) -> None:
    def ask(prompt: str) -> str:
        turned = {"n": "1", "q": prompt} if len(host.asked) > 12 else {"q": prompt, "n": "1"}
        response = requests.get(f"{host.url}/find", params=turned, timeout=(3, 5))
        assert list(parse_qs(urlsplit(response.url).query)) == list(turned)
        return first_hit(response)

    fast = accelerate(program(ask))
    for topic in TOPICS * 2:
        fast.invoke({"topic": topic})


WRITES: dict[str, Callable[[str], object]] = {
    "send": lambda url: requests.Session().send(requests.Request("POST", url, data="x").prepare()),
    "stream": lambda url: _read(httpx.stream("POST", url, content=b"x")),
    "post": lambda url: requests.post(url, data="x", timeout=5),
}


def _read(streamed: Any) -> None:
    with streamed as response:
        response.read()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_whatever_writes_makes_earlier_reads_old(host: Host, write: Callable[[str], object]) -> None:
    (cls,) = (each for each in hosts._hosts.values() if each.accel_address == host.url)
    before = epoch(resource_of(cls({})))
    write(f"{host.url}/find?q=w")
    assert epoch(resource_of(cls({}))) > before


def test_clients_that_are_made_per_call(host: Host) -> None:
    def ask(prompt: str) -> str:
        with httpx.Client(headers={"X-Purpose": "tests"}, follow_redirects=True) as client:
            return first_hit(client.get(f"{host.url}/find", params={"q": prompt}))

    check(host, ask)


@pytest.mark.parametrize("shared", [False, True])
def test_coroutines(host: Host, shared: bool) -> None:
    def asking(client: httpx.AsyncClient) -> Ask:
        async def ask(prompt: str) -> str:
            return first_hit(await client.get(f"{host.url}/find", params={"q": prompt}))

        return ask

    async def ask_anew(prompt: str) -> str:
        async with httpx.AsyncClient() as client:
            return str(await asking(client)(prompt))

    with asyncio.Runner() as runner:
        client = httpx.AsyncClient()
        graph = program(asking(client) if shared else ask_anew, is_async=True)
        demanded, retired = last_run(graph, lambda graph, value: runner.run(graph.ainvoke(value)))
        runner.run(client.aclose())
    assert demanded == 3 and retired >= 1
    assert len(host.asked) == 2 * 3 * len(TOPICS)


def test_early_clients_read_the_certificates_once(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 20 ms each time, on the program's own loop."""
    hosts.is_nobodys(hosts.declare(host.url, True)({"client": "httpx.AsyncClient"}))  # looks at a usual client, once
    read, create = [0], ssl.create_default_context

    def counted(**files: Any) -> ssl.SSLContext:
        read[0] += 1
        return create(**files)

    async def ask(prompt: str) -> str:
        async with httpx.AsyncClient() as client:
            return first_hit(await client.get(f"{host.url}/find", params={"q": prompt}))

    monkeypatch.setattr(ssl, "create_default_context", counted)
    graph = program(ask, is_async=True)
    _, retired = last_run(graph, lambda graph, value: asyncio.run(graph.ainvoke(value)))
    assert retired >= 1 and read[0] <= len(host.asked) + 1


def test_the_report_says_that_a_host_takes_one_at_a_time(host: Host) -> None:
    """Each call has a client of its own: only of the host it can be said how many it takes."""
    hosts.forget(host.url)
    accel.register(host.url, readonly=True)
    host.takes_s = 0.3  # much more than to make a client takes, on a busy machine too

    def ask(aspect: str, state: State) -> str:
        with httpx.Client() as client:
            return first_hit(client.get(f"{host.url}/find", params={"q": f"{aspect} of {state['topic']}"}))

    graph = StateGraph(State)
    graph.add_node("find", lambda state: {"both": [ask(each, state) for each in ("causes", "dates", "places")]})
    graph.add_edge(START, "find")
    fast = accelerate(graph.compile())
    for topic in TOPICS:
        fast.invoke({"topic": topic})
        assert accel.settle(10)
    lines = [each.line for each in fast.report().declarations]
    assert lines == [f'accel.register("{host.url}", concurrency=8)']


@pytest.mark.usefixtures("host")
def test_an_early_client_trusts_what_the_environment_names_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the program's own does, also after another file was named; one that was told what to trust asks nobody."""
    for name, first in (("of one.pem", 0), ("of two.pem", 1)):
        file = tmp_path / name
        file.write_text("".join(CERTIFICATES[first:]))
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        for given in ({}, {"trust_env": False}, {"verify": False}):
            client = httpx.Client(**given)
            assert _trusted(web.alike(client)) == _trusted(client)


def _trusted(client: Any) -> Any:
    context = client._transport._pool._ssl_context
    return context.verify_mode, sorted(each["serialNumber"] for each in context.get_ca_certs())


CERTIFICATES = re.findall(r"-----BEGIN.+?END CERTIFICATE-----\n", Path(certifi.where()).read_text(), re.DOTALL)[:3]


def test_what_an_answer_says_is_known(host: Host) -> None:
    """The second GET asks for what the first one found, and begins while the program still works on that."""

    def look(state: State) -> State:
        asked = hashlib.sha256(state["topic"].encode()).hexdigest()  # nothing that could be known before
        hits = requests.get(f"{host.url}/find", params={"q": asked}).json()["hits"]
        time.sleep(TAKES_S)
        return {"outline": first_hit(requests.get(f"{host.url}/find", params={"q": f"more of {hits[0]}"}))}

    graph = StateGraph(State).add_node("look", look).add_edge(START, "look").compile()
    demanded, retired = last_run(graph)
    assert (demanded, retired) == (2, 1)
    assert len(host.asked) == 2 * 2 * len(TOPICS)


def plain(response: Any) -> Any:
    """What a response says, but for times, connections and the port that it came through."""
    headers = {name: value for name, value in response.headers.items() if name.lower() != "date"}
    asked = response.request
    return (
        type(response), response.status_code, response.content, response.text, response.encoding, headers,
        str(response.url), asked.method, str(asked.url), dict(asked.headers), list(response.history),
        response.elapsed.total_seconds() > 0, dict(response.cookies),
    )  # fmt: skip


@pytest.mark.parametrize("ask", [requests.get, httpx.get])
def test_responses_are_those_of_the_unmodified_program_and_its_own(host: Host, ask: Callable[..., Any]) -> None:
    kept: list[Any] = []

    def node(prompt: str) -> str:
        response = ask(f"{host.url}/find", params={"q": prompt}, headers={"X-Purpose": "tests"})
        kept.append(response)
        response.encoding = "latin-1"  # as programs may, before they read the text
        return first_hit(response)

    graph = program(node)
    fast = accelerate(graph)
    for topic in TOPICS:
        fast.invoke({"topic": topic})
        assert accel.settle(10)
    assert fast.report().retired >= 1
    early = list(kept)
    kept.clear()
    for topic in TOPICS:
        graph.invoke({"topic": topic})
    assert list(map(plain, early)) == list(map(plain, kept))
    assert len({id(response) for response in early}) == len(early)


def test_a_session_stays_as_the_program_has_it(host: Host) -> None:
    """Answers that set cookies are the program's own, and the next calls are sent with those."""
    with requests.Session() as session:

        def ask(prompt: str) -> str:
            seen.append(session.cookies.get("seen"))
            return first_hit(session.get(f"{host.url}/marked", params={"q": prompt}))

        seen: list[Any] = []
        _, retired = last_run(program(ask))
    assert retired == 0
    assert seen == [None] + ["yes"] * (2 * 3 * len(TOPICS) - 1)
    assert len(host.asked) == 2 * 3 * len(TOPICS), "nothing was asked early, for nothing"


@pytest.mark.parametrize("ask", [requests.get, lambda *a, **k: httpx.get(*a, follow_redirects=True, **k)])
def test_answers_that_lead_elsewhere_are_the_program_s_own(host: Host, ask: Callable[..., Any]) -> None:
    fast = accelerate(program(lambda prompt: first_hit(ask(f"{host.url}/moved", params={"q": prompt}))))
    for topic in TOPICS:
        fast.invoke({"topic": topic})
        assert accel.settle(10)
    assert fast.report().issued == 0
    assert "its answers lead elsewhere" in str(fast.report())


def test_a_host_that_begins_to_set_cookies_is_noticed_by_an_early_call(host: Host) -> None:
    path = ["/find"]
    fast = accelerate(program(lambda prompt: first_hit(requests.get(f"{host.url}{path[0]}", params={"q": prompt}))))
    for topic in TOPICS:
        fast.invoke({"topic": topic})
        assert accel.settle(10)
    before = fast.report()
    assert before.retired > 0
    Answers.do_GET, real = _marked(Answers.do_GET), Answers.do_GET  # type: ignore[method-assign]
    try:
        for topic in ("salt", "wool"):
            fast.invoke({"topic": topic})
            assert accel.settle(10)
    finally:
        Answers.do_GET = real  # type: ignore[method-assign]
    assert fast.report().retired == before.retired


def _marked(do_get: Callable[[Answers], None]) -> Callable[[Answers], None]:
    def answer(self: Answers) -> None:
        self.path = self.path.replace("/find", "/marked")
        do_get(self)

    return answer


class Signed(requests.auth.AuthBase):
    def __call__(self, request: Any) -> Any:
        told.append("signed")
        return request


told: list[str] = []


def _streamed(host: Host, prompt: str) -> str:
    with requests.get(f"{host.url}/find", params={"q": prompt}, stream=True) as response:
        return first_hit(response)


def _hooked(host: Host, prompt: str) -> str:
    with requests.Session() as session:
        session.hooks["response"].append(lambda response, **_: told.append("hook"))
        return first_hit(session.get(f"{host.url}/find", params={"q": prompt}))


def _event(host: Host, prompt: str) -> str:
    with httpx.Client(event_hooks={"request": [lambda _: told.append("hook")]}) as client:
        return first_hit(client.get(f"{host.url}/find", params={"q": prompt}))


class Sender(httpx.HTTPTransport):
    """A transport of the program's."""


def _sent(host: Host, prompt: str) -> str:
    with httpx.Client(transport=Sender()) as client:
        return first_hit(client.get(f"{host.url}/find", params={"q": prompt}))


def _derived(host: Host, prompt: str) -> str:
    class Own(requests.Session):
        pass

    with Own() as session:
        return first_hit(session.get(f"{host.url}/find", params={"q": prompt}))


@pytest.mark.parametrize(
    "ask",
    [
        _streamed, _hooked, _event, _sent, _derived,
        lambda host, prompt: first_hit(requests.get(f"{host.url}/find", params={"q": prompt}, auth=Signed())),
        lambda host, prompt: first_hit(requests.get(f"{host.url}/find", params={"q": prompt}, json={"a": 1})),
        lambda host, prompt: first_hit(requests.post(f"{host.url}/find", params={"q": prompt}, data="x")),
    ],
)  # fmt: skip
def test_what_is_unusual_passes_untouched(host: Host, ask: Callable[[Host, str], str]) -> None:
    assert last_run(program(lambda prompt: ask(host, prompt))) == (0, 0)
    assert len(host.asked) == 2 * 3 * len(TOPICS)
    assert len(told) in (0, len(host.asked))
    told.clear()


@pytest.mark.parametrize(
    ("cls", "name", "ask"),
    [
        (requests.Session, "send", requests.get),
        (requests.adapters.HTTPAdapter, "send", requests.get),
        (httpx.HTTPTransport, "handle_request", httpx.get),
    ],
)
def test_who_hears_of_what_is_sent_hears_it_when_the_program_sends_it(
    host: Host, cls: Any, name: str, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As instrumentation does."""
    real = getattr(cls, name)

    def instrumented(self: Any, *args: Any, **kwargs: Any) -> Any:
        heard.append("sent")
        return real(self, *args, **kwargs)

    def node(prompt: str) -> str:
        heard.append("node")
        return first_hit(ask(f"{host.url}/find", params={"q": prompt}))

    heard: list[str] = []
    monkeypatch.setattr(cls, name, instrumented)
    assert last_run(program(node)) == (0, 0)
    assert heard == ["node", "sent"] * (2 * 3 * len(TOPICS))


def test_another_host_is_not_looked_at(host: Host) -> None:
    with Host() as other:
        thread = threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        assert last_run(program(get(other))) == (0, 0)
        other.shutdown()
        thread.join()


def test_no_answer_of_one_key_is_given_to_another(host: Host) -> None:
    """A program sets the key of its tenant on the session that all share."""
    with requests.Session() as session:

        def ask(prompt: str) -> str:
            session.headers["Authorization"] = "of a tenant" if prompt.startswith("Give") else "of nobody"
            return first_hit(session.get(f"{host.url}/find", params={"q": prompt}))

        demanded, _ = last_run(program(ask))
    assert demanded == 3
    for _, query, headers in host.asked:
        assert headers["Authorization"] == ("of a tenant" if query.startswith("Give") else "of nobody")


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("named", [True, False], ids=["the name of a file", "a file"])
def test_credentials_that_requests_finds_are_those_of_the_moment(
    host: Host, named: bool, shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node says whose they are, between two calls."""

    def write(path: Path, tenant: str) -> None:
        path.write_text(f"machine 127.0.0.1 login {tenant} password p", encoding="utf-8")

    def become(tenant: str) -> None:
        path = tmp_path / (f"netrc of {tenant}" if named else "netrc")
        write(path, tenant)
        monkeypatch.setenv("NETRC", str(path))

    session = requests.Session()

    def ask(query: str) -> str:
        asked = session.get if shared else requests.get
        return first_hit(asked(f"{host.url}/find", params={"q": query}))

    check_tenants(host, ask, become, lambda headers: headers.get("Authorization"))


@pytest.mark.parametrize("ask", [requests.get, httpx.get])
def test_an_early_get_takes_the_way_of_the_moment(
    host: Host, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("NO_PROXY", "")
    with Host() as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.01,), daemon=True)
        thread.start()

        def become(tenant: str) -> None:
            monkeypatch.setenv("http_proxy", proxy.url) if tenant == "b" else monkeypatch.delenv("http_proxy", False)

        def asked(query: str) -> str:
            return first_hit(ask(f"{host.url}/find", params={"q": query}))

        check_tenants(host, asked, become, lambda headers: None, proxy)
        proxy.shutdown()
        thread.join()


def check_tenants(
    host: Host, ask: Ask, become: Callable[[str], None], who: Callable[[dict[str, str]], Any], *others: Host
) -> None:
    """Each call is answered, by the last request that says so, as it is when nothing is early."""

    def change(state: State) -> State:
        become(state["key"])
        return {}

    def build() -> Any:
        graph = StateGraph(State)
        graph.add_node("first", lambda state: {"outline": ask(f"outline of {state['topic']}")})
        graph.add_node("change", change)
        graph.add_node("second", lambda state: {"keywords": ask(f"keywords of {state['topic']}")})
        graph.add_edge(START, "first").add_edge("first", "change").add_edge("change", "second")
        return graph.compile()

    def runs(graph: Any) -> list[Any]:
        become("a")
        told = []
        for number, tenant in enumerate("aabbaabb"):
            for each in (host, *others):
                each.asked.clear()
            topic = f"{TOPICS[number % len(TOPICS)]} {number}"
            graph.invoke({"topic": topic, "key": tenant})
            assert accel.settle(10)
            told.append([{query: who(headers) for _, query, headers in each.asked} for each in (host, *others)])
        return told

    plain = runs(build())
    for made, expected in zip(runs(accelerate(build())), plain, strict=True):
        assert all(each.items() >= asked.items() for each, asked in zip(made, expected, strict=True))


def test_values_are_not_sent_early_to_a_host_that_does_not_have_them(host: Host) -> None:
    """A public one gets the run's topic when the program sends it, and no sooner, unless the user lifts that."""
    accel.register(host.url, readonly=True, local=False)

    def work(state: State) -> State:
        time.sleep(2 * TAKES_S)
        return {"outline": "written"}

    def look(state: State) -> State:
        return {"both": get(host)(f"about {state['topic']}")}

    graph = StateGraph(State).add_node("work", work).add_node("look", look)
    compiled = graph.add_edge(START, "work").add_edge("work", "look").compile()
    for fast, early in ((accelerate(compiled), False), (accelerate(compiled, egress="inputs"), True)):
        for topic in TOPICS:
            fast.invoke({"topic": topic})
            assert accel.settle(10)
        assert (fast.report().issued > 0) == early


def test_what_is_written_meanwhile_makes_an_early_read_old(host: Host) -> None:
    def ask(prompt: str) -> str:
        if prompt.startswith("Combine"):
            requests.post(f"{host.url}/notes", data="x")
        return first_hit(requests.get(f"{host.url}/find", params={"q": prompt}))

    fast = accelerate(program(ask))
    for topic in TOPICS:
        host.asked.clear()
        fast.invoke({"topic": topic})
        assert accel.settle(10)
        written = [verb for verb, _, _ in host.asked].index("POST")
        assert any(query.startswith("Combine") for query in host.queries[written:])


def test_a_host_that_the_program_writes_to_before_it_reads_is_not_read_early_again_and_again(host: Host) -> None:
    session = requests.Session()

    def write(state: State) -> State:
        session.get(f"{host.url}/find", params={"q": f"What stands for {state['topic']}"})
        return {}

    def read(state: State) -> State:
        session.post(f"{host.url}/find", json={"topic": state["topic"]})
        found = [session.get(f"{host.url}/find", params={"q": f"{word} {state['topic']}"}) for word in ("old", "new")]
        return {"both": " ".join(map(first_hit, found))}

    graph = StateGraph(State).add_node(write).add_node(read)
    graph.add_edge(START, "write").add_edge("write", "read")
    fast = accelerate(graph.compile(), speculate="certain")
    for number in range(12):
        topic = f"{TOPICS[number % len(TOPICS)]} {number}"
        assert topic in fast.invoke({"topic": topic})["both"]
        assert accel.settle()
    reads = sum(verb == "GET" for verb, _, _ in host.asked)
    assert 36 < reads <= 40, "it was tried, and seen to be in vain"
    assert fast.report().wasted == reads - 36


def test_nothing_is_patched_or_imported_before_a_host_is_declared() -> None:
    code = """
import sys
import accel, accel.run.drive
from accel.parts.methods import sdks
from accel.parts.network import hosts, http
assert not {"requests", "httpx"} & sys.modules.keys()
import httpx, requests
sdks.install_all(); http.install(); hosts.install()
for cls in (requests.Session, httpx.Client, httpx.AsyncClient):
    assert type(cls.__dict__["request"]).__name__ == "function", cls
accel.register("https://api.example.com", readonly=True)
for cls in (requests.Session, httpx.Client, httpx.AsyncClient):
    assert type(cls.__dict__["request"]).__name__ != "function", cls
accel.uninstall()
for cls in (requests.Session, httpx.Client, httpx.AsyncClient):
    assert type(cls.__dict__["request"]).__name__ == "function", cls
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("address", "facts", "says"),
    [
        ("https://api.example.com/v1", {"readonly": True}, "names no host, or more than one"),
        ("https://user@api.example.com", {"readonly": True}, "names no host, or more than one"),
        ("ftp://api.example.com", {"readonly": True}, "names no host, or more than one"),
        ("https://api.example.com", {"concurrency": 4}, "Nobody said what GETs of https://api.example.com do"),
    ],
)
def test_what_is_no_host_says_why(address: str, facts: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        accel.register(address, **facts)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://API.example.com:443/a?b=//c", "https://api.example.com"),
        ("http://api.example.com:8080", "http://api.example.com:8080"),
        ("https://api.example.com@evil.example/", None),
        ("https://evil.example\\@api.example.com/", None),
        ("https://api.example.com.evil.example/", "https://api.example.com.evil.example"),
        ("/find", None),
    ],
)
def test_which_host_an_address_is_of(url: str, origin: str | None) -> None:
    assert hosts.origin_of(url) == origin
