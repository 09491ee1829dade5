"""Values as they can be compared: generated ids, times and addresses are made equal, everything else is kept."""

from __future__ import annotations

import dataclasses
import re
from enum import Enum
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
GENERATED = re.compile(
    rf"(?:(?:lc_)?run-+)?{UUID}|\b[0-9a-f]{{32}}\b(?!\.\d)|sample-\d+|0x[0-9a-f]{{6,}}"
    r"|(?<=elapsed: )\d+\.\d+(?=s)|(?<=\b\d{32})\.[\d.e+-]+"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[+-]\d\d:?\d\d|Z)?"
)


def plain(value: Any, depth: int = 0) -> Any:
    """A copy of the value in lists, dicts and tuples of plain values, led by the type's name where it has one."""
    if isinstance(value, str):
        return GENERATED.sub("<generated>", str(value))
    if value is None or isinstance(value, bool | int | float | bytes):
        return value
    if depth > 12:
        return type(value).__name__
    if isinstance(value, dict):
        return {_key(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        kind = type(value).__name__ if type(value) not in (list, tuple) else "list"
        return [kind, *(plain(item, depth + 1) for item in value)]
    if isinstance(value, set | frozenset):
        return {"set": sorted((plain(item, depth + 1) for item in value), key=repr)}
    if isinstance(value, BaseException):
        parts = (value.args, getattr(value, "__notes__", []), value.__cause__, value.__context__)
        return (type(value).__name__, *(plain(part, depth + 1) for part in parts))
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, BaseMessage) and value.id is None:
        # A reducer gives it one, in place: before or after whoever reads the stream looks.
        value = value.model_copy(update={"id": "<generated>"})
    if isinstance(value, BaseModel):
        return type(value).__name__, plain(value.__dict__, depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {entry.name: getattr(value, entry.name, None) for entry in dataclasses.fields(value)}
        return type(value).__name__, plain(fields, depth + 1)
    return plain(repr(value))


def _key(key: Any) -> Any:
    return key if isinstance(key, int | float | bool) or key is None else plain(str(key))
