"""What `explain` gives: words, a Mermaid flowchart or a picture for who wrote the program, and the compiler's view."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from ..errors import ConfigurationError
from ..process.threads import learner
from .compiled import compiled
from .drawing import svg
from .measured import LEARNING_S
from .steps import steps_of
from .text import learnt_from
from .words import in_words, mermaid

if TYPE_CHECKING:
    from ..run.plan import Plan

Format = Literal["text", "mermaid", "svg"]


def check_form(format: str, graph: bool) -> Format:
    """The format. Raises ConfigurationError for what can't be drawn."""
    if format not in ("text", "mermaid", "svg"):
        raise ConfigurationError(f"format={format!r} is not known.", 'Use "text", "mermaid" or "svg".')
    if graph and format != "text":
        raise ConfigurationError("The compiler's view is text.", f'Leave out graph=True, or format="{format}".')
    return cast("Format", format)


def explain(plan: Plan, *, graph: bool = False, format: Format = "text", path: str | None = None) -> str:
    """Waits for what is being learnt. Raises ConfigurationError for what can't be drawn."""
    check_form(format, graph)
    learner.settle(LEARNING_S)
    if graph:
        text = compiled(plan)
    else:
        steps = steps_of(plan)
        drawn = {"mermaid": mermaid, "svg": svg}.get(format)
        text = drawn(steps) if drawn is not None else in_words(steps, learnt_from(plan, "request"))
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
