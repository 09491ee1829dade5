"""Random programs that write, search, embed and ask: staged they give what they give plain, and tell nobody more."""

from __future__ import annotations

import asyncio
import os
import random
import time
from dataclasses import dataclass
from typing import Any

import pytest

import accel
from accel import accelerate
from accel.errors import InvalidRequest
from adapters.tests.core_fakes import Chat, Entry, State, World, chain
from adapters.tests.stage_fakes import Coroutines, Elementwise, Narrow, Remote, Together, store_with

SEEDS = int(os.environ.get("ACCEL_STAGE_PROGRAMS", "40"))
TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "rivers of Peru", "beaches of Portugal", "deserts of Chile")


class RemoteCoroutines(Remote, Coroutines):
    pass


accel.register(RemoteCoroutines, pure=True, local=False, concurrency=4, elementwise=True, twins=True)


class Shuffled(World):
    """Serves in tiny random times, so that calls end in any order; refuses some texts."""

    def __init__(self, dice: random.Random, refused: str) -> None:
        super().__init__()
        self.dice = dice
        self.refused = refused

    def serve(self, component: str, text: str) -> str:
        if self.dice.random() < 0.3:
            time.sleep(self.dice.random() * 0.001)
        if self.refused and self.refused in text:
            super().serve(component, text)
            raise InvalidRequest(f"refused: {self.refused}")
        return super().serve(component, text)


@dataclass
class Parts:
    """What a step works with. `say` notes that the embedder is about to be told something by the program itself."""

    store: Any
    model: Any
    embedding: Any
    world: World
    q: str
    said: list[Any]

    def say(self) -> None:
        with self.world.cond:
            self.world.calls.append(Entry("embed", f"told of {self.q}", early=False))


async def write(p: Parts) -> Any:
    texts = [f"note {n} on {p.q} " + "word " * (n % 5 * 4) for n in range(len(p.q) % 9 + 1)]
    p.say()
    return await p.store.aadd_texts(texts, ids=[f"{n % 4} {p.q}" for n in range(len(texts))])


async def remove(p: Parts) -> Any:
    return await p.store.adelete([f"1 {p.q}"])


async def search(p: Parts) -> Any:
    p.say()
    return [d.page_content for d in await p.store.asimilarity_search(f"about {p.q}", k=5)]


async def scored(p: Parts) -> Any:
    p.say()
    return [(d.page_content, score) for d, score in await p.store.asimilarity_search_with_score(query=p.q, k=3)]


async def search_lines(p: Parts) -> Any:
    lines = (await p.model.ainvoke(f"Lines about {p.q}")).text.split("; ")
    p.say()
    return [[d.page_content for d in await p.store.asimilarity_search(line, k=2)] for line in lines]


async def ask(p: Parts) -> Any:
    return (await p.model.ainvoke(f"Tell me of {p.q} and {p.said[-1] if p.said else 'nothing'}")).text


async def embedded(p: Parts) -> Any:
    p.say()
    return await p.embedding.aembed_query(f"about {p.q}")


STEPS = (write, write, remove, search, search, scored, search_lines, ask, embedded)


def program(dice: random.Random, world: World, embedding: Any) -> Any:
    store, model = store_with(embedding), Chat(world)
    world.answer = lambda text: f"one of {text[:40]}; two of {text[-20:]}; three"
    steps = [dice.choice(STEPS) for _ in range(dice.randrange(2, 6))]
    in_threads = dice.random() < 0.5

    def node(name: str, mine: list[Any]) -> Any:
        async def run(state: State) -> State:
            said = [value for _, value in sorted((state.get("a") or {}).items())]
            for step in mine:
                said.append(await step(Parts(store, model, embedding, world, state["q"], said)))
            return {"a": {**(state.get("a") or {}), name: said[-len(mine) :]}}

        def blocking(state: State) -> State:
            return asyncio.run(run(state))

        return name, (blocking if in_threads else run)

    cuts = sorted(dice.sample(range(1, len(steps)), dice.randrange(0, len(steps))))
    groups = [steps[a:b] for a, b in zip([0, *cuts], [*cuts, len(steps)], strict=True)]
    return chain(*(node(f"n{number}", group) for number, group in enumerate(groups)))


def outcome(graph: Any, topic: str) -> Any:
    try:
        return asyncio.run(graph.ainvoke({"q": topic}))
    except Exception as error:  # noqa: BLE001 - compared with that of the plain program
        return type(error), str(error)


def told_early(world: World) -> list[str]:
    """Texts that the embedder was sent early and that hold a topic it had not been told."""
    leaked = []
    for position, call in enumerate(world.calls):
        if call.component == "embed" and call.early:
            new = [t for t in TOPICS if t in call.text]
            known = "\n".join(c.text for c in world.calls[:position] if c.component == "embed")
            leaked += [call.text for topic in new if topic not in known]
    return leaked


@pytest.mark.timeout(60 + SEEDS)
def test_staged_programs_equal_plain_ones() -> None:
    retired = early = 0
    kinds = (Elementwise, Coroutines, Narrow, Together, Remote, RemoteCoroutines)
    for seed in range(SEEDS):
        dice = random.Random(seed)
        kind = dice.choice(kinds)
        refused = dice.choice(["", "", "", "note 3", "about beaches"])
        worlds = [Shuffled(random.Random(seed), refused) for _ in range(2)]
        shape = dice.randrange(10**6)
        plain, same = (program(random.Random(shape), world, kind(world)) for world in worlds)
        fast = accelerate(same)
        for topic in TOPICS:
            expected, got = outcome(plain, topic), outcome(fast, topic)
            assert got == expected, f"seed {seed}, {topic}"
            assert accel.settle()
        if issubclass(kind, Remote):
            assert not told_early(worlds[1]), f"seed {seed}"
        if kind is Narrow:
            assert worlds[1].most["embed"] <= 1, f"seed {seed}"
        early += sum(c.early and c.text.startswith("query") for c in worlds[1].calls)
        retired += fast.plan.total.retired
    assert retired > 2 * SEEDS and early > 2 * SEEDS, f"too little was early to show anything: {retired}, {early}"
