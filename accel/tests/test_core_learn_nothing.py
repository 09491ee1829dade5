"""What programs say where there is nothing: no element of a list, no value, no more of a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accel.graph.ir import Node
from accel.learn.lessons import lesson
from accel.tests.test_core_evaluate import Known
from accel.tests.test_core_learn import Script, Words
from accel.text.evaluate import maker
from accel.text.extract import Open, Partial
from accel.text.paths import UNKNOWN, has_gap, is_missing
from accel.text.steps import STAR, Clip, Extract
from accel.text.templates import Instead, Join, Ref, Template

SAID = (
    "Sum up:\n",
    "Be brief.",
    "Nothing was said yet.",
    "No hint is given.",
    "Hint:",
    "Ask ",
    "unknown",
    "...",
    "ask Acme first",
    "ask Globex first",
)
Given = dict[str, Any]
Write = Callable[[Any], str]


def node_of(write: Write, *inputs: Any) -> Node:
    traces = []
    for given in inputs:
        script = Script(given)
        script.call("sum", write(given), "so")
        traces.append(script.done())
    return next(node for node in lesson(traces, Words(SAID)).graph.nodes if node.site)


def gives(node: Node, given: Any) -> Any:
    return maker(node.input)((), 0, Known({"input": given}))


def lines(number: int, count: int) -> Given:
    return {"lines": [f"what chat {number * 37} says at {at}" for at in range(count)], "q": f"question {number * 41}"}


def joined(given: Given) -> str:
    return "Sum up:\n" + "\n".join(given["lines"]) + f"\nBe brief. {given['q']}"


def ended(given: Given) -> str:
    return "Sum up:\n" + "".join(f"{line}\n" for line in given["lines"]) + f"Be brief. {given['q']}"


def bullets(given: Given) -> str:
    return "Sum up:\n" + "\n".join(f"- {line}" for line in given["lines"]) + f"\nBe brief. {given['q']}"


def otherwise(given: Given) -> str:
    return "Sum up:\n" + ("\n".join(given["lines"]) or "Nothing was said yet.") + f"\nBe brief. {given['q']}"


def section(given: Given) -> str:
    found = "\n".join(given["lines"])
    return (f"Hint:\n{found}\n\n" if found else "") + f"Be brief. {given['q']}"


@pytest.mark.parametrize("order", [(4, 0, 3, 0), (0, 4, 0, 3), (0, 0, 2, 5)])
@pytest.mark.parametrize("write", [joined, ended, bullets, otherwise, section])
def test_runs_show_what_is_said_where_there_is_no_element(write: Write, order: tuple[int, ...]) -> None:
    """The texts of the others do not: they may have been put together in several ways."""
    node = node_of(write, *(lines(number, count) for number, count in enumerate(order, 1)))
    assert node.evidence.always
    for given in (lines(9, 0), lines(8, 1), lines(7, 6)):
        assert gives(node, given) == write(given)


@pytest.mark.parametrize("write", [joined, ended, bullets])
def test_nothing_is_foreseen_of_a_list_without_elements_before_a_run_has_shown_it(write: Write) -> None:
    assert has_gap(gives(node_of(write, lines(1, 4), lines(2, 3)), lines(3, 0)))


# --- values that may be missing -------------------------------------------------------------------------------------


def or_default(given: Given) -> str:
    return f"Ask {given['q']}: {given.get('hint') or 'unknown'}\nBe brief."


def get_default(given: Given) -> str:
    return f"Ask {given['q']}: {given.get('hint', 'unknown')}\nBe brief."


def sections(given: Given) -> str:
    text = "Sum up:\n"
    text += f"Hint:\n{given['hint']}\n" if given.get("hint") else "No hint is given.\n"
    text += f"Ask {given['name']}\n" if given.get("name") else ""
    return text + f"Be brief. {given['q']}"


def values(number: int, *fields: str, **others: Any) -> Given:
    return {"q": f"question {number * 41}", **{name: f"the {name} of {number * 53}" for name in fields}, **others}


@pytest.mark.parametrize(
    ("write", "shown", "others"),
    [
        (or_default, [["hint"], ["hint"], [], []], [values(9, "hint"), values(8), values(7, hint="")]),
        (or_default, [["hint"], [], [], ["hint"]], [values(9, "hint"), values(8), values(6, hint=None)]),
        (or_default, [[], ["hint"], ["hint"], []], [values(9, "hint"), values(8), values(7, hint="")]),
        (get_default, [["hint"], ["hint"], [], []], [values(9, "hint"), values(8)]),
        (sections, [["hint", "name"], ["hint", "name"], ["hint"], ["name"], ["name"]], [
            values(9, "hint", "name"), values(8, "hint"), values(7, "name"), values(6), values(5, hint="", name=None),
        ]),
    ],
)  # fmt: skip
def test_runs_show_what_is_said_where_there_is_no_value(
    write: Write, shown: list[list[str]], others: list[Given]
) -> None:
    node = node_of(write, *(values(number, *fields) for number, fields in enumerate(shown, 1)))
    assert node.evidence.always
    for given in others:
        assert gives(node, given) == write(given)


def test_runs_without_a_value_do_not_show_what_stands_beside_it() -> None:
    """One run has shown it, and its words may be those of whom it was about."""
    node = node_of(or_default, values(1, "hint"), values(2), values(3))
    assert not node.evidence.always
    assert gives(node, values(9, "hint")) != or_default(values(9, "hint"))


@pytest.mark.parametrize("empty", [1, 2, 3])
def test_lists_without_elements_do_not_show_how_elements_are_chosen(empty: int) -> None:
    def write(given: Given) -> str:
        kept = [note for note in given["lines"] if not note.startswith("internal")]
        return f"Ask {given['q']}:\n" + "\n".join(kept) + "\nBe brief."

    def noted(number: int, *notes: str) -> Given:
        return {"q": f"question {number * 41}", "lines": [f"{note} {number * 37}" for note in notes]}

    runs = [noted(1, "internal", "what Ann wrote on", "what Ben wrote on"), *(noted(2 + at) for at in range(empty))]
    script = [noted(9, "what Dan wrote on", "internal", "what Eva wrote on")]
    traces = []
    for given in runs:
        made = Script(given)
        made.call("sum", write(given), "so")
        traces.append(made.done())
    nodes = [node for node in lesson(traces, Words(SAID)).graph.nodes if node.site]
    foreseen = [gives(node, script[0]) for node in nodes if node.evidence.confidence == "verified"]
    assert not any("internal" in str(text) for text in foreseen)


def test_one_run_without_elements_shows_what_is_left_out() -> None:
    node = node_of(ended, lines(1, 4), lines(2, 0), lines(3, 3))
    assert node.evidence.always and gives(node, lines(4, 0)) == ended(lines(4, 0))


@pytest.mark.parametrize("write", [or_default, get_default])
def test_one_run_does_not_show_whose_words_stand_there(write: Write) -> None:
    """The program may choose them by its user: nothing is foreseen where there is no value."""
    node = node_of(write, values(1, "hint"), values(2), values(3, "hint"))
    assert node.evidence.confidence == "verified" and "unknown" not in str(node.input)
    assert has_gap(gives(node, values(4))) and gives(node, values(5, "hint")) == write(values(5, "hint"))


def test_none_is_foreseen_as_runs_have_shown_it() -> None:
    """Most programs say something else then; one that prints it shows that."""

    def write(given: Given) -> str:
        return f"Ask {given['q']}: {given['hint']}\nBe brief."

    hints = [values(1, "hint"), values(2, "hint")]
    assert has_gap(gives(node_of(write, *hints), values(3, hint=None)))
    node = node_of(write, *hints, values(3, hint=None), values(4, hint=None))
    assert gives(node, values(5, hint=None)) == write(values(5, hint=None))


def by_tenant(given: Given) -> str:
    default = "ask Acme first" if given["of"] == "acme" else "ask Globex first"
    return f"Ask {given['q']}: {given.get('hint') or default}\nBe brief."


def test_words_that_one_tenants_runs_show_are_not_anothers() -> None:
    """Whose runs had a hint have shown nothing of what stands for none."""
    runs = [values(number, *shown, of=of) for number, (of, *shown) in enumerate(
        [("acme", "hint"), ("acme",), ("globex", "hint"), ("acme",), ("globex", "hint"), ("acme",)], 1
    )]  # fmt: skip
    node = node_of(by_tenant, *runs)
    assert has_gap(gives(node, values(9, of="globex"))), "acme's words, or none"


def test_a_mark_that_one_tenants_runs_show_is_not_anothers() -> None:
    def write(given: Given) -> str:
        mark = " ask Acme first" if given["of"] == "acme" else " ask Globex first"
        return f"Sum up:\n{given['text'][:40] + mark if len(given['text']) > 40 else given['text']}\nBe brief."

    def given(number: int, of: str, length: int) -> Given:
        return {
            "of": of,
            "text": f"{number * 7919} is what somebody had to tell everybody else here".ljust(length, "y")[:length],
        }

    runs = [given(number, of, n) for number, (of, n) in enumerate([("acme", 90), ("acme", 70), ("globex", 20)], 3)]
    node = node_of(write, *runs)
    assert "marked" not in str(node.input)


def test_what_stands_there_is_the_programs() -> None:
    """Somebody's words that are the same in a run or two are in no plan."""

    def write(given: Given) -> str:
        return f"Ask {given['q']}: {given.get('hint') or 'call Ann of Leeds first'}\nBe brief."

    node = node_of(write, values(1, "hint"), values(2, "hint"), values(3))
    assert "Ann" not in str(node.input) and not node.evidence.always


@pytest.mark.parametrize("lengths", [(90, 70, 20), (20, 90, 70), (90, 20, 40)])
def test_a_mark_behind_what_is_cut_off(lengths: tuple[int, ...]) -> None:
    def write(given: Given) -> str:
        text = given["text"]
        return f"Sum up:\n{text[:40] + '...' if len(text) > 40 else text}\nBe brief."

    def given(number: int, length: int) -> Given:
        text = f"{number * 7919} is what somebody had to tell everybody of {number * 104729}, and of all the others"
        return {"text": text.ljust(99, "y")[:length]}

    node = node_of(write, *(given(number, length) for number, length in enumerate(lengths, 3)))
    for length in (10, 39, 40, 41, 99):
        assert gives(node, given(11, length)) == write(given(11, length))


# --- evaluated ------------------------------------------------------------------------------------------------------


def chat(empty: Instead | None) -> Template:
    return Template(("So far:\n- ", Join(Ref("chat", (STAR,)), ("\n- ",), empty=empty), "\n\nNow?"))


def told(tree: Any, *said: str, whole: bool = True) -> Any:
    return maker(tree)((), 0, Known({"chat": list(said) if whole else Open(said)}))


@pytest.mark.parametrize(
    ("empty", "shown"),
    [
        (Instead(), "So far:\n- \n\nNow?"),
        (Instead("", 2, 0), "So far:\n\n\nNow?"),
        (Instead("nothing", 2, 1), "So far:\nnothing\nNow?"),
    ],
)
def test_what_is_said_instead_of_elements(empty: Instead, shown: str) -> None:
    assert told(chat(empty)) == shown and not has_gap(told(chat(empty)))
    begun = told(chat(empty), whole=False)
    assert shown.startswith(begun) and has_gap(begun), "what may be left out is not known to be said"


def test_nothing_is_known_behind_elements_that_may_be_missing() -> None:
    found = told(chat(None))
    assert found == "So far:\n- " and isinstance(found, Partial)


@pytest.mark.parametrize(
    ("value", "path", "missing"),
    [
        ({}, ("a",), True),
        ({"a": {}}, ("a", "b"), True),
        ({"a": None}, ("a",), True),
        ({"a": ""}, ("a",), True),
        ({"a": 0}, ("a",), False),
        ({"a": "it"}, ("a",), False),
        ({"a": Partial("")}, ("a",), False),
        ({"b": Partial("x")}, ("a",), False),
        ({"b": {"c": [1, {"d": Partial("x")}]}}, ("a",), False),
        ({"b": UNKNOWN, "c": 1}, ("a",), False),
        ({"b": {"c": [1, {"d": "x"}]}}, ("a",), True),
        (Partial('{"b": 1'), (Extract("json"), "a"), False),
        (Open(), (0,), False),
        ({"a": "text"}, ("a", "b"), False),
        ({"a": "none"}, ("a", Extract("lines"), 3), False),
    ],
)
def test_what_is_known_to_be_missing(value: Any, path: tuple[Any, ...], missing: bool) -> None:
    assert is_missing(value, path) is missing


@pytest.mark.parametrize(
    ("text", "shown"),
    [("abc", "abc"), ("abcd", "abcd"), ("abcde", "abcd..."), (Partial("abcd"), "abcd"), (Partial("abcde"), "abcd...")],
)
def test_a_mark_stands_only_behind_what_had_more(text: str, shown: str) -> None:
    found = maker(Template((Ref("a", (Clip(4, "..."),)),)))((), 0, Known({"a": text}))
    assert found == shown and isinstance(found, Partial) is (text == "abcd" and isinstance(text, Partial))
