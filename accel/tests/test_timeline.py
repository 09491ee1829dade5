"""The picture of a run: before and after, one named bar per call, early ones marked; as a page and for Perfetto."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from accel.reports.pictures.timeline import side_by_side, timeline
from accel.run.plans.plan import Plan
from accel.tests.reported import check_chrome_trace, check_page
from accel.trace.record import CallRecord, Trace, Use, Visit


class Chat:
    """A component."""


def trace_of(issued_s: float | None, calls: int = 2, answers: str = "an answer of the model") -> Trace:
    """A node that makes calls of a second each; early ones began at `issued_s` and were there when they were asked."""
    trace = Trace({"question": "q"}, started_s=100.0, completed=True)
    visit = Visit("ask <all>", trace.tick(), {}, 100.0)
    trace.visits.append(visit)
    now = 102.0
    for number in range(calls):
        start, prompt = trace.tick(), {"messages": [f"a question of the user {number}"]}
        call = CallRecord(
            "ask <all>|chat|Chat|app.py:build.<locals>.ask:31", "ask <all>", "m", "chat", "decode", Chat(), "i", prompt,
            None, start, now, visit=visit,
        )  # fmt: skip
        early = issued_s is not None and number > 0
        now += 0.0 if early else 1.0
        call.end, call.ended_s, call.tokens, call.output = trace.tick(), now, (7, 9), {"content": answers}
        if early:
            call.retired, call.issued_s, call.answered_s = True, issued_s, (issued_s or 0.0) + 1.0
        trace.calls.append(call)
    visit.end, visit.ended_s, visit.left = trace.tick(), now, {}
    trace.ended_s = now
    return trace


def page_of(path: Path, trace: Trace, **options: Any) -> Any:
    timeline(trace, str(path), plan=Plan(), **options)
    return check_page(path.read_text(encoding="utf-8"))


def test_before_is_worked_out_and_stands_above(tmp_path: Path) -> None:
    page = page_of(tmp_path / "run.html", trace_of(100.5))
    assert page.title == "1.00 s saved: 3.00 s instead of 4.00 s (1.33x)"
    before, after = page.panels
    assert [call["name"].split()[:2] for call in before] == [["ask", "1"], ["ask", "2"]]
    assert {kind for call in before for kind, _ in call["pieces"]} == {"whole"}
    first, second = after
    assert [kind for kind, _ in first["pieces"]] == ["whole"]
    assert [kind for kind, _ in second["pieces"]] == ["early", "held", "asked"], "begun, answered, retired"
    assert "begun 2.50 s before the program asked; retired at 3.00 s" in second["card"]
    assert "app.py:31" in second["name"] and "7 prompt and 9 output tokens" in second["card"]
    assert page.lanes == [["ask <all>"], ["ask <all>"]]


def test_a_recorded_run_stands_for_before_where_there_is_one(tmp_path: Path) -> None:
    page = page_of(tmp_path / "run.html", trace_of(100.5), before=trace_of(None, calls=3))
    assert [len(panel) for panel in page.panels] == [3, 2]
    assert page.title == "2.00 s saved: 3.00 s instead of 5.00 s (1.67x)"


def test_texts_are_shown_only_if_asked_for(tmp_path: Path) -> None:
    for name in ("run.html", "run.json"):
        timeline(trace_of(100.5), str(tmp_path / name), plan=Plan())
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "a question of the user" not in text and "an answer of the model" not in text
        assert "24 characters" in text, "the length of the prompt"
        timeline(trace_of(100.5), str(tmp_path / name), plan=Plan(), texts=True)
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "a question of the user" in text and "an answer of the model" in text


def test_what_texts_hold_can_not_break_the_page(tmp_path: Path) -> None:
    page = page_of(tmp_path / "run.html", trace_of(100.5, answers="</div><script>alert('&quot;')</script>"), texts=True)
    assert "</div><script>alert" in page.panels[0][0]["card"]


def test_tools_that_are_no_components_have_bars(tmp_path: Path) -> None:
    trace = trace_of(100.5)
    trace.uses.append(Use(object(), "lookup", "|Tool|app.py:ask:30", "ask <all>", trace.visits[0], 100.5, 101.5))
    page = page_of(tmp_path / "run.html", trace)
    for panel in page.panels:
        assert sum(call["name"].startswith("lookup") for call in panel) == 1


def test_a_run_that_raised_has_no_before(tmp_path: Path) -> None:
    trace = trace_of(None)
    trace.completed = False
    page = page_of(tmp_path / "run.html", trace)
    assert len(page.panels) == 1 and page.title == "4.00 s"


@pytest.mark.parametrize("calls", [0, 1, 60])
def test_any_number_of_calls(tmp_path: Path, calls: int) -> None:
    page = page_of(tmp_path / "run.html", trace_of(100.5, calls=calls))
    assert [len(panel) for panel in page.panels] == [calls, calls]


@pytest.mark.parametrize("calls", [0, 1, 60])
def test_a_picture_for_documents(tmp_path: Path, calls: int) -> None:
    path = tmp_path / "run.svg"
    timeline(trace_of(100.5, calls=calls), str(path), plan=Plan(), texts=True)
    drawn = ElementTree.parse(path).getroot()
    wide, high = float(drawn.get("width", "")), float(drawn.get("height", ""))
    boxes = [{**box.attrib} for box in drawn.iter("{http://www.w3.org/2000/svg}rect") if "x" in box.attrib]
    for box in boxes:
        x, y, width, height = (float(box[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= wide and 0 <= y <= y + height <= high
    early = max(0, calls - 1)
    key = bool(calls) + 2 * bool(early)
    kinds = Counter(box["class"] for box in boxes)
    assert kinds["asked"] == early + (key > 1) and kinds["decode hatch"] == early + (key > 1)
    texts = [text.text or "" for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert f"After: {calls + 2 - early:.2f} s, {calls} call" in " ".join(texts)
    assert not any("a question of the user" in text for text in texts)


def test_several_runs_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "runs.html"
    side_by_side({"unmodified": trace_of(None), "by hand": trace_of(None), "fast": trace_of(100.5)}, str(path))
    page = check_page(path.read_text(encoding="utf-8"))
    assert len(page.panels) == 3 and page.title.startswith("1.00 s saved")


def test_empty_trace(tmp_path: Path) -> None:
    path = tmp_path / "timeline.html"
    side_by_side({"nothing": Trace(ended_s=None)}, str(path))
    assert "0 calls" in path.read_text(encoding="utf-8")


def test_perfetto(tmp_path: Path) -> None:
    timeline(trace_of(100.5), str(tmp_path / "run.json"), plan=Plan())
    events = check_chrome_trace((tmp_path / "run.json").read_text(encoding="utf-8"))["traceEvents"]
    assert [event["args"]["name"] for event in events if event["name"] == "process_name"] == [
        "Before: 4.00 s",
        "After: 3.00 s",
    ]
    calls = [event for event in events if event["ph"] == "X" and event["cat"] != "node"]
    assert sorted((event["pid"], event["name"], event["dur"]) for event in calls) == [
        (1, "ask 1", 1e6),
        (1, "ask 2", 1e6),
        (2, "ask 1", 1e6),
        (2, "ask 2", 1e6),
    ]
    (asked,) = (event for event in events if event["ph"] == "i")
    assert asked["ts"] == 3e6 and asked["pid"] == 2
