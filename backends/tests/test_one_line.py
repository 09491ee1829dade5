"""Several engines as one, on the local host: what they have no room for waits in one line in front of them."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import accel_local
from accel.engine import DEMAND, CancelToken, Delta, Priority, Prompt, Sampling, Usage, cancel_token
from accel.engine.profile import Profile, ProfileFile
from accel.engine.slots import Room
from accel.errors import CallCancelled, EngineClosed
from accel_local import host
from accel_local.replicas import EngineLost, replicated
from accel_local.sources import InProcess
from accel_sim import SimEmbeddingConfig, SimLLMConfig, virtual

GREEDY = Sampling()


class Held:
    """Answers a prompt with its own name as soon as it is told to; or is lost with all it serves."""

    cache_block_tokens = 4
    max_prompt_tokens = 100
    portable_ids = True
    known_profile = None
    room = Room(1)

    def __init__(self, name: str) -> None:
        self.name = name
        self.load = 0.0
        self.asked: list[str] = []
        self.closed = False
        self._answers: dict[str, asyncio.Future[None]] = {}
        self._back: Callable[[], None] = lambda: None

    async def start(self) -> None: ...

    async def close(self) -> None:
        self.closed = True
        for answer in self._answers.values():
            answer.set_exception(EngineClosed("closed"))

    async def profile(self) -> Profile:
        raise NotImplementedError

    def encode(self, prompt: Prompt) -> list[int]:
        return [ord(letter) for letter in str(prompt)]

    def encode_prefix(self, messages: Any) -> list[int]:
        return []

    async def prefill(self, token_ids: Sequence[int], *, priority: Priority = DEMAND) -> int:
        return 0

    async def generate(
        self, prompt: Prompt, sampling: Sampling, *, priority: Priority = DEMAND
    ) -> AsyncGenerator[Delta, None]:
        self.asked.append(str(prompt))
        self._answers[str(prompt)] = asyncio.get_running_loop().create_future()
        try:
            await self._answers[str(prompt)]
        finally:
            del self._answers[str(prompt)]
        yield Delta(self.name, 1, "stop", Usage(1, 0, 1))

    def answer(self, prompt: str) -> None:
        self._answers[prompt].set_result(None)

    def lose(self) -> None:
        self.load = float("inf")
        for answer in self._answers.values():
            answer.set_exception(EngineLost("killed"))

    def on_back(self, callback: Callable[[], None]) -> None:
        self._back = callback

    def come_back(self) -> None:
        self.load = 0.0
        self._back()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def text_of(engine: Any, prompt: str, priority: Priority = DEMAND) -> str:
    return "".join([delta.text async for delta in engine.generate(prompt, GREEDY, priority=priority)])


class Asked:
    """Calls to two engines as one, by their prompts."""

    def __init__(self) -> None:
        self.members = Held("A"), Held("B")
        self.engine: Any = replicated(self.members, "the two")
        self.calls: dict[str, asyncio.Task[str]] = {}

    async def ask(self, *prompts: str, priority: Priority = DEMAND) -> None:
        for prompt in prompts:
            self.calls[prompt] = asyncio.create_task(text_of(self.engine, prompt, priority))
        await settled()

    async def answer(self, member: Held, prompt: str) -> str:
        member.answer(prompt)
        await settled()
        return await self.calls[prompt]


async def test_an_idle_engine_takes_over_what_waits_for_a_busy_one() -> None:
    calls = Asked()
    a, b = calls.members
    await calls.ask("long", "short", "third", "fourth")
    assert await calls.answer(b, "short") == "B"
    assert await calls.answer(b, "third") == "B"
    assert await calls.answer(b, "fourth") == "B"
    assert await calls.answer(a, "long") == "A"
    assert (a.asked, b.asked) == (["long"], ["short", "third", "fourth"])


async def test_what_is_demanded_passes_early_calls_also_when_it_is_raised() -> None:
    calls = Asked()
    a, b = calls.members
    wanted = Priority(9)
    await calls.ask("a", "b")
    await calls.ask("early", priority=Priority(3))
    await calls.ask("wanted", priority=wanted)
    await calls.ask("demanded")
    await asyncio.to_thread(wanted.raise_to_demand)
    for member, prompt in ((a, "a"), (b, "b"), (a, "wanted"), (b, "demanded"), (a, "early")):
        await calls.answer(member, prompt)
    assert (a.asked, b.asked) == (["a", "wanted", "early"], ["b", "demanded"])


async def test_what_waits_outlives_the_loss_of_an_engine_and_is_asked_once() -> None:
    calls = Asked()
    a, b = calls.members
    await calls.ask("a", "b", "c", "d")
    a.lose()
    await settled()
    assert (a.asked, b.asked) == (["a"], ["b"]), "nothing goes to an engine that is gone"
    a.come_back()
    await settled()
    assert len(a.asked) == 2, "and it takes from the line as soon as it is there again"
    while any(not call.done() for call in calls.calls.values()):
        for member in calls.members:
            for prompt in list(member._answers):
                await calls.answer(member, prompt)
    assert sorted([*a.asked, *b.asked]) == ["a", "a", "b", "c", "d"], "only what was lost is asked again"


async def test_what_waits_fails_when_the_engines_are_closed() -> None:
    calls = Asked()
    await calls.ask("a", "b", "c")
    await calls.engine.close()
    done = await asyncio.wait_for(asyncio.gather(*calls.calls.values(), return_exceptions=True), 5)
    assert all(isinstance(error, EngineClosed) for error in done)
    assert [member.asked for member in calls.members] == [["a"], ["b"]] and all(one.closed for one in calls.members)


async def test_an_answer_that_nobody_reads_on_gives_its_place_back() -> None:
    calls = Asked()
    await calls.ask("a", "b", "gone", "c")
    calls.calls["gone"].cancel()
    calls.calls["a"].cancel()
    await settled()
    assert [member.asked for member in calls.members] == [["a", "c"], ["b"]]


# --- on the host, from threads


@dataclass(frozen=True)
class HeldConfig:
    label: str = "held"

    def create(self) -> Held:
        return Held("one")


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(host, "_host", None)
    monkeypatch.setattr(host, "_suspended", [])
    monkeypatch.setattr(host, "_source", InProcess(lambda config: (config, 2)))
    yield accel_local.engine(HeldConfig())
    host.shutdown()


def test_threads_that_wait_in_line_are_cancelled_and_shut_down(hosted: Any) -> None:
    """By their token, which ends the one call alone, and by the end of the host, which ends all."""
    ended: dict[str, Exception] = {}
    token = CancelToken()

    arrived = threading.Semaphore(0)

    async def asked(prompt: str) -> str:
        asyncio.get_running_loop().call_soon(arrived.release)  # when the call has come as far as it can
        return await text_of(hosted, prompt)

    def ask(prompt: str, mine: CancelToken | None) -> None:
        cancel_token.set(mine)
        try:
            accel_local.run(asked(prompt))
        except Exception as error:  # noqa: BLE001  looked at below
            ended[prompt] = error

    threads = {}
    for prompt in ("a", "b", "c", "d"):
        threads[prompt] = threading.Thread(target=ask, args=(prompt, token if prompt == "c" else None), daemon=True)
        threads[prompt].start()
        assert arrived.acquire(timeout=5)
    token.cancel()
    threads["c"].join(5)
    assert isinstance(ended["c"], CallCancelled) and len(ended) == 1
    host.shutdown()
    for thread in threads.values():
        thread.join(5)
    assert set(ended) == {"a", "b", "c", "d"} and all(isinstance(ended[name], EngineClosed) for name in "abd")


# --- simulated engines, in virtual time


def two(config: Any, work: Callable[[Any], Any]) -> Any:
    async def main() -> Any:
        engine: Any = await InProcess(lambda config: (config, 2)).start(config)
        async with contextlib.aclosing(_closing(engine)) as closing:
            await anext(closing)
            return await work(engine)

    return virtual.run(main)


async def _closing(engine: Any) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await engine.close()


def test_no_replica_is_idle_while_calls_wait(tmp_path: Any) -> None:
    """Long answers and short ones by turns: shared out as they came, one engine would have all the long ones."""
    profile = Profile("llm", ((10, 1e-4), (100, 1e-3)), ((1, 0.02), (2, 0.02)), batch_tokens=512, slots=1)
    ProfileFile({"llm": profile}).save(tmp_path / "p.json")

    async def work(engine: Any) -> tuple[list[float], list[float]]:
        loop = asyncio.get_running_loop()
        began_s, ended_s = loop.time(), [0.0] * 12

        async def ask(n: int) -> None:
            sampling = Sampling(max_tokens=2 if n % 2 else 100, ignore_end=True)
            async for _ in engine.generate(f"Question {n}", sampling):
                pass
            ended_s[n] = loop.time() - began_s

        await asyncio.gather(*(ask(n) for n in range(12)))
        return ended_s, [member.served.busy_s for member in engine._members]

    ended_s, busy_s = two(SimLLMConfig(str(tmp_path / "p.json"), max_model_len=2048), work)
    # Six of 2.0 s, six of 0.04 s: three long ones each.
    assert max(busy_s) < 6.3 and max(ended_s) < 6.4


def test_large_embeddings_are_shared_out_as_engines_come_to_them() -> None:
    profile = Profile("embedding", batches=((1, 8, 0.1), (8, 8, 0.4)), batch_tokens=64)
    texts = ["one two three four five six"] * 24

    async def work(engine: Any) -> list[list[int]]:
        sizes = [24, 1, 24, 1, 24, 1, 24, 1]
        await asyncio.gather(*(engine.embed(texts[:size]) for size in sizes))
        return [sum(member.batches_served) for member in engine._members]

    served = two(SimEmbeddingConfig(profile), work)
    assert sum(served) == 100 and min(served) > 40
