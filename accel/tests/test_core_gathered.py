"""Values of several calls as one list: functions go over the answers of calls that are no loop."""

from __future__ import annotations

import json
import re
from collections import Counter

from accel.tests.test_core_computed import SCORES, VOTES, last, learnt
from accel.tests.test_core_learn import Script, shown

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

    each = f"{{main.aggregate.2|each .content|re.search({json.dumps(pattern)}, 1, 0)|"
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
