"""What Accel may do with a component, and what the built-in table says of a class beyond that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypedDict


class Said(TypedDict, total=False):
    """What users may say of a component (`accel.register`); see `Facts`."""

    pure: bool
    concurrency: int
    local: bool
    readonly: bool
    elementwise: bool
    streams_equal: bool
    twins: bool
    prefix_caching: bool
    deterministic: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What Accel may do with a component. `None` means that nobody said."""

    pure: bool | None = None
    """Answers don't depend on earlier calls and a call changes nothing (a sample counts as an answer)."""
    concurrency: int | None = None
    """How many threads or tasks may be inside one instance."""
    local: bool | None = None
    """Input stays on this machine or network."""
    readonly: bool | None = None
    """A read: nobody changes what it reads during a run, so an early read may stand for the program's own."""
    owned: bool | None = None
    """All writes to it pass through Accel's own classes."""
    elementwise: bool | None = None
    """A batch gives what its elements give alone."""
    streams_equal: bool | None = None
    """Merged chunks equal the unstreamed message."""
    twins: bool | None = None
    """Sync and async methods of one family give the same: one may answer for the other."""
    prefix_caching: bool | None = None
    """Its server keeps the beginnings of prompts that it has read, at no price, and is the user's own."""
    deterministic: bool | None = None
    """Equal calls give equal answers, whenever they are made, and change nothing."""
    reason: str = ""

    def over(self, other: Facts) -> Facts:
        """These facts, completed by `other`."""
        known = {field.name: getattr(self, field.name) for field in fields(Facts)}
        merged = {name: getattr(other, name) if value is None else value for name, value in known.items()}
        better = self.pure is None and other.pure is not None
        return Facts(**{**merged, "reason": other.reason if better else self.reason or other.reason})


@dataclass(frozen=True, slots=True)
class Near:
    """How to tell that a store is in this process: what holds it is of these classes, and keeps it in a folder."""

    held: Mapping[str, str]
    """By attribute, the full name of the class; empty: nothing may be there. The first one must be there."""
    place: str = ""
    """Where the holder says where it keeps it: in this process, or in a folder, unless that is an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Facts):
    """What the built-in table says of a class."""

    kind: str
    """What it is for people: a chat model, a vector store."""
    families: tuple[str, ...]
    """The method families that the facts hold for; see `accel.parts.methods.methods.Method`."""
    addresses: tuple[str, ...] | None
    """Where an instance keeps the addresses that its data goes to: attributes and keys, joined by dots. Empty for what
    stays in this process or always goes to one public service; None where nobody knows."""
    works_with: tuple[str, ...] = ()
    """Attributes whose objects it calls, and which a program may have made: nobody vouches for code of its own."""
    inside: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Attributes that hold the store itself, and the classes, by their full names, that keep it in this process."""
    embeds: str = ""
    """Attribute that holds what embeds its queries: a component, or nobody vouches for its searches."""
    limit: str = ""
    """The field that says how many tokens an answer may have, of a client of servers that may keep prefixes."""
    passes_on: bool = False
    """The class's own methods hand their calls to those of the class below it (`super()`), which are the leaves."""
