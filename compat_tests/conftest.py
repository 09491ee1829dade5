"""Prints what the property tests covered."""

from __future__ import annotations

from typing import Any

from compat_tests.differential import session_counts


def pytest_terminal_summary(terminalreporter: Any) -> None:
    counts = session_counts
    if counts:
        terminalreporter.write_line(
            f"properties: {counts['programs']:,} programs (sync {counts['sync']:,}, async {counts['async']:,}), "
            f"{counts['demanded']:,} calls demanded, {counts['issued']:,} issued early, "
            f"{counts['retired']:,} retired early, {counts['wasted']:,} wasted, {counts['mismatches']:,} mismatches"
        )
