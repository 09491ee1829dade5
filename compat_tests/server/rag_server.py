"""The application server: the program at three kinds of endpoints, plain and accelerated, over the same components."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from accel import accelerate
from compat_tests.server.rag_program import Parts, async_graph, sync_graph

Arm = Literal["plain", "fast"]


class Ask(BaseModel):
    question: str
    thread: str
    request: str

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.thread, "request_id": self.request}}


def told(state: dict[str, Any]) -> dict[str, Any]:
    """Everything the program has worked out, so that two arms can be compared."""
    documents = [document.page_content for document in state["documents"]]
    return {"queries": state["queries"], "documents": documents, "kept": state["kept"], "answer": state["answer"]}


def in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def create_app(model_url: str) -> FastAPI:
    parts = Parts(model_url)
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

        async def lines() -> AsyncIterator[str]:
            state: dict[str, Any] = {}
            tokens: dict[str, str] = {}
            modes = ["updates", "messages"]
            try:
                async for mode, part in in_loop[arm].astream({"question": ask.question}, ask.config, stream_mode=modes):
                    if mode == "messages":
                        chunk, metadata = part
                        node = metadata["langgraph_node"]
                        tokens[node] = tokens.get(node, "") + chunk.text
                        yield json.dumps({"token": chunk.text}) + "\n"
                    else:
                        for values in part.values():
                            state.update(values)
            except Exception as error:
                yield json.dumps(in_words(error)) + "\n"
                raise
            yield json.dumps({**told(state), "tokens": tokens}) + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    @app.get("/report")
    def report() -> dict[str, Any]:
        reports = {"loop": in_loop["fast"].report(), "threads": in_threads["fast"].report()}
        counts = {
            name: {"demanded": r.demanded, "issued": r.issued, "retired": r.retired, "wasted": r.wasted}
            for name, r in reports.items()
        }
        return {"counts": counts, "text": {name: str(r) for name, r in reports.items()}}

    return app
