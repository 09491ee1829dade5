"""The rest of what a compiled graph offers: batches, states, commands, copies, drawing; plain, accelerated, forced."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import Runnable
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from langgraph.types import Command, StateUpdate, interrupt

import accel
from accel_langgraph.testing.log import unlogged
from compat_tests.fakes import LocalChat, Parts
from compat_tests.graphs import TOPICS, Topic
from compat_tests.named import asked, catch_up, in_a_row, in_a_row_async, said, was_early

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]


def thread(name: object, **more: Any) -> Any:
    return {"configurable": {"thread_id": str(name), **more}}


def inputs() -> list[Any]:
    return [{"topic": topic} for topic in TOPICS]


def test_batches(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """`batch` and `batch_as_completed`, with exceptions given back, with a limit, with a configuration each."""
    fast = in_a_row(parts, "first second").compile(checkpointer=InMemorySaver())
    configs = [{**thread(f"e{n}"), "recursion_limit": 1 if n == 2 else 9} for n in range(4)]
    with unlogged():  # which of them begins first is open
        compared(fast.batch(inputs(), [thread(number) for number in range(4)]))
        accel.settle()
        compared(fast.batch(inputs(), [{**thread(f"l{n}"), "max_concurrency": 2} for n in range(4)]))
        found = fast.batch(inputs(), configs, return_exceptions=True)
        assert [isinstance(one, GraphRecursionError) for one in found] == [False, False, True, False]
        compared(found)
        done = list(fast.batch_as_completed(inputs(), [thread(f"c{n}") for n in range(4)]))
        compared(sorted(done, key=lambda one: one[0]))
        accel.settle()
    was_early(fast, accel_mode, 2)


async def test_async_batches(parts: Parts, accel_mode: str, compared: Compared) -> None:
    fast = in_a_row_async(parts, "first second").compile(checkpointer=InMemorySaver())
    with unlogged():
        compared(await fast.abatch(inputs(), [thread(number) for number in range(4)]))
        accel.settle()
        found = [one async for one in fast.abatch_as_completed(inputs(), [thread(f"c{n}") for n in range(4)])]
        compared(sorted(found, key=lambda one: one[0]))
        accel.settle()
    was_early(fast, accel_mode, 2)


def test_states_and_histories(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """`get_state`, `get_state_history` (filtered, limited, before), `update_state`, `bulk_update_state`."""
    fast = in_a_row(parts, "first second").compile(checkpointer=InMemorySaver())
    for topic in TOPICS:
        fast.invoke({"topic": topic}, thread(topic))
    config = thread("meadow 22")
    history = list(fast.get_state_history(config))
    compared([(s.values, s.next, s.metadata, s.tasks) for s in history])
    compared([s.next for s in fast.get_state_history(config, limit=2)])
    compared([s.next for s in fast.get_state_history(config, before=history[1].config)])
    compared([s.next for s in fast.get_state_history(config, filter={"source": "loop"})])
    updates = [[StateUpdate({"notes": ["one"]}, "first")], [StateUpdate({"notes": ["two"]}, "second")]]
    fast.bulk_update_state(config, updates)
    compared(fast.get_state(config).values, fast.get_state(config).next)
    with pytest.raises(Exception) as caught:
        fast.update_state(config, {"notes": ["three"]}, as_node="no such node")
    compared(caught.value)
    was_early(fast, accel_mode, 2)


async def test_async_states(parts: Parts, accel_mode: str, compared: Compared) -> None:
    fast = in_a_row_async(parts, "first second").compile(checkpointer=InMemorySaver())
    for topic in TOPICS:
        await fast.ainvoke({"topic": topic}, thread(topic))
    config = thread("meadow 22")
    compared([(s.values, s.next) async for s in fast.aget_state_history(config)])
    await fast.aupdate_state(config, {"notes": ["mine"]}, as_node="first")
    await fast.abulk_update_state(config, [[StateUpdate({"notes": ["more"]}, "second")]])
    compared((await fast.aget_state(config)).values)
    was_early(fast, accel_mode, 2)


def test_time_travel_and_forks(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Runs from older checkpoints, changed and unchanged, don't disturb one another."""
    fast = in_a_row(parts).compile(checkpointer=InMemorySaver())
    for topic in TOPICS:
        fast.invoke({"topic": topic}, thread(topic))
    config = thread("harbor 33")
    for node in ("second", "third", "first"):
        then = next(s for s in fast.get_state_history(config) if s.next == (node,))
        compared(fast.invoke(None, then.config))
        forked = fast.update_state(then.config, {"topic": f"forked at {node}"})
        compared(fast.invoke(None, forked))
    compared(fast.get_state(config).values, len(list(fast.get_state_history(config))))
    was_early(fast, accel_mode, 2)


def test_commands(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """`Command` with resume, update and goto, from outside, inside, and to the parent graph."""

    def decide(state: Topic) -> Command[Any]:
        catch_up()
        verdict = said(parts.local, f"Say yes or no: {state['topic']}")
        said(parts.local, f"Because of {state['topic']}")
        return Command(graph=Command.PARENT, goto=verdict, update={"notes": [f"decided {verdict}"]})

    inner = StateGraph(Topic)
    inner.add_node(decide)
    inner.add_edge(START, "decide")
    graph = StateGraph(Topic)
    graph.add_node("inner", inner.compile())
    for name in ("yes", "no"):

        def branch(state: Topic, name: str = name) -> Topic:
            catch_up()
            answer = interrupt(said(parts.local, f"{name} to {state['topic']}?"))
            return {"answer": f"{name} {answer}", "queries": [said(parts.local, f"{name} as {answer}")]}

        graph.add_node(name, branch)
    graph.add_edge(START, "inner")
    fast = graph.compile(checkpointer=InMemorySaver())
    for number in range(6):
        config = thread(number)
        fast.invoke({"topic": f"quartz {number}"}, config)
        compared(fast.get_state(config).next, fast.get_state(config).values)
        compared(fast.invoke(Command(resume=f"fine {number}", update={"notes": ["resumed"]}), config))
        compared(fast.invoke(Command(goto="yes", update={"topic": f"elsewhere {number}"}), config))
        compared(fast.get_state(config).next)


def test_what_an_accelerated_graph_is(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Its type, names, drawings and schemas are those of the graph it was made from."""
    builder = in_a_row(parts, "first second")
    fast = builder.compile(name="named", checkpointer=InMemorySaver())
    fast.invoke({"topic": "quartz"}, thread("x"))
    for kind in (CompiledStateGraph, Pregel, Runnable):
        assert isinstance(fast, kind)
    assert fast.builder is builder and isinstance(pickle.dumps(fast.get_graph().to_json()), bytes)
    compared(
        type(fast).__name__, type(fast).__qualname__, type(fast).__module__, fast.name, fast.get_name(),
        fast.get_graph().draw_mermaid(), fast.get_graph(xray=True).to_json(), fast.get_input_jsonschema(),
        fast.get_output_jsonschema(), fast.get_context_jsonschema(),
        fast.InputType, fast.OutputType, fast.input_channels, fast.output_channels, fast.stream_channels_list,
        sorted(fast.nodes), sorted(fast.channels), fast.config_specs, fast.stream_mode, fast.step_timeout,
    )  # fmt: skip


def test_copies(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """`with_config`, `copy` and `with_retry` give graphs of the same kind; their plans are those of the original."""
    fast = in_a_row(parts, "first second").compile()
    tagged = fast.with_config(tags=["tagged"], recursion_limit=5)
    copied = fast.copy({"name": "copied"})
    assert type(tagged).__name__ == type(copied).__name__ == "CompiledStateGraph"
    assert copied.name == "copied" and fast.name != "copied" and tagged.config is not fast.config
    patient = fast.with_retry(stop_after_attempt=2)
    piped = fast | (lambda state: state["answer"])
    for topic in TOPICS:
        compared(
            tagged.invoke({"topic": topic}), copied.invoke({"topic": topic}), patient.invoke({"topic": topic}),
            piped.invoke({"topic": topic}),
        )  # fmt: skip
    compared(tagged.config)
    accel.settle()
    was_early(fast, accel_mode, 8)


def test_accelerating_twice_and_uninstall(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Accelerating again changes nothing; `uninstall` gives back the very functions; graphs go on working."""
    leaves = {(cls, name): vars(cls)[name] for cls in LocalChat.__mro__ for name in vars(cls) if name in (
        "_generate", "_agenerate", "_stream", "_astream")}  # fmt: skip
    fast = in_a_row(parts, "first second").compile()
    if accel_mode != "plain":
        assert accel.accelerate(fast) is fast
    for topic in TOPICS:
        compared(fast.invoke({"topic": topic}))
    was_early(fast, accel_mode, 2)
    accel.uninstall()
    for (cls, name), function in leaves.items():
        assert not hasattr(vars(cls)[name], "_self_wrapper"), f"{cls.__name__}.{name} is still patched"
        assert vars(cls)[name] is getattr(function, "__wrapped__", function)
    before = len(asked(parts))
    compared(fast.invoke({"topic": "after"}))
    assert len(asked(parts)) - before == 4
