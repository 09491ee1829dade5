"""Programs that a person answers by `interrupt()`, in every place where people ask; and a checkpointer on SQLite."""

from __future__ import annotations

import operator
import pickle
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

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
    "in a subgraph": Shape(in_a_subgraph, (told(),), {(0, "draft"): ("Check",), (1, "write"): ("Sign",)}),
    "in a graph that a node runs": Shape(in_a_graph_that_a_node_runs, (told(),), {
        (0, "outer"): ("Plan",), (1, "write"): ("Sign",)}),
    "beside other nodes": Shape(beside_others, (told(),), {(0, "look"): ("Look again",)}, beside=True),
    "in items": Shape(in_items, (by_id,), beside=True),
    "in items, one after the other": Shape(in_items, (first_by_id, first_by_id), beside=True),
    "in an entrypoint": Shape(in_an_entrypoint, (told(),), {(0, "letter"): ("Name",), (1, "letter"): ("Title", "Sign")},
                              given=lambda topic: topic),
    "with the state edited": Shape(between_calls, (edited,), {(0, "plan"): ("Name",)}),
}  # fmt: skip
