"""The model server on a thread of this process, for as long as a test takes."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import uvicorn

from examples.serving.model_server import Served, create_app


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@contextmanager
def serving(scale: float) -> Iterator[tuple[str, Served]]:
    """Its address, without a path, and what it has seen; `scale`: of the seconds that its answers take."""
    served = Served()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = _Server(uvicorn.Config(create_app(scale, served), log_level="warning", lifespan="off"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), name="model server")
        thread.start()
        assert server.up.wait(60)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", served
        finally:
            server.should_exit = server.force_exit = True
            thread.join(60)


@asynccontextmanager
async def connections_of(llm: Any) -> AsyncIterator[None]:
    """Closes those that a client of `openai` has to this loop; the client stays as it is, as others may share it."""
    try:
        yield
    finally:
        http = getattr(getattr(getattr(llm, "async_client", None), "_client", None), "_client", None)
        if isinstance(http, httpx.AsyncClient):
            await http._transport.aclose()
