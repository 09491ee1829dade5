"""Values for a JSON schema: mostly valid by construction, and checked at the end."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any
from urllib.parse import unquote

from accel.errors import InvalidRequest, MissingExtra

from . import instructions
from .matching import matching
from .prose import Writer

_ATTEMPTS = 8  # what is not by construction (`not`, `if`, `uniqueItems` ...) may come out by chance
_DEEP = 6  # from here on only what must be
_DEEPEST = 32
_PIECES = 4000
_LONG = frozenset(
    "answer summary explanation reasoning content text body report feedback analysis rationale conclusion".split()
)
_FORMATS = {
    "date": "2024-05-17",
    "time": "10:30:00Z",
    "date-time": "2024-05-17T10:30:00Z",
    "email": "someone@example.org",
    "uri": "https://example.org/page",
    "uuid": "6f1ed002-ab59-4e2c-9f3e-2d6c5a1b7c48",
}


def instance(schema: str, writer: Writer) -> Any:
    """A value that is valid for a JSON schema given as JSON text, its texts written by `writer`. Raises InvalidRequest
    for what is no schema, or one that can't be filled."""
    validator = _validator(schema)
    for _ in range(_ATTEMPTS):
        try:
            value = _Filling(validator.schema, writer).fill(validator.schema, 0)
        except _Unfillable as error:
            raise InvalidRequest(f"No value was found for the JSON schema: {error}.") from error
        if _is_valid(validator, value):
            return value
    raise InvalidRequest("No value was found for the JSON schema.", "a simulated model fills plain schemas only")


@functools.lru_cache(maxsize=256)
def _validator(text: str) -> Any:
    try:
        import jsonschema
        import referencing
    except ImportError as error:
        raise MissingExtra("JSON from a simulated model", "sim", error.name or "") from error
    try:
        schema = json.loads(text)
        jsonschema.Draft202012Validator.check_schema(schema)
    except (ValueError, TypeError, RecursionError, jsonschema.SchemaError) as error:
        reason = str(getattr(error, "message", error))
        raise InvalidRequest(f"That is no JSON schema: {reason}") from error
    # An empty registry: a reference to elsewhere must not reach for the network.
    return jsonschema.Draft202012Validator(schema, registry=referencing.Registry())


def _is_valid(validator: Any, value: Any) -> bool:
    from referencing.exceptions import Unresolvable

    try:
        return bool(validator.is_valid(value))
    except (Unresolvable, RecursionError, re.error) as error:
        raise InvalidRequest(f"The JSON schema can't be applied: {error}") from error


class _Unfillable(Exception):
    """No value satisfies this schema, as far as we look."""


class _Filling:
    def __init__(self, root: Any, writer: Writer) -> None:
        self._root = root
        self._writer = writer
        self._dice = writer.dice
        self._left = _PIECES

    def fill(self, schema: Any, depth: int, name: str = "") -> Any:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise _Unfillable("it is too deep or too large")
        if schema is False:
            raise _Unfillable("nothing is allowed")
        if schema is True:
            schema = {}
        if "$ref" in schema:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            return self.fill(_both(self._resolve(schema["$ref"]), rest), depth + 1, name)
        if schema.get("allOf"):
            joined: Any = {key: value for key, value in schema.items() if key != "allOf"}
            for part in schema["allOf"]:
                joined = _both(joined, part)
            return self.fill(joined, depth + 1, name)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                rest = {other: value for other, value in schema.items() if other != key}
                return self._any([_both(rest, part) for part in schema[key]], depth, name)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            if not schema["enum"]:
                raise _Unfillable("an enum is empty")
            return self._dice.choice(schema["enum"])
        if isinstance(schema.get("type"), list):
            return self._any([{**schema, "type": kind} for kind in schema["type"]], depth, name)
        kind = schema.get("type") or _kind_of(schema)
        if kind == "string":
            return self._string(schema, name)
        if kind in ("integer", "number"):
            return self._number(schema, kind == "integer")
        if kind == "boolean":
            return self._dice.random() < 0.5
        if kind == "null":
            return None
        return self._array(schema, depth) if kind == "array" else self._object(schema, depth)

    def _resolve(self, reference: str) -> Any:
        if reference != "#" and not reference.startswith("#/"):
            raise _Unfillable(f"{reference!r} is not in it")
        found = self._root
        for step in reference[2:].split("/") if len(reference) > 1 else ():
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(key)] if isinstance(found, list) else found[key]
            except (KeyError, IndexError, ValueError, TypeError):
                raise _Unfillable(f"{reference!r} is not in it") from None
        if not isinstance(found, dict | bool):
            raise _Unfillable(f"{reference!r} is no schema")
        return found

    def _any(self, alternatives: Sequence[Any], depth: int, name: str) -> Any:
        order = self._dice.sample(alternatives, len(alternatives))
        rather_null = self._dice.random() < 0.15
        order.sort(key=lambda part: (_is_null(part) and not rather_null, 0))
        if depth > _DEEP:
            order.sort(key=_weight)
        failure = _Unfillable("there is no alternative")
        for part in order:
            try:
                return self.fill(part, depth + 1, name)
            except _Unfillable as error:
                failure = error
        raise failure

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = list(dict.fromkeys(schema.get("required", ())))
        other = schema.get("additionalProperties", True)
        optional = [key for key in properties if key not in required and properties[key] is not False]
        room = schema.get("maxProperties", len(properties) + len(required)) - len(required)
        wanted = schema.get("minProperties", 0)
        chosen = set(required)
        for key in optional:
            if room > 0 and (len(chosen) < wanted or (depth <= _DEEP and self._dice.random() < 0.8)):
                chosen.add(key)
                room -= 1
        filled = {}
        for key in [*properties, *(key for key in required if key not in properties)]:
            if key in chosen:
                try:
                    filled[key] = self.fill(properties.get(key, other), depth + 1, key)
                except _Unfillable:
                    if key in required:
                        raise
        if not properties and isinstance(other, dict) and depth <= _DEEP:  # a mapping
            most = schema.get("maxProperties", 3)
            wanted = max(wanted, min(most, self._dice.randint(1, 3)))
        for number in range(len(filled), wanted):
            key = self._writer.phrase(1, 1)
            filled[key if key not in filled else f"{key} {number}"] = self.fill(other, depth + 1)
        return filled

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        first = schema.get("prefixItems", [])
        items = schema.get("items", True)
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", max(least, len(first), 4))
        if items is False:
            most = min(most, len(first))
        if least > most:
            raise _Unfillable("an array is to be longer than it may be")
        typical = max(least, len(first)) if depth > _DEEP else max(least, self._dice.randint(2, 4))
        filled: list[Any] = []
        for number in range(min(typical, most)):
            part = first[number] if number < len(first) else items
            try:
                value = self.fill(part, depth + 1)
                for _ in range(20 if schema.get("uniqueItems") else 0):
                    if value not in filled:
                        break
                    value = self.fill(part, depth + 1)
            except _Unfillable:
                if number < least:
                    raise
                break
            if schema.get("uniqueItems") and value in filled:
                break  # the values have run out: perhaps these are enough
            filled.append(value)
        return filled

    def _string(self, schema: dict[str, Any], name: str) -> str:
        if "pattern" in schema:
            return matching(schema["pattern"], self._dice, re.search)
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
        if least > most:
            raise _Unfillable("a text is to be longer than it may be")
        said = str(schema.get("description", ""))
        if instructions.yes_no(said):
            text = "yes" if self._dice.random() < 0.7 else "no"
        elif answers := instructions.options(said):
            text = self._dice.choice(answers)
        else:
            text = self._writer.prose(self._dice.randint(15, 40)) if name.lower() in _LONG else self._writer.phrase()
        while len(text) < least:
            text += " " + self._writer.phrase()
        if len(text) > max(least, min(most, len(text))):
            text = text[: int(most)]
            if len(text.rstrip()) >= least:
                text = text.rstrip()
        return text

    def _number(self, schema: dict[str, Any], whole: bool) -> int | float:
        low: float = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
        high: float = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))

        def allowed(number: float) -> bool:
            above = number > low or (number == low and schema.get("exclusiveMinimum", -math.inf) < low)
            return above and (number < high or (number == high and schema.get("exclusiveMaximum", math.inf) > high))

        start = low if low > -math.inf else min(0, high - 100) if high < math.inf else 0
        end = high if high < math.inf else start + 100
        step = Fraction(str(schema["multipleOf"])) if "multipleOf" in schema else Fraction(1 if whole else 0)
        if step:
            step = Fraction(step.numerator) if whole else step  # whole multiples of p/q are the multiples of p
            first, last = math.ceil(Fraction(start) / step), math.floor(Fraction(end) / step)
            first += not allowed(first * step)  # type: ignore[arg-type]
            last = max(last, first) if high == math.inf else last - (not allowed(last * step))  # type: ignore[arg-type]
            if first > last:
                raise _Unfillable("a number's bounds leave nothing")
            number = step * self._dice.randint(first, last)
            return int(number) if number.denominator == 1 else float(number)
        drawn = start + (end - start) * self._dice.random()
        for candidate in (round(drawn, 2), round(drawn, 6), drawn, start / 2 + end / 2, start, end):
            if allowed(candidate):
                return candidate
        raise _Unfillable("a number's bounds leave nothing")


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and (schema.get("type") == "null" or schema.get("const", 0) is None)


def _weight(schema: Any) -> int:
    """How much a schema is likely to hold, so that recursive ones come to an end."""
    if not isinstance(schema, dict) or "$ref" in schema or "allOf" in schema:
        return 2
    return 1 if schema.get("type", "object") in ("object", "array") and "enum" not in schema else 0


_KEYWORDS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


def _kind_of(schema: dict[str, Any]) -> str:
    """The type that an untyped schema is about."""
    return next((kind for kind, words in _KEYWORDS.items() if any(word in schema for word in words)), "string")


_HIGHER: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
    "required": lambda one, other: [*one, *other],
    "enum": lambda one, other: [value for value in one if value in other],
}


def _both(one: Any, other: Any) -> Any:
    """A schema for what two schemas allow."""
    if one is False or other is False:
        return False
    if one is True or other is True:
        return other if one is True else one
    joined = {**one, **other}
    for key in one.keys() & other.keys():
        a, b = one[key], other[key]
        if a == b:
            continue
        if key in _HIGHER:
            joined[key] = _HIGHER[key](a, b)
        elif key == "properties":
            joined[key] = {**a, **b, **{name: {"allOf": [a[name], b[name]]} for name in a.keys() & b.keys()}}
        elif key == "type":
            joined[key] = _common_types(a, b)
        elif key in ("items", "additionalProperties"):
            joined[key] = _both(a, b)
        elif key in ("$ref", "allOf", "anyOf", "oneOf", "const"):
            joined[key] = a
            joined["allOf"] = [*joined.get("allOf", []), *(b if key == "allOf" else [{key: b}])]
    return joined


def _common_types(one: Any, other: Any) -> Any:
    a, b = ({kind} if isinstance(kind, str) else set(kind) for kind in (one, other))
    common = a & b
    if "integer" in a | b and "number" in a | b:
        common.add("integer")
    return sorted(common)
