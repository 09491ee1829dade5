"""What was found in a store, read or answered is no part of a lesson, whatever became of it (invariant 10)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accel.graph.ir import Graph
from accel.learn.lessons import learn
from accel.tests.random_programs import Host, traces, words
from accel.tests.test_learner_foresees import WAYS, paragraph

SECRET = "the medical record of Mr Smith of Leeds. He sleeps badly, and says so.\nHe will be back on Monday"
EDITS: dict[str, Callable[[str], str]] = {
    **WAYS,
    "lower": lambda text: text.lower(),
    "second line": lambda text: text.split("\n")[1],
    "middle": lambda text: text[12:58],
    "quoted lines": lambda text: "\n".join(f"> {line}" for line in text.split("\n")),
    "in a heading": lambda text: f"### {text.split('.')[0]} ###",
}


def tells(graph: Graph, secret: str) -> list[str]:
    """Three words in a row of a secret that stand in a graph."""
    shown = str(graph).casefold()
    every = secret.casefold().replace("\n", " ").split()
    return [three for n in range(len(every) - 2) if (three := " ".join(every[n : n + 3])) in shown]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("source", ["answer", "store", "read"])
@pytest.mark.parametrize("runs", [2, 3])
def test_what_was_found_or_answered_is_no_literal_in_whatever_shape(
    edit: Callable[[str], str], source: str, runs: int
) -> None:
    """All runs, with different inputs, happen upon the same text of somebody's, at different places."""

    def program(host: Host) -> None:
        q = host.trace.input["q"]
        number = host.trace.input.pop("hidden")
        if source == "answer":
            host.ask("a", f"Write on {q}", SECRET)
        elif source == "store":
            others = [paragraph((q, n)) for n in range(2)]
            host.find("s", f"look for {q}", [*others[:number], SECRET, *others[number:]])
        else:
            host.trace.read(SECRET)
        host.ask("b", f"Work with {q} and {edit(SECRET)} -- now!", "fine")

    graph = learn(traces(program, [{"q": words(n, 3), "hidden": n % 3} for n in range(runs)]))
    assert tells(graph, SECRET) == [], str(graph)


def test_what_an_answer_repeats_of_its_question_is_the_program_s() -> None:
    def program(host: Host) -> None:
        host.ask("a", f"Name three of the oldest things in {host.trace.input['q']}", "Three of the oldest things: a")
        host.ask("b", f"Why are three of the oldest things so old in {host.trace.input['q']}?", "fine")

    first, second = (node for node in learn(traces(program, [{"q": words(n, 3)} for n in range(2)])).nodes if node.site)
    assert first.evidence.confidence == second.evidence.confidence == "verified"


ITEMS = ("tides", "moss", "granite", "lichen", "ferries", "peat")


def asks_about_items(host: Host) -> None:
    for item in host.trace.input.pop("hidden"):
        host.ask("a", f"A note on {item}", "fine")


def literal_calls(*runs: str) -> list[str]:
    """What is asked early in any run that comes, after runs that asked about these items."""
    made = traces(asks_about_items, [{"q": words(n, 3), "hidden": items.split()} for n, items in enumerate(runs)])
    return [str(node.input) for node in learn(made).nodes if node.site and node.predictable]


@pytest.mark.parametrize(
    "runs",
    [
        ("tides moss granite", "lichen tides peat"),
        ("tides moss", "tides peat", "granite lichen"),
        ("tides moss", "lichen", "tides ferries peat"),
    ],
    ids=["at another place", "not in all runs", "not in all runs of other lengths"],
)
def test_an_item_that_some_runs_happen_to_share_is_no_literal(runs: tuple[str, ...]) -> None:
    assert literal_calls(*runs) == []


def test_what_every_run_asks_at_the_same_place_is_the_programs() -> None:
    assert literal_calls("tides moss", "tides peat", "tides granite") == ["A note on tides"]
    assert literal_calls("tides moss", "tides moss") == ["A note on tides", "A note on moss"]
