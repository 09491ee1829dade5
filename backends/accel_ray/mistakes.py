"""What is wrong in a `backend.yaml`: where, what was found there, what is allowed, and the remedy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from accel.errors import ConfigurationError

Names = tuple[str, ...]
"""The way to a field: ("engines", "llm", "replicas")."""

_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Mistake:
    """`what` goes on after the field's name: "is -1"."""

    field: Names
    what: str
    remedy: str
    line: int | None = None

    @property
    def said(self) -> str:
        return f"{'.'.join(self.field) or 'the file'} {self.what}."


class WrongBackendFile(ConfigurationError):
    """A `backend.yaml` that can't be meant. `mistakes`: all that were found."""

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        self.file = file
        self.mistakes = tuple(mistakes)
        places = [file if mistake.line is None else f"{file}:{mistake.line}" for mistake in mistakes]
        if len(mistakes) == 1:
            super().__init__(f"{places[0]}: {mistakes[0].said}", mistakes[0].remedy)
            return
        each = [f"  {at}: {one.said} {one.remedy}" for at, one in zip(places, mistakes, strict=True)]
        super().__init__("\n".join([f"{file} has {len(mistakes)} mistakes:", *each]), "Correct them all.")


def one_of(known: Iterable[str], given: object = None, they: str = "There are") -> str:
    """The remedy for a name: the one that was meant, if one is close, and all there are."""
    names = list(known)
    close = get_close_matches(given, names, n=1) if isinstance(given, str) else []
    meant = f"Did you mean {close[0]!r}? " if close else ""
    return f"{meant}{they} {', '.join(names)}."


def found(value: Any, *, secret: bool = False) -> str:
    """What a field has, in words; nothing that may be a secret, nor much of anything."""
    match value:
        case None:
            return "is empty"
        case bool():
            return f"is {str(value).lower()}"
        case int() | float() if not secret:
            return f"is {value}"
        case str() if not secret and len(value) <= _LONGEST and "@" not in value:
            return f"is {value!r}"
        case str():
            return "is a text"
        case Mapping():
            return "is a mapping"
        case Sequence():
            return "is a list"
        case _:
            return f"is a {type(value).__name__}"


_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


def allowed(hint: Any, limits: Iterable[Any] = ()) -> str:
    """What a field may have, in words. limits: those of a field of pydantic."""
    held = {name: getattr(each, name) for each in limits for name in ("ge", "le", "min_length") if hasattr(each, name)}
    if get_origin(hint) in (Union, UnionType):
        kinds = [allowed(each, limits) for each in get_args(hint) if each is not NoneType]
        return f"{' or '.join(kinds)}{',' if 'least' in kinds[-1] else ''} or null"
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return f"a mapping with {', '.join(hint.model_fields)}"
    if get_origin(hint) is dict:
        return "a mapping"
    word = _WORDS.get(hint, "a text")
    if "le" in held:
        return f"{word} from {held['ge']} to {held['le']}"
    if "ge" in held:
        return f"{word}, at least {held['ge']}"
    return f"{word} that isn't empty" if "min_length" in held else word
