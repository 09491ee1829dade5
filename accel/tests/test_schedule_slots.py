"""Places in an engine: some kept for demands, and early calls that become demands while they wait."""

from __future__ import annotations

import asyncio

from accel.engine import DEMAND, Priority
from accel.engine.slots import Slots


async def settled() -> None:
    """Let every task that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


class Engine:
    """Serves for ever, and begins at once unless it is `slow`; remembers who is inside, as they came in."""

    def __init__(self, places: int, slow: bool = False) -> None:
        self.slots = Slots(places)
        self.begun = asyncio.Event()
        if not slow:
            self.begun.set()
        self.inside: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def ask(self, name: str, priority: Priority = DEMAND) -> None:
        self.tasks[name] = asyncio.get_running_loop().create_task(self._serve(name, priority))

    async def _serve(self, name: str, priority: Priority) -> None:
        async with self.slots.place(priority) as begin:
            self.inside.append(name)
            await self.begun.wait()
            begin()
            await asyncio.get_running_loop().create_future()

    async def end(self, *names: str) -> None:
        for name in names:
            self.tasks[name].cancel()
        await asyncio.wait([self.tasks[name] for name in names])
        await settled()


async def test_early_work_leaves_places_to_demands() -> None:
    engine = Engine(4)
    for n in range(4):
        engine.ask(f"early {n}", Priority(9))
    await settled()
    assert engine.inside == ["early 0", "early 1", "early 2"]
    engine.ask("demand")
    await settled()
    assert engine.inside[-1] == "demand", "it passes the early call that waits"
    await engine.end("early 0")
    assert "early 3" not in engine.inside, "a demand holds the place that is free for early work"
    await engine.end("demand")
    assert engine.inside[-1] == "early 3"
    await engine.end("early 1", "early 2", "early 3")


async def test_early_prompts_are_prefilled_by_themselves() -> None:
    """A demand's first token doesn't wait for early prompts beside it, and for one at most that had begun."""
    engine = Engine(8, slow=True)
    for name, priority in (("early 0", Priority(9)), ("early 1", Priority(9)), ("demand 0", DEMAND)):
        engine.ask(name, priority)
        await settled()
    engine.ask("demand 1")
    await settled()
    assert engine.inside == ["early 0", "demand 0", "demand 1"]
    await engine.end("early 0", "demand 0")
    assert engine.inside == ["early 0", "demand 0", "demand 1"]
    engine.begun.set()
    await settled()
    assert engine.inside == ["early 0", "demand 0", "demand 1", "early 1"]
    await engine.end("demand 1", "early 1")


async def test_an_early_call_that_is_demanded_passes_the_others() -> None:
    engine = Engine(1)
    wanted = Priority(50)
    engine.ask("running")
    for name, priority in (("urgent", Priority(1)), ("other", Priority(50)), ("wanted", wanted)):
        engine.ask(name, priority)
    await settled()
    await asyncio.to_thread(wanted.raise_to_demand)
    await engine.end("running")
    assert engine.inside == ["running", "wanted"]
    await engine.end("wanted")
    assert engine.inside[-1] == "urgent"
    await engine.end("urgent", "other")


async def test_raising_fills_a_place_that_was_kept_for_demands() -> None:
    engine = Engine(2)
    wanted = Priority(5)
    engine.ask("early", Priority(5))
    engine.ask("wanted", wanted)
    await settled()
    assert engine.inside == ["early"]
    wanted.raise_to_demand()
    await settled()
    assert engine.inside == ["early", "wanted"]
    await engine.end("early", "wanted")


async def test_who_is_cancelled_holds_no_place() -> None:
    engine = Engine(1)
    for name in ("running", "gone", "next"):
        engine.ask(name)
    await settled()
    await engine.end("gone")
    engine.tasks["running"].cancel()
    engine.tasks["next"].cancel()  # it may just be given the place
    await settled()
    engine.ask("last")
    await settled()
    assert engine.inside == ["running", "last"]
    await engine.end("last")


async def test_only_so_many_have_a_place_before_they_have_begun() -> None:
    slots = Slots(4, starting=1)
    begun: dict[str, asyncio.Event] = {name: asyncio.Event() for name in ("first", "early", "demand")}
    inside: list[str] = []

    async def serve(name: str, priority: Priority) -> None:
        async with slots.place(priority) as begin:
            inside.append(name)
            await begun[name].wait()
            begin()
            begin()
            await asyncio.get_running_loop().create_future()

    tasks = [asyncio.create_task(serve("first", DEMAND)), asyncio.create_task(serve("early", Priority(1)))]
    await settled()
    tasks.append(asyncio.create_task(serve("demand", DEMAND)))
    await settled()
    assert inside == ["first"]
    begun["first"].set()
    await settled()
    assert inside == ["first", "demand"], "what came later, and is more urgent, has not been overtaken"
    tasks[2].cancel()  # before it has begun: the next may
    await settled()
    assert inside == ["first", "demand", "early"]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_of_a_batch_what_begins_like_prompts_before_it_comes_next() -> None:
    slots = Slots(1)
    slots.caches(2, None)
    served: list[str] = []

    async def ask(name: str, prompt: list[int], batch: bool) -> None:
        async with slots.place(Priority(0, "batch" if batch else name, 1.0 - batch, batch=batch), prompt) as begin:
            served.append(name)
            begin()

    async with slots.place(DEMAND, [1, 2, 3, 4]):
        asked = [ask(f"{prompt[0]}{n}", [*prompt, n, n], True) for n in range(3) for prompt in ([5, 6], [1, 2, 3, 4])]
        tasks = [asyncio.create_task(one) for one in [*asked, ask("alone", [9], False)]]
        await settled()
    await asyncio.gather(*tasks)
    assert served == ["10", "11", "12", "50", "51", "52", "alone"]


async def test_who_is_cancelled_in_the_moment_a_place_is_free_takes_none() -> None:
    engine = Engine(1)
    engine.ask("first")
    await settled()
    for name in ("cancelled", "next", "last"):
        engine.ask(name)
    await settled()
    engine.tasks["first"].cancel()  # whose end gives away its place, before the other has been told
    engine.tasks["cancelled"].cancel()
    await settled()
    assert engine.inside == ["first", "next"]
    await engine.end("last", "next")
    assert engine.inside == ["first", "next"] and not len(engine.slots._entrance.waiting)
