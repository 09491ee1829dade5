"""A chat server with LlamaIndex's chat engines: whole answers, and streamed ones.

    MODEL_URL=http://127.0.0.1:8001/v1 uvicorn --factory examples.serving.chat_app:create_app

Each conversation has an engine of its own. They share what they learn, as they are of one `plan_scope`.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine.types import BaseChatEngine
from pydantic import BaseModel

import accel
from accel import accelerate

from .chat_program import Parts, chat_engine
from .settings import Settings, reported

MOST_CONVERSATIONS = 1000
WARM_UP = (
    ("How does a tide turn a harbour to silt?", "And in winter?"),
    ("Why do copper lanterns darken near embers?", "What helps against it?"),
)
"""Two conversations, of two turns each."""


class Say(BaseModel):
    conversation: str
    message: str


class Conversations:
    """The engines, by conversation; those that rested longest are forgotten."""

    def __init__(self, parts: Parts, settings: Settings) -> None:
        self._parts, self._settings = parts, settings
        self._engines: OrderedDict[str, BaseChatEngine] = OrderedDict()
        self._lock = Lock()
        self._plan = accel.load_plan(settings.plan) if settings.plan else None

    def engine(self, name: str) -> BaseChatEngine:
        with self._lock:
            if name not in self._engines:
                self._engines[name] = self.made()
                if len(self._engines) > MOST_CONVERSATIONS:
                    self._engines.popitem(last=False)
            self._engines.move_to_end(name)
            return self._engines[name]

    def made(self) -> BaseChatEngine:
        engine = chat_engine(self._parts)
        if not self._settings.accelerated:
            return engine
        return accelerate(engine, plan_scope="chat", plan=self._plan)

    def warm_up(self) -> None:
        if self._plan is not None:
            return
        for number, conversation in enumerate(WARM_UP):
            # It is kept: the memory of an engine that is collected closes its database by whatever event loop is there.
            engine = self.engine(f"warm-up {number}")
            for message in conversation:
                engine.chat(message)
        accel.settle()
        if self._settings.plan_file is not None:
            accel.save_plan(self.made(), self._settings.plan_file)


def create_app() -> FastAPI:
    settings = Settings.from_environment()
    conversations = Conversations(Parts(settings.model_url), settings)
    if settings.accelerated:
        conversations.warm_up()
    app = FastAPI()

    @app.post("/chat")
    def chat(said: Say) -> dict[str, Any]:
        engine = conversations.engine(said.conversation)
        response = engine.chat(said.message)
        sources = [found.node.node_id for found in response.source_nodes]
        return {"answer": response.response, "sources": sources, "history": spoken(engine.chat_history)}

    @app.post("/chat/stream")
    def chat_stream(said: Say) -> StreamingResponse:
        engine = conversations.engine(said.conversation)

        def lines() -> Iterator[str]:
            response = engine.stream_chat(said.message)
            tokens = []
            for token in response.response_gen:
                tokens.append(token)
                yield json.dumps({"token": token}) + "\n"
            sources = [found.node.node_id for found in response.source_nodes]
            yield json.dumps({"answer": "".join(tokens), "sources": sources}) + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    @app.get("/healthz")
    def healthy() -> dict[str, int]:
        return {"process": os.getpid()}

    @app.get("/report")
    def report() -> dict[str, Any]:
        """What acceleration did in this worker so far, in all conversations."""
        return reported(conversations.made())

    return app


def spoken(history: list[ChatMessage]) -> list[str]:
    return [f"{message.role.value}: {message.content}" for message in history]
