"""The order of a batch's calls by what the cache has: kept, it is the one that is found by looking at all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from accel.engine import Priority
from accel.engine.batching import Policy, Waiting, topology_aware
from accel.engine.beginnings import BATCH_AGING_S, Beginnings
from accel.engine.tickets import AGING_S, Ticket
from accel.tests.told_cache import ToldCache

Block = str
"""All of a prompt up to its end: prompts are words of one letter."""


def blocks_of(prompt: str) -> list[Block]:
    return [prompt[: n + 1] for n in range(len(prompt))]


class Cache(ToldCache):
    def change(self, which: set[Hashable], block: Block) -> None:
        which.symmetric_difference_update({block})
        self.tell(block)


def looked_at_all(ordered: list[Ticket[str]], now_s: float, cache: Cache) -> list[Ticket[str]]:
    """The rule, in its plainest form."""
    lines: defaultdict[tuple[str, bool], list[Ticket[str]]] = defaultdict(list)
    for ticket in ordered:
        if ticket.priority.batch:
            lines[ticket.priority.run, ticket.priority.value > 0].append(ticket)
    again = {key: iter(batch_order(line, now_s, cache)) for key, line in lines.items()}
    return [
        next(again[ticket.priority.run, ticket.priority.value > 0]) if ticket.priority.batch else ticket
        for ticket in ordered
    ]


def batch_order(line: list[Ticket[str]], now_s: float, cache: Cache) -> Iterator[Ticket[str]]:
    looked = [(cache.reuse(blocks_of(ticket.entries[0])), ticket) for ticket in line]
    looked.sort(key=lambda pair: (-pair[0].worth, -pair[1].priority.depth, pair[1].number))
    overdue: list[Ticket[str]] = []
    first: list[Ticket[str]] = []
    behind: list[Ticket[str]] = []
    opened: set[Hashable] = set()
    for held, ticket in looked:
        if now_s - ticket.since_s >= BATCH_AGING_S:
            overdue.append(ticket)
        elif held.coming or held.next in opened:
            behind.append(ticket)
        else:
            first.append(ticket)
            if held.next is not None:
                opened.add(held.next)
    yield from (*overdue, *first, *behind)


PROMPTS = st.text("ab", max_size=3)


class AnEngineAndALine(RuleBasedStateMachine):
    """Calls of two batches and of runs, in a line of the engine's own and in one that it shares with another."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.cache, self.other_cache = Cache(), Cache()
        self.tickets: list[tuple[Waiting[str], Ticket[str]]] = []

    @initialize(before=st.lists(st.tuples(PROMPTS, st.integers(0, 2)), max_size=3))
    def begin(self, before: list[tuple[str, int]]) -> None:
        self.shared: Waiting[str] = Waiting(now_s=self.now)
        for prompt, depth in before:
            self.add([[prompt]], depth, "batch 1", False, True)
        self.engine: Waiting[str] = Waiting(now_s=self.now, shared=self.shared)
        self.engine.caches(self.cache, blocks_of)
        self.other: Waiting[str] = Waiting(now_s=self.now, shared=self.shared)
        self.other.caches(self.other_cache, blocks_of)

    def now(self) -> float:
        return self.now_s

    @rule(
        calls=st.lists(st.lists(PROMPTS, min_size=1, max_size=2), min_size=1, max_size=5),
        depth=st.integers(0, 2),
        name=st.sampled_from(["batch 1", "batch 1", "batch 2", "run"]),
        is_early=st.booleans(),
        is_shared=st.booleans(),
    )
    def add(self, calls: list[list[str]], depth: int, name: str, is_early: bool, is_shared: bool) -> None:
        waiting = self.shared if is_shared else self.engine
        for prompts in calls:
            priority = Priority(int(is_early), name, 1.0, depth, name.startswith("batch"))
            self.tickets.append((waiting, waiting.add(prompts, priority)))

    @precondition(lambda self: self.tickets)
    @rule(data=st.data(), is_coming=st.booleans(), is_other=st.booleans())
    def change(self, data: st.DataObject, is_coming: bool, is_other: bool) -> None:
        cache = self.other_cache if is_other else self.cache
        entries = [entry for _, ticket in self.tickets for entry in ticket.entries]
        blocks = sorted({block for entry in entries for block in blocks_of(entry)})
        if blocks:
            cache.change(cache.coming if is_coming else cache.held, data.draw(st.sampled_from(blocks)))

    @rule(seconds=st.sampled_from([AGING_S, BATCH_AGING_S - AGING_S, BATCH_AGING_S]))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def demand(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.tickets))[1].priority.raise_to_demand()

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        waiting, ticket = data.draw(st.sampled_from(self.tickets))
        waiting.leave(ticket)

    @rule(unwanted=PROMPTS)
    def drop(self, unwanted: str) -> None:
        for waiting in (self.engine, self.shared):
            waiting.drop(lambda prompt: prompt == unwanted)

    @rule(count=st.integers(1, 2), by_other=st.booleans())
    def take(self, count: int, by_other: bool) -> None:
        left = iter(range(count))
        (self.other if by_other else self.engine).take(lambda _: next(left, None) is not None)

    @invariant()
    def it_is_the_order_that_is_found_by_looking_at_all(self) -> None:
        if not hasattr(self, "other"):
            return
        plain = Waiting(Policy(topology_aware, reuses=False), self.now, self.shared)
        self.tickets = [pair for pair in self.tickets if pair[1].entries]
        for engine, cache, own in ((self.engine, self.cache, True), (self.other, self.other_cache, False)):
            kept = list(engine._in_line(self.now_s))
            plain._line = engine._line
            assert kept == looked_at_all(list(plain._in_line(self.now_s)), self.now_s, cache)
            there = [ticket for waiting, ticket in self.tickets if own or waiting is self.shared]
            assert sorted(map(id, kept)) == sorted(map(id, there))


TestAnEngineAndALine = AnEngineAndALine.TestCase
TestAnEngineAndALine.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)


def test_when_none_wait_nothing_is_kept() -> None:
    cache = Cache()
    kept: Beginnings[str] = Beginnings(cache, blocks_of)
    waiting: Waiting[str] = Waiting()
    tickets = [waiting.add([prompt], Priority(early, "batch", batch=True)) for prompt, early in (("ab", 0), ("b", 1))]
    for ticket in tickets:
        kept.add(ticket)
    cache.change(cache.held, "a")
    kept.look(0.0)
    for ticket in tickets:
        kept.remove(ticket)
    assert not (kept._standings or kept._batches or kept._deciding or kept._young)
