"""Values of several calls as one list: functions go over the answers of calls that are no loop."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.graph.ir import Evidence, Node
from accel.graph.ops import OPS
from accel.graph.predict import predict
from accel.learn.covers.readings import without
from accel.run.foresight.outlook import Outlook
from accel.tests.interpret import interpret
from accel.tests.test_core_computed import SCORES, TOWNS, VOTES, last, learnt
from accel.tests.test_core_learn import Script, shown
from accel.text.evaluate import Env
from accel.text.extract import Open, Partial
from accel.text.paths import UNKNOWN, has_gap
from accel.text.steps import STAR
from accel.text.templates import Collect, Ref, Whole
from accel.text.values import Tree

WHO = ("a poet who pities everybody", "a clerk who has read all laws", "a cook who wants to go home")


def jury(script: Script, town: str) -> None:
    """One line, and a text for each juror."""
    asked = zip(WHO, VOTES[town].split(), strict=True)
    votes = [script.call("poll", f"You are {who}. Judge {town}.", vote.title()) for who, vote in asked]
    (most, times), *_ = Counter(vote.lower() for vote in votes).most_common()
    script.call("report", f"People call {town} {most}. Why?", "because")


def test_what_most_of_unrolled_calls_say() -> None:
    head, tree = shown(learnt(jury))[-2:]
    assert tree == ": People call {input.q} {main.aggregate|each .content|lower|majority}. Why?" and "verified" in head


def test_it_can_be_switched_off() -> None:
    assert last(jury, readings=without("gathered")).startswith("?")


def test_scores_of_several_sites_that_ask_about_the_same() -> None:
    pattern = r"(\d+) points"

    def program(script: Script, town: str) -> None:
        scores = []
        for part, score in zip(("food", "streets", "people"), SCORES[town], strict=True):
            answer = script.call(f"judge {part}", f"Score the {part} of {town}", f"It gets {score} points from me.")
            scores.append(int(re.search(pattern, answer)[1]))
        script.call("plan", f"Plan for {town}", "a long walk")
        mean = sum(scores) / len(scores)
        script.call("report", f"{town} has {mean:.2f} of 9 points, {sum(scores)} in all.", "fine")

    each = f"{{main.aggregate|each .content|re.search({json.dumps(pattern)}, 1, 0)|"
    assert last(program, [".2f", pattern]) == (
        f': {{input.q}} has {each}mean|format(".2f")}} of 9 points, {each}sum}} in all.'
    )


def test_what_two_calls_say_of_each_element() -> None:
    def program(script: Script, town: str) -> None:
        sights = [f"the {part} of {town}" for part in ("gate", "harbour", "market")]
        script.call("list", f"Sights of {town}", "\n".join(f"- {sight}" for sight in sights))
        for sight, score in zip(sights, SCORES[town], strict=True):
            both = [
                script.call(f"score {how}", f"Score {how} {sight}", str(score * k)) for k, how in enumerate("ab", 2)
            ]
            script.call("tell", f"Tell why {sight} has {sum(map(int, both)) / 2:.1f}.", "so")

    assert last(program, [".1f"]) == (
        ": Tell why {main.decode.content|bullets[*]} has {main.aggregate[*]|each .content|mean}."
    )


def test_the_first_answer_and_those_of_a_loop() -> None:
    """One that is asked by itself, then one for each item of what it said."""

    def program(script: Script, town: str) -> None:
        first, *others = SCORES[town]
        parts = [f"the {part} of {town}" for part in ("gate", "harbour")]
        rows = "\n".join(f"- {part}" for part in parts)
        answers = [script.call("score", f"Score {town}", json.dumps({"score": first, "parts": parts}))]
        script.call("list", f"Parts of {town}", rows)
        answers += [
            script.call("score", f"Score {part}", json.dumps({"score": score, "parts": []}))
            for part, score in zip(parts, others, strict=True)
        ]
        script.call("sum", f"{town} has {sum(json.loads(answer)['score'] for answer in answers)} points.", "fine")

    assert last(program) == ": {input.q} has {main.aggregate|each .content|json.score|sum} points."


def test_calls_that_are_not_made_in_one_order_are_no_list() -> None:
    def program(script: Script, town: str) -> None:
        votes = VOTES[town].split()
        order = (0, 1, 2) if town == TOWNS[0] else (2, 1, 0)
        said = {n: script.call(f"poll {n}", f"Ask the {WHO[n]} of {town}", votes[n]) for n in order}
        (most, times), *_ = Counter(said.values()).most_common()
        script.call("report", f"People call {town} {most}. Why?", "because")

    assert not any(node.gathers for node in learnt(program).nodes)


@pytest.mark.parametrize("answers", ["fair bad bad", "good bad good", "bad bad good"])
def test_a_run_that_no_lesson_has_seen_is_foretold(answers: str) -> None:
    graph = learnt(jury)
    script = Script({"q": "Essen in the west"})
    VOTES["Essen in the west"] = answers
    jury(script, "Essen in the west")
    del VOTES["Essen in the west"]
    assert len(interpret(graph, script.done()).calls) == 4


class Known(Env):
    """What a run knows: these answers."""

    def __init__(self, answers: dict[str, Tree]) -> None:
        self._answers = answers

    def value(self, node: str) -> Tree:
        return {"q": "Essen"} if node == "input" else self._answers.get(node, UNKNOWN)


ANSWERS = st.one_of(
    st.just(UNKNOWN), st.sampled_from(["Good", "Bad"]), st.builds(Partial, st.sampled_from(["G", "Ba"]))
)


@given(st.lists(ANSWERS, min_size=3, max_size=3))
def test_nothing_is_known_of_a_part_of_the_answers(said: list[Tree]) -> None:
    """Not even what most say where two of three agree."""
    graph = learnt(jury)
    votes = [node.name for node in graph.nodes if node.site == "poll"]
    whole = not any(answer is UNKNOWN or isinstance(answer, Partial) for answer in said)
    answers = {
        name: UNKNOWN if answer is UNKNOWN else {"content": answer} for name, answer in zip(votes, said, strict=True)
    }
    gathered = graph.by_name["main.aggregate"]
    state = Outlook(gathered, 0, listed=False)
    (found,) = predict(gathered, Known(answers)).inputs
    assert state.gather(0, found, ()) is whole and (state.output() is not UNKNOWN) is whole
    for value in (found, state.output()):
        (asked,) = predict(graph.by_site["report"][0], Known({**answers, gathered.name: value})).inputs
        assert has_gap(asked) is not whole


@given(st.integers(0, 3), st.booleans())
def test_nothing_is_known_of_a_list_that_may_go_on(count: int, goes_on: bool) -> None:
    items = [Whole(Ref("first")), Collect(Ref("rest", (STAR,)))]
    gathered = Node("all", OPS["aggregate"], items, evidence=Evidence("verified"))
    rest = Open(range(count)) if goes_on else list(range(count))
    state = Outlook(gathered, 0, listed=False)
    (found,) = predict(gathered, Known({"first": "a", "rest": rest})).inputs
    assert state.gather(0, found, ()) is not goes_on
    assert goes_on or state.output() == ["a", *range(count)]


def judged(votes: dict[str, str], of: str) -> str:
    """What is learnt of a program that asks three, and goes on with what most of them say, or with the last one's."""

    def program(script: Script, town: str) -> None:
        said = [
            script.call("poll", f"You are {who}. Judge {town}.", vote)
            for who, vote in zip(WHO, votes[town].split(), strict=True)
        ]
        word = Counter(said).most_common(1)[0][0] if of == "most" else said[-1]
        script.call("report", f"People call {town} {word}. Why?", "because")

    return shown(learnt(program, towns=votes))[-1]


def test_that_one_agrees_with_most_in_all_runs_says_rather_that_most_count() -> None:
    votes = dict(zip(TOWNS, ("good bad bad", "bad good good", "fair good fair"), strict=False))
    assert judged(votes, "most") == ": People call {input.q} {main.aggregate|each .content|majority}. Why?"


def test_one_that_does_not_agree_with_most_counts_by_itself() -> None:
    votes = dict(zip(TOWNS, ("good bad bad", "bad good good", "fair fair good"), strict=False))
    assert judged(votes, "last") == ": People call {input.q} {main.decode.3.content}. Why?"
