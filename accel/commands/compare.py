"""What two runs gave, as plain trees, and where these differ first.

Ids, times and addresses that no two runs share are set aside.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

_UUID = "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
GENERATED = re.compile(
    rf"(?:(?:lc_)?run-+)?\b{_UUID}\b|0x[0-9a-f]{{6,}}"
    r"|\b(?:chatcmpl|cmpl|msg|resp|gen|call|toolu|fc|rs)[-_](?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{8,}"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?|\b\d\d:\d\d:\d\d(?:\.\d+)?\b"
)
"""Made-up ids, those of providers and addresses of objects among them, and times of day."""
SHOWN = 120
_MAX_DEPTH = 24
_CLASS = "$class"


def plain(value: Any, view: Callable[[Any], Any], depth: int = 0) -> Any:
    """A value in dicts, lists, tuples and atoms. `view`: takes a framework's objects apart, gives others back."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return GENERATED.sub("…", str(value))
    if value is None or isinstance(value, bool | int | float | bytes):
        return value
    if depth > _MAX_DEPTH:
        return type(value).__name__
    seen = view(value)
    if seen is not value:
        return plain(seen, view, depth + 1)
    if isinstance(value, Mapping):
        return {_key(key): plain(item, view, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [plain(item, view, depth + 1) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, set | frozenset):
        return {"$set": sorted((plain(item, view, depth + 1) for item in value), key=repr)}
    if isinstance(value, BaseException):
        return {_CLASS: type(value).__name__, "args": plain(list(value.args), view, depth + 1)}
    fields = _fields(value)
    if fields is not None:
        return {_CLASS: type(value).__name__, **plain(fields, view, depth + 1)}
    return GENERATED.sub("…", repr(value))


def _fields(value: Any) -> dict[str, Any] | None:
    if isinstance(value, type | Enum) or callable(value):
        return None
    if isinstance(getattr(type(value), "model_fields", None), dict):
        return {**{name: getattr(value, name, None) for name in type(value).model_fields}, **(value.model_extra or {})}
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    return None


def _key(key: Any) -> Any:
    return key if isinstance(key, int | float | bool) or key is None else GENERATED.sub("…", str(key))


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """Where two runs differ first."""

    path: str
    unmodified: str
    accelerated: str

    def __str__(self) -> str:
        return f"{self.path}\n    unmodified:  {self.unmodified}\n    accelerated: {self.accelerated}"


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


def difference(one: Any, other: Any, path: str = "") -> Difference | None:
    """Where plain values differ first, in their own order; None if they are equal."""
    if type(one) is type(other):
        pairs = list(_pairs(one, other, path))
        if pairs:
            return next((found for each in pairs if (found := difference(*each)) is not None), None)
        if one == other or (one != one and other != other):
            return None
    return Difference(path.lstrip(".") or "the whole", *_shown(one, other))


def _pairs(one: Any, other: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    if isinstance(one, dict):
        for key in {**one, **other}:
            name = f".{key}" if isinstance(key, str) and re.fullmatch(r"[\w$]+", key) else f"[{key!r}]"
            yield one.get(key, _NOTHING), other.get(key, _NOTHING), path + name
    elif isinstance(one, list | tuple):
        for number in range(max(len(one), len(other))):
            mine, theirs = (each[number] if number < len(each) else _NOTHING for each in (one, other))
            yield mine, theirs, f"{path}[{number}]"


def _shown(one: Any, other: Any) -> tuple[str, str]:
    """Both shortened; of long texts, from a little before where they differ."""
    if not (isinstance(one, str) and isinstance(other, str)):
        return shortened(one), shortened(other)
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    begin = max(0, same - SHOWN // 3) if max(len(one), len(other)) > SHOWN else 0
    dots = "..." if begin else ""
    return dots + shortened(one[begin:]), dots + shortened(other[begin:])


def shortened(value: Any, most: int = SHOWN) -> str:
    """On one line."""
    return _cut(repr(value), most)


def error_in_words(name: str, said: str) -> str:
    """An error's class and its message, on one line."""
    return _cut(": ".join(filter(None, (name, " ".join(said.split())))), 2 * SHOWN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
