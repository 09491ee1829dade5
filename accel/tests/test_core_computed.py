"""What programs compute from values, learnt by example."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from accel.graph.ir import Graph
from accel.learn.computing.computed import TABLES
from accel.learn.computing.tried import Known
from accel.learn.covers.readings import without
from accel.learn.lessons import lesson
from accel.tests.test_core_learn import Script, Words, shown
from accel.text.functions import FUNCTIONS, ORDERS

TOWNS = ("Aberdeen in the north", "Bordeaux by the river", "Cartagena of old", "Dubrovnik on the sea")
VOTES = dict(zip(TOWNS, ("good good bad", "fair bad bad", "fair good fair", "bad fair fair"), strict=True))
SCORES = dict(zip(TOWNS, ((3, 9, 4), (8, 1, 5), (2, 2, 7), (6, 9, 2)), strict=True))
ANIMALS = "lynx mole newt otter puma quail robin swan toad urchin viper wren".split()
Program = Callable[[Script, str], None]


def learnt(program: Program, says: Iterable[str] = (), towns: Iterable[str] = TOWNS, **options: Any) -> Graph:
    traces = []
    for town in towns:
        script = Script({"q": town})
        program(script, town)
        traces.append(script.done())
    return lesson(traces, Words(says), **options).graph


def last(program: Program, says: Iterable[str] = (), **options: Any) -> str:
    return shown(learnt(program, says, **options))[-1]


def poll(script: Script, town: str) -> list[str]:
    return [script.call("poll", f"What do you think of {town}?", vote) for vote in VOTES[town].split()]


def majority(script: Script, town: str) -> None:
    (most, times), *_ = Counter(poll(script, town)).most_common()
    script.call("report", f"People call {town} {most}. Why?", "because")


def test_what_most_answers_are() -> None:
    assert last(majority) == ": People call {input.q} {main.decode|each .content|majority}. Why?"


def test_two_runs_are_too_few() -> None:
    graph = learnt(majority, towns=TOWNS[:2])
    assert shown(graph)[-1] == "? its input holds text that no known value explains"


def test_each_function_can_be_switched_off() -> None:
    assert last(majority, readings=without("majority")).startswith("?")


def test_a_run_that_the_function_does_not_explain_refutes_it() -> None:
    def program(script: Script, town: str) -> None:
        votes = poll(script, town)
        most = votes[0] if town == TOWNS[3] else Counter(votes).most_common(1)[0][0]
        script.call("report", f"People call {town} {most}. Why?", "because")

    graph = learnt(program)
    assert graph.by_site["report"][0].evidence.always is False or not graph.by_site["report"][0].predictable


def test_sums_and_means_of_what_answers_hold() -> None:
    def program(script: Script, town: str) -> None:
        sights = [f"the {part} of {town}" for part in ("gate", "harbour", "market")]
        script.call("list", f"Sights of {town}", "\n".join(f"- {sight}" for sight in sights))
        answers = [
            script.call("score", f"Score {sight}", json.dumps({"score": score}))
            for sight, score in zip(sights, SCORES[town], strict=True)
        ]
        scores = [json.loads(answer)["score"] for answer in answers]
        script.call("sum", f"{town} has {sum(scores)} points, {sum(scores) / len(scores):.2f} each.", "fine")

    each = "{main.decode.2|each .content|json.score|"
    assert last(program, [".2f"]) == f': {{input.q}} has {each}sum}} points, {each}mean|format(".2f")}} each.'


def test_a_list_in_another_order() -> None:
    def program(script: Script, town: str) -> None:
        found = [{"text": f"{town}, page {n}", "score": score} for n, score in enumerate(SCORES[town])]
        script.call("search", {"query": town}, found, op="searching")
        best = sorted(found, key=lambda page: -page["score"])[:2]
        script.call("answer", "Answer from:\n" + "\n".join(page["text"] for page in best), "fine")

    assert last(program) == ": Answer from:\\n{join[:2] main.searching|ranked(\"score\", 1)[*].text by '\\n'}"


def test_a_pattern_of_the_program_finds_the_elements_of_a_loop() -> None:
    pattern = r"DO\((\w+)\) (.+?) END"

    def program(script: Script, town: str) -> None:
        plan = "".join(f"DO(s{n}) walk {n} miles in {town} END " for n in SCORES[town])
        answer = script.call("plan", f"Plan a day in {town}", plan)
        for _, step in re.findall(pattern, answer):
            script.call("step", f"Tell me how to {step} and back", "so")

    head, tree = shown(learnt(program, [pattern]))[-2:]
    assert tree == f": Tell me how to {{main.decode.content|re.findall({json.dumps(pattern)}, 0)[*][1]}} and back"
    assert "verified" in head
    assert shown(learnt(program, ["of another program"]))[-1].startswith("?"), "nobody says that the program has it"


def test_a_mark_that_a_prompt_names() -> None:
    def program(script: Script, town: str) -> None:
        item = script.call("plan", f"Plan for {town}", f"Look up trams at {town[::-1]} given #E1")
        found = script.call("ask", f"Where is {town}?", f"{len(town)} miles from {town[:3]}{town[-3:]}")
        script.call("step", item.replace("#E1", found), "so")

    says = ["Results are called #E1 and so on."]
    assert last(program, says) == ': {main.decode.content|before("#E1")}{main.decode.2.content}'


def test_days_from_a_day() -> None:
    def program(script: Script, day: str) -> None:
        before = datetime.strptime(day, "%Y-%m-%d") - timedelta(days=7)
        script.call("news", f"News from {before:%d %B %Y} on", "none")

    days = ("2024-03-01", "2023-12-30", "2025-01-09")
    graph = lesson([_asked(program, day) for day in days], Words(["7", "%d %B %Y", "News from"])).graph
    assert shown(graph)[-1] == ': News from {input.q|day("%Y-%m-%d", -7, "%d %B %Y")} on'


def _asked(program: Program, day: str) -> Any:
    script = Script({"q": day, "town": f"town of {day}"})
    program(script, day)
    return script.done()


def test_what_a_plain_value_explains_is_not_computed() -> None:
    """The first vote is the majority in all of these runs."""

    def program(script: Script, town: str) -> None:
        vote, *_ = [script.call("poll", f"What do you think of {town}?", answer) for answer in _twice(town)]
        script.call("report", f"People call {town} {vote}. Why?", "because")

    assert last(program) == ": People call {input.q} {main.decode[0].content}. Why?"


def _twice(town: str) -> list[str]:
    votes = VOTES[town].split()
    return [votes[0], votes[1], votes[0]]


def test_a_number_beside_one_of_the_programs_decides() -> None:
    scores = dict(zip((*TOWNS, "Essen west", "Faro east"), (0.9, 0.2, 0.7, 0.1, 0.6, 0.3), strict=True))

    def program(script: Script, town: str) -> None:
        script.call("judge", f"Judge {town}", json.dumps({"score": scores[town]}))
        script.call("good" if scores[town] > 0.5 else "bad", f"Go on with {town}", "so")

    graph = learnt(program, ["0.5", "Judge"], scores)
    good, bad = graph.by_site["good"][0], graph.by_site["bad"][0]
    assert str(good.when[0]) == "{main.decode.content|json.score|above(0.5)|verdict} is True"
    assert str(bad.when[0]) == "{main.decode.content|json.score|above(0.5)|verdict} is False"
    assert good.evidence.confidence == bad.evidence.confidence == "verified"
    assert not learnt(program, ["Judge"], scores).by_site["good"][0].when, "the program has no such number"


def test_a_word_decides_before_a_number_does() -> None:
    def program(script: Script, town: str) -> None:
        kind = "coast" if town in TOWNS[:2] else "inland"
        script.call("judge", f"Judge {town}", json.dumps({"kind": kind, "score": SCORES[town][0]}))
        if kind == "coast":
            script.call("swim", f"Swim in {town}", "so")

    graph = learnt(program, ["5", "2", "3"])
    assert str(graph.by_site["swim"][0].when[0]) == "{main.decode.content|json.kind|verdict} is coast"


def test_every_function_has_a_reading_of_its_name() -> None:
    assert without(*FUNCTIONS)


TONES = {"coast": "as salty as the sea", "river": "as calm as a river", "old": "in words of long ago"}


def test_what_a_dict_of_the_program_has_for_an_answer() -> None:
    kinds = dict(zip(TOWNS, ("Coast.", "river", "Old", "river"), strict=True))

    def program(script: Script, town: str) -> None:
        kind = script.call("judge", f"Which kind of place is {town}?", kinds[town])
        script.call("tell", f"Tell of {town}, {TONES[kind.strip('.').lower()]}.", "so")

    traces = [_asked(program, town) for town in TOWNS]
    *_, tree = shown(lesson(traces, Words((), TONES)).graph)
    items = ", ".join(json.dumps(part) for item in TONES.items() for part in item)
    assert tree == f': Tell of {{input.q}}, {{main.decode.content|look up("said", {items})}}.'
    assert shown(lesson(traces, Words(())).graph)[-1].startswith("?"), "nobody says that the program has it"


def test_no_function_is_tried_for_words_of_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It chooses among them; and thousands of functions take a second."""
    tried: list[str] = []

    def noted(known: Known, constants: Any, names: Sequence[str]) -> Any:
        tried.extend(set(names) - {*TABLES, *ORDERS})
        return all_ways(known, constants, names)

    all_ways = Known.all_ways
    monkeypatch.setattr(Known, "all_ways", noted)
    said = "as salty as the sea", "as calm as a river", "in words of long ago", "as loud as can be"
    tones = dict(zip(TOWNS, said, strict=True))

    def program(script: Script, town: str) -> None:
        script.call("tell", f"Tell of {town}, {tones[town]}.", "so")

    traces = [_asked(program, town) for town in TOWNS]
    lesson(traces, Words((*said, "Tell of", ".")))
    assert not tried
    lesson(traces, Words(("Tell of", ".")))
    assert tried, "whoever else said it, may have worked it out"


def test_the_last_ones_of_a_list_are_looked_for_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chat with its last messages: all of them are known, and to try all functions on all takes seconds."""
    tried: list[str] = []

    def noted(known: Known, constants: Any, names: Sequence[str]) -> Any:
        tried.extend(set(names) - {*TABLES, *ORDERS})
        return all_ways(known, constants, names)

    all_ways = Known.all_ways
    monkeypatch.setattr(Known, "all_ways", noted)
    traces = []
    for number, town in enumerate(TOWNS, 2):
        talk = [{"who": ("user", "model")[k % 2], "said": f"{town} has {k} of {number + 3 * k}"} for k in range(number)]
        script = Script({"q": town, "talk": talk})
        lines = "\n".join(f"{each['who']}: {each['said']}" for each in talk[-2:])
        script.call("tell", f"Talk:\n{lines}\nTell of {town}.", "so")
        traces.append(script.done())
    tree = shown(lesson(traces, Words(("Talk:", ": ", "Tell of", ".", "2"))).graph)[-1]
    assert "{input.talk|last ones(2)" in tree
    assert not tried


def test_what_a_dict_has_for_each_of_a_list() -> None:
    asked = dict(zip(TOWNS, (("old", "coast"), ("river",), ("coast", "river", "old"), ("river", "old")), strict=True))

    def program(script: Script, town: str) -> None:
        found = [{"kind": kind} for kind in asked[town]]
        script.call("search", {"query": town}, found, op="searching")
        for one in found:
            script.call("tell", f"Tell of {town}, {TONES[one['kind']]}.", "so")

    head, tree = shown(lesson([_asked(program, town) for town in TOWNS], Words((), TONES)).graph)[-2:]
    assert "{main.searching[*].kind|look up(" in tree and "for {main.searching[*]" in head


def test_of_thousands_of_ways_to_a_digit_one_that_fits_three_runs_is_chance() -> None:
    rows = "ox elk, ant bee cow dog", "fox, hen", "gnu yak, owl rat eel cod"

    def last_of(numbers: tuple[int, ...], others: int) -> str:
        traces = []
        for town, row, number in zip(TOWNS, rows, numbers, strict=False):
            notes = [f"{animal}, {town}: {row} {at}; {row}" for at, animal in enumerate(ANIMALS[:others])]
            script = Script({"q": town, "row": row, "notes": notes})
            script.call("report", f"Take {number} of these in {town}: {row}", "done")
            traces.append(script.done())
        return shown(lesson(traces, Words(("; ", ", ", ": "))).graph)[-1]

    assert "word count" in last_of((2, 1, 2), others=0), "few were tried"
    assert last_of((2, 1, 2), others=12).startswith("?")


def test_where_the_program_breaks_a_tie_its_own_word_comes_before_the_one_vote_that_was_the_same() -> None:
    """Nothing says what it makes of a tie, but its framework node hands on which it took."""
    votes = ("good bad bad good", "fair bad fair fair", "good fair good good", "bad good bad bad")
    traces = []
    for town, said in zip(TOWNS, votes, strict=True):
        script = Script({"q": town})
        for number, vote in enumerate(said.split()):
            script.call(f"juror {number}", f"Juror {number}, what of {town}?", vote)
        visit = script.trace.enter("count", {})
        script.trace.leave(visit, {"outcome": said.split()[0]})
        script.call("report", f"They call {town} {said.split()[0]} in the end.", "done")
        traces.append(script.done())
    assert shown(lesson(traces, Words(())).graph)[-1] == ": They call {input.q} {count.out.outcome} in the end."
