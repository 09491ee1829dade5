"""Fake models with the habits of real ones that the named tests need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr, SecretStr

import accel
from compat_tests.answers import digest, follow
from compat_tests.fakes import FollowerChat, LocalChat


class AgentChat(FollowerChat):
    """Asks for the first of its tools twice, then answers. Declared: pure, local, eight calls at a time."""

    name_in_log: str = "agent"
    _vouched: bool = PrivateAttr(default=True)
    _exclusive: bool = PrivateAttr(default=False)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _answer(self, text: str, stop: list[str] | None, options: dict[str, Any]) -> AIMessage:
        found = [line for line in text.splitlines() if line.startswith("tool: ")]
        tools = options.get("tools") or []
        if not tools or len(found) >= 2:
            return AIMessage(follow(text))
        name = tools[len(found) % len(tools)]["function"]["name"]
        call = {"name": name, "args": {"query": follow(text).split(" near")[0]}, "id": f"call-{digest(text) % 10**6}"}
        return AIMessage("", tool_calls=[call])


class CountedChat(LocalChat):
    """Says what it used, as providers do, and gives as many choices as it is asked for."""

    name_in_log: str = "counted"

    def _answer(self, text: str, stop: list[str] | None, options: dict[str, Any]) -> AIMessage:
        answer = follow(text)
        words, said = len(text.split()), len(answer.split())
        usage: UsageMetadata = {"input_tokens": words, "output_tokens": said, "total_tokens": words + said}
        return AIMessage(answer, usage_metadata=usage, response_metadata={"model_name": "counted-1"})

    def _serve(self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]) -> ChatResult:
        result = super()._serve(messages, stop, options)
        more = [ChatGeneration(message=AIMessage(f"choice {i}")) for i in range(1, options.get("n", 1))]
        return ChatResult(generations=[*result.generations, *more], llm_output={"token_usage": {"calls": 1}})


class PoliteChat(LocalChat):
    """Overrides `invoke` and `ainvoke`."""

    name_in_log: str = "polite"

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        return super().invoke(f"Please: {input}", config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        return await super().ainvoke(f"Please: {input}", config, **kwargs)


class ThoroughChat(LocalChat):
    """Overrides `generate`: every prompt twice, the second time with the first answer."""

    name_in_log: str = "thorough"

    def generate(self, messages: list[list[BaseMessage]], *args: Any, **kwargs: Any) -> LLMResult:
        drafts = super().generate(messages, *args, **kwargs)
        again = [
            [*prompt, *(generation.message for generation in found if isinstance(generation, ChatGeneration))]
            for prompt, found in zip(messages, drafts.generations, strict=True)
        ]
        return super().generate(again, *args, **kwargs)


class KeyedChat(LocalChat):
    """Its answer depends on whose key it holds."""

    name_in_log: str = "keyed"
    api_key: SecretStr

    def _answer(self, text: str, stop: list[str] | None, options: dict[str, Any]) -> AIMessage:
        return AIMessage(f"[{self.api_key.get_secret_value()}] {follow(text)}")

    def _serve(self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]) -> ChatResult:
        key = SystemMessage(f"key {self.api_key.get_secret_value()}")
        return super()._serve([key, *messages], stop, options)


def declare(mode: str, *models: type[FollowerChat]) -> None:
    """As the user of such models would."""
    if mode != "plain":
        for model in models:
            accel.register(model, pure=True, local=True, concurrency=8)
