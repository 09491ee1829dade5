"""A model server that speaks OpenAI's protocol: chat completions, plain and streamed, with tools and with schemas of
answers, completions, and embeddings.

Every answer, and the time it takes (0.05 to 0.3 s), is a function of the text (`model_replies`). A text with `STALLS`
in it is never answered.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import struct
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse

from .model_replies import STALLS, reply, said, seconds, vector


@dataclass
class Asked:
    """A request: its path and body."""

    path: str
    body: dict[str, Any]


class Served:
    """What the server has seen. Only its event loop changes it."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        """Of models that write, in the order of their coming."""
        self._more = threading.Condition()
        self.in_flight = 0
        self.most_in_flight = 0
        self.seen: Counter[str] = Counter()

    def note(self, path: str, body: dict[str, Any]) -> None:
        with self._more:
            self.asked.append(Asked(path, body))
            self._more.notify_all()

    def wait_for(self, wanted: Callable[[Asked], bool], timeout_s: float = 30.0) -> None:
        """Until such a request has come."""
        with self._more:
            assert self._more.wait_for(lambda: any(map(wanted, self.asked)), timeout_s), "no such request came"

    @contextmanager
    def one(self, text: str) -> Iterator[None]:
        self.seen[text] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            yield
        finally:
            self.in_flight -= 1


async def _takes_time(text: str, scale: float) -> None:
    await asyncio.sleep(scale * seconds(text))
    if STALLS in text:
        await asyncio.Event().wait()


def create_app(scale: float = 1.0, served: Served | None = None) -> FastAPI:
    """scale: of the seconds that answers take."""
    app, served = FastAPI(), served or Served()

    @app.post("/v1/chat/completions")
    @app.post("/openai/v1/chat/completions")
    @app.post("/openai/deployments/{deployment}/chat/completions")
    async def chat(request: Request, body: dict[str, Any]) -> Any:
        served.note(request.url.path, body)
        prompt = "\n".join(_text(message.get("content")) for message in body["messages"])
        given = "\n".join([prompt, *map(json.dumps, body.get("tools") or ())])
        message = said(prompt, body)
        common = {
            "id": f"chat-{hashlib.sha256(prompt.encode()).hexdigest()[:12]}",
            "created": 0,
            "model": body.get("model", "deployed"),
        }
        if body.get("stream"):
            with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
            return StreamingResponse(
                _stream(served, prompt, given, message, common, with_usage, scale), media_type="text/event-stream"
            )
        with served.one(prompt):
            await _takes_time(prompt, scale)
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": _finish(message)}
        return {**common, "object": "chat.completion", "choices": [choice], "usage": _usage(given, message["content"])}

    @app.post("/v1/completions")
    @app.post("/openai/deployments/{deployment}/completions")
    async def completions(request: Request, body: dict[str, Any]) -> Any:
        served.note(request.url.path, body)
        prompts = [body["prompt"]] if isinstance(body["prompt"], str) else body["prompt"]
        answers = [reply(prompt) for prompt in prompts]
        with served.one("\n".join(prompts)):
            await _takes_time("\n".join(prompts), scale)
        choices = [
            {"index": n, "text": answer, "finish_reason": "stop", "logprobs": None} for n, answer in enumerate(answers)
        ]
        model, usage = body.get("model", "deployed"), _usage("\n".join(prompts), "\n".join(answers))
        common = {"id": "completion", "created": 0, "object": "text_completion", "model": model}
        return {**common, "choices": choices, "usage": usage}

    @app.post("/v1/embeddings")
    async def embeddings(body: dict[str, Any]) -> Any:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if not all(isinstance(text, str) for text in texts):
            return JSONResponse({"error": {"message": "texts, please, not tokens"}}, 400)
        with served.one("\n".join(texts)):
            await _takes_time("\n".join(texts), scale)
        packed = body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": i, "embedding": _packed(vector(text)) if packed else vector(text)}
            for i, text in enumerate(texts)
        ]
        used = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": used, "total_tokens": used}
        return {"object": "list", "data": data, "model": body["model"], "usage": usage}

    @app.get("/served")
    async def what_was_served() -> dict[str, Any]:
        """Counts since the last time, and what is in flight now."""
        told = {
            "requests": served.seen.total(),
            "different": len(served.seen),
            "in_flight": served.in_flight,
            "most_in_flight": served.most_in_flight,
        }
        served.seen.clear()
        served.most_in_flight = served.in_flight
        return told

    return app


async def _stream(
    served: Served,
    prompt: str,
    given: str,
    message: dict[str, Any],
    common: dict[str, Any],
    with_usage: bool,
    scale: float,
) -> AsyncIterator[str]:
    def event(choices: list[dict[str, Any]], **more: Any) -> str:
        chunk = {**common, "object": "chat.completion.chunk", "choices": choices, **more}
        return f"data: {json.dumps(chunk)}\n\n"

    with served.one(prompt):
        pieces = [piece for line in message["content"].splitlines(keepends=True) for piece in _pieces(line)]
        await _takes_time(prompt, scale)
        yield event([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        for piece in pieces:
            yield event([{"index": 0, "delta": {"content": piece}, "finish_reason": None}])
        for number, call in enumerate(message.get("tool_calls", ())):
            yield event([{"index": 0, "delta": {"tool_calls": [{"index": number, **call}]}, "finish_reason": None}])
        yield event([{"index": 0, "delta": {}, "finish_reason": _finish(message)}])
        if with_usage:
            yield event([], usage=_usage(given, message["content"]))
        yield "data: [DONE]\n\n"


def _finish(message: dict[str, Any]) -> str:
    return "tool_calls" if "tool_calls" in message else "stop"


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def _pieces(line: str) -> list[str]:
    head, *rest = line.split(" ")
    return [head, *(f" {word}" for word in rest)]


def _usage(prompt: str, answer: str) -> dict[str, int]:
    asked, said = len(prompt.split()), len(answer.split())
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _packed(values: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
