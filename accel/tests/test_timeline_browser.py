"""The timeline in a real browser: nothing overlaps, nothing is clipped, at any width, in light and dark.

Needs playwright and a Chromium (`ACCEL_CHROMIUM` names one that is not on the path); skipped where they are missing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accel.reports.pictures.timeline import timeline
from accel.run.plans.plan import Plan
from accel.tests.test_timeline import trace_of
from accel.trace.record import Use

CHROMIUM = os.environ.get("ACCEL_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.browser

_BOXES = """elements => elements.map(e => { const b = e.getBoundingClientRect();
  return {left: b.left, right: b.right, top: b.top, bottom: b.bottom, wide: e.scrollWidth, shown: e.clientWidth,
          text: e.textContent, lane: e.closest('.lane') ? 1 : 0}; })"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser test needs: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("the browser test needs a Chromium on the path, or named by ACCEL_CHROMIUM")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    trace = trace_of(100.5, calls=5)
    long = "summarise_every_document_that_the_search_has_found"
    trace.uses.append(Use(object(), long, "|Tool|app.py:ask:30", "ask <all>", trace.visits[0], 100.5, 101.5))
    timeline(trace, str(tmp_path / "run.html"), plan=Plan())
    return tmp_path / "run.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 640, 900, 2000])
def test_page(browser: Any, path: Path, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing sticks out"
    names = page.eval_on_selector_all(".name", _BOXES)
    labels = [box for box in names if box["text"].strip()]
    assert len(labels) == 2 * (1 + 6), "the node and every bar, before and after"
    for box in labels:
        assert box["wide"] <= box["shown"] + 1, f"clipped: {box['text']}"
        assert box["right"] - box["left"] > 20 and box["bottom"] - box["top"] > 8
    others = page.eval_on_selector_all(".took, .axis b:not(.odd)", _BOXES)
    boxes = labels + [box for box in others if box["text"].strip() and box["bottom"] > box["top"]]
    for number, one in enumerate(boxes):
        for other in boxes[:number]:
            apart = (
                one["right"] <= other["left"] + 1
                or other["right"] <= one["left"] + 1
                or one["bottom"] <= other["top"] + 1
                or other["bottom"] <= one["top"] + 1
            )
            assert apart, f"{one['text']} overlaps {other['text']}"
    for box in page.eval_on_selector_all(".call .track i", _BOXES):
        assert 0 <= box["left"] and box["right"] <= width and box["right"] - box["left"] >= 1
    page.hover(".is-early >> nth=0")
    (card,) = [box for box in page.eval_on_selector_all(".card", _BOXES) if box["bottom"] > box["top"]]
    assert 0 <= card["left"] and card["right"] <= width and "before the program asked" in card["text"]
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") is (scheme == "light")
    page.close()
