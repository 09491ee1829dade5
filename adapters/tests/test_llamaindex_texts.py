"""No text of a document is ever a literal of a plan, whatever engine it passed through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core import SummaryIndex, VectorStoreIndex
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.selectors import EmbeddingSingleSelector
from llama_index.core.tools import QueryEngineTool

import accel
from accel.learn.covers.foreign import literals

from .llamaindex_programs import QUESTIONS, BatchedLetters, Scribe

NODES = [
    TextNode(text=f"Paragraph p{number}: quartz lanterns hang over the harbour.", id_=f"node-{number}")
    for number in range(3)
]
"""Few: every question finds them all."""


class Sage(Scribe):
    pass


accel.register(Sage, pure=True, local=True, concurrency=8, streams_equal=True)
LLM, EMBED = Sage(), BatchedLetters()


class All(BaseRetriever):
    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return [NodeWithScore(node=node, score=1.0) for node in NODES]


class Own(CustomQueryEngine):
    """What a user writes: a search of some kind, and one prompt."""

    found: Callable[[str], list[Any]]

    def custom_query(self, query_str: str) -> Any:
        texts = [node.get_content() for node in self.found(query_str)]
        return str(LLM.complete(f"Summarise for {query_str}: " + "\n".join(texts)))


class OwnSynthesis(CustomQueryEngine):
    found: Callable[[str], list[Any]]
    synthesizer: Any

    def custom_query(self, query_str: str) -> Any:
        return self.synthesizer.synthesize(query_str, self.found(query_str))


class Twice(BaseQuestionGenerator):
    def generate(self, tools: Any, query: Any) -> list[SubQuestion]:
        return [SubQuestion(sub_question=f"{query.query_str} sub {n}", tool_name="t") for n in range(2)]

    async def agenerate(self, tools: Any, query: Any) -> list[SubQuestion]:
        return self.generate(tools, query)

    def _get_prompts(self) -> Any:
        return {}

    def _update_prompts(self, prompts: Any) -> None:
        pass


def index() -> VectorStoreIndex:
    return VectorStoreIndex(NODES, embed_model=EMBED)


def inner(**options: Any) -> Any:
    return index().as_query_engine(llm=LLM, similarity_top_k=3, **options)


def tool(engine: Any, name: str = "t") -> QueryEngineTool:
    return QueryEngineTool.from_defaults(engine, name=name, description=f"about {name}")


def router() -> Any:
    tools = [tool(inner()), tool(SummaryIndex(NODES).as_query_engine(llm=LLM), "zzz")]
    return RouterQueryEngine(EmbeddingSingleSelector.from_defaults(EMBED), tools, llm=LLM)


def synthesis() -> Any:
    synthesizer = get_response_synthesizer(llm=LLM, response_mode="tree_summarize")  # type: ignore[arg-type]
    return OwnSynthesis(found=index().as_retriever(similarity_top_k=3).retrieve, synthesizer=synthesizer)


ENGINES: dict[str, Callable[[], Any]] = {
    "a retriever of the user's": lambda: RetrieverQueryEngine.from_args(All(), llm=LLM),
    "a router": router,
    "sub-questions": lambda: SubQuestionQueryEngine(
        Twice(), get_response_synthesizer(llm=LLM), [tool(inner())], use_async=False, verbose=False
    ),
    "a transformed query": lambda: TransformQueryEngine(inner(), HyDEQueryTransform(llm=LLM)),
    "citations": lambda: CitationQueryEngine.from_args(index(), llm=LLM, similarity_top_k=3),
    "an engine of the user's": lambda: Own(found=index().as_retriever(similarity_top_k=3).retrieve),
    "an engine of the user's with a retriever of its own": lambda: Own(found=All().retrieve),
    "an engine of the user's that reads the documents": lambda: Own(found=lambda query: list(NODES)),
    "an engine of the user's with a synthesizer": synthesis,
    **{
        f"of parts, {mode}": lambda mode=mode: inner(response_mode=mode)  # type: ignore[misc]
        for mode in ("compact", "refine", "tree_summarize", "accumulate", "simple_summarize")
    },
}


def of_documents(fast: Any) -> Iterator[str]:
    for node in fast.plan.learnt.nodes:
        yield from (text for text in literals(node.input) if "quartz" in text or "Paragraph" in text)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_the_text_of_documents_is_no_literal(name: str, asynchronous: bool, tmp_path: Any) -> None:
    plain, path = ENGINES[name](), tmp_path / "plan.json"
    fast = accel.accelerate(plain)
    for question in QUESTIONS[:4]:
        answer = asyncio.run(fast.aquery(question)) if asynchronous else fast.query(question)
        assert str(answer) == str(plain.query(question))
        assert accel.settle()
    assert list(of_documents(fast)) == [] and "quartz" not in fast.explain()
    fast.save_plan(str(path))
    assert "quartz" not in path.read_text() and "Paragraph" not in path.read_text()
    assert fast.report().demanded > 0


def test_what_the_code_of_a_user_s_engine_says_is_the_program_s() -> None:
    """LlamaIndex wraps the methods of its subclasses."""
    fast = accel.accelerate(ENGINES["an engine of the user's that reads the documents"]())
    assert fast.plan.program.own("Summarise for")
