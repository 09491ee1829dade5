"""What `report` gives: for people at a terminal or in a file, and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .measured import Measured
from .shape import to_dict
from .text import text

if TYPE_CHECKING:
    from rich.console import RenderableType


class Report(Measured):
    """``str(report)`` is plain text of at most a hundred columns; rich, where it is installed, prints tables; `to_dict`
    is for programs. `priced` adds what it costs."""

    def to_dict(self) -> dict[str, Any]:
        """Numbers, texts, lists and dicts; docs/report.md says what the keys mean, and they stay."""
        return to_dict(self)

    def to_json(self, indent: int | None = None) -> str:
        return json.dumps(self.to_dict(), indent=indent)

    def __str__(self) -> str:
        return text(self)

    def __rich__(self) -> RenderableType:
        from .table import table  # needs rich, which only calls this

        return table(self)
