"""Puts `Services` in the place of the network: below the clients, which keep their classes, keys and addresses.

`httpx` (also as `httpx2`), `requests` and `aiohttp` are patched where they would open a connection. Nothing leaves the
process: what no service knows is answered by a made-up page.
"""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from typing import Any

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from bench.strangers.services import Reply, Services


def install(services: Services) -> None:
    for name in ("httpx", "httpx2"):
        try:
            httpx = import_module(name)
        except ImportError:
            continue
        _install_httpx(httpx, services)
    _install_requests(services)
    _install_aiohttp(services)


def _install_httpx(httpx: Any, services: Services) -> None:
    class Stream(httpx.SyncByteStream, httpx.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, reply: Reply) -> None:
            self._reply = reply

        def __iter__(self) -> Iterator[bytes]:
            for seconds, piece in self._reply.pieces:
                _wait(seconds)
                yield piece

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for seconds, piece in self._reply.pieces:
                await _await(seconds)
                yield piece

    def response(reply: Reply) -> Any:
        headers = {"content-type": reply.kind}
        if reply.pieces:
            return httpx.Response(reply.status, headers=headers, stream=Stream(reply))
        return httpx.Response(reply.status, headers=headers, content=reply.body)

    def handle_request(self: Any, request: Any) -> Any:
        reply = services.reply(request.method, str(request.url), request.read())
        _wait(reply.seconds)
        return response(reply)

    async def handle_async_request(self: Any, request: Any) -> Any:
        reply = services.reply(request.method, str(request.url), await request.aread())
        await _await(reply.seconds)
        return response(reply)

    httpx.HTTPTransport.handle_request = handle_request
    httpx.AsyncHTTPTransport.handle_async_request = handle_async_request


def _install_requests(services: Services) -> None:
    import requests
    from urllib3 import HTTPResponse

    def send(self: Any, request: Any, **options: Any) -> Any:
        body = request.body or b""
        reply = services.reply(request.method, request.url, body.encode() if isinstance(body, str) else body)
        _wait(reply.seconds)
        raw = HTTPResponse(
            io.BytesIO(reply.body or b"".join(piece for _, piece in reply.pieces)),
            {"content-type": reply.kind},
            status=reply.status,
            preload_content=False,
        )
        return self.build_response(request, raw)

    requests.adapters.HTTPAdapter.send = send  # type: ignore[method-assign,assignment]


class _Answered(aiohttp.ClientResponse):
    """As much of a response as clients ask for."""

    def __init__(self, reply: Reply, url: str) -> None:
        self._body = reply.body or b"".join(piece for _, piece in reply.pieces)
        self.status, self.reason, self._closed = reply.status, "", True
        self._url, self._kind = URL(url), reply.kind

    @property
    def headers(self) -> Any:
        return CIMultiDictProxy(CIMultiDict({"content-type": self._kind}))

    async def read(self) -> bytes:
        return self._body or b""

    async def text(self, *args: Any, **options: Any) -> str:
        return (self._body or b"").decode()

    async def json(self, *args: Any, **options: Any) -> Any:
        return json.loads(self._body or b"")

    async def __aenter__(self) -> _Answered:
        return self

    async def __aexit__(self, *raised: object) -> None: ...

    def raise_for_status(self) -> None: ...

    def release(self) -> Any: ...

    def close(self) -> None: ...

    async def wait_for_close(self) -> None: ...


def _install_aiohttp(services: Services) -> None:
    async def request(self: Any, method: str, url: Any, **options: Any) -> Any:
        body = json.dumps(options["json"]).encode() if options.get("json") is not None else options.get("data") or b""
        reply = services.reply(method, str(url), body.encode() if isinstance(body, str) else body)
        await _await(reply.seconds)
        return _Answered(reply, str(url))

    aiohttp.ClientSession._request = request  # type: ignore[method-assign,assignment]


def _wait(seconds: float) -> None:
    if seconds > 0:
        time.sleep(seconds)


async def _await(seconds: float) -> None:
    await asyncio.sleep(max(0.0, seconds))
