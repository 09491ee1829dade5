"""In which contexts something was seen: dimension by dimension (`accel.trace.ambient`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256

from ...process import forks
from ...trace.ambient import Dimensions
from .addressed import FREE, is_question

MAX_DIMENSIONS = 256
"""Of one lesson; one that was seen with more is used nowhere."""
FEW = 3
"""Runs that show that a field has another value in each."""
MAX_VALUES = 8
"""Of one dimension; which of them were seen matters where two do not speak for all."""
MADE = "~="
"""How fields of components begin that are objects (`parts.fields`)."""
ABSENT = "="
"""The value of a dimension that a run does not have."""


@lru_cache(4_096)
def key_of(dimension: str) -> str:
    """Names may be somebody's, too: what is kept are digests of them."""
    return sha256(dimension.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(slots=True)
class SeenIn:
    """The values that runs had, by dimension."""

    runs: bool = False
    values: dict[str, list[str]] = field(default_factory=dict)
    free: set[str] = field(default_factory=set)
    """Dimensions of which two values were seen that can be compared."""
    anew: set[str] = field(default_factory=set)
    """Those in which runs had an object of their own each."""
    again: set[str] = field(default_factory=set)
    """Dimensions of which a value came back while another dimension had a new one: they tell runs apart."""

    def note(self, context: Dimensions) -> None:
        """A run in this context has shown it. Once there are too many dimensions, no more is kept: see `differs_in`."""
        if len(self.values) > MAX_DIMENSIONS:
            return
        told = {key_of(name): value for name, value in context.items()}
        came_back = {key for key, value in told.items() if value in self.values.get(key, ())}
        if len(came_back) < len(told):
            self.again |= came_back
        for key in {**self.values, **told}:
            seen = self.values.setdefault(key, [ABSENT] if self.runs else [])
            value = told.get(key, ABSENT)
            if value not in seen:
                seen.append(value)
                if sum(known.startswith("=") for known in seen) > 1:
                    self.free.add(key)
                if sum(known.startswith(MADE) for known in seen) > 1:
                    self.anew.add(key)
                del seen[:-MAX_VALUES]
            if len(self.values) > MAX_DIMENSIONS:
                break
        self.runs = True

    def differs_in(self, context: Dimensions, exactly: bool, ever_new: bool = False) -> str | None:
        """A dimension in which this context is none of them; None if there is none. `exactly`: other values prove
        nothing; `ever_new`: but for those of a dimension of which each run so far had another."""
        if not self.runs or len(self.values) > MAX_DIMENSIONS:
            return "whatever comes in beside the input"
        told = {key_of(name): (name, value) for name, value in context.items()}
        for key in {**self.values, **told}:
            name, value = told.get(key, ("a value that this run does not have", ABSENT))
            seen = self.values.get(key, (ABSENT,))
            if value in seen or self._is_free(key, value):
                continue
            if ever_new and self.is_ever_new(key):
                continue
            if not exactly and (key in self.free or (key in self.anew and value.startswith(MADE))):
                continue
            return name
        return None

    def is_ever_new(self, key: str) -> bool:
        """Whether every run had another value there."""
        return len(self.values.get(key, ())) >= FEW and key not in self.again

    def _is_free(self, key: str, value: str) -> bool:
        """Whether it is a text, and each run so far had another there."""
        texts = [seen for seen in self.values.get(key, ()) if seen.startswith(FREE)]
        return value.startswith(FREE) and len(texts) > 1 and key not in self.again


@dataclass(slots=True)
class Known:
    """Of a node."""

    asked: object
    """What the node asks for, and what decides whether it does."""
    chooses: bool = False
    """Whether what it asks for may go by what somebody may see (`has_flags`)."""
    seen_in: SeenIn = field(default_factory=SeenIn)
    foreign: bool | None = None
    """Whether its input holds text that is neither the program's nor a known value; None: nobody has looked."""
    seen_for: SeenIn = field(default_factory=SeenIn)
    """Whom such text was seen for (`addressed`)."""
    seen_with: SeenIn = field(default_factory=SeenIn)
    """The fields of the components that made its calls."""
    _no_other: tuple[Dimensions, bool | None] | None = None
    """The last component that was none other, and what was known then of foreign text."""

    def note(self, context: Dimensions, given: Dimensions, components: Iterable[Dimensions]) -> bool:
        """A run in this context has made its calls, with these components. Whether it has to be looked whether its text
        is foreign."""
        self.seen_in.note(context)
        for component in components:
            self.seen_with.note(component)
            self._no_other = None
        if self.foreign is not False or self.chooses:
            self.seen_for.note(given)
        differ = context or not is_question(given) or self.seen_with.free or self.seen_with.anew
        return self.foreign is None and bool(differ)

    def differs_in(self, context: Dimensions, given: Callable[[], Dimensions]) -> str | None:
        """A dimension, or a field of the input, that is new to it. `given`: asked where it matters."""
        dimension = self.seen_in.differs_in(context, exactly=self.foreign is not False)
        if dimension is None and (self.foreign or self.chooses):
            dimension = self.seen_for.differs_in(given(), exactly=True, ever_new=not self.foreign)
        return dimension

    def is_ever_new(self, field: str) -> bool:
        """Whether every run that it was seen in had another value of this field of the input."""
        return self.seen_for.is_ever_new(key_of(field))

    def is_other(self, component: Dimensions) -> str | None:
        """A field in which this component is none of those; None if there is none, or nobody noted any."""
        before = self._no_other
        if before is not None and before[0] is component and before[1] is self.foreign:
            return None  # as most are, of which this is asked with every call
        if not self.seen_with.runs:
            return None
        field = self.seen_with.differs_in(component, exactly=self.foreign is not False)
        self._no_other = (component, self.foreign) if field is None else None
        return field


class Places:
    """Where several things were seen, by name. Thread-safe."""

    def __init__(self) -> None:
        self._found: dict[str, SeenIn] = {}
        self._lock = forks.lock()

    def note(self, names: Iterable[str], context: Dimensions) -> None:
        """A run in this context has shown them."""
        with self._lock:
            for name in names:
                self._found.setdefault(name, SeenIn()).note(context)

    def forget(self, name: str) -> None:
        """It is something else from now on."""
        with self._lock:
            self._found.pop(name, None)

    def allow(self, name: str, context: Dimensions) -> bool:
        """Whether it may be counted on in this context."""
        with self._lock:
            return self._found.get(name, SeenIn()).differs_in(context, exactly=False) is None
