"""A RAG server with FastAPI: an endpoint that is awaited, one that streams, and what an operator asks.

    MODEL_URL=http://127.0.0.1:8001/v1 uvicorn --factory examples.serving.fastapi_app:create_app --workers 2

Components and graph are made in the worker that uses them. With `PLAN_FILE`, the worker that comes first writes what it
has learnt, and the next ones begin with it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

import accel
from accel import Plan, accelerate

from .rag_program import Parts, async_graph, told
from .settings import Settings, reported

WARM_UP = ("How does a tide turn a harbour to silt?", "Why do copper lanterns darken near embers?")
"""Two at least, and of different words."""


class Ask(BaseModel):
    question: str
    thread: str = "none"
    request: str = "none"

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.thread, "request_id": self.request}}


def create_app(plan: Plan | None = None) -> FastAPI:
    """`plan`: what was learnt before this process was forked."""
    settings = Settings.from_environment()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        parts = Parts(settings.model_url)
        await asyncio.to_thread(parts.fill)
        accel.register(parts.store, readonly=True)  # filled once: requests only read it
        graph = async_graph(parts)
        app.state.graph = await accelerated(graph, settings, plan) if settings.accelerated else graph
        yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/ask")
    async def ask(asked: Ask) -> dict[str, Any]:
        return told(await app.state.graph.ainvoke({"question": asked.question}, asked.config))

    @app.post("/ask/stream")
    async def ask_stream(asked: Ask) -> StreamingResponse:
        return StreamingResponse(lines(app.state.graph, asked), media_type="application/x-ndjson")

    @app.get("/healthz")
    def healthy() -> dict[str, int]:
        return {"process": os.getpid()}

    @app.get("/report")
    def report() -> dict[str, Any]:
        """What acceleration did in this worker so far."""
        return reported(app.state.graph)

    return app


async def accelerated(graph: Any, settings: Settings, plan: Plan | None) -> Any:
    """With what was learnt already, here or in another process; otherwise warm before the first user comes."""
    known = plan or settings.plan
    fast = accelerate(graph, plan=known)
    if known is None:
        await warm_up(fast)
        if settings.plan_file is not None:
            fast.save_plan(settings.plan_file)
    return fast


async def warm_up(fast: Any) -> None:
    """What differs with every request differs here, too, so that two runs have shown that it doesn't matter."""
    asked = [Ask(question=each, thread=f"warm-up {n}", request=f"warm-up {n}") for n, each in enumerate(WARM_UP)]
    await accel.awarmup(fast, [{"question": one.question} for one in asked], config=[one.config for one in asked])


async def lines(graph: Any, asked: Ask) -> AsyncIterator[str]:
    """Tokens as they come, then all that was worked out. The run is cancelled when its client goes."""
    state: dict[str, Any] = {}
    tokens: dict[str, str] = {}
    modes = ["updates", "messages"]
    try:
        async for mode, part in graph.astream({"question": asked.question}, asked.config, stream_mode=modes):
            if mode == "messages":
                chunk, metadata = part
                node = metadata["langgraph_node"]
                tokens[node] = tokens.get(node, "") + chunk.text
                yield json.dumps({"token": chunk.text}) + "\n"
            else:
                for values in part.values():
                    state.update(values)
    except Exception as error:
        yield json.dumps(f"{type(error).__name__}: {error}") + "\n"
        raise
    yield json.dumps({**told(state), "tokens": tokens}) + "\n"
