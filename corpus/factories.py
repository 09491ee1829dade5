"""What programs of `small` make anew with every call, as their authors do with `init_chat_model`, `ChatOpenAI(...)`, a
retriever as a context manager, or the client of an SDK: of the same kind as the parts that a program is given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx2
from langchain_core.vectorstores import VectorStoreRetriever
from openai import AsyncOpenAI

from corpus.answers import answer, answer_s

SERVER = "http://127.0.0.1:8000/v1"


def init_chat_model(parts: Any, **settings: Any) -> Any:
    """A chat model of its own, on the engine of the program's."""
    fields = {name: getattr(parts.llm, name) for name in parts.llm.model_fields_set}
    return type(parts.llm)(**{**fields, **settings})


@contextmanager
def make_retriever(parts: Any, **search: Any) -> Iterator[VectorStoreRetriever]:
    """A retriever for as long as somebody looks things up."""
    yield parts.store.as_retriever(search_kwargs=search)


def openai_client() -> AsyncOpenAI:
    """OpenAI's own client, of a server on this machine that waits, and answers by a function of the prompt."""
    _serve()
    return AsyncOpenAI(base_url=SERVER, api_key="none", max_retries=0)


@cache
def _serve() -> None:
    """There is no such server: what would connect to it is answered here, so that time may be virtual."""
    connect = httpx2.AsyncHTTPTransport.handle_async_request

    async def handle(self: Any, request: httpx2.Request) -> httpx2.Response:
        if not str(request.url).startswith(SERVER):
            return await connect(self, request)
        return await _answered(json.loads(await request.aread()))

    httpx2.AsyncHTTPTransport.handle_async_request = handle  # type: ignore[method-assign]


async def _answered(sent: dict[str, Any]) -> httpx2.Response:
    prompt = "\n".join(str(message["content"]) for message in sent["messages"])
    await asyncio.sleep(answer_s(prompt))
    message = {"role": "assistant", "content": answer(prompt)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    whole = {"id": "0", "object": "chat.completion", "created": 0, "model": sent["model"], "choices": [choice]}
    return httpx2.Response(200, json=whole)
