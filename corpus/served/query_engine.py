"""LlamaIndex query engine: four passages are found, each pair of them is summarized, and the summaries are.

Calls per request: 1 of the embedding model, 1 search, 3 of the model. Awaited, LlamaIndex itself summarizes the
pairs at once.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import TextNode

import accel
from corpus.answers import LOOKUP_S, answer, answer_s, seconds, vector
from corpus.served import questions

WINDOW = 360
"""Small enough for two passages at a time."""


class Model(CustomLLM):
    """A language model that waits and then answers."""

    scale: float = 1.0

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=WINDOW, num_output=60, model_name="waiting")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        time.sleep(self.scale * answer_s(prompt))
        return CompletionResponse(text=answer(prompt))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        await asyncio.sleep(self.scale * answer_s(prompt))
        return CompletionResponse(text=answer(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        raise NotImplementedError("this program streams nothing")


class Vectors(BaseEmbedding):
    """An embedding model. Passages of the index are embedded at once."""

    scale: float = 1.0

    def _get_query_embedding(self, query: str) -> list[float]:
        time.sleep(self.scale * seconds(query, LOOKUP_S))
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        await asyncio.sleep(self.scale * seconds(query, LOOKUP_S))
        return vector(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)


accel.register(Model, pure=True, local=True, concurrency=10_000, twins=True)
accel.register(Vectors, pure=True, local=True, concurrency=10_000, twins=True)


def build(style: str, scale: float) -> Any:
    """`query` and `aquery` are of the same engine."""
    texts = [f"Passage {number}: {' '.join([text] * 8)}" for number, text in enumerate(questions(48, "passages"))]
    nodes = [TextNode(text=text, id_=f"passage {number}") for number, text in enumerate(texts)]
    index = VectorStoreIndex(nodes, embed_model=Vectors(scale=scale))
    accel.register(index.vector_store, readonly=True)
    return index.as_query_engine(llm=Model(scale=scale), similarity_top_k=4, response_mode="tree_summarize")


def _outcome(response: Any) -> Any:
    return [str(response), [[node.node_id, node.score] for node in response.source_nodes]]


def ask(app: Any, question: str) -> Any:
    return _outcome(app.query(question))


async def aask(app: Any, question: str) -> Any:
    return _outcome(await app.aquery(question))
