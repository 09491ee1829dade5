"""Fake components, declared as their users would. Answers, and the time they take, are functions of the text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from random import Random
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback

import accel
from compat_tests.soak.soak_cases import TOKEN, WORDS, as_text, enter, fraction


def seconds(text: str) -> float:
    return 0.002 + 0.008 * fraction("seconds", text)


def reply(prompt: str) -> str:
    """Lines, a yes or no, a choice, or a sentence, as the prompt asks for it; of the same run as the prompt."""
    draw = Random(prompt)
    found = TOKEN.search(prompt)
    token = found.group() if found else ""
    asked = prompt.lower()
    if "in lines" in asked:
        return "\n".join(f"{draw.choice(WORDS)} {draw.choice(WORDS)} {n} {token}" for n in range(draw.randint(2, 4)))
    if "yes or no" in asked:
        return draw.choice(["yes", "yes", "no"])
    if "short or long" in asked:
        return draw.choice(["short", "long"])
    return f"{' '.join(draw.choices(WORDS, k=8))} {token}."


def vector(text: str, dimensions: int = 32) -> list[float]:
    found = [0.01] * dimensions
    for pair in zip(text, text[1:], strict=False):
        found[int(fraction(pair) * dimensions)] += 1.0
    return found


class Plodder(BaseChatModel):
    """Only the synchronous leaf; one call at a time."""

    @property
    def _llm_type(self) -> str:
        return "soak"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(given) for given in tools], **kwargs)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self._wait(messages)
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages, kwargs))])

    def _wait(self, messages: list[BaseMessage]) -> None:
        text = as_text(messages)
        stall = enter(text, model=True)
        time.sleep(seconds(text))
        if stall is not None:
            stall.result()

    async def _await(self, messages: list[BaseMessage]) -> None:
        text = as_text(messages)
        stall = enter(text, model=True, in_thread=False)
        await asyncio.sleep(seconds(text))
        if stall is not None:
            await asyncio.wrap_future(stall)

    def _answer(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:
        """Where there are tools: two calls of the first, then words."""
        text = as_text(messages)
        done = sum(message.type == "tool" for message in messages)
        if not options.get("tools") or done >= 2:
            return AIMessage(reply(text))
        token = TOKEN.search(text)
        name = options["tools"][0]["function"]["name"]
        query = f"{Random(text).choice(WORDS)} {token.group() if token else ''}"
        return AIMessage("", tool_calls=[{"name": name, "args": {"query": query}, "id": f"call-{done}-{query[-9:]}"}])


class Talker(Plodder):
    """All four leaves; streams word by word."""

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await self._await(messages)
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages, kwargs))])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        self._wait(messages)
        for chunk in _chunks(self._answer(messages, kwargs)):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        await self._await(messages)
        for chunk in _chunks(self._answer(messages, kwargs)):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    if message.tool_calls:
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_calls=message.tool_calls))
        return
    head, *rest = str(message.content).split(" ")
    for word in (head, *(f" {word}" for word in rest)):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))


class Nested(Embeddings):
    """One question is a list of one document, as in many integrations."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        enter("\n".join(texts))
        time.sleep(seconds("\n".join(texts)))
        return [vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        enter("\n".join(texts), in_thread=False)
        await asyncio.sleep(seconds("\n".join(texts)))
        return [vector(text) for text in texts]

    async def aembed_query(self, text: str) -> list[float]:
        return (await self.aembed_documents([text]))[0]


@accel.pure
def look_up(query: str) -> str:
    enter(query)
    time.sleep(seconds(query))
    return reply(query)


def lookup() -> BaseTool:
    return tool("lookup", description="What is known about something.")(look_up)


class Penman(CustomLLM):
    """The same answers, for LlamaIndex."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=4096, num_output=60, model_name="soak")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        enter(prompt)
        time.sleep(seconds(prompt))
        return CompletionResponse(text=reply(prompt))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        enter(prompt, in_thread=False)
        await asyncio.sleep(seconds(prompt))
        return CompletionResponse(text=reply(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Iterator[CompletionResponse]:
        def parts() -> Iterator[CompletionResponse]:
            enter(prompt)
            time.sleep(seconds(prompt))
            text = ""
            for word in reply(prompt).split(" "):
                text += f"{word} "
                yield CompletionResponse(text=text, delta=f"{word} ")

        return parts()


class Pairs(BaseEmbedding):
    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        enter(query, in_thread=False)
        await asyncio.sleep(seconds(query))
        return vector(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        enter(text)
        time.sleep(seconds(text))
        return vector(text)


accel.register(Plodder, pure=True, concurrency=1, local=True)
accel.register(Talker, pure=True, concurrency=4, local=True, streams_equal=True)
accel.register(Nested, pure=True, concurrency=3, local=True)
accel.register(Penman, pure=True, concurrency=4, local=True)
accel.register(Pairs, pure=True, concurrency=4, local=True, elementwise=True)
