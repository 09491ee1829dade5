"""Named traps of what surrounds a node: configuration, streams, namespaces, tracing; plain, accelerated and forced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config, get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from langgraph.types import Command, StreamWriter, interrupt
from typing_extensions import TypedDict

from compat_tests.fakes import TENANT, Parts
from compat_tests.graphs import TOPICS, Topic, research
from compat_tests.named import acatch_up, asaid, catch_up, newer, said, was_early

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]
SHADE: ContextVar[str] = ContextVar("named_shade", default="none")


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


@newer
def test_trap_09_configuration_inside_nodes(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """`get_config`, task id, namespace and attempt are those of the node, with nothing added to them."""
    tasks: list[str] = []

    def node(state: Topic, config: RunnableConfig, runtime: Runtime[Any]) -> Topic:
        catch_up()
        said(parts.local, f"Node on {state['topic']}")
        mine = get_config()
        info = runtime.execution_info
        assert info is not None and mine["configurable"].keys() == config["configurable"].keys()
        assert (
            mine["configurable"]["checkpoint_ns"] == info.checkpoint_ns == mine["metadata"]["langgraph_checkpoint_ns"]
        )
        assert info.checkpoint_ns.split(":") == [mine["metadata"]["langgraph_node"], info.task_id]
        tasks.append(info.task_id)
        compared(
            sorted(mine["configurable"]), mine["metadata"], mine.get("tags"), info.thread_id, info.node_attempt,
            mine.get("recursion_limit"), mine["configurable"]["who"],
        )  # fmt: skip
        return {"notes": [said(parts.local, f"Again on {state['topic']}")]}

    graph = StateGraph(Topic)
    graph.add_node("one", node)
    graph.add_node("two", node)
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    fast = graph.compile(checkpointer=InMemorySaver())
    for number, topic in enumerate(TOPICS):
        config: Any = {
            "configurable": {"thread_id": str(number), "who": "me"}, "tags": ["mine"], "metadata": {"key": topic}
        }  # fmt: skip
        fast.invoke({"topic": topic}, config)
    assert len(set(tasks)) == len(tasks) == 2 * len(TOPICS)
    was_early(fast, accel_mode, 4)


def test_trap_10_messages_stream(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Tags say whose token it is, `nostream` keeps a model silent, and a message that was streamed isn't sent twice."""
    loud = parts.local.with_config(tags=["loud"])
    hushed = parts.local.with_config(tags=["nostream"])

    def begin(state: Chat) -> dict[str, Any]:
        catch_up()
        return {"messages": [loud.invoke(f"Begin {state['messages'][0].content}")]}

    def end(state: Chat) -> dict[str, Any]:
        catch_up()
        topic = state["messages"][0].content
        hidden = hushed.invoke(f"Hidden {topic}")
        shown = loud.invoke(f"Shown {topic}")
        return {"messages": [shown, AIMessage(f"made by hand after {hidden.content}", id="made"), shown]}

    graph = StateGraph(Chat)
    graph.add_sequence([begin, end])
    graph.add_edge(START, "begin")
    fast = graph.compile()
    for topic in (*TOPICS, "cedar 44"):
        parts_seen = list(fast.stream({"messages": [("human", topic)]}, stream_mode=["messages", "values"]))
        tokens = [data for mode, data in parts_seen if mode == "messages"]
        whole: dict[str, str] = {}
        for message, metadata in tokens:
            whole[message.id] = whole.get(message.id, "") + message.content
            assert "nostream" not in (metadata.get("tags") or [])
        final = parts_seen[-1][1]["messages"]
        assert [whole.get(message.id) for message in final[1:]] == [message.content for message in final[1:]]
        assert len(whole) == 3
        compared([(message.content, metadata["langgraph_node"], metadata.get("tags")) for message, metadata in tokens])
    was_early(fast, accel_mode, 2)


def test_trap_11_stream_writer_namespaces(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """What nodes write comes from their namespaces, in their order, and never from an early call."""

    def node(state: Topic, writer: StreamWriter) -> Topic:
        catch_up()
        writer({"begin": state["topic"]})
        found = said(parts.local, f"Inner {state['topic']}")
        get_stream_writer()({"end": found})
        return {"notes": [found]}

    inner = StateGraph(Topic)
    inner.add_node("node", node)
    inner.add_node("more", node)
    inner.add_edge(START, "node")
    inner.add_edge("node", "more")
    graph = StateGraph(Topic)
    graph.add_node("inner", inner.compile())
    graph.add_node("outer", node)
    graph.add_edge(START, "outer")
    graph.add_edge("outer", "inner")
    fast = graph.compile()
    for topic in TOPICS:
        written = list(fast.stream({"topic": topic}, stream_mode="custom", subgraphs=True))
        assert [len(ns) for ns, _ in written] == [0, 0, 1, 1, 1, 1]
        compared([([part.split(":")[0] for part in ns], data) for ns, data in written])
    was_early(fast, accel_mode, 3)


@pytest.mark.parametrize("own", [None, True])
def test_trap_15_subgraph_namespaces_and_states(parts: Parts, accel_mode: str, compared: Compared, own: Any) -> None:
    """A paused subgraph shows its state under its namespace and goes on where it was."""

    def draft(state: Topic) -> Topic:
        catch_up()
        return {"notes": [said(parts.local, f"Draft {state['topic']}"), said(parts.local, f"Title {state['topic']}")]}

    def ask(state: Topic) -> Topic:
        return {"answer": interrupt(f"Is {state['notes'][-1]} fine?")}

    inner = StateGraph(Topic)
    inner.add_sequence([draft, ask])
    inner.add_edge(START, "draft")
    graph = StateGraph(Topic)

    def end(state: Topic) -> Topic:
        catch_up()
        return {"queries": [said(parts.local, f"End {state['answer']}"), said(parts.local, f"On {state['topic']}")]}

    graph.add_node("inner", inner.compile(checkpointer=own))
    graph.add_node(end)
    graph.add_edge(START, "inner")
    graph.add_edge("inner", "end")
    fast = graph.compile(checkpointer=InMemorySaver())
    for number, topic in enumerate((*TOPICS, "cedar 44")):
        config: Any = {"configurable": {"thread_id": str(number)}}
        compared(list(fast.stream({"topic": topic}, config, subgraphs=True, stream_mode="updates")))
        state = fast.get_state(config, subgraphs=True)
        task = state.tasks[0]
        assert task.state.next == ("ask",) and len(task.state.values["notes"]) == 2  # type: ignore[union-attr]
        assert [name for name, _ in fast.get_subgraphs()] == ["inner"]
        compared(state.values, state.next, task.interrupts, task.state.values, task.name)  # type: ignore[union-attr]
        found = fast.invoke(Command(resume=f"yes {number}"), config)
        assert found["answer"] == f"yes {number}"
    was_early(fast, accel_mode, 1)


class Tree(BaseTracer):
    """Keeps the finished trees of runs."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)

    def seen(self) -> list[Any]:
        return [told(root) for root in self.roots]


def told(run: Run) -> Any:
    """A run as a tree of what must be equal; children in the order of their names, siblings may overlap."""
    outputs = {key: value for key, value in (run.outputs or {}).items() if key != "llm_output"}
    metadata = (run.extra or {}).get("metadata")
    return run.name, run.run_type, run.tags, metadata, outputs, run.error, [told(child) for child in run.child_runs]


def test_trap_25_tracer_tree_and_tags(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """The tree of runs, with parents, tags, metadata and outputs, is that of the plain program."""
    chain = RunnableLambda(lambda topic: f"Chained {topic}") | parts.local.with_config(tags=["in chain"])

    def last(state: Topic, config: RunnableConfig) -> Topic:
        catch_up()
        return {"answer": str(chain.invoke(state["topic"], config).content)}

    graph = research(parts)
    graph.add_node("last", last)
    graph.add_edge("answer", "last")
    fast = graph.compile(name="researcher")
    for topic in TOPICS:
        tree = Tree()
        fast.invoke({"topic": topic}, {"callbacks": [tree], "tags": ["outer"], "run_name": "request"})
        assert len(tree.roots) == 1 and tree.roots[0].name == "request"
        compared(tree.seen())
    was_early(fast, accel_mode, 2)


def test_trap_25_context_variables(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A component that reads a ContextVar answers for the value that the program has set by then."""

    def one(state: Topic) -> Topic:
        catch_up()
        found = [said(parts.tenant, f"One {state['topic']}"), said(parts.tenant, f"And {state['topic']}")]
        SHADE.set("blue")
        token = TENANT.set("b")
        found.append(said(parts.tenant, f"Two {state['topic']}"))
        TENANT.reset(token)
        return {"notes": [*found, said(parts.tenant, f"Three {state['topic']}"), SHADE.get()]}

    def two(state: Topic) -> Topic:
        catch_up()
        TENANT.set("c" if "33" in state["topic"] else "a")
        return {"notes": [said(parts.tenant, f"Four {state['topic']}"), SHADE.get()]}

    graph = StateGraph(Topic)
    graph.add_sequence([one, two])
    graph.add_edge(START, "one")
    fast = graph.compile()
    for tenant in ("a", "z"):
        TENANT.set(tenant)
        for topic in TOPICS:
            notes = fast.invoke({"topic": topic, "notes": []})["notes"]
            wanted = [tenant, tenant, "b", tenant, "c" if "33" in topic else "a"]
            assert [note[1] for note in notes if note.startswith("[")] == wanted
            compared(notes, TENANT.get(), SHADE.get())
    TENANT.set("a")
    was_early(fast, accel_mode, 2)


async def test_trap_25_context_of_async_nodes(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """The same on a loop, and callbacks are called on the thread and loop they were called on."""
    heard: set[str] = set()

    class Ear(Tree):
        def _start_trace(self, run: Run) -> None:
            heard.add(threading.current_thread().name)
            super()._start_trace(run)

    async def one(state: Topic) -> Topic:
        await acatch_up()
        found = await asaid(parts.tenant, f"One {state['topic']}")
        TENANT.set("inside")
        return {"notes": [found, await asaid(parts.tenant, f"Two {state['topic']}")]}

    async def two(state: Topic) -> Topic:
        await acatch_up()
        return {"notes": [await asaid(parts.tenant, f"Three {state['topic']}"), TENANT.get()]}

    graph = StateGraph(Topic)
    graph.add_sequence([one, two])
    graph.add_edge(START, "one")
    fast = graph.compile()
    for number, topic in enumerate(TOPICS):
        TENANT.set(f"{number}")
        ear = Ear()
        compared((await fast.ainvoke({"topic": topic, "notes": []}, {"callbacks": [ear]}))["notes"], ear.seen())
    assert not any(name.startswith("accel") for name in heard)
    was_early(fast, accel_mode, 2)
