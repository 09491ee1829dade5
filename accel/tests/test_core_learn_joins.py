"""What is learnt of joins without repetitions: of equal elements the first, also over several lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from accel.learn.learner import UNEXPLAINED
from accel.tests.test_core_learn import ITEMS, TOPICS, Script, learnt, shown
from accel.text.extract import Open, Partial
from accel.text.paths import enumerate_stars
from accel.text.steps import STAR, UNIQUE

PATH = (STAR, STAR, "text", UNIQUE)


def passages(*texts: str) -> list[dict[str, str]]:
    return [{"text": text} for text in texts]


def joined(found: Sequence[Sequence[str]], topics: Sequence[str] = TOPICS) -> Any:
    """A program that searches, and joins what it found without repetitions."""

    def program(script: Script, topic: str) -> None:
        queries = script.call("q", f"Name queries on {topic}", f"{topic} in winter\n{topic} in summer").split("\n")
        results = [
            script.call("s", [query], passages(*(f"{text} of {topic}" for text in texts)), op="searching")
            for query, texts in zip(queries, found, strict=True)
        ]
        texts = dict.fromkeys(row["text"] for rows in results for row in rows)
        script.call("a", "Answer from:\n" + "\n".join(f"- {text}" for text in texts), "fine")

    return shown(learnt(program, topics))[-1]


def test_a_join_of_what_several_searches_found_without_repetitions() -> None:
    by_position = "{join main.searching[*][*].text|unique by '\\n- '}"
    assert joined([("the snow", "the ice caves"), ("the ice caves", "the meadows")]).endswith(by_position)


def test_without_repetitions_in_what_was_found_nothing_needs_to_be_unique() -> None:
    assert joined([("the snow", "the ice caves"), ("the birds", "the meadows")]).endswith("[*][*].text by '\\n- '}")


@pytest.mark.parametrize(
    ("value", "found", "complete"),
    [
        ([passages("a", "b"), passages("b", "c")], [(0, 0), (0, 1), (1, 1)], True),
        ([passages("a"), Open(passages("a"))], [(0, 0)], False),
        (Open([passages("a", "b")]), [(0, 0), (0, 1)], False),
        ([[{"text": "a"}, {"text": Partial("a")}], passages("c")], [(0, 0)], False),
    ],
)
def test_an_element_that_may_turn_out_to_equal_another_ends_what_is_known(
    value: Any, found: list[Any], complete: bool
) -> None:
    assert enumerate_stars(value, PATH) == (found, complete)


def test_a_list_that_a_node_was_given_goes_before_all_outputs_of_one_that_may_run_again() -> None:
    """Nothing tells a run that the node has run for the last time: a join of its outputs would never be complete."""

    def program(script: Script, topic: str) -> None:
        facts = []
        for number in range(3):
            work = script.trace.enter("work", {"number": number})
            facts.append(f"{number} facts: {topic[::-1]}")
            script.trace.leave(work, {"facts": facts[-1:]})
        script.trace.enter("sum", {"facts": facts})
        script.call("sum", "Sum up:\n" + "\n".join(facts), "fine", within="sum")

    assert shown(learnt(program))[-1] == ": Sum up:\\n{join sum.in.facts[*] by '\\n'}"


def test_rows_with_short_values_beside_a_long_one() -> None:
    """Numbers are found in any text; in every row, they are those of its element."""
    stars = {TOPICS[0]: (5, 12, 7), TOPICS[1]: (31, 4, 11)}

    def program(script: Script, topic: str) -> None:
        rows = zip(ITEMS[topic], stars[topic], ("low", "top", "mid"), strict=True)
        found = [{"name": name, "stars": n, "price": price} for name, n, price in rows]
        script.call("search", {"query": topic}, found, op="searching")
        table = "\n".join(f"* {one['name']}: {one['stars']} stars, {one['price']}" for one in found)
        script.call("tell", f"Tell of {topic}.\n\n{table}\nBe brief.", "so")

    assert shown(learnt(program))[-1] == (
        ": Tell of {input.q}.\\n\\n* {join {main.searching[*].name}: {main.searching[*].stars} stars, "
        "{main.searching[*].price} by '\\n* '}\\nBe brief."
    )


@pytest.mark.parametrize(
    ("row", "learnt_as"),
    [
        ("Page {page}: {name}", "Page {join {page}: {name} by '\\n\\nPage '}"),
        ("{name} (p. {page})", "{join {name} (p. {page} by ')\\n\\n'})"),
        ("[{n}] (p. {page}) {name}", "[1] (p. {join {page}) {name} by '\\n\\n[{#+1}] (p. '}"),
        ("[{n}] ({file}, p. {page}) {name}", "[1] ({join {file}, p. {page}) {name} by '\\n\\n[{#+1}] ('}"),
        ("[{n}] {name} ({author}, {page}, {file})",
         "[1] {join {name} ({author}, {page}, {file} by ')\\n\\n[{#+1}] '})"),
    ],
)  # fmt: skip
def test_rows_that_cite_what_stands_in_short_fields(row: str, learnt_as: str) -> None:
    """Before the long one or behind it, beside another long one, of one to three digits, and alike in their ends."""
    pages = {TOPICS[0]: (7, 112, 38), TOPICS[1]: (4, 58, 207)}
    north, south = ("Ann of Leeds", "Ben of Delft", "Eve of Turku"), ("Joe of Ghent", "Kim of Arles", "Lea of Trier")
    authors = dict(zip(TOPICS, (north, south), strict=False))

    def program(script: Script, topic: str) -> None:
        rows = zip(ITEMS[topic], pages[topic], authors[topic], strict=True)
        found = [
            {"name": name, "page": page, "author": author, "file": f"s{2 * page + 1}.md"} for name, page, author in rows
        ]
        script.call("search", {"query": topic}, found, op="searching")
        told = "\n\n".join(row.format(**one, n=n) for n, one in enumerate(found, 1))
        script.call("tell", f"Tell of {topic}.\n\n{told}\nBe brief.", "so")

    for field in ("page", "name", "file", "author"):
        learnt_as = learnt_as.replace(f"{{{field}}}", f"{{main.searching[*].{field}}}")
    assert shown(learnt(program))[-1] == f": Tell of {{input.q}}.\\n\\n{learnt_as}\\nBe brief."


def test_a_number_beside_elements_that_is_not_theirs() -> None:
    def program(script: Script, topic: str) -> None:
        found = [{"name": name, "stars": n} for n, name in enumerate(ITEMS[topic], len(topic))]
        script.call("search", {"query": topic}, found, op="searching")
        table = "\n".join(f"* {one['name']}: {one['stars'] + 2} stars" for one in found)
        script.call("tell", f"Tell of {topic}.\n\n{table}\nBe brief.", "so")

    assert shown(learnt(program))[-1] == f"? {UNEXPLAINED}"
