"""LlamaIndex's metadata filters as what a vector store's engine understands: metadata that a record must contain."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from accel.errors import InvalidRequest

Where = dict[str, Any]
"""Keys with the values a record must have: a scalar equals; a list is part of the record's list."""

MOST_ALTERNATIVES = 256
"""Each one is a search of its own."""

_SUPPORTED = "supported: == and in (text or a number), contains, any and all (lists), combined by and / or"


def alternatives(filters: MetadataFilters | None) -> list[Where]:
    """A record passes the filters if it contains one of these; [{}] lets all pass, [] none.

    Raises InvalidRequest for filters that can't be said that way.
    """
    if filters is None or not filters.filters:
        return [{}]
    parts = [alternatives(part) if isinstance(part, MetadataFilters) else _of_one(part) for part in filters.filters]
    if filters.condition in (None, FilterCondition.AND):
        return both(*parts)
    if filters.condition == FilterCondition.OR:
        return _bounded(itertools.chain.from_iterable(parts))
    raise _unsupported(f"the condition {filters.condition.value!r}")


def both(*parts: Sequence[Where]) -> list[Where]:
    """What contains one of each part."""
    found: list[Where] = [{}]
    for part in parts:
        pairs = itertools.product(found, part)
        found = _bounded(merged for one, other in pairs if (merged := _merged(one, other)) is not None)
    return found


def passes(metadata: Mapping[str, Any], where: Where) -> bool:
    """Whether a record's metadata contains this, as the engines see it."""
    return all(key in metadata and _contains(metadata[key], wanted) for key, wanted in where.items())


def _of_one(part: MetadataFilter) -> list[Where]:
    key, value = part.key, part.value
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str | int) or (isinstance(one, float) and math.isfinite(one)) for one in values):
        raise _unsupported(f"{key!r} {part.operator.value} {value!r}")
    match part.operator, isinstance(value, list):
        case FilterOperator.EQ, False:
            return [{key: value}]
        case FilterOperator.IN, True:
            return [{key: one} for one in values]
        case (FilterOperator.CONTAINS, False) | (FilterOperator.ALL, True):
            return [{key: list(values)}]
        case FilterOperator.ANY, True:
            return [{key: [one]} for one in values]
    raise _unsupported(f"{key!r} {part.operator.value} {value!r}")


def _merged(one: Where, other: Where) -> Where | None:
    """What contains both; None if nothing can."""
    merged = dict(one)
    for key, wanted in other.items():
        held = merged.get(key)
        if key not in merged or _contains(wanted, held):
            merged[key] = wanted
        elif isinstance(held, list) and isinstance(wanted, list):
            merged[key] = [*held, *wanted]
        else:
            return None  # two values at once, or a value and a list
    return merged


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return isinstance(value, list) and all(any(_contains(one, other) for one in value) for other in wanted)
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)


def _bounded(found: Iterable[Where]) -> list[Where]:
    distinct: list[Where] = []
    for where in found:
        if where not in distinct:
            distinct.append(where)
        if len(distinct) > MOST_ALTERNATIVES:
            raise InvalidRequest(
                f"The filters stand for more than {MOST_ALTERNATIVES} alternatives.", "ask for fewer values at once"
            )
    return distinct


def _unsupported(what: str) -> InvalidRequest:
    return InvalidRequest(f"AccelVectorStore cannot filter by {what}.", _SUPPORTED)
