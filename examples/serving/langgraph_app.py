"""The graph that LangGraph's own server serves, as `langgraph.json` says:

    cd examples/serving && MODEL_URL=http://127.0.0.1:8001/v1 langgraph dev

The server imports this module and takes `graph` from it, and `app` for what it does not answer itself; checkpoints,
threads and runs are the server's. With `PLAN_FILE`, it begins with what was learnt before, if anything was.
"""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import accel

from .rag_program import Parts, async_graph
from .settings import Settings, reported


def _served(settings: Settings) -> Any:
    parts = Parts(settings.model_url)
    parts.fill()
    if not settings.accelerated:
        return async_graph(parts)
    accel.register(parts.store, readonly=True)  # filled once: requests only read it
    return accel.accelerate(async_graph(parts), plan=settings.plan)


graph = _served(Settings.from_environment())


async def report(request: Request) -> JSONResponse:
    """What acceleration did in this process so far."""
    return JSONResponse(await run_in_threadpool(reported, graph))


app = Starlette(routes=[Route("/report", report)])
