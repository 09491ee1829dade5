"""Random LangGraph programs: real source text over the fakes, made from a seed, so that call sites are real lines."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType
from typing import Any

from compat_tests.answers import WORDS
from compat_tests.blocks import Lines, Writer, batch, indent, mutate, parallel
from compat_tests.boundaries import ALL_BLOCKS, PAUSES_BLOCKS, REFUSALS, TENANTS_BLOCKS
from compat_tests.prelude import PRELUDE
from compat_tests.surroundings import Setting


@lru_cache(maxsize=2)
def compiled(source: str, filename: str) -> CodeType:
    """Both arms, and all tenants, run the same code."""
    return compile(source, filename, "exec", dont_inherit=True)


@dataclass(frozen=True)
class Request:
    """One input of a program, and what is around the call."""

    question: str
    items: tuple[str, ...]
    tenant: str
    user: str
    mode: str  # invoke | values | updates
    cut: str = ""
    """Where the run is cut off: "close 2", after two chunks of the stream; "keep 2", then it is no longer read, but not
    closed; "cancel 3", after three answers; "timeout 4", after so many milliseconds. "fork": it is not, and a forked
    child runs it once more."""
    request_id: str = ""
    """Data of this request beside its input."""
    resumes: bool = True
    """Whether it goes on after an interrupt."""


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
    setting: Setting = Setting()

    @property
    def keeps_state(self) -> bool:
        """Whether one run of it can change another, so that runs must not overlap."""
        return keeps_state(self.uses, self.setting)

    @property
    def source(self) -> str:
        functions = [line for node in self.nodes for line in node.lines()]
        return "\n".join([PRELUDE, "", *functions, "def build():", *indent(list(self.wiring)), ""])

    def build(self, namespace: dict[str, object]) -> Any:
        """Compiles the source among the given components, under a file name that tracebacks and call sites can show."""
        filename, source = f"/programs/program_{self.seed}.py", self.source
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        scope: dict[str, Any] = {"__name__": f"program_{self.seed}", **namespace}
        exec(compiled(source, filename), scope)
        return scope["build"]()

    def smaller(self) -> list[Program]:
        """Every program with one block or one request less."""
        found = []
        for i, request in enumerate(self.requests):
            if len(self.requests) > 1:
                found.append(replace(self, requests=tuple(r for r in self.requests if r is not request)))
            if request.mode != "invoke":
                of_streams = request.cut.startswith(("close", "keep"))
                simple = replace(request, mode="invoke", cut="" if of_streams else request.cut)
                found.append(replace(self, requests=(*self.requests[:i], simple, *self.requests[i + 1 :])))
            if request.cut:
                whole = replace(request, cut="")
                found.append(replace(self, requests=(*self.requests[:i], whole, *self.requests[i + 1 :])))
        settings = [replace(self.setting, cache="none"), replace(self.setting, limited="")]
        if "caller" not in self.uses:
            settings.append(replace(self.setting, callers="none"))
        for without in settings:
            if without != self.setting:
                found.append(replace(self, setting=without))
        for i, node in enumerate(self.nodes):
            for j in range(len(node.blocks)):
                less = replace(node, blocks=node.blocks[:j] + node.blocks[j + 1 :])
                found.append(replace(self, nodes=(*self.nodes[:i], less, *self.nodes[i + 1 :])))
        return found


def keeps_state(uses: Collection[str], setting: Setting) -> bool:
    return bool(setting.cache != "none" or {*uses} & {"writes", "scripted", "fields", "keys", "counter", "sampled"})


def generate(seed: int) -> Program:
    return Generator(random.Random(seed)).program(seed)


class Generator:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.is_async = rng.random() < 0.4
        self.setting = Setting(
            tenancy=rng.choices(["one", "context", "scopes", "fresh"], [12, 4, 3, 1])[0],
            cache=rng.choices(["none", "model", "global", "nodes"], [20, 1, 1, 1])[0],
            limited=rng.choices(
                ["", "local counted", "local timed", "remote counted", "remote timed"], [20, 1, 1, 1, 1]
            )[0],
            pauses=rng.random() < 0.2,
            numbered=rng.random() < 0.4,
            callers=rng.choices(["none", "variable", "runtime"], [3, 1, 1])[0],
        )
        if self.setting.cache == "nodes":  # nothing is found there that is not asked for again
            self.setting = replace(self.setting, numbered=False)
        # Who comes first to a cache is a matter of time.
        self.side_by_side = self.setting.cache not in ("model", "global")
        self.sampling = rng.random() < 0.15 and self.setting.cache == "none"
        self.gated = False
        self.awaits_all = self.is_async
        self.nodes: list[Node] = []
        schema = ", context_schema=Caller" if self.setting.callers == "runtime" else ""
        self.wiring: Lines = [f"graph = StateGraph(State{schema})"]
        self.uses: set[str] = set()

    def program(self, seed: int) -> Program:
        exits: list[str] = []
        budget = self.rng.choice([1, 1, 1, 2, 2, 2, 2, 3, 3, 4])
        crowded = False
        while budget > 0:
            layers: list[tuple[Callable[[list[str]], list[str]], int]] = [(self.single, 1)] * 3 + [(self.looping, 1)]
            if budget >= 2 and self.rng.random() < (0.7 if self.setting.pauses and not exits else 0.4):
                layers = [(self.guard, 1)] if not exits else [*layers, (self.guard, 1)]
            if not self.side_by_side:
                pass
            elif exits and not crowded and budget >= 3:
                layers += [(self.beside, 2), (self.choice, 2), (self.spread, 2)]
            elif exits and not crowded and budget == 2:
                layers += [(self.spread, 2)]
            layer, cost = self.rng.choice(layers)
            crowded = layer in (self.beside, self.spread)
            if crowded:
                self.uses |= {"concurrent", "siblings"}
            exits = layer(exits)
            budget -= cost
        self.connect(exits, ["END"])
        self.wiring.append("return graph.compile(**compile_options)")
        nodes, wiring, uses = tuple(self.nodes), tuple(self.wiring), frozenset(self.uses)
        return Program(seed, self.is_async, nodes, wiring, self.requests(), uses, self.setting)

    def connect(self, sources: list[str], targets: list[str]) -> None:
        for source in sources or ["START"]:
            for target in targets:
                self.wiring.append(f"graph.add_edge({quoted(source)}, {quoted(target)})")

    def node(self, *, solo: bool, tail: tuple[str, ...] = (), blocks: tuple[int, ...] = (1, 1, 2, 2, 3, 4)) -> str:
        name = f"node_{'abcdefghij'[len([n for n in self.nodes if 'node_' in n.head[0]])]}"
        is_async = self.is_async and self.rng.random() < 0.85
        self.awaits_all &= is_async
        # Nodes side by side may ask for the same thing: which of them got which sample couldn't be replayed.
        writer = self.writer(is_async, solo, self.sampling and solo)
        made = [tuple(writer.block()) for _ in range(self.rng.choice(blocks))]
        self.uses |= writer.uses
        notes = f'"notes": [{writer.texts[-1]}, *{writer.lists[-1]}]'
        returned = f'"text": {writer.text()}, "items": {writer.list()}, {notes}' if solo else notes
        runtime = ", runtime: Runtime[Caller]" if self.setting.callers == "runtime" else ""
        head = (
            f"{'async ' if is_async else ''}def {name}(state, config: RunnableConfig{runtime}):",
            f'key = run_here() + "/{name}" + state.get("index", "")',
            'question, text, items = state["question"], state["text"], state["items"]',
        )
        if not solo or self.rng.random() < 0.7:
            head = (*head, "items = list(items)")
        self.nodes.append(Node(head, tuple(made), (*tail, f"return {{{returned}}}")))
        retry = ", retry_policy=RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=2, retry_on=ModelError)"
        stumbles = any("stumble_once" in line for block in made for line in block)
        wanted = retry if (stumbles and self.rng.random() < 0.8) or (stumbles and not solo) else ""
        cached = self.setting.cache == "nodes" and self.rng.random() < 0.5
        policy = ", cache_policy=CachePolicy(key_func=asked_of)" if cached else ""
        self.wiring.append(f"graph.add_node({name!r}, {name}{wanted}{policy})")
        return name

    def writer(self, is_async: bool, solo: bool, sampling: bool) -> Writer:
        menu = ALL_BLOCKS if self.setting.tenancy == "one" else TENANTS_BLOCKS
        menu = {**menu, **PAUSES_BLOCKS} if self.setting.pauses else menu
        left_out = [parallel, batch] if not self.side_by_side else []
        if self.setting.cache == "nodes":
            left_out = [mutate]  # LangGraph writes to its cache while the next node runs
        menu = {block: weight for block, weight in menu.items() if block not in left_out}
        return Writer(self.rng, is_async, solo, sampling, self.setting, self.gated, menu)

    def guard(self, exits: list[str]) -> list[str]:
        """A node that does nothing but stop some requests; declared to be a guard, or not."""
        name = f"guard_{len(self.wiring)}"
        how = self.rng.choice(["raises", "interrupts"] if self.setting.pauses else ["raises", "goes elsewhere"])
        declared = ", metadata={'guard': True}" if self.rng.random() < 0.7 else ""
        stop = ['if "STOP" in state["question"]:', f"    {REFUSALS[how]}"] if how in REFUSALS else []
        self.function(name, ['question = state["question"]', *stop], f"return {{'notes': [{name!r}]}}")
        self.wiring.append(f"graph.add_node({name!r}, {name}{declared})")
        self.connect(exits, [name])
        if how in REFUSALS:
            self.gated |= bool(declared)
            return [name]
        after, route = f"after_{name}", f"route_{name}"
        self.function(route, [], f'return END if "STOP" in state["question"] else {after!r}', may_await=False)
        self.wiring.append(f"graph.add_node({after!r}, lambda state: {{'notes': [{after!r}]}})")
        self.wiring.append(f"graph.add_conditional_edges({name!r}, {route}, [{after!r}, END])")
        return [after]

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
            blocks=tuple(tuple(map(with_round, block)) for block in self.nodes[-1].blocks),
            tail=tuple(map(with_round, self.nodes[-1].tail)),
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
        writer = self.writer(self.is_async, True, False)
        writer.texts = ["text"]
        if self.rng.random() < 0.4:
            verdict = writer.ask("local", writer.prompt("text", want="yes or no")) + ".content"
        else:
            verdict = "text"
        body = ['key, text, items = run_here() + "/route", state["text"], state["items"]', f"verdict = {verdict}"]
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
                f'sends = [Send({name!r}, {{"index": str(index), "question": state["question"],',
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
        again = 0.5 if self.setting.cache == "nodes" else 0.25
        for position in range(
            rng.choice([6, 7, 8] if self.setting.tenancy == "one" else [5, 6]) + ("gated" in self.uses)
        ):
            if made and rng.random() < again:
                before = rng.choice(made)
                made.append(replace(before, cut=self.cut(before.mode)))
                continue
            tenant = rng.choice("aab" if self.setting.tenancy == "one" else "ab")
            mark = f"zq{tenant}{position + 1}"
            first, second = rng.sample(WORDS, 2)
            question = f"{rng.choice(['what is', 'how does', 'why'])} {first}{rng.randrange(1000)} {mark}q {second}"
            if position >= 2 and rng.random() < 0.3:
                question += f" mail bob{rng.randrange(1000)}@corp.example"
            if position >= 2 and rng.random() < (0.4 if self.gated else 0.2):
                question += f" STOP secret{rng.randrange(1000)}"
            items = [
                f"{rng.choice(WORDS)} {rng.choice([str(rng.randrange(100)), mark + letter])}"
                for letter in "abc"[: rng.choice([0, 1, 2, 2, 3])]
            ]
            mode = rng.choice(["invoke", "invoke", "values", "updates"])
            user, resumes = rng.choice(["ann", "ben"]), rng.random() < 0.7
            cut = self.cut(mode) if made else ""
            made.append(Request(question, tuple(items), tenant, user, mode, cut, f"{mark}r", resumes))
        return tuple(made)

    def cut(self, mode: str) -> str:
        """Where a run may be cut off so that it is not a matter of time what it has changed by then."""
        if self.rng.random() < (0.6 if self.awaits_all else 0.8):
            return ""
        keeps = keeps_state(self.uses, self.setting) or bool(self.setting.limited)
        ways = []
        orderly = "concurrent" not in self.uses or (mode == "values" and not keeps)
        if mode != "invoke" and self.setting.cache != "nodes" and orderly:
            ways.append(f"{self.rng.choice(['close', 'keep'])} {self.rng.choice([1, 1, 2, 3])}")
        if self.awaits_all and not keeps:
            ways += [f"cancel {self.rng.randrange(1, 9)}"] * 2 + [f"timeout {self.rng.randrange(1, 30)}"]
        if not self.is_async and "sampled" not in self.uses and not self.setting.limited:
            ways.append("fork" if self.rng.random() < 0.5 else "")
        return self.rng.choice(ways) if ways else ""


def with_round(line: str) -> str:
    return line.replace("return {", 'return {"rounds": state.get("rounds", 0) + 1, ', 1)


def quoted(name: str) -> str:
    return name if name in ("START", "END") else repr(name)
