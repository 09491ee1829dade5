"""The picture of a run: before and after above each other, as a page, as a picture, or as a trace for Perfetto."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ConfigurationError
from ...text.values import freeze
from ...trace.alone import Beside
from ..steps.shapes import shape_of, texts_of
from ..text import seconds
from . import page, perfetto
from .bars import Bar, Panel, after
from .bars import before as worked_out
from .figure import figure

if TYPE_CHECKING:
    from ...run.plans.plan import Plan
    from ...trace.record import Trace


FORMATS = {".html": "a page", ".svg": "a picture", ".json": "a trace for Perfetto"}
"""By the end of a file's name."""


def format_of(path: str | os.PathLike[str]) -> str:
    """One of `FORMATS`. Raises ConfigurationError."""
    kind = Path(path).suffix.lower()
    if kind not in FORMATS:
        known = ", ".join(f"{end} ({what})" for end, what in FORMATS.items())
        raise ConfigurationError(f"{path} ends in no format of a timeline.", f"End its name in one of {known}.")
    return kind


def timeline(
    trace: Trace, path: str, *, plan: Plan | None = None, before: Trace | None = None, texts: bool = False
) -> None:
    """Write it. `plan`: what is known of the program, for the shapes of its prompts; `before`: an unmodified run of the
    same input. Where there is none it is worked out from the run itself. `texts`: with prompts and answers in full."""
    if before is None and plan is not None and trace.completed:
        before = unmodified(trace, plan.traces)
    panels = _panels(trace, before, plan.tally.beside if plan is not None else Beside())

    def details(bar: Bar) -> list[str]:
        call = bar.call
        if call is None:
            return ["a tool that is no component: nobody said what it does"]
        shape = [f"asked: {line}" for line in shape_of(plan, call)] if plan is not None else []
        return [*shape, *(texts_of(call) if texts else ())]

    _write(path, panels, _notes(trace, before), details)


def unmodified(trace: Trace, kept: Iterable[Trace]) -> Trace | None:
    """A run with the same input in which nothing was early, if one is remembered."""
    given = freeze(trace.given)
    alike = (other for other in kept if other is not trace and freeze(other.given) == given)
    return next((other for other in alike if not any(call.retired for call in other.calls)), None)


def side_by_side(traces: Mapping[str, Trace], path: str) -> None:
    """Several runs as they went, by name: the first is what the last is compared with."""
    panels = [after(trace, name) for name, trace in traces.items()]
    _write(path, panels, [], lambda bar: [])


def _write(path: str, panels: list[Panel], notes: list[str], details: Callable[[Bar], list[str]]) -> None:
    kind = format_of(path)
    if kind == ".json":
        text = json.dumps(perfetto.events(panels, details))
    elif kind == ".svg":
        text = figure(panels, title_of(panels), notes)
    else:
        text = page.page(panels, title_of(panels), notes, details)
    Path(path).write_text(text, encoding="utf-8")


def _panels(trace: Trace, before: Trace | None, beside: Beside) -> list[Panel]:
    if before is not None:
        return [after(before, "Before"), after(trace, "After")]
    return [*([worked_out(trace, "Before", beside)] if trace.completed else []), after(trace, "After")]


def title_of(panels: list[Panel]) -> str:
    """The seconds saved."""
    if len(panels) < 2:
        return seconds(panels[0].seconds)
    slow, fast = panels[0].seconds, panels[-1].seconds
    ratio = f" ({slow / fast:.2f}x)" if fast > 0.0 else ""
    said = "saved" if slow >= fast else "lost"
    return f"{seconds(abs(slow - fast))} {said}: {seconds(fast)} instead of {seconds(slow)}{ratio}"


def _notes(trace: Trace, before: Trace | None) -> list[str]:
    if before is not None:
        return ["Before: a recorded request with the same input, in which nothing was early."]
    if not trace.completed:
        return ["The request or a node of it raised, or it was stopped, so nothing is worked out for it."]
    return [
        "Before: the same request without early calls, worked out: its calls in the program's own order, each as long "
        "as it took, and the program's own time between them."
    ]
