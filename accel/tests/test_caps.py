"""What was in vain within a while bounds what is early, over all runs and for each tenant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from accel.errors import ConfigurationError
from accel.process import clock
from accel.run.gains import caps
from accel.run.gains.caps import Caps, Vain
from accel.run.settings import Budget, Cap, Counts, Settings
from accel.trace.record import Trace

NOTHING = Vain()


@dataclass(eq=False)
class Lived:
    settings: Settings
    trace: Trace
    counts: Counts = field(default_factory=Counts)


@dataclass
class Clock:
    now_s: float = 1_000.0


@pytest.fixture
def time() -> Iterator[Clock]:
    time = Clock()
    with clock.replaced(lambda: time.now_s):
        yield time


def run(*bounds: Cap, tenant: str = "", **counts: int) -> Lived:
    beside = {"configurable.tenant": tenant} if tenant else {}
    trace = Trace(None)
    trace.ambient = beside
    return Lived(Settings(budget=Budget(caps=bounds)), trace, Counts(**counts))


def test_what_ended_runs_have_wasted_counts_until_it_is_older_than_the_window(time: Clock) -> None:
    cap, held = Cap(calls=3, window_s=60), Caps()
    held.ended(run(cap, issued=4, wasted=2))
    time.now_s += 30
    assert held.used_up(run(cap), NOTHING) is None
    held.ended(run(cap, issued=4, wasted=1))
    assert held.used_up(run(cap), NOTHING) is cap
    time.now_s += 29
    assert held.used_up(run(cap), NOTHING) is cap
    time.now_s += 3
    assert held.used_up(run(cap), NOTHING) is None, "the first two are forgotten"
    time.now_s += 60
    (now,) = held.now([cap], NOTHING)
    assert (now.calls, now.values, now.used_up, now.held_runs) == (0, 0, 0, 2)


def test_calls_under_way_count_as_if_they_were_in_vain(time: Clock) -> None:
    cap, held = Cap(calls=3), Caps()
    one, other = run(cap, issued=2, retired=1), run(cap)
    assert held.used_up(one, NOTHING) is held.used_up(other, NOTHING) is None
    other.counts.issued = 2
    assert held.used_up(one, NOTHING) is cap, "one and two are under way"
    one.counts.retired = 2
    assert held.used_up(one, NOTHING) is None
    other.counts.wasted = 2
    assert held.used_up(one, NOTHING) is None
    held.ended(one)
    held.ended(other)
    (now,) = held.now([cap], NOTHING)
    assert (now.calls, now.used_up) == (2, 0)


def test_tokens_and_money_are_bounded_with_what_a_call_takes_in_the_mean(time: Clock) -> None:
    tokens = Cap(tokens=1_000)
    money = Cap(money=1.0, input_per_million=100.0, output_per_million=1_000.0)
    usual, held = Vain(1, 100, 100, 100), Caps()
    held.ended(run(tokens, money, wasted=1, wasted_tokens=850, wasted_input_tokens=500, wasted_output_tokens=350))
    assert held.used_up(run(tokens), usual) is None
    assert held.used_up(run(tokens, issued=1), usual) is tokens
    assert held.used_up(run(money), usual) is None
    held.ended(run(money, wasted=1, wasted_input_tokens=500, wasted_output_tokens=450))
    assert held.used_up(run(money), usual) is money
    assert [round(now.money, 3) for now in held.now([money], usual)] == [0.9]


def test_every_tenant_has_a_cap_of_its_own_beside_that_of_all(time: Clock) -> None:
    each, all_of_them, held = Cap(calls=2, per="configurable.tenant"), Cap(calls=3), Caps()
    held.ended(run(each, all_of_them, tenant="=ada", issued=2, wasted=2))
    assert held.used_up(run(each, all_of_them, tenant="=ada"), NOTHING) is each
    assert held.used_up(run(each, all_of_them, tenant="=bob"), NOTHING) is None
    held.ended(run(each, all_of_them, tenant="=bob", issued=1, wasted=1))
    assert held.used_up(run(each, all_of_them, tenant="=cid"), NOTHING) is all_of_them
    now, _ = held.now([each, all_of_them], NOTHING)
    assert (now.calls, now.values, now.used_up, now.held_runs) == (2, 2, 1, 1)


def test_runs_of_which_nobody_can_tell_the_tenant_share_a_cap(time: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    each, held = Cap(calls=1, per="configurable.tenant"), Caps()
    held.ended(run(each, tenant="~1", issued=1, wasted=1))
    assert held.used_up(run(each), NOTHING) is held.used_up(run(each, tenant="~2"), NOTHING) is each
    monkeypatch.setattr(caps, "MAX_VALUES", 2)
    kept = run(each, tenant="=ada")
    assert held.used_up(kept, NOTHING) is None
    assert held.used_up(run(each, tenant="=bob"), NOTHING) is each, "too many: it is counted with the others"
    time.now_s += 7_200
    assert held.used_up(run(each, tenant="=bob"), NOTHING) is None


def test_without_caps_nothing_is_kept(time: Clock) -> None:
    held = Caps()
    held.ended(run(wasted=5))
    assert held.used_up(run(), NOTHING) is None and not held._windows


@pytest.mark.parametrize(
    "per", ["", "configurable.tenant_id", "metadata.org", "context", "context.user.id", "tag team", "ContextVar tenant"]
)
def test_caps_are_per_dimensions_of_the_context(per: str) -> None:
    assert Cap(calls=1, per=per).per == per


@pytest.mark.parametrize(
    "per",
    ["tenant", "tenant id", "configurable", "configurable.", "metadata. ", "foo.bar", "ContextVar", "tags team", 7],
)
def test_what_names_no_dimension_is_refused(per: Any) -> None:
    with pytest.raises(ConfigurationError, match="names no dimension") as caught:
        Cap(calls=1, per=per)
    assert "configurable.tenant_id" in caught.value.remedy
