"""Invariants 8 to 10: who comes first, what ends with the run, what is kept."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import accel
from accel import accelerate
from accel.learn.lessons import extend
from accel.parts.methods import patches
from accel.process.threads import issuer
from accel.run.calls.call import Call
from accel.run.demands import demands
from accel.run.run import Run
from adapters.tests.catching_up import catch_up
from adapters.tests.core_fakes import (
    TENANT,
    Chat,
    State,
    StreamingChat,
    World,
    chain,
    three,
    train,
)

TOPIC = "beaches of Portugal"
A, B = f"answer to <Alpha asks: {TOPIC}>", f"answer to <Beta asks: {TOPIC}>"
C = f"answer to <Gamma joins {A} with {B}.>"
RESULT = {"q": TOPIC, "a": A, "b": B, "c": C}


def ready(world: World, model: Any, other: Any = None, graph: Any = None, **options: Any) -> Any:
    """`three` (or `graph`), trained, with nothing in the log."""
    fast = accelerate(graph or three(world, model, other), **options)
    train(fast)
    world.forget()
    return fast


# --- 8. a demand comes first ----------------------------------------------------------------------------------------


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set as soon as a demand has joined an early call."""
    happened = threading.Event()
    opened = demands.open_call

    def watched(run: Run, *args: Any) -> Call:
        call = opened(run, *args)
        if call.joined and call.state == "running" and "Beta" in str(call.input):
            happened.set()
        return call

    monkeypatch.setattr(demands, "open_call", watched)
    return happened


def test_a_running_early_call_is_joined(joined: threading.Event) -> None:
    world = World()
    fast = ready(world, Chat(world))
    gate = world.gates["Beta asks: beaches"] = threading.Event()
    world.hooks["b"] = lambda: world.wait_early("Beta asks", over=False)
    outcome: list[Any] = []
    run = threading.Thread(target=lambda: outcome.append(fast.invoke({"q": TOPIC})))
    run.start()
    assert joined.wait(20)
    gate.set()
    run.join()
    assert outcome == [RESULT]
    assert len(world.calls) == 3


def test_an_early_call_that_failed_before_its_demand_is_forgotten() -> None:
    world = World()
    fast = ready(world, Chat(world))
    world.errors["Beta asks"] = ConnectionError("first")

    def recover() -> None:
        world.wait_early("Beta asks")
        catch_up()  # its failure has been seen
        del world.errors["Beta asks"]

    world.hooks["b"] = recover
    assert fast.invoke({"q": TOPIC}) == RESULT
    assert world.texts("Beta asks", early=False) != []


def test_a_joined_failure_is_delivered_once_and_a_retry_makes_its_own_call(joined: threading.Event) -> None:
    world = World()
    model = Chat(world)
    caught: list[str] = []

    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        try:
            return {"b": model.invoke(f"Beta asks: {state['q']}").content}
        except ConnectionError as error:
            caught.append(str(error))
            world.errors.clear()
            return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)
    world.forget()
    gate = world.gates["Beta asks: beaches"] = threading.Event()
    world.errors["Beta asks: beaches"] = ConnectionError("lost")
    world.hooks["b"] = lambda: world.wait_early("Beta asks", over=False)
    outcome: list[Any] = []
    run = threading.Thread(target=lambda: outcome.append(fast.invoke({"q": TOPIC})))
    run.start()
    assert joined.wait(20)
    gate.set()
    run.join()
    assert outcome[0]["b"] == B
    assert caught == ["lost"]
    assert len(world.texts("Beta asks")) == 2


def test_a_streaming_demand_does_not_join_a_call_that_does_not_stream() -> None:
    world = World()
    world.answer = lambda text: "one ~two ~three"
    model = StreamingChat(world)
    streams = {"on": False}

    def a(state: State) -> State:
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        if streams["on"]:
            return {"b": [chunk.content for chunk in model.stream(f"Beta asks: {state['q']}") if chunk.content]}
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)
    world.forget()
    streams["on"] = True
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    assert fast.invoke({"q": TOPIC})["b"] == ["one ", "two ", "three"]
    assert len(world.texts("Beta asks", early=False)) == 1


# --- 9. wrong guesses cost only -------------------------------------------------------------------------------------


def hanging(world: World) -> tuple[Any, threading.Event]:
    """A trained program of which node a ends the run before b is demanded, while the call of b hangs."""
    model = Chat(world)
    stop: dict[str, BaseException] = {}

    def a(state: State) -> State:
        world.node("a")
        if "stop" in state["q"]:
            raise stop.setdefault("error", KeyError("stopped"))
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)
    world.forget()

    def both() -> None:
        world.wait_early("Alpha asks")
        world.wait_early("Beta asks", over=False)

    world.hooks["a"] = both
    return fast, world.gates.setdefault("Beta asks: please stop", threading.Event())


def test_a_raising_run_leaves_nothing_outstanding_and_does_not_wait() -> None:
    world = World()
    fast, gate = hanging(world)
    with pytest.raises(KeyError, match="stopped"):
        fast.invoke({"q": "please stop"})
    assert world.inside["chat"] == 1, "the call itself can't be ended; the program is over without it"
    gate.set()
    world.wait(lambda: world.inside["chat"] == 0)
    assert accel.settle()
    assert fast.report().wasted == 2, "the calls of a and b"
    assert world.visits == ["a"]


async def test_a_cancelled_run_leaves_nothing_outstanding() -> None:
    world = World()
    model = Chat(world)
    begun = asyncio.Event()

    async def a(state: State) -> State:
        if "stop" in state["q"]:
            await asyncio.to_thread(world.wait_early, "Alpha asks")
            await asyncio.to_thread(world.wait_early, "Beta asks", False)
            begun.set()
            await asyncio.Event().wait()
        return {"a": (await model.ainvoke(f"Alpha asks: {state['q']}")).content}

    async def b(state: State) -> State:
        return {"b": (await model.ainvoke(f"Beta asks: {state['q']}")).content}

    fast = accelerate(chain(("a", a), ("b", b)))
    for topic in ("volcanoes of Iceland", "glaciers of Norway"):
        await fast.ainvoke({"q": topic})
        assert await asyncio.to_thread(accel.settle)
    world.forget()
    gate = world.gates["Beta asks: please stop"] = threading.Event()
    run = asyncio.create_task(fast.ainvoke({"q": "please stop"}))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    gate.set()
    await asyncio.to_thread(world.wait, lambda: world.inside["chat"] == 0)
    assert fast.report().wasted == 2


def test_an_abandoned_stream_may_be_collected_at_any_moment() -> None:
    """The collector runs in the middle of anything, locks of Accel's own held included."""
    world = World()
    fast = ready(world, Chat(world))
    finished = fast.plan.runs
    parts = fast.stream({"q": TOPIC})
    next(parts)
    runs_lock = parts.gi_frame.f_locals["run"].lock
    around: list[Any] = [parts]
    around.append(around)
    del parts, around
    done = threading.Event()

    def collect() -> None:
        with patches._lock, fast.plan._lock:
            gc.collect()
        done.set()

    with runs_lock:  # as another thread may, on its way to a lock that the collector's thread holds
        threading.Thread(target=collect, daemon=True).start()
        assert done.wait(30), "a deadlock"
    assert accel.settle() and fast.plan.runs == finished + 1


def test_a_hung_early_call_delays_neither_return_nor_interpreter_exit(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import threading, accel
        from accel import accelerate
        from adapters.tests.core_fakes import *

        world, model = World(), None
        model = Chat(world)

        def a(state):
            world.node("a")
            return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

        def b(state):
            if state["q"] == "rivers of Finland":
                return {"b": "nothing"}
            return {"b": model.invoke(f"Beta asks: {state['q']}").content}

        fast = accelerate(chain(("a", a), ("b", b)))
        train(fast)
        class Never(threading.Event):
            def wait(self, timeout=None):
                return super().wait()
        world.gates["Beta asks"] = Never()
        world.hooks["a"] = lambda: world.wait_early("Beta asks", over=False)
        print(fast.invoke({"q": "rivers of Finland"})["b"])
        """
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "nothing\n"), done.stderr


def test_a_fan_out_never_exceeds_the_counts_seen() -> None:
    world = World()
    lines = {"n": 3}
    world.answer = lambda text: (
        "\n".join(f"item {i} of the list" for i in range(lines["n"])) if "List" in text else text
    )
    model = Chat(world)

    def a(state: State) -> State:
        return {"a": model.invoke(f"List things about {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": [model.invoke(f"Explain {line}").content for line in state["a"].split("\n")[:5]]}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast, (*("volcanoes of Iceland", "glaciers of Norway"), "rivers of Finland"))
    world.forget()
    lines["n"] = 40
    assert len(fast.invoke({"q": TOPIC})["b"]) == 5
    assert len(world.texts("Explain", early=True)) <= 5


def test_early_calls_that_never_stand_for_the_program_s_own_are_given_up() -> None:
    """A tenant that gets his name only just before the call: the early one always was for another."""
    world = World()
    tenant = SimpleNamespace(name="nobody")
    world.hooks["b"] = lambda: (vars(tenant).update(name="somebody"), issuer.settle(30.0)) and None  # type: ignore[func-returns-value]
    fast = accelerate(three(world, Chat(world)))
    for number in range(9):
        world.forget()
        tenant.name = "nobody"
        token = TENANT.set(tenant)
        fast.invoke({"q": f"question {number}"})
        TENANT.reset(token)
        assert accel.settle()
    counts = list(fast.plan.history)
    assert sum(run.wasted for run in counts[:5]) > 0, "the test shows nothing"
    assert sum(run.fed for run in counts) == 0
    assert counts[-1].wasted == 0, fast.report()


def test_the_budget_bounds_what_is_issued() -> None:
    world = World()
    fast = ready(world, Chat(world), budget=accel.Budget(max_issued=1))
    assert fast.invoke({"q": TOPIC}) == RESULT
    assert fast.report().counts.issued <= 1


def test_an_input_that_breaks_the_pattern_costs_calls_not_results() -> None:
    world = World()
    model = Chat(world)

    def b(state: State) -> State:
        world.node("b")
        question = state["q"].upper() if "Portugal" in state["q"] else state["q"]
        return {"b": model.invoke(f"Beta asks: {question}").content}

    fast = ready(
        world, model, graph=chain(("a", lambda s: {"a": model.invoke(f"Alpha asks: {s['q']}").content}), ("b", b))
    )
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    assert fast.invoke({"q": TOPIC})["b"] == f"answer to <Beta asks: {TOPIC.upper()}>"
    assert accel.settle()
    assert fast.report().wasted == 1


# --- 10. plans hold no one's data -----------------------------------------------------------------------------------


def test_a_saved_plan_holds_nothing_that_was_in_one_run_only(tmp_path: Path) -> None:
    world = World()
    fast = accelerate(three(world, Chat(world, secret="sk-very-secret")))
    topics = ("volcanoes of Iceland", "glaciers of Norway", "rivers of Finland")
    train(fast, topics)
    fast.save_plan(str(tmp_path / "plan.json"))
    text = (tmp_path / "plan.json").read_text()
    for topic in topics:
        for word in topic.split():
            if word != "of":
                assert word not in text
    assert "sk-very-secret" not in text
    assert "answer to" not in text
    assert "Alpha asks" in json.dumps(json.loads(text))


def test_a_plan_after_one_run_holds_no_text_at_all(tmp_path: Path) -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    train(fast, (TOPIC,))
    fast.save_plan(str(tmp_path / "plan.json"))
    text = (tmp_path / "plan.json").read_text()
    assert "beaches" not in text and "Alpha asks" not in text


def test_a_saved_plan_predicts_in_a_new_object(tmp_path: Path) -> None:
    world = World()
    model = Chat(world)
    graph = three(world, model)
    fast = accelerate(graph)
    train(fast)
    fast.save_plan(str(tmp_path / "plan.json"))
    world.forget()
    again = accelerate(graph, plan=str(tmp_path / "plan.json"))
    assert str(again.plan.graph) == str(fast.plan.graph)
    assert again.invoke({"q": TOPIC}) == RESULT


def test_a_saved_plan_predicts_calls_of_the_only_component_that_the_program_refers_to(tmp_path: Path) -> None:
    """In the first run of a program that was learnt elsewhere."""
    path = str(tmp_path / "plan.json")
    world = World()
    ready = accelerate(three(world, Chat(world)))
    train(ready)
    ready.save_plan(path)

    world = World()
    fast = accelerate(three(world, Chat(world)), plan=path)
    world.hooks["a"] = lambda: world.wait_early("Beta asks")
    assert fast.invoke({"q": TOPIC}) == RESULT
    assert fast.report().retired >= 1


def puzzling(world: World, model: Any) -> Any:
    """Node a asks what follows from the question, and then what nothing known explains; b asks of the question."""

    def a(state: State) -> State:
        world.node("a")
        digest = hashlib.sha256(state["q"].encode()).hexdigest()
        asked = [model.invoke(f"{what}").content for what in (f"Alpha asks: {state['q']}", f"Number {digest}")]
        return {"a": asked[-1]}

    def b(state: State) -> State:
        world.node("b")
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    return chain(("a", a), ("b", b))


def test_a_saved_plan_outlives_a_run_that_it_does_not_explain(tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    world = World()
    ready = accelerate(puzzling(world, Chat(world)))
    train(ready)
    ready.save_plan(path)

    world = World()
    fast = accelerate(puzzling(world, Chat(world)), plan=path)
    for topic in (TOPIC, "rivers of Finland", "islands of Greece"):
        world.forget()
        early = f"Beta asks: {topic}"
        world.hooks["b"] = lambda early=early: world.wait_early(early)
        assert fast.invoke({"q": topic})["b"] == f"answer to <Beta asks: {topic}>"
        assert accel.settle()


def test_what_runs_cannot_teach_is_not_learnt_again_inside_each(monkeypatch: pytest.MonkeyPatch) -> None:
    lessons: list[str] = []

    def counted(known: Any, running: Any, site: str, **given: Any) -> Any:
        lessons.append(site)
        return extend(known, running, site, **given)

    monkeypatch.setattr("accel.run.plans.within_runs.extend", counted)
    world = World()
    fast = accelerate(puzzling(world, Chat(world)))
    for number in range(20):
        fast.invoke({"q": f"beach number {number} of Portugal"})
        assert accel.settle()
    assert 1 <= len(lessons) <= 6


def test_a_saved_plan_does_not_choose_between_components(tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    world = World()
    ready = accelerate(three(world, Chat(world), Chat(world, secret="one")))
    train(ready)
    ready.save_plan(path)

    world = World()
    fast = accelerate(three(world, Chat(world), Chat(world, secret="two")), plan=path)
    assert fast.invoke({"q": TOPIC}) == RESULT
    assert accel.settle()
    assert not world.texts("Alpha", early=True) and not world.texts("Beta", early=True)


def test_objects_learn_for_themselves_unless_they_share_a_scope() -> None:
    world = World()
    graph = three(world, Chat(world))
    one, other = accelerate(graph), accelerate(graph)
    assert one.plan is not other.plan
    tenants = [accelerate(graph, plan_scope=tenant) for tenant in ("x", "x", "y")]
    assert tenants[0].plan is tenants[1].plan is not tenants[2].plan
