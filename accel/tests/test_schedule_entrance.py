"""One line in front of equal engines: who takes what, and that nothing waits for a busy one beside an idle one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.engine import DEMAND, Priority, Session
from accel.engine.batching import LOOKED_AT
from accel.engine.slots import Entrance, Slots
from accel.process.clock import now_s

EARLY = 7


async def settled() -> None:
    """Let every task that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


class Group:
    """Engines that serve until they are told to end; `at` says which one serves whom, `log` who came in, in order."""

    def __init__(
        self, engines: int, places: int = 1, *, starting: int = 0, block: int = 0, kv: int | None = None
    ) -> None:
        self.entrance = Entrance()
        self.others = [0.0] * engines
        self.slots = [
            Slots(places, starting, entrance=self.entrance, others=lambda n=n: self.others[n])  # type: ignore[misc]
            for n in range(engines)
        ]
        for slots in self.slots:
            slots.caches(block, kv)
        self.at: dict[str, int] = {}
        self.log: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}

    async def ask(
        self, name: str, priority: Priority = DEMAND, prompt: Sequence[int] = (), *, begins: bool = True, **given: Any
    ) -> None:
        self._ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._serve(name, priority, prompt, begins, given))
        await settled()

    async def _serve(self, name: str, priority: Priority, prompt: Sequence[int], begins: bool, given: Any) -> None:
        async with self.entrance.place(priority, prompt, **given) as turn:
            self.at[name] = self.slots.index(turn.slots)
            self.log.append(name)
            try:
                if begins:
                    turn.begin()
                await self._ends[name].wait()
            finally:
                del self.at[name]

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
        await settled()

    async def cancel(self, *names: str) -> None:
        for name in names:
            self.tasks[name].cancel()
        await settled()


async def test_what_waits_is_taken_by_whichever_engine_has_room_first() -> None:
    group = Group(2)
    for name in ("a", "b", "c", "d"):
        await group.ask(name)
    assert group.at == {"a": 0, "b": 1}
    await group.end("b")
    assert group.at == {"a": 0, "c": 1}
    await group.end("c")
    assert group.at == {"a": 0, "d": 1}, "the first engine is still busy with its first call"
    await group.end("a", "d")


async def test_the_line_has_one_order() -> None:
    group = Group(2)
    late = Session("late", due_s=now_s() + 500)
    soon = Session("soon", due_s=now_s() + 100)
    for name in ("a", "b"):
        await group.ask(name)
    await group.ask("early", Priority(EARLY))
    await group.ask("shallow", Priority(0, "run", 1.0, depth=1))
    await group.ask("deep", Priority(0, "run", 1.0, depth=5))
    await group.ask("late", Priority(session=late))
    await group.ask("soon", Priority(session=soon))
    for name in ("a", "b", "soon", "late", "deep", "shallow", "early"):
        await group.end(name)
    assert group.log == ["a", "b", "soon", "late", "deep", "shallow", "early"]


async def test_a_prompt_goes_where_its_beginning_is_if_there_is_room_and_else_to_an_idle_one() -> None:
    document, group = [1, 2, 3, 4], Group(2, places=2, block=2)
    await group.ask("a", prompt=document)
    await group.ask("b", prompt=[*document, 5])
    assert group.at == {"a": 0, "b": 0}
    await group.ask("c", prompt=[*document, 6])
    assert group.at["c"] == 1, "the first engine is full"
    await group.end("b")
    await group.ask("d", prompt=[9, 9])
    assert group.at["d"] == 0, "both have one request"
    await group.end("a", "c", "d")


async def test_an_engine_that_is_beginning_as_many_as_it_may_is_passed_by() -> None:
    group = Group(2, places=4, starting=1, block=2)
    await group.ask("a", prompt=[1, 2], begins=False)
    await group.ask("b", prompt=[1, 2], begins=False)
    await group.ask("c", prompt=[1, 2])
    assert group.at == {"a": 0, "b": 1}
    await group.cancel("b")
    assert group.at == {"a": 0, "c": 1}
    await group.end("a", "c")


async def test_who_is_raised_while_it_waits_takes_a_place_kept_for_demands() -> None:
    group, wanted = Group(2, places=2), Priority(EARLY)
    for n in range(4):
        await group.ask(f"early {n}", Priority(EARLY))
    await group.ask("wanted", wanted)
    assert group.at == {"early 0": 0, "early 1": 1}
    await asyncio.to_thread(wanted.raise_to_demand)
    await settled()
    assert group.log == ["early 0", "early 1", "wanted"]
    await group.cancel(*group.tasks)


async def test_the_line_knows_who_was_raised_before_anybody_looks_at_it() -> None:
    """The loop may do so while another thread is still raising."""
    group, wanted = Group(1, places=2), Priority(EARLY)
    group.entrance.look_again = lambda loop: group.entrance.admit()  # type: ignore[method-assign]
    await group.ask("early", Priority(EARLY))
    await group.ask("wanted", wanted)
    wanted.raise_to_demand()
    await settled()
    assert group.log == ["early", "wanted"]
    await group.cancel(*group.tasks)


async def test_who_is_cancelled_while_it_waits_is_in_nobodys_way() -> None:
    group = Group(2)
    for name in ("a", "b", "gone", "c"):
        await group.ask(name)
    await group.cancel("gone")
    group.tasks["a"].cancel()
    group.tasks["c"].cancel()  # it may just be given the place
    await settled()
    await group.ask("d")
    assert group.at == {"b": 1, "d": 0} and not len(group.entrance.waiting)
    await group.end("b", "d")


async def test_an_engine_that_is_down_takes_nothing_and_takes_over_when_it_is_back() -> None:
    group = Group(2)
    group.others[0] = math.inf
    await group.ask("a")
    await group.ask("b")
    assert group.at == {"a": 1}
    group.others[0] = 0.0
    group.entrance.admit()
    await settled()
    assert group.at == {"a": 1, "b": 0}
    await group.end("a", "b")


async def test_nothing_waits_where_all_are_down() -> None:
    """It is given to one of them, which says what is wrong or waits until it is back."""
    group = Group(2)
    group.others = [math.inf, math.inf]
    await group.ask("a")
    await group.ask("b")
    assert sorted(group.at) == ["a", "b"]
    await group.end("a", "b")


async def test_what_only_one_can_serve_waits_for_that_one() -> None:
    group = Group(2)
    await group.ask("a", only=group.slots[0])
    await group.ask("bound", only=group.slots[0])
    await group.ask("free")
    assert group.at == {"a": 0, "free": 1}
    await group.end("free")
    assert group.at == {"a": 0}
    await group.end("a")
    assert group.at == {"bound": 0}
    await group.end("bound")


async def test_an_engine_whose_cache_is_full_leaves_a_run_to_one_that_is_idle() -> None:
    """Although it has the longer beginning, and places."""
    group, runs = Group(2, places=8, block=1, kv=10), [Session(f"run {n}") for n in range(2)]
    await group.ask("a", Priority(session=runs[0]), [1, 2, 3, 4, 5, 6, 7, 8])
    await group.ask("b", Priority(session=runs[1]), [1, 2, 20, 21, 22, 23, 24])
    assert group.at == {"a": 0, "b": 1}
    await group.end("a", "b")


async def test_who_is_cancelled_in_the_moment_a_place_is_free_holds_nothing_of_the_cache() -> None:
    group = Group(1, block=1, kv=10)
    await group.ask("a", Priority(session=Session("a")), [1])
    await group.ask("b", Priority(session=Session("b")), [2, 3, 4, 5, 6, 7, 8, 9])
    group.tasks["a"].cancel()  # whose end gives away its place, before the other has been told
    group.tasks["b"].cancel()
    await settled()
    admission = group.slots[0]._waiting._admission
    assert admission is not None and not admission._running


async def test_who_is_cancelled_when_it_has_just_got_its_place_gives_it_back() -> None:
    group = Group(1)
    for name in ("a", "b", "c"):
        await group.ask(name)
    group.tasks["a"].cancel()
    asyncio.get_running_loop().call_soon(group.tasks["b"].cancel)  # before it is told
    await settled()
    assert group.log == ["a", "c"]
    await group.end("c")


async def test_what_waits_when_the_engines_are_closed_ends() -> None:
    group = Group(2)
    for name in ("a", "b", "c"):
        await group.ask(name)
    group.entrance.close(lambda: RuntimeError("closed"))
    await group.ask("d")
    for name in ("c", "d"):
        with pytest.raises(RuntimeError, match="closed"):
            await group.tasks[name]
    await group.end("a", "b")
    assert group.log == ["a", "b"]


async def test_a_call_takes_as_many_places_as_it_is_large() -> None:
    group = Group(2, places=10)
    await group.ask("large", size=25)
    await group.ask("small", size=9)
    await group.ask("other", size=9)
    await group.ask("waits", size=1)
    assert group.at == {"large": 0, "small": 1, "other": 1}
    await group.end("large")
    assert group.at["waits"] == 0
    await group.end("small", "other", "waits")


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "early", "end", "cancel", "raise", "down", "up"]), st.integers(0, 9)), max_size=40
)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), STEPS)
def test_whatever_happens_no_demand_waits_beside_a_free_place_and_each_is_served_once(
    engines: int, places: int, steps: list[tuple[str, int]]
) -> None:
    async def main() -> None:
        group = Group(engines, places, block=1)
        priorities: dict[str, Priority] = {}
        for n, (what, number) in enumerate(steps):
            under_way = [name for name, task in group.tasks.items() if not task.done()]
            chosen = under_way[number % len(under_way)] if under_way else None
            if what in ("ask", "early"):
                priorities[str(n)] = Priority(EARLY if what == "early" else 0)
                await group.ask(str(n), priorities[str(n)], [number % 3, number])
            elif what in ("down", "up"):
                group.others[number % engines] = math.inf if what == "down" else 0.0
                group.entrance.admit()
                await settled()
            elif chosen is not None and what == "end" and chosen in group.at:
                await group.end(chosen)
            elif chosen is not None and what == "cancel":
                await group.cancel(chosen)
            elif chosen is not None and what == "raise":
                priorities[chosen].raise_to_demand()
                await settled()
            at = list(group.at.values())
            up = [n for n in range(engines) if group.others[n] < math.inf] or range(engines)
            waiting = [name for name, task in group.tasks.items() if not task.done() and name not in group.at]
            assert all(at.count(n) <= places for n in range(engines))
            assert all(at.count(n) == places for n in up) or all(priorities[name].value for name in waiting)
        for name, priority in priorities.items():
            priority.raise_to_demand()
            await group.end(name)
        assert all(task.done() for task in group.tasks.values()) and not len(group.entrance.waiting)
        assert len(group.log) == len(set(group.log))

    asyncio.run(main())


async def test_a_call_of_a_batch_with_a_deadline_is_served_though_it_was_raised_while_it_waited() -> None:
    def early(name: str) -> Priority:
        return Priority(EARLY, "batch", now_s(), 0, True, Session(name, now_s() + 600.0))

    group, prompt = Group(1, places=4, block=4, kv=1_000), range(16)
    first, second, third = early("first"), early("second"), early("third")
    await group.ask("first", first, prompt, begins=False)
    await group.ask("second", second, prompt)
    await group.ask("third", third, prompt)
    second.raise_to_demand()
    await settled()
    assert "second" in group.at
    await group.end("first")
    assert "third" in group.at
    await group.end("second")
    await group.end("third")


async def test_what_only_another_engine_may_serve_is_in_nobodys_way() -> None:
    group, waits = Group(2, places=4, block=4, kv=100), range(LOOKED_AT + 2)
    for number, slots in enumerate(group.slots):
        prompt = range(5_000 * number, 5_000 * number + 300)
        await group.ask(f"holder {number}", of_run(f"{number}"), prompt, only=slots)
    for number in waits:
        prompt = range(10_000 * number + 100_000, 10_000 * number + 100_080)
        await group.ask(f"waits {number}", of_run(f"w{number}"), prompt, only=group.slots[0])
    await group.ask("small", of_run("small"), range(8), only=group.slots[1])
    assert group.at["small"] == 1
    for task in group.tasks.values():
        task.cancel()


def of_run(name: str) -> Priority:
    return Priority(0, name, now_s(), session=Session(name))
