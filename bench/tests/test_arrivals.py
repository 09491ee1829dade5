"""`python -m bench arrivals`: answers are the same in all arms, and the document says so; nothing is said of times."""

from __future__ import annotations

import pytest

from bench.arrivals import Cell, measured
from bench.arrivals_report import ALL, FIRST_COME, document, rows
from corpus.arrivals import PROGRAMS
from corpus.papers import data


def test_all_arms_answer_alike_and_the_document_says_what_each_reached() -> None:
    sets = data.sample()
    found = [
        one
        for deadlines, seed in ((False, 0), (False, 1), (True, 0))
        for one in measured(Cell("reading", requests=3, deadlines=deadlines, seed=seed), sets)
    ]
    assert not any(one["different"] for one in found)
    assert [one["arm"] for one in found].count(ALL) == [one["arm"] for one in found].count(FIRST_COME) == 3
    (saturated,), (loaded,) = rows(found, False), rows(found, True)
    assert saturated.outputs == loaded.outputs == "equal"
    assert saturated.ratio("seconds", FIRST_COME, FIRST_COME) == "1.00x (1.00 to 1.00)"
    shown = document(found, "here", "python -m bench arrivals")
    assert "| reading | 0.5 |" in shown and "Goodput" in shown and "equal" in shown
    assert "1 DIFFER" in document([{**found[0], "different": 1}, *found[1:]], "here", "")


@pytest.mark.parametrize("name", ["reading"])
def test_programs_make_the_calls_that_they_say(name: str) -> None:
    program = PROGRAMS[name]
    values = program.inputs(data.sample(), 2, 0)
    assert len(values) == 2 and all(len(value["passages"]) == program.CALLS - 1 for value in values)
