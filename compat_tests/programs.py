"""Random LangGraph programs: real source text over the fakes, made from a seed, so that call sites are real lines."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from compat_tests.answers import WORDS
from compat_tests.blocks import Lines, Writer, indent

PRELUDE = """
import asyncio
import json
import operator
import re
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Annotated, Any, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, Send

from compat_tests.answers import ModelError
from compat_tests.fakes import TENANT

parse_json = JsonOutputParser()


class State(TypedDict, total=False):
    run: str
    index: str
    question: str
    text: str
    items: list[str]
    rounds: int
    notes: Annotated[list[str], operator.add]


def lines(answer):
    return [line.strip() for line in answer.splitlines() if line.strip()]


def numbered(answer):
    return [re.sub(r"^\\d+[.)]\\s*", "", line) for line in lines(answer) if line[:1].isdigit()]


def bullets(answer):
    return [line[2:] for line in lines(answer) if line.startswith("- ")]


def commas(answer):
    return [part.strip() for part in answer.split(",")]


def json_items(answer):
    try:
        return json.loads(answer)["items"]
    except ValueError:
        return []
"""


@dataclass(frozen=True)
class Request:
    """One input of a program, and what is around the call."""

    question: str
    items: tuple[str, ...]
    tenant: str
    user: str
    mode: str  # invoke | values | updates


@dataclass(frozen=True)
class Node:
    """Source of one function: a head, blocks that can be dropped one by one, and a tail."""

    head: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]
    tail: tuple[str, ...]

    def lines(self) -> Lines:
        body = [line for block in self.blocks for line in block]
        return [self.head[0], *indent([*self.head[1:], *body, *self.tail]), ""]


@dataclass(frozen=True)
class Program:
    seed: int
    is_async: bool
    nodes: tuple[Node, ...]
    wiring: tuple[str, ...]
    requests: tuple[Request, ...]
    uses: frozenset[str]

    @property
    def keeps_state(self) -> bool:
        """Whether one run of it can change another, so that runs must not overlap."""
        return bool(self.uses & {"writes", "scripted", "fields", "counter", "sampled"})

    @property
    def source(self) -> str:
        functions = [line for node in self.nodes for line in node.lines()]
        return "\n".join([PRELUDE, "", *functions, "def build():", *indent(list(self.wiring)), ""])

    def build(self, namespace: dict[str, object]) -> Any:
        """Compiles the source among the given components, under a file name that tracebacks and call sites can show."""
        filename, source = f"/programs/program_{self.seed}.py", self.source
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        scope: dict[str, Any] = {"__name__": f"program_{self.seed}", **namespace}
        exec(compile(source, filename, "exec", dont_inherit=True), scope)
        return scope["build"]()

    def smaller(self) -> list[Program]:
        """Every program with one block or one request less."""
        found = []
        for i, request in enumerate(self.requests):
            if len(self.requests) > 1:
                found.append(replace(self, requests=tuple(r for r in self.requests if r is not request)))
            if request.mode != "invoke":
                simple = replace(request, mode="invoke")
                found.append(replace(self, requests=(*self.requests[:i], simple, *self.requests[i + 1 :])))
        for i, node in enumerate(self.nodes):
            for j in range(len(node.blocks)):
                less = replace(node, blocks=node.blocks[:j] + node.blocks[j + 1 :])
                found.append(replace(self, nodes=(*self.nodes[:i], less, *self.nodes[i + 1 :])))
        return found


def generate(seed: int) -> Program:
    return Generator(random.Random(seed)).program(seed)


class Generator:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.is_async = rng.random() < 0.4
        self.sampling = rng.random() < 0.15
        self.nodes: list[Node] = []
        self.wiring: Lines = ["graph = StateGraph(State)"]
        self.uses: set[str] = set()

    def program(self, seed: int) -> Program:
        exits: list[str] = []
        budget = self.rng.choice([1, 1, 2, 2, 3, 3, 4, 5])
        crowded = False
        while budget > 0:
            layers: list[tuple[Callable[[list[str]], list[str]], int]] = [(self.single, 1)] * 3 + [(self.looping, 1)]
            if exits and not crowded and budget >= 3:
                layers += [(self.beside, 2), (self.choice, 2), (self.spread, 2)]
            elif exits and not crowded and budget == 2:
                layers += [(self.spread, 2)]
            layer, cost = self.rng.choice(layers)
            crowded = layer in (self.beside, self.spread)
            if crowded:
                self.uses.add("concurrent")
            exits = layer(exits)
            budget -= cost
        self.connect(exits, ["END"])
        self.wiring.append("return graph.compile()")
        nodes, wiring, uses = tuple(self.nodes), tuple(self.wiring), frozenset(self.uses)
        return Program(seed, self.is_async, nodes, wiring, self.requests(), uses)

    def connect(self, sources: list[str], targets: list[str]) -> None:
        for source in sources or ["START"]:
            for target in targets:
                self.wiring.append(f"graph.add_edge({quoted(source)}, {quoted(target)})")

    def node(self, *, solo: bool, tail: tuple[str, ...] = (), blocks: tuple[int, ...] = (1, 1, 2, 2, 3, 4)) -> str:
        name = f"node_{'abcdefghij'[len([n for n in self.nodes if 'node_' in n.head[0]])]}"
        is_async = self.is_async and self.rng.random() < 0.85
        # Nodes side by side may ask for the same thing: which of them got which sample couldn't be replayed.
        writer = Writer(self.rng, is_async, solo, self.sampling and solo)
        made = [tuple(writer.block()) for _ in range(self.rng.choice(blocks))]
        self.uses |= writer.uses
        notes = f'"notes": [{writer.texts[-1]}, *{writer.lists[-1]}]'
        returned = f'"text": {writer.text()}, "items": {writer.list()}, {notes}' if solo else notes
        head = (
            f"{'async ' if is_async else ''}def {name}(state, config: RunnableConfig):",
            f'key = state["run"] + "/{name}" + state.get("index", "")',
            'question, text, items = state["question"], state["text"], state["items"]',
        )
        if not solo or self.rng.random() < 0.7:
            head = (*head, "items = list(items)")
        self.nodes.append(Node(head, tuple(made), (*tail, f"return {{{returned}}}")))
        retry = ", retry_policy=RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=2, retry_on=ModelError)"
        stumbles = any("stumble_once" in line for block in made for line in block)
        wanted = retry if (stumbles and self.rng.random() < 0.8) or (stumbles and not solo) else ""
        self.wiring.append(f"graph.add_node({name!r}, {name}{wanted})")
        return name

    def single(self, exits: list[str]) -> list[str]:
        name = self.node(solo=True)
        self.connect(exits, [name])
        return [name]

    def looping(self, exits: list[str]) -> list[str]:
        """A node that goes back to itself a few times, then on."""
        name = self.node(solo=True)
        again = f"again_{name}"
        self.nodes[-1] = replace(
            self.nodes[-1],
            tail=tuple(line.replace("{", '{"rounds": state.get("rounds", 0) + 1, ', 1) for line in self.nodes[-1].tail),
        )
        after = f"after_{name}"
        self.function(again, [], f'return {name!r} if state["rounds"] % 2 else {after!r}')
        self.connect(exits, [name])
        self.wiring.append(f"graph.add_node({after!r}, lambda state: {{'notes': [{after!r}]}})")
        self.wiring.append(f"graph.add_conditional_edges({name!r}, {again}, [{name!r}, {after!r}])")
        return [after]

    def beside(self, exits: list[str]) -> list[str]:
        names = [self.node(solo=False, blocks=(1, 2)) for _ in range(self.rng.choice([2, 2, 3]))]
        self.connect(exits, names)
        return names

    def choice(self, exits: list[str]) -> list[str]:
        names = [self.node(solo=True, blocks=(1, 2)) for _ in range(2)]
        route = f"route_{names[0]}"
        writer = Writer(self.rng, self.is_async, True, False, texts=["text"])
        if self.rng.random() < 0.4:
            verdict = writer.ask("local", writer.prompt("text", want="yes or no")) + ".content"
        else:
            verdict = "text"
        body = ['key, text, items = state["run"] + "/route", state["text"], state["items"]', f"verdict = {verdict}"]
        self.function(route, body, f'return {names[0]!r} if "e" in verdict else {names[1]!r}')
        for source in exits:
            self.wiring.append(f"graph.add_conditional_edges({source!r}, {route}, {names!r})")
        return names

    def spread(self, exits: list[str]) -> list[str]:
        name = self.node(solo=False, blocks=(1, 2))
        spread, after = f"spread_{name}", f"after_{name}"
        limit = self.rng.choice(["", "[:3]"])
        self.function(
            spread,
            [
                f'sends = [Send({name!r}, {{"run": state["run"], "index": str(index), "question": state["question"],',
                f'    "text": item, "items": [item]}}) for index, item in enumerate(state["items"]{limit})]',
            ],
            f"return sends or [{after!r}]",
            may_await=False,
        )
        for source in exits:
            self.wiring.append(f"graph.add_conditional_edges({source!r}, {spread}, [{name!r}, {after!r}])")
        self.wiring.append(f"graph.add_node({after!r}, lambda state: {{'notes': [{after!r}]}})")
        self.connect([name], [after])
        return [after]

    def function(self, name: str, body: Lines, tail: str, *, may_await: bool = True) -> None:
        is_async = self.is_async and may_await
        self.nodes.append(Node((f"{'async ' if is_async else ''}def {name}(state):", *body), (), (tail,)))

    def requests(self) -> tuple[Request, ...]:
        rng = self.rng
        made: list[Request] = []
        for position in range(rng.choice([4, 4, 4, 5, 6])):
            if made and rng.random() < 0.2:
                made.append(rng.choice(made))
                continue
            first, second = rng.sample(WORDS, 2)
            question = f"{rng.choice(['what is', 'how does', 'why'])} {first}{rng.randrange(1000)} {second}"
            if position >= 2 and rng.random() < 0.3:
                question += f" mail bob{rng.randrange(1000)}@corp.example"
            if position >= 2 and rng.random() < 0.2:
                question += f" STOP secret{rng.randrange(1000)}"
            items = [f"{rng.choice(WORDS)} {rng.randrange(100)}" for _ in range(rng.choice([0, 1, 2, 2, 3]))]
            mode = rng.choice(["invoke", "invoke", "values", "updates"])
            made.append(Request(question, tuple(items), rng.choice("aab"), rng.choice(["ann", "ben"]), mode))
        return tuple(made)


def quoted(name: str) -> str:
    return name if name in ("START", "END") else repr(name)
