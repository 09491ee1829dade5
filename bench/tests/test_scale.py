"""The document on scale: each of its parts is written by its own command."""

from __future__ import annotations

from bench.scale import LONG_RUNS, document

SHOWN = "## Long runs\n\nWork.\n\n```\npython -m bench scale\n```\n\n| loop | 1 |"


def test_the_usual_part_and_the_one_on_long_runs_replace_themselves_alone() -> None:
    first = document("", SHOWN, long=False)
    assert first.startswith("# Long runs\n") and first.count("| loop | 1 |") == 1
    both = document(first, SHOWN.replace("| 1 |", "| 2 |"), long=True)
    assert both.startswith(first.rstrip()) and both.endswith(f"{LONG_RUNS}\n\n| loop | 2 |\n")
    again = document(both, SHOWN.replace("| 1 |", "| 3 |"), long=False)
    assert "| loop | 3 |" in again and again.endswith("| loop | 2 |\n") and "| loop | 1 |" not in again
