"""Named traps of LlamaIndex: language models and embeddings of the user's own that nobody vouches for."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import TextNode

import accel
from compat_tests.traps import REQUEST, WAIT_S, Here, Visit

pytestmark = pytest.mark.timeout(60)
QUESTIONS = [f"What is known about {word}?" for word in ("amber", "basin", "cedar", "delta", "ember")]


class Pause(BaseNodePostprocessor):
    """Lets everything that can be early be so, before the model is asked."""

    here: Any

    def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
        accel.settle(WAIT_S)
        self.here.arrive()
        return nodes

    async def _apostprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
        await asyncio.to_thread(accel.settle, WAIT_S)
        self.here.arrive()
        return nodes


class Author(CustomLLM):
    here: Any
    rng: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=4096, num_output=60, model_name="author")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.here.visit("complete", prompt)
        return CompletionResponse(text=f"sync {self.rng.randint(0, 10**6)} on {len(prompt)}")

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.here.visit("acomplete", prompt)
        return CompletionResponse(text=f"async {self.rng.randint(0, 10**6)} on {len(prompt)}")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class Drifting(BaseEmbedding):
    here: Any
    rng: Any

    def _get_text_embedding(self, text: str) -> list[float]:
        return [1.0, float(len(text) % 7), self.rng.random()]

    def _get_query_embedding(self, query: str) -> list[float]:
        self.here.visit("_get_query_embedding", query)
        return [1.0, float(len(query) % 5), self.rng.random()]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        self.here.visit("_aget_query_embedding", query)
        return [2.0, float(len(query) % 5), self.rng.random()]


def answers(wrap: Callable[[Any], Any], asynchronous: bool) -> tuple[list[str], list[Visit]]:
    here = Here(thread=threading.get_ident())
    embedding = Drifting(here=here, rng=random.Random(1))
    nodes = [TextNode(text=f"fact {number} of {'amber basin cedar'.split()[number % 3]}") for number in range(6)]
    index = VectorStoreIndex(nodes, embed_model=embedding)
    engine = wrap(
        index.as_query_engine(
            llm=Author(here=here, rng=random.Random(2)),
            response_mode="accumulate",
            similarity_top_k=3,
            node_postprocessors=[Pause(here=here)],
        )
    )
    found = []
    for number, question in enumerate(QUESTIONS):
        REQUEST.set(f"request {number}")
        found.append(str(asyncio.run(engine.aquery(question)) if asynchronous else engine.query(question)))
        if hasattr(engine, "report"):
            accel.settle(WAIT_S)
    return found, here.visits


def eagerly(engine: Any) -> Any:
    return accel.accelerate(engine, egress="inputs")


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_model_and_an_embedding_with_generators_in_their_fields(asynchronous: bool) -> None:
    """Where they find themselves, which method is called, and what they answer."""
    want, plainly = answers(lambda engine: engine, asynchronous)
    got, here = answers(eagerly, asynchronous)
    for visit, plain_visit in zip(here, plainly, strict=True):
        assert visit == plain_visit
    assert got == want


def test_the_first_report_names_the_classes_and_the_lines_to_paste() -> None:
    here = Here()
    index = VectorStoreIndex([TextNode(text="a fact")], embed_model=Drifting(here=here, rng=random.Random(1)))
    engine = accel.accelerate(index.as_query_engine(llm=Author(here=here, rng=random.Random(2))))
    engine.query(QUESTIONS[0])
    accel.settle(WAIT_S)
    report = str(engine.report())
    for name in ("Author", "Drifting"):
        assert f"accel.register({name}" in report, report
