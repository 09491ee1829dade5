"""What is learnt of some runs, asked about another one: whatever the program's code does, its next calls are known.

Nothing here looks at how a lesson is written down; `accel.tests.interpret` executes it on the run that it has not seen.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from accel.graph.ir import Graph
from accel.learn.check import judge
from accel.learn.lessons import extend, learn
from accel.tests.interpret import Made, Recorded, interpret
from accel.tests.random_programs import PLAIN_PROGRAMS, Host, Program, inputs, items_of, traces, words
from accel.trace.record import Trace

SHRUNK = settings(phases=set(Phase) - {Phase.explain}, deadline=None)
Run = Callable[[Host], Any]


def left_over(graph: Graph, run: Trace) -> list[str]:
    """What the graph does not know for sure of a run: calls it leaves to the program, though they may be made early,
    and calls it makes that the program doesn't."""
    result = interpret(graph, run)
    assert Counter(made.asked for made in result.calls if not made.is_guess) <= Counter(Recorded(run).asked())
    return [f"{made.node}[{made.position}]: {made.asked.input}" for made in result.calls if is_open(graph, made)]


def is_open(graph: Graph, made: Made) -> bool:
    node = graph.by_name[made.node]
    return made.is_guess or (node.op.issuable and not (made.sure and node.evidence.confidence == "verified"))


def foreseen(program: Run, values: Sequence[Any]) -> None:
    """Fail unless the calls of the run with the last of these inputs are known from the others."""
    runs = traces(program, values)
    graph = learn(runs[:-1])
    asked = len(Recorded(runs[-1]).asked())
    assert left_over(graph, runs[-1]) == [], f"{graph}\n{asked} calls"
    assert len(interpret(graph, runs[-1]).calls) == asked, str(graph)


# --- programs ---------------------------------------------------------------------------------------------------------


@SHRUNK
@given(PLAIN_PROGRAMS, st.integers(2, 3), st.randoms(use_true_random=False))
def test_what_a_program_does_in_every_run_is_known_from_two(program: Program, seen: int, chance: Any) -> None:
    values = inputs(seen + 1)
    chance.shuffle(values)
    runs = traces(program, values)
    graph = learn(runs[:-1])
    assert left_over(graph, runs[-1]) == [], str(graph)
    judged = judge(graph, runs[-1])
    assert judged.complete
    top = [call for call in runs[-1].calls if call.parent is None and call.op != "ingestion"]
    assert sum(judged.made.values()) == len(top)


@SHRUNK
@given(PLAIN_PROGRAMS)
def test_one_run_proves_nothing_nor_does_another_about_the_same(program: Program) -> None:
    value = inputs(1)[0]
    for values in ([value], [value, value], [{**value, "id": "a7"}, {**value, "id": "b8 2024-01-01"}]):
        graph = learn(traces(program, values))
        assert all(node.evidence.confidence != "verified" for node in graph.nodes)


# --- templates --------------------------------------------------------------------------------------------------------

LITERALS = st.text(st.sampled_from("abcXYZ019 .,:;#-*()[]{}<>%\"'\\\n\té—\U0001f600"), max_size=16)
PASTED = st.text(st.sampled_from("efghUVW .,-'\"\\éß\U0001f680"), min_size=8, max_size=40).filter(
    lambda text: text == text.strip() and len(set(text)) > 4 and "\\" not in (text[0], text[-1])
)
"""Beside a backslash of the template, one that begins or ends with another is also what JSON makes of it."""
FIELDS = ("one", "two", "three")
HOLES = st.sampled_from([*FIELDS, "answer", "found", "items"])
TEMPLATES = st.lists(st.tuples(LITERALS, HOLES), min_size=1, max_size=4)


@st.composite
def different(draw: st.DrawFn, count: int) -> list[str]:
    """Texts none of which is in another one."""
    found = draw(st.lists(PASTED, min_size=count, max_size=count, unique=True))
    assume(not any(one in other for one, other in itertools.permutations(found, 2)))
    return found


def filled(parts: Sequence[tuple[str, str]], end: str, known: dict[str, str]) -> str:
    return "".join(f"{literal}{known[hole]}" for literal, hole in parts) + end


@SHRUNK
@given(TEMPLATES, LITERALS, different(3 * 6), st.booleans())
def test_a_template_is_recovered_from_two_fillings(
    parts: list[tuple[str, str]], end: str, texts: list[str], as_list: bool
) -> None:
    """Whatever its literals and values look like, as long as these are long enough and differ."""
    values = [dict(zip((*FIELDS, "answer", "found", "items"), texts[n : n + 6], strict=True)) for n in (0, 6, 12)]

    def program(host: Host) -> None:
        known = host.trace.input["all"]
        host.ask("first", f"Begin with {host.trace.input['one']}", known["answer"])
        host.find("store", host.trace.input["one"], [known["found"]])
        text = filled(parts, end, known)
        host.ask("then", {"messages": [{"content": text}], "n": 3} if as_list else text, "fine")

    runs = []
    for value in values:
        given = {name: value[name] for name in FIELDS} | {"list": ["first of all", value["items"]]}
        host = Host(given)
        host.trace.input["all"] = value
        program(host)
        del host.trace.input["all"]
        runs.append(host.done())
    graph = learn(runs[:-1])
    assert left_over(graph, runs[-1]) == [], str(graph)


SHORT = st.text(st.sampled_from("efgh234"), min_size=1, max_size=6)
WORDS = st.text(st.sampled_from("abcd .,:\n"), max_size=12)


@SHRUNK
@given(WORDS, WORDS, st.lists(SHORT, min_size=3, max_size=3, unique=True))
def test_a_short_value_is_told_from_literals_by_another_run(before: str, after: str, values: list[str]) -> None:
    def program(host: Host) -> None:
        host.ask("site", f"{before} {host.trace.input['q']} {after}", "fine")

    given = [{"q": value, "about": words(("about", n), 3)} for n, value in enumerate(values)]
    runs = traces(program, given)
    assert learn(runs[:1]).nodes[-1].evidence.confidence != "verified"
    assert left_over(learn(runs[:-1]), runs[-1]) == []


# --- ways to handle a value -------------------------------------------------------------------------------------------

PARAGRAPH = "{0}. Then, as they say, {1}!\nAnd after that {2}; the rest is {3}.\n\nLast: {4}"


def paragraph(seed: object) -> str:
    return PARAGRAPH.format(*(words((seed, n), 4) for n in range(5)))


WAYS: dict[str, Callable[[str], str]] = {
    "whole": lambda text: text,
    "stripped": lambda text: text.strip(),
    "as json": lambda text: json.dumps({"text": text}),
    "as a list": lambda text: str([text]),
    "sixty characters": lambda text: text[:60],
    "first line": lambda text: text.split("\n")[0],
    "first sentence": lambda text: text.split(". ")[0],
    "lines": lambda text: " / ".join(line for line in text.split("\n") if line),
    "upper": lambda text: text.upper(),
    "title": lambda text: text.title(),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("source", ["input", "answer", "store"])
def test_ways_to_handle_a_text(name: str, source: str) -> None:
    if name == "lines":
        source = "answer"  # nobody looks for lists in other texts
    way = WAYS[name]

    def program(host: Host) -> None:
        text = host.trace.input["text"]
        if source == "answer":
            text = host.ask("a", f"Write on {text}", paragraph(text))
        elif source == "store":
            (text,) = host.find("s", f"look for {text}", [paragraph(text)])
        host.ask("b", f"Work with this: {way(text)} -- now!", "fine")

    foreseen(program, [{"text": paragraph(n) if source == "input" else words(n, 3)} for n in range(3)])


# --- loops ------------------------------------------------------------------------------------------------------------


@st.composite
def lists(draw: st.DrawFn, least: int = 1) -> list[list[str]]:
    """A list for each of three runs, none as long as another."""
    lengths = draw(st.permutations(range(least, least + 3)))
    return [[words(("item", run, n), 3) for n in range(length)] for run, length in enumerate(lengths)]


@SHRUNK
@given(lists(), st.randoms(use_true_random=False), st.booleans())
def test_calls_made_side_by_side_are_one_node_in_whatever_order_they_end(
    found: list[list[str]], chance: Any, joined: bool
) -> None:
    def program(host: Host) -> None:
        calls = [host.begin("each", f"Tell of {item}, please") for item in host.trace.input["items"]]
        for call in chance.sample(calls, len(calls)):
            host.end(call)
        told = [call.output["content"] for call in calls]
        if joined:
            host.ask("sum", "All of it: " + "; ".join(told), "fine")

    foreseen(program, [{"items": items} for items in found])


@SHRUNK
@given(lists(4), st.integers(1, 3))
def test_a_loop_that_stops_after_so_many_stops_there_with_a_longer_list(found: list[list[str]], first: int) -> None:
    def program(host: Host) -> None:
        for item in host.trace.input["items"][:first]:
            host.ask("each", f"Tell of {item}, please", "fine")

    foreseen(program, [{"items": items} for items in found])


@SHRUNK
@given(lists(2))
def test_no_node_has_more_elements_than_a_run_had(found: list[list[str]]) -> None:
    def program(host: Host) -> None:
        for item in host.trace.input["items"]:
            host.ask("each", f"Tell of {item}, please", "fine")

    levels = [node.level for node in learn(traces(program, [{"items": items} for items in found])).nodes if node.level]
    assert [level.seen for level in levels] == [max(map(len, found))]


@SHRUNK
@given(lists(2), st.integers(2, 3))
def test_equal_items_that_a_program_drops_are_dropped(found: list[list[str]], times: int) -> None:
    def program(host: Host) -> None:
        said = host.ask("list", f"Parts of {host.trace.input['q']}", "\n".join(host.trace.input["hidden"]))
        for item in dict.fromkeys(said.split("\n")):
            host.ask("each", f"Tell of {item}, please", "fine")

    runs = []
    for number, items in enumerate(found):
        host = Host({"q": words(("q", number), 3), "hidden": items * times})
        program(host)
        del host.trace.input["hidden"]
        runs.append(host.done())
    assert left_over(learn(runs[:-1]), runs[-1]) == []


@SHRUNK
@given(st.integers(2, 4), st.integers(2, 3))
def test_rounds_that_hold_what_came_before_are_known(rounds: int, seen: int) -> None:
    def program(host: Host) -> None:
        history = [{"content": f"Talk about {host.trace.input['q']}."}]
        for _ in range(rounds):
            said = host.ask("talk", {"messages": list(history)})
            history += [{"content": said}, {"content": "Go on."}]
        notes = host.ask("note", f"Notes on {host.trace.input['q']}")
        for number in range(rounds):
            notes = host.ask("again", f"Make it {number + 2} times better: {notes}")

    foreseen(program, [{"q": words(n, 4)} for n in range(seen + 1)])


@SHRUNK
@given(st.integers(2, 4), st.integers(3, 5))
def test_the_rest_of_a_loop_is_known_after_two_rounds_of_a_first_run(done: int, more: int) -> None:
    def program(host: Host) -> None:
        for item in host.trace.input["items"]:
            host.ask("each", f"Tell of {item} on behalf of {host.trace.input['q']}, please")

    (run,) = traces(program, [{"q": words("q", 3), "items": [words(n, 3) for n in range(done + more)]}])
    so_far = Trace(run.input, run.calls[:done])
    graph = extend(Graph(), so_far, "each")
    made = interpret(graph, run).calls
    assert [graph.by_name[one.node].evidence.confidence for one in made] == ["looped"] * (done + more)
    assert Counter(one.asked for one in made) == Counter(Recorded(run).asked())


def test_one_round_of_a_first_run_is_no_loop() -> None:
    def program(host: Host) -> None:
        host.ask("each", f"Tell of {host.trace.input['items'][0]}, please")

    (run,) = traces(program, [{"items": [words(n, 3) for n in range(3)]}])
    known = Graph()
    graph = extend(known, Trace(run.input, run.calls), "each")
    assert all(node.evidence.confidence in ("opaque", "seen") for node in graph.nodes)


# --- joins ------------------------------------------------------------------------------------------------------------

SEPARATORS = st.text(st.sampled_from(" \n,;|-*/"), min_size=1, max_size=5)


@SHRUNK
@given(lists(2), SEPARATORS, st.sampled_from(("list", "answer", "answers")), LITERALS, LITERALS)
def test_lists_pasted_into_a_text(found: list[list[str]], sep: str, source: str, before: str, after: str) -> None:
    def program(host: Host) -> None:
        items = host.trace.input.pop("hidden") if source != "list" else host.trace.input["items"]
        if source == "answer":
            # A mark that no literal has: "- one" may be a line of the answer, or an item after a literal.
            said = host.ask("list", f"Parts of {host.trace.input['q']}", "\n".join(f"• {item}" for item in items))
            items = [line.removeprefix("• ") for line in said.split("\n")]
        elif source == "answers":
            said = items_of(host.ask("list", f"Parts of {host.trace.input['q']}", "\n".join(items)))
            items = [host.ask("each", f"Tell of {item}, please", words(("told", item), 5)) for item in said]
        host.ask("sum", f"{before}{sep.join(items)}{after}", "fine")

    name = "items" if source == "list" else "hidden"
    foreseen(program, [{"q": words(("q", n), 3), name: items} for n, items in enumerate(found)])


@SHRUNK
@given(lists(2), st.sampled_from(("{n}. {item}", "[{n}] {item}", "{n}) {item}: {told}", "{item} ({told})", "# {told}")))
def test_rows_of_values_and_numbers(found: list[list[str]], row: str) -> None:
    def program(host: Host) -> None:
        items = host.trace.input["items"]
        told = [host.ask("each", f"Tell of {item}, please") for item in items]
        rows = [row.format(n=n, item=i, told=t) for n, (i, t) in enumerate(zip(items, told, strict=True), 1)]
        host.ask("sum", "Sum up:\n" + "\n".join(rows) + "\nNow.", "fine")

    foreseen(program, [{"items": items} for items in found])


# --- decisions --------------------------------------------------------------------------------------------------------

ROUTES = ("billing", "refunds", "other")
SAY: dict[str, Callable[[str], str]] = {
    "plain": lambda route: route,
    "with a dot": lambda route: f"{route.title()}.",
    "json": lambda route: json.dumps({"route": route, "why": words(("why", route), 3)}),
    "a sentence": lambda route: f"{route} because {words(('why', route), 3)}",
}


@SHRUNK
@given(
    st.sampled_from(sorted(SAY)), st.sets(st.sampled_from(ROUTES), min_size=1, max_size=2),
    st.lists(st.sampled_from(ROUTES), min_size=3, max_size=6), st.sampled_from(ROUTES),
)  # fmt: skip
def test_a_route_that_was_taken_twice_either_way_is_known(
    how: str, taken: set[str], more: list[str], last: str
) -> None:
    """Each route of the last run was seen in two runs, so it is known for sure whether the call is made."""
    routes = [*ROUTES, *ROUTES, *more, last]

    def program(host: Host) -> None:
        route = host.trace.input.pop("hidden")
        host.ask("route", f"Where does this go: {host.trace.input['q']}", SAY[how](route))
        if route in taken:
            host.ask("act", f"Act on {host.trace.input['q']}", "fine")
        host.ask("end", f"Say goodbye to {host.trace.input['q']}", "fine")

    foreseen(program, [{"q": words(("q", n), 4), "hidden": route} for n, route in enumerate(routes)])


@SHRUNK
@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=4), min_size=2, max_size=4), st.data())
def test_elements_that_a_grade_lets_pass(grades: list[list[bool]], data: st.DataObject) -> None:
    """Two runs with both grades come first."""
    last = data.draw(st.lists(st.booleans(), min_size=1, max_size=4))
    every = [[True, False, True], [False, True], *grades, last]

    def program(host: Host) -> None:
        passed = []
        said = host.trace.input.pop("hidden")
        for item, good in zip(host.trace.input["items"], said, strict=True):
            if host.ask("grade", f"Is {item} any good?", "yes" if good else "no") == "yes":
                passed.append(item)
        for item in passed:
            host.ask("use", f"Make use of {item} now", "fine")

    values = [
        {"items": [words(("item", n, i), 3) for i in range(len(said))], "hidden": said} for n, said in enumerate(every)
    ]
    foreseen(program, values)
