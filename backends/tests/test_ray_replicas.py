"""Several engines as one, and what happens to calls whose engine is lost; and hosts that take turns."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import accel_local
from accel.backend import Backend
from accel.engine import DEMAND, Delta, Engine, EngineConfig, Hit, Priority, Prompt, Record, Sampling, Usage
from accel.engine.conformance import LLM_CHECKS, LLMCheck, answer, name
from accel.engine.profile import Profile, ProfileFile
from accel.errors import AccelError, ConfigurationError, EngineClosed, InvalidRequest
from accel_local import host
from accel_local.replicas import RESUBMISSIONS, EngineLost, ReplicatedLLM, replicated
from accel_local.sources import InProcess
from accel_sim import SimLLMConfig, SimStoreConfig

SEARCHING = Profile("searching", search=((10, 1e-5), (100, 2e-5)))
GREEDY, SAMPLED = Sampling(), Sampling(temperature=1.0)
EARLY = 3


class Fragile:
    """Answers "one two three " as three deltas; what is in `losses` says after how many a request is lost."""

    cache_block_tokens = 4
    max_prompt_tokens = 100
    portable_ids = True
    known_profile = None

    def __init__(self, losses: Sequence[int] = (), words: Sequence[str] = ("one ", "two ", "three ")) -> None:
        self.losses = list(losses)
        self.words = words
        self.asked: list[Prompt] = []
        self.load = 0.0

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def profile(self) -> Profile:
        return SEARCHING

    def encode(self, prompt: Prompt) -> list[int]:
        return [ord(letter) for letter in str(prompt)]

    def encode_prefix(self, messages: Any) -> list[int]:
        return []

    async def prefill(self, token_ids: Sequence[int], *, priority: Priority = DEMAND) -> int:
        self._lose(0)
        return len(token_ids)

    async def generate(
        self, prompt: Prompt, sampling: Sampling, *, priority: Priority = DEMAND
    ) -> AsyncGenerator[Delta, None]:
        self.asked.append(prompt)
        for n, word in enumerate(self.words):
            self._lose(n)
            await asyncio.sleep(0)
            last = n == len(self.words) - 1
            yield Delta(word, 1, "stop" if last else None, Usage(1, 0, n + 1) if last else None)

    def _lose(self, n: int) -> None:
        if self.losses and self.losses[0] == n:
            del self.losses[0]
            self.load = float("inf")  # until it is back
            raise EngineLost("the engine is gone")


class Cell:
    """A member that answers with its own name, when it is allowed to."""

    known_profile = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.dimension = 1
        self.open = asyncio.Event()

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def profile(self) -> Profile:
        return SEARCHING

    async def embed(self, texts: Sequence[str], *, priority: Priority = DEMAND) -> list[Any]:
        await self.open.wait()
        return [self.name for _ in texts]


def llm(*members: Fragile) -> Any:
    return replicated(members, "test")


async def text_of(engine: Any, sampling: Sampling = GREEDY, priority: int = 0) -> tuple[str, list[Delta]]:
    return await answer(engine, "prompt", sampling, Priority(priority))


# --- losses


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("members", [1, 2])
async def test_a_greedy_answer_goes_on_where_it_was(after: int, members: int) -> None:
    engine = llm(Fragile([after]), *(Fragile() for _ in range(members - 1)))
    text, deltas = await text_of(engine)
    assert text == "one two three " and [delta.tokens for delta in deltas] == [1, 1, 1]
    assert deltas[-1].usage == Usage(1, 0, 3)


async def test_what_was_delivered_is_skipped_by_text_however_it_is_cut() -> None:
    first, second = Fragile([2]), Fragile(words=("on", "e two th", "ree "))
    text, deltas = await text_of(llm(first, second))
    assert text == "one two three "
    assert [delta.text for delta in deltas] == ["one ", "two ", "th", "ree "]
    assert sum(delta.tokens for delta in deltas) == 3


@pytest.mark.parametrize("words", [("one ", "2 ", "three "), ("one ",)])
async def test_another_answer_is_never_joined_to_the_first(words: tuple[str, ...]) -> None:
    with pytest.raises(EngineClosed, match="gave another one when asked again"):
        await text_of(llm(Fragile([2]), Fragile(words=words)))


async def test_a_sampled_answer_is_asked_again_only_while_nobody_has_seen_any_of_it() -> None:
    assert (await text_of(llm(Fragile([0])), SAMPLED))[0] == "one two three "
    got = []
    with pytest.raises(EngineClosed, match="in the middle of an answer that was sampled") as caught:
        async for delta in llm(Fragile([1])).generate("prompt", SAMPLED):
            got.append(delta.text)
    assert got == ["one "] and not isinstance(caught.value, EngineLost) and caught.value.remedy


async def test_early_work_is_not_asked_again() -> None:
    member = Fragile([1])
    with pytest.raises(EngineLost):
        await text_of(llm(member), priority=EARLY)
    assert len(member.asked) == 1
    member = Fragile([1])
    priority = Priority(EARLY)
    got = []
    async for delta in llm(member).generate("prompt", GREEDY, priority=priority):
        got.append(delta.text)
        priority.raise_to_demand()  # the program has come to wait for it
    assert "".join(got) == "one two three " and len(member.asked) == 2


async def test_a_request_that_ends_every_engine_ends_itself() -> None:
    member = Fragile([0] * 100)
    with pytest.raises(EngineClosed, match=f"lost {RESUBMISSIONS + 1} times while it served one call"):
        await text_of(llm(member))
    assert len(member.asked) == RESUBMISSIONS + 1


async def test_what_was_prefilled_on_a_lost_engine_can_not_be_reused() -> None:
    assert await llm(Fragile([0])).prefill([1, 2, 3, 4]) == 0
    assert await llm(Fragile()).prefill([1, 2, 3, 4]) == 4


class Store:
    """Loses the first call of each kind."""

    known_profile = None

    def __init__(self) -> None:
        self.calls: list[str] = []

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.calls.count(name) == 1:
            raise EngineLost("the store is gone")

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def profile(self) -> Profile:
        return SEARCHING

    async def search(self, vectors: Any, k: int, *, where: Any = None, priority: Priority = DEMAND) -> list[list[Hit]]:
        self._called("search")
        return [[] for _ in vectors]

    async def get(self, ids: Sequence[str]) -> list[Record]:
        self._called("get")
        return []

    async def count(self, *, where: Any = None) -> int:
        self._called("count")
        return 7

    async def ingest(self, records: Sequence[Record]) -> None:
        self._called("ingest")

    async def delete(self, ids: Any = None, *, where: Any = None) -> int:
        self._called("delete")
        return 1


async def test_reads_are_made_again_and_writes_are_not() -> None:
    inner = Store()
    store: Any = replicated([inner], "records")
    assert (await store.search([(1.0,)], 1), await store.get([]), await store.count()) == ([[]], [], 7)
    for write in (store.ingest([]), store.delete()):
        with pytest.raises(EngineClosed, match="nobody knows whether it was carried out"):
            await write
    assert inner.calls == ["search", "search", "get", "get", "count", "count", "ingest", "delete"]
    with pytest.raises(EngineLost):
        await replicated([Store()], "records").search([(1.0,)], 1, priority=Priority(EARLY))  # type: ignore[attr-defined]


# --- choosing


async def test_requests_go_to_the_least_loaded() -> None:
    cells = [Cell("a"), Cell("b"), Cell("c")]
    engine: Any = replicated(cells, "cells")
    waiting = [asyncio.create_task(engine.embed(["x"])) for _ in range(6)]
    await asyncio.sleep(0)
    for cell in cells:
        cell.open.set()
    assert sorted(found for (found,) in await asyncio.gather(*waiting)) == ["a", "a", "b", "b", "c", "c"]


async def test_the_load_that_others_make_counts() -> None:
    busy, idle = Fragile(), Fragile()
    busy.load = 3
    await text_of(llm(busy, idle))
    assert not busy.asked and idle.asked
    busy.load, idle.load = 0, float("inf")  # being restarted
    await text_of(llm(busy, idle))
    assert busy.asked


async def test_a_session_stays_with_its_engine_until_that_is_lost() -> None:
    first, second = Fragile(), Fragile()
    engine = llm(first, second)
    first.load = 1
    await answer(engine, "a session's long beginning", GREEDY)
    assert len(second.asked) == 1
    first.load, second.load = 0, 2  # busier, but it has the prefix
    await answer(engine, "a session's long beginning, and on", GREEDY)
    assert len(second.asked) == 2
    second.losses = [0]
    await answer(engine, "a session's long beginning, and on", GREEDY)
    assert len(second.asked) == 3 and len(first.asked) == 1
    second.load = 0
    await answer(engine, "a session's long beginning, and on", GREEDY)
    assert len(first.asked) == 2, "the lost engine's cache is empty, the other's not"


def test_stores_have_no_replicas() -> None:
    with pytest.raises(ConfigurationError, match="can't be shared out among 2 replicas"):
        replicated([Store(), Store()], "records")


# --- in this process

TINY = SimLLMConfig(max_model_len=2048, name="replicas")


@pytest.fixture
def two_in_process():  # type: ignore[no-untyped-def]
    """Simulated engines whose token ids differ: each gives them out as it meets words."""
    from accel_sim import virtual

    def run(work: Any) -> Any:
        async def main() -> Any:
            engine: Any = await InProcess(lambda config: (config, 2)).start(TINY)
            try:
                return await work(engine)
            finally:
                await engine.close()

        return virtual.run(main)

    return run


@pytest.mark.parametrize("check", LLM_CHECKS, ids=name)
def test_two_engines_as_one_pass_the_suite(check: LLMCheck, two_in_process: Any) -> None:
    two_in_process(check)


def test_ids_are_said_in_words_to_an_engine_that_did_not_give_them(two_in_process: Any) -> None:
    async def work(engine: Any) -> list[str]:
        prompts = [f"Tell me about {word}." for word in ("cats", "tax law", "bread", "the sea")]
        ids = [engine.encode(prompt) for prompt in prompts]
        together = await asyncio.gather(*(answer(engine, one, GREEDY) for one in ids))
        alone = [(await answer(engine, prompt, GREEDY))[0] for prompt in prompts]
        assert [text for text, _ in together] == alone
        assert len(set(alone)) == 4
        return alone

    two_in_process(work)


def test_a_backend_file_holds_in_this_process_too(tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="the extra ray is not installed")
    profile = Profile("llm", ((10, 1e-4), (100, 1e-3)), ((1, 2e-4), (8, 4e-4)), batch_tokens=512, slots=16)
    ProfileFile({"llm": profile}).save(tmp_path / "p.json")
    (tmp_path / "backend.yaml").write_text(
        f"engines: {{llm: {{kind: sim_llm, model: {tmp_path / 'p.json'}, replicas: 2, options: {{name: two}}}}}}"
    )
    with Backend.local(tmp_path / "backend.yaml"):
        two: Any = accel_local.engine(SimLLMConfig(name="two"))
        assert isinstance(two, ReplicatedLLM) and two.known_profile == profile
        assert accel_local.run(text_of(two))[0]
        assert not isinstance(accel_local.engine(SimLLMConfig(name="one")), ReplicatedLLM)


# --- hosts that take turns


class Recorder:
    """A source that notes what it is asked for."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.closed = 0

    async def start(self, config: EngineConfig[Any]) -> Engine:
        self.started.append(config.label)
        if "broken" in config.label:
            raise InvalidRequest("it doesn't start")
        engine: Engine = config.create()
        await engine.start()
        return engine

    def known_profile(self, config: EngineConfig[Any]) -> Profile | None:
        return SEARCHING

    def close(self) -> None:
        self.closed += 1


def store(collection: str) -> SimStoreConfig:
    return SimStoreConfig(collection, 3, SEARCHING)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without the engines of other tests, which a shutdown would reach, and without leaving any."""
    monkeypatch.setattr(host, "_host", None)
    monkeypatch.setattr(host, "_suspended", [])
    monkeypatch.setattr(host, "_source", host.IN_PROCESS)
    yield
    host.shutdown()


def test_another_source_serves_meanwhile(alone: None) -> None:
    source = Recorder()
    before = accel_local.engine(store("a"))
    with host.served_by(source):
        there = accel_local.engine(store("a"))
        assert there is not before and accel_local.engine(store("a")) is there
        assert accel_local.run(there.count()) == 0
        assert accel_local.running() == [store("a").label] == source.started
        assert accel_local.known_profile(store("b")) is SEARCHING
    assert source.closed == 1
    with pytest.raises(EngineClosed):
        accel_local.run(there.count())
    assert accel_local.engine(store("a")) is before and accel_local.run(before.count()) == 0
    assert accel_local.known_profile(store("b")) is None


def test_a_source_never_stands_in_for_another(alone: None) -> None:
    source = Recorder()
    with host.served_by(source):
        with pytest.raises(InvalidRequest, match="doesn't start"):
            accel_local.engine(store("broken"))
        accel_local.shutdown()
        accel_local.engine(store("a"))  # a new host, of the same source
    assert source.started == [store("broken").label, store("a").label] and source.closed == 2


def test_shutdown_reaches_the_engines_that_wait_for_their_turn(alone: None) -> None:
    before = accel_local.engine(store("a"))
    with host.served_by(Recorder()):
        accel_local.shutdown()
    with pytest.raises(EngineClosed):
        accel_local.run(before.count())
    assert accel_local.engine(store("a")) is not before


def test_a_source_may_be_chosen_for_good(alone: None) -> None:
    source = Recorder()
    before = accel_local.engine(store("a"))
    host.use(source)
    assert accel_local.engine(store("a")) is not before and source.started
    host.use(host.IN_PROCESS)
    assert source.closed == 1
    accel_local.engine(store("b"))
    assert source.started == [store("a").label]


def test_an_engine_may_be_closed_by_itself(alone: None) -> None:
    async def main() -> None:
        own = host.Host(host.IN_PROCESS, asyncio.get_running_loop())
        first, other = await own.engine(store("a")), await own.engine(store("b"))
        await own.close_engine(store("a"))
        await own.close_engine(store("never started"))
        with pytest.raises(AccelError):
            await first.count()
        assert await other.count() == 0
        again = await own.engine(store("a"))
        assert again is not first and await again.count() == 0
        await own.close()
        with contextlib.suppress(EngineClosed):
            await own.engine(store("a"))
            raise AssertionError("a closed host started an engine")

    asyncio.run(main())
