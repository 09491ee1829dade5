"""The report by the user's lines: every call of the last run is early there, or has a reason."""

from __future__ import annotations

import time
from typing import Any, TypedDict

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import END, START, StateGraph

import accel
from accel import accelerate
from accel.graph.rules import AT_ONCE, NOTHING_EARLY, UNVOUCHED


class Slow(BaseChatModel):
    """Answers after a while."""

    seconds: float = 0.02

    @property
    def _llm_type(self) -> str:
        return "slow"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        time.sleep(self.seconds)
        text = f"A reply to: {messages[-1].content}"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


class Declared(Slow):
    pass


accel.register(Declared, pure=True, concurrency=8, local=True)


class State(TypedDict, total=False):
    topic: str
    outline: str
    critique: str
    keywords: str


def program(model: BaseChatModel) -> Any:
    def outline(state: State) -> State:
        return {"outline": str(model.invoke(f"Outline {state['topic']}").content)}

    def critique(state: State) -> State:
        return {"critique": str(model.invoke(f"Criticize {state['outline']}").content)}

    def keywords(state: State) -> State:
        return {"keywords": str(model.invoke(f"Keywords of {state['topic']}").content)}

    graph = StateGraph(State)
    for node in (outline, critique, keywords):
        graph.add_node(f"{node.__name__}_node", node)
    graph.add_edge(START, "outline_node")
    graph.add_edge("outline_node", "critique_node")
    graph.add_edge("critique_node", "keywords_node")
    graph.add_edge("keywords_node", END)
    return graph.compile()


def report_of(graph: Any, **options: Any) -> Any:
    fast = accelerate(graph, **options)
    for topic in ("bees", "iron", "the moon", "bread"):
        fast.invoke({"topic": topic})
        assert accel.settle(10)
    return fast.report()


def line(row: Any) -> str:
    return str(row.where).split(":")[1].rsplit(".", 1)[-1]


@pytest.mark.parametrize("options", [{}, {"speculate": "off"}, {"speculate": "certain"}], ids=str)
@pytest.mark.parametrize("model", [Slow(), Declared()], ids=["unknown", "declared"])
def test_every_call_is_early_or_has_a_reason(model: BaseChatModel, options: dict[str, str]) -> None:
    report = report_of(program(model), **options)
    assert [line(row) for row in report.rows] == ["outline", "critique", "keywords"]
    for row in report.rows:
        assert row.calls == row.early + sum(late.calls for late in row.late) == 1
        assert all(late.why and late.sooner_s >= 0.0 for late in row.late)
    assert sum(row.early for row in report.rows) <= report.retired
    for row in report.rows:
        assert f"  {row.place} in {row.function}  {row.what}: 1 call, " in str(report)


def test_what_was_early_says_what_it_saved_and_what_follows_says_so() -> None:
    first, second, third = report_of(program(Declared())).rows
    assert third.early == 1 and third.saved_s > 0.0 and not third.late and "early since request" in str(third)
    (late,) = second.late
    assert late.rule == AT_ONCE.name and late.sooner_s == 0.0


def test_what_nobody_vouches_for_says_so_with_the_seconds_it_may_cost() -> None:
    *_, third = report_of(program(Slow())).rows
    (late,) = third.late
    assert late.rule == UNVOUCHED.name and late.sooner_s > 0.0 and "nobody vouches for it" in late.why


def test_what_is_off_says_so() -> None:
    *_, third = report_of(program(Declared()), speculate="off").rows
    assert [late.rule for late in third.late] == [NOTHING_EARLY.name]


class SlowEmbedding(DeterministicFakeEmbedding):
    """Answers after a while."""

    def embed_query(self, text: str) -> list[float]:
        time.sleep(0.05)
        return super().embed_query(text)


def test_what_is_early_inside_a_search_counts_once_and_saves_no_more_than_the_search_takes() -> None:
    accel.register(SlowEmbedding, pure=True, concurrency=8, local=True)
    store, model = InMemoryVectorStore(SlowEmbedding(size=8)), Declared(seconds=0.2)
    store.add_texts(["bees fly", "iron rusts", "bread rises"])

    def outline(state: State) -> State:
        return {"outline": str(model.invoke(f"Outline {state['topic']}").content)}

    def search(state: State) -> State:
        found = [store.similarity_search(f"{part} of {state['topic']}", k=1) for part in ("head", "tail")]
        return {"keywords": str(len(found))}

    graph = StateGraph(State)
    graph.add_sequence([outline, search])
    graph.add_edge(START, "outline")
    report = report_of(graph.compile())
    row = report.rows[-1]
    assert row.calls > row.made == 2, "a search makes others, and embeds its query"
    assert row.early == 2 and not row.late
    assert 0.05 < row.saved_s <= row.took_s < 0.2
    assert "2 calls (" in str(report) and "2 early" in str(report)
