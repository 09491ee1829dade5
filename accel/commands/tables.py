"""Rows for people: a table at a terminal, plain columns elsewhere; progress where somebody looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any


def show_rows(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = (), folded: Sequence[str] = ()
) -> None:
    """Write rows to standard output. right: the columns that are numbers. folded: those that may take several
    lines."""
    if not sys.stdout.isatty():
        sys.stdout.write(columns(head, rows))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=0, show_edge=False)
    for name in head:
        justify: Any = "right" if name in right else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name not in folded)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Without colours and frames, two blanks between columns."""
    lines = [[cell or "-" for cell in row] for row in (head, *rows)]
    widths = [max(len(row[n]) for row in lines) for n in range(len(head))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)


@contextmanager
def doing(what: str) -> Generator[Callable[[str], None], None, None]:
    """Takes what is being done, and shows it on standard error. Silent where nobody looks."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as shown:
        yield lambda text: shown.update(text)
