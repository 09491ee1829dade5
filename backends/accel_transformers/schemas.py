"""JSON schemas that xgrammar enforces in full.

It ignores many keywords and combinations without a word (tried with version 0.2.8): `multipleOf`, `uniqueItems`, bounds
without a type, keywords beside `$ref`, `anyOf` or `enum`, a required property that isn't listed … An answer would then
break its schema, so such a schema is refused instead. `oneOf` is taken for `anyOf`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from accel.errors import InvalidRequest

REMEDY = "leave that out of the schema and check it in the answer, or serve the model with vLLM (accel_vllm)"
ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
    + ("$schema", "$id", "$comment", "$defs", "definitions", "discriminator")
)
ALONE = ("$ref", "anyOf", "oneOf", "allOf", "enum", "const")
"""A schema that has one of these may have nothing else but annotations, and a type beside values."""
BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
BY_TYPE = {
    "object": frozenset(("properties", "required", "additionalProperties", "minProperties", "maxProperties")),
    "array": frozenset(("items", "prefixItems", "minItems", "maxItems")),
    "string": frozenset(("minLength", "maxLength", "pattern", "format")),
    "number": BOUNDS,
    "integer": BOUNDS,
    "boolean": frozenset[str](),
    "null": frozenset[str](),
}
FORMATS = frozenset(
    ("email", "date", "time", "date-time", "duration", "ipv4", "ipv6", "hostname", "uuid", "uri", "uri-reference")
    + ("uri-template", "json-pointer", "relative-json-pointer")
)
PYTHON_TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool,
    "null": type(None),
}  # fmt: skip


def check_schema(text: str) -> None:
    """Raise InvalidRequest if an answer that follows xgrammar's reading of the schema could still break it."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"The JSON schema is not JSON: {error}.") from error
    try:
        problem = next(_problems(schema, "#"), None)
    except (TypeError, AttributeError, RecursionError) as error:
        raise InvalidRequest(f"The JSON schema is not one: {error}.") from error
    if problem is not None:
        raise InvalidRequest(f"The JSON schema can't be enforced: {problem}.", REMEDY)


def _problems(schema: Any, place: str) -> Iterator[str]:
    if schema is True:
        return
    if not isinstance(schema, dict):
        yield f"{place} is {json.dumps(schema)}"
        return
    given = set(schema) - ANNOTATIONS
    alone = [name for name in ALONE if name in given]
    types = schema.get("type", [])
    types = types if isinstance(types, list) else [types]
    if alone:
        yield from _alone(schema, alone, given, types, place)
    else:
        known = frozenset(("type",)).union(*(BY_TYPE.get(str(name), frozenset()) for name in types))
        for name in sorted(given - known):
            yield f"{place} has {name!r}" + ("" if types else " without a type")
    if "string" in types and given & {"pattern", "format"} and len(given & BY_TYPE["string"]) > 1:
        yield f"{place} bounds a string in two ways"
    if "format" in given and schema["format"] not in FORMATS:
        yield f"{place} has the format {schema['format']!r}"
    properties = schema.get("properties", {})
    if isinstance(properties, dict):
        for name in schema.get("required", ()):
            if name not in properties:
                yield f"{place} requires {name!r}, which is not among its properties"
    yield from _inside(schema, place)


def _alone(schema: dict[str, Any], alone: list[str], given: set[str], types: list[Any], place: str) -> Iterator[str]:
    """A schema that is a reference, alternatives or values."""
    name = alone[0]
    allowed = {name, "type"} if name in ("enum", "const") else {name}
    for other in sorted(given - allowed):
        yield f"{place} has {other!r} beside {name!r}"
    if name == "allOf" and len(schema["allOf"]) != 1:
        yield f"{place} has several schemas in 'allOf'"
    if "type" in given and name in ("enum", "const"):
        values = schema["enum"] if name == "enum" else [schema["const"]]
        for value in values:
            if not any(_is_of(value, str(known)) for known in types):
                yield f"{place} allows {json.dumps(value)}, which is not of its type"


def _is_of(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, float) and value.is_integer() and name == "integer":
        return True
    return isinstance(value, PYTHON_TYPES.get(name, ()))


def _inside(schema: dict[str, Any], place: str) -> Iterator[str]:
    for name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for number, inner in enumerate(schema.get(name, ())):
            yield from _problems(inner, f"{place}/{name}/{number}")
    for name in ("properties", "$defs", "definitions"):
        for key, inner in schema.get(name, {}).items():
            yield from _problems(inner, f"{place}/{name}/{key}")
    for name in ("items", "additionalProperties"):
        if schema.get(name, False) is not False:
            yield from _problems(schema[name], f"{place}/{name}")
