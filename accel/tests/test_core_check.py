"""How a learnt graph ties the calls of a trace together: what each needs, and what decides that it is made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from accel.learn.check import Ties, ties
from accel.learn.lessons import learn
from accel.tests.test_core_learn import TOPICS, Script
from accel.trace.record import CallRecord, Trace

Program = Callable[[Script, str], None]


def tied(program: Program, fewest: dict[str, int] | None = None) -> tuple[Ties, list[CallRecord]]:
    """The ties of the last of three runs."""
    traces: list[Trace] = []
    for topic in (*TOPICS[:2], "lakes of Chad"):
        script = Script({"q": topic})
        program(script, topic)
        traces.append(script.done())
    return ties(learn(traces[:2]), traces[2], fewest), traces[2].calls


def test_what_an_input_needs_and_from_what_share_on() -> None:
    def program(script: Script, topic: str) -> None:
        found = script.call("list", f"Parts of {topic}", f"upper {topic}\nlower {topic}\nold {topic}").split("\n")
        notes = [script.call("note", f"Note on {part}", f"{part} is fine") for part in found]
        script.call("sum", "Sum up: " + "; ".join(notes), "done")

    known, (parts, *notes, total) = tied(program)
    assert known.using[parts] == {} and known.deciding == {}
    assert [known.using[note] for note in notes] == [{parts.start: n / 3} for n in (1, 2, 3)]
    assert known.using[total] == {note.start: 1.0 for note in notes}


def test_rounds_beyond_those_of_every_run_are_decided_by_what_came_before() -> None:
    def program(script: Script, topic: str) -> None:
        found = script.call("list", f"Parts of {topic}", f"upper {topic}\nlower {topic}\nold {topic}").split("\n")
        for part in found[: 2 + (topic != TOPICS[0])]:
            script.call("note", f"Note on {part}", f"{part} is fine")

    known, (parts, first, second, third) = tied(program)
    assert known.deciding == {third: [parts, first, second]} and known.using[third] == {parts.start: 1.0}


def test_what_no_template_explains_is_decided_where_not_every_run_makes_it() -> None:
    def program(script: Script, topic: str) -> None:
        first = script.call("a", f"Describe {topic}", f"All about {topic}")
        for number in range(2):
            script.call("b", hashlib.sha256(f"{first} {number}".encode()).hexdigest(), "fine")

    known, (first, second, third) = tied(program)
    assert known.deciding == {} and second not in known.using
    known, (first, second, third) = tied(program, fewest={"a": 1, "b": 1})
    assert known.deciding == {third: [first, second]}
