"""What `explain` gives: words, a Mermaid flowchart or a picture for who wrote the program, and the compiler's view."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from ..errors import ConfigurationError
from ..process.threads import learner
from .compiled import compiled
from .measured import LEARNING_S
from .steps.drawing import svg
from .steps.steps import steps_of
from .steps.words import in_words, mermaid
from .text import learnt_from

if TYPE_CHECKING:
    from ..run.plans.plan import Plan

Format = Literal["text", "mermaid", "svg"]


def form_of(format: str | None, path: str | os.PathLike[str] | None, graph: bool) -> Format:
    """The format that was asked for, or as a file's name ends. Raises ConfigurationError for what can't be drawn."""
    form = format if format is not None else _BY_END.get(Path(path or "").suffix, "text")
    if form not in ("text", "mermaid", "svg"):
        raise ConfigurationError(f"format={form!r} is not known.", 'Use "text", "mermaid" or "svg".')
    if graph and form != "text":
        raise ConfigurationError("The compiler's view is text.", f'Leave out graph=True, or "{form}".')
    return cast("Format", form)


_BY_END = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid"}


def explain(plan: Plan, *, graph: bool = False, format: Format | None = None, path: str | None = None) -> str:
    """Waits for what is being learnt. Raises ConfigurationError for what can't be drawn."""
    form = form_of(format, path, graph)
    learner.settle(LEARNING_S)
    if graph:
        text = compiled(plan)
    else:
        steps = steps_of(plan)
        drawn = {"mermaid": mermaid, "svg": svg}.get(form)
        text = drawn(steps) if drawn is not None else in_words(steps, learnt_from(plan, "request"))
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
