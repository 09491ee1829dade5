"""Templates against what is known: the value, a known beginning, or unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.graph.ir import Evidence, Level, Node
from accel.graph.ops import OPS
from accel.graph.predict import nested, predict
from accel.text.evaluate import Env, maker
from accel.text.extract import EXTRACTORS, Open, Partial
from accel.text.pasted import pasted
from accel.text.paths import UNKNOWN, enumerate_stars, follow, has_gap
from accel.text.steps import STAR, STRIP, Clip, Extract
from accel.text.templates import Collect, Counter, Join, Ref, Spread, Template, Whole


class Known(dict[str, Any], Env):
    """Outputs by node; what isn't there is unknown."""

    def value(self, node: str) -> Any:
        return self.get(node, UNKNOWN)


LINES = Ref("a", ("content", Extract("lines"), STAR))


def text(*parts: Any) -> Template:
    return Template(parts)


def value(tree: Any, binding: tuple[int, ...] = (), position: int = 0, **known: Any) -> Any:
    return maker(tree)(binding, position, Known(known))


def test_a_known_hole_is_filled() -> None:
    assert value({"t": text("Ask ", Ref("a", ("q",)), "!"), "n": 1}, a={"q": "why"}) == {"t": "Ask why!", "n": 1}


@pytest.mark.parametrize(("shown", "as_text"), [(7, "7"), (0.5, "0.5"), (True, "True"), ("", "")])
def test_holes_show_values_as_format_does(shown: Any, as_text: str) -> None:
    assert value(text("<", Ref("a"), ">"), a=shown) == f"<{as_text}>"


@pytest.mark.parametrize(
    "missing", [{}, {"q": UNKNOWN}, {"q": None}, {"q": ["a list"]}, {"q": {"a": "dict"}}, {"other": "x"}]
)
def test_an_unknown_hole_ends_what_is_known(missing: Any) -> None:
    found = value(text("Ask ", Ref("a", ("q",)), "!"), a=missing)
    assert found == "Ask " and isinstance(found, Partial) and has_gap(found)


def test_a_growing_text_is_known_so_far() -> None:
    found = value(text("Ask ", Ref("a"), "!"), a=Partial("wh"))
    assert found == "Ask wh" and isinstance(found, Partial)


def test_clips_and_strips() -> None:
    clip = text(Ref("a", (Clip(3),)), ".")
    assert value(clip, a="abcdef") == "abc."
    assert value(clip, a="ab") == "ab."
    assert value(clip, a=Partial("abcd")) == "abc." and not has_gap(value(clip, a=Partial("abcd")))
    assert has_gap(value(clip, a=Partial("ab")))
    strip = text(Ref("a", (STRIP,)), ".")
    assert value(strip, a="  ab \n") == "ab."
    assert value(strip, a=Partial("  ab \n")) == "ab"


def test_joins() -> None:
    join = text("<", Join(LINES, ("; ",)), ">")
    assert value(join, a={"content": "one\ntwo\nthree"}) == "<one; two; three>"
    assert value(join, a={"content": ""}) == "<>"
    found = value(join, a={"content": Partial("one\ntwo\nthr")})
    assert found == "<one; two" and isinstance(found, Partial)


def test_joins_count_and_stop() -> None:
    join = text("[1] ", Join(LINES, ("\n[", Counter(1), "] "), limit=2))
    assert value(join, a={"content": "one\ntwo\nthree"}) == "[1] one\n[2] two"
    known = value(join, a={"content": Partial("one\ntwo\nthr")})
    assert known == "[1] one\n[2] two" and not has_gap(known), "what comes later doesn't matter"


def test_a_join_inside_an_element() -> None:
    join = text(Join(Ref("a", (STAR, "rows", STAR)), (",",), bound=1))
    rows = [{"rows": ["x", "y"]}, {"rows": ["z"]}]
    assert [value(join, (i,), a=rows) for i in range(2)] == ["x,y", "z"]


def test_counters_give_the_position() -> None:
    assert value(text("no. ", Counter(1)), (), 4) == "no. 5"


def test_whole_values_keep_their_type_and_each_makes_a_list() -> None:
    assert value(Whole(Ref("a")), a=[1, "x", None]) == [1, "x", None]
    every = Collect(Ref("a", (STAR,)))
    assert value(every, a=["x", "y"]) == ["x", "y"]
    assert value(every, a=Open(["x"])) == ["x"] and has_gap(value(every, a=Open(["x"])))
    assert value(every) is UNKNOWN


def test_a_list_that_is_spread_stands_among_other_elements() -> None:
    tree = {"m": ["first", Spread(Whole(Ref("held"))), text("last of ", Ref("input", ("q",)))]}
    assert value(tree, held=["a", "b"], input={"q": "it"}) == {"m": ["first", "a", "b", "last of it"]}
    assert value(tree, held=[], input={"q": "it"}) == {"m": ["first", "last of it"]}
    for unknown in (UNKNOWN, Open(["a"]), "no list"):
        made = value(tree, held=unknown, input={"q": "it"})
        assert made["m"][0] == "first" and made["m"][-1] == "last of it"
        assert has_gap(made)


def test_collected_elements_may_be_bound_distinct_and_limited() -> None:
    rows = [[{"t": "x"}, {"t": "y"}], [{"t": "y"}, {"t": "y"}, {"t": "z"}]]
    of_one = Collect(Ref("a", (STAR, STAR)), bound=1, distinct=("t",))
    assert value(of_one, (1,), a=rows) == [{"t": "y"}, {"t": "z"}]
    of_all = Collect(Ref("a", (STAR, STAR)), distinct=("t",), limit=2)
    assert value(of_all, a=rows) == [{"t": "x"}, {"t": "y"}]
    assert not has_gap(value(of_all, a=Open(rows[:1]))), "what comes later can't change the first two"
    assert has_gap(value(replace(of_all, limit=3), a=Open(rows[:1])))


def test_outputs_of_nested_levels_are_lists_in_lists() -> None:
    bindings = [(0, 0), (0, 2), (2, 0)]
    assert nested(bindings, ["a", "b", "c"], 2, True) == [["a", "b"], [], ["c"]]
    still = nested(bindings, ["a", "b", "c"], 2, False)
    assert isinstance(still, Open) and isinstance(still[2], Open) and not isinstance(still[0], Open)


def test_the_last_of_an_open_list_is_not_known() -> None:
    assert follow(["x", "y"], (-1,)) == "y"
    assert follow(Open(["x", "y"]), (-1,)) is UNKNOWN
    assert follow(Open(["x", "y"]), (1,)) == "y"


def test_stars_are_enumerated_in_order_up_to_the_first_gap() -> None:
    rows = [["a", "b"], Open(["c"]), ["d"]]
    assert enumerate_stars(rows, (STAR, STAR)) == ([(0, 0), (0, 1), (1, 0)], False)
    assert enumerate_stars([["a"], ["b"]], (STAR, STAR), (1,)) == ([(1, 0)], True)
    assert enumerate_stars("no list", (STAR,)) == ([], False)


def node(level: Level | None, template: Any) -> Node:
    return Node("n", OPS["decode"], template, level=level, many=level is not None, evidence=Evidence("verified"))


def test_predictions_of_a_level() -> None:
    each = node(Level(LINES), text("About ", LINES))
    found = predict(each, Known(a={"content": "x\ny\nz"}))
    assert (found.inputs, found.bindings, found.complete) == (
        ["About x", "About y", "About z"],
        [(0,), (1,), (2,)],
        True,
    )
    found = predict(each, Known(a={"content": Partial("x\ny\nz")}))
    assert (found.inputs, found.complete) == (["About x", "About y"], False)
    found = predict(each, Known())
    assert (found.inputs, found.complete) == ([], False)


def test_a_cap_bounds_and_settles_the_number() -> None:
    capped = node(Level(LINES, cap=2), LINES and text(LINES))
    found = predict(capped, Known(a={"content": Partial("x\ny\nz")}))
    assert (found.inputs, found.complete) == (["x", "y"], True)
    unsure = node(Level(LINES, cap=2, exact=False), text(LINES))
    assert predict(unsure, Known(a={"content": "x\ny\nz"})).complete is False


def test_distinct_drops_equal_elements_and_waits_where_one_may_be_equal() -> None:
    distinct = node(Level(LINES, distinct=True), text(LINES, " ", Ref("b")))
    assert predict(distinct, Known(a={"content": "x\ny\nx\nz"}, b="!")).inputs == ["x !", "y !", "z !"]
    found = predict(distinct, Known(a={"content": "x\ny"}))
    assert (found.inputs, found.complete) == ([], False)


def test_repeats() -> None:
    found = predict(node(Level(None, repeat=3), text(Ref("a"))), Known(a="x"))
    assert (found.inputs, found.bindings) == (["x"] * 3, [()] * 3)


def test_what_holes_paste_is_told_from_the_template() -> None:
    tree = {"t": text("Ask ", Ref("a"), " and ", Join(Ref("b", (STAR,)), (",",))), "w": Whole(Ref("c")), "n": "literal"}
    assert sorted(pasted(tree, (), 0, Known(a="x", b=["y", "z"], c={"k": [4]}))) == ["4", "x", "y", "z"]


# --- a beginning of what is known gives a beginning of the value ----------------------------------------------------

words = st.text(st.sampled_from(list("ab 1.-,\n")), max_size=30)
paths = st.sampled_from(
    [(), (STRIP,), (Clip(4),), (STRIP, Clip(3)), *((Extract(name), i) for name in EXTRACTORS for i in (0, 1, -1))]
)
lists = st.sampled_from([(Extract(name), STAR) for name in ("lines", "commas", "numbered")])
parts = st.one_of(
    st.text(max_size=3),
    paths.map(lambda path: Ref("a", path)),
    st.builds(
        lambda path, limit: Join(Ref("a", path), ("; ", Counter(1)), limit), lists, st.none() | st.integers(1, 3)
    ),
    st.just(Ref("b")),
)
templates = st.lists(parts, max_size=5).map(lambda found: Template(tuple(found)))


def begins(part: Any, whole: Any) -> bool:
    if part is UNKNOWN:
        return True
    if isinstance(part, Partial):
        return isinstance(whole, str) and whole.startswith(part)
    if isinstance(part, list):
        return (
            isinstance(whole, list)
            and (len(part) == len(whole) or (isinstance(part, Open) and len(part) < len(whole)))
            and all(begins(left, right) for left, right in zip(part, whole, strict=False))
        )
    if isinstance(part, dict):
        return all(begins(part[key], whole[key]) for key in part)
    return bool(part == whole)


@given(templates, words, st.integers(0, 30), st.booleans())
def test_part_of_what_is_known_gives_a_beginning(template: Template, full: str, cut: int, know_b: bool) -> None:
    tree = {
        "t": template,
        "e": Collect(Ref("a", (Extract("lines"), STAR)), distinct=()),
    }
    whole = maker(tree)((), 0, Known(a=full, b="bee"))
    early = Known(a=Partial(full[:cut]), b="bee") if know_b else Known(a=Partial(full[:cut]))
    part = maker(tree)((), 0, early)
    assert begins(part, whole)
    if not has_gap(part):
        assert part == whole, "what counts as complete is the value"


@given(words, st.integers(0, 30), st.booleans(), st.none() | st.integers(1, 3))
def test_part_of_what_is_known_gives_the_first_elements(full: str, cut: int, distinct: bool, cap: int | None) -> None:
    each = node(Level(LINES, cap=cap, distinct=distinct), text("About ", LINES))
    whole = predict(each, Known(a={"content": full}))
    part = predict(each, Known(a={"content": Partial(full[:cut])}))
    assert part.inputs == whole.inputs[: len(part.inputs)]
    assert not part.complete or part.inputs == whole.inputs
