"""LangChain components that wait and then answer by a function of their input, and what a server declares of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START, StateGraph

import accel
from corpus.answers import LOOKUP_S, answer, answer_s, seconds, vector


class Model(BaseChatModel):
    """A chat model."""

    scale: float = 1.0

    @property
    def _llm_type(self) -> str:
        return "waiting"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _reply(self, messages: list[BaseMessage]) -> AIMessage:
        return AIMessage(answer(_prompt(messages)))

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        time.sleep(self.scale * answer_s(_prompt(messages)))
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        await asyncio.sleep(self.scale * answer_s(_prompt(messages)))
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])


def _prompt(messages: list[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


class Vectors(Embeddings):
    """An embedding model. Texts of a store are embedded at once."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        time.sleep(self.scale * seconds(text, LOOKUP_S))
        return vector(text)

    async def aembed_query(self, text: str) -> list[float]:
        await asyncio.sleep(self.scale * seconds(text, LOOKUP_S))
        return vector(text)


def sequence(state: type, *nodes: Any) -> Any:
    """A graph of nodes that run one after the other."""
    builder: StateGraph[Any, None, Any, Any] = StateGraph(state)
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    builder.add_edge(nodes[-1].__name__, END)
    return builder.compile()


accel.register(Model, pure=True, local=True, concurrency=10_000, twins=True)
accel.register(Vectors, pure=True, local=True, concurrency=10_000, twins=True)
