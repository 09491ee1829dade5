"""Invariant 6, past a callback handler that may stop a call (`raise_error`): LangChain asks it first, so nothing that
it is asked about is called early."""

from __future__ import annotations

import contextvars
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_openai import ChatOpenAI
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.callbacks.base_handler import BaseCallbackHandler as LlamaHandler
from llama_index.core.llms import MockLLM
from pydantic import SecretStr

import accel
from accel import accelerate
from accel_llamaindex.components import holds
from adapters.tests import three_calls

TOPICS = ("bees and hives", "iron in Sweden", "the far side of the moon", "bread of long ago")


class Refused(Exception):
    pass


class Guard(BaseCallbackHandler):
    raise_error = True

    def on_chat_model_start(self, serialized: Any, messages: Any, **given: Any) -> None:
        if any("secret" in message.content for batch in messages for message in batch):
            raise Refused


class Recorder(BaseCallbackHandler):
    """Raises nothing."""

    def on_chat_model_start(self, serialized: Any, messages: Any, **given: Any) -> None:
        pass


class Late(BaseCallbackHandler):
    """Is not asked before a call."""

    raise_error = True

    def on_llm_end(self, response: Any, **given: Any) -> None:
        pass


def program(handler: BaseCallbackHandler | None, where: str, sent: list[str]) -> Any:
    def answer(request: httpx.Request) -> httpx.Response:
        time.sleep(0.02)  # what makes an early call worth while
        text = json.loads(request.content)["messages"][-1]["content"]
        sent.append(text)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text[::-1]}}
        return httpx.Response(
            200, json={"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        )

    handlers = [handler] if handler is not None else []
    model = ChatOpenAI(
        model="m",
        api_key=SecretStr("k"),
        base_url="http://127.0.0.1:9/v1",
        http_client=httpx.Client(transport=httpx.MockTransport(answer)),
        callbacks=handlers if where == "constructor" else None,
    )
    accel.register(model, pure=True, concurrency=8)
    asked: Any = model.with_config(callbacks=handlers) if where == "with_config" else model

    def ask(state: Any, prompt: str) -> str:
        try:
            return str(asked.invoke(prompt).content)
        except Refused:
            return "refused"

    return three_calls.program(ask)


def early(fast: Any, config: Any) -> int:
    for topic in TOPICS:
        fast.invoke({"topic": topic}, config)
        assert accel.settle(10)
    return int(fast.report().issued)


@pytest.mark.parametrize("where", ["constructor", "with_config", "run", "graph"])
def test_nothing_is_called_early_past_a_guard(where: str, tmp_path: Path) -> None:
    sent: list[str] = []
    graph = program(Guard(), where, sent)
    graph = graph.with_config(callbacks=[Guard()]) if where == "graph" else graph
    config: Any = {"callbacks": [Guard()]} if where == "run" else None
    fast = accelerate(graph)
    assert early(fast, config) == 0
    assert "the callback handler Guard is asked before each call, and may stop it" in str(fast.report())
    fast.save_plan(str(tmp_path / "plan.json"))
    for each in (fast, accelerate(program(Guard(), where, sent), plan=str(tmp_path / "plan.json"))):
        each.invoke({"topic": "a secret"}, config if where != "graph" else {"callbacks": [Guard()]})
        assert accel.settle(10)
    assert not any("secret" in text for text in sent)


@pytest.mark.parametrize("handler", [Recorder(), Late()])
@pytest.mark.parametrize("where", ["constructor", "with_config"])
def test_handlers_that_stop_nothing_hold_nothing(where: str, handler: BaseCallbackHandler) -> None:
    assert early(accelerate(program(handler, where, [])), None) > 0


def test_a_run_without_the_guard_of_others_has_its_calls_early() -> None:
    fast = accelerate(program(None, "", []))
    assert early(fast, {"callbacks": [Guard()]}) == 0
    assert early(fast, None) > 0


class Asked(LlamaHandler):
    """LlamaIndex lets through what a handler raises, and has no flag that says whether it will."""

    def __init__(self) -> None:
        super().__init__([], [])

    def on_event_start(self, event_type: Any, payload: Any = None, *args: Any, **given: Any) -> str:
        if "secret" in str(payload):
            raise Refused
        return ""

    def on_event_end(self, *args: Any, **given: Any) -> None:
        pass

    def start_trace(self, trace_id: Any = None) -> None:
        pass

    def end_trace(self, trace_id: Any = None, trace_map: Any = None) -> None:
        pass


def test_a_handler_of_the_program_s_holds_a_model_of_llamaindex() -> None:
    guarded = MockLLM(callback_manager=CallbackManager([Asked()]))
    with pytest.raises(Refused):
        contextvars.copy_context().run(guarded.complete, "a secret")
    reason = holds(guarded)
    assert reason is not None and "Asked is asked before each call" in str(reason)
    assert holds(MockLLM()) is None
    assert holds(MockLLM(callback_manager=CallbackManager([LlamaDebugHandler()]))) is None
