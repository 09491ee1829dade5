"""What functions of the table give is what Python's own give, of what is there as a whole, and is kept in plans."""

from __future__ import annotations

import re
import statistics
import textwrap
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.run.plans.written import decode_step, encode_step
from accel.text.constants import Constants
from accel.text.extract import Open, Partial
from accel.text.functions import FUNCTIONS, Computed, thresholds, ways
from accel.text.paths import UNKNOWN, follow, step_into
from accel.text.steps import STRIP, Each, Extract

TEXT = "<think>hm, 12</think>\nAnswer: a long and winding road, of 42 miles"
SAID = [
    "Answer:", r"<think>.*?</think>", r"(\d+) miles", "...", ".2f", ",", "%d %B %Y", "7", "20", "0.5", "#E1 of [NAME]",
]  # fmt: skip


@pytest.mark.parametrize(
    ("step", "value", "expected"),
    [
        (Computed("before", ("Answer:",)), TEXT, TEXT.split("Answer:")[0]),
        (Computed("after", (", ",)), TEXT, TEXT.split(", ")[-1]),
        (Computed("behind", (", ",)), TEXT, TEXT.split(", ", 1)[1]),
        (Computed("split", ("\n",)), TEXT, TEXT.split("\n")),
        (Computed("replace", ("a", "b")), TEXT, TEXT.replace("a", "b")),
        (Computed("re.sub", (r"<think>.*?</think>", "", 0)), TEXT, re.sub(r"<think>.*?</think>", "", TEXT)),
        (Computed("re.search", (r"(\d+) miles", 1, 0)), TEXT, "42"),
        (Computed("re.findall", (r"\d+", 0)), TEXT, ["12", "42"]),
        (Computed("re.findall", (r"(\d)(\d)", 0)), TEXT, [["1", "2"], ["4", "2"]]),
        (Computed("words", (3,)), TEXT, "<think>hm, 12</think> Answer:"),
        (Computed("one line"), TEXT, " ".join(TEXT.split())),
        (Computed("textwrap.shorten", (30, "...")), TEXT, textwrap.shorten(TEXT, 30, placeholder="...")),
        (Computed("textwrap.fill", (20,)), TEXT, textwrap.fill(TEXT, 20)),
        (Computed("day", ("%Y-%m-%d", -7, "%d %B %Y")), "2024-03-01", "23 February 2024"),
        (Computed("length"), TEXT, len(TEXT)),
        (Computed("word count"), TEXT, len(TEXT.split())),
        (Computed("look up", ("", "a", "one", "b", "two")), "b", {"a": "one", "b": "two"}["b"]),
        (Computed("look up", ("said", "a", "one", "b", "two")), " B.", {"a": "one", "b": "two"}["b"]),
        (Computed("as number"), " 4.5 ", 4.5),
        (Computed("format", (",.2f",)), 1234.5, "1,234.50"),
        (Computed("round", (1,)), 2.25, round(2.25, 1)),
        (Computed("int"), "7.9", 7),
        (Computed("plus", (-1,)), 7, 6),
        (Computed("times", (100.0,)), 0.25, 25.0),
        (Computed("above", (0.5,)), "0.7", True),
        (Computed("at least", (7,)), 7, True),
        (Computed("sum"), ["1", 2, 3.5], 6.5),
        (Computed("mean"), [1, 2, 6], 3.0),
        (Computed("median"), [5, 1, 3], statistics.median([5, 1, 3])),
        (Computed("min"), [5, 1, 3], 1),
        (Computed("max"), ["5", "1", "3"], 5),
        (Computed("majority"), ["no", "yes", "yes"], Counter(["no", "yes", "yes"]).most_common(1)[0][0]),
        (Computed("last"), [5, 1, 3], 3),
        (Computed("most times"), ["b", "a", "a", "b"], Counter("baab").most_common(1)[0][1]),
        (Computed("most of all"), ["b", "a", "a"], Counter("baa").most_common(1)[0][1] / 3),
        (Computed("sum of products", ("h", "p")), [{"h": 2, "p": 3}, {"h": 4, "p": 5}], 2 * 3 + 4 * 5),
        (Computed("float"), 7, 7.0),
        (
            Computed("ranked by product", ("h", "p", 1)),
            [{"h": 2, "p": 3}, {"h": 4, "p": 5}, {"h": 1, "p": 6}],
            [{"h": 4, "p": 5}, {"h": 2, "p": 3}, {"h": 1, "p": 6}],
        ),
        (Computed("how many", ("yes",)), ["no", "yes", "yes"], 2),
        (Computed("sorted"), ["b", "a"], ["a", "b"]),
        (Computed("descending"), [1, 3, 2], [3, 2, 1]),
        (Computed("reversed"), [1, 3, 2], [2, 3, 1]),
        (Computed("ranked", ("n", 1)), [{"n": 1}, {"n": 2}], [{"n": 2}, {"n": 1}]),
        (Computed("last ones", (2,)), [1, 2, 3], [2, 3]),
        (Computed("but the last", (1,)), [1, 2, 3], [1, 2]),
    ],
    ids=str,
)
def test_a_function_gives_what_python_gives(step: Computed, value: Any, expected: Any) -> None:
    assert step_into(value, step) == expected


def test_every_function_of_the_table_is_tried_above() -> None:
    (mark,) = test_a_function_gives_what_python_gives.pytestmark  # type: ignore[attr-defined]
    assert {step.name for step, _, _ in mark.args[1]} == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("step", "value"),
    [
        (Computed("re.search", (r"(\d+) miles", 1, 0)), "no such thing"),
        (Computed("sum"), ["one", 2]),
        (Computed("mean"), []),
        (Computed("majority"), ["yes", "no"]),
        *((Computed(part, ("|",)), "without it") for part in ("before", "after", "behind")),
        (Computed("day", ("%Y-%m-%d", 1, "%Y-%m-%d")), "soon"),
        (Computed("day", ("%d of %d", 1, "%Y-%m-%d")), "3 of 7"),
        (Computed("ranked", ("n", 0)), [{"n": 1}, {}]),
        (Computed("above", (1,)), True),
        (Computed("of another version"), "text"),
    ],
    ids=str,
)
def test_where_a_function_gives_nothing_nothing_is_known(step: Computed, value: Any) -> None:
    assert step_into(value, step) is UNKNOWN


def test_a_text_that_only_looks_like_the_form_of_a_day_is_none() -> None:
    assert not list(ways("3 of 7", Constants.among(["%d of %d"]), ["day"]))


@pytest.mark.parametrize(
    "value", [Partial("Answer: a"), Open(["a", "a"]), ["a", UNKNOWN], {"n": Partial("a")}], ids=str
)
@pytest.mark.parametrize(
    "step", [Computed("majority"), Computed("one line"), Computed("reversed"), Each(("n",))], ids=str
)
def test_nothing_is_computed_of_what_is_not_there_as_a_whole(value: Any, step: Any) -> None:
    assert step_into(value, step) is UNKNOWN


def test_what_each_element_has() -> None:
    items = [{"content": ' {"score": 3} '}, {"content": '{"score": 9}'}]
    assert follow(items, (Each(("content", Extract("json"), "score")), Computed("max"))) == 9
    assert follow(items, (Each(("content", STRIP)),)) == ['{"score": 3}', '{"score": 9}']
    assert follow([*items, {}], (Each(("content",)),)) is UNKNOWN


@given(
    st.one_of(
        st.text(max_size=60), st.integers(), st.floats(), st.booleans(), st.none(),
        st.lists(st.one_of(st.text(max_size=8), st.integers(-9, 9)), max_size=6),
        st.lists(st.fixed_dictionaries({"n": st.integers(-9, 9), "t": st.text(max_size=4)}), max_size=4),
    )
)  # fmt: skip
def test_whatever_a_value_is_each_way_gives_what_its_step_gives_again(value: Any) -> None:
    for step, result in ways(value, Constants.among(SAID)):
        again = step_into(value, step)
        assert again == result or result != result, step
        assert decode_step(encode_step(step)) == step


def test_a_number_of_too_many_digits_is_none() -> None:
    constants, digits = Constants.among(SAID), "1" * 5000
    assert list(thresholds(digits, constants, ("above",))) == []
    assert [str(step) for step, _ in thresholds("8", constants, ("above",))] == [
        "|above(0.5)",
        "|above(7.0)",
        "|above(20.0)",
    ]


def test_parameters_are_what_the_program_says() -> None:
    found = Constants.among(SAID)
    assert {"#E1", "[NAME]", "Answer:"} <= set(found.separators) and not {"7", "0.5"} & set(found.separators)
    assert set(found.patterns) == {r"<think>.*?</think>", r"(\d+) miles"}
    assert found.specs == (",", ".2f") and found.dates == ("%d %B %Y",)
    assert found.whole == (7, 20) and found.numbers == (0.5, 7.0, 20.0)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$",
        r"([a-z]*)*x",
        r"(\w+\s?)+y",
        r"^((\w+)\s?)+$",
        r"(?:\w|_)+;",
        r"((a)(b+))*c",
        r"(\w+) \1+",
        r"(?:[(\])]+x){2,}",
    ],
)
def test_a_pattern_whose_time_may_double_with_each_character_is_not_tried(pattern: str) -> None:
    assert pattern not in Constants.among([pattern]).patterns


@pytest.mark.parametrize("pattern", [r"Plan:\s*(.+)\s*(#E\d+)\s*=\s*(\w+)\s*\[([^\]]+)\]", r"<(a|b)>.*?</\w+>"])
def test_other_patterns_are(pattern: str) -> None:
    assert pattern in Constants.among([pattern]).patterns


def test_a_pattern_that_takes_long_on_a_part_of_a_text_gives_nothing() -> None:
    """On a text of 1,700 characters it takes half a minute."""
    step = Computed("re.search", (r"(.+?),(.+?),(.+?);$", 1, 16))
    assert step_into("a, b, c;", step) == "a"
    assert step_into("a, b, c, d " * 150, step) is UNKNOWN


def test_a_number_of_a_telephone_is_no_width() -> None:
    assert Constants.among(["0800123456", "05d", "08"]).specs == ("08", "05d")
    assert step_into(7, Computed("format", ("09999999999",))) is UNKNOWN


def test_a_pattern_is_tried_only_where_what_it_says_stands() -> None:
    found = Constants.among([r"Total: (\d+)"])
    assert list(found.searching("The total: 12")) == [] and list(found.searching("Total: 12")) == [r"Total: (\d+)"]
