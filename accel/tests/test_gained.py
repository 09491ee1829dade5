"""What early calls gained: in a crowd, the time for which their run waited for others, and long pauses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accel.run.gains.gained import PAUSE_S, gains, pays
from accel.run.gains.pace import Pace
from accel.tests.test_alone import Written
from accel.trace.record import Trace


def run(*calls: tuple[float, float, float | None]) -> Trace:
    """Of calls by when they were demanded, when they were over and, of early ones, since when they had been running."""
    made = Written()
    for asked_s, over_s, issued_s in calls:
        made.call(asked_s, over_s, issued_s=issued_s, answered_s=None if issued_s is None else over_s)
    return made.ended()


def gained_s(trace: Trace) -> list[float]:
    return [ahead_s for ahead_s, _ in gains(trace)]


CHAIN = run((0.02, 0.5, None), (0.55, 1.0, 0.51), (1.08, 1.6, 1.01))
"""Each call is asked for some steps of the loop after the one before, which its input waits for."""


def test_steps_of_the_loop_between_two_calls_count_alone() -> None:
    assert gained_s(CHAIN) == pytest.approx([0.04, 0.07])
    assert gained_s(replace(CHAIN, crowded=True)) == [0.0, 0.0]


def test_what_a_run_waits_for_meanwhile_counts_in_a_crowd() -> None:
    trace = replace(run((0.02, 0.5, None), (0.55, 1.0, 0.1), (1.05, 1.2, 0.2)), crowded=True)
    assert gained_s(trace) == pytest.approx([0.4, 0.3 + 0.45])


def test_of_calls_side_by_side_nothing_counts_twice() -> None:
    trace = replace(run((0.0, 0.5, None), (0.1, 0.6, None), (0.6, 0.9, 0.05)), crowded=True)
    assert gained_s(trace) == pytest.approx([0.55])


def test_long_pauses_count_in_a_crowd() -> None:
    paused_s = 2 * PAUSE_S
    trace = replace(run((0.0, 0.5, None), (0.5 + paused_s, 1.0, 0.5)), crowded=True)
    assert gained_s(trace) == pytest.approx([paused_s])
    trace = replace(run((paused_s, 1.0, 0.0)), crowded=True)
    assert gained_s(trace) == pytest.approx([paused_s]), "that before the first call, too"


@pytest.mark.parametrize(
    ("gain_s", "own_s", "worth"),
    [
        (0.019, 0.0, False),  # too little of a second, even if it costs nothing
        (0.030, 0.002, True),  # little, and it costs a fifteenth of it
        (0.030, 0.005, False),
        (0.070, 0.015, True),  # enough
        (0.070, 0.025, False),  # the run waits for what it costs, too
    ],
)
def test_a_small_gain_pays_if_it_costs_far_less(gain_s: float, own_s: float, worth: bool) -> None:
    assert pays(gain_s, 1.0, own_s) is worth


def test_a_program_rests_that_gains_in_a_crowd_alone() -> None:
    alone, among = Pace(), Pace()
    for _ in range(20):
        alone.ended(CHAIN)
        among.ended(replace(CHAIN, crowded=True))
    assert alone.every == 1 and among.every > 1
