"""Named traps: an early call that stalls, or whose run is gone, holds nothing that anybody else waits for."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings

import accel
from compat_tests.apart import apart
from compat_tests.test_traps_waiting import was_early
from compat_tests.traps import WAIT_S, Chat, outcome, result_of, text_of
from compat_tests.traps_waiting import ENTERED, Stalling, declared, in_a_row, settled

pytestmark = pytest.mark.timeout(60)
ns = pytest.mark.parametrize("n", [1, 3])
LEARNT = ("amber 1", "basin 2", "cedar 3")


def bounded(call: Callable[[], Any]) -> Any:
    """What the call gives, within a time that nothing here needs."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(outcome(call)), daemon=True)
    thread.start()
    thread.join(WAIT_S / 2)
    assert found, "waits"
    return found[0]


async def soon(awaitable: Any) -> Any:
    async with asyncio.timeout(WAIT_S / 2):
        return await awaitable


def fickle(model: Any, *, asks_on: bool) -> Any:
    """A program that asks two things, and in a run on stalling the first one never; nor the second, unless it asks
    on."""

    def first(state: Any) -> Any:
        return {"notes": [] if "stall" in state["topic"] else [model.invoke(f"first on {state['topic']}").content]}

    def second(state: Any) -> Any:
        topic = state["topic"].replace("stall", "still")
        if not asks_on and topic != state["topic"]:
            return {"notes": []}
        return {"notes": [model.invoke(f"second on {topic}").content]}

    return in_a_row(("settled", entered_or_learning), ("first", first), ("second", second))


def entered_or_learning(state: Any) -> Any:
    """Until the early call that stalls is on its way. (Later ones need not be: their component is known to stall.)"""
    settled(state)
    if "stall" in state["topic"]:
        entered = ENTERED[f"first on {state['topic']}"].wait(WAIT_S / 8)
        assert entered or "stall 0" not in state["topic"], "nothing was early"
    return {}


def fickle_async(model: Any, *, asks_on: bool) -> Any:
    async def ready(state: Any) -> Any:
        return await asyncio.to_thread(entered_or_learning, state)

    async def first(state: Any) -> Any:
        if "stall" in state["topic"]:
            return {"notes": []}
        return {"notes": [(await model.ainvoke(f"first on {state['topic']}")).content]}

    async def second(state: Any) -> Any:
        topic = state["topic"].replace("stall", "still")
        if not asks_on and topic != state["topic"]:
            return {"notes": []}
        return {"notes": [(await model.ainvoke(f"second on {topic}")).content]}

    return in_a_row(("settled", ready), ("first", first), ("second", second))


@ns
@apart
def test_a_demand_goes_on_while_an_early_call_of_its_component_stalls(n: int) -> None:
    """Of another input, in the same run."""
    model = declared(Stalling(), n)
    fast = accel.accelerate(fickle(model, asks_on=True))
    for topic in LEARNT:
        fast.invoke({"topic": topic})
    for number in range(n):
        found = bounded(lambda number=number: fast.invoke({"topic": f"stall {number}"}))
        assert found["notes"] == [f"about second on still {number}"]
    was_early(fast)


@ns
@apart
def test_a_demand_goes_on_while_an_early_call_of_its_component_stalls_awaited(n: int) -> None:
    model = declared(Stalling(), n)
    fast = accel.accelerate(fickle_async(model, asks_on=True))

    async def main() -> None:
        for topic in LEARNT:
            await fast.ainvoke({"topic": topic})
        for number in range(n):
            found = await soon(fast.ainvoke({"topic": f"stall {number}"}))
            assert found["notes"] == [f"about second on still {number}"]

    asyncio.run(main())
    was_early(fast)


def stalled(n: int) -> tuple[Any, Any, Any]:
    """A model with as many early calls inside as it takes, all of them stalling, their runs over; the graph, and the
    accelerated one."""
    model = declared(Stalling(), n)
    graph = fickle(model, asks_on=False)
    fast = accel.accelerate(graph)
    for topic in LEARNT:
        fast.invoke({"topic": topic})
    for number in range(n):
        bounded(lambda number=number: fast.invoke({"topic": f"stall {number}"}))
    was_early(fast)
    return model, graph, fast


USERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "another run": lambda model, graph, fast: fast.invoke({"topic": "delta 4"}),
    "an unaccelerated graph": lambda model, graph, fast: graph.invoke({"topic": "delta 4"}),
    "another accelerated graph": lambda model, graph, fast: accel.accelerate(graph).invoke({"topic": "delta 4"}),
    "a direct call": lambda model, graph, fast: model.invoke("delta 4"),
    "a stream": lambda model, graph, fast: list(model.stream("delta 4")),
    "another run, awaited": lambda model, graph, fast: asyncio.run(
        fickle_async(model, asks_on=True).ainvoke({"topic": "delta 4"})
    ),
    "a direct call, awaited": lambda model, graph, fast: asyncio.run(model.ainvoke("delta 4")),
}


@ns
@pytest.mark.parametrize("user", USERS)
@apart
def test_a_stalled_call_of_a_run_that_is_over_holds_nothing(user: str, n: int) -> None:
    components = stalled(n)
    found = bounded(lambda: USERS[user](*components))
    assert not isinstance(found, str), found


@ns
@apart
def test_a_stalled_call_of_a_run_whose_stream_is_abandoned_holds_nothing(n: int) -> None:
    """The stream is still referenced: nobody closes it."""
    model = declared(Stalling(), n)
    graph = fickle(model, asks_on=False)
    fast = accel.accelerate(graph)
    for topic in LEARNT:
        fast.invoke({"topic": topic})
    kept = []
    for number in range(n):
        stream = fast.stream({"topic": f"stall {number}"}, stream_mode="updates")
        kept.append((stream, bounded(lambda stream=stream: next(stream))))
    assert bounded(lambda: model.invoke("delta 4")).content == "about delta 4"
    assert bounded(lambda: graph.invoke({"topic": "delta 5"}))["notes"]
    assert bounded(lambda: fast.invoke({"topic": "delta 6"}))["notes"]
    assert len(kept) == n


@ns
@pytest.mark.parametrize("how", ["cancelled", "timed out"])
@apart
def test_a_run_that_is_given_up_while_it_joins_an_early_call(how: str, n: int) -> None:
    """As a server does when its client is gone: it ends at once, and later requests find their component free."""
    model = declared(Stalling(), n)

    async def node(state: Any) -> Any:
        await asyncio.to_thread(entered_or_learning, state)
        return {"notes": [(await model.ainvoke(f"first on {state['topic']}")).content]}

    fast = accel.accelerate(in_a_row(("before", nothing), ("node", node)))

    async def main() -> None:
        for topic in LEARNT:
            await fast.ainvoke({"topic": topic})
        for number in range(n):
            request = asyncio.create_task(fast.ainvoke({"topic": f"stall {number}"}))
            await asyncio.to_thread(ENTERED[f"first on stall {number}"].wait, WAIT_S)
            for _ in range(50):
                await asyncio.sleep(0)
            if how == "cancelled":
                request.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await soon(request)
            else:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(request, 0.05)
        assert (await soon(fast.ainvoke({"topic": "delta 4"})))["notes"] == ["about first on delta 4"]
        assert (await soon(model.ainvoke("delta 5"))).content == "about delta 5"

    asyncio.run(main())
    was_early(fast)


async def nothing(state: Any) -> Any:
    return {}


# --- timeouts


class Moments(Chat):
    """Takes a moment, a random one."""

    rng: Any

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        return result_of(f"about {text_of(messages)}")

    async def _agenerate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(self.rng.uniform(0.0, 0.004))
        return result_of(f"about {text_of(messages)}")


class Shared(random.Random):
    """A source of chance is no part of what a model is."""

    def __deepcopy__(self, memo: Any) -> Shared:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shared)

    __hash__ = random.Random.__hash__


CHANCE = Shared(0)


class Vectors(Embeddings):
    """A query is a list of one document; takes a moment."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text))] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(CHANCE.uniform(0.0, 0.004))
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return (await self.aembed_documents([text]))[0]


def hasty(model: Any, embeddings: Any, rng: random.Random) -> Any:
    """Each node gives its calls a random time; of three that ask the same, each its own."""

    async def patient(call: Any) -> str:
        try:
            return str(await asyncio.wait_for(call, rng.uniform(0.0005, 0.008)))
        except TimeoutError:
            return "too late"

    async def asked(text: str) -> str:
        return str((await model.ainvoke(text)).content)

    def node(name: str) -> Any:
        async def run(state: Any) -> Any:
            text = f"{name} on {state['topic']}"
            calls = [asked(text), *(embeddings.aembed_query(text) for _ in range(3))]
            return {"notes": [*await asyncio.gather(*map(patient, calls))]}

        return run

    return in_a_row(*((name, node(name)) for name in ("first", "second", "third")))


async def kinds_of(graph: Any, runs: int, rng: random.Random) -> Counter[str]:
    """Of outcomes: of whole runs and of their calls; and what the loop complains of."""
    counts: Counter[str] = Counter()
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(str(context)))

    async def one(number: int) -> None:
        given = {"topic": f"amber {number} {'basin cedar delta'.split()[number % 3]}"}
        try:
            patience = rng.choice([None, rng.uniform(0.0005, 0.02)])
            found = await asyncio.wait_for(graph.ainvoke(given), patience)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - its kind is compared
            counts[type(error).__name__] += 1
            return
        counts["ended"] += 1
        texts = [f"{name} on {given['topic']}" for name in ("first", "second", "third")]
        wanted = [answer for text in texts for answer in (f"about {text}", *[str([float(len(text))])] * 3)]
        for want, note in zip(wanted, found["notes"], strict=True):
            assert note in ("too late", want)
            counts["call too late" if note == "too late" else "call answered"] += 1

    for begin in range(0, runs, 10):
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*map(one, range(begin, begin + 10)))
    await asyncio.sleep(0.05)
    assert not complaints, complaints[:3]
    return counts


def same_kinds(n: int, runs: int) -> None:
    rng = random.Random(n)
    graph = hasty(declared(Moments(rng=CHANCE), n), declared(Vectors(), n), rng)
    fast = accel.accelerate(graph)

    async def main() -> None:
        for topic in LEARNT:
            await fast.ainvoke({"topic": topic})
        await asyncio.to_thread(accel.settle, WAIT_S)
        plain, accelerated = await kinds_of(graph, runs, rng), await kinds_of(fast, runs, rng)
        assert set(plain) == set(accelerated) == {"ended", "TimeoutError", "call too late", "call answered"}, (
            plain,
            accelerated,
        )

    asyncio.run(main())
    was_early(fast)


@ns
@apart
def test_timeouts_at_random_moments(n: int) -> None:
    same_kinds(n, 300)


@pytest.mark.long
@pytest.mark.timeout(600)
@ns
@apart(within_s=500.0)
def test_ten_thousand_timeouts_at_random_moments(n: int) -> None:
    same_kinds(n, 10_000)
