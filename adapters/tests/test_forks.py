"""A forked child starts clean, whatever the parent was doing: the same results, early from the parent's plan."""

from __future__ import annotations

import asyncio
import contextvars
import multiprocessing
import os
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

import accel
from accel import accelerate
from accel.engine import protocols
from accel.parts import components
from accel.parts.methods import patches
from accel.process import threads
from accel.process.properties import cached_property
from accel.process.threads import issuer, learner
from accel.run.ongoing import OPEN
from accel.run.waits import outcome, waiting
from accel.run.waits.chunks import growing
from accel.tests.forked import PATIENCE_S, Fork, in_child
from adapters.tests.core_fakes import WAIT_S, Chat, State, StreamingChat, World, after_thinking, chain, three, train

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
TOPIC, OTHER = "beaches of Portugal", "rivers of Finland"


def result_of(topic: str) -> dict[str, str]:
    a, b = f"answer to <Alpha asks: {topic}>", f"answer to <Beta asks: {topic}>"
    return {"q": topic, "a": a, "b": b, "c": f"answer to <Gamma joins {a} with {b}.>"}


def runs(world: World, fast: Any) -> dict[str, Any]:
    """What a run in the child gives, and whether something in it was early."""
    world.cond, world.gates, world.hooks = threading.Condition(), {}, {}
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    return {"result": fast.invoke({"q": OTHER}), "early": len(world.texts(early=True)) > 0}


GOOD = {"result": result_of(OTHER), "early": True}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def fast(world: World) -> Any:
    fast = accelerate(three(world, Chat(world)))
    train(fast)
    world.forget()
    return fast


@contextmanager
def held_elsewhere(lock: Any) -> Iterator[None]:
    """Another thread holds the lock meanwhile."""
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            over.wait(PATIENCE_S)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(WAIT_S)
    try:
        yield
    finally:
        over.set()
        thread.join()


# --- between runs ---------------------------------------------------------------------------------------------------


def test_a_child_of_an_idle_parent(world: World, fast: Any) -> None:
    assert in_child(lambda: runs(world, fast)) == GOOD
    assert runs(world, fast) == GOOD


LOCKS: dict[str, Callable[[Any, Any], Any]] = {
    "plan": lambda fast, model: fast.plan._lock,
    "contexts": lambda fast, model: fast.plan.contexts._lock,
    "chances": lambda fast, model: fast.plan.chances._lock,
    "threads": lambda fast, model: threads._lock,
    "issuer": lambda fast, model: issuer._start,
    "learner": lambda fast, model: learner._start,
    "waiting": lambda fast, model: waiting.lock,
    "patches": lambda fast, model: patches._lock,
    "components": lambda fast, model: components._lock,
    "outcomes": lambda fast, model: outcome._lock,
    "chunks": lambda fast, model: growing,
    "priority": lambda fast, model: protocols._changing,
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_that_another_thread_holds_is_free(world: World, name: str) -> None:
    model = Chat(world)
    fast = accelerate(three(world, model))
    train(fast)
    with held_elsewhere(LOCKS[name](fast, model)):
        assert in_child(lambda: runs(world, fast)) == GOOD
    assert runs(world, fast) == GOOD


class Slow:
    """Has a property that the first thread which asks works out for long."""

    def __init__(self, asked: threading.Event, over: threading.Event) -> None:
        self.asked, self.over = asked, over

    @cached_property
    def answer(self) -> str:
        if not self.asked.is_set():
            self.asked.set()
            self.over.wait(PATIENCE_S)
        return "there"


def test_a_property_that_another_thread_works_out(world: World) -> None:
    asked, over = threading.Event(), threading.Event()
    slow = Slow(asked, over)
    thread = threading.Thread(target=lambda: slow.answer)
    thread.start()
    try:
        assert asked.wait(WAIT_S)
        assert in_child(lambda: [slow.answer, Slow(asked, over).answer]) == ["there", "there"]
        assert Slow(asked, over).answer == "there", "nor does a thread wait for that of another object"
    finally:
        over.set()
        thread.join()


def test_a_lock_that_the_forking_thread_holds_stays_its_own(world: World, fast: Any) -> None:
    with fast.plan._lock:
        fork = Fork()
        owned = fast.plan._lock._is_owned()
    if fork.child:
        fork.report(lambda: [owned, fast.plan._lock._is_owned(), runs(world, fast)])
    assert fork.found() == [True, False, GOOD]


@pytest.mark.parametrize("worker", [issuer, learner], ids=["issuer", "learner"])
def test_a_worker_that_holds_the_plan(world: World, fast: Any, worker: threads.Worker) -> None:
    held, over = threading.Event(), threading.Event()

    def work() -> None:
        with fast.plan._lock:
            held.set()
            over.wait(PATIENCE_S)

    worker.post(work)
    assert held.wait(WAIT_S)
    try:
        assert in_child(lambda: runs(world, fast)) == GOOD
    finally:
        over.set()
    assert runs(world, fast) == GOOD


def test_a_worker_thread_that_forks(world: World, fast: Any) -> None:
    here = contextvars.copy_context()  # in which the plan was learnt
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(here.run, in_child, lambda: runs(world, fast)).result(PATIENCE_S) == GOOD


def test_a_child_of_a_child(world: World, fast: Any) -> None:
    def both() -> Any:
        return [runs(world, fast), in_child(lambda: runs(world, fast))]

    assert in_child(both) == [GOOD, GOOD]


def test_what_a_child_learns_it_uses(world: World) -> None:
    fast = accelerate(three(world, Chat(world)))

    def learns() -> Any:
        train(fast)
        return runs(world, fast)

    assert in_child(learns) == GOOD
    assert not fast.plan.graph.nodes


def _target(work: Callable[[], Any], out: Any) -> None:
    out.send(work())


def test_multiprocessing(world: World, fast: Any) -> None:
    context = multiprocessing.get_context("fork")
    parents, childs = context.Pipe()
    process = context.Process(target=_target, args=(lambda: runs(world, fast), childs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    assert parents.poll(PATIENCE_S), "the child hangs"
    assert parents.recv() == GOOD
    process.join(PATIENCE_S)
    assert process.exitcode == 0


# --- inside a run ---------------------------------------------------------------------------------------------------


def goes_on(world: World, fast: Any, fork: list[Fork], invoke: Callable[[], Any]) -> Any:
    """Run, in the course of which a fork happens; in the child go on after it, and then run again."""
    try:
        first = invoke()
    except BaseException:
        if fork and fork[0].child:
            fork[0].report(lambda: traceback.format_exc())
        raise
    if fork[0].child:
        fork[0].report(lambda: [first, runs(world, fast)])
    return first, fork[0].found()


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_node_that_forks_while_early_calls_are_under_way(world: World, fast: Any, node: str) -> None:
    gate = world.gates["Beta asks: beaches"] = threading.Event()
    fork: list[Fork] = []

    def forks() -> None:
        world.wait_early("Beta asks: beaches", over=False)
        fork.append(Fork())
        gate.set()

    world.hooks[node] = forks
    mine, childs = goes_on(world, fast, fork, lambda: fast.invoke({"q": TOPIC}))
    assert mine == result_of(TOPIC)
    assert childs == [result_of(TOPIC), GOOD]


def test_a_node_that_forks_while_its_run_is_locked(world: World, fast: Any) -> None:
    fork: list[Fork] = []

    def forks() -> None:
        (run,) = [run for run in OPEN if run.plan is fast.plan]
        with held_elsewhere(run.lock):
            fork.append(Fork())

    world.hooks["b"] = forks
    mine, childs = goes_on(world, fast, fork, lambda: fast.invoke({"q": TOPIC}))
    assert mine == result_of(TOPIC)
    assert childs == [result_of(TOPIC), GOOD]


def test_a_component_that_forks(world: World) -> None:
    """Inside a demanded call, with the gate of its model entered."""
    graph = three(world, Chat(world))
    fast = accelerate(graph)
    train(fast)
    demanding = accelerate(graph, speculate="off")
    fork: list[Fork] = []
    answer = world.answer

    def forks(text: str) -> str:
        if text == f"Alpha asks: {TOPIC}":
            fork.append(Fork())
        return answer(text)

    world.answer = forks
    mine, childs = goes_on(world, fast, fork, lambda: demanding.invoke({"q": TOPIC}))
    assert mine == result_of(TOPIC)
    assert childs == [result_of(TOPIC), GOOD]


def test_early_calls_of_the_parent_are_not_ended_by_the_child(world: World, fast: Any) -> None:
    """Cancelling them would reach, through what the child shares with its parent, into the parent's engines."""
    gate = world.gates["Beta asks: beaches"] = threading.Event()
    fork: list[Fork] = []
    cancelled: list[bool] = []

    def forks() -> None:
        world.wait_early("Beta asks: beaches", over=False)
        (run,) = [run for run in OPEN if run.plan is fast.plan]
        calls = [call for call in run.calls.all() if call.early]
        fork.append(Fork())
        cancelled.extend(call.token.cancelled for call in calls)
        gate.set()

    world.hooks["b"] = forks
    first = fast.invoke({"q": TOPIC})
    if fork[0].child:
        fork[0].report(lambda: cancelled)
    assert first == result_of(TOPIC)
    assert fork[0].found() and not any(cancelled)
    assert world.texts("Beta asks: beaches", early=False) == []


def test_a_part_read_stream_is_read_on_by_both(world: World, fast: Any) -> None:
    gate = world.gates["Gamma joins"] = threading.Event()
    parts = fast.stream({"q": TOPIC})
    seen = [next(parts)]
    fork = Fork()
    gate.set()
    seen += parts
    if fork.child:
        fork.report(lambda: [seen, runs(world, fast)])
    expected = [{name: {name: result_of(TOPIC)[name]}} for name in "abc"]
    assert seen == expected
    assert fork.found() == [expected, GOOD]


def test_a_thrown_away_stream_of_the_parent(world: World, fast: Any) -> None:
    parts = [fast.stream({"q": TOPIC})]
    next(parts[0])

    def throws_away() -> Any:
        parts.clear()
        return runs(world, fast)

    assert in_child(throws_away) == GOOD
    assert len(list(parts[0])) == 2


def test_a_node_that_forks_in_the_middle_of_an_early_stream(world: World) -> None:
    """The child can't have the rest of it: it reads one of its own."""
    world.answer = lambda text: f"{text}~ and ~more"
    thinker, speaker = Chat(world), StreamingChat(world)
    forks: list[Fork] = []

    def a(state: State) -> State:
        world.node("a")
        return {"a": thinker.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        pieces = []
        for piece in speaker.stream(f"Beta asks: {state['q']}"):
            pieces.append(str(piece.content))
            if len(pieces) == 1 and state["q"] == TOPIC:
                forks.append(Fork())
                gate.set()
        return {"b": "".join(pieces)}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)
    gate = world.gates["piece 1"] = threading.Event()
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("Beta asks", over=False)
    mine, childs = goes_on(world, fast, forks, lambda: fast.invoke({"q": TOPIC})["b"])
    assert mine == f"Beta asks: {TOPIC} and more"
    assert childs[0] == mine
    assert childs[1]["result"]["b"] == f"Beta asks: {OTHER} and more"
    assert childs[1]["early"]
    assert len(world.texts("Beta")) == 1


def test_coroutines(world: World) -> None:
    model = Chat(world)

    async def a(state: State) -> State:
        world.node("a")
        return {"a": (await model.ainvoke(f"Alpha asks: {state['q']}")).content}

    async def b(state: State) -> State:
        world.node("b")
        return {"b": (await model.ainvoke(f"Beta asks: {state['q']}")).content}

    fast = accelerate(chain(("a", a), ("b", b)))
    for topic in ("volcanoes of Iceland", "glaciers of Norway"):
        asyncio.run(fast.ainvoke({"q": topic}))
        assert accel.settle()
    found: list[Any] = []

    def child() -> Any:
        world.cond, world.hooks = threading.Condition(), {}
        world.forget()
        world.hooks["b"] = lambda: world.wait_early("Beta asks")
        result = asyncio.run(fast.ainvoke({"q": OTHER}))
        return [result, len(world.texts(early=True)) > 0]

    def forks() -> None:
        world.wait_early("Beta asks")
        found.append(in_child(child))

    world.hooks["b"] = forks
    assert asyncio.run(fast.ainvoke({"q": TOPIC}))["b"] == f"answer to <Beta asks: {TOPIC}>"
    a_, b_ = f"answer to <Alpha asks: {OTHER}>", f"answer to <Beta asks: {OTHER}>"
    assert found == [[{"q": OTHER, "a": a_, "b": b_}, True]]


def test_forks_at_random_moments(world: World, fast: Any) -> None:
    """While runs go on in four threads and the plan is being learnt again and again."""
    plain = Chat(World())
    over = threading.Event()
    faults: list[BaseException] = []

    def busy(number: int) -> None:
        quiet = World()
        mine = accelerate(after_thinking(quiet, lambda state: plain.invoke(f"Beta {state['q']}").content))
        turn = 0
        while not over.is_set():
            turn += 1
            try:
                mine.invoke({"q": f"topic {turn} of {number}"})
            except BaseException as error:  # noqa: BLE001 - the test's
                faults.append(error)

    pool = [threading.Thread(target=busy, args=(number,)) for number in range(4)]
    for thread in pool:
        thread.start()
    try:
        for _ in range(60):
            assert in_child(lambda: runs(world, fast)) == GOOD
    finally:
        over.set()
        for thread in pool:
            thread.join()
    assert not faults
