"""`python -m bench headline`: the table of the README, from the pages of `bench/` as they are. Measures nothing."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

BENCH = Path(__file__).parent
README = BENCH.parent / "README.md"
BEGIN, END = "<!-- figures: python -m bench headline -->\n", "<!-- end -->\n"
GAINS = 1.1
"""A program that becomes faster by this much counts as one that gains."""
HEAD = ("programs", "median", "lowest to highest", "median of the limit", f"{GAINS}x and more")


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one program; ratios are above 1 where accelerated is faster."""

    steady: float
    limit: float
    advised: float
    """With the lines that its report names; without any, as it is,"""
    advised_limit: float
    """and of a run with these."""


def rows_of(page: str, heading: str = "") -> Iterator[dict[str, str]]:
    """The rows of the page's tables of programs, by column; of one section, or of all."""
    columns: list[str] = []
    section = ""
    for line in (BENCH / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("#"):
            section, columns = line.lstrip("# "), []
        elif cells[0] == "program":
            columns = cells
        elif line.startswith("|") and "steady" in columns and not line.startswith("| ---") and heading in ("", section):
            yield dict(zip(columns, cells, strict=True))


def ratio(cell: str) -> float | None:
    found = re.match(r"([\d.]+)x", cell)
    return float(found[1]) if found else None


def programs(page: str, heading: str = "") -> list[Figures]:
    found = []
    for row in rows_of(page, heading):
        steady, limit = ratio(row["steady"]), ratio(row["limit"])
        assert steady is not None and limit is not None, f"{page}: {row['program']} has no figures"
        advised, then = ratio(row.get("advised", "")), ratio(row.get("limit then", ""))
        found.append(Figures(steady, limit, advised or steady, then or limit))
    assert found, f"{page} has no table of programs {heading}"
    return found


def line(name: str, ratios: Sequence[float], limits: Sequence[float]) -> tuple[str, ...]:
    gain = sum(each >= GAINS for each in ratios)
    extent = f"{min(ratios):.2f}x to {max(ratios):.2f}x"
    return name, f"{median(ratios):.2f}x", extent, f"{median(limits):.2f}x", f"{gain} of {len(ratios)}"


def table() -> str:
    """And how many of the public programs can't gain."""
    rows = []
    for heading in ("LangGraph", "LlamaIndex"):
        found = programs("STRANGERS.md", heading)
        name = f"[public {heading} programs](bench/STRANGERS.md)"
        rows.append(line(f"{name}, as they are", [each.steady for each in found], [each.limit for each in found]))
        limits = [each.advised_limit for each in found]
        rows.append(line(f"{name}, with the advised lines", [each.advised for each in found], limits))
    found = programs("CORPUS.md")
    name = "[small and rebuilt programs](bench/CORPUS.md) on a simulated local 7B model"
    rows.append(line(name, [each.steady for each in found], [each.limit for each in found]))
    drawn = [HEAD, ("---",) * len(HEAD), *rows]
    said = re.search(r"In (\d+ of \d+) programs no call's input", (BENCH / "STRANGERS.md").read_text(encoding="utf-8"))
    assert said is not None, "STRANGERS.md does not say how many programs can't gain"
    still = f"In {said[1]} public programs no call's input is complete earlier than the program makes the call.\n"
    return "".join(f"| {' | '.join(row)} |\n" for row in drawn) + f"\n{still}"


def readme(text: str) -> str:
    """The README with the table of today."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin and end, "the README has no place for the table"
    return f"{before}{begin}{table()}{end}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench headline", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    if parser.parse_args(arguments).write:
        README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(table())
    return 0
