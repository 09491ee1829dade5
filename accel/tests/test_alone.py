"""What a run would have taken without early calls: its calls in the program's own order, each as long as it took."""

from __future__ import annotations

import pytest

from accel.trace.alone import Beside, alone
from accel.trace.record import CallRecord, Trace, Visit


class Written:
    """A trace that a test writes down, in seconds."""

    def __init__(self) -> None:
        self.trace = Trace({"q": "q"}, started_s=0.0, completed=True)
        self._now = 0.0

    def call(
        self, asked_s: float, ended_s: float, issued_s: float | None = None, answered_s: float | None = None,
        site: str = "here", given: str = "q", got: str = "", visit: Visit | None = None,
    ) -> CallRecord:  # fmt: skip
        start = self.trace.tick()
        call = CallRecord(site, "", "m", "chat", "decode", None, "i", {"t": given}, None, start, asked_s, visit=visit)
        call.end, call.ended_s, call.output = self.trace.tick(), ended_s, {"content": got}
        call.retired, call.issued_s, call.answered_s = issued_s is not None, issued_s, answered_s
        self.trace.calls.append(call)
        self._now = max(self._now, ended_s)
        return call

    def side_by_side(self, *sites: str, asked_s: float, ended_s: float) -> None:
        starts = [self.trace.tick() for _ in sites]
        for site, start in zip(sites, starts, strict=True):
            call = CallRecord(site, "", "m", "chat", "decode", None, "i", {"t": "q"}, None, start, asked_s)
            call.end, call.ended_s = self.trace.tick(), ended_s
            self.trace.calls.append(call)
        self._now = max(self._now, ended_s)

    def ended(self, at_s: float | None = None) -> Trace:
        self.trace.ended_s = at_s if at_s is not None else self._now
        return self.trace


def test_without_early_calls_it_takes_what_it_took() -> None:
    run = Written()
    run.call(0.5, 1.5)
    run.call(1.75, 3.0)
    assert alone(run.ended(3.5), Beside()).seconds == pytest.approx(3.5)


def test_an_early_call_is_waited_for_in_full_and_the_program_thinks_as_long_as_it_did() -> None:
    run = Written()
    run.call(0.0, 1.0)
    run.call(1.25, 1.25, issued_s=0.0, answered_s=0.875)
    assert alone(run.ended(1.5), Beside()).seconds == pytest.approx(1.0 + 0.25 + 0.875 + 0.25)


def test_an_early_call_that_the_program_waited_for_counts_once() -> None:
    run = Written()
    run.call(0.0, 1.0)
    run.call(1.0, 2.0, issued_s=0.5, answered_s=2.0)
    assert alone(run.ended(), Beside()).seconds == pytest.approx(2.5)


def test_what_is_made_side_by_side_is_not_added_up_although_it_ended_at_once() -> None:
    before, beside = Written(), Beside()
    before.side_by_side("a", "b", "c", asked_s=0.0, ended_s=1.0)
    beside.note(before.ended())
    run = Written()
    for site in ("a", "b", "c"):
        run.call(1.0, 1.0, issued_s=0.0, answered_s=1.0, site=site)
    assert alone(run.ended(), Beside()).seconds == pytest.approx(1.0 + 3.0), "as far as is known, one after the other"
    assert alone(run.ended(), beside).seconds == pytest.approx(1.0 + 1.0)


def test_of_what_is_made_side_by_side_no_more_than_were_seen_at_once() -> None:
    before, beside = Written(), Beside()
    before.side_by_side("a", "a", asked_s=0.0, ended_s=1.0)
    beside.note(before.ended())
    run = Written()
    for _ in range(4):
        run.call(1.0, 1.0, issued_s=0.0, answered_s=1.0, site="a")
    assert alone(run.ended(), beside).seconds == pytest.approx(1.0 + 2.0)


def test_what_one_of_them_is_made_of_comes_before_it() -> None:
    before, beside = Written(), Beside()
    before.side_by_side("a", "b", asked_s=0.0, ended_s=1.0)
    beside.note(before.ended())
    run = Written()
    run.call(1.0, 1.0, issued_s=0.0, answered_s=1.0, site="a", got="a long word of wisdom")
    run.call(1.0, 1.0, issued_s=0.0, answered_s=1.0, site="b", given="say more on: a long word of wisdom")
    assert alone(run.ended(), beside).seconds == pytest.approx(1.0 + 2.0)


def test_a_part_that_was_early_makes_the_call_around_it_longer() -> None:
    run = Written()
    search = run.call(0.0, 0.25)
    part = run.call(0.0, 0.0, issued_s=-1.0, answered_s=-0.5, site="part")
    part.parent = search
    assert alone(run.ended(0.25), Beside()).seconds == pytest.approx(0.75)
