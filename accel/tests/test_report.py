"""What a report says of runs of a host without a framework: seconds, waste, money, rows and reasons."""

from __future__ import annotations

import builtins
import json
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accel import settle
from accel.errors import ConfigurationError
from accel.parts.components import register
from accel.parts.methods.patches import install
from accel.process.clock import replaced
from accel.reports.report import Report
from accel.reports.rows import Row
from accel.run.plans.plan import Plan
from accel.run.run import Run
from accel.run.settings import Counts, Settings, Speculate
from accel.tests.fake_host import ASK, Model, Refers, opened, patched, think
from accel.tests.reported import check_report

TOPICS = ("bees of the north", "iron in old ships", "the moon", "bread and salt")
SECRET = "rosebud-4711"
_lock = threading.Lock()


_now = [0.0]


class Slow(Model):
    """Takes a second for an answer. Nothing else takes any time."""

    def fake_ask(self, text: str) -> str:
        with _lock:
            _now[0] += 1.0
        return f"{self.name} knows of {text} that it is old\nand that {text} is far away"


class SlowToo(Slow):
    """Nobody vouches for it."""

    def fake_ask(self, text: str) -> str:
        with _lock:
            _now[0] += 1.0
        return text


@pytest.fixture(scope="module", autouse=True)
def _patched() -> Iterator[None]:
    with patched():
        for cls in (Slow, SlowToo):
            install(cls, ASK)
        register(Slow, pure=True, local=True, concurrency=8)
        with replaced(lambda: _now[0]):
            yield


Program = Callable[[Run, Model, str], Any]


def two(run: Run, model: Model, topic: str) -> None:
    outline = model.fake_ask(f"Outline {topic}")
    think(run)
    model.fake_ask(f"Keywords of {topic}")
    model.fake_ask(f"Criticize: {outline}")


def ran(program: Program, model: Model | None = None, settings: Settings | None = None, topics: Any = TOPICS) -> Plan:
    plan, model = Plan(), model or Slow()
    for topic in topics:
        with opened(plan, {"topic": topic}, settings, references=Refers(model)) as run:
            program(run, model, topic)
        assert settle()
    return plan


def rows_of(plan: Plan, settings: Settings | None = None) -> list[Row]:
    report = Report(plan, settings)
    check_report(report, plan)
    return report.rows


def test_what_was_early_saves_what_the_program_did_not_wait_for() -> None:
    plan = ran(two)
    report = Report(plan)
    check_report(report, plan)
    outline, keywords, criticize = report.rows
    assert (keywords.early, keywords.calls, keywords.made_runs, keywords.runs) == (1, 1, 4, 4)
    assert 1 < keywords.since <= 4 and keywords.early_runs == 4 - keywords.since + 1
    assert outline.early == 0 and outline.late[0].rule == "at once"
    last = plan.last
    assert last is not None and report.last is not None
    early = [call for call in last.calls if call.retired]
    assert report.last.saved_s == pytest.approx(sum(call.took_s - call.waited_s for call in early))
    assert report.last.saved_s >= 1.0 and report.ratio > 1.0
    assert f"early since request {keywords.since}" in str(report)


def test_means_are_over_requests_and_the_last_one_stands_beside() -> None:
    plan = ran(two)
    report = Report(plan)
    assert len(report.requests) == report.runs == 4
    assert report.took_s == pytest.approx(sum(request.took_s for request in report.requests) / 4)
    assert report.saved_s == pytest.approx(report.alone_s - report.took_s)
    assert report.requests[0].early == 0 and report.requests[0].alone_s == report.requests[0].took_s
    assert report.limit_s is not None and report.limit is None, "no engine was measured"
    assert report.own_s > 0.0


def test_a_request_sooner_than_any_schedule_has_no_best_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guesses that come true don't wait for what the others wait for."""
    report = Report(ran(two))
    assert report.last is not None and "its best schedule" in str(report)
    monkeypatch.setattr(type(report), "limit_s", 2 * report.last.took_s)
    assert "its best schedule" not in str(report)


def test_nothing_has_run() -> None:
    report = Report(Plan())
    assert str(report).startswith("Nothing is measured yet")
    assert report.rows == [] and report.to_dict()["last"] is None and report.ratio == 1.0


def test_what_nobody_vouches_for_has_a_row_with_the_reason() -> None:
    plan = ran(two, SlowToo())
    assert all(row.late[0].rule in ("not vouched for", "at once", "behind") for row in rows_of(plan))
    assert any("nobody vouches" in late.why for row in rows_of(plan) for late in row.late)
    assert "accel.register(SlowToo, pure=True)" in str(Report(plan))
    assert str(Report(plan)).startswith("Nothing was early yet")


def test_what_is_off_says_so() -> None:
    off = Settings("off")
    assert {late.rule for row in rows_of(ran(two, settings=off), off) for late in row.late} == {"off"}


def test_a_request_that_raised_has_rows_and_reasons_too() -> None:
    def fails(run: Run, model: Model, topic: str) -> None:
        two(run, model, topic)

    plan, model = ran(fails, topics=TOPICS[:1]), Slow()
    with opened(plan, {"topic": "wind"}, references=Refers(model)) as broken:
        model.fake_ask("Outline wind")
        broken.finish(False)
    report = Report(plan)
    check_report(report, plan)
    assert report.last is None and len(report.requests) == 1 and report.runs == 2
    assert [late.rule for row in report.rows for late in row.late] != []
    assert "a node of it raised, or it was stopped" in str(report)


def test_one_line_that_asks_twice_is_one_row() -> None:
    def loop(run: Run, model: Model, topic: str) -> None:
        for part in ("head", "tail", "middle"):
            model.fake_ask(f"The {part} of {topic}")

    (row,) = rows_of(ran(loop))
    assert row.calls == row.made == 3 and row.place.startswith("test_report.py:") and row.function == "loop"


def test_prices_make_money_of_tokens() -> None:
    plan = ran(two)
    plan.total += Counts(wasted=1, wasted_tokens=3000, wasted_input_tokens=2000, wasted_output_tokens=1000)
    report = Report(plan).priced(input_per_million=1.0, output_per_million=10.0)
    assert Report(plan).money is None and report.money is not None
    assert report.money["wasted"] == pytest.approx((2000 * 1.0 + 1000 * 10.0) / 1e6 / 4)
    assert report.money["cost"] > report.money["wasted"] and "money:" in str(report)
    assert report.to_dict()["money_per_request"] == report.money
    with pytest.raises(ConfigurationError, match="not a price"):
        report.priced(input_per_million=-1.0, output_per_million=1.0)


def test_no_text_of_a_prompt_is_in_a_report() -> None:
    def whispers(run: Run, model: Model, topic: str) -> None:
        two(run, model, f"{topic} {SECRET}")

    plan = ran(whispers)
    report = Report(plan).priced(input_per_million=1.0, output_per_million=1.0)
    assert SECRET not in str(report) + report.to_json() and "old" not in json.dumps(report.to_dict()["lines"])


def test_rich_shows_tables_of_the_same() -> None:
    from rich.console import Console

    report = Report(ran(two))
    console = Console(width=120)
    with console.capture() as shown:
        console.print(report)
    for row in report.rows:
        assert row.place in shown.get()
    assert str(report).splitlines()[0][:40] in shown.get()


def test_without_rich_a_report_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "rich":
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "accel.reports.table", raising=False)
    monkeypatch.setattr(builtins, "__import__", missing)
    report = Report(ran(two))
    assert "by your lines" in str(report) and report.to_dict()["lines"]


@pytest.mark.parametrize(
    ("speculate", "more"), [("auto", 'accelerate(..., speculate="certain"), or '), ("certain", "")]
)
def test_what_wastes_much_says_what_would_waste_less(speculate: Speculate, more: str) -> None:
    plan = ran(two)
    assert "for less in vain" not in str(Report(plan))
    plan.total += Counts(wasted=9, wasted_tokens=9_000)
    line = f"  for less in vain: {more}budget=accel.Budget(caps=[accel.Cap(tokens=..., window_s=...)])"
    assert line in " ".join(str(Report(plan, Settings(speculate=speculate))).split("\n      "))
