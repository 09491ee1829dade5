"""The types that checkers give to what users call, and the lines that they refuse: `make lint` has mypy and pyright
read this file, and its tests run it. The pages for users are read and run themselves: `adapters.tests.documents`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnableSerializable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from llama_index.core import Document, SummaryIndex, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from typing_extensions import TypedDict

import accel
from accel import accelerate
from accel.run import switch


class State(TypedDict, total=False):
    question: str
    answer: str


Graph = CompiledStateGraph[State, None, State, State]
INPUTS: list[State] = [{"question": "tides of Brittany"}, {"question": "moors of Yorkshire"}]


def answer(state: State) -> State:
    return {"answer": state["question"].upper()}


@pytest.fixture
def graph() -> Graph:
    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile()


class MyClient:
    """As somebody's own."""

    def search(self, text: str) -> list[str]:
        return [text]


class MyModel(MockLLM):
    """Likewise."""


class Flow(Workflow):
    @step
    async def only(self, event: StartEvent) -> StopEvent:
        return StopEvent(result="done")


async def test_what_is_accelerated_keeps_its_type(graph: Graph) -> None:
    fast = accelerate(graph)
    assert_type(fast, Graph)
    assert_type(accelerate(fast), Graph)
    assert fast.invoke({"question": "tides"})["answer"] == "TIDES"
    assert (await fast.ainvoke({"question": "tides"}))["answer"] == "TIDES"
    assert [list(part) for part in fast.stream({"question": "tides"}, stream_mode="updates")] == [["answer"]]

    length: RunnableSerializable[str, int] = RunnableLambda(str.strip) | RunnableLambda(len)
    chain = accelerate(length)
    assert_type(chain, RunnableSerializable[str, int])
    assert_type(chain.invoke(" ab "), int)

    index = VectorStoreIndex([], embed_model=MockEmbedding(embed_dim=8))
    assert_type(accelerate(index), VectorStoreIndex)
    assert_type(accelerate(VectorStoreIndex), type[VectorStoreIndex])
    assert_type(accelerate(index.as_retriever()), BaseRetriever)
    engine = accelerate(SummaryIndex.from_documents([Document(text="tides")]).as_query_engine(llm=MockLLM()))
    assert_type(engine, BaseQueryEngine)
    assert str(engine.query("tides?"))

    workflow = accelerate(Flow())
    assert_type(workflow, Flow)
    assert await workflow.run() == "done"


async def test_what_it_tells(graph: Graph, tmp_path: Path) -> None:
    fast = accelerate(graph)
    accel.warmup(fast, INPUTS)
    await accel.awarmup(fast, INPUTS)
    configs: list[RunnableConfig] = [{"configurable": {"thread_id": str(n)}} for n, _ in enumerate(INPUTS)]
    accel.warmup(fast, INPUTS, config=configs)
    assert_type(accel.settle(), bool)
    assert accel.settle(timeout_s=30)

    report = accel.report(fast)
    assert_type(report, accel.Report)
    counts = report.runs, report.demanded, report.issued, report.retired, report.wasted
    assert_type(counts, tuple[int, int, int, int, int])
    assert (report.runs, report.demanded) == (6, 0)
    assert_type(accel.explain(fast), str)

    accel.timeline(fast, tmp_path / "run.html")
    assert (tmp_path / "run.html").exists()
    with pytest.warns(accel.AccelWarning, match="is empty"):
        accel.save_plan(fast, tmp_path / "plan.json")
    plan = accel.load_plan(tmp_path / "plan.json")
    assert_type(plan, accel.Plan)
    for given in (plan, tmp_path / "plan.json", str(tmp_path / "plan.json")):
        assert_type(accelerate(graph, plan=given), Graph)


def test_the_same_as_methods(graph: Graph) -> None:
    fast = accelerate(graph)
    assert isinstance(fast, accel.Accelerated)
    assert_type(fast.report(), accel.Report)
    assert_type(fast.explain(), str)
    assert_type(fast.plan, accel.Plan)
    assert fast.invoke({"question": "tides"})["answer"] == "TIDES"
    assert not isinstance(graph, accel.Accelerated)


def test_options(graph: Graph) -> None:
    assert_type(accelerate(graph, speculate="certain"), Graph)
    assert_type(accelerate(graph, speculate="likely", egress="inputs", pure_nodes=["answer"]), Graph)
    assert_type(accelerate(graph, speculate="off", plan_scope="tenant", plan=None), Graph)
    budget = accel.Budget(max_outstanding=32, max_issued=10_000, waste=0.02)
    assert_type(budget, accel.Budget)
    assert_type(accelerate(graph, budget=budget), Graph)
    whole = accel.Cap(calls=500, tokens=200_000)
    tenants = accel.Cap(tokens=20_000, window_s=600, per="configurable.tenant_id")
    dear = accel.Cap(money=1.5, input_per_million=2.5, output_per_million=10.0, window_s=86_400)
    assert_type(whole, accel.Cap)
    assert_type(accelerate(graph, budget=accel.Budget(caps=[whole, tenants, dear])), Graph)


def test_declarations() -> None:
    assert_type(accel.register(MyClient, methods=["search"], readonly=True), type[MyClient])
    assert_type(accel.register(MyModel, concurrency=8, local=True), type[MyModel])
    client = MyClient()
    assert accel.register(client, pure=True, readonly=True, elementwise=True, streams_equal=True, twins=True) is client

    @accel.pure
    def score(text: str, *, most: int = 9) -> int:
        return min(len(text), most)

    typed: Callable[..., int] = score
    assert_type(score("tides", most=3), int)
    assert typed("tides") == 5
    assert_type(accel.pure(answer, concurrency=4, local=False)({"question": "a"}), State)
    assert_type(accel.uninstall(), None)


def test_modes(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_process", "off", "_was_set"):  # as they were, after the test
        monkeypatch.setattr(switch, name, getattr(switch, name))
    fast = accelerate(graph)
    for mode in ("off", "watch", "on"):
        assert_type(accel.set_mode(mode), None)
    with accel.mode("off"):
        assert fast.invoke({"question": "tides"})["answer"] == "TIDES"
    assert fast.invoke({"question": "tides"}, config={"metadata": {"accel": "off"}})["answer"] == "TIDES"


def test_what_checkers_refuse(graph: Graph) -> None:
    """Each of these lines is one that mypy and pyright mark: else they would say that the comment is needless."""
    wrong: list[Callable[[], Any]] = [
        lambda: accelerate(graph, speculate="certian"),  # type: ignore[arg-type]
        lambda: accelerate(graph, egress="all"),  # type: ignore[arg-type]
        lambda: accelerate(graph, speculat="off"),  # type: ignore[call-arg]
        lambda: accelerate(graph, budget=5),  # type: ignore[arg-type]
        lambda: accelerate(graph, pure_nodes=7),  # type: ignore[arg-type]
        lambda: accelerate(graph, plan=5),  # type: ignore[arg-type]
        lambda: accel.Budget(max_outstandig=3),  # type: ignore[call-arg]
        lambda: accel.register(MyClient, pur=True),  # type: ignore[call-arg]
        lambda: accel.register(MyClient, readonly="yes"),  # type: ignore[arg-type]
        lambda: accel.pure(5),  # type: ignore[call-overload]
        lambda: accel.save_plan(graph, 1),  # type: ignore[arg-type]
        lambda: accel.set_mode("of"),  # type: ignore[arg-type]
        lambda: accel.mode("quiet"),  # type: ignore[arg-type]
    ]
    for call in wrong:
        with pytest.raises(accel.AccelError) as caught:
            call()
        assert caught.value.remedy
    with pytest.raises(AttributeError):
        accel.reprot(graph)  # type: ignore[attr-defined]


def test_the_package_names_what_is_public() -> None:
    shown = [name for name in dir(accel) if not name.startswith("__")]
    assert shown == accel.__all__
    for name in shown:
        assert getattr(accel, name).__doc__, f"accel.{name} says nothing"
