"""Additions in micro-batches: what the program sees is one addition, as if it had been made in one go."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import accel
import accel_local
from accel import accelerate
from accel.engine import Record, unwrap
from accel.errors import InvalidRequest, RequestError
from accel.graph.passes import without
from accel.run.plans.plan import Plan
from accel_langgraph.staging import spans
from accel_sim.engines import SimStore, SimStoreConfig
from adapters.tests.core_fakes import State, World, chain
from adapters.tests.stage_fakes import (
    BATCH_TOKENS,
    DIMENSION,
    SEARCHING,
    Coroutines,
    Elementwise,
    Narrow,
    Together,
    Unmeasured,
    store_with,
)

TEXTS = [f"text {number} " + "word " * 8 for number in range(10)]  # 13 tokens each: three to a micro-batch
IN_ONE = "texts: " + "|".join(TEXTS)


@pytest.fixture
def world() -> World:
    return World()


def adding(store: Any, **options: Any) -> Any:
    """A program that adds `q`, a list of texts."""

    def add(state: State) -> State:
        return {"a": store.add_texts(state["q"], **{"ids": [f"id {n}" for n in range(len(state["q"]))], **options})}

    return chain(("add", add))


def adding_async(store: Any) -> Any:
    async def add(state: State) -> State:
        return {"a": await store.aadd_texts(state["q"], ids=[f"id {n}" for n in range(len(state["q"]))])}

    return chain(("add", add))


def taught(program: Any, world: World, **options: Any) -> Any:
    fast = accelerate(program, **options)
    for topic in ("one", "two"):
        fast.invoke({"q": [f"{topic} short text"]})
        assert accel.settle()
    world.forget()
    return fast


async def ataught(program: Any, world: World) -> Any:
    fast = accelerate(program)
    for topic in ("one", "two"):
        await fast.ainvoke({"q": [f"{topic} short text"]})
        assert accel.settle()
    world.forget()
    return fast


def contents(store: Any) -> list[tuple[str, str]]:
    engine = accel_local.engine(store._engine)
    hits = accel_local.run(engine.search([[1.0] * DIMENSION], 1000))[0]
    return sorted((hit.id, hit.text) for hit in unwrap(hits))


def test_an_addition_above_the_efficient_batch_goes_in_micro_batches(world: World) -> None:
    store = store_with(Elementwise(world))
    fast = taught(adding(store), world)
    seen: list[int] = []
    world.answer = lambda text: str(seen.append(len(contents(store))))
    assert fast.invoke({"q": TEXTS})["a"] == [f"id {n}" for n in range(10)]
    batches = [text.removeprefix("texts: ").split("|") for text in world.texts("texts")]
    assert [len(batch) for batch in batches] == [3, 3, 3, 1]
    assert [text for batch in batches for text in batch] == TEXTS, "each once, in order"
    assert set(seen) == {1}, "nothing shows before all are in"
    assert [text for _, text in contents(store)] == TEXTS
    assert world.most["embed"] == 1, "on the program's thread, one after the other"


@pytest.mark.parametrize(
    "why", ["unaccelerated", "off", "without the pass", "together", "unmeasured", "measured by another", "small"]
)
def test_everything_else_goes_in_one(world: World, why: str) -> None:
    kinds = {"together": Together, "unmeasured": Unmeasured, "measured by another": Unmeasured}
    store = store_with(kinds.get(why, Elementwise)(world))
    program = adding(store)
    if why == "off":
        program = taught(program, world, speculate="off")
    elif why == "without the pass":
        program = taught(program, world, plan=Plan(without("stage")))
    elif why == "measured by another":
        program = accelerate(program, plan=taught(adding(store_with(Elementwise(world))), world).plan)
        assert "micro-batches" in str(program.plan.graph)
    elif why != "unaccelerated":
        program = taught(program, world)
    texts = TEXTS[:3] if why == "small" else TEXTS
    program.invoke({"q": texts})
    assert world.texts() == ["texts: " + "|".join(texts)]
    assert len(contents(store)) == len(texts)


def test_what_runs_late_calls_alike(world: World) -> None:
    """Ids that are made up, metadata, and ids that repeat: the last text of an id stays."""
    store = store_with(Elementwise(world))
    plan = taught(adding(store), world).plan
    accel_local.run(accel_local.engine(store._engine).delete())
    made = accelerate(adding(store, ids=None, metadatas=[{"n": n} for n in range(10)]), plan=plan).invoke({"q": TEXTS})[
        "a"
    ]
    assert len(set(made)) == 10 and [i for i, _ in contents(store)] == sorted(made)
    found = accel_local.run(accel_local.engine(store._engine).get(made))
    assert [(r.text, r.metadata) for r in found] == [(text, {"n": n}) for n, text in enumerate(TEXTS)]
    accelerate(adding(store, ids=["same"] * 10), plan=plan).invoke({"q": TEXTS})
    assert dict(contents(store))["same"] == TEXTS[-1]
    assert len(world.texts("texts")) == 8


def test_a_loaded_plan_stages_as_soon_as_it_has_met_the_engine(world: World, tmp_path: Any) -> None:
    store = store_with(Elementwise(world))
    path = str(tmp_path / "plan.json")
    taught(adding(store), world).save_plan(path)
    fast = accelerate(adding(store), plan=path)
    assert "micro-batches" not in str(fast.plan.graph)
    for _ in range(2):
        world.forget()
        fast.invoke({"q": TEXTS})
        assert accel.settle()
    assert len(world.texts()) == 4


# --- errors


class _Failing(Elementwise):
    """Raises for texts that say so; gives a vector too long for texts that say that."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        for text in texts:
            if "bad" in text:
                raise InvalidRequest(f"can't embed {text[:8]!r}")
        return [v + [1.0] * ("long" in text) for v, text in zip(super().embed_documents(texts), texts, strict=True)]


accel.register(_Failing, pure=True, local=True, concurrency=4, elementwise=True)


def outcome(program: Any, texts: list[str]) -> Any:
    try:
        return program.invoke({"q": texts})["a"]
    except Exception as error:  # noqa: BLE001 - compared with that of the plain program
        return type(error), re.sub(r"'stages \d+'", "a collection", str(error))


@pytest.mark.parametrize(
    "said",
    [
        {5: "bad"},
        {8: "bad", 5: "bad"},
        {4: "long"},
        {1: "long", 9: "bad"},
        {0: "long"},
        {0: "bad"},
        {2: "long", 6: "long"},
    ],
)
def test_the_error_is_that_of_the_plain_addition_and_nothing_is_left(said: dict[int, str]) -> None:
    texts = [f"{said.get(n, 'good')} {text}" for n, text in enumerate(TEXTS)]
    plain = store_with(_Failing(World()))
    world = World()
    staged = store_with(_Failing(world))
    fast = taught(adding(staged), world)
    adding(plain).invoke({"q": ["two short text"]})
    assert outcome(fast, texts) == outcome(adding(plain), texts)
    assert contents(staged) == contents(plain) == [("id 0", "two short text")]
    assert IN_ONE not in world.texts()


def test_lengths_that_do_not_fit_are_refused_as_ever(world: World) -> None:
    store = store_with(Elementwise(world))
    fast = taught(adding(store), world)
    wrong = accelerate(adding(store, metadatas=[{}]), plan=fast.plan)
    with pytest.raises(InvalidRequest, match="10 texts came with 1 metadatas"):
        wrong.invoke({"q": TEXTS})


def test_after_an_error_the_next_addition_works(world: World) -> None:
    store = store_with(_Failing(world))
    fast = taught(adding(store), world)
    with pytest.raises(InvalidRequest):
        fast.invoke({"q": [*TEXTS, "bad"]})
    fast.invoke({"q": TEXTS})
    assert len(contents(store)) == 10


@dataclass(frozen=True, slots=True)
class PlainConfig(SimStoreConfig):
    """A store that takes whole additions only."""

    def create(self) -> Any:
        return _Plain(self)


class _Plain(SimStore):
    ingest_batches = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class BreakingConfig(SimStoreConfig):
    """A store whose staging breaks down."""

    def create(self) -> Any:
        return _Breaking(self)


class _Breaking(SimStore):
    ingested = 0

    async def ingest_batches(self, batches: AsyncIterable[Sequence[Record]]) -> None:
        async for _ in batches:
            raise RequestError("deadlock detected")

    async def ingest(self, records: Sequence[Record]) -> None:
        self.ingested += 1
        await super().ingest(records)


@pytest.mark.parametrize("config", [PlainConfig, BreakingConfig])
def test_a_store_that_can_not_stage_gets_one_addition(world: World, config: Any) -> None:
    store = store_with(Elementwise(world), config(f"kind {config.__name__}", DIMENSION, SEARCHING, ingest_s=0.0))
    fast = taught(adding(store), world)
    assert fast.invoke({"q": TEXTS})["a"] == [f"id {n}" for n in range(10)]
    assert [text for _, text in contents(store)] == TEXTS
    assert len(world.texts("texts")) == 4, "each text was embedded once all the same"


# --- on a loop


async def test_several_micro_batches_are_under_way_on_a_loop(world: World) -> None:
    store = store_with(Coroutines(world))
    inside = most = 0

    class Waiting(Coroutines):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1
            return await super().aembed_documents(texts)

    store._embedding = accel.register(Waiting(world), pure=True, local=True, concurrency=4, elementwise=True)
    fast = await ataught(adding_async(store), world)
    assert (await fast.ainvoke({"q": TEXTS}))["a"] == [f"id {n}" for n in range(10)]
    assert [text for _, text in contents(store)] == TEXTS
    assert most == 3
    most = 0
    await fast.ainvoke({"q": TEXTS}, {"max_concurrency": 1})
    assert most == 1


async def test_an_embedder_for_one_call_at_a_time_gets_one(world: World) -> None:
    class NarrowCoroutines(Coroutines, Narrow):
        pass

    accel.register(NarrowCoroutines, pure=True, local=True, concurrency=1, elementwise=True)
    store = store_with(NarrowCoroutines(world))
    fast = await ataught(adding_async(store), world)
    await fast.ainvoke({"q": TEXTS})
    assert world.most["embed"] == 1 and len(world.texts("texts")) == 4


async def test_an_addition_that_is_cancelled_leaves_nothing(world: World) -> None:
    reached, never = asyncio.Event(), asyncio.Event()

    class Stuck(Coroutines):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            if "text 6" in "".join(texts):
                reached.set()
                await never.wait()
            return await super().aembed_documents(texts)

    store = store_with(accel.register(Stuck(world), pure=True, local=True, concurrency=4, elementwise=True))
    fast = await ataught(adding_async(store), world)
    running = asyncio.create_task(fast.ainvoke({"q": TEXTS}))
    await asyncio.wait_for(reached.wait(), 20)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [text for _, text in contents(store)] == ["two short text"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_first_text_that_fails_gives_the_error_on_a_loop_too(world: World) -> None:
    class Failing(Coroutines):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            for text in texts:
                if "bad" in text:
                    raise InvalidRequest(f"can't embed {text[:8]!r}")
            return await super().aembed_documents(texts)

    store = store_with(accel.register(Failing(world), pure=True, local=True, concurrency=4, elementwise=True))
    fast = await ataught(adding_async(store), world)
    texts = [f"bad {n} {text}" if n in (4, 7) else text for n, text in enumerate(TEXTS)]
    with pytest.raises(InvalidRequest, match="can't embed 'bad 4"):
        await fast.ainvoke({"q": texts})
    assert len(contents(store)) == 1


# --- at random


def test_staged_additions_equal_plain_ones() -> None:
    dice = random.Random(0)
    failures = batches = 0
    plan = taught(adding(store_with(_Failing(World()))), World()).plan
    for _ in range(40):
        world = World()
        plain, staged = store_with(_Failing(World())), store_with(_Failing(world))
        for _ in range(3):
            kinds = dice.choices(["good", "bad", "long"], [30, 1, 1], k=dice.randrange(1, 30))
            texts = [f"{kind} {n} " + "word " * dice.randrange(30) for n, kind in enumerate(kinds)]
            ids = [f"id {dice.randrange(20)}" for _ in texts]
            got = outcome(accelerate(adding(staged, ids=ids), plan=plan), texts)
            assert got == outcome(adding(plain, ids=ids), texts)
            assert contents(staged) == contents(plain)
            failures += isinstance(got, tuple)
        batches += len(world.texts("texts"))
    assert failures > 20 and batches > 300, "too little happened to show anything"


def test_spans_cover_all_texts_in_order_and_keep_to_the_tokens() -> None:
    dice = random.Random(1)
    for _ in range(200):
        texts = ["x" * dice.randrange(400) for _ in range(dice.randrange(20))]
        found = spans(texts, BATCH_TOKENS)
        assert [n for start, end in found for n in range(start, end)] == list(range(len(texts)))
        for start, end in found:
            padded = max(len(text) // 4 + 1 for text in texts[start:end]) * (end - start)
            assert end - start == 1 or (end > start and padded <= BATCH_TOKENS)
