"""Many runs at once on a simulated engine with little KV cache, in virtual time: which are admitted, who meets a
deadline, what is reported. Nothing is said of times but what deadlines say."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

import accel
import accel_local
from accel.engine import Priority, Sampling, Session, priority
from accel.engine.conformance import answer
from accel.errors import ConfigurationError
from accel.process import clock
from accel_langgraph import AccelChatModel
from accel_sim import SimLLMConfig, virtual
from accel_sim.llm import SimLLM

TURNS = 4
KV_TOKENS = 1024
RUNS = 12


class State(TypedDict, total=False):
    topic: str
    said: str


def config_of(batching: str) -> SimLLMConfig:
    return SimLLMConfig(kv_tokens=KV_TOKENS, batching=batching, name=batching)


def program(config: SimLLMConfig) -> Any:
    """A conversation that grows, with a tool between its turns."""
    model = AccelChatModel(model="7b", engine=config, max_tokens=12)

    async def talk(state: State) -> State:
        said = state.get("said") or f"{state['topic']} is dear to many people. " * 10
        for _ in range(TURNS):
            written = await model.ainvoke(said)
            await asyncio.sleep(0.5)
            said = f"{said}\n{written.text}\nGo on about {state['topic']}."
        return {"said": said}

    builder = StateGraph(State)
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    builder.add_edge("talk", END)
    return builder.compile()


async def engine_of(config: SimLLMConfig) -> SimLLM:
    engine = await accel_local.aengine(config)
    assert isinstance(engine, SimLLM)
    return engine


TOPICS = [{"topic": f"reef {number}"} for number in range(RUNS)]


@pytest.mark.parametrize("followed", [True, False])
def test_runs_that_are_admitted_in_turn_find_their_contexts_and_answer_alike(
    followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def served(batching: str) -> tuple[int, list[Any]]:
        config = config_of(batching)
        fast = accel.accelerate(program(config), speculate="off")
        await fast.ainvoke({"topic": "tides"})
        accel.settle()
        monkeypatch.setattr(fast.plan, "follows", lambda loop=None: followed)
        engine = await engine_of(config)
        before = engine.served.prompt_tokens
        found = await asyncio.gather(*map(fast.ainvoke, TOPICS))
        accel.settle()
        assert fast.report().runs == 1 + (RUNS if followed else 0)
        assert len(engine._waiting) == 0 and engine.kv_cache.held_tokens == 0
        return engine.served.prompt_tokens - before, list(found)

    async def main() -> None:
        unmodified = program(config_of("blind"))
        plain = [await unmodified.ainvoke(topic) for topic in TOPICS]
        computed, answers = await served("topology-aware")
        without, same = await served("topology-aware, without admission")
        assert answers == same == plain
        assert 1.5 * computed < without

    virtual.run(main)


def test_cancelled_and_failing_runs_leave_room_for_others() -> None:
    config = config_of("topology-aware")

    async def main() -> None:
        fast = accel.accelerate(program(config))
        tasks = [asyncio.ensure_future(fast.ainvoke(topic)) for topic in TOPICS]
        await asyncio.sleep(1.0)
        for task in tasks[::2]:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in found[::2])
        assert all(isinstance(one, dict) for one in found[1::2])
        engine = await engine_of(config)
        await answer(engine, "The end", Sampling(max_tokens=1))
        assert engine._waiting._admission is not None
        assert engine._waiting._admission.admitted == engine._waiting._admission.used == 0

    virtual.run(main)


def test_calls_say_whose_they_are_however_a_run_goes_on() -> None:
    """Followed or not, in a batch or alone, and not beyond it."""
    seen: list[tuple[str, Session | None]] = []

    def look(state: State) -> State:
        seen.append((priority.get().run, priority.get().session))
        return {"said": "nothing"}

    builder = StateGraph(State)
    model = AccelChatModel(model="7b", engine=config_of("topology-aware"), max_tokens=4)

    async def ask(state: State) -> State:
        return {"said": (await model.ainvoke(state["topic"])).text}

    builder.add_sequence([("ask", ask), ("look", look)])
    builder.add_edge(START, "ask")
    fast = accel.accelerate(builder.compile())

    async def main() -> None:
        await fast.ainvoke(TOPICS[0])
        accel.settle()
        fast.plan.follows = lambda loop=None: False
        for topic in TOPICS[1:3]:
            await fast.ainvoke(topic)
        with accel.mode("off"):
            await fast.ainvoke(TOPICS[4])

    virtual.run(main)
    (_, first), (one, second), (two, third), off = seen
    assert first is None, "outside of its calls a followed run says it with each"
    assert second is not None and third is not None and second is not third
    assert second.ended and third.ended and (one, two) == (second.name, third.name)
    assert off == ("", None) and priority.get().session is None


def test_who_has_a_deadline_meets_it_beside_others_and_reports_say_how_many() -> None:
    def met(batching: str) -> tuple[int, int]:
        config = config_of(batching)

        async def main() -> tuple[int, int]:
            fast = accel.accelerate(program(config))
            for topic in ("tides", "stones"):
                await fast.ainvoke({"topic": topic})
                accel.settle()
            began_s = clock.now_s()
            await fast.ainvoke({"topic": "winds"})
            alone_s = clock.now_s() - began_s
            accel.settle()
            others = [asyncio.ensure_future(fast.ainvoke(topic)) for topic in TOPICS]
            await asyncio.sleep(0.1)
            urgent: Any = {"metadata": {"accel_deadline_s": 2 * alone_s}}
            await asyncio.gather(*(fast.ainvoke({"topic": f"hurry {n}"}, urgent) for n in range(2)), *others)
            with accel.deadline(alone_s / 100):
                await fast.ainvoke({"topic": "late"})
            accel.settle()
            report = fast.report()
            counted = report.to_dict()["deadlines"]
            assert f"deadlines: {counted['met']} of {counted['runs']} requests met theirs" in str(report)
            assert fast.plan.last is not None and not [name for name in fast.plan.last.ambient if "accel" in name]
            return counted["met"], counted["runs"]

        return virtual.run(main)

    assert met("topology-aware") == (2, 3)
    assert met("topology-aware, without deadlines")[0] < 2


@pytest.mark.parametrize("wrong", [0, -2.0, "2", True, None])
async def test_wrong_deadlines_are_said(wrong: Any) -> None:
    fast = accel.accelerate(program(config_of("blind")))
    for run in (fast.invoke, fast.stream):
        with pytest.raises(ConfigurationError, match="The metadata accel_deadline_s=") as caught:
            run({"topic": "tides"}, {"metadata": {"accel_deadline_s": wrong}})
        assert caught.value.remedy


def test_a_session_arrives_elsewhere_as_it_stands() -> None:
    import pickle

    given = Priority(0, "run", 1.0, 2, True, Session("one", 5.0, "a graph"), 3.0)
    there = pickle.loads(pickle.dumps(given))
    assert (there.session.name, there.session.due_s, there.session.program) == ("one", 5.0, "a graph")
    assert (there.left_s, there.session.ended) == (3.0, False)
