"""A report at a terminal, where rich is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .text import amounts, headline, hidden, sayings, seconds

if TYPE_CHECKING:
    from .measured import Measured


def table(report: Measured) -> RenderableType:
    first, *rest = headline(report)
    parts: list[RenderableType] = [Text(first, style="bold"), *(Text(line, style="dim") for line in rest)]
    if report.declarations:
        gains = Table(title="What would gain more, at most, if it is true", title_justify="left", expand=False)
        gains.add_column("seconds", justify="right", style="green", no_wrap=True)
        gains.add_column("line to paste", style="bold", overflow="fold")
        gains.add_column("be sure that", overflow="fold")
        for each in report.declarations:
            gains.add_row(f"{each.gain_s:.2f}", Text(each.line), Text(each.sure))
        if len(report.declarations) > 1:
            gains.add_row(f"{report.advice.gain_s:.2f}", Text("all of these lines together"), "")
        parts.append(gains)
    if report.unseen:
        parts.append(Text(hidden(report.unseen)))
    if report.rows:
        calls = Table(title="The last request, by your lines", title_justify="left", expand=False)
        calls.add_column("line", no_wrap=True)
        calls.add_column("calls", overflow="fold")
        calls.add_column("early", justify="right", no_wrap=True)
        calls.add_column("saved", justify="right", no_wrap=True)
        calls.add_column("since when, or why not", overflow="fold")
        for row in report.rows:
            calls.add_row(
                Text(row.place if row.has_line or not row.nodes else f"node {row.nodes[0]}"),
                Text(f"{row.what}: {', '.join(amounts(row))}" if row.calls or row.uses else row.what),
                Text(f"{row.early}", style="green" if row.early == row.made else "yellow" if row.early else "dim"),
                Text(seconds(row.saved_s) if row.early else ""),
                Text("\n".join(sayings(row))),
            )
        parts.append(calls)
    return Group(*parts)
