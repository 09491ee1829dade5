"""A router's next way is a guess until its selector has answered: no guess tells a remote model another engine's
documents (invariants 6 and 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.llms import CompletionResponse
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RouterQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.schema import TextNode
from llama_index.core.tools import QueryEngineTool

import accel
from accel.graph.topology import START
from accel_llamaindex.made_of import Parts

from .llamaindex_programs import BatchedLetters, Scribe

OWNERS = ("heron", "otter")


class Told(Scribe):
    """Keeps what it was told."""

    told: list[str] = []

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.told.append(prompt)
        return CompletionResponse(text=self._answer(prompt))


class Remote(Told):
    """Declared, and not said to be local."""


class Local(Told):
    pass


accel.register(Remote, pure=True, concurrency=8, streams_equal=True)
accel.register(Local, pure=True, local=True, concurrency=8, streams_equal=True)


class ByOwner(BaseSelector):
    """Asks first whether the question is polite, then takes the engine that the question names."""

    def __init__(self, llm: Told) -> None:
        super().__init__()
        self.llm = llm

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None: ...

    def _select(self, choices: Sequence[Any], query: Any) -> SelectorResult:
        self.llm.complete(f"Is this polite? Answer yes or no: {query.query_str}")
        owner = query.query_str.split(":")[0]
        return SelectorResult(selections=[SingleSelection(index=OWNERS.index(owner), reason="named")])

    async def _aselect(self, choices: Sequence[Any], query: Any) -> SelectorResult:
        return self._select(choices, query)


def router(llm: Told) -> RouterQueryEngine:
    tools = []
    for owner in OWNERS:
        nodes = [
            TextNode(text=f"Ledger {number} of the {owner}'s house", id_=f"{owner}{number}") for number in range(3)
        ]
        index = VectorStoreIndex(nodes, embed_model=BatchedLetters())
        accel.register(index.vector_store, readonly=True)
        engine = index.as_query_engine(llm=llm, similarity_top_k=2)
        tools.append(QueryEngineTool.from_defaults(engine, name=owner, description=f"The {owner}'s ledgers."))
    return RouterQueryEngine(selector=ByOwner(llm), query_engine_tools=tools, llm=llm)


def asked(fast: Any, llm: Told, owner: str, number: int) -> list[str]:
    """What the model was told for a question that names this owner."""
    llm.told.clear()
    fast.query(f"{owner}: what does ledger {number} say about the winter?")
    assert accel.settle()
    return list(llm.told)


def foreign(told: list[str], owner: str) -> list[str]:
    return [prompt for prompt in told for other in OWNERS if other != owner and f"the {other}'s house" in prompt]


def test_what_was_chosen_twice_is_not_certain() -> None:
    llm = Local(told=[])
    fast = accel.accelerate(router(llm))
    for number in range(2):
        asked(fast, llm, "heron", number)
    assert foreign(asked(fast, llm, "otter", 2), "otter") == []


def test_where_there_is_one_engine_nobody_chooses() -> None:
    llm = Local(told=[])
    one, two = SubQuestionQueryEngine.from_defaults, router(llm)._query_engines
    tools = [QueryEngineTool.from_defaults(engine, name=owner) for owner, engine in zip(OWNERS, two, strict=True)]
    generator = LLMQuestionGenerator.from_defaults(llm=llm)
    of_one, of_two = (Parts(one(tools[:number], llm=llm, question_gen=generator, use_async=False)) for number in (1, 2))
    ours = {"query_engines.heron.retriever", "query_engines.heron.response_synthesizer"}
    assert ours <= of_one.topology.inevitable(START) and not of_one.chosen
    assert ours <= of_two.chosen and ours.isdisjoint(of_two.topology.inevitable(START))
    after = of_two.topology.inevitable("query_engines.heron.retriever")
    assert "query_engines.heron.response_synthesizer" in after and not any("otter" in name for name in after)


ASKED = [("heron", number) for number in range(5)] + [("otter", 5), ("otter", 6), ("heron", 7), ("otter", 8)]


@pytest.mark.parametrize("kind", [Remote, Local])
def test_a_remote_model_is_told_documents_of_the_chosen_engine_alone(kind: type[Told]) -> None:
    llm = kind(told=[])
    plain, fast = router(kind(told=[])), accel.accelerate(router(llm))
    wrong: list[str] = []
    for owner, number in ASKED:
        question = f"{owner}: what does ledger {number} say about the winter?"
        llm.told.clear()
        assert str(fast.query(question)) == str(plain.query(question))
        assert accel.settle()
        wrong += foreign(llm.told, owner)
    report = accel.report(fast)
    if kind is Remote:
        assert wrong == []
    else:
        assert report.retired > 0, "the program is followed: what holds the remote one back is what it may be told"
