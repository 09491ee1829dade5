"""The built-in table's rows for SDKs, each with its real client, which asks a server of the test's."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import ollama
import openai
import pytest

import accel
from accel import accelerate
from accel.parts.components import facts_of
from adapters.tests.test_sdk_clients import TOPICS, program

pytestmark = pytest.mark.filterwarnings("ignore")  # of packages about themselves

TAKES_S = 0.04
"""An answer: what makes an early call worth while."""
KEY = "tvly-k"
Ask = Callable[[str], Any]


def said_to(body: dict[str, Any]) -> str:
    """The prompt, wherever a protocol has it."""
    if "contents" in body:
        return str(body["contents"][-1]["parts"][-1]["text"])
    if "messages" in body:
        content = body["messages"][-1]["content"]
        return str(content if isinstance(content, str) else content[-1]["text"])
    found = body.get("query", body.get("prompt", body.get("input")))
    return str(found[0] if isinstance(found, list) else found)


def answered(path: str, body: dict[str, Any]) -> dict[str, Any]:
    text = f"What there is to say of {said_to(body)}"
    numbers = [float(len(text)), *range(15)]
    if path.endswith("/chat/completions"):
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    if path.endswith("/embeddings"):
        found = {"object": "embedding", "index": 0, "embedding": numbers}
        return {"object": "list", "model": "e", "data": [found], "usage": {"prompt_tokens": 3, "total_tokens": 3}}
    if path.endswith("/messages"):
        return {
            "id": "a", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "stop_sequence": None, "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 3, "output_tokens": 5},
        }  # fmt: skip
    if path.endswith(":generateContent"):
        content = {"role": "model", "parts": [{"text": text}]}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": "m"}
    if path == "/search":
        found = {"title": "t", "url": "https://example.com", "content": text, "score": 0.5, "raw_content": None}
        return {"query": said_to(body), "results": [found], "images": [], "response_time": 0.1}
    if path == "/api/embed":
        return {"model": "m", "embeddings": [numbers]}
    return {
        "model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
        **({"message": {"role": "assistant", "content": text}} if path == "/api/chat" else {"response": text}),
    }  # fmt: skip


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(TAKES_S)
        told = json.dumps(answered(self.path.partition("?")[0], body)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)


@pytest.fixture(scope="module")
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


def needed(package: str) -> Any:
    return pytest.importorskip(package, reason=f"{package} is not installed (setup/light.txt names it)")


def messages(prompt: str) -> Any:
    return [{"role": "user", "content": prompt}]


@dataclass
class Client:
    """What answers a prompt, the component that it calls, and what it is closed with."""

    ask: Ask
    component: Any
    client: Any


def chat_of(made: Any) -> Client:
    def ask(prompt: str) -> str:
        return str(made.chat.completions.create(model="m", messages=messages(prompt)).choices[0].message.content)

    async def aask(prompt: str) -> str:
        answer = await made.chat.completions.create(model="m", messages=messages(prompt))
        return str(answer.choices[0].message.content)

    return Client(aask if type(made).__name__.startswith("Async") else ask, made.chat.completions, made)


def groq(url: str) -> Client:
    return chat_of(needed("groq").Groq(api_key=KEY, base_url=url))


def groq_async(url: str) -> Client:
    return chat_of(needed("groq").AsyncGroq(api_key=KEY, base_url=url))


def embeddings_async(url: str) -> Client:
    made = openai.AsyncOpenAI(api_key=KEY, base_url=url)

    async def ask(prompt: str) -> str:
        return str((await made.embeddings.create(model="e", input=[prompt])).data[0].embedding[0])

    return Client(ask, made.embeddings, made)


def anthropic(url: str) -> Client:
    made = needed("anthropic").Anthropic(api_key=KEY, base_url=url)

    def ask(prompt: str) -> str:
        return str(made.messages.create(model="m", max_tokens=9, messages=messages(prompt)).content[0].text)

    return Client(ask, made.messages, made)


def anthropic_async(url: str) -> Client:
    made = needed("anthropic").AsyncAnthropic(api_key=KEY, base_url=url)

    async def ask(prompt: str) -> str:
        answer = await made.messages.create(model="m", max_tokens=9, messages=messages(prompt))
        return str(answer.content[0].text)

    return Client(ask, made.messages, made)


def ollama_chat(url: str) -> Client:
    made = ollama.Client(host=url)
    return Client(lambda prompt: made.chat(model="m", messages=messages(prompt)).message.content, made, made)


def ollama_generate(url: str) -> Client:
    made = ollama.Client(host=url)
    return Client(lambda prompt: made.generate(model="m", prompt=prompt).response, made, made)


def ollama_embed(url: str) -> Client:
    made = ollama.Client(host=url)
    return Client(lambda prompt: str(made.embed(model="m", input=prompt).embeddings[0][0]), made, made)


def ollama_async(url: str) -> Client:
    made = ollama.AsyncClient(host=url)

    async def ask(prompt: str) -> str:
        return str((await made.chat(model="m", messages=messages(prompt))).message.content)

    return Client(ask, made, made)


def google(url: str) -> Any:
    needed("google.genai")
    genai = importlib.import_module("google.genai")
    return genai.Client(api_key=KEY, http_options=genai.types.HttpOptions(base_url=url))


def google_sync(url: str) -> Client:
    made = google(url)
    return Client(
        lambda prompt: made.models.generate_content(model="m", contents=prompt).text, made.models, made
    )  # fmt: skip


def google_async(url: str) -> Client:
    made = google(url)

    async def ask(prompt: str) -> str:
        return str((await made.aio.models.generate_content(model="m", contents=prompt)).text)

    return Client(ask, made.aio.models, made.aio)


def tavily(url: str) -> Client:
    """It takes one call at a time, so that the next one can only run while the program does something else."""
    made = needed("tavily").TavilyClient(api_key=KEY, api_base_url=url)

    def ask(prompt: str) -> str:
        found = made.search(prompt, max_results=1)["results"][0]["content"]
        time.sleep(2 * TAKES_S)
        return str(found)

    return Client(ask, made, made)


def tavily_async(url: str) -> Client:
    made = needed("tavily").AsyncTavilyClient(api_key=KEY, api_base_url=url)

    async def ask(prompt: str) -> str:
        return str((await made.search(prompt, max_results=1))["results"][0]["content"])

    return Client(ask, made, made)


ROWS: list[tuple[Callable[[str], Client], str, str]] = [
    (groq, "sdk create", "decode"),
    (groq_async, "sdk create (async)", "decode"),
    (embeddings_async, "sdk embedding (async)", "embedding"),
    (anthropic, "sdk create", "decode"),
    (anthropic_async, "sdk create (async)", "decode"),
    (ollama_chat, "sdk chat", "decode"),
    (ollama_generate, "sdk generate", "decode"),
    (ollama_embed, "sdk embed", "embedding"),
    (ollama_async, "sdk chat (async)", "decode"),
    (google_sync, "sdk generate_content", "decode"),
    (google_async, "sdk generate_content (async)", "decode"),
    (tavily, "sdk search", "searching"),
    (tavily_async, "sdk search (async)", "searching"),
]


@pytest.mark.parametrize(("make", "family", "op"), ROWS, ids=[make.__name__ for make, _, _ in ROWS])
def test_calls_are_seen_and_made_early(
    make: Callable[[str], Client], family: str, op: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)  # everybody's
    with asyncio.Runner() as runner:
        made = make(url)
        is_async = asyncio.iscoroutinefunction(made.ask)
        graph = program(made.ask, is_async)
        fast = accelerate(graph)

        def run(program: Any, topic: str) -> Any:
            value = {"topic": topic}
            return runner.run(program.ainvoke(value)) if is_async else program.invoke(value)

        for topic in TOPICS:
            assert run(fast, topic) == run(graph, topic)
            assert accel.settle(10)
        report, last = fast.report(), fast.plan.last
        close = getattr(made.client, "aclose" if is_async else "close", None) or getattr(made.client, "close", None)
        if close is not None:
            closed = close()
            if asyncio.iscoroutine(closed):
                runner.run(closed)
    assert last is not None and [(call.family, call.op) for call in last.calls] == [(family, op)] * 3
    assert facts_of(made.component).pure and facts_of(made.component).local, "its address is this machine's"
    assert report.retired >= 1


def test_a_client_that_tells_opentelemetry_of_its_calls_is_let_be(url: str) -> None:
    """Spans of calls that the program has not made would be in its traces."""
    needed("anthropic")
    needed("opentelemetry.sdk.trace")
    code = f"""
import anthropic
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from accel.parts.components import facts_of
from accel.parts.identities.identity import identity_of
from accel.parts.methods import sdks

sdks.install_all()
client, other = (anthropic.Anthropic(api_key="k", base_url={url!r}) for _ in range(2))
message = [{{"role": "user", "content": "bees"}}]
client.messages.create(model="m", max_tokens=9, messages=message)
assert identity_of(client.messages, False) == identity_of(other.messages, False)
assert facts_of(client.messages).pure
trace.set_tracer_provider(TracerProvider())
assert "tells OpenTelemetry" in facts_of(client.messages).reason, facts_of(client.messages)
assert not facts_of(client.messages).pure
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
