"""For tests of every kind of LlamaIndex object: models that answer as LlamaIndex's prompts want it, at once and by what
they are asked; documents; and what a kind is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.schema import NodeWithScore

import accel

from .catching_up import catch_up
from .llamaindex_programs import TOPICS, BatchedLetters, Scribe, _node, _number, _sentence, without_ids

NODES = [_node(topic, part) for topic in TOPICS for part in range(4)]


_WAYS = ("new", "old")


class Clerk(Scribe):
    """Also chooses, ranks, judges, searches, asks sub-questions, names relations and uses a tool, as LlamaIndex's
    prompts want it."""

    def _answer(self, prompt: str) -> str:
        said = super()._answer(prompt)
        if "<User Question>" in prompt:
            names = list(dict.fromkeys(re.findall(r'^ *"(\w+)": "', prompt.rpartition("<Tools>")[2], re.M)))
            about = prompt.rpartition("<User Question>")[2].strip().splitlines()[0]
            parts = [{"sub_question": f"{part} of: {about}", "tool_name": names[number % len(names)]}
                     for number, part in enumerate(("Beginning", "Middle", "End"))]  # fmt: skip
            return "```json\n" + json.dumps({"items": parts}, indent=1) + "\n```"
        if "Some choices are given" in prompt:
            several = "return the top choices" in prompt
            return json.dumps([{"choice": n + 1, "reason": "It fits."} for n in range(1 + several)])
        if "Let's try this now" in prompt:
            count = len(re.findall(r"Document \d+:", prompt.rpartition("Let's try this now")[2]))
            return "\n".join(f"Doc: {n + 1}, Relevance: {1 + _number(f'{prompt}{n}') % 9}" for n in range(count))
        if "knowledge triplets" in prompt:
            first, second, third, *_ = said.strip(".").split()
            return f"({first}, is beside, {second})\n({second}, belongs to, {third})"
        if "Existing Answer:" in prompt:
            topic = re.findall(r"about (\w+)\?", prompt)[-1]
            written = prompt.rpartition("Existing Answer:")[2].count(".")
            return "done" if written > 1 else f"It is known for [Search(what is {_WAYS[written]} about {topic}?)]"
        if "YES or NO" in prompt:
            return "YES"
        if "Action Input" in prompt:
            if "Observation:" in prompt.rpartition("Current Conversation")[2]:
                return f"Thought: I can answer without using any more tools.\nAnswer: {said}"
            topic = re.findall(r"about (\w+)\?", prompt)[-1]
            return f'Thought: I need to use a tool.\nAction: look_up\nAction Input: {{"topic": "{topic}"}}'
        return said


accel.register(Clerk, local=True, concurrency=16, streams_equal=True, twins=True)


class Caller(FunctionCallingLLM):
    """A model with tools: it looks a topic up, then hands over or answers; and says in a form what it is asked for."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, is_function_calling_model=True, model_name="caller")

    def _said(self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]]) -> ChatMessage:
        catch_up()  # a demand takes time
        names = [tool["function"]["name"] for tool in tools]
        prompt = "\n".join(f"{message.role.value}: {message.content}" for message in messages)
        rounds = sum(message.role is MessageRole.TOOL for message in messages)
        topic = (re.findall(r"about (\w+)\?", prompt) or ["nothing"])[-1]
        if "DocumentRelevanceList" in names:
            count = len(re.findall(r"Document \d+:", prompt))
            found = [{"document_number": n + 1, "relevance": 1 + _number(f"{prompt}{n}") % 9} for n in range(count)]
            return _calls(rounds, DocumentRelevanceList={"documents": found})
        if "look_up" in names and not rounds:
            return _calls(rounds, look_up={"topic": topic}, measure={"topic": topic})
        if "handoff" in names:
            return _calls(rounds, handoff={"to_agent": "writer", "reason": f"All about {topic} is known."})
        return ChatMessage(role="assistant", content=_sentence(prompt))

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=self._said(messages, kwargs.get("tools", ())))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        await asyncio.sleep(0)
        return ChatResponse(message=self._said(messages, kwargs.get("tools", ())))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Generator[ChatResponse, None, None]:
        return _parts_of(self._said(messages, kwargs.get("tools", ())))

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> AsyncGenerator[ChatResponse, None]:
        async def parts() -> AsyncGenerator[ChatResponse, None]:
            for part in _parts_of(self._said(messages, kwargs.get("tools", ()))):
                await asyncio.sleep(0)
                yield part

        return parts()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=_sentence(prompt))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=_sentence(prompt))

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> Generator[CompletionResponse, None, None]:
        raise NotImplementedError("nobody asks for it")

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> AsyncGenerator[CompletionResponse, None]:
        raise NotImplementedError("nobody asks for it")

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[Any],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        asked = [ChatMessage(role="user", content=user_msg)] if isinstance(user_msg, str) else [user_msg]
        messages = [*(chat_history or ()), *(asked if user_msg else ())]
        return {"messages": messages, "tools": [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools]}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return [
            ToolSelection(tool_id=block.tool_call_id or "", tool_name=block.tool_name, tool_kwargs=block.tool_kwargs)  # type: ignore[arg-type]
            for block in response.message.blocks
            if isinstance(block, ToolCallBlock)
        ]


def _calls(rounds: int, **asked: dict[str, Any]) -> ChatMessage:
    blocks: list[Any] = [TextBlock(text="I need help.")]
    for name, given in asked.items():
        blocks.append(ToolCallBlock(tool_call_id=f"{name}-{rounds}", tool_name=name, tool_kwargs=given))
    return ChatMessage(role="assistant", blocks=blocks)


def _parts_of(message: ChatMessage) -> Generator[ChatResponse, None, None]:
    """The words first, then the calls."""
    text, said = "", message.content or ""
    for piece in re.findall(r"\s*\S+|\s+$", said):
        text += piece
        yield ChatResponse(message=ChatMessage(role="assistant", content=text), delta=piece)
    if len(message.blocks) > 1:
        yield ChatResponse(message=message, delta="")


accel.register(Caller, local=True, concurrency=16, streams_equal=True, twins=True)


class Letters(BatchedLetters):
    pass


accel.register(Letters, pure=True, local=True, concurrency=16, elementwise=True, twins=True)


@dataclass
class Kind:
    make: Callable[[], Any]
    ask: Callable[[Any, str], Any]
    aask: Callable[[Any, str], Any] | None = None
    """Its coroutine; None where there is none worth a test."""
    early: bool = True
    """Whether anything of it can be early."""
    calls: bool = True
    """Whether it calls anything at all."""
    orderly: bool = True
    """Whether a plain call of it makes its own calls one after the other, so that it tells of them in order."""


def index(nodes: list[Any] = NODES) -> VectorStoreIndex:
    return VectorStoreIndex(list(nodes), embed_model=Letters())


def scored(question: str) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=1.0) for node in of_topic(question)]


def of_topic(question: str) -> list[Any]:
    topic = question.split()[-1].strip("?")
    return [node for node in NODES if node.node_id.startswith(topic)]


def told(result: Any) -> str:
    """All that a result says, but for ids made at random."""
    if hasattr(result, "source_nodes"):
        sources = [node.model_dump() for node in result.source_nodes]
        result = [str(result), sources, getattr(result, "metadata", None)]
    elif isinstance(result, list):
        result = [item.model_dump() if hasattr(item, "model_dump") else item for item in result]
    return without_ids(repr(result))
