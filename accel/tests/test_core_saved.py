"""Saved plans: back and forth, damaged files, and no one's data."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel.errors import ConfigurationError
from accel.graph.ir import Evidence, Graph, Level, Node, When
from accel.graph.ops import OPS
from accel.graph.topology import ANY
from accel.parts.references import References
from accel.run.plans.plan import Plan
from accel.run.plans.saved import load, save
from accel.text.dumps import Dump
from accel.text.functions import Computed
from accel.text.relay import Relay
from accel.text.steps import STAR, STRIP, Clip, Each, Extract, Label, Verdict
from accel.text.templates import Bound, Collect, Counter, Instead, Join, Ref, Spread, Taken, Talk, Template, Whole
from accel.text.turns import CALLED, Turn
from accel.text.values import Opaque, class_named, is_class_name

LINES = Ref("list", ("content", Extract("lines"), STAR))
VERIFIED = Evidence("verified")
INPUT = Node("input", OPS["input"])
LIST = Node(
    "list", OPS["decode"], {"rows": [{"content": Template(("List ", Ref("input", ("q", STRIP, Clip(9)))))}], "$": 1},
    "site", "node", "chat", evidence=Evidence("verified", always=True),
)  # fmt: skip
EACH = Node(
    "each", OPS["decode"],
    {"t": Template(("About ", LINES, Counter(1))), "w": Whole(Ref("list")), "e": Collect(LINES, 1, ("text",), 2),
     "s": [Spread(Whole(Ref("list"))), Template(("About ", LINES))]},
    "site", "node", "chat", Level(LINES, cap=2, exact=False, seen=4, distinct=True), many=True, evidence=VERIFIED,
)  # fmt: skip
SUM = Node(
    "sum", OPS["decode"], [Template((Join(Ref("each", (STAR, "content")), ("\n[", Counter(1), "] "), 3),)), None, 1.5],
    "other", evidence=VERIFIED,
)  # fmt: skip
VOTE = Node("vote", OPS["decode"], {"k": True}, level=Level(None, repeat=3), many=True, evidence=VERIFIED)

ROWS = Node(
    "rows", OPS["decode"],
    Template((Join(LINES, ("\n",), Counter(1), rest=(" -> ", Ref("each", (STAR, "content")))),)), "site",
    evidence=VERIFIED,
    when=(When(Ref("list", ("content", Verdict(word=True))), frozenset({"yes", "sure"}), frozenset({"no"})),),
)  # fmt: skip
KINDS = Label((("ai", "A"), ("human", "B")))
TALKED = Node(
    "talked", OPS["decode"],
    Template((
        "About ", Join(Ref("list", (STAR, "type", KINDS)), ("\n",), empty=Instead("it", 1)),
        Join(Ref("input", ("q", Clip(9, "success"))), (), empty=None),
    )), "site", evidence=VERIFIED,
)  # fmt: skip
LATER = Node(
    "later", OPS["decode"], Template((Ref("each", (STAR, "content")),)), "site", evidence=VERIFIED, many=True,
    level=Level(Ref("each", (STAR, "content")), first=1),
)  # fmt: skip

SAID = Node(
    "said", OPS["decode"], Template(("About ", Ref("input", ("q",)))), "site", "node",
    evidence=Evidence("verified", at_once=True, unreplaced=(("q",), ("rows", 0))),
)  # fmt: skip

CALLS = Ref("said", ("tool_calls", STAR))
TOOL = Node(
    "tool", OPS["tool"], {"kwargs": Whole(Ref("said", (*CALLS.path, "args")))}, "tools", "node", "function",
    Level(CALLS, sparse=True), many=True, evidence=VERIFIED,
    when=(When(Ref("said", (*CALLS.path, CALLED)), frozenset({"look"}), only=True),),
)  # fmt: skip
TURN = Turn({"name": "it"}, {"status": "success"}, True, Dump("json", any_letter=True))
TAKEN = Taken(TURN, Ref("said"), (Ref("tool", (STAR,)),))
TALK = Node(
    "talk", OPS["decode"], {"messages": Talk([Template(("About ", Ref("input", ("q",))))], (TAKEN,), 1)},
    "site", "node", evidence=VERIFIED, when=(When(Ref("said", (CALLED,)), frozenset({"calls"}), only=True),),
)  # fmt: skip
FIRST = Relay(None, Ref("again", (STAR, "content")), first=1)
HANDED = Relay(Ref("said", ("content",)), Ref("again", (STAR, "content")))
AGAIN = Node(
    "again", OPS["decode"], Template(("About ", Ref("handed", (STAR,)))), "site", many=True, evidence=VERIFIED,
    level=Level(Ref("handed", (STAR,)), cap=Bound(Ref("input", ("rounds",)), -1), sparse=True),
)  # fmt: skip
LOOP = (Node("first", OPS["relay"], FIRST, many=True), Node("handed", OPS["relay"], HANDED, many=True), AGAIN)

ALL = Node("all", OPS["aggregate"], [Whole(Ref("list")), Collect(Ref("each", (STAR,)))], evidence=VERIFIED)
BOTH = Node(
    "both", OPS["aggregate"], [Whole(Ref("each", (STAR,))), Whole(Ref("later", (STAR,)))], many=True,
    level=Level(Ref("each", (STAR,))), evidence=VERIFIED,
)  # fmt: skip
MOST = Node(
    "most", OPS["decode"],
    Template(("About ", Ref("all", (Each(("content",)), Computed("re.search", ("a", 0, 2)), Computed("majority"))))),
    "site", evidence=VERIFIED,
)  # fmt: skip


def program() -> tuple[object, ...]:
    """Its own texts: those of the nodes above."""
    return "List ", "About ", "site", 1.5, "it", "success", "A", "B", "sure"


def saved(tmp_path: Path, *nodes: Node) -> Path:
    plan = Plan()
    plan.program.ran(References([program]))
    plan.follow(Graph((INPUT, *nodes)))
    plan.note_barrier("node", {"site": 2}, leg="node 1", pauses=True)
    plan.note_barrier("guard", {})
    path = tmp_path / "plan.json"
    save(plan, str(path))
    return path


def test_back_and_forth(tmp_path: Path) -> None:
    path = saved(tmp_path, LIST, EACH, SUM, VOTE, ROWS, TALKED, LATER, SAID, TOOL, TALK, *LOOP, ALL, BOTH, MOST)
    plan = load(str(path))
    kept = (LIST, EACH, SUM, VOTE, ROWS, TALKED, LATER, SAID, TOOL, TALK, *LOOP, ALL, BOTH, MOST)
    assert plan.learnt.nodes[1:] == kept
    assert plan.barriers == {"node": {"node 1": {"site": 2}}, "guard": {ANY: {}}}
    again = tmp_path / "again.json"
    save(plan, str(again))
    assert again.read_text() == path.read_text()


@pytest.mark.parametrize("confidence", ["opaque", "seen", "looped"])
def test_what_is_not_verified_keeps_its_place_without_its_text(tmp_path: Path, confidence: Any) -> None:
    tree = {"t": Template(("The patient is Mr Smith: ", Ref("input", ("q",))))}
    path = saved(tmp_path, Node("a", OPS["decode"], tree, "site", evidence=Evidence(confidence)))
    assert "Smith" not in path.read_text()
    loaded = load(str(path)).learnt.by_name["a"]
    assert (loaded.site, loaded.evidence.confidence, loaded.input) == ("site", "opaque", None)


def test_what_holds_an_object_is_not_saved(tmp_path: Path) -> None:
    path = saved(tmp_path, Node("a", OPS["decode"], {"o": Opaque(object()), "t": "text"}, evidence=VERIFIED))
    assert "text" not in path.read_text()


def test_a_plan_names_no_class_but_what_is_asked_for() -> None:
    """Names come from a file, and what they name is called."""
    assert class_named("collections.OrderedDict", dict) is OrderedDict
    for name in ("subprocess.Popen", "collections.nothing", "nowhere.OrderedDict", "OrderedDict", ""):
        with pytest.raises(LookupError):
            class_named(name, dict)


def test_names_of_classes_that_are_loaded_are_no_text_of_a_program() -> None:
    """Those of a plan that another process has saved, too, of which none was seen here."""
    assert is_class_name("$tuple", "collections.OrderedDict")
    assert not is_class_name("content", "collections.OrderedDict") and not is_class_name("$tuple", "Mr. Smith")


def test_a_missing_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"There is no plan at .*none\.json") as caught:
        load(str(tmp_path / "none.json"))
    assert "fast.save_plan(path)" in caught.value.remedy


@pytest.mark.parametrize(
    "text", ["", "{", "not json", "\x00", "[" * 100_000], ids=["empty", "cut", "words", "nul", "deep"]
)
def test_a_file_that_is_not_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="is not JSON"):
        load(str(path))


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"accel_plan": 0, "nodes": []}', '{"accel_plan": "1"}'])
def test_a_file_of_another_version(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="is not an Accel plan of version 16"):
        load(str(path))


@pytest.mark.parametrize("call", ["abcd", ["a", "b", "c"], {"a": 1, "b": 2, "c": 3, "d": 4}, [1, None, [], {}], None])
def test_a_call_that_is_none(tmp_path: Path, call: Any) -> None:
    path = saved(tmp_path, LIST)
    data = json.loads(path.read_text())
    data["calls"] = {"site": call}
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigurationError, match="damaged"):
        load(str(path))


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(data, dict | list):
        for key in data if isinstance(data, dict) else range(len(data)):
            found += places(data[key], (*path, key))
    return found


def damaged(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(data))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


def outcome(path: Path, data: Any) -> str:
    path.write_text(json.dumps(data))
    try:
        load(str(path))
    except ConfigurationError as error:
        return "damaged" if "damaged" in str(error) or "not an Accel plan" in str(error) else str(error)
    except Exception as error:  # noqa: BLE001 - the subject
        return f"{type(error).__name__}: {error}"
    return "loaded"


def test_a_damaged_node_is_named_as_damage(tmp_path: Path) -> None:
    path = saved(tmp_path, LIST, EACH)
    data = json.loads(path.read_text())
    for place, value in (
        (("nodes",), None), (("nodes", 0), 7), (("nodes", 1, "op"), "nope"), (("nodes", 1, "name"), "input"),
        (("nodes", 2, "input"), {"x": 1}), (("nodes", 2, "level"), {"domain": None}),
    ):  # fmt: skip
        assert outcome(path, damaged(data, place, value)) == "damaged", place


def test_any_damage_is_named_as_damage(tmp_path: Path) -> None:
    path = saved(tmp_path, LIST, EACH, SUM, VOTE)
    data = json.loads(path.read_text())
    found = {
        outcome(path, damaged(data, place, value))
        for place in places(data)
        if place
        for value in (None, 7, "x", [], {}, [[]], {"$": 3})
    }
    assert found <= {"damaged", "loaded"}


def test_dicts_in_which_a_program_looks_something_up_are_not_written(tmp_path: Path) -> None:
    """Of their texts a run uses one: the others may be anybody's."""
    found = Ref("list", ("content", Computed("look up", ("", "ann", "a note on Ann", "bob", "a note on Bob"))))
    path = saved(tmp_path, LIST, Node("look", OPS["decode"], Template(("About ", found)), "site", evidence=VERIFIED))
    assert "Ann" not in path.read_text()
    assert not load(str(path)).learnt.by_name["look"].predictable


@pytest.mark.parametrize("node", ["input", "list"])
@pytest.mark.parametrize(
    ("yes", "no", "written"),
    [
        ("maria", "tariq", False),
        ("it", "tariq", False),
        ("491701234567", "493055512345", False),
        ("it", "site", True),
        ("True", "False", True),
        ("3", "0", True),
    ],
)
def test_a_decision_by_somebodys_name_is_not_written(
    tmp_path: Path, yes: str, no: str, written: bool, node: str
) -> None:
    """What a run is given, or a model read, may be a name or an account; what the program says is none."""
    by = When(Ref(node, ("speaker", Verdict())), frozenset({yes}), frozenset({no}))
    text = saved(tmp_path, LIST, EACH, replace(ROWS, when=(by,))).read_text(encoding="utf-8")
    assert ("speaker" in text) is written and not any(word in text for word in ("maria", "tariq", "49"))


@pytest.mark.parametrize(("key", "written"), [("ann.smith@leeds.example", False), ("u4711", False), ("it", True)])
def test_what_stands_under_somebodys_address_is_not_written(tmp_path: Path, key: str, written: bool) -> None:
    """A program that goes by who asks has such keys in paths, not in texts."""
    asks = Node("asks", OPS["decode"], Template(("About ", Ref("list", ("content", key)))), "site", evidence=VERIFIED)
    decided = replace(ROWS, when=(When(Ref("list", (key, Verdict())), frozenset({"it"}), frozenset({"site"})),))
    text = saved(tmp_path, LIST, EACH, asks, decided).read_text(encoding="utf-8")
    assert (f'"{key}"' in text) is written
