"""Batches of queries to unmodified LlamaIndex programs: the responses of separate runs, with equal calls made once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import PromptTemplate, VectorStoreIndex
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.output_parsers import PydanticOutputParser
from llama_index.core.schema import QueryBundle, TextNode
from pydantic import BaseModel

import accel

ASKED: list[str] = []
EMBEDDED: list[str] = []
QUESTIONS = [f"What of {topic}?" for topic in ("tides", "glaciers", "tides", "lakes", "glaciers", "tides")]
DISTINCT = len(set(QUESTIONS))


class Scribe(CustomLLM):
    """Its answer is a function of the prompt."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=4096, num_output=60, model_name="scribe")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        ASKED.append(prompt)
        return CompletionResponse(text=f"{len(prompt)} letters that end in {prompt[-40:]}")

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        await asyncio.sleep(0)
        return CompletionResponse(text=self.complete.__wrapped__(self, prompt).text)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class Repeating(Scribe):
    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        ASKED.append(prompt)
        return CompletionResponse(text=f"{len(prompt)} letters that end in {prompt[-40:]}")

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        await asyncio.sleep(0)
        ASKED.append(prompt)
        return CompletionResponse(text=f"{len(prompt)} letters that end in {prompt[-40:]}")


def _counted(text: str) -> list[float]:
    return [float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]


class Letters(BaseEmbedding):
    def _get_query_embedding(self, query: str) -> list[float]:
        EMBEDDED.append(query)
        return _counted(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        await asyncio.sleep(0)
        EMBEDDED.append(query)
        return _counted(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return _counted(text)


class Telling(Letters):
    """LlamaIndex hears of the method that it calls of itself."""

    def _get_query_embedding(self, query: str) -> list[float]:
        EMBEDDED.append(query)
        return self._get_text_embedding(query)


accel.register(Scribe, pure=True, local=True, concurrency=64)
accel.register(Repeating, deterministic=True, local=True, concurrency=64)
for embedding in (Letters, Telling):
    accel.register(embedding, pure=True, local=True, concurrency=64)


@pytest.fixture(autouse=True)
def anew() -> None:
    ASKED.clear()
    EMBEDDED.clear()


def engine_of(llm: type[Scribe] = Repeating, embedding: type[Letters] = Letters, **options: Any) -> Any:
    nodes = [TextNode(text=f"All about {topic}.", id_=topic) for topic in ("tides", "glaciers", "lakes", "rivers")]
    index = VectorStoreIndex(nodes, embed_model=embedding())
    return index.as_query_engine(llm=llm(), similarity_top_k=2, **options)


WAYS: dict[str, Callable[..., list[Any]]] = {
    "batch": accel.batch,
    "batch of an iterator": lambda fast, queries, **more: accel.batch(fast, iter(queries), **more),
    "abatch": lambda fast, queries, **more: asyncio.run(accel.abatch(fast, queries, **more)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize"])
def test_responses_are_those_of_separate_runs(way: str, mode: str) -> None:
    engine = engine_of(response_mode=mode)
    plain = [engine.query(question) for question in QUESTIONS]
    distinct, embedded = len(set(ASKED)), len(set(EMBEDDED))
    fast = accel.accelerate(engine)
    for _ in range(3):
        ASKED.clear()
        EMBEDDED.clear()
        found = WAYS[way](fast, QUESTIONS)
        assert found == plain
        assert len(ASKED) == distinct and len(EMBEDDED) == embedded == DISTINCT
        assert len({id(node.node) for each in found for node in each.source_nodes}) == 2 * len(found)
        assert accel.settle()


def test_samples_are_taken_for_each_and_what_embeds_is_shared_all_the_same() -> None:
    fast = accel.accelerate(engine_of(Scribe), speculate="certain")
    accel.batch(fast, QUESTIONS)
    assert Counter(ASKED).most_common(1)[0][1] == 3 and len(EMBEDDED) == DISTINCT


def test_what_tells_of_itself_tells_for_each() -> None:
    accel.batch(accel.accelerate(engine_of(embedding=Telling)), QUESTIONS)
    assert len(EMBEDDED) == len(QUESTIONS)


def test_queries_retrievers_and_synthesizers_may_be_what_they_take() -> None:
    engine = engine_of()
    bundles = [QueryBundle(question) for question in QUESTIONS]
    assert accel.batch(accel.accelerate(engine), bundles) == [engine.query(bundle) for bundle in bundles]
    retriever = engine.retriever
    assert accel.batch(accel.accelerate(retriever), QUESTIONS) == [retriever.retrieve(each) for each in QUESTIONS]
    synthesizer, nodes = engine._response_synthesizer, retriever.retrieve("tides")
    given = [{"query": question, "nodes": nodes} for question in QUESTIONS]
    assert accel.batch(accel.accelerate(synthesizer), given) == [synthesizer.synthesize(**each) for each in given]


def test_errors_are_raised_or_given_as_results() -> None:
    fast = accel.accelerate(engine_of())
    found = accel.batch(fast, [QUESTIONS[0], {"nothing": 1}], return_exceptions=True)
    assert isinstance(found[1], TypeError) and str(found[0]).endswith("Answer: ")
    with pytest.raises(TypeError):
        accel.batch(fast, [QUESTIONS[0], {"nothing": 1}])


def test_a_batch_goes_on_from_its_journal(tmp_path: Path) -> None:
    journal, fast = tmp_path / "journal", accel.accelerate(engine_of())
    first = accel.batch(fast, QUESTIONS, resume=journal)
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if json.loads(line).get("at") != 3))
    ASKED.clear()
    assert accel.batch(fast, QUESTIONS, resume=journal) == first
    assert len(ASKED) == 1 and "lakes" in ASKED[0]
    with pytest.raises(accel.ConfigurationError, match="other inputs"):
        accel.batch(fast, ["What else?"], resume=journal)


class Answer(BaseModel):
    text: str


def test_threads_do_not_share_a_template_with_an_output_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """LlamaIndex takes the parser out for a moment."""
    template = PromptTemplate("{context_str} {query_str}", output_parser=PydanticOutputParser(output_cls=Answer))
    at_once = 0

    def given() -> Iterator[str]:
        nonlocal at_once
        for number, question in enumerate(QUESTIONS):
            at_once = max(at_once, number - len(ASKED))
            yield question

    monkeypatch.setattr(PydanticOutputParser, "parse", lambda self, text: Answer(text=text))
    engine = engine_of(Scribe, text_qa_template=template)
    try:
        accel.batch(accel.accelerate(engine), given(), max_concurrency=8)
    finally:
        assert at_once <= 1 and template.output_parser is not None


def test_what_remembers_its_runs_has_no_batches() -> None:
    memory = ChatMemoryBuffer.from_defaults(token_limit=3000)
    chat = accel.accelerate(SimpleChatEngine.from_defaults(llm=Repeating(), memory=memory))
    with pytest.raises(accel.ConfigurationError, match="has no batches"):
        accel.batch(chat, QUESTIONS)
    with pytest.raises(accel.ConfigurationError, match="has no batches"):
        asyncio.run(accel.abatch(chat, QUESTIONS))
