"""Programs that a person answers by `interrupt()`, in every place where people ask; and a checkpointer on SQLite."""

from __future__ import annotations

import asyncio
import json
import operator
import pickle
import sqlite3
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

import accel
from adapters.tests.agent_programs import Called, Scripted, rounds_of
from adapters.tests.core_fakes import Chat, World

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "deserts of Chile", "rivers of Peru")


class SqliteSaver(InMemorySaver):
    """Keeps everything in a file, for whoever opens it next."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._rows = sqlite3.connect(path, check_same_thread=False)
        self._rows.execute("create table if not exists kept (id integer primary key, what blob)")
        for (what,) in self._rows.execute("select what from kept"):
            storage, writes, blobs = pickle.loads(what)
            for thread, spaces in storage.items():
                for space, checkpoints in spaces.items():
                    self.storage[thread][space] = checkpoints
            self.writes.update(writes)
            self.blobs.update(blobs)

    def _keep(self) -> None:
        storage = {thread: {space: dict(rest) for space, rest in held.items()} for thread, held in self.storage.items()}
        what = pickle.dumps((storage, dict(self.writes), dict(self.blobs)))
        self._rows.execute("insert or replace into kept values (1, ?)", (what,))
        self._rows.commit()

    def put(self, *given: Any, **named: Any) -> Any:
        with self._lock:
            kept = super().put(*given, **named)
            self._keep()
        return kept

    def put_writes(self, *given: Any, **named: Any) -> None:
        with self._lock:
            super().put_writes(*given, **named)
            self._keep()

    def close(self) -> None:
        self._rows.close()


class AwaitedChat(Chat):
    """Asked by coroutines."""

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return self._result(messages, kwargs)


accel.register(AwaitedChat, pure=True, local=True, concurrency=8)


class State(TypedDict, total=False):
    q: str
    a: str
    b: str
    c: str
    d: str
    found: Annotated[list[str], operator.add]


Say = Callable[[str], str]
Turn = Callable[[str, Sequence[Any]], Any]
"""What a conversation goes on with: by its topic, and the questions that are open."""


@dataclass(frozen=True)
class Shape:
    """A program, what answers it, and which calls have to be early, by turn and by the node that they are early in."""

    build: Callable[[World, Say, Any], Any]
    turns: tuple[Turn, ...]
    early: Mapping[tuple[int, str], Sequence[str]] = field(default_factory=dict)
    given: Callable[[str], Any] = lambda topic: {"q": topic}
    beside: bool = False
    """Nodes run side by side: what a run gives before it pauses comes in any order, and so does that it pauses."""


def told(number: int = 0) -> Turn:
    return lambda topic, _: Command(resume=f"{number} reader {topic[:4]}")


def by_id(topic: str, asked: Sequence[Any]) -> Any:
    return Command(resume={each.id: f"reader {topic[:4]} of {each.value}" for each in asked})


def agreed(*_: Any) -> Any:
    return Command(resume="yes")


def first_by_id(topic: str, asked: Sequence[Any]) -> Any:
    return Command(resume={asked[0].id: f"reader {topic[:4]} of {asked[0].value}"})


def saying(world: World, asked: list[str]) -> Say:
    """Ask a model, and note in which order the program does."""
    model = Chat(world)

    def say(text: str) -> str:
        asked.append(text)
        return str(model.invoke(text).content)

    return say


def row(saver: Any, *nodes: Any, **options: Any) -> Any:
    builder = StateGraph(State)
    builder.add_sequence(list(nodes))
    builder.add_edge(START, nodes[0][0] if isinstance(nodes[0], tuple) else nodes[0].__name__)
    return builder.compile(saver, **options)


def plan(world: World, say: Say) -> Any:
    def plan(state: State) -> State:
        world.node("plan")
        return {"a": say(f"Plan {state['q']}")}

    return plan


def judge(world: World, say: Say) -> Any:
    def judge(state: State) -> State:
        world.node("judge")
        return {"d": say(f"Judge {state['b']} of {state['q']}")}

    return judge


def at_the_start(world: World, say: Say, saver: Any) -> Any:
    def approve(state: State) -> State:
        world.node("approve")
        answer = interrupt(state["a"])
        written = say(f"Write {state['a']}, as {answer}")
        return {"b": written + say(f"Sign {state['q']}, as {answer}")}

    return row(saver, plan(world, say), approve, judge(world, say))


def between_calls(world: World, say: Say, saver: Any) -> Any:
    def approve(state: State) -> State:
        world.node("approve")
        summary = say(f"Sum up {state['a']}") + say(f"Name {state['q']}")
        answer = interrupt(summary)
        written = say(f"Write {state['a']}, as {answer}")
        return {"b": written + say(f"Sign {state['q']}, as {answer}")}

    return row(saver, plan(world, say), approve, judge(world, say))


def after_calls(world: World, say: Say, saver: Any) -> Any:
    def approve(state: State) -> State:
        world.node("approve")
        summary = say(f"Sum up {state['a']}") + say(f"Name {state['q']}")
        return {"b": interrupt(summary)}

    def note(state: State) -> State:
        world.node("note")
        return {"c": say(f"Note {state['b']} on {state['q']}")}

    return row(saver, plan(world, say), approve, note, judge(world, say))


def twice(world: World, say: Say, saver: Any) -> Any:
    def approve(state: State) -> State:
        world.node("approve")
        first = interrupt(say(f"Sum up {state['a']}"))
        written = say(f"Write {state['a']}, as {first}") + say(f"Title {state['q']}, as {first}")
        second = interrupt(written)
        return {"b": say(f"Sign {state['q']}, as {first} and {second}") + say(f"Send {state['a']}, as {second}")}

    return row(saver, plan(world, say), approve, judge(world, say))


def in_a_subgraph(world: World, say: Say, saver: Any) -> Any:
    def draft(state: State) -> State:
        world.node("draft")
        return {"a": say(f"Draft {state['q']}")}

    def check(state: State) -> State:
        world.node("check")
        return {"c": say(f"Check {state['q']}")}

    def approve(state: State) -> State:
        world.node("approve")
        return {"b": interrupt(state["a"])}

    def write(state: State) -> State:
        world.node("write")
        return {"b": say(f"Write {state['a']}, as {state['b']}") + say(f"Sign {state['q']}, as {state['b']}")}

    inner = row(None, draft, check, approve, write)
    return row(saver, ("inner", inner), judge(world, say))


def in_a_graph_that_a_node_runs(world: World, say: Say, saver: Any) -> Any:
    def approve(state: State) -> State:
        world.node("approve")
        return {"b": interrupt(say(f"Sum up {state['a']}"))}

    def write(state: State) -> State:
        world.node("write")
        return {"c": say(f"Write {state['a']}, as {state['b']}") + say(f"Sign {state['q']}, as {state['b']}")}

    inner = row(None, plan(world, say), approve, write)

    def outer(state: State) -> State:
        world.node("outer")
        before = say(f"Before {state['q']}")
        return {"b": before + inner.invoke({"q": state["q"]})["c"]}

    return row(saver, outer, judge(world, say))


def beside_others(world: World, say: Say, saver: Any) -> Any:
    def approve(state: State) -> State:
        world.node("approve")
        return {"a": interrupt(state["q"])}

    def look(state: State) -> State:
        world.node("look")
        first = say(f"Look at {state['q']}")
        return {"b": first + say(f"Look again at {state['q']}")}

    builder = StateGraph(State)
    builder.add_node("approve", approve)
    builder.add_node("look", look)
    builder.add_node("judge", judge(world, say))
    for name in ("approve", "look"):
        builder.add_edge(START, name)
    builder.add_edge(["approve", "look"], "judge")
    builder.add_edge("judge", END)
    return builder.compile(saver)


def both_of_two(world: World, say: Say, saver: Any) -> Any:
    """Nodes side by side ask somebody each, with a call before and two after it."""

    def asks(name: str, key: str) -> Any:
        def node(state: State) -> State:
            world.node(name)
            answer = interrupt(f"{name}: " + say(f"{name} on {state['q']}"))
            return {key: say(f"{name} heard {answer}") + say(f"{name} of {state['q']} says {answer}")}  # type: ignore[misc]

        return node

    builder = StateGraph(State)
    builder.add_node("plan", plan(world, say))
    builder.add_node("one", asks("one", "b"))
    builder.add_node("two", asks("two", "c"))
    builder.add_node("judge", judge(world, say))
    builder.add_edge(START, "plan")
    for name in ("one", "two"):
        builder.add_edge("plan", name)
    builder.add_edge(["one", "two"], "judge")
    builder.add_edge("judge", END)
    return builder.compile(saver)


def until_it_is_right(world: World, say: Say, saver: Any) -> Any:
    """What somebody refuses is written again, in the light of that."""

    def write(state: State) -> State:
        world.node("write")
        return {"a": say(f"Write on {state['q']}, better than {state.get('a')}, as {state.get('b')}")}

    def approve(state: State) -> Command[Any]:
        world.node("approve")
        checked = say(f"Check {state['a']}") + say(f"Look up {state['q']}")
        answer = interrupt(checked)
        return Command(goto="judge" if answer.startswith("1") else "write", update={"b": answer})

    builder = StateGraph(State)
    builder.add_node("write", write)
    builder.add_node("approve", approve, destinations=("write", "judge"))
    builder.add_node("judge", judge(world, say))
    builder.add_edge(START, "write")
    builder.add_edge("write", "approve")
    builder.add_edge("judge", END)
    return builder.compile(saver)


def sometimes(world: World, say: Say, saver: Any) -> Any:
    """Somebody is asked of glaciers and rivers only, and what follows is the same either way."""

    def approve(state: State) -> State:
        world.node("approve")
        named = say(f"Name {state['q']}")
        answer = interrupt(named) if state["q"][0] in "gr" else "nobody"
        return {"b": say(f"Sign {state['q']}, as {answer}") + say(f"Send {state['a']}, as {answer}")}

    return row(saver, plan(world, say), approve, judge(world, say))


def caught(world: World, say: Say, saver: Any) -> Any:
    """A node that takes a question for an error goes on."""

    def approve(state: State) -> State:
        world.node("approve")
        try:
            answer = interrupt(say(f"Name {state['q']}"))
        except Exception:  # noqa: BLE001  as people write it
            answer = "nobody"
        return {"b": say(f"Sign {state['q']}, as {answer}") + say(f"Send {state['a']}, as {answer}")}

    return row(saver, plan(world, say), approve, judge(world, say))


def in_a_tool(world: World, say: Say, saver: Any) -> Any:
    def book(query: str) -> str:
        """Book something."""
        world.node("book")
        price = say(f"Price of {query}") + say(f"Name {query}")
        answer = interrupt(price)
        return say(f"Book {query}, as {answer}") + say(f"Mail on {query}, as {answer}")

    def script(messages: Sequence[Any], tools: list[str]) -> Called:
        done = rounds_of(messages)
        return [("book", {"query": f"{messages[0].content} {done}"})] if done < 2 else []

    return create_agent(Scripted(world, script=script), [tool(book)], checkpointer=saver)


def before_a_tool(world: World, say: Say, saver: Any) -> Any:
    """The agent's framework asks whether a tool may be called."""

    def book(query: str) -> str:
        """Book something."""
        world.node("book")
        return say(f"Price of {query}") + say(f"Name {query}")

    def script(messages: Sequence[Any], tools: list[str]) -> Called:
        return [("book", {"query": f"a trip to {messages[0].content}"})] if not rounds_of(messages) else []

    asks = HumanInTheLoopMiddleware(interrupt_on={"book": True})
    return create_agent(Scripted(world, script=script), [tool(book)], middleware=[asks], checkpointer=saver)


def a_graph_inside_pauses(world: World, say: Say, saver: Any) -> Any:
    def draft(state: State) -> State:
        world.node("draft")
        return {"a": say(f"Draft {state['q']}"), "c": say(f"Check {state['q']}")}

    def write(state: State) -> State:
        world.node("write")
        return {"b": say(f"Write {state['a']}") + say(f"Sign {state['q']}")}

    return row(saver, ("inner", row(None, draft, write, interrupt_before=["write"])), judge(world, say))


def awaited(world: World, saver: Any, early: Mapping[str, Sequence[str]]) -> Any:
    """`between_calls` of coroutines, which wait in a node until these calls are early."""
    model = AwaitedChat(world)

    async def say(text: str) -> str:
        return str((await model.ainvoke(text)).content)

    async def node(name: str) -> None:
        assert await asyncio.to_thread(accel.settle)
        for text in early.get(name, ()):
            await asyncio.to_thread(world.wait_early, text, False)

    async def plan(state: State) -> State:
        await node("plan")
        return {"a": await say(f"Plan {state['q']}")}

    async def approve(state: State) -> State:
        await node("approve")
        summary = await say(f"Sum up {state['a']}") + await say(f"Name {state['q']}")
        answer = interrupt(summary)
        written = await say(f"Write {state['a']}, as {answer}")
        return {"b": written + await say(f"Sign {state['q']}, as {answer}")}

    return row(saver, plan, approve)


def in_items(world: World, say: Say, saver: Any) -> Any:
    """Of three items two are asked for: answered one after the other."""

    def item(state: Any) -> State:
        number, q = state["number"], state["q"]
        world.node(f"item {number}")
        kept = say(f"Item {number} of {q}")
        answer = interrupt(f"item {number}") if number else "nobody"
        return {"found": [say(f"Note on {number} of {q}: {kept}, as {answer}")]}

    def join(state: State) -> State:
        world.node("join")
        return {"b": say("Join " + ", ".join(state["found"]))}

    builder = StateGraph(State)
    builder.add_node("plan", plan(world, say))
    builder.add_node("item", item)
    builder.add_node("join", join)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan", lambda state: [Send("item", {"number": n, "q": state["q"]}) for n in range(3)], ["item"]
    )
    builder.add_edge("item", "join")
    return builder.compile(saver)


def in_an_entrypoint(world: World, say: Say, saver: Any) -> Any:
    @task
    def draft(topic: str) -> str:
        return say(f"Draft {topic}")

    @task
    def sign(topic: str, answer: str) -> str:
        return say(f"Sign {topic}, as {answer}")

    @entrypoint(checkpointer=saver)
    def letter(topic: str) -> dict[str, str]:
        world.node("letter")
        text = draft(topic).result() + say(f"Name {topic}")
        answer = interrupt(text)
        title = say(f"Title {topic}, as {answer}")
        return {"text": text, "title": title, "sign": sign(topic, answer).result()}

    return letter


def edited(topic: str, _: Sequence[Any]) -> Any:
    return Command(resume=f"reader {topic[:4]}", update={"q": f"edited {topic}"})


def asked_of_agent(topic: str) -> Any:
    return {"messages": [HumanMessage(topic, id=f"asked-{topic}")]}


def approved(*_: Any) -> Any:
    return Command(resume={"decisions": [{"type": "approve"}]})


SHAPES: dict[str, Shape] = {
    "at the start of a node": Shape(at_the_start, (told(),), {(1, "approve"): ("Sign",)}),
    "between calls": Shape(between_calls, (told(),), {
        (0, "plan"): ("Sum up", "Name"), (1, "approve"): ("Name", "Write", "Sign")}),
    "after calls": Shape(after_calls, (told(),), {
        (0, "plan"): ("Sum up", "Name"), (1, "approve"): ("Name", "Note", "Judge")}),
    "twice in one node": Shape(twice, (told(1), told(2)), {
        (1, "approve"): ("Write", "Title"), (2, "approve"): ("Write", "Title", "Sign", "Send")}),
    "twice, answered by id": Shape(twice, (by_id, by_id), {
        (1, "approve"): ("Write", "Title"), (2, "approve"): ("Write", "Title", "Sign", "Send")}),
    "twice, answered alike": Shape(twice, (agreed, agreed), {
        (1, "approve"): ("Write", "Title"), (2, "approve"): ("Write", "Title", "Sign", "Send")}),
    "in a subgraph": Shape(in_a_subgraph, (told(),), {(0, "draft"): ("Check",), (1, "write"): ("Sign",)}),
    "in a graph that a node runs": Shape(in_a_graph_that_a_node_runs, (told(),), {
        (0, "outer"): ("Plan",), (1, "write"): ("Sign",)}),
    "beside other nodes": Shape(beside_others, (told(),), {(0, "look"): ("Look again",)}, beside=True),
    "in items": Shape(in_items, (by_id,), beside=True),
    "in items, one after the other": Shape(in_items, (first_by_id, first_by_id), beside=True),
    "in an entrypoint": Shape(in_an_entrypoint, (told(),), {(0, "letter"): ("Name",), (1, "letter"): ("Title", "Sign")},
                              given=lambda topic: topic),
    "both of two nodes": Shape(both_of_two, (by_id,), {(0, "plan"): ("one on", "two on")}, beside=True),
    "both of two nodes, one after the other": Shape(both_of_two, (first_by_id, first_by_id), beside=True),
    "until it is right": Shape(until_it_is_right, (told(0), told(1)), {
        (0, "write"): ("Look up",), (1, "write"): ("Look up",)}),
    "sometimes": Shape(sometimes, (told(),), {(0, "plan"): ("Name",)}),
    "caught": Shape(caught, (), {(0, "plan"): ("Name", "Sign")}),
    "in a tool of an agent": Shape(in_a_tool, (told(1), told(2)), {
        (0, "book"): ("Name",), (1, "book"): ("Mail",), (2, "book"): ("Mail",)}, given=asked_of_agent),
    "before a tool of an agent": Shape(before_a_tool, (approved,), {(1, "book"): ("Name",)}, given=asked_of_agent),
    "a graph inside pauses": Shape(a_graph_inside_pauses, (lambda *_: None,), {
        (0, "draft"): ("Check",), (1, "write"): ("Sign",)}),
    "with the state edited": Shape(between_calls, (edited,), {(0, "plan"): ("Name",)}),
}  # fmt: skip


def expect(world: World, shape: Shape, turn: int) -> None:
    """Have the program wait in its nodes until the calls are early that the shape names."""
    world.hooks = {
        node: (lambda texts=texts: [world.wait_early(text, over=False) for text in texts])  # type: ignore[misc]
        for (number, node), texts in shape.early.items()
        if number == turn
    }


def told_of(result: Any) -> Any:
    return {key: value for key, value in result.items() if key != "__interrupt__"}


def go_on(kept: str, plan: str, kind: str) -> list[Any]:
    """In a process that knows a plan and a checkpointer's file: goes on with the last conversation, which waits for an
    answer, and begins another one. Of each what came of it, and what reached the model."""
    shape, world = SHAPES[kind], World()
    fast: Any = accel.accelerate(shape.build(world, saying(world, []), SqliteSaver(Path(kept))), plan=plan)
    found = []
    for turn, topic, given in ((1, TOPICS[-1], shape.turns[0](TOPICS[-1], [])), (0, OTHER, shape.given(OTHER))):
        world.forget()
        expect(world, shape, turn)
        result = fast.invoke(given, {"configurable": {"thread_id": topic}})
        assert accel.settle()
        found.append([told_of(result), sorted(world.texts())])
    return found


OTHER = "islands of Greece"

if __name__ == "__main__":
    sys.stdout.write(json.dumps(go_on(*sys.argv[1:])))
