"""Clients of which Accel sees no calls: what they send is seen, and the report names the line that declares them."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp
import httpx
import openai
import pytest
import requests
import urllib3
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph

import accel
from accel import accelerate
from accel.parts.network import hosts
from adapters.tests.three_calls import State

TAKES_S = 0.05
"""An answer, and what else the program does: long enough to be named."""
TOPICS = ("bees and their hives", "iron smelting in Sweden", "the far side of the moon", "bread of long ago")


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    written = ""

    def do_GET(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/notes" and sent:
            Answers.written = sent.decode()
        body = json.dumps({"id": "m", "model": "m", "results": [], "about": self.written}).encode()  # as it came
        time.sleep(TAKES_S)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            hosts.forget(f"http://127.0.0.1:{server.server_port}")


def program(ask: Callable[[str], Any], is_async: bool = False, takes_s: float = TAKES_S) -> Any:
    """It works for a while, and then asks."""

    def first(state: State) -> State:
        time.sleep(takes_s)
        return {"outline": "written"}

    def last(state: State) -> State:
        return {"both": str(ask(state["topic"]))}

    async def alast(state: State) -> State:
        return {"both": str(await ask(state["topic"]))}

    graph = StateGraph(State).add_node("first", first).add_node("last", alast if is_async else last)
    return graph.add_edge(START, "first").add_edge("first", "last").compile()


def seen(graph: Any, run: Callable[[Any, State], Any] = lambda graph, value: graph.invoke(value)) -> Any:
    """The report of an accelerated program after some runs."""
    fast = accelerate(graph)
    for topic in TOPICS:
        assert run(fast, {"topic": topic}) == run(graph, {"topic": topic})
        assert accel.settle(10)
    return fast.report()


def lines(report: Any) -> list[str]:
    """But for the node that works by itself."""
    return [each.line for each in report.declarations if each.kind != "pure_nodes"]


def test_the_method_of_a_client_is_named_and_its_line_gains(url: str) -> None:
    with openai.OpenAI(api_key="k", base_url=url, max_retries=0) as client:
        moderations = client.moderations

        def ask(topic: str) -> str:
            return moderations.create(input=f"Is it good to know of {topic}?").id

        report = seen(program(ask))
        line = 'accel.register(Moderations, methods=["create"], readonly=True)'
        assert lines(report) == [line]
        (row,) = [row for row in report.rows if "Moderations.create" in row.what]
        assert row.where.startswith("test_unseen_clients.py:") and row.where.rpartition(":")[2].isdigit()
        assert row.uses == 1 and f"sent POST requests to {url}" in row.late[0].why
        assert "Moderations.create" in str(report) and "own work" not in [each.what for each in report.rows[1:]]
        said = report.declarations[0].gain_s
        exec(line, {"accel": accel, "Moderations": type(moderations)})
        accel.register(type(moderations), local=True)  # the server is the test's
        after = seen(program(ask))
    assert after.retired >= 1 and said >= TAKES_S / 2
    assert lines(after) == []


def test_coroutines_of_a_client_are_named(url: str) -> None:
    with asyncio.Runner() as runner:
        client = openai.AsyncOpenAI(api_key="k", base_url=url, max_retries=0)

        async def ask(topic: str) -> str:
            return str(len((await client.models.list()).data or "")) + topic

        report = seen(program(ask, is_async=True), lambda graph, value: runner.run(graph.ainvoke(value)))
        runner.run(client.close())
    assert any(f" to {url}" in row.late[0].why for row in report.rows if row.uses)


@pytest.mark.parametrize("get", [requests.get, httpx.get])
def test_a_host_that_is_only_read_is_named(url: str, get: Callable[..., Any]) -> None:
    def ask(topic: str) -> str:
        return str(get(f"{url}/find", params={"q": topic}).json()["id"])

    report = seen(program(ask))
    line = f'accel.register("{url}", readonly=True)'
    assert lines(report) == [line]
    exec(line, {"accel": accel})
    after = seen(program(ask))
    assert after.retired >= 1 and lines(after) == []


def test_a_host_that_is_read_several_times_is_declared_for_several_at_a_time(url: str) -> None:
    def ask(topic: str) -> list[str]:
        return [requests.get(f"{url}/find", params={"q": f"{topic} {n}"}).json()["id"] for n in range(3)]

    line = f'accel.register("{url}", readonly=True, concurrency=8)'
    assert lines(seen(program(ask))) == [line]
    exec(line, {"accel": accel})
    after = seen(program(ask))
    assert after.retired >= 3 and lines(after) == []


PAGES = """
class Pages:
    def __init__(self, url, topic=None):
        self.url, self.topic = url, topic

    def load(self):
        return self.find(self.topic)

    def find(self, topic):
        return [requests.get(f"{self.url}/find", params={"q": topic, "n": n}).json()["id"] for n in range(3)]
"""
"""Of a library: what it is made with, or asked for, says what it reads, page by page."""


@pytest.fixture
def pages() -> Any:
    library: dict[str, Any] = {"__name__": "pages", "requests": requests}
    exec(PAGES, library)
    return library["Pages"]


def test_requests_of_one_call_are_one(url: str, pages: Any) -> None:
    made = pages(url)
    report = seen(program(lambda topic: made.find(topic), takes_s=4 * TAKES_S))
    (found,) = (each for each in report.declarations if "Pages" in each.line)
    assert (found.line, found.calls) == ('accel.register(Pages, methods=["find"], readonly=True)', 1)


def test_requests_for_which_a_program_asks_one_by_one_are_several(url: str) -> None:
    def ask(topic: str) -> list[str]:
        return [requests.get(f"{url}/find", params={"q": topic, "n": n}).json()["id"] for n in range(3)]

    assert lines(seen(program(ask))) == [f'accel.register("{url}", readonly=True, concurrency=8)']


def test_what_is_made_with_its_question_needs_no_declaration(url: str, pages: Any) -> None:
    """Its calls would be early only through another object that asks the same."""
    report = seen(program(lambda topic: pages(url, topic).load(), takes_s=4 * TAKES_S))
    assert not [each for each in report.declarations if "Pages" in each.line]
    (row,) = (row for row in report.rows if row.uses)
    assert "Pages.load" in row.what


ODD = """
class Odd:
    def __init__(self, url):
        self.url = url
        vars(self)[7] = "seven"

    def find(self, topic, large, *more, api_key=None):
        more = None
        return requests.get(f"{self.url}/find", params={"q": topic}).json()["id"]
"""


def test_nothing_that_a_client_is_given_is_in_its_way(url: str) -> None:
    """What it makes of its arguments, numbers that Python doesn't print, attributes without names; and no secret of
    them is kept."""
    library: dict[str, Any] = {"__name__": "odd", "requests": requests}
    exec(ODD, library)
    odd = library["Odd"](url)
    fast = accelerate(program(lambda topic: odd.find(topic, 10**5000, 1, api_key="a secret")))
    for topic in TOPICS[:2]:
        assert fast.invoke({"topic": topic})["both"] == "m"
    assert accel.settle(10)
    (use,) = fast.plan.last.uses
    assert use.name == "Odd.find" and TOPICS[1] in use.texts and "a secret" not in use.texts | use.held


def test_reads_of_a_declared_host_that_are_let_be_say_why(url: str) -> None:
    accel.uninstall()  # other tests have declared hosts
    with httpx.Client(base_url=url) as made_before:
        accelerate(program(str))
        accel.register(url, readonly=True)
        with httpx.Client(base_url=url) as client:

            def streamed(topic: str) -> str:
                with client.stream("GET", "/find", params={"q": topic}) as response:
                    return response.read().decode()

            early = seen(program(lambda topic: made_before.get("/find", params={"q": topic}).text))
            let_be, plain = seen(program(streamed)), seen(program(lambda topic: client.get(f"/find?q={topic}").text))
    assert "which is declared, by a client that was made before that; make clients after" in flat(early)
    assert "in a way that Accel lets be: a stream," in flat(let_be)
    assert [row.what for row in plain.rows if row.calls] == [f'"{url}"']
    assert "nobody said" not in flat(early) + flat(let_be)


def test_requests_that_accel_can_not_make_are_named(url: str) -> None:
    def ask(topic: str) -> str:
        with urllib.request.urlopen(f"{url}/find?q={urllib.parse.quote(topic)}") as response:
            return str(json.load(response)["id"])

    async def aask(topic: str) -> str:
        async with aiohttp.ClientSession(url) as session, session.get("/find", params={"q": topic}) as response:
            return str((await response.json())["id"])

    told = seen(program(ask))
    assert lines(told) == []
    assert "OpenerDirector" not in str(told) and "urlopen" in str(told) and f"sent GET requests to {url}" in flat(told)
    with asyncio.Runner() as runner:
        told = seen(program(aask, is_async=True), lambda graph, value: runner.run(graph.ainvoke(value)))
    assert lines(told) == []
    assert "ClientSession.get" in str(told) and f"sent GET requests to {url}" in flat(told)


@pytest.mark.parametrize("post", ["urllib", "aiohttp", "http.client", "urllib3"])
def test_what_other_clients_write_to_a_declared_host_is_read_anew(url: str, post: str) -> None:
    """An early GET would have the note of before."""
    accel.register(url, readonly=True)

    def write(state: State) -> State:
        time.sleep(TAKES_S)
        if post == "urllib":
            urllib.request.urlopen(f"{url}/notes", data=state["topic"].encode()).close()
        elif post == "aiohttp":
            asyncio.run(send(state["topic"]))
        elif post == "urllib3":
            urllib3.PoolManager().request("POST", f"{url}/notes", body=state["topic"])
        else:
            connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
            connection.request("POST", "/notes", state["topic"])
            connection.getresponse().read()
            connection.close()
        return {"outline": "written"}

    async def send(topic: str) -> None:
        async with aiohttp.ClientSession() as session, session.post(f"{url}/notes", data=topic):
            pass

    def read(state: State) -> State:
        return {"both": requests.get(f"{url}/notes").json()["about"]}

    graph = StateGraph(State).add_node("write", write).add_node("read", read)
    seen(graph.add_edge(START, "write").add_edge("write", "read").compile())


def flat(report: Any) -> str:
    return " ".join(str(report).split())


def test_what_is_sent_to_be_kept_gets_no_line(url: str) -> None:
    report = seen(program(lambda topic: requests.post(f"{url}/notes", json={"about": topic}).status_code))
    assert lines(report) == []
    assert "requests.post" in str(report) and "POST requests" in str(report)


def test_no_line_is_guessed_for_what_a_framework_is_made_of(url: str) -> None:
    """The user's line calls it, and something in it sends."""
    with httpx.Client(base_url=url) as client:
        runnable = RunnableLambda(client.get)
        report = seen(program(lambda topic: runnable.invoke("/find").status_code))
    assert lines(report) == [f'accel.register("{url}", readonly=True)']
    assert "RunnableLambda.invoke" in str(report)


def test_what_a_tool_sends_is_a_part_of_it(url: str) -> None:
    @tool
    def look_up(topic: str) -> str:
        """Look it up."""
        return str(requests.get(url, params={"q": topic}).json()["id"])

    report = seen(program(lambda topic: look_up.invoke(topic)))
    assert [row.what for row in report.rows if row.uses] == ["tool look_up"]
    assert [each.component for each in report.declarations if each.kind != "pure_nodes"] == ["look_up"]
