"""What a simulated model answers under a constraint: always something that keeps it, or a refusal."""

import json
import re
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.engine import Constraint, Sampling
from accel.errors import InvalidRequest, MissingExtra
from accel_sim.answers import answer


def constrained(kind: Any, value: Any, prompt: str = "Tell me about boats.") -> str:
    return answer(prompt, Sampling(constraint=Constraint(kind, value)))


def test_choices() -> None:
    assert {constrained("choice", ("a b", "c"), f"{n}") for n in range(20)} == {"a b", "c"}
    for wrong in ((), "abc"):
        with pytest.raises(InvalidRequest):
            constrained("choice", wrong)


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas that have instances."""
    low = st.integers(-1000, 1000)
    leaves = st.one_of(
        st.sampled_from([{}, {"type": "boolean"}, {"type": "null"}, {"const": {"a": [1]}}, {"enum": ["x", 2, None]}]),
        st.tuples(low, st.integers(0, 50)).map(lambda t: {"type": "integer", "minimum": t[0], "maximum": t[0] + t[1]}),
        st.tuples(low, st.integers(1, 9)).map(
            lambda t: {"type": "number", "exclusiveMinimum": t[0], "exclusiveMaximum": t[0] + t[1] / 8}
        ),
        low.map(lambda n: {"type": "integer", "exclusiveMinimum": n, "multipleOf": 7}),
        low.map(lambda n: {"type": "number", "maximum": n, "multipleOf": 0.5}),
        st.tuples(st.integers(0, 80), st.integers(0, 20)).map(
            lambda t: {"type": "string", "minLength": t[0], "maxLength": t[0] + t[1]}
        ),
        st.just({"type": "string", "pattern": "^[a-z]{2,4}-[0-9]+$"}),
        st.just({"type": ["string", "null"], "description": "'yes' or 'no'"}),
        st.just({"$ref": "#/$defs/tree"}),
    )
    names = st.sampled_from(["a", "b", "summary", "is it", "ü"])

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.tuples(st.dictionaries(names, inner, max_size=4), st.booleans()).map(
                lambda t: {
                    "type": "object",
                    "properties": t[0],
                    "required": list(t[0])[::2],
                    "additionalProperties": t[1],
                }
            ),
            st.tuples(inner, st.integers(0, 3), st.integers(0, 3)).map(
                lambda t: {"type": "array", "items": t[0], "minItems": t[1], "maxItems": t[1] + t[2]}
            ),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"type": "array", "prefixItems": parts}),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
            inner.map(lambda part: {"allOf": [part, {"title": "One"}]}),
            st.tuples(names, inner).map(lambda t: {"type": "object", "additionalProperties": t[1], "required": [t[0]]}),
        )

    tree = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            "next": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
        },
        "required": ["name", "next"],
    }
    return st.recursive(leaves, nested, max_leaves=6).map(lambda schema: {"$defs": {"tree": tree}, "allOf": [schema]})


@settings(max_examples=150, deadline=None)
@given(schemas(), st.integers(0, 5))
def test_schemas_are_filled(schema: dict[str, Any], n: int) -> None:
    value = json.loads(constrained("json_schema", json.dumps(schema), f"Boat {n}"))
    jsonschema.Draft202012Validator(schema).validate(value)


def test_schemas_of_pydantic_are_filled() -> None:
    schema = {
        "$defs": {"Grade": {"enum": ["good", "bad"], "type": "string"}},
        "properties": {
            "verdict": {"description": "Relevant? 'yes' or 'no'", "type": "string"},
            "grade": {"$ref": "#/$defs/Grade", "description": "of the answer"},
            "both": {"allOf": [{"$ref": "#/$defs/Grade"}, {"enum": ["bad"]}]},
            "mapping": {"additionalProperties": {"type": "integer"}, "type": "object"},
            "tags": {"items": {"enum": ["a", "b", "c"]}, "type": "array", "uniqueItems": True, "minItems": 3},
            "oneof": {"oneOf": [{"type": "integer"}, {"type": "number", "maximum": 0.5, "minimum": 0.25}]},
        },
        "required": ["verdict", "grade", "both", "mapping", "tags", "oneof"],
        "type": "object",
    }
    for n in range(20):
        value = json.loads(constrained("json_schema", json.dumps(schema), f"Boat {n}"))
        jsonschema.Draft202012Validator(schema).validate(value)
        assert value["verdict"] in ("yes", "no") and value["both"] == "bad" and value["mapping"]


@pytest.mark.parametrize(
    "schema",
    [
        "not JSON", "5", '{"type": 7}', '{"required": "a"}', "false", '{"enum": []}',
        '{"type": "integer", "minimum": 3, "maximum": 2}', '{"type": "string", "minLength": 3, "maxLength": 2}',
        '{"type": "array", "items": false, "minItems": 1}', '{"$ref": "#/$defs/missing"}', '{"$ref": "#"}',
        '{"$ref": "https://example.org/schema"}', '{"not": {}}', '{"allOf": [{"type": "string"}, {"type": "null"}]}',
        '{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}',
        '{"type": "string", "pattern": "("}', '{"type": "integer", "enum": ["a"]}',
    ],
)  # fmt: skip
def test_schemas_without_instances_are_refused(schema: str) -> None:
    with pytest.raises(InvalidRequest):
        constrained("json_schema", schema)


classes = st.sampled_from(["a", "[0-9]", "[^,]", r"\d", r"\W", r"\s", ".", r"\.", "é", "(?:x|yz)", "[a-c-]"])
repeats = st.sampled_from(["", "*", "+", "?", "{2}", "{1,3}", "{120}", "+?"])  # not nested: `re` would take too long
pieces = st.recursive(
    st.tuples(classes, repeats).map("".join),
    lambda inner: st.one_of(st.tuples(inner, inner).map("".join), st.tuples(inner, inner).map("(?:%s|%s)".__mod__)),
    max_leaves=5,
)


@settings(max_examples=100, deadline=None)
@given(pieces, st.integers(0, 5))
def test_regular_expressions_are_matched(pattern: str, n: int) -> None:
    assert re.fullmatch(pattern, constrained("regex", pattern, f"Boat {n}"))


@pytest.mark.parametrize("pattern", ["(", "[", "a(?!.*)b", "(?=b)a", "(?:a{300}){300}"])
def test_impossible_regular_expressions_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidRequest):
        constrained("regex", pattern)


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rstr", None)
    with pytest.raises(MissingExtra, match=r"accelgraph\[sim\]"):
        constrained("regex", "a")
