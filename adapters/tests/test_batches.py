"""Batches of unmodified graphs: the results of separate runs, with calls that are equal made once."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, cast

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

import accel
import accel_local
from accel.run.batches.many import AT_ONCE
from accel.run.calls.batch import MOST_KEPT, Batch, scope_of
from accel.run.ongoing import open_runs
from accel.tests.reported import check_report
from accel_langgraph import AccelChatModel
from adapters.tests.batch_programs import (
    ASKED,
    Oracle,
    Sampler,
    State,
    Steps,
    coroutines_of,
    graph_of,
    ids,
    inputs,
    plainly,
    until,
)  # fmt: skip
from adapters.tests.llamaindex_scripted import Scripted, ScriptedLLM


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    Steps.reset()
    yield
    Steps.go_on.set()


async def _iterated(values: list[Any]) -> Any:
    for value in values:
        yield value


def _completed(fast: Any, values: Any, **options: Any) -> list[Any]:
    found = dict(fast.batch_as_completed(values, **options))
    return [found[position] for position in range(len(found))]


async def _acompleted(fast: Any, values: Any, **options: Any) -> list[Any]:
    found = {position: result async for position, result in fast.abatch_as_completed(values, **options)}
    return [found[position] for position in range(len(found))]


WAYS: dict[str, Callable[..., list[Any]]] = {
    "batch": lambda fast, values, **more: fast.batch(values, **more),
    "batch of an iterator": lambda fast, values, **more: fast.batch(iter(values), **more),
    "abatch": lambda fast, values, **more: asyncio.run(fast.abatch(values, **more)),
    "abatch of an iterator": lambda fast, values, **more: asyncio.run(fast.abatch(_iterated(values), **more)),
    "batch_as_completed": _completed,
    "abatch_as_completed": lambda fast, values, **more: asyncio.run(_acompleted(fast, values, **more)),
    "accel.batch": lambda fast, values, **more: accel.batch(fast, iter(values), **more),
    "accel.abatch": lambda fast, values, **more: asyncio.run(accel.abatch(fast, values, **more)),
}
"""All ways to run a batch."""


@pytest.mark.parametrize(
    "way, make",
    [*((way, graph_of) for way in WAYS), *((way, coroutines_of) for way in WAYS if "abatch" in way)],
)
def test_results_are_those_of_separate_runs(way: str, make: Any) -> None:
    graph = make(Oracle())
    plain = [asyncio.run(graph.ainvoke(value)) for value in inputs()]
    distinct = len(set(ASKED))
    fast = accel.accelerate(graph)
    for time in range(3):  # the third one is predicted
        ASKED.clear()
        found = WAYS[way](fast, inputs())
        assert list(map(plainly, found)) == list(map(plainly, plain))
        assert len(set(ids(found))) == 2 * len(found) and None not in ids(found), "each has messages of its own"
        assert Counter(ASKED) == Counter(set(ASKED)), f"made once, the {time}. time"
        assert len(ASKED) == distinct
        assert accel.settle()


@pytest.mark.parametrize("way", WAYS)
def test_samples_are_taken_for_each(way: str) -> None:
    fast = accel.accelerate(graph_of(Sampler()), speculate="certain")
    WAYS[way](fast, inputs(6))
    assert Counter(ASKED)["the summary of context 0"] == 2 and len(ASKED) == 12


@pytest.mark.parametrize("way", WAYS)
def test_errors_are_raised_or_given_as_results(way: str) -> None:
    Steps.fails_on = "question 2"
    graph = graph_of(Oracle())
    plain = graph.batch(inputs(), return_exceptions=True)
    found = WAYS[way](accel.accelerate(graph), inputs(), return_exceptions=True)
    assert list(map(plainly, found)) == list(map(plainly, plain))
    assert isinstance(found[2], RuntimeError)
    with pytest.raises(RuntimeError, match="question 2"):
        WAYS[way](accel.accelerate(graph), inputs())


def test_each_input_may_have_its_configuration_and_then_shares_nothing_with_others() -> None:
    graph = graph_of(Oracle())
    configs: list[Any] = [{"configurable": {"user": "ann" if number % 2 else "ben"}} for number in range(6)]
    for values in (inputs(6, contexts=1), iter(inputs(6, contexts=1))):
        ASKED.clear()
        found = accel.accelerate(graph).batch(values, configs)
        assert list(map(plainly, found)) == list(map(plainly, graph.batch(inputs(6, contexts=1), configs)))
        ASKED[:] = ASKED[: len(ASKED) - 12]
        assert Counter(ASKED)["the summary of context 0"] == 2
    with pytest.raises(ValueError):
        accel.accelerate(graph).batch(inputs(5), configs)


def test_threads_of_a_checkpointer_stay_apart() -> None:
    builder = graph_of(Oracle()).builder
    graph = builder.compile(checkpointer=InMemorySaver())
    configs: list[Any] = [{"configurable": {"thread_id": str(number)}} for number in range(4)]
    fast = accel.accelerate(graph)
    found = fast.batch(inputs(4), configs)
    assert [plainly(fast.get_state(config).values) for config in configs] == list(map(plainly, found))


def test_nothing_is_shared_where_a_handler_might_hear_what_a_declared_model_tells() -> None:
    class Hears(BaseCallbackHandler):
        def __init__(self) -> None:
            self.ended = 0

        def on_llm_end(self, response: Any, **_: Any) -> None:
            self.ended += 1

    hears = Hears()
    accel.accelerate(graph_of(Oracle())).batch(inputs(6, contexts=1), {"callbacks": [hears]})
    assert hears.ended == len(ASKED) == 12


def test_a_batch_inside_a_run_is_part_of_it() -> None:
    inner = accel.accelerate(graph_of(Oracle()))

    def fan_out(state: State) -> State:
        return {"answer": [plainly(found) for found in inner.batch(inputs(4))]}

    outer = graph_of(Oracle()).builder
    outer.add_node("fan_out", fan_out)
    outer.add_edge("answer", "fan_out")
    graph = outer.compile()
    plain = graph.invoke(inputs(1)[0])
    assert plainly(accel.accelerate(graph).invoke(inputs(1)[0])) == plainly(plain)


# --- waiting ----------------------------------------------------------------------------------------------------------


async def test_to_cancel_one_that_waits_cancels_nothing_for_others() -> None:
    fast = accel.accelerate(coroutines_of(Oracle()))
    Steps.go_on.clear()
    with scope_of(Batch()) as batch:
        tasks = [asyncio.create_task(fast.ainvoke(value)) for value in inputs(3, contexts=1)]
        await until(lambda: len(ASKED) == 1 and _borrowers(batch) == 2)
        tasks[1].cancel()
        await asyncio.gather(tasks[1], return_exceptions=True)
        Steps.go_on.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[1], asyncio.CancelledError)
    assert [plainly(result)["summary"] for result in (results[0], results[2])] == [plainly(results[0])["summary"]] * 2
    assert ASKED.count("the summary of context 0") == 1


async def test_who_waits_for_a_call_that_is_cancelled_makes_his_own() -> None:
    fast = accel.accelerate(coroutines_of(Oracle()))
    Steps.go_on.clear()
    with scope_of(Batch()) as batch:
        tasks = [asyncio.create_task(fast.ainvoke(value)) for value in inputs(2, contexts=1)]
        await until(lambda: len(ASKED) == 1 and _borrowers(batch) == 1)
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        Steps.go_on.set()
        assert plainly(await tasks[1])["summary"][0] == "It is said that the summary of context 0."
    assert ASKED.count("the summary of context 0") == 2


def _borrowers(batch: Batch) -> int:
    return sum(call.borrowers for call in list(batch._known.values()))


def test_nobody_waits_for_another_event_loops_work() -> None:
    """Both are asked before either may answer."""
    fast = accel.accelerate(coroutines_of(Oracle()))
    Steps.go_on.clear()
    with scope_of(Batch()), ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(copy_context().run, asyncio.run, fast.ainvoke(value)) for value in inputs(2, contexts=1)]
        for _ in runs:
            assert Steps.entered.acquire(timeout=30.0)
        Steps.go_on.set()
        assert len({run.result(30.0)["summary"].content for run in runs}) == 1


# --- many inputs ------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(300)
def test_of_many_inputs_few_are_there_at_once() -> None:
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    ended, most = 0, [0, 0, 0]

    class Asked:
        """What comes with an input, and goes with it."""

    def given() -> Iterator[dict[str, Any]]:
        for number in range(1_200):
            held = Asked()
            alive.add(held)
            most[0] = max(most[0], number - ended)
            yield {"question": f"question {number % 7}", "context": "all", "answer": held}

    graph = graph_of(Oracle())
    fast = accel.accelerate(graph)
    for position, result in fast.batch_as_completed(given(), {"max_concurrency": 8}):
        ended += 1
        assert result["question"] == f"question {position % 7}"
        if ended % 300 == 0:
            gc.collect()
            most[1] = max(most[1], len(alive))
            most[2] = max(most[2], len(open_runs()))
    assert ended == 1_200
    assert most[0] <= 8, "no more inputs are taken than runs go on"
    assert most[2] <= 8 and most[1] < 120, most
    assert len(ASKED) == 8, "one summary and seven answers"


def test_no_input_is_taken_before_there_is_room() -> None:
    taken = threading.Semaphore(0)
    count = 0

    def given() -> Iterator[State]:
        nonlocal count
        for value in inputs(20):
            count += 1
            taken.release()
            yield value

    fast = accel.accelerate(graph_of(Oracle()))
    results = fast.batch_as_completed(given(), {"max_concurrency": 3})
    assert count == 0
    next(results)
    assert count <= 3
    results.close()
    assert count <= 3


def test_how_many_at_once_must_be_a_number() -> None:
    fast = accel.accelerate(graph_of(Oracle()))
    with pytest.raises(accel.ConfigurationError, match="max_concurrency=0"):
        accel.batch(fast, iter(inputs(2)), max_concurrency=0)
    assert AT_ONCE >= 1 and MOST_KEPT > AT_ONCE
    assert fast.batch([]) == [] == accel.batch(fast, iter([]))


# --- searches ---------------------------------------------------------------------------------------------------------


class Shelf(InMemoryVectorStore):
    """Nobody writes to it while batches go on, but for those that say so."""

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        ASKED.append(f"search {query}")
        return super().similarity_search(query, k, **kwargs)


def searching(store: Shelf, writes: bool) -> Any:
    def find(state: State) -> State:
        if writes:
            store.add_texts([f"on {state['question']}"])
        found = store.similarity_search(state["context"], k=1)
        found[0].metadata["of"] = state["question"]
        return {"summary": [document.metadata for document in found], "answer": len(found)}

    builder = StateGraph(State)
    builder.add_node("find", find)
    builder.add_edge(START, "find")
    builder.add_edge("find", END)
    return builder.compile()


@pytest.mark.parametrize("writes", [False, True])
def test_searches_are_shared_until_somebody_writes_and_found_by_each_for_itself(writes: bool) -> None:
    store = Shelf(DeterministicFakeEmbedding(size=8))
    store.add_texts(["tides", "glaciers"])
    accel.register(store, readonly=True, pure=True, local=True, concurrency=8)
    graph = searching(store, writes)
    plain = [graph.invoke(value) for value in inputs(6, contexts=2)]
    fast = accel.accelerate(graph)
    ASKED.clear()
    found = fast.batch(inputs(6, contexts=2), {"max_concurrency": 1})
    assert found == plain
    assert len(ASKED) == (6 if writes else 2)


# --- what is told -----------------------------------------------------------------------------------------------------


def test_the_report_tells_what_was_shared() -> None:
    fast = accel.accelerate(graph_of(Oracle()))
    assert accel.report(fast).batch is None and accel.report(fast).to_dict()["batch"] is None
    fast.batch(inputs())
    report = accel.report(fast)
    check_report(report, fast.plan)
    told = report.to_dict()["batch"]
    assert (told["inputs"], told["calls_not_made"], told["made_again_in_other_contexts"]) == (12, 9, 0)
    assert "last batch: 12 inputs in" in str(report) and "9 calls not made" in str(report)
    fast.batch(inputs(2, contexts=1), [{"configurable": {"thread_id": name}} for name in "ab"])
    assert "1 call made again although only the configuration" in str(accel.report(fast))


def test_progress_is_shown_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    accel.accelerate(graph_of(Oracle())).batch(inputs(), progress=True)
    told = capsys.readouterr()
    assert "12/12" in told.err and told.out == ""


def test_without_rich_there_is_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(accel.AccelError, match=r"pip install 'accelgraph\[cli\]'"):
        accel.accelerate(graph_of(Oracle())).batch(inputs(), progress=True)
    assert ASKED == []


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_answers_of_accels_own_engines_are_shared_at_temperature_zero(temperature: float) -> None:
    config = Scripted(name=f"batched at {temperature}")
    graph = graph_of(AccelChatModel(engine=config, temperature=temperature))
    plain = [graph.invoke(value) for value in inputs()]
    engine = cast(ScriptedLLM, accel_local.engine(config))
    asked = len(engine.asked)
    found = accel.accelerate(graph, speculate="certain").batch(inputs())
    assert list(map(plainly, found)) == list(map(plainly, plain))
    assert len(engine.asked) - asked == (24 if temperature else 3 + 12)
    assert len(set(ids(found))) == 24
