"""Named traps of control flow and state: who runs, in what order, with what; plain, accelerated and forced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from compat_tests.fakes import Parts
from compat_tests.graphs import TOPICS, Topic, lines
from compat_tests.named import asked, catch_up, said, was_early

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]


def looked(parts: Parts) -> Callable[[Topic], Topic]:
    """A node that asks twice, so that something of a run is always early."""

    def look(state: Topic) -> Topic:
        catch_up()
        said(parts.local, f"Look at {state['topic']}")
        catch_up()
        said(parts.local, f"Look again at {state['topic']}")
        return {}

    return look


def test_trap_01_predecessor_interrupts(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Once a node has interrupted, nothing of its successors goes before it."""
    ran: list[str] = []

    def gate(state: Topic) -> Topic:
        catch_up()
        if "free" not in state["topic"]:
            return {"queries": [interrupt(f"sure of {state['topic']}?")]}
        return {"queries": ["free"]}

    def after(state: Topic) -> Topic:
        ran.append(state["topic"])
        return {"answer": said(parts.local, f"After {state['topic']}")}

    graph = StateGraph(Topic)
    graph.add_node("look", looked(parts))
    graph.add_sequence([gate, after])
    graph.add_edge(START, "look")
    graph.add_edge("look", "gate")
    fast = graph.compile(checkpointer=InMemorySaver())
    for number, topic in enumerate(("quartz 11", "free 1", "free 2", "free 3", "cedar 44", "river 55")):
        config: Any = {"configurable": {"thread_id": str(number)}}
        parts.probe.calls.clear()
        ran.clear()
        if "__interrupt__" in fast.invoke({"topic": topic}, config):
            assert ran == asked(parts, "After") == []
            compared(fast.get_state(config).next)
            fast.invoke(Command(resume="yes"), config)
        assert ran == [topic] and len(asked(parts, "After")) == 1
    was_early(fast, accel_mode)


def test_trap_02_predecessor_raises_with_notes(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """The same exception object comes out: class, arguments, cause and notes; the successor never runs."""
    raised: list[BaseException] = []

    class Blocked(Exception):
        pass

    def gate(state: Topic) -> Topic:
        catch_up()
        if "33" in state["topic"] or "bad" in state["topic"]:
            error = Blocked(state["topic"], 7)
            error.add_note("a note of the program")
            raised.append(error)
            raise error from KeyError("the cause")
        return {}

    def after(state: Topic) -> Topic:
        assert "33" not in state["topic"] and "bad" not in state["topic"]
        return {"answer": said(parts.local, f"After {state['topic']}")}

    graph = StateGraph(Topic)
    graph.add_node("look", looked(parts))
    graph.add_sequence([gate, after])
    graph.add_edge(START, "look")
    graph.add_edge("look", "gate")
    fast = graph.compile()
    for topic in (*TOPICS, "bad 1"):
        try:
            fast.invoke({"topic": topic})
        except Blocked as error:
            assert error is raised[-1]
            compared(error, error.__notes__, type(error.__cause__).__name__)
    assert len(raised) == 2
    assert asked(parts, "After bad") == []
    was_early(fast, accel_mode)


def test_trap_03_command_goto_beside_a_static_path(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """`Command(goto=...)` goes where no edge leads, past the node that every run so far had next."""
    ran: list[str] = []

    def judge(state: Topic) -> Command[Any]:
        catch_up()
        said(parts.local, f"Judge {state['topic']}")
        goto = "other" if "33" in state["topic"] or "late" in state["topic"] else "usual"
        return Command(goto=goto, update={"queries": [goto]})

    def usual(state: Topic) -> Topic:
        catch_up()
        ran.append(f"usual {state['topic']}")
        return {"notes": [said(parts.local, f"Usual {state['topic']}")]}

    def other(state: Topic) -> Topic:
        catch_up()
        ran.append(f"other {state['topic']}")
        return {"notes": [said(parts.local, f"Other {state['topic']}")]}

    def last(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(parts.local, f"Last {state['topic']}")}

    graph = StateGraph(Topic)
    for node in (judge, usual, other, last):
        graph.add_node(node)
    graph.add_edge(START, "judge")
    graph.add_edge("usual", "last")
    graph.add_edge("other", "last")
    fast = graph.compile()
    for topic in (*TOPICS, "cedar 44", "late 1", "late 2", "river 55"):
        fast.invoke({"topic": topic})
    compared(ran)
    if accel_mode != "forced":
        assert len(asked(parts, "Usual") + asked(parts, "Other")) == len(ran)
    was_early(fast, accel_mode, 2)


def test_trap_04_two_writers(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Two siblings that write one key raise InvalidUpdateError, also if both their calls were early."""

    def writes(name: str) -> Callable[[Topic], Topic]:
        def node(state: Topic) -> Topic:
            catch_up()
            found = said(parts.local, f"{name} on {state['topic']}")
            return {"answer": found} if name == "a" or "33" in state["topic"] else {"notes": [found]}

        return node

    graph = StateGraph(Topic)
    graph.add_node("look", looked(parts))
    graph.add_edge(START, "look")
    for name in ("a", "b"):
        graph.add_node(name, writes(name))
        graph.add_edge("look", name)
    fast = graph.compile()
    for topic in ("quartz 11", "meadow 22", "harbor 33", "cedar 44"):
        if "33" in topic:
            with pytest.raises(InvalidUpdateError) as caught:
                fast.invoke({"topic": topic})
            compared(caught.value)
        else:
            fast.invoke({"topic": topic})
    was_early(fast, accel_mode, 2)


def test_trap_05_mutation_of_a_shared_list(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A node changes the list that the next one reads, in place and without an update."""

    def first(state: Topic) -> Topic:
        catch_up()
        said(parts.local, f"First of {' '.join(state['queries'])}")
        state["queries"].append(f"more {state['topic']}")
        return {}

    def second(state: Topic) -> Topic:
        catch_up()
        said(parts.local, f"Second {state['topic']}")
        return {"answer": said(parts.local, f"Of all {' '.join(state['queries'])}")}

    graph = StateGraph(Topic)
    graph.add_sequence([first, second])
    graph.add_edge(START, "first")
    fast = graph.compile()
    shared: list[str] = []
    for topic in TOPICS:
        fast.invoke({"topic": topic, "queries": shared})
        fast.invoke({"topic": topic, "queries": [topic]})
    assert len(shared) == len(TOPICS)
    compared(shared, asked(parts, "Of all"))
    was_early(fast, accel_mode, 2)


def test_trap_06_intermediate_write_to_a_read_key(parts: Parts, accel_mode: str) -> None:
    """A node in between overwrites the key that the first runs passed on unchanged."""

    def between(state: Topic) -> Topic:
        catch_up()
        said(parts.local, f"Between {state['topic']}")
        return {"topic": f"changed {state['topic']}"} if "33" in state["topic"] else {}

    def reader(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(parts.local, f"Read {state['topic']}")}

    graph = StateGraph(Topic)
    graph.add_node("look", looked(parts))
    graph.add_sequence([between, reader])
    graph.add_edge(START, "look")
    graph.add_edge("look", "between")
    fast = graph.compile()
    for topic in ("quartz 11", "meadow 22", "harbor 33", "cedar 44", "amber 33"):
        fast.invoke({"topic": topic})
    assert "human: Read changed harbor 33" in asked(parts, "Read")
    was_early(fast, accel_mode, 3)


def test_trap_12_order_of_updates_among_siblings(parts: Parts, accel_mode: str) -> None:
    """`updates` come as siblings finish, but state and the joint step read them in the order of the siblings."""

    def sibling(name: str) -> Callable[[Topic], list[Topic] | Topic]:
        def node(state: Topic) -> Topic:
            catch_up()
            asks = [said(parts.local, f"{name} {turn} {state['topic']}") for turn in range(2)]
            return {"notes": [f"{name} {turn}" for turn in range(2)] + asks}

        return node

    graph = StateGraph(Topic)
    graph.add_node("look", looked(parts))
    graph.add_edge(START, "look")
    for name in ("c", "a", "b"):
        graph.add_node(name, sibling(name))
        graph.add_edge("look", name)
    graph.add_node("join", lambda state: {"answer": "; ".join(state["notes"])})
    graph.add_edge(["c", "b", "a"], "join")
    fast = graph.compile()
    for topic in TOPICS:
        values = list(fast.stream({"topic": topic}, stream_mode="values"))
        assert values[-1]["notes"][::4] == ["a 0", "b 0", "c 0"]
    was_early(fast, accel_mode, 6)


def test_trap_23_send_order_duplicates_and_deferred_joins(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Equal `Send`s run as often as they were sent, in order; a deferred node joins after the longest way."""
    joined: list[int] = []

    def expand(state: Topic) -> Topic:
        catch_up()
        return {"queries": lines(parts.local.invoke(f"Give a numbered list on {state['topic']}"))[:2]}

    def spread(state: Topic) -> list[Send]:
        one, two = state["queries"]
        return [Send("note", {"topic": query}) for query in (two, one, two, one, one)]

    def note(state: Topic) -> Topic:
        return {"notes": [f"{state['topic']}={said(parts.local, 'Note on ' + state['topic'])}"]}

    def longer(state: Topic) -> Topic:
        catch_up()
        return {"notes": [said(parts.local, f"Longer on {state['topic']}")]}

    def join(state: Topic) -> Topic:
        catch_up()
        joined.append(len(state["notes"]))
        return {"answer": said(parts.local, "Join " + " | ".join(state["notes"]))}

    graph = StateGraph(Topic)
    for node in (expand, note, longer):
        graph.add_node(node)
    graph.add_node("more", lambda state: {"notes": [said(parts.local, f"More on {state['topic']}")]})
    graph.add_node("join", join, defer=True)
    graph.add_edge(START, "expand")
    graph.add_edge(START, "longer")
    graph.add_edge("longer", "more")
    graph.add_conditional_edges("expand", spread, ["note"])
    for name in ("note", "more"):
        graph.add_edge(name, "join")
    fast = graph.compile()
    for topic in TOPICS:
        found = fast.invoke({"topic": topic})
        one, two = found["queries"]
        sent = [text.split("=")[0] for text in found["notes"] if "=" in text]
        assert sent == [two, one, two, one, one]
    compared(joined)
    assert joined == [7] * len(TOPICS)
    was_early(fast, accel_mode, 4)


class Checked(BaseModel):
    topic: str
    words: int = Field(default=3, ge=1)
    tags: list[str] = Field(default_factory=lambda: ["fresh"])
    answer: str = ""
    notes: Annotated[list[str], operator.add] = []

    @field_validator("topic")
    @classmethod
    def stripped(cls, value: str) -> str:
        if "forbidden" in value:
            raise ValueError("not this topic")
        return value.strip().title()


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    owner: str


def test_trap_24_pydantic_validators_and_defaults(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Nodes get what validators made of the input, defaults are made anew, and a bad input raises before any node."""

    def first(state: Checked) -> dict[str, Any]:
        catch_up()
        state.tags.append(said(parts.local, f"Tag {state.topic} in {state.words} words"))
        return {"notes": state.tags}

    def second(state: Checked) -> dict[str, Any]:
        catch_up()
        return {"answer": said(parts.local, f"Answer {state.topic} in {state.words}"), "topic": f" {state.topic} "}

    graph = StateGraph(Checked)
    graph.add_sequence([first, second])
    graph.add_edge(START, "first")
    fast = graph.compile()
    for number, topic in enumerate(TOPICS):
        given: Any = {"topic": f"  {topic}"} | ({"words": number} if number else {})
        found = fast.invoke(given)
        assert found["notes"][0] == "fresh" and len(found["notes"]) == 2
    for bad in ({"topic": "forbidden"}, {"topic": "quartz", "words": 0}):
        with pytest.raises(ValueError) as caught:
            fast.invoke(bad)  # type: ignore[arg-type]
        compared(str(caught.value))
    assert not asked(parts, "orbidden")
    was_early(fast, accel_mode, 2)


def test_trap_24_injected_state(parts: Parts, accel_mode: str) -> None:
    """A tool is given the state of its own call, not that of an earlier run."""

    @tool
    def look(query: str, owner: Annotated[str, InjectedState("owner")]) -> str:
        """Look something up."""
        catch_up()
        return said(parts.local, f"Look {query} up for {owner}")

    def agent(state: Chat) -> dict[str, Any]:
        catch_up()
        query = said(parts.local, f"Query for {state['messages'][0].content}")
        return {"messages": [AIMessage("", tool_calls=[{"name": "look", "args": {"query": query}, "id": "1"}])]}

    def end(state: Chat) -> dict[str, Any]:
        catch_up()
        return {"messages": [parts.local.invoke(f"End {state['messages'][-1].content}")]}

    graph = StateGraph(Chat)
    graph.add_node(agent)
    graph.add_node("tools", ToolNode([look]))
    graph.add_node(end)
    for edge in ((START, "agent"), ("agent", "tools"), ("tools", "end"), ("end", END)):
        graph.add_edge(*edge)
    fast = graph.compile()
    for number, topic in enumerate(TOPICS):
        found = fast.invoke({"messages": [("human", topic)], "owner": f"owner {number}"})
        assert f"owner {number}" in asked(parts, f"for owner {number}")[0]
        assert found["owner"] == f"owner {number}"
    was_early(fast, accel_mode, 2)
