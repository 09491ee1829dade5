"""The limit against schedules found by trying every order, and the edges of recorded runs."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from accel.engine.profile import Profile
from accel.errors import ConfigurationError
from accel.graph.topology import END, START, Topology
from accel.reports.limits.limit import Limit, latencies, limit
from accel.reports.limits.simulation import Simulation
from accel.reports.limits.workload import Workload
from accel.text.values import Vector
from accel.trace.flow import events_of
from accel.trace.order import Event
from accel.trace.record import CallRecord, Trace, Visit

PROFILE = Profile(
    "llm", prefill=((64, 0.11), (128, 0.21), (512, 0.81)), decode=((1, 0.01), (4, 0.016), (16, 0.04), (32, 0.08))
)


def record(op: str, start: int, started_s: float, ended_s: float, **more: object) -> CallRecord:
    values: dict[str, object] = {"site": op, "within": "", "method": op, "family": op, "component": None}
    values |= {"identity": op, "input": None, "key": None, "end": start + 1, "ended_s": ended_s, "output": None} | more
    return CallRecord(op=op, start=start, started_s=started_s, **values)  # type: ignore[arg-type]


# --- schedules


def random_events(dice: random.Random, count: int) -> list[Event]:
    """Demands one after the other, each in need of some earlier ones."""
    events: list[Event] = []
    for number in range(count):
        op = dice.choice(("decode", "decode", "decode", "searching"))
        tokens = (dice.randrange(40, 400), dice.randrange(1, 40)) if op == "decode" else (0, 0)
        call = record(op, 2 * number, 0.0, 0.0, input=f"{number} {dice.random()}", tokens=tokens)
        needs = {n: dice.choice((0.5, 1.0)) for n in range(number) if dice.random() < 0.3}
        event = Event(call, (number - 1,) if number else (), dice.choice((0.0, 0.05)), needs)
        event.prefix = {n: dice.random() for n in needs}
        events.append(event)
    events.append(Event(None, (count - 1,), 0.01))
    return events


def made(events: list[Event], profile: Profile) -> Workload:
    return Workload(events, {"llm": profile}, {"searching": 0.03}, {})


def best_of_all_orders(runs: Workload, count: int) -> float:
    orders = itertools.permutations(range(count))
    return min(
        Simulation(runs, lambda number, order=order: order.index(number), eager).run()[0]  # type: ignore[misc]
        for order in orders
        for eager in (True, False)
    )


def rules_of(runs: Workload) -> float:
    """What `limit` takes: the best of its rules."""
    tails = runs.tails()
    rules = [lambda n: -tails[n], lambda n: n, runs.alone_s]
    return min(Simulation(runs, rule, eager).run()[0] for rule in rules for eager in (True, False))


@pytest.mark.parametrize("seed", range(40))
def test_limit_against_every_order(seed: int) -> None:
    dice = random.Random(seed)
    count = dice.randrange(2, 6)
    runs = made(random_events(dice, count), PROFILE)
    found, optimum = rules_of(runs), best_of_all_orders(runs, count)
    assert optimum <= found * (1 + 1e-9)
    assert found <= optimum * 1.05, "the rules miss a much better order"
    assert max(runs.unbounded_s(), runs.work_s()) <= optimum * (1 + 1e-9), "the bound is not one"


@pytest.mark.parametrize("seed", range(20))
def test_in_order_is_the_sum_of_its_parts(seed: int) -> None:
    events = random_events(random.Random(seed), 5)
    runs = made(events, replace(PROFILE, batch_tokens=10_000))
    expected = sum(e.think_s for e in events) + sum(runs.alone_s(n) for n in range(5))
    assert Simulation(runs, lambda n: n, False, in_order=True).run()[0] == pytest.approx(expected)


def test_independent_calls_decode_together() -> None:
    calls = [record("decode", 2 * i, 0.0, 0.0, input=f"{i}", tokens=(64, 11)) for i in range(4)]
    events = [Event(call, (i - 1,) if i else (), 0.0, {}) for i, call in enumerate(calls)]
    events.append(Event(None, (3,)))
    runs = made(events, PROFILE)
    # One step prefills all four and gives their first tokens; ten more steps give the rest, four at a time.
    assert rules_of(runs) == pytest.approx(0.01 + 4 * 0.1 + 10 * 0.016)
    assert runs.unbounded_s() == pytest.approx(0.01 + 0.1 + 10 * 0.01)


def test_shared_beginnings_are_prefilled_once() -> None:
    text = "x" * 640
    calls = [record("decode", 2 * i, 0.0, 0.0, input=text + str(i), tokens=(64, 1)) for i in range(2)]
    events = [Event(calls[0], (), 0.0, {}), Event(calls[1], (0,), 0.0, {}), Event(None, (1,))]
    runs = made(events, replace(PROFILE, batch_tokens=64))
    # Whole blocks only, and one token at least is computed again: 32 of 64 come out of the cache.
    assert rules_of(runs) == pytest.approx((0.01 + 0.1) + (0.01 + 0.05))


def test_profile_without_curves_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs 'prefill'"):
        Profile("llm")
    with pytest.raises(ValueError, match="prefill and decode curves"):
        limit(Trace(), {"llm": Profile("llm", prefill=((10, 0.1),), decode=((1, 0.1),))})


# --- edges


def example() -> Trace:
    """Three lines out of one decode, a search for each, an answer from all hits."""
    text = "alpha\nbeta\ngamma"
    trace = Trace({"question": "q?"}, started_s=0.0)
    trace.visits.append(Visit("plan", 0, {}, 0.0, end=3, left={}, ended_s=1.0))
    asked = {"text": "ask q?"}
    trace.calls.append(
        record("decode", 1, 0.1, 1.0, site="plan", input=asked, output={"content": text}, tokens=(10, 16), end=2)
    )
    for i, query in enumerate(text.split("\n")):
        hits = [{"page_content": f"hit {query}"}]
        trace.calls.append(record("searching", 4 + 2 * i, 1.1 + i, 2.0 + i, input={"query": query}, output=hits))
    prompt = "from hit alpha, hit beta, hit gamma"
    trace.calls.append(
        record("decode", 10, 4.5, 6.0, site="answer", input={"text": prompt}, output={"content": "a"}, tokens=(12, 3))
    )
    trace.ended_s, trace.completed = 6.25, True
    return trace


def test_edges_of_a_streamed_list() -> None:
    trace = example()
    events = [event for event in events_of(trace) if event.call is not None]
    plan, *searches, answer = events
    assert plan.needs == {}
    shares = [next(iter((search.needs or {}).values())) for search in searches]
    # A line is known when its line break is there, the last one when the text has ended.
    assert shares == [pytest.approx(6 / 16), pytest.approx(11 / 16), 1.0]
    text_of_all = "from hit alpha, hit beta, hit gamma"
    # The lines inside the hits are the plan's: an edge that the searches' own imply.
    assert answer.needs == {1: 1.0, 3: 1.0, 4: 1.0, 5: 1.0}
    known = [len(text) / len(text_of_all) for text in ("from ", "from hit alpha, ", "from hit alpha, hit beta, ")]
    assert [answer.prefix[n] for n in (3, 4, 5)] == [pytest.approx(share) for share in known]


def test_think_time_stays_with_the_program() -> None:
    trace = example()
    events = events_of(trace)
    calls = [event for event in events if event.call is not None]
    assert [round(event.think_s, 3) for event in calls] == [0.1, 0.1, 0.1, 0.1, 0.5]
    assert events[-1].call is None and events[-1].think_s == pytest.approx(0.25)
    found = limit(trace, {"llm": PROFILE})
    assert isinstance(found, Limit)
    assert found.lower_bound_s <= found.makespan_s <= found.in_order_s
    assert found.makespan_s >= 1.15, "the program thinks for that long, whatever the engines do"


def test_reads_wait_for_writes() -> None:
    trace = example()
    trace.calls.insert(1, record("ingestion", 3, 1.02, 1.05, site="write", output=None, end=4))
    for call in trace.calls[2:]:
        call.start += 2
        call.end = call.start + 1
    events = events_of(trace)
    writes = [n for n, event in enumerate(events) if event.call is not None and event.call.op == "ingestion"]
    reads = [event for event in events if event.call is not None and event.call.op == "searching"]
    assert len(writes) == 1 and all(read.needs is not None and read.needs.get(writes[0]) == 1.0 for read in reads)


def test_what_the_run_was_given_comes_from_no_output() -> None:
    trace = example()
    trace.calls[0].output = {"content": "alpha\nask q?\nbeta\ngamma"}
    trace.calls[1].input = {"query": "ask q?"}
    assert [e.needs for e in events_of(trace) if e.call is not None][1] == {}


def test_a_text_belongs_to_the_first_output_that_brought_it() -> None:
    trace = example()
    trace.calls[2].output = trace.calls[1].output
    trace.calls[4].input = {"text": "from hit alpha, hit gamma"}
    events = [e for e in events_of(trace) if e.call is not None]
    first, _, third = (n for n, e in enumerate(events_of(trace)) if e.call is not None and e.call.op == "searching")
    assert events[-1].needs is not None and set(events[-1].needs) == {1, first, third}


def test_fields_of_json_are_known_one_by_one() -> None:
    trace = example()
    content = '{"queries": ["first one", "second one"]}'
    trace.calls[0].output = {"content": content}
    trace.calls[1].input, trace.calls[2].input = {"query": "first one"}, {"query": "second one"}
    needs = [next(iter((e.needs or {}).values()), 0.0) for e in events_of(trace) if e.call is not None]
    assert needs[1] == pytest.approx((content.index("first one") + 10) / len(content))
    assert needs[1] < needs[2] < 1.0


def test_an_embedding_that_is_the_mean_of_others_needs_these() -> None:
    """As a question is searched for by several texts that stand for it."""
    vectors = [[0.1 * (part + number) ** 2 for part in range(8)] for number in range(3)]
    mean = [sum(parts) / 2 for parts in zip(*vectors[1:], strict=True)]
    calls = [record("embedding", 2 * n, n, n + 1.0, output=Vector.of(vector)) for n, vector in enumerate(vectors)]
    for asked in (mean, [2 * part for part in mean], [1.0, *mean[1:]]):
        start = 2 * len(calls)
        calls.append(record("searching", start, start / 2, start / 2 + 1.0, input={"query": Vector.of(asked)}))
    needs = [e.needs for e in events_of(Trace(calls=calls, started_s=0.0)) if e.call is not None]
    assert needs[3:] == [{1: 1.0, 2: 1.0}, {1: 1.0, 2: 1.0}, {}], "of the last one nobody knows where it is from"


def test_control_edges_wait_for_the_node() -> None:
    trace = example()
    for call in trace.calls:
        call.within = "plan"
    free = [e.needs for e in events_of(trace) if e.call is not None]
    perhaps = Topology({START: frozenset({"plan", END}), "plan": frozenset({END})})
    held = [e.needs for e in events_of(trace, perhaps) if e.call is not None]
    sure = Topology({START: frozenset({"plan"}), "plan": frozenset({END})})
    assert [e.needs for e in events_of(trace, sure) if e.call is not None] == free
    assert free[0] == {} and held[0] == {0: 1.0}


def test_latencies_are_medians_of_waited_calls() -> None:
    trace = example()
    trace.calls[1].retired = True
    assert latencies([trace]) == {"decode": pytest.approx(1.2), "searching": pytest.approx(0.9)}


@pytest.mark.parametrize("beside", [True, False])
def test_a_node_waits_for_its_own_calls_and_not_for_those_of_one_beside_it(beside: bool) -> None:
    slow, fast = (Visit("node", start, None, 0.0) for start in range(2))
    calls = [
        record("searching", 2, 0.0, 1.0, site="slow", end=6, visit=slow),
        record("searching", 3, 0.0, 0.5, site="fast", end=4, visit=fast),
        record("searching", 7, 1.5, 2.0, site="fast", visit=fast if beside else None),
    ]
    events = events_of(Trace(calls=calls, visits=[slow, fast], started_s=0.0))
    last = next(event for event in events if event.call is calls[2])
    assert [site for n in last.after if (call := events[n].call) and (site := call.site)] == (
        ["fast"] if beside else ["slow", "fast"]
    )
    assert last.think_s == (1.0 if beside else 0.5)


def test_a_schedule_says_how_much_sooner_an_input_was_complete() -> None:
    plan, *searches, answer = limit(example(), {"llm": PROFILE}).schedule
    assert plan.sooner_s == pytest.approx(0.1), "the program thought before it asked"
    assert all(0.0 < search.sooner_s for search in searches)
    assert answer.sooner_s == pytest.approx(0.6)
