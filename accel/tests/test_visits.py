"""Visits of framework nodes inside others: where they stand, and who knows of whom."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

import accel
from accel import register
from accel.graph.ir import Evidence, Node
from accel.graph.ops import OPS
from accel.graph.predict import is_kin, laid_out, told
from accel.graph.topology import END, START, Topology
from accel.learn.covers.index import reaches
from accel.learn.view import View, ancestries
from accel.parts.methods.patches import install
from accel.parts.program.said import Said, Standing
from accel.run.foresight.outlook import Outlook
from accel.run.plans.plan import Plan
from accel.run.run import Run
from accel.run.scope import scope
from accel.tests.fake_host import ASK, Refers, opened, patched, think
from accel.text.extract import Open
from accel.text.paths import UNKNOWN
from accel.text.steps import STAR
from accel.text.templates import Ref
from accel.trace.record import Trace, Visit


def visited(trace: Trace, name: str, around: Visit | None = None, graph: str = "", **more: Any) -> Visit:
    """One that is over at once."""
    visit = trace.enter(name, {"in": name}, around, graph, **more)
    trace.leave(visit, {"out": name})
    return visit


def test_a_place_counts_nodes_in_a_graph_and_graphs_in_a_node() -> None:
    trace = Trace()
    first, second = trace.enter("desk", None), trace.enter("desk", None)
    inner = [visited(trace, "ask", second, graph) for graph in ("a", "b", "b")]
    deep = visited(trace, "find", inner[2], "c")
    assert [visit.place for visit in (first, second, *inner, deep)] == [
        (0,), (1,), (1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 1, 1, 0, 0),
    ]  # fmt: skip
    assert (deep.node, deep.outermost, second.graphs) == ("desk:ask:find", second, 2)
    assert second.holds(deep) and inner[2].holds(deep) and not first.holds(deep) and not inner[1].holds(deep)
    assert trace.outermost == [first, second]
    assert ancestries([View(0, trace, True)]) == {
        "desk": (True,), "desk:ask": (True, True, True), "desk:ask:find": (True, True, True, False, False),
    }  # fmt: skip


def test_visits_side_by_side_stand_where_their_framework_counts_them() -> None:
    """Whichever starts first: what runs inside moves with them."""
    trace = Trace()
    third = trace.enter("work", None, order=(1, 2))
    inside = visited(trace, "look", third, "g")
    assert inside.place == (0, 0, 0) and not trace.has_place(third) and not trace.has_place(inside)
    first = trace.enter("work", None, order=(1, 0))
    assert (first.place, third.place, inside.place) == ((0,), (1,), (1, 0, 0))
    assert trace.has_place(first) and not trace.has_place(third), "another one may come between them"
    other = trace.enter("rest", None, order=(1, 1))
    assert all(map(trace.has_place, (first, other, third, inside))), "it was another node's"
    later = trace.enter("work", None, order=(2, 0))
    assert later.place == (2,) and trace.has_place(later)
    assert not any(visit.displaces for visit in trace.visits), "nobody was told of those that moved"
    again = trace.enter("work", None, order=(1, 0))
    assert again.place == (1,) and again.displaces, "once more what is over: the others move"


def test_what_a_place_tells() -> None:
    ancestry = (True, False, True)
    assert told(ancestry, (2, 0, 1)) == (2, 1) and told(ancestry, (2,)) == (2,)
    assert told(ancestry, (2, 1, 1)) is None and told(ancestry, (2, 0, 1, 0, 0)) is None
    assert told((), (0,)) is None


def test_values_stand_where_their_indices_say() -> None:
    values = {(2, 0): "c", (0, 1): "b", (0, 0): "a"}
    closed = laid_out(values, 2, lambda before: before == (0,))
    assert closed == [["a", "b"], [], ["c"]]
    assert [isinstance(each, Open) for each in (closed, *closed)] == [True, False, True, True]
    assert laid_out({(1,): "b"}, 1, lambda before: True) == [UNKNOWN, "b"]


def test_a_source_is_open_where_more_may_come() -> None:
    node = Node("work:look.out", OPS["exit"], many=True, ancestry=(True, False, True))
    state = Outlook(node, 0, listed=False)
    for place, value in (((1, 0, 0), "c"), ((0, 0, 1), "b"), ((0, 0, 0), "a")):
        element = state.element_at(place)
        assert element is not None
        state.tell(element, value)
    assert state.element_at((0, 1, 0)) is None, "no run had a second graph"
    assert state.output() == [["a", "b"], ["c"]] and all(isinstance(each, Open) for each in state.output())
    assert state.close((1,)) and not state.close((1,))
    assert [isinstance(each, Open) for each in (state.output(), *state.output())] == [True, True, False]


def test_a_source_with_one_list_is_complete_when_the_node_around_it_is_over() -> None:
    state = Outlook(Node("work:look.in", OPS["enter"], many=True, ancestry=(False, False, True)), 0, listed=True)
    element = state.element_at((0, 0, 0))
    assert element is not None
    state.tell(element, "a")
    assert isinstance(state.output(), Open)
    assert state.close((0,)) and state.output() == ["a"] and not isinstance(state.output(), Open)


@pytest.mark.parametrize(
    ("always", "foreseen", "known"),
    [
        (True, 3, UNKNOWN),  # the program has made other calls in their place
        (True, 0, []),  # it was known that there would be none
        (False, 3, []),  # it goes without them now and then
    ],
)
def test_nothing_is_known_of_a_list_of_calls_that_turned_out_to_be_others(
    always: bool, foreseen: int, known: Any
) -> None:
    node = Node("notes", OPS["decode"], "a note", many=True, evidence=Evidence("verified", always=always))
    state = Outlook(node, 0, listed=True)
    for position in range(foreseen):
        state.element(position)
    state.freeze()
    assert state.output() == known and not state.open


@pytest.mark.parametrize(
    ("source", "path", "binding", "kin"),
    [
        ("work:look.out", (STAR, STAR), (1, 3), True),  # another node of the same graph, any time
        ("work:look.out", (STAR, STAR), (0, 3), False),
        ("work:look.out", (0, STAR), (3,), False),
        ("work:ask.in", (STAR, STAR), (1, 2), True),  # its own node: this time
        ("work:ask.in", (STAR, STAR), (1, 1), False),
        ("plan:ask.in", (STAR, STAR), (0, 0), True),  # nothing in common
        ("plan.out", ("items", STAR), (5,), True),
    ],
)
def test_elements_of_the_same_visits(source: str, path: Any, binding: tuple[int, ...], kin: bool) -> None:
    ancestry = (True, False, True) if ":" in source else (False,)
    assert is_kin(Ref(source, (*path, "text")), ancestry, binding, "work:ask", (1, 0, 2)) == kin


def test_nothing_is_known_of_what_runs_side_by_side() -> None:
    trace = Trace()
    one, other = trace.enter("work", None), trace.enter("work", None)
    found = visited(trace, "look", one, "a")
    beside = trace.enter("ask", None, other, "b")
    same = visited(trace, "ask", one, "a")
    assert reaches(found, same) and reaches(found, one) and reaches(found, None)
    assert not reaches(found, beside) and not reaches(found, other)
    trace.leave(beside, None), trace.leave(one, None), trace.leave(other, None)
    assert reaches(found, visited(trace, "ask", trace.enter("work", None), "c")), "the first is over by now"


def test_of_graphs_side_by_side_in_one_node_nothing_is_known_either() -> None:
    trace = Trace()
    around = trace.enter("work", None)
    first, beside = visited(trace, "look", around, "a"), visited(trace, "look", around, "b")
    asks = trace.enter("ask", None, around, "a")
    trace.leave(asks, None)
    assert reaches(first, asks) and not reaches(beside, asks) and not reaches(first, beside)
    trace.leave(around, None)
    after = trace.enter("write", None)
    for known in (first, beside, asks):
        assert not reaches(known, around) and not reaches(known, after), "which of the graphs it was is luck"


def test_of_graphs_one_after_the_other_in_one_node_everything_is_known() -> None:
    trace = Trace()
    around = trace.enter("work", None)
    first, second = visited(trace, "look", around, "a"), visited(trace, "look", around, "b")
    assert reaches(first, second) and reaches(first, around) and reaches(second, around)


# --- in runs ----------------------------------------------------------------------------------------------------------

SENT = Topology({START: frozenset({"work"}), "work": frozenset({END})})


ASKED: list[str] = []


class Asked:
    """What it is asked is in `ASKED`."""

    def fake_ask(self, text: str) -> str:
        ASKED.append(text)
        return f"Nothing of that, {len(text)} times."


def questions(person: str) -> list[str]:
    files = hashlib.sha256(person.encode()).hexdigest()[:20]
    return [f"{what} on {person}: {files}" for what in ("Sum up", "Doubt")]


def each(run: Run, model: Asked, people: list[str], starting: list[int]) -> None:
    """A visit for each, begun in this order, which looks something up; then each asks twice about it."""
    outer, visits = scope.get(), {}
    assert outer is not None
    for number in starting:
        visits[number] = run.enter("work", {"person": people[number]}, order=(1, number))
        files = questions(people[number])[0].rpartition(": ")[2]
        run.leave(run.enter("look", {}, visits[number], "g", order=(1,)), {"found": files})
        think(run)
    for number, visit in visits.items():
        token = scope.set(outer._replace(visit=visit))
        try:
            for question in questions(people[number]):
                model.fake_ask(question)
                think(run)
        finally:
            scope.reset(token)
        run.leave(visit, {})


def test_what_a_visit_found_is_no_other_ones() -> None:
    """Whichever starts first: where it stands may be another one's place."""
    with patched():
        install(Asked, ASK)
        register(Asked, pure=True, local=True, concurrency=8)
        model, plan, early = Asked(), Plan(), []
        for number, starting in enumerate([[0, 1, 2], [0, 1, 2], [0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]]):
            people = [f"{name} the {number}." for name in ("Ada", "Berthold", "Cunigunde")]
            ASKED.clear()
            with opened(plan, {"people": people}, topology=SENT, references=Refers(model)) as run:
                each(run, model, people, starting)
            accel.settle()
            early.append(run.counts.retired)
            assert sorted(ASKED) == sorted(question for person in people for question in questions(person))
        assert early == [0, 0, 6, 6, 6, 6]


class Told:
    """Knows something of its own about everything that it is asked, which is then in `ASKED`."""

    def fake_ask(self, text: str) -> str:
        ASKED.append(text)
        return f"That {hashlib.sha256(text.encode()).hexdigest()[:20]} is all there is."


class Knows(Refers):
    """A program whose own texts are these."""

    def said(self, standing: Standing) -> Said:
        return Said(dict.fromkeys([*QUESTIONS, *ORDERS]), {}, [])


QUESTIONS = ("What is {1}?", "Is it true that {0}", "{2}")
ORDERS = ("List {}", "Write on {}!")


def rounds(run: Run, model: Told, subjects: list[str]) -> None:
    """A visit for each: a question, another one about the answer, and one that nobody can foresee. All in one line."""
    for subject in subjects:
        visit = run.enter("work", {"subject": subject})
        outer, answer = scope.get(), ""
        assert outer is not None
        token = scope.set(outer._replace(visit=visit))
        try:
            for asks in QUESTIONS:
                think(run)
                secret = hashlib.sha256(subject.encode()).hexdigest()
                answer = model.fake_ask(asks.format(answer, subject, secret))
                think(run)
        finally:
            scope.reset(token)
        run.leave(visit, {"answer": answer})


def test_what_nobody_foresaw_is_not_taken_for_the_call_of_a_visit_to_come() -> None:
    """Whether a visit's first question is early is left open: on a quiet machine it follows at once."""
    with patched():
        install(Told, ASK)
        register(Told, pure=True, local=True, concurrency=8)
        model, plan, early, wasted = Told(), Plan(), [], []
        for number in range(5):
            ASKED.clear()
            with opened(plan, {"request": number}, topology=SENT, references=Knows(model)) as run:
                rounds(run, model, [f"{name} the {number}." for name in ("Ada", "Berthold", "Cunigunde")])
            accel.settle()
            retired = [call.retired for call in run.trace.calls]
            early.append((retired[1::3], retired[2::3]))
            wasted.append(len(ASKED) - 9)
        assert early[2:] == 3 * [([True] * 3, [False] * 3)]
        assert wasted[2:] == [0, 0, 0]


class Lists:
    """Is asked for a list, and for a note on each thing in it; what, is then in `ASKED`."""

    things: tuple[str, ...] = ()

    def fake_ask(self, text: str) -> str:
        ASKED.append(text)
        return "\n".join(self.things) if text.startswith("List") else "It is well known."


def test_what_the_program_has_asked_already_is_not_asked_again_ahead_of_it() -> None:
    def notes(run: Run, model: Lists, subject: str, before: list[str]) -> None:
        """On what it knew before it asks for the list, then on all other things in that. All in one line."""
        coming, listed = list(before), False
        while coming or not listed:
            if not coming:
                secret = hashlib.sha256(subject.encode()).hexdigest()
                coming, listed = model.fake_ask(f"List {secret}").splitlines(), True
            thing = coming.pop(0)
            think(run)
            if not listed or thing not in before:
                model.fake_ask(f"Write on {thing}!")

    with patched():
        install(Lists, ASK)
        register(Lists, pure=True, local=True, concurrency=8)
        model, plan = Lists(), Plan()
        for subject in ("the birds of Iceland", "the fish of Norway", "the trees of Finland", "the bears of Sweden"):
            things = [hashlib.sha256(f"{subject} {number}".encode()).hexdigest() for number in range(3)]
            model.things = tuple(things)
            ASKED.clear()
            with opened(plan, {"q": subject}, references=Knows(model)) as run:
                notes(run, model, subject, things[1:2] if "bears" in subject else [])
            accel.settle()
        assert run.counts.retired > 0
        assert sorted(ASKED) == sorted(set(ASKED))
