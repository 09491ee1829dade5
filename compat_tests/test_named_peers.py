"""What a peer that takes edges out of a graph by static analysis was measured to get wrong, each as a test.

Run plain, accelerated and forced (see `accel_langgraph.testing`); every program here gains early calls, so nothing
is right only because nothing happens."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.cache.memory import InMemoryCache
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, RetryPolicy, Send
from typing_extensions import TypedDict

from compat_tests.answers import ModelError
from compat_tests.fakes import Parts
from compat_tests.graphs import TOPICS, Topic, lines
from compat_tests.named import asked, catch_up, said, was_early

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]


class Steps(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    steps: Annotated[list[str], operator.add]


def chained(*nodes: Callable[..., Any], state: Any = Topic) -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(state)
    graph.add_sequence(nodes)
    graph.add_edge(START, nodes[0].__name__)
    return graph


@pytest.mark.parametrize("kind", ["vector store", "store"])
def test_peer_1_hidden_store_dependency(parts: Parts, accel_mode: str, compared: Compared, kind: str) -> None:
    """No state key leads from the node that writes to the node that reads; what is read is what was written."""
    memory = InMemoryStore()

    def write(state: Topic) -> Topic:
        catch_up()
        fact = said(parts.local, f"Fact on {state['topic']}")
        if kind == "store":
            memory.put(("facts",), "last", {"text": fact})
        else:
            parts.store.add_texts([f"{state['topic']} {fact}"])
        return {}

    def read(state: Topic, store: BaseStore) -> Topic:
        catch_up()
        opinion = said(parts.local, f"Opinion on {state['topic']}")
        item = memory.get(("facts",), "last")
        known = item.value["text"] if item else "nothing"
        if kind == "vector store":
            known = parts.store.similarity_search(state["topic"], k=1)[0].page_content
        return {"answer": said(parts.local, f"Answer {opinion} from {known}")}

    fast = chained(write, read).compile(store=memory)
    for topic in TOPICS:
        fast.invoke({"topic": topic})
    compared(sorted(parts.store.rows.items()), asked(parts, "Answer"))
    was_early(fast, accel_mode, 2)


@pytest.mark.parametrize("declared", [False, True])
def test_peer_2_nodes_after_a_guard_that_raised(
    parts: Parts, accel_mode: str, compared: Compared, declared: bool
) -> None:
    """The guard and the answer share no state key; once it raised, or if it says that it is a guard, nothing of the
    answer goes before it."""
    ran: list[str] = []

    def look(state: Topic) -> Topic:
        catch_up()
        said(parts.local, f"Look at {state['topic']}")
        said(parts.local, f"Look again at {state['topic']}")
        return {}

    def guard(state: Topic) -> Topic:
        catch_up()
        if "33" in state["topic"] or "bad" in state["topic"]:
            raise ValueError(f"blocked: {state['topic']}")
        return {}

    def answer(state: Topic) -> Topic:
        ran.append(state["topic"])
        return {"answer": said(parts.local, f"Answer {state['topic']}")}

    graph = StateGraph(Topic)
    graph.add_node("look", look)
    graph.add_node("guard", guard, metadata={"guard": True} if declared else {})
    graph.add_node("answer", answer)
    for edge in ((START, "look"), ("look", "guard"), ("guard", "answer")):
        graph.add_edge(*edge)
    fast = graph.compile()
    topics = ("quartz 11", "meadow 22", "cedar 44") if declared else ("harbor 33", "quartz 11", "meadow 22", "cedar 44")
    for topic in (*topics, "bad one", "bad two"):
        if "33" in topic or "bad" in topic:
            with pytest.raises(ValueError, match=f"blocked: {topic}"):
                fast.invoke({"topic": topic})
        else:
            fast.invoke({"topic": topic})
    compared(ran)
    assert asked(parts, "Answer bad") == []
    was_early(fast, accel_mode)


def test_peer_3_reducer_order(parts: Parts, accel_mode: str) -> None:
    """Siblings update one list in the order of their names' paths, whoever finishes first."""
    graph = StateGraph(Topic)

    def begin(state: Topic) -> Topic:
        catch_up()
        return {"notes": [said(parts.local, f"Begin {state['topic']}")]}

    def join(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(parts.local, "Join " + " | ".join(state["notes"]))}

    graph.add_node("begin", begin)
    graph.add_node("join", join)
    graph.add_edge(START, "begin")
    for name in ("zeta", "alpha", "mid"):

        def branch(state: Topic, name: str = name) -> Topic:
            catch_up()
            return {"notes": [said(parts.local, f"{name} on {state['topic']}"), name]}

        graph.add_node(name, branch)
        graph.add_edge("begin", name)
        graph.add_edge(name, "join")
    fast = graph.compile()
    for topic in TOPICS:
        assert fast.invoke({"topic": topic})["notes"][2::2] == ["alpha", "mid", "zeta"]
    was_early(fast, accel_mode, 3)


def test_peer_4_send_results(parts: Parts, accel_mode: str) -> None:
    """Every `Send` gives its own result, also those that nobody could know before: their count depends on a model."""

    def expand(state: Topic) -> Topic:
        catch_up()
        return {"queries": lines(parts.local.invoke(f"Give a numbered list on {state['topic']}"))}

    def note(state: Topic) -> Topic:
        return {"notes": [f"{state['topic']}: {said(parts.local, 'Note on ' + state['topic'])}"]}

    def join(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(parts.local, "Join " + " | ".join(state["notes"]))}

    graph = StateGraph(Topic)
    for node in (expand, note, join):
        graph.add_node(node)
    graph.add_edge(START, "expand")
    graph.add_conditional_edges("expand", lambda s: [Send("note", {"topic": q}) for q in s["queries"]], ["note"])
    graph.add_edge("note", "join")
    fast = graph.compile()
    for topic in (*TOPICS, "cedar 44", "river 55"):
        found = fast.invoke({"topic": topic})
        assert [note.split(":")[0] for note in found["notes"]] == found["queries"]
    was_early(fast, accel_mode, 3)


def test_peer_5_retry_policies_stay(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A node with a retry policy tries as often as it says, and each attempt makes calls of its own."""
    attempts: list[str] = []

    def shaky(state: Topic) -> Topic:
        catch_up()
        attempts.append(said(parts.local, f"Try {state['topic']}"))
        if len(attempts) % 2 and "33" not in state["topic"]:
            raise ModelError("again")
        return {"answer": attempts[-1]}

    def sure(state: Topic) -> Topic:
        catch_up()
        return {"notes": [said(parts.local, f"Sure of {state['topic']}"), said(parts.local, f"So {state['topic']}")]}

    policy = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=2, retry_on=ModelError)
    graph = StateGraph(Topic)
    graph.add_node("sure", sure)
    graph.add_node("shaky", shaky, retry_policy=policy)
    graph.add_edge(START, "sure")
    graph.add_edge("sure", "shaky")
    fast = graph.compile()
    for topic in (*TOPICS, "harbor 33"):
        fast.invoke({"topic": topic})
    compared(attempts, asked(parts, "Try"))
    was_early(fast, accel_mode)


def test_peer_6_cache_policies_and_output_schemas_stay(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A cached node runs once per input, and only the keys of the output schema come out."""

    class Out(TypedDict):
        answer: str

    ran: list[str] = []

    def cached(state: Topic) -> Topic:
        ran.append(state["topic"])
        return {"queries": [said(parts.local, f"Query on {state['topic']}")]}

    def answer(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(parts.local, f"Answer {state['queries'][0]}"), "notes": ["private"]}

    graph = StateGraph(Topic, output_schema=Out)
    graph.add_node("cached", cached, cache_policy=CachePolicy(key_func=lambda state: state["topic"]))
    graph.add_node("answer", answer)
    graph.add_edge(START, "cached")
    graph.add_edge("cached", "answer")
    fast = graph.compile(cache=InMemoryCache())
    for topic in (*TOPICS, *TOPICS):
        assert list(fast.invoke({"topic": topic})) == ["answer"]
    compared(ran, asked(parts, "Query on"))
    assert len(ran) == len(set(TOPICS)) == len(asked(parts, "Query on"))
    was_early(fast, accel_mode)


def test_peer_7_losing_branches(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """The branch that isn't taken leaves no update, no effect and, by default, not even a call."""
    effects: list[str] = []

    def judge(state: Topic) -> Topic:
        catch_up()
        verdict = said(parts.local, f"Say yes or no: {state['topic']}")
        return {"answer": verdict, "notes": [said(parts.local, f"Reason on {state['topic']}")]}

    graph = StateGraph(Topic)
    graph.add_node("judge", judge)
    for name in ("yes", "no"):

        def branch(state: Topic, name: str = name) -> Topic:
            catch_up()
            effects.append(f"{name} {state['topic']}")
            return {"notes": [said(parts.local, f"{name} because {state['topic']}")]}

        graph.add_node(name, branch)
    graph.add_edge(START, "judge")
    graph.add_conditional_edges("judge", lambda state: state["answer"], ["yes", "no"])
    fast = graph.compile()
    for number in range(8):
        found = fast.invoke({"topic": f"quartz {number}"})
        assert len(found["notes"]) == 2
    compared(effects)
    assert {effect.split()[0] for effect in effects} == {"yes", "no"}
    if accel_mode != "forced":  # "likely" may ask for both
        assert len(asked(parts, "because")) == len(effects)
    was_early(fast, accel_mode, 3)


def test_peer_8_agent_steps_happen_once(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Each step of an agent's loop, and each of its tools' effects, happens once and in order."""

    effects: list[str] = []

    def agent(state: Steps) -> dict[str, Any]:
        catch_up()
        step = sum(message.type == "tool" for message in state["messages"])
        thought = said(parts.local, f"Step {step} on {state['messages'][0].content}")
        calls = [{"name": "look", "args": {"for": thought}, "id": f"call {step}"}] if step < 3 else []
        return {"messages": [AIMessage(thought, tool_calls=calls, id=f"ai {step}")], "steps": [f"agent {step}"]}

    def tools(state: Steps) -> dict[str, Any]:
        catch_up()
        call = state["messages"][-1].tool_calls[0]  # type: ignore[union-attr]
        effects.append(call["args"]["for"])
        found = said(parts.local, f"Summarize {call['args']['for']} for {state['messages'][0].content}")
        return {
            "messages": [ToolMessage(found, tool_call_id=call["id"], id=f"tool {call['id']}")],
            "steps": [call["id"]],
        }

    def more(state: Steps) -> str:
        return "tools" if state["messages"][-1].tool_calls else END  # type: ignore[union-attr]

    graph = StateGraph(Steps)
    graph.add_node(agent)
    graph.add_node(tools)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", more, ["tools", END])
    graph.add_edge("tools", "agent")
    fast = graph.compile()
    for topic in TOPICS:
        found = fast.invoke({"messages": [HumanMessage(topic, id="asked")], "steps": []})
        assert found["steps"] == ["agent 0", "call 0", "agent 1", "call 1", "agent 2", "call 2", "agent 3"]
    compared(effects)
    assert len(effects) == 3 * len(TOPICS)
    was_early(fast, accel_mode)


def test_peer_9_the_input_graph_stays_as_it_is(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Neither the builder nor the graph that was given is changed, before or after runs."""

    def first(state: Topic) -> Topic:
        catch_up()
        return {"queries": [said(parts.local, f"First {state['topic']}")]}

    def second(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(parts.local, f"Second {state['topic']}")}

    builder = chained(first, second)
    edges, nodes = copy.copy(builder.edges), dict(builder.nodes)
    fast = builder.compile()
    given = fast._accel.graph if accel_mode != "plain" else fast  # type: ignore[attr-defined]
    held = {name: (node, node.bound, dict(vars(node))) for name, node in given.nodes.items()}
    fields = {name: value for name, value in vars(given).items() if name != "nodes"}
    for topic in TOPICS:
        fast.invoke({"topic": topic})
    assert builder.edges == edges and builder.nodes == nodes
    assert {name: value for name, value in vars(given).items() if name != "nodes"} == fields
    assert fast.nodes.keys() == held.keys()
    for name, (node, bound, before) in held.items():
        assert given.nodes[name] is node and node.bound is bound and fast.nodes[name].bound is bound
        assert {key: value for key, value in vars(node).items() if key in before} == before
    compared(given.get_graph().draw_mermaid(), sorted(given.channels), given.input_channels)
    was_early(fast, accel_mode, 2)
