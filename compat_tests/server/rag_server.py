"""The application server: the program at three kinds of endpoints, plain and accelerated, over the same components."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse

from accel import accelerate
from examples.serving.fastapi_app import Ask, lines
from examples.serving.rag_program import Parts, async_graph, sync_graph, told
from examples.serving.settings import Settings

Arm = Literal["plain", "fast"]


def in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def create_app() -> FastAPI:
    parts = Parts(Settings.from_environment().model_url)
    parts.fill()
    in_threads: dict[Arm, Any] = {"plain": sync_graph(parts), "fast": accelerate(sync_graph(parts))}
    in_loop: dict[Arm, Any] = {"plain": async_graph(parts), "fast": accelerate(async_graph(parts))}
    app = FastAPI()

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse(in_words(error), 500)

    @app.post("/{arm}/awaited")
    async def awaited(arm: Arm, ask: Ask) -> dict[str, Any]:
        return told(await in_loop[arm].ainvoke({"question": ask.question}, ask.config))

    @app.post("/{arm}/threaded")
    def threaded(arm: Arm, ask: Ask) -> dict[str, Any]:
        return told(in_threads[arm].invoke({"question": ask.question}, ask.config))

    @app.post("/{arm}/streamed")
    async def streamed(arm: Arm, ask: Ask) -> StreamingResponse:
        """Cancelled when its client goes, unlike the other two."""

        return StreamingResponse(lines(in_loop[arm], ask), media_type="application/x-ndjson")

    @app.get("/report")
    def report() -> dict[str, Any]:
        reports = {"loop": in_loop["fast"].report(), "threads": in_threads["fast"].report()}
        counts = {
            name: {"demanded": r.demanded, "issued": r.issued, "retired": r.retired, "wasted": r.wasted}
            for name, r in reports.items()
        }
        return {"counts": counts, "text": {name: str(r) for name, r in reports.items()}}

    return app
