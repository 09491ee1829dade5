"""What calls are worth that may not be demanded: chances by counts, seconds saved against seconds wasted, a bound."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Sequence

import pytest

from accel.graph import rules
from accel.run.gains.reliance import RECENT, WINDOW, Asked, Reliance, Tried
from accel.run.gains.worth import BEGIN, Cost, Doubt, Worth, worked
from accel.run.settings import Counts
from accel.trace.record import CallRecord, Trace, Visit

NO_BOUND = 100.0


def call(site: str, start: int, at_s: float, took_s: float = 1.0, tokens: int = 0) -> CallRecord:
    made = CallRecord(site, "", "ask", "ask", "decode", None, None, None, None, start, at_s)
    made.end, made.ended_s, made.tokens = start, at_s + took_s, (tokens, 0)
    return made


def trace(*events: CallRecord | Visit) -> Trace:
    calls = [event for event in events if isinstance(event, CallRecord)]
    return Trace(calls=calls, visits=[event for event in events if isinstance(event, Visit)], started_s=0.0)


def went(branch: str) -> Trace:
    """A router for two seconds, then a branch with a call."""
    return trace(
        Visit("route", 1, None, 0.0), call("route", 2, 0.0, 2.0, 10), Visit(branch, 3, None, 2.0),
        call(branch, 4, 2.0, 1.0, 10),
    )  # fmt: skip


def seen(*branches: str) -> Worth:
    worth = Worth()
    for branch in branches:
        worth.note(went(branch))
        worth.settle(went(branch), Counts(), Cost())
    return worth


def doubt(site: str, came: str = "route", since_s: float = 0.0) -> Doubt:
    return Doubt(site, came, since_s)


def test_chances_are_counted_from_where_the_run_has_come() -> None:
    worth = seen("hot", "hot", "hot", "cold")
    assert worth.chance(doubt("hot")) == worth.chance(doubt("hot", BEGIN)) == 4 / 6
    assert worth.chance(doubt("hot", "hot")) == 4 / 5
    assert worth.chance(doubt("hot", "cold")) == 1 / 3
    assert worth.chance(doubt("hot", "elsewhere")) == 1 / 2, "nobody has been there"


def test_where_calls_ask_for_other_things_the_chance_is_the_less() -> None:
    worth = seen("hot", "hot", "hot")
    assert worth.chance(Doubt("hot", "route", 0.0, share=0.5)) == 4 / 5 / 2


def test_each_time_in_a_loop_counts() -> None:
    """Three rounds, of which each but the last went on."""
    events: list[CallRecord | Visit] = []
    for number in range(3):
        events += [Visit("round", 2 * number, None, number), call("again", 2 * number + 1, number)]
    worth = Worth()
    worth.note(trace(*events, Visit("round", 9, None, 9.0)))
    assert worth.chance(doubt("again", "round")) == 4 / 6


def test_what_is_saved_is_that_of_the_mean_call_that_comes_next() -> None:
    """Four one after the other, the first one at once, and one more after the next node."""
    worth = Worth()
    calls = [call("each", 2 + number, float(number)) for number in range(4)]
    rounds = trace(Visit("grade", 1, None, 0.0), *calls, Visit("again", 7, None, 5.0), call("each", 8, 90.0))
    for _ in range(3):
        worth.note(rounds)
        worth.settle(rounds, Counts(), Cost())
    assert worth.refuses(doubt("each", "grade", 0.4), NO_BOUND) is None, "1.1 s of 1 s"
    late = worth.refuses(doubt("each", "grade", 1.6), NO_BOUND)
    assert late is not None and late.rule is rules.LATE


@pytest.mark.parametrize(("branches", "may"), [
    (["hot"] * 3, True),
    (["hot", "hot", "cold", "cold"], False),
    (["cold", "cold", "cold"], False),
])  # fmt: skip
def test_what_is_likelier_in_vain_than_of_use_waits(branches: Sequence[str], may: bool) -> None:
    refused = seen(*branches).refuses(doubt("hot"), NO_BOUND)
    assert (refused is None) is may
    assert may or (refused is not None and refused.rule is rules.NOT_WORTH)


def test_what_saves_little_must_be_likelier() -> None:
    """A call of a second, two seconds after the router began: once it is all but there, little can be saved."""
    worth = seen(*["hot"] * 3)
    assert worth.refuses(doubt("hot", since_s=0.5), NO_BOUND) is None
    assert worth.refuses(doubt("hot", since_s=1.9), NO_BOUND) is not None
    assert seen(*["hot"] * 20).refuses(doubt("hot", since_s=1.9), NO_BOUND) is None
    refused = seen(*["hot"] * 20).refuses(doubt("hot", since_s=1.99), NO_BOUND)
    assert str(refused) == (
        "it may gain less than it may waste: by the runs so far 0.010 s with a chance of 95%, else 1.000 s in vain"
    )


def test_waste_stays_below_a_share_of_what_the_program_takes() -> None:
    worth = seen(*["hot"] * 10)
    refused = worth.refuses(doubt("hot"), 0.02)
    assert refused is not None and refused.rule is rules.WASTE, "a second, or ten tokens, of 30 s and 200 tokens"
    assert worth.refuses(doubt("hot"), 0.05) is None
    worth.settle(trace(), Counts(wasted_s=1.0, wasted_tokens=0), Cost())
    assert worth.refuses(doubt("hot"), 0.05) is not None and worth.refuses(doubt("hot"), 0.07) is None


def test_tokens_are_bounded_by_themselves() -> None:
    worth = seen(*["hot"] * 10)
    worth.settle(trace(), Counts(wasted_s=0.0, wasted_tokens=1), Cost())
    refused = worth.refuses(doubt("hot"), 0.05)
    assert refused is not None and refused.rule is rules.WASTE


def test_what_is_under_way_counts_until_its_run_ends() -> None:
    worth = seen(*["hot"] * 10)
    staked = Cost()
    for _ in range(100):
        if worth.refuses(doubt("hot"), 0.06):
            break
        staked += worth.stake(doubt("hot"))
    assert round(staked.tokens * 1.2) == 3, "each is expected to waste 10/12 of a token: of 12, the last may waste 10"
    worth.settle(trace(), Counts(), staked)
    assert worth.refuses(doubt("hot"), 0.06) is None


def test_waste_of_long_ago_is_forgotten() -> None:
    worth = seen("hot", "hot", "hot")
    worth.settle(trace(), Counts(wasted_s=50.0), Cost())
    for _ in range(WINDOW):
        worth.note(went("hot"))
        worth.settle(went("hot"), Counts(), Cost())
    assert worth.refuses(doubt("hot"), 0.02) is None


def test_nothing_goes_before_a_run_has_ended() -> None:
    worth = Worth()
    worth.note(went("hot"))
    assert worth.refuses(doubt("hot", "hot"), 0.02) is not None


def test_tokens_that_nobody_counts_are_told_by_their_texts() -> None:
    prompt = {"messages": [{"content": "x" * 40}]}
    assert worked("decode", (0, 0), prompt, "y" * 20) == 15
    assert worked("decode", (7, 2), prompt, "y" * 20) == 9
    assert worked("embedding", (0, 0), {"args": ["x" * 8]}, None) == 2
    assert worked("searching", (0, 0), {"args": ["x" * 80]}, None) == 0, "no model has read them"


# --- what seemed certain

HERE = Asked("here", "a question")


def tried(made: int = 0, vain: int = 0, asked: Asked = HERE) -> Tried:
    return Tried(Counter({asked: made}), Counter({asked: vain}))


def certain(asked: Asked = HERE) -> Doubt:
    """A call that traces and control are sure of."""
    return Doubt("hot", "route", 0.0, asked, foretold=True)


def test_what_seemed_certain_is_in_doubt_once_it_was_in_vain() -> None:
    worth = seen(*["hot"] * 10)
    assert not worth.doubts(HERE) and worth.chance(certain()) == 1.0
    worth.settle(went("hot"), Counts(), Cost(), tried(made=5))
    assert not worth.doubts(HERE)
    worth.settle(went("hot"), Counts(wasted_s=1.0), Cost(), tried(made=2, vain=1))
    assert worth.doubts(HERE) and worth.chance(certain()) == 8 / 10
    refused = worth.refuses(certain(), 0.02)
    assert refused is not None and refused.rule is rules.WASTE
    assert worth.refuses(certain(), 0.2) is None, "it is likely enough"


def test_what_is_mostly_in_vain_waits_until_that_is_forgotten() -> None:
    worth = seen(*["hot"] * 10)
    for _ in range(3):
        worth.settle(went("hot"), Counts(), Cost(), tried(made=1, vain=2))
    refused = worth.refuses(certain(), NO_BOUND)
    assert refused is not None and refused.rule is rules.NOT_WORTH
    for _ in range(WINDOW):
        worth.settle(went("hot"), Counts(), Cost())
    assert not worth.doubts(HERE) and worth.refuses(certain(), NO_BOUND) is None


def test_it_comes_back_once_runs_make_it_of_themselves_and_later_each_time_it_is_in_vain_again() -> None:
    """What it was in vain by may have been the lesson before, or something that calls do not show."""
    relied = Reliance()

    def runs_until_likely() -> int:
        relied.note(tried(vain=1), by_itself=True)
        for number in range(WINDOW // 10):
            if relied.chance(HERE) > 1 / 2:
                return number
            relied.note(Tried(), by_itself=True)
            relied.foresaw([HERE], [], Tried())
        raise AssertionError("it stays in doubt")

    assert [runs_until_likely() for _ in range(4)] == [2, 3, 4, 5]
    relied.foresaw([], [HERE], Tried())
    assert relied.chance(HERE) == 1 / 6, "a run did without it"


def test_a_run_counts_once_whether_its_call_was_early_or_not() -> None:
    relied = Reliance()
    relied.note(tried(vain=1), by_itself=True)
    for own in (tried(made=1), Tried()):
        relied.note(own, by_itself=True)
        relied.foresaw([HERE], [], own)
    assert relied.chance(HERE) == 3 / 5


def test_only_runs_that_end_of_themselves_show_that_a_node_was_wrong() -> None:
    """One that is cancelled might have come to the call; it costs all the same."""
    relied = Reliance()
    relied.note(tried(vain=1), by_itself=False)
    assert relied.doubts(HERE) and not relied.was_wrong(HERE)
    relied.note(tried(vain=1), by_itself=True)
    assert relied.was_wrong(HERE)


def test_what_is_learnt_where_nodes_kept_being_wrong_is_in_doubt_from_the_first() -> None:
    relied, new = Reliance(), Asked("here", "another question")
    relied.note(tried(vain=1), by_itself=True)
    assert not relied.doubts(new), "the lesson after a mistake may be right"
    relied.note(tried(vain=1, asked=Asked("here", "a second question")), by_itself=True)
    assert relied.doubts(new) and relied.chance(new) == 1 / 4
    assert not relied.doubts(Asked("elsewhere", "another question"))
    for _ in range(RECENT):
        relied.note(Tried(), by_itself=True)
    assert not relied.doubts(new) and relied.doubts(HERE)


def test_of_what_was_wrong_no_more_is_kept_than_counts() -> None:
    class Node:
        """Something that a weak reference can tell of."""

    relied, kept = Reliance(), weakref.WeakSet[Node]()
    for _ in range(2 * WINDOW):
        kept.add(node := Node())
        relied.note(tried(vain=1, asked=Asked("here", node)), by_itself=True)
    del node
    assert len(kept) <= WINDOW + RECENT
