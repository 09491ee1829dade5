"""The LlamaIndex language model on engines made here: what it asks of them and what it makes of their answers."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatResponse, CompletionResponse, ImageBlock, ThinkingBlock
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.llms import ChatMessage, MessageRole, TextBlock
from llama_index.core.response_synthesizers import get_response_synthesizer
from pydantic import ValidationError

import accel
import accel_local
from accel import engine as protocols
from accel.engine import Constraint, Priority, Sampling
from accel.errors import CallCancelled, ConfigurationError, InvalidRequest, RequestError
from accel.parts.components import facts_of
from accel.run.gains.pace import load
from accel_llamaindex import AccelLLM
from accel_sim import SimLLMConfig
from accel_vllm import VLLMConfig
from adapters.tests.llamaindex_scripted import MESSAGES, RENDERED, everything, in_thread, scripted

# --- answers


async def test_chat_responses() -> None:
    llm, engine = scripted()
    whole, awaited, streamed, astreamed = await everything(llm)
    assert whole == awaited and streamed == astreamed
    response = whole[0]
    assert isinstance(response, ChatResponse) and response.delta is None
    assert response.message == ChatMessage(role=MessageRole.ASSISTANT, content="Red, green, blue.")
    assert response.raw["usage"] == {
        "prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11,
        "prompt_tokens_details": {"cached_tokens": 2},
    }  # fmt: skip
    assert response.raw["finish_reason"] == "stop" and response.raw["model"] == engine._config.label
    assert response.additional_kwargs == {"prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11}
    assert [part.delta for part in streamed] == ["Red", ", green", ", blue", "."]
    assert [part.message.content for part in streamed][:2] == ["Red", "Red, green"]
    assert streamed[0].raw is None and streamed[0].additional_kwargs == {}
    assert streamed[-1].model_copy(update={"delta": None}) == response, "the last chunk is the whole response"
    assert [asked[0] for asked in engine.asked] == [RENDERED] * 4


async def test_completions_are_one_message_of_the_user() -> None:
    llm, engine = scripted()
    whole, awaited, streamed, astreamed = await everything(llm, chat=False)
    assert whole == awaited and streamed == astreamed
    assert isinstance(whole[0], CompletionResponse) and whole[0].text == "Red, green, blue."
    assert [part.text for part in streamed] == ["Red", "Red, green", "Red, green, blue", "Red, green, blue."]
    assert [part.delta for part in streamed] == ["Red", ", green", ", blue", "."]
    assert streamed[-1].model_copy(update={"delta": None}) == whole[0]
    assert whole[0].raw["usage"]["total_tokens"] == 11
    assert [asked[0] for asked in engine.asked] == [RENDERED[1:]] * 4


async def test_what_is_formatted_goes_without_the_chat_template() -> None:
    llm, engine = scripted()
    await everything(llm, chat=False, formatted=True)
    assert [asked[0] for asked in engine.asked] == ["List three colours."] * 4
    own, engine = scripted(
        messages_to_prompt=lambda messages: "|".join(str(message) for message in messages),
        completion_to_prompt=lambda prompt: f"<{prompt}>",
    )
    own.chat(MESSAGES)
    own.complete("a")
    own.complete("b", formatted=True)
    assert [asked[0] for asked in engine.asked] == ["system: Be short.|user: List three colours.", "<a>", "b"]


def test_roles_and_blocks() -> None:
    llm, engine = scripted()
    llm.chat([ChatMessage(role=role, content=role.value) for role in MessageRole])
    roles = [(message["role"], message["content"]) for message in engine.asked[0][0]]  # type: ignore[index,call-overload]
    assert roles == [
        ("system", "system"), ("system", "developer"), ("user", "user"), ("assistant", "assistant"),
        ("tool", "function"), ("tool", "tool"), ("assistant", "chatbot"), ("assistant", "model"),
    ]  # fmt: skip
    llm.chat([ChatMessage(blocks=[TextBlock(text="a"), TextBlock(text="b")]), ChatMessage(role="assistant")])
    assert engine.asked[1][0] == [{"role": "user", "content": "a\nb"}, {"role": "assistant", "content": ""}]


async def test_settings_and_what_a_call_overrides() -> None:
    settings: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 5, "seed": 1, "stop": ["x"]}
    llm, engine = scripted(**settings)
    await everything(llm)
    assert {asked[1] for asked in engine.asked} == {Sampling(5, 0.5, 0.9, 1, ("x",))}
    engine.asked.clear()
    await everything(llm, temperature=0.0, top_p=1.0, max_tokens=6, seed=2, stop=["y", "z"], regex="a+")
    assert {asked[1] for asked in engine.asked} == {Sampling(6, 0.0, 1.0, 2, ("y", "z"), Constraint("regex", "a+"))}
    engine.asked.clear()
    llm.chat(MESSAGES, temperature=None, stop="one string", choice=["a", "b"])
    assert engine.asked[0][1] == Sampling(5, 0.5, 0.9, 1, ("one string",), Constraint("choice", ("a", "b")))


async def test_the_priority_of_whoever_asks_arrives() -> None:
    llm, engine = scripted()
    token = protocols.priority.set(Priority(9))
    try:
        await everything(llm)
        await everything(llm, chat=False)
    finally:
        protocols.priority.reset(token)
    llm.chat(MESSAGES)
    assert [asked[2] for asked in engine.asked] == [9] * 8 + [0]


async def test_errors_of_the_engine() -> None:
    llm, _ = scripted("Re", error="out of paint")
    with pytest.raises(RequestError, match="out of paint"):
        llm.chat(MESSAGES)
    with pytest.raises(RequestError, match="out of paint"):
        await llm.acomplete("a")
    parts = llm.stream_chat(MESSAGES)
    assert next(parts).delta == "Re"
    with pytest.raises(RequestError, match="out of paint"):
        next(parts)
    aparts = await llm.astream_complete("a")
    assert (await anext(aparts)).text == "Re"
    with pytest.raises(RequestError, match="out of paint"):
        await anext(aparts)


async def test_calls_that_can_not_be_right_are_refused_when_they_are_made() -> None:
    llm, engine = scripted()
    for ask in (llm.chat, llm.stream_chat):
        with pytest.raises(ConfigurationError, match=r"know tools(.|\n)*temperature"):
            ask(MESSAGES, tools=[])
        with pytest.raises(ConfigurationError, match="exclude"):
            ask(MESSAGES, regex="a", choice=["b"])
        with pytest.raises(ConfigurationError, match="response_format"):
            ask(MESSAGES, response_format={"type": "json_object"})
        with pytest.raises(InvalidRequest, match="text only, not a ImageBlock"):
            ask([ChatMessage(blocks=[ImageBlock(url="http://localhost/x.png")])])
    for aask in (llm.achat, llm.astream_chat):
        with pytest.raises(InvalidRequest, match="ThinkingBlock"):
            await aask([ChatMessage(blocks=[ThinkingBlock(content="hm"), TextBlock(text="a")])])
    for acomplete in (llm.acomplete, llm.astream_complete):
        with pytest.raises(ConfigurationError, match="banana"):
            await acomplete("a", banana=1)
    assert engine.asked == []


def test_they_are_refused_as_soon_while_other_runs_are_going_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that belongs to no run is counted while it is read, and asked for when the program asks for it."""
    llm, engine = scripted()
    accel.accelerate(get_response_synthesizer(llm=llm))
    monkeypatch.setattr(load, "runs", 1)
    with pytest.raises(ConfigurationError, match="exclude"):
        llm.stream_chat(MESSAGES, regex="a", choice=["b"])
    with pytest.raises(ConfigurationError, match="exclude"):
        llm.stream_complete("a", regex="a", choice=["b"])
    assert "".join(part.delta or "" for part in llm.stream_chat(MESSAGES)) and len(engine.asked) == 1


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValidationError, match="temprature"):
        AccelLLM(temprature=1)
    with pytest.raises(ValidationError, match="config of an engine"):
        AccelLLM(engine="vllm")


# --- leaving early


async def test_a_stream_that_is_left_ends_the_request() -> None:
    llm, engine = scripted(endless=True)
    parts = llm.stream_chat(MESSAGES)
    next(parts)
    assert engine.open == 1
    parts.close()
    del parts
    assert await asyncio.to_thread(engine.idle.wait, 60)
    aparts = await llm.astream_complete("a")
    await anext(aparts)
    await aparts.aclose()
    del aparts
    assert await asyncio.to_thread(engine.idle.wait, 60) and len(engine.asked) == 2


async def test_cancelling_the_task_ends_the_request() -> None:
    llm, engine = scripted(endless=True)
    streaming = asyncio.Event()

    async def stream() -> None:
        async for _ in await llm.astream_chat(MESSAGES):
            streaming.set()

    tasks = [asyncio.create_task(stream()), asyncio.create_task(llm.achat(MESSAGES))]
    await streaming.wait()
    for task in tasks:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await asyncio.to_thread(engine.idle.wait, 60)


def test_the_cancel_token_ends_calls_on_other_threads() -> None:
    llm, engine = scripted(endless=True)
    token = protocols.CancelToken()
    streaming = threading.Event()

    def stream() -> None:
        protocols.cancel_token.set(token)
        for _ in llm.stream_complete("a"):
            streaming.set()

    def whole() -> None:
        protocols.cancel_token.set(token)
        llm.chat(MESSAGES)

    runs = [in_thread(stream), in_thread(whole)]
    assert streaming.wait(60)
    token.cancel()
    for thread, outcome in runs:
        thread.join(60)
        assert not thread.is_alive() and isinstance(outcome[0], CallCancelled)
    assert engine.idle.wait(60)


# --- what LlamaIndex and the core read off it


def test_metadata(tmp_path: Path) -> None:
    own = AccelLLM(model="some/model", max_model_len=2048, max_tokens=100).metadata
    assert (own.model_name, own.context_window, own.num_output) == ("some/model", 2048, 100)
    assert own.is_chat_model and not own.is_function_calling_model
    assert AccelLLM(engine=VLLMConfig(model="other", max_model_len=512)).metadata.model_name == "other"
    config = SimLLMConfig("7b", max_model_len=1234, name=str(tmp_path))
    simulated = AccelLLM(engine=config).metadata
    assert simulated.context_window == 1234 and simulated.model_name == config.label
    assert config.label not in accel_local.running(), "asking starts nothing"
    scripted_llm, engine = scripted()
    assert scripted_llm.metadata.context_window == engine.max_prompt_tokens + 1


def test_facts_and_identity() -> None:
    facts = facts_of(AccelLLM())
    assert facts.pure and facts.local and facts.streams_equal and facts.concurrency == 4096
    assert AccelLLM(temperature=1.0).engine_config == AccelLLM().engine_config
    assert AccelLLM().to_dict()["class_name"] == "AccelLLM"


async def test_token_counts() -> None:
    counter = TokenCountingHandler(tokenizer=str.split)
    llm, _ = scripted(callback_manager=CallbackManager([counter]))
    for chat in (True, False):
        await everything(llm, chat=chat)
        assert [count.prompt_token_count for count in counter.llm_token_counts] == [7] * 4
        assert counter.completion_llm_token_count == 16
        counter.reset_counts()


async def test_prefill() -> None:
    llm, engine = scripted()
    known = [ChatMessage(role="user", content="Notes: ab")]
    protocols_token = protocols.priority.set(Priority(9))
    try:
        assert llm.accel_prefill(known, temperature=0.3) == await llm.accel_aprefill("Notes: ab", formatted=False) == 9
    finally:
        protocols.priority.reset(protocols_token)
    assert engine.prefilled == [([ord(letter) for letter in "Notes: ab"], 9)] * 2
    assert llm.accel_prefill("N") == 0, "less than a block"
    assert llm.accel_prefill("Notes: ab", formatted=True) == await llm.accel_aprefill("Notes: ab", formatted=True) == 0
    assert len(engine.prefilled) == 2
