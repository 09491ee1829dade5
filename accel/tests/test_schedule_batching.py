"""Topology-aware batching (Ayo, algorithm 2): order, aging, batches by tokens, priorities as numbers."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.engine import Priority, Session
from accel.engine.batching import (
    AGING_S,
    POLICIES,
    RESERVED,
    TOPOLOGY_AWARE,
    Waiting,
    batch_tokens,
    policy_named,
    request_priority,
    token_capped,
)
from accel.engine.beginnings import BATCH_AGING_S
from accel.engine.profile import Profile
from accel.errors import ConfigurationError
from accel.tests.told_cache import ToldCache

EARLY = 1


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def first(count: int) -> Callable[[object], bool]:
    """Accepts so many."""
    left = iter(range(count))
    return lambda _: next(left, None) is not None


def everything(waiting: Waiting[str]) -> list[str]:
    return waiting.take(lambda _: True)


def demand(run: str, arrived_s: float, depth: int = 0) -> Priority:
    return Priority(0, run, arrived_s, depth)


def early(run: str, arrived_s: float, depth: int = 0) -> Priority:
    return Priority(EARLY, run, arrived_s, depth)


# --- algorithm 2


def test_the_papers_example() -> None:
    """Figure 7: query 1 waits with A and B, of which B helps nobody yet; query 2 with G and H. With two slots, A and G
    bring both queries forward."""
    waiting: Waiting[str] = Waiting()
    waiting.add(["A"], demand("1", 0.0, depth=3))
    waiting.add(["B"], demand("1", 0.0, depth=2))
    waiting.add(["G"], demand("2", 1.0, depth=3))
    waiting.add(["H"], demand("2", 1.0, depth=1))
    assert waiting.take(first(2)) == ["A", "G"]
    assert waiting.take(first(2)) == ["B", "H"]
    assert len(waiting) == 0


def test_the_run_that_began_first_comes_first_whenever_its_call_came() -> None:
    waiting: Waiting[str] = Waiting()
    waiting.add(["young 1", "young 2", "young 3"], demand("young", 7.0, depth=9))
    waiting.add(["old"], demand("old", 3.0, depth=1))
    assert waiting.take(first(2)) == ["old", "young 1"]
    waiting.add(["old again"], demand("old", 3.0))
    assert everything(waiting) == ["old again", "young 2", "young 3"]


def test_the_slots_are_filled_with_the_next_depths() -> None:
    waiting: Waiting[str] = Waiting()
    for run, arrived_s in (("b", 2.0), ("a", 1.0)):
        for depth in (1, 5, 3):
            waiting.add([f"{run}{depth}", f"{run}{depth}'"], demand(run, arrived_s, depth))
    assert waiting.take(first(3)) == ["a5", "a5'", "b5"]
    # What is left of a call stays the deepest of its run; a run whose deepest is gone goes on with its next.
    assert everything(waiting) == ["a3", "a3'", "b5'", "a1", "a1'", "b3", "b3'", "b1", "b1'"]


def test_calls_of_one_depth_go_in_the_order_of_their_arrival() -> None:
    waiting: Waiting[str] = Waiting()
    for name in "cab":
        waiting.add([name], demand("run", 1.0, depth=4))
    assert everything(waiting) == ["c", "a", "b"]


def test_runs_that_began_together_stay_together() -> None:
    waiting: Waiting[str] = Waiting()
    for name in ("1 first", "2 first", "1 second", "2 second"):
        waiting.add([name], demand(name[0], 5.0))
    assert everything(waiting) == ["1 first", "1 second", "2 first", "2 second"]


def test_a_call_of_no_run_is_a_run_that_begins_when_it_comes() -> None:
    clock = Clock()
    waiting: Waiting[str] = Waiting(now_s=clock)
    for name in ("first", "second"):
        waiting.add([name], Priority())
        clock.now_s += 1
    waiting.add(["before"], demand("before", 999.0))
    waiting.add(["between"], demand("between", 1000.5))
    assert everything(waiting) == ["before", "first", "between", "second"]


# --- demands and early work


def test_demands_come_before_early_work_of_any_run() -> None:
    waiting: Waiting[str] = Waiting()
    waiting.add(["early"], early("old", 1.0, depth=9))
    waiting.add(["demand"], demand("young", 5.0))
    waiting.add(["deep"], early("young", 5.0, depth=3))
    waiting.add(["deeper"], early("young", 5.0, depth=4))
    waiting.add(["late"], Priority(7, "old", 1.0, 20))
    assert everything(waiting) == ["demand", "early", "deeper", "deep", "late"]


def test_what_the_program_comes_to_wait_for_takes_its_place_among_the_demands() -> None:
    waiting: Waiting[str] = Waiting()
    wanted = early("old", 1.0)
    waiting.add(["wanted"], wanted)
    waiting.add(["demand"], demand("young", 5.0))
    assert waiting.take(first(0)) == []
    wanted.raise_to_demand()
    assert everything(waiting) == ["wanted", "demand"]


def test_early_work_leaves_places_to_demands() -> None:
    assert [TOPOLOGY_AWARE.places(places, Priority(EARLY)) for places in (1, 2, 4, 64)] == [1, 1, 3, 48]
    assert TOPOLOGY_AWARE.places(64, Priority()) == 64 and RESERVED == 0.25


# --- aging


def test_early_work_that_has_waited_long_counts_as_demanded() -> None:
    clock = Clock()
    waiting: Waiting[str] = Waiting(now_s=clock)
    raised: list[str] = []
    patient = early("old", 1.0)
    patient.on_raise(lambda: raised.append("patient"))
    waiting.add(["patient"], patient)
    for _ in range(3):
        clock.now_s += AGING_S / 3 - 0.1
        waiting.add(["demand"], demand("young", clock.now_s))
        assert waiting.take(first(1)) == ["demand"]
    clock.now_s += 1.0
    waiting.add(["demand"], demand("young", clock.now_s))
    assert waiting.take(first(1)) == ["patient"] and raised == ["patient"]


def test_a_demand_that_has_waited_long_passes_the_runs_before_its_own() -> None:
    clock = Clock()
    waiting: Waiting[str] = Waiting(now_s=clock)
    waiting.add(["patient"], demand("young", 1000.0))
    for _ in range(5):
        clock.now_s += AGING_S / 5 - 0.1
        waiting.add(["old"], demand("old", 0.0))
        assert waiting.take(first(1)) == ["old"]
    waiting.add(["old"], demand("old", 0.0))
    clock.now_s += 1.0
    assert everything(waiting) == ["patient", "old"]


@pytest.mark.parametrize("seed", range(10))
def test_nothing_starves_and_nothing_is_lost(seed: int) -> None:
    """An old run and young ones keep an engine busy that is just fast enough; whatever the order, every call is served
    once, and soon after it has become overdue."""
    dice = random.Random(seed)
    clock = Clock()
    waiting: Waiting[tuple[int, float]] = Waiting(now_s=clock)
    served: Counter[int] = Counter()
    waits = []
    for tick in range(2000):
        if tick < 1000:
            run = dice.choice(["old", f"young {tick // 20}"])
            arrived_s = 0.0 if run == "old" else 1000.0 + tick // 20
            value = dice.choice([0, 0, EARLY])
            waiting.add([(tick, clock.now_s)], Priority(value, run, arrived_s, dice.randrange(5)))
        for number, since_s in waiting.take(first(1)):
            served[number] += 1
            waits.append(clock.now_s - since_s)
        clock.now_s += 0.9 if dice.random() < 0.5 else 1.1
    assert served == Counter(range(1000)) and len(waiting) == 0
    assert max(waits) < 3 * AGING_S


# --- the queue


def test_entries_that_are_no_longer_wanted_leave() -> None:
    waiting: Waiting[str] = Waiting()
    waiting.add(["a", "b", "c"], demand("run", 1.0))
    waiting.add(["b"], demand("run", 1.0, depth=2))
    waiting.add([], demand("run", 1.0))
    waiting.drop(lambda entry: entry == "b")
    assert list(waiting) == ["a", "c"] and len(waiting) == 2
    assert waiting.take(first(1)) == ["a"]
    waiting.clear()
    assert everything(waiting) == [] and not list(waiting)


def test_the_first_that_is_not_accepted_ends_the_batch() -> None:
    waiting: Waiting[int] = Waiting()
    waiting.add([5, 9, 1], demand("a", 1.0))
    waiting.add([2], demand("b", 2.0))
    assert waiting.take(lambda entry: entry < 9) == [5]
    assert list(waiting) == [9, 1, 2]


def test_batches_hold_so_many_tokens_with_their_padding() -> None:
    waiting: Waiting[int] = Waiting()
    waiting.add([10, 20, 30, 5, 90, 200, 1], demand("a", 1.0))
    batches = []
    while len(waiting):
        batches.append(waiting.take(token_capped(90, lambda tokens: tokens)))
    assert batches == [[10, 20, 30], [5], [90], [200], [1]]


def test_a_batch_is_no_larger_than_the_engine_needs_to_be_efficient() -> None:
    batches = ((1, 100, 1.0), (2, 100, 1.2), (4, 100, 2.0), (8, 100, 3.9))
    profile = Profile("embedding", batches=batches, batch_tokens=800)
    assert profile.efficient_batch_tokens == batch_tokens(profile) == 400
    assert batch_tokens(Profile("embedding", batches=batches, batch_tokens=200)) == 200
    assert batch_tokens(Profile("embedding", batches=batches)) == 0


def test_the_other_policies_know_less() -> None:
    def order(name: str) -> list[str]:
        waiting: Waiting[str] = Waiting(policy_named(name))
        waiting.add(["early"], early("old", 1.0, depth=3))
        waiting.add(["young"], demand("young", 5.0))
        waiting.add(["old"], demand("old", 1.0))
        return everything(waiting)

    assert {name: order(name) for name in POLICIES} == {
        "topology-aware": ["old", "young", "early"],
        "topology-aware, without reuse": ["old", "young", "early"],
        "topology-aware, without admission": ["old", "young", "early"],
        "topology-aware, without deadlines": ["old", "young", "early"],
        "run by run": ["old", "young", "early"],
        "demands first": ["young", "old", "early"],
        "blind": ["early", "young", "old"],
    }
    with pytest.raises(ConfigurationError, match="topology-aware"):
        policy_named("clever")


# --- batches


Block = tuple[str, ...]


def blocks_of(prompt: str) -> list[Block]:
    """Prompts are words, and so are blocks: a prompt of `n` words has `n` of them, each named by all up to it."""
    words = prompt.split()
    return [tuple(words[: n + 1]) for n in range(len(words))]


class Cache(ToldCache):
    def __init__(self, *held: str) -> None:
        super().__init__()
        self.held.update(block for text in held for block in blocks_of(text))

    def change(self, block: Block, held: bool, coming: bool) -> None:
        for blocks, there in ((self.held, held), (self.coming, coming)):
            (blocks.add if there else blocks.discard)(block)
        self.tell(block)


def waiting_for(cache: Cache, now_s: Callable[[], float], policy: str = "topology-aware") -> Waiting[str]:
    waiting: Waiting[str] = Waiting(policy_named(policy), now_s)
    waiting.caches(cache, blocks_of)
    return waiting


def of_batch(depth: int = 0, at_s: float = 1.0, name: str = "batch") -> Priority:
    return Priority(0, name, at_s, depth, batch=True)


def line(cache: Cache, *prompts: str, policy: str = "topology-aware") -> list[str]:
    waiting = waiting_for(cache, Clock(), policy)
    for prompt in prompts:
        waiting.add([prompt], of_batch())
    return everything(waiting)


def test_of_a_batch_what_finds_most_in_the_cache_comes_first() -> None:
    prompts = ("b 1", "a b 2", "c 3", "a b c 4")
    assert line(Cache("a b c"), *prompts) == ["a b c 4", "a b 2", "b 1", "c 3"]
    assert line(Cache("a b c"), *prompts, policy="topology-aware, without reuse") == list(prompts)
    assert line(Cache("a b c"), *prompts, policy="blind") == list(prompts)


def test_one_opens_the_way_for_those_that_begin_like_it() -> None:
    assert line(Cache(), "a 1", "a 2", "b 1", "a 3", "b 2") == ["a 1", "b 1", "a 2", "a 3", "b 2"]
    cache = Cache()
    cache.coming = {("a",)}
    assert line(cache, "a 1", "a 2", "b 1") == ["b 1", "a 1", "a 2"]


def test_of_a_batch_the_deepest_come_first_where_the_cache_says_nothing() -> None:
    waiting = waiting_for(Cache(), Clock())
    for number, depth in enumerate([1, 3, 2, 3]):
        waiting.add([f"{number}"], of_batch(depth))
    assert everything(waiting) == ["1", "3", "2", "0"]


def test_instructions_alone_are_no_reason_to_serve_operator_by_operator() -> None:
    """Two judges of each text, and another engine waits for both: text by text it has something to do soon."""
    prompts = [f"{judge} reads the text {number}" for number in range(3) for judge in ("one", "two")]
    assert line(Cache("one"), *prompts) == prompts
    found = Cache("one reads the text 2")
    assert line(found, *prompts)[0] == "one reads the text 2", "but for what is most of a prompt"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.text("ab", min_size=1, max_size=5), st.integers(0, 3)), min_size=1, max_size=12),
    st.lists(st.text("ab", max_size=5), max_size=3),
    st.data(),
)
def test_whatever_is_in_the_cache_every_call_of_a_batch_is_served_once(
    calls: list[tuple[str, int]], held: list[str], data: st.DataObject
) -> None:
    clock, cache = Clock(), Cache(*(" ".join(prompt) for prompt in held))
    waiting: Waiting[int] = Waiting(now_s=clock)
    waiting.caches(cache, lambda number: blocks_of(" ".join(calls[number][0])))
    for number, (_, depth) in enumerate(calls):
        waiting.add([number], of_batch(depth))
    served: list[int] = []
    while len(waiting):
        skipped = data.draw(st.sets(st.sampled_from(range(len(calls)))))
        clock.now_s += BATCH_AGING_S / 3
        count = len(served)
        served += waiting.take(lambda number: None if number in skipped else len(served) <= count)  # noqa: B023
        served += waiting.take(first(1))
    assert sorted(served) == list(range(len(calls)))


@pytest.mark.parametrize("depth", [0, 3])
def test_nothing_of_a_batch_starves_beside_what_the_cache_always_has(depth: int) -> None:
    clock = Clock()
    waiting = waiting_for(Cache("a b"), clock)
    waiting.add(["alone"], of_batch())
    served = []
    while "alone" not in served:
        waiting.add(["a b"], of_batch(depth))
        served += waiting.take(first(1))
        clock.now_s += BATCH_AGING_S / 8
    assert len(served) == 9


def test_engines_that_share_a_line_take_from_it_beside_their_own() -> None:
    clock = Clock()
    shared: Waiting[str] = Waiting(now_s=clock)
    one, two = (Waiting(now_s=clock, shared=shared) for _ in range(2))
    one.caches(Cache("a b"), blocks_of)
    two.caches(Cache("c d"), blocks_of)
    for prompt in ("a b 1", "c d 2", "e 3"):
        shared.add([prompt], of_batch())
    one.add(["own"], demand("user", 0.5))
    assert two.take(first(1)) == ["c d 2"]
    assert one.take(first(2)) == ["own", "a b 1"]
    assert len(one) == len(two) == 0 and list(shared) == ["e 3"]
    assert two.take(lambda _: None) == [] and everything(one) == ["e 3"] and len(shared) == 0


def test_what_has_to_wait_for_something_else_than_room_lets_others_pass() -> None:
    waiting: Waiting[str] = Waiting(now_s=Clock())
    for name in ("first", "second", "third"):
        waiting.add([name], demand("run", 1.0))
    answers = {"first": None, "second": True, "third": False}
    assert waiting.take(lambda name: answers[name]) == ["second"]
    assert list(waiting) == ["first", "third"]


def test_run_by_run_a_run_of_a_batch_ends_before_the_next_begins() -> None:
    waiting: Waiting[str] = Waiting(policy_named("run by run"), Clock())
    for name, depth in (("2 first", 9), ("1 first", 1), ("1 second", 0), ("2 second", 8)):
        waiting.add([name], Priority(0, "batch", 5.0, depth, batch=True, session=Session(name[0])))
    assert everything(waiting) == ["1 first", "1 second", "2 first", "2 second"]


def test_the_calls_of_a_batch_change_places_among_themselves_alone() -> None:
    waiting = waiting_for(Cache("a b"), Clock())
    waiting.add(["x"], of_batch(at_s=1.0))
    waiting.add(["a b user"], demand("user", 2.0))
    waiting.add(["a y"], of_batch(at_s=3.0))
    waiting.add(["a early"], Priority(EARLY, "batch", 0.0, 9, batch=True))
    waiting.add(["a b other"], of_batch(at_s=4.0, name="other"))
    assert everything(waiting) == ["a y", "a b user", "x", "a b other", "a early"]


def test_a_call_of_a_batch_that_has_waited_long_comes_before_its_others() -> None:
    clock = Clock()
    waiting = waiting_for(Cache("a b"), clock)
    waiting.add(["alone"], of_batch())
    clock.now_s += BATCH_AGING_S
    waiting.add(["a b 1"], of_batch())
    assert everything(waiting) == ["alone", "a b 1"]


@pytest.mark.parametrize("seed", range(20))
def test_every_call_keeps_its_place_or_gets_another_one_of_its_batch(seed: int) -> None:
    cache = Cache("a b a", "c c")

    def taken(policy: str) -> list[tuple[int, Priority]]:
        dice, clock = random.Random(seed), Clock()
        waiting: Waiting[tuple[int, str]] = Waiting(policy_named(policy), clock)
        waiting.caches(cache, lambda entry: blocks_of(entry[1]))
        priorities: list[Priority] = []
        for number in range(40):
            run = dice.choice(["batch", "other", "r1", "r2", ""])
            of_many = run in ("batch", "other")
            priorities.append(Priority(dice.choice([0, EARLY]), run, dice.uniform(0, 9), dice.randrange(4), of_many))
            waiting.add([(number, " ".join(dice.choices("abc", k=4)))], priorities[-1])
            clock.now_s += dice.choice([0.0, 3.0])
        return [(number, priorities[number]) for number, _ in waiting.take(lambda _: True)]

    given, plain = taken("topology-aware"), taken("topology-aware, without reuse")
    assert sorted(number for number, _ in given) == list(range(40)) and given != plain
    for (now, one), (before, other) in zip(given, plain, strict=True):
        same_line = one.batch and other.batch and one.run == other.run and one.value == other.value
        assert now == before or same_line


# --- priorities


@pytest.mark.parametrize("seed", range(10))
def test_priorities_as_numbers_are_in_the_same_order(seed: int) -> None:
    dice = random.Random(seed)
    given = [
        Priority(dice.choice([0, EARLY]), f"run {n}", dice.uniform(0, 1e9), dice.randrange(300)) for n in range(50)
    ]
    waiting: Waiting[Priority] = Waiting(now_s=lambda: 2e9)
    for priority in given:
        waiting.add([priority], priority)
    numbers = [request_priority(priority, 2e9) for priority in waiting.take(lambda _: True)]
    assert numbers == sorted(numbers) and 0 <= numbers[0] and numbers[-1] < 2**63


def test_as_a_number_a_deeper_call_of_a_run_comes_first_and_a_call_of_no_run_begins_now() -> None:
    def number(priority: Priority) -> int:
        return request_priority(priority, 50.0)

    assert number(demand("a", 1.0, depth=5)) < number(demand("a", 1.0, depth=4)) < number(demand("b", 1.5, depth=9))
    assert number(demand("a", 49.0)) < number(Priority()) < number(demand("b", 51.0)) < number(early("a", 1.0, 9))
    assert number(demand("a", 1.0, depth=10**9)) <= number(demand("a", 1.0, depth=10**6))


def test_a_priority_that_is_sent_arrives_as_it_stands() -> None:
    sent = Priority(3, "run", 12.5, 4)
    raised: list[str] = []
    sent.on_raise(lambda: raised.append("here"))
    there = pickle.loads(pickle.dumps(sent))
    assert (there.value, there.run, there.arrived_s, there.depth) == (3, "run", 12.5, 4)
    there.raise_to_demand()
    assert there.value == 0 and sent.value == 3 and raised == []
    sent.raise_to_demand()
    assert raised == ["here"] and pickle.loads(pickle.dumps(sent)).value == 0
