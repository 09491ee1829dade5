"""What fails in the middle of a batch fails alone: the rest of it has its results, once, and in order."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

import accel
from accel.engine import DEMAND, Delta, Priority, Prompt, Sampling, Usage
from accel.errors import EngineClosed
from accel.run.batches.journal import Journal
from accel.run.ongoing import open_runs
from accel.tests.forked import Fork
from accel_langgraph import AccelChatModel
from accel_langgraph.batches import serde
from adapters.tests.batch_programs import (
    ASKED,
    Oracle,
    State,
    Steps,
    coroutines_of,
    graph_of,
    inputs,
    plainly,
    until,
)  # fmt: skip
from adapters.tests.llamaindex_scripted import Scripted, ScriptedLLM
from adapters.tests.test_batch_journal import lines


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    Steps.reset()
    yield
    Steps.go_on.set()


# --- an engine that stops


class Lives:
    """Engines that were started, and what has to come to pass before the first one stops."""

    def __init__(self, enough: Any) -> None:
        self.enough = enough
        self.engines: list[Mortal] = []


@dataclass(frozen=True)
class MortalConfig(Scripted):
    lives: Any = field(default=None, compare=False)

    def create(self) -> Mortal:
        return Mortal(self)


class Mortal(ScriptedLLM):
    """The first one of its config stops in the middle of its first answer; the others serve."""

    def __init__(self, config: MortalConfig) -> None:
        super().__init__(config)
        self._lives = config.lives
        self.stopped = False
        self.closed = False

    async def start(self) -> None:
        assert all(engine.closed for engine in self._lives.engines), "there may not be room for two"
        self._lives.engines.append(self)

    async def close(self) -> None:
        self.closed = True

    async def generate(
        self, prompt: Prompt, sampling: Sampling, *, priority: Priority = DEMAND
    ) -> AsyncGenerator[Delta, None]:
        self.asked.append((prompt, sampling, priority.value))
        yield Delta("It is", 2)
        if self._lives.engines[0] is self:
            await until(self._lives.enough)
            self.stopped = True
            raise EngineClosed("The engine has stopped.")
        yield Delta(" so.", 2, "stop", Usage(3, 0, 4))


def _borrowers(batch: Any) -> int:
    return sum(call.borrowers for call in list(batch._known.values())) if batch is not None else 0


@pytest.mark.parametrize("as_tasks", [False, True])
def test_an_engine_that_stops_fails_the_call_it_served_and_another_takes_its_place(
    as_tasks: bool, tmp_path: Path
) -> None:
    """One run makes the summary, fifteen wait for it. Each of these makes his own when the engine is gone."""
    lives = Lives(lambda: _borrowers(fast.plan.batch) == 15)
    model = AccelChatModel(engine=MortalConfig(name=f"mortal {as_tasks}", lives=lives))
    fast = accel.accelerate((coroutines_of if as_tasks else graph_of)(model))
    given = inputs(16, contexts=1)

    def run() -> list[Any]:
        options: Any = {"resume": tmp_path / "journal", "return_exceptions": True}
        if as_tasks:
            return asyncio.run(fast.abatch(given, {"max_concurrency": 16}, **options))
        found: list[Any] = fast.batch(given, {"max_concurrency": 16}, **options)
        return found

    first = run()
    assert [type(result) for result in first if isinstance(result, Exception)] == [EngineClosed]
    assert {result["answer"].content for result in first if isinstance(result, dict)} == {"It is so."}
    assert len(lives.engines) == 2 and lives.engines[0].closed and len(lives.engines[0].asked) == 1
    asked = len(lives.engines[1].asked)
    again = run()
    assert [result["question"] for result in again] == [value["question"] for value in given]
    assert [plainly(now) for now, then in zip(again, first, strict=True) if now is not then]
    assert len(lives.engines) == 2 and len(lives.engines[1].asked) - asked == 2, "what had failed, and nothing else"


# --- inputs that raise


class FirstFails(Oracle):
    """Whoever asks first gets an error, when others wait for the answer."""

    async def _agenerate(self, *given: Any, **options: Any) -> Any:
        first = not ASKED
        result = await super()._agenerate(*given, **options)
        return _failed(result, first)

    def _generate(self, *given: Any, **options: Any) -> Any:
        first = not ASKED
        result = super()._generate(*given, **options)
        return _failed(result, first)


def _failed(result: Any, first: bool) -> Any:
    if first:
        raise RuntimeError("the first one fails")
    return result


accel.register(FirstFails, deterministic=True, concurrency=64)


@pytest.mark.parametrize("return_exceptions", [True, False])
def test_who_waits_for_an_input_that_raises_makes_his_own(return_exceptions: bool, tmp_path: Path) -> None:
    fast = accel.accelerate(coroutines_of(FirstFails()))
    given, journal = inputs(8, contexts=1), tmp_path / "journal"
    Steps.go_on.clear()

    async def all_wait_and_then_it_raises(**options: Any) -> Any:
        batch = asyncio.create_task(fast.abatch(given, {"max_concurrency": 8}, **options))
        await until(lambda: _borrowers(fast.plan.batch) == 7)
        Steps.go_on.set()
        return await batch

    if return_exceptions:
        found = asyncio.run(all_wait_and_then_it_raises(return_exceptions=True))
        assert [str(result) for result in found if isinstance(result, RuntimeError)] == ["the first one fails"]
        others = [(value, result) for value, result in zip(given, found, strict=True) if isinstance(result, dict)]
        assert [value["question"] for value, _ in others] == [result["question"] for _, result in others]
        assert len(others) == 7
    else:
        with pytest.raises(RuntimeError, match="the first one fails"):
            asyncio.run(all_wait_and_then_it_raises(resume=journal))
    assert not open_runs()
    again = asyncio.run(fast.abatch(given, resume=journal))
    assert [result["question"] for result in again] == [value["question"] for value in given]


def test_ctrl_c_leaves_nothing_running_and_the_journal_goes_on(tmp_path: Path) -> None:
    def interrupt(state: Any) -> Any:
        number = int(state["question"].split()[1])
        ran.append(number)
        if number == 5 and ran.count(5) == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return {"answer": number}

    ran: list[int] = []
    fast = accel.accelerate(one_node(interrupt))
    with pytest.raises(KeyboardInterrupt):
        fast.batch(inputs(200), {"max_concurrency": 2}, resume=tmp_path / "journal")
    assert not open_runs() and not [one for one in threading.enumerate() if one.name.startswith("accel-batch")]
    assert len(ran) < 200, "nothing was begun afterwards"
    finished = {line["at"] for line in lines(tmp_path / "journal")[1:]}
    assert finished == set(ran), "what had begun came to its end"
    ran.clear()
    found = fast.batch(inputs(200), resume=tmp_path / "journal")
    assert [result["answer"] for result in found] == list(range(200))
    assert Counter(ran) == Counter(set(range(200)) - finished)


def one_node(work: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile()


async def test_a_batch_that_is_cancelled_leaves_nothing_running(tmp_path: Path) -> None:
    fast = accel.accelerate(coroutines_of(Oracle()))
    given = inputs(12, contexts=12)
    finished = await fast.abatch(given[:3], resume=tmp_path / "journal")
    Steps.go_on.clear()
    ASKED.clear()
    before = asyncio.all_tasks()
    batch = asyncio.create_task(fast.abatch(given, {"max_concurrency": 4}, resume=tmp_path / "journal"))
    await until(lambda: len(ASKED) == 4)
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    assert asyncio.all_tasks() == before and not open_runs()
    Steps.go_on.set()
    again = await fast.abatch(given, resume=tmp_path / "journal")
    assert list(map(plainly, again[:3])) == list(map(plainly, finished)) and fast.plan.batch.resumed == 3
    assert len(again) == 12


# --- inputs that come one by one


def _iterations(values: Iterator[Any]) -> dict[str, Any]:
    async def one_by_one() -> Any:
        for value in values:
            yield value

    return {"batch": values, "abatch": one_by_one()}


@pytest.mark.parametrize("way", ["batch", "abatch"])
def test_an_iterator_that_raises_ends_the_batch_with_its_error(way: str, tmp_path: Path) -> None:
    def given() -> Iterator[Any]:
        yield from inputs(6)
        raise LookupError("there is no input 6")

    fast = accel.accelerate(graph_of(Oracle()) if way == "batch" else coroutines_of(Oracle()))
    journal, options = tmp_path / "journal", {"max_concurrency": 2}
    with pytest.raises(LookupError, match="no input 6"):
        if way == "batch":
            fast.batch(given(), options, resume=journal, return_exceptions=True)
        else:
            asyncio.run(fast.abatch(_iterations(given())[way], options, resume=journal, return_exceptions=True))
    assert not open_runs()
    finished = {line["at"] for line in lines(journal)[1:]}
    assert finished >= set(range(4)), "no more than two were under way"
    again = (
        fast.batch(inputs(7), resume=journal) if way == "batch" else asyncio.run(fast.abatch(inputs(7), resume=journal))
    )
    assert len(again) == 7 and fast.plan.batch.resumed == len(finished)


@pytest.mark.parametrize("first_failed", [True, False])
async def test_with_a_journal_too_no_input_is_taken_before_there_is_room(first_failed: bool, tmp_path: Path) -> None:
    """Whether an earlier batch finished late inputs alone, or the first one of this takes longest."""
    journal, taken, ended, most = tmp_path / "journal", 0, 0, 0
    let_go = asyncio.Event()

    async def work(state: Any) -> Any:
        number = int(state["question"].split()[1])
        if number == 0 and not first_failed:
            await let_go.wait()
        if number < 30 and fails:
            raise RuntimeError("not yet")
        return {"answer": number}

    def given() -> Iterator[Any]:
        nonlocal taken, most
        for value in inputs(40):
            taken += 1
            most = max(most, taken - ended)
            yield value

    fast = accel.accelerate(one_node(work))
    if fails := first_failed:
        await fast.abatch(inputs(40), resume=journal, return_exceptions=True)
        assert min(line["at"] for line in lines(journal)[1:]) == 30
    fails = False
    results = fast.abatch_as_completed(given(), {"max_concurrency": 4}, resume=journal)
    async for _ in results:
        ended += 1
        if ended == 20:
            let_go.set()
    assert ended == 40 and most <= 4


# --- the journal


@pytest.mark.parametrize("way", ["batch", "abatch"])
def test_an_input_that_can_not_be_written_is_refused_before_anything_is_run(way: str, tmp_path: Path) -> None:
    fast = accel.accelerate(graph_of(Oracle()))
    given: list[Any] = [*inputs(5), {"question": "question 5", "context": lambda: "nobody can write this"}]
    with pytest.raises(accel.ConfigurationError, match="Input 5 can't be written to the journal"):
        if way == "batch":
            fast.batch(given, resume=tmp_path / "journal", return_exceptions=True)
        else:
            asyncio.run(fast.abatch(given, resume=tmp_path / "journal", return_exceptions=True))
    assert ASKED == [] and len(lines(tmp_path / "journal")) == 1


def test_a_set_is_the_same_input_in_whatever_order_it_is_kept(tmp_path: Path) -> None:
    """Each process has an order of its own for sets of strings; these two differ in one process."""
    one, other = {0, 8}, {8, 0}
    assert list(one) != list(other)
    journal = Journal(tmp_path / "journal", "program", serde())
    given = [[{"among": [value, "x"], "and": (frozenset(value),)}, {}, None] for value in (one, other)]
    assert journal.digest(given[0], 0) == journal.digest(given[1], 0)
    assert journal.digest([{"among": [{0, 9}, "x"]}], 0) != journal.digest([{"among": [{0, 8}, "x"]}], 0)
    journal.close()


def test_what_ends_after_its_batch_was_given_up_is_written_nowhere(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", "program", serde())
    number = journal._file
    journal.close()
    journal.close()
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    try:
        assert other == number, "the number of a closed file is given to the next one"
        journal.note(0, "digest", {"answer": 1})
        assert os.fstat(other).st_size == 0 and len(lines(tmp_path / "journal")) == 1
    finally:
        os.close(other)


def test_a_full_disk_is_said_and_leaves_a_whole_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", "program", serde())
    journal.note(0, "digest", {"answer": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "journal").stat().st_size + 20, hard))
    try:
        with pytest.raises(accel.ConfigurationError, match="can't grow"):
            journal.note(1, "digest", {"answer": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    journal.note(2, "digest", {"answer": 3})
    journal.close()
    assert [line["at"] for line in lines(tmp_path / "journal")[1:]] == [0, 2]


def test_a_process_that_was_forked_does_not_keep_the_journal(tmp_path: Path) -> None:
    """A lock is the file's, and so its children's: one that outlives a killed parent would keep it for ever."""
    journal = Journal(tmp_path / "journal", "program", serde())
    fork = Fork()
    if fork.child:
        fork.report(lambda: journal._file)
    assert fork.found() < 0
    journal.note(0, "digest", {"answer": 1})
    journal.close()
    assert len(lines(tmp_path / "journal")) == 2


@pytest.mark.long
@pytest.mark.timeout(3_000)
def test_a_hundred_thousand_inputs_take_the_room_of_ten_thousand() -> None:
    def resident_mb() -> float:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

    taken = ended = most = 0

    def given() -> Iterator[Any]:
        nonlocal taken, most
        for number in range(100_000):
            taken, most = taken + 1, max(most, taken + 1 - ended)
            yield {"question": f"question {number}", "context": f"context {number % 5}", "answer": "x" * 2_000}

    fast = accel.accelerate(graph_of(Oracle()))
    seen = {}
    for _ in fast.batch_as_completed(given(), {"max_concurrency": 8}):
        ended += 1
        if ended in (10_000, 100_000):
            ASKED.clear()
            seen[ended] = resident_mb(), len(gc.get_objects())
    assert most <= 8
    assert seen[100_000][0] < seen[10_000][0] + 20, seen
    assert seen[100_000][1] < seen[10_000][1] * 1.1, seen
