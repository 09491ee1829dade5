"""The oracle of the passes: whatever they make of a graph, executed on a recorded run it makes the program's calls."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from accel.engine.profile import Profile
from accel.graph.first import First
from accel.graph.ir import Graph, Level, Node, Schedule
from accel.graph.passes import PASSES, Pass, only, rewrite, without
from accel.graph.verify import GraphError
from accel.learn.lessons import learn
from accel.parts.methods.methods import METHODS
from accel.tests.interpret import Interpretation, Recorded, interpret, waits_for
from accel.tests.random_programs import (
    ODD_PROGRAMS,
    PROGRAMS,
    STORE_METHODS,
    Add,
    Ask,
    Each,
    Join,
    Program,
    Refine,
    Repeat,
    Search,
    inputs,
    traces,
)
from accel.text.templates import Template
from accel.trace.record import Trace

PROFILES = {"embedding": Profile("embedding", batches=((1, 8, 0.1), (1, 16, 0.2)))}
"""So small batches that additions to a store go in several."""
SHRUNK = settings(phases=set(Phase) - {Phase.explain}, deadline=None)
"""A lesson traced line by line takes long."""
NAMES = [step.__name__ for step in PASSES]
SELECTIONS: dict[str, tuple[Pass, ...]] = {
    **{f"the first {n}": PASSES[:n] for n in range(1, len(PASSES) + 1)},
    **{f"only {name}": only(name) for name in NAMES},
    **{f"without {name}": without(name) for name in NAMES},
    "none at all": only(),
}


@pytest.fixture(scope="module", autouse=True)
def _stores_that_embed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, method in STORE_METHODS.items():
            patch.setitem(METHODS, name, method)
        yield


def learnt(program: Program, runs: int = 3) -> tuple[Graph, list[Trace]]:
    """The p-graph of a program, and the runs it was learnt from with one more."""
    found = traces(program, inputs(runs + 1))
    return learn(found[:runs]), found


def answered(result: Interpretation) -> Counter[Any]:
    return Counter(made.asked for made in result.calls if not made.is_guess)


def differences(p: Interpretation, e: Interpretation) -> list[str]:
    """What an e-graph does otherwise than its p-graph."""
    found = [f"more: {made}" for made in Counter(e.calls) - Counter(p.calls)]
    found += [f"missing: {made}" for made in Counter(p.calls) - Counter(e.calls)]
    found += [f"no stage has it: {made}" for made in e.missed]
    guesses = any(made.is_guess for made in p.calls)
    return found + [f"wasted: {made}" for made in e.wasted if not guesses]


def orders(graph: Graph, chance: random.Random) -> list[str]:
    """The nodes in an order in which none comes before what it waits for; every other time, the program comes late."""
    waits, left, found = waits_for(graph), list(graph.by_name), list[str]()
    late = chance.random() < 0.5
    while left:
        ready = [name for name in left if waits[name] <= set(found)]
        early = [name for name in ready if graph.by_name[name].predictable]
        name = chance.choice(early if late and early else ready)
        left.remove(name)
        found.append(name)
    return found


def shallow(graph: Graph) -> list[str]:
    """What others wait for is deeper than they are, or the most urgent would not be what most depends on; of a loop
    one round."""
    depths = {node.name: node.schedule.depth for node in graph.nodes}
    edges = [(name, consumer) for name, consumers in graph.consumers.items() for consumer in consumers]
    order = list(depths)
    return [
        f"{name} is not above {consumer}"
        for name, consumer in edges
        if depths[name] <= depths[consumer] and order.index(name) < order.index(consumer)
    ]


@SHRUNK
@given(ODD_PROGRAMS)
@example(Program((Ask((0,), "lines"), Add(0), Each(0, (Search(0),)))))
@example(Program((Add(0), Repeat((0,), 3), Refine(0), Search(0))))
def test_every_pass_leaves_the_calls_of_the_program(program: Program) -> None:
    graph, runs = learnt(program)
    expected = [interpret(graph, run) for run in runs]
    for run, result in zip(runs, expected, strict=True):
        asked = Counter(Recorded(run).asked())
        if run is runs[-1]:
            assert answered(result) <= asked, str(graph)  # it may go ways that the others did not
            continue
        assert answered(result) == asked, str(graph)
        assert [made for made in result.calls if made.is_guess and made.sure] == [], str(graph)
    for name, passes in SELECTIONS.items():
        after = rewrite(graph, passes, PROFILES)
        for run, before in zip(runs, expected, strict=True):
            assert differences(before, interpret(after, run)) == [], f"{name}:\n{after}"
    assert shallow(rewrite(graph, profiles=PROFILES)) == []


@SHRUNK
@example(Program((Add(0), Ask((0,), "lines"), Add(0), Search(2), Join(0, "; "))), PASSES, random.Random(1))
@given(PROGRAMS, st.sampled_from([PASSES, only(), *map(only, NAMES)]), st.randoms(use_true_random=False))
def test_the_calls_are_the_same_in_every_order_that_an_e_graph_allows(
    program: Program, passes: tuple[Pass, ...], chance: random.Random
) -> None:
    """A read sees the same writes, too."""
    graph, runs = learnt(program)
    after = rewrite(graph, passes, PROFILES)
    for run in runs[-2:]:
        expected = interpret(graph, run)
        assert differences(expected, interpret(after, run, orders(after, chance))) == [], str(after)


# --- what the interpreter sees ----------------------------------------------------------------------------------------

LISTED = Ask((0,), "numbered")
EVERYTHING = Program(
    (
        LISTED,
        Add(0),
        Each(0, (Ask((0,), "bullets"), Each(0, (Ask((0,)), Search(0))))),
        Each(0, (Search(0),)),
        Join(0, "\n", numbered=True),
        Repeat((0, 1), 2),
        Join(0, "; "),
        Each(0, (Ask((0,)),), together=True),
    )
)


def test_all_kinds_of_pieces_are_made_of_one_program() -> None:
    """Otherwise these tests could not fail."""
    graph, runs = learnt(EVERYTHING)
    after = rewrite(graph, profiles=PROFILES)
    notes = {note.split(" ")[0] for node in after.nodes for note in node.notes}
    assert {"stage", "begins", "takes", "micro-batches", "after", "partial", "depth"} <= notes
    schedules = [node.schedule for node in after.nodes]
    assert any(one.prefills for one in schedules) and any(one.needs_partial for one in schedules)
    assert any(node.dims == 2 for node in after.nodes)
    assert differences(interpret(graph, runs[-1]), interpret(after, runs[-1])) == []


def change(**fields: Any) -> Any:
    """A pass that goes wrong with every node that has something to change: `fields` by what it gives instead."""

    def broken(graph: Graph, profiles: Any) -> Graph:
        def one(node: Node) -> Node:
            wrong = {name: how(node) for name, how in fields.items()}
            return replace(node, **{name: value for name, value in wrong.items() if value is not None})

        return graph.map(one)

    return broken


def scheduled(name: str, how: Callable[[Any], Any], where: Callable[[Node], bool] = lambda node: True) -> Any:
    """A pass that goes wrong with one field of the schedules."""

    def wrong(node: Node) -> Schedule | None:
        return replace(node.schedule, **{name: how(getattr(node.schedule, name))}) if where(node) else None

    return change(schedule=wrong)


def no_repeats(node: Node) -> Level | None:
    return replace(node.level, repeat=1) if node.level is not None and node.level.repeat else None


def fewer(node: Node) -> Level | None:
    return replace(node.level, cap=1) if node.level is not None and node.level.domain is not None else None


def other_words(node: Node) -> Any:
    return {"args": [Template((" ", *node.input["args"][0].parts))], "kwargs": {}} if stage_of_search(node) else None


def stage_of_search(node: Node) -> bool:
    return bool(node.schedule.stage_of) and node.predictable and isinstance(node.input["args"][0], Template)


def no_text(node: Node) -> First | None:
    return replace(node.first, path=("args",)) if node.schedule.pipelined and node.first is not None else None


BROKEN: dict[str, tuple[Any, ...]] = {
    "pmap drops repeats": (change(level=no_repeats),),
    "pmap keeps one element": (change(level=fewer),),
    "stage embeds something else": (*PASSES, change(input=other_words)),
    "stage embeds the first element only": (*PASSES, change(level=lambda n: fewer(n) if n.schedule.stage_of else None)),
    "stage takes texts from elsewhere": (*PASSES, change(first=no_text)),
    "prune keeps no hazard": (*PASSES, scheduled("after", lambda names: ())),
    "prune looks at searches alone": (*PASSES, scheduled("after", lambda names: (), lambda n: n.level is not None)),
    "prefill counts from the end": (*PASSES, scheduled("prefills", lambda cuts: tuple(-cut for cut in cuts))),
    "prefill cuts in literals": (*PASSES, scheduled("prefills", lambda cuts: tuple(cut - 1 for cut in cuts))),
    "prefill goes backwards": (*PASSES, scheduled("prefills", lambda cuts: (*cuts, *cuts))),
    "depth of those that wait": (*PASSES, scheduled("depth", lambda depth: -depth)),
}  # fmt: skip


@pytest.mark.parametrize("passes", BROKEN.values(), ids=BROKEN)
def test_a_broken_pass_is_noticed(passes: tuple[Any, ...]) -> None:
    graph, runs = learnt(EVERYTHING)
    try:
        after = rewrite(graph, passes, PROFILES)
        found = differences(interpret(graph, runs[0]), interpret(after, runs[0]))
        for seed in range(20):
            order = orders(after, random.Random(seed))
            found += differences(interpret(graph, runs[0]), interpret(after, runs[0], order))
        found += shallow(after) if any(node.schedule.depth for node in after.nodes) else []
    except GraphError as error:
        found = [str(error)]
    assert found
