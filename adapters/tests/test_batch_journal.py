"""A batch that was interrupted goes on where it was: nothing is lost, and nothing done twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

import accel
from adapters.tests.batch_programs import (
    ASKED,
    Oracle,
    State,
    Steps,
    graph_of,
    inputs,
    noting_graph,
    plainly,
)  # fmt: skip

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def anew() -> None:
    Steps.reset()


def noted(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_killed_twice_and_resumed_it_lost_nothing_and_did_nothing_twice(tmp_path: Path) -> None:
    notes, journal = tmp_path / "notes", tmp_path / "journal"
    notes.touch()
    roots = os.pathsep.join(str(ROOT / name) for name in ("", "adapters", "backends"))
    for killed_at in ("12", "25"):
        before, had = noted(notes), {line["at"] for line in lines(journal)[1:]} if journal.exists() else set()
        killed = subprocess.run(
            [sys.executable, "-m", "adapters.tests.batch_programs", notes, journal, killed_at],
            env={**os.environ, "PYTHONPATH": roots},
            timeout=120,
        )
        assert killed.returncode == -signal.SIGKILL
        assert not had & set(noted(notes)[len(before) :]), "what is in the journal isn't done again"
    finished = {line["at"] for line in lines(journal)[1:]}
    assert len(finished) >= 23
    with open(journal, "ab") as file:
        file.write(journal.read_bytes().splitlines()[1][:50])
    fast = accel.accelerate(noting_graph(str(notes)))
    before = noted(notes)
    found = dict(fast.batch_as_completed(iter(inputs(40)), resume=journal))
    assert [found[number]["answer"].content for number in range(40)] == [f"answer {number}" for number in range(40)]
    assert Counter(noted(notes)[len(before) :]) == Counter(set(range(40)) - finished)
    before = noted(notes)
    more = fast.batch(inputs(43), resume=journal)
    assert [result["answer"].id for result in more] == [f"id {number}" for number in range(43)]
    assert sorted(noted(notes)[len(before) :]) == [40, 41, 42], "only the inputs that are new at the end"
    assert len(fast.batch(inputs(5), resume=journal)) == 5 and fast.plan.batch.resumed == 5


def test_errors_are_not_finished(tmp_path: Path) -> None:
    Steps.fails_on = "question 2"
    fast = accel.accelerate(graph_of(Oracle()))
    first = fast.batch(inputs(6), resume=tmp_path / "journal", return_exceptions=True)
    assert isinstance(first[2], RuntimeError)
    Steps.fails_on = "nothing"
    ASKED.clear()
    again = asyncio.run(fast.abatch(inputs(6), resume=tmp_path / "journal"))
    assert len(ASKED) == 2 and "question 2" in ASKED[1]
    assert [plainly(result) for result in first if result is not first[2]] == [
        plainly(result) for result in again if result is not again[2]
    ]


def test_it_is_the_owners_and_has_a_line_for_each_result(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    accel.accelerate(graph_of(Oracle())).batch(iter(inputs(5)), resume=journal)
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    first, *others = lines(journal)
    assert first["version"] == 1 and set(first) == {"journal", "version", "program"}
    assert sorted(line["at"] for line in others) == [0, 1, 2, 3, 4]
    assert {frozenset(line) for line in others} == {frozenset(("at", "input", "result"))}
    assert "question" not in journal.read_text(), "an input is known by its digest"


def test_a_half_written_line_counts_as_not_written(tmp_path: Path) -> None:
    journal, fast = tmp_path / "journal", accel.accelerate(graph_of(Oracle()))
    first = fast.batch(inputs(5), {"max_concurrency": 1}, resume=journal)
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-20])
    ASKED.clear()
    again = fast.batch(inputs(5), {"max_concurrency": 1}, resume=journal)
    assert list(map(plainly, again)) == list(map(plainly, first)) and len(ASKED) == 2
    assert [line["at"] for line in lines(journal)[1:]] == [0, 1, 2, 3, 4]


def test_it_goes_on_for_more_inputs_than_before(tmp_path: Path) -> None:
    journal, fast = tmp_path / "journal", accel.accelerate(graph_of(Oracle()))
    fast.batch(inputs(5), resume=journal)
    ASKED.clear()
    assert len(fast.batch(iter(inputs(6)), resume=journal)) == 6
    assert len(ASKED) == 2


@pytest.mark.parametrize("as_iterator", [True, False])
def test_of_other_inputs_it_is_refused_before_anything_is_done(tmp_path: Path, as_iterator: bool) -> None:
    journal, fast = tmp_path / "journal", accel.accelerate(graph_of(Oracle()))
    fast.batch(inputs(5), resume=journal)
    kept = [line for line in journal.read_text().splitlines(keepends=True) if '"at": 0,' not in line]
    journal.write_text("".join(kept))
    ASKED.clear()
    others = [{**value, "question": "another one"} for value in inputs(5)]
    with pytest.raises(accel.ConfigurationError, match="other inputs: input 1 was another one"):
        fast.batch(iter(others) if as_iterator else others, resume=journal)
    assert ASKED == [] and journal.read_text() == "".join(kept)


def test_so_it_is_for_another_configuration_but_not_for_another_thread(tmp_path: Path) -> None:
    journal, fast = tmp_path / "journal", accel.accelerate(graph_of(Oracle()))
    ann: Any = {"configurable": {"user": "ann", "thread_id": "1"}}
    fast.batch(inputs(3), ann, resume=journal)
    fast.batch(inputs(3), {"configurable": {"user": "ann", "thread_id": "2"}}, resume=journal)
    assert fast.plan.batch.resumed == 3
    with pytest.raises(accel.ConfigurationError, match="other inputs"):
        fast.batch(inputs(3), {"configurable": {"user": "ben"}}, resume=journal)


def test_of_another_program_it_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    accel.accelerate(graph_of(Oracle())).batch(inputs(3), resume=journal)
    with pytest.raises(accel.ConfigurationError, match="another program"):
        accel.accelerate(noting_graph(str(tmp_path / "notes"))).batch(inputs(3), resume=journal)


@pytest.mark.parametrize("text, what", [
    ('{"something": "else"}\n', "no journal"),
    ("not JSON\n", "Line 1"),
    ("[]\n", "no journal"),
    ("not even a line", "Line 1"),
])  # fmt: skip
def test_other_files_are_refused_and_left_alone(tmp_path: Path, text: str, what: str) -> None:
    journal = tmp_path / "journal"
    journal.write_text(text)
    with pytest.raises(accel.ConfigurationError, match=what):
        accel.accelerate(graph_of(Oracle())).batch(inputs(3), resume=journal)
    assert journal.read_text() == text and ASKED == []


def test_one_batch_at_a_time_writes_it(tmp_path: Path) -> None:
    journal, fast = tmp_path / "journal", accel.accelerate(graph_of(Oracle()))
    results = fast.batch_as_completed(inputs(3), {"max_concurrency": 1}, resume=journal)
    next(results)
    with pytest.raises(accel.ConfigurationError, match="in use"):
        fast.batch(inputs(3), resume=journal)
    results.close()
    assert len(fast.batch(inputs(3), resume=journal)) == 3


def test_what_would_come_back_as_something_else_is_said_at_once(tmp_path: Path) -> None:
    def give(state: State) -> State:
        return {"answer": ("a", "tuple")}

    builder = StateGraph(State)
    builder.add_node("give", give)
    builder.add_edge(START, "give")
    builder.add_edge("give", END)
    fast = accel.accelerate(builder.compile())
    with pytest.raises(accel.ConfigurationError, match="come back"):
        fast.batch(inputs(3), resume=tmp_path / "journal", return_exceptions=True)


@pytest.mark.parametrize("resume", [3, "/no/such/folder/journal"])
def test_a_path_must_be_one(resume: Any) -> None:
    with pytest.raises(accel.ConfigurationError):
        accel.accelerate(graph_of(Oracle())).batch(inputs(3), resume=resume)
