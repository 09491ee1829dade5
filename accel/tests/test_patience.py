"""When functions are tried for a call site again that they did not explain."""

from __future__ import annotations

from accel.graph.ir import Graph
from accel.learn.lessons import Lesson, lesson
from accel.run.gains.patience import Patience
from accel.tests.test_core_computed import TOWNS, majority
from accel.tests.test_core_learn import Script, Words, shown
from accel.trace.record import Trace


def traces_of(*answers: str) -> list[Trace]:
    """A report that says of each town what nobody knows."""
    traces = []
    for town, answer in zip(TOWNS, answers, strict=False):
        script = Script({"q": town})
        script.call("report", f"Write of {town} that it is {answer}.", "done")
        traces.append(script.done())
    return traces


def taught(in_vain: str) -> Lesson:
    return Lesson(Graph(()), [], 0.0, {}, in_vain=frozenset(in_vain.split()))


def test_a_site_is_passed_over_by_twice_as_many_lessons_each_time() -> None:
    patience, tried = Patience(), ""
    for _ in range(16):
        passed_over = patience.passed_over()
        tried += "-" if passed_over else "x"
        patience.learnt(taught("" if passed_over else "site"), complete=False, changed=False)
    assert tried == "x--x----x-------"


def test_a_site_that_functions_explain_at_last_is_not_passed_over_any_more() -> None:
    patience = Patience()
    for in_vain in ("here there", "", "here", ""):
        patience.learnt(taught(in_vain), complete=False, changed=False)
    assert patience.passed_over() == {"here"}
    patience.hope()
    assert not patience.passed_over()


def test_a_lesson_says_for_which_sites_functions_were_tried_in_vain() -> None:
    found = lesson(traces_of("grey", "windy", "small"), Words(()))
    assert len(found.in_vain) == 1
    assert not lesson(traces_of("grey", "windy"), Words(())).in_vain, "two runs are too few to try any"
    assert not lesson(traces_of("grey", "windy", "small"), Words(()), passed_over=found.in_vain).in_vain


def test_a_site_that_is_passed_over_is_explained_by_no_function() -> None:
    traces = []
    for town in TOWNS:
        script = Script({"q": town})
        majority(script, town)
        traces.append(script.done())
    found = lesson(traces, Words(()))
    assert not found.in_vain and "majority" in shown(found.graph)[-1]
    (site,) = {call.site for call in traces[0].calls if "Why" in str(call.input)}
    assert shown(lesson(traces, Words(()), passed_over=[site]).graph)[-1].startswith("?")
