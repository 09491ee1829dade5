"""What must be equal for two components to count as the same one (invariant 3)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...text.objects import is_a
from ...text.values import Opaque, exactly
from ..listed.table import listed
from ..program.kept import is_called_by_libraries, kept_by_itself, noted_of_its_own, only_noted
from .clients import Identity, Record, is_client, is_connection, recorded
from .looks import ATOMS, Known, Look, derived_of, is_session, is_setting, note_assigned, own_bases
from .reads import NOTHING, Reads, reads_of
from .surroundings import otherwise
from .watch import Watch


def identity_of(component: Any, by_object: bool) -> Hashable:
    """A component as it is now.

    `by_object`: stores, retrievers, tools are themselves only, with what their clients send and, of classes of the
    program's own, with fields of plain data (a tenant, a filter) that no call counts or keeps. Clients: class plus
    all fields, secrets by value. What is worked out from fields and kept (a `cached_property`) says nothing of its own,
    and appears with the first use.
    """
    return Identities().of(component, by_object)


Read = dict[int, tuple[Reads, Watch]]
"""By id of a component, what its code reads, and what was looked through to see that: both at once, as threads look at
the same time."""


class Identities:
    """Of the components of one run. What holds the same objects again is not looked into again. `seen`: how some of the
    components were before, by id."""

    def __init__(self, seen: Mapping[int, Seen] | None = None) -> None:
        self._seen = dict(seen or {})
        self._known: Known = {}
        self._read: Read = {}
        """With the run it is forgotten what components noted of their calls: others go through the same ones."""

    def of(self, component: Any, by_object: bool) -> Hashable:
        """See `identity_of`. Equal to nothing where what it holds raises when it is looked at."""
        try:
            seen = self._seen.get(id(component))
            if seen is None or seen.by_object != by_object:
                seen = self._seen[id(component)] = Seen(component, by_object)
            return seen.now(self._known, self._read)
        except Exception:  # noqa: BLE001 - the program, which may never ask this of its object, is not to see it
            return Opaque(object())

    def reads(self, component: Any) -> Reads:
        """What its code reads, as of the last look here."""
        seen = self._seen.get(id(component))
        return seen.reads if seen is not None else NOTHING

    def thread_local(self, component: Any) -> str:
        """The name of a `threading.local` that its code reads, as it is now."""
        seen = self._seen.get(id(component))
        return (seen.looked_through(self._read) if seen is not None else reads_of(component)).thread_local

    def untouched(self, component: Any) -> bool:
        """Whether nobody has changed its clients since they were first looked at, as of the last look here."""
        seen = self._seen.get(id(component))
        return seen is None or not any(record.changed for record in seen.records)

    def is_as_ever(self, component: Any) -> bool:
        """The same, and whether nobody has changed what its code reads."""
        return self.untouched(component) and not self.reads(component).changed

    def is_restless(self, component: Any) -> bool:
        """Whether somebody has changed either within a run: nobody knows what they are when a call is due."""
        seen = self._seen.get(id(component))
        return seen is not None and (seen.reads.restless or any(record.restless for record in seen.records))

    def times(self, component: Any) -> int:
        """How often somebody was seen to have given its clients something."""
        seen = self._seen.get(id(component))
        return seen.times if seen is not None else 0

    def changes(self, component: Any) -> int:
        """How often it was seen to be another one than before, or to have been given something: it may be what it was
        again."""
        seen = self._seen.get(id(component))
        return seen.changes + seen.times if seen is not None else 0

    def note_changed(self, component: Any) -> None:
        """It is another one than it was when this run called it before."""
        seen = self._seen.get(id(component))
        noted: tuple[Record | Reads, ...] = (*seen.records, seen.reads) if seen is not None else ()
        for each in noted:
            each.restless = each.restless or each.changed

    def seen(self, components: Iterable[Any]) -> dict[int, Seen]:
        """How these were when they were looked at last. It keeps them alive."""
        return {id(one): seen for one in components if (seen := self._seen.get(id(one))) is not None}


class Seen:
    """What a component was when it was looked at last."""

    def __init__(self, component: Any, by_object: bool) -> None:
        self.by_object = by_object
        self._component = component
        self._is_client = is_client(type(component))
        self._last: _State | None = None
        self._within: tuple[Hashable, Hashable, Hashable] | None = None
        """Its identity, what it takes from elsewhere, and both as one."""
        self._told: Hashable = None
        """What was answered last."""
        self.changes = 0

    @property
    def records(self) -> Iterable[Record]:
        """Of its clients."""
        return self._last.records if self._last is not None else ()

    @property
    def times(self) -> int:
        return self._last.times if self._last is not None else 0

    @property
    def reads(self) -> Reads:
        """What its code reads, as of the last look at its fields."""
        return self._last.reads if self._last is not None else NOTHING

    def looked_through(self, read: Read) -> Reads:
        """What its code reads now. `read`: what this run has seen of that."""
        found = read.get(id(self._component))
        if found is None or not found[1].stands():
            watch = Watch()
            found = read[id(self._component)] = reads_of(self._component, watch), watch
        return found[0]

    def now(self, known: Known, read: Read) -> Hashable:
        told, now = self._told, self._now(known, read)
        if now is not told:
            self.changes += told is not None and now != told
            self._told = now
        return now

    def _now(self, known: Known, read: Read) -> Hashable:
        last = self._last
        if last is None or not (last.own.stands() and last.others.stands()):
            last = last or _NOT_YET
            last = self._last = self._of_client(known, last) if self._is_client else self._look(known, read, last)
        beside = tuple((name, now) for name, now in ((_AROUND, otherwise()), (_READ, last.reads.now())) if now)
        if not beside:
            return last.identity
        within = self._within
        if within is None or within[0] is not last.identity or within[1] != beside:
            within = self._within = last.identity, beside, _within(last.identity, beside)
        return within[2]

    def _of_client(self, known: Known, last: _State) -> _State:
        look = Look(known, set(), type(self._component))
        identity = look.client(self._component)
        times = last.times + note_assigned(last.others, look)
        return _State(identity, Watch(), look.watch, {}, tuple(dict.fromkeys(look.records)), times, NOTHING)

    def _look(self, known: Known, read: Read, last: _State) -> _State:
        own, stood, times = Watch(), set[int](), last.times
        fields: dict[str, _Held] = {}
        held = own.fields(self._component)
        cls: Any = type(self._component)
        if not self.by_object and own_bases(cls):
            held[_CLASS] = cls  # which may hold what all of its objects go by
            noted = noted_of_its_own(cls)
            held = {name: value for name, value in held.items() if name not in noted}
        for name, value in held.items():
            kept = self._is_kept(name, value)
            if kept is None or (self.by_object and not (_sends(type(value)) or self._is_setting(name, value))):
                continue
            before = last.fields.get(name)
            if before is None or before.value is not value or not before.watch.stands():
                before = _Held(value, Look(known, stood, type(self._component)), kept, before)
                times += before.assigned
            before.counts = before.counts and not (name == _CLASS and is_a(before.compared, Opaque))
            fields[name] = before
        others = last.others
        watched = [held.watch for held in fields.values() if held.watch]
        if watched != [held.watch for held in last.fields.values() if held.watch]:
            others = Watch()
            for watch in watched:
                others.include(watch)
        records = tuple(dict.fromkeys(record for held in fields.values() for record in held.records))
        compared = {name: held.compared for name, held in fields.items() if held.counts}
        if self.by_object and compared:
            record = recorded(self._component, Identity(cls, _by_name(compared)))
            records += (record,) if record is not None else ()
        identity = last.identity
        if identity is None or compared != {name: held.compared for name, held in last.fields.items() if held.counts}:
            identity = self._made(_by_name(compared))
        return _State(identity, own, others, fields, records, times, self.looked_through(read))

    def _made(self, compared: tuple[tuple[str, Hashable], ...]) -> Hashable:
        if not self.by_object:
            return Identity(type(self._component), compared)
        return (Opaque(self._component), compared) if compared else Opaque(self._component)

    def _is_setting(self, name: str, value: Any) -> bool:
        """Whether a field of a store, retriever or tool of the program's own is plain data, and nothing that its calls
        count or keep: by it a program may choose what they read."""
        cls: Any = type(self._component)
        if not own_bases(cls) or not is_setting(value):
            return False
        return name not in (only_noted(cls, cls) if is_called_by_libraries(cls) else kept_by_itself(cls))

    def _is_kept(self, name: str, value: Any) -> bool | None:
        """Whether a field holds a client that the component makes of its others, with the first use; None if it holds
        something else that says nothing."""
        cls = type(self._component)
        if name not in derived_of(cls) and not (name.startswith("_") and listed(cls) is not None):
            return False
        if is_client(type(value)):
            return not is_connection(type(value))  # which the program gave it
        return None if value is None or name == _CLEANUP or name in derived_of(cls) else False


def _by_name(compared: Mapping[str, Hashable]) -> tuple[tuple[str, Hashable], ...]:
    return tuple((str(name), compared[name]) for name in sorted(compared, key=str))


def _sends(cls: type) -> bool:
    return is_client(cls) or is_session(cls)


_AROUND, _READ = "credentials around", "variables and credentials that its code reads"
"""Among the fields of a component."""


def _within(identity: Hashable, beside: tuple[tuple[str, Hashable], ...]) -> Hashable:
    if isinstance(identity, Identity):
        return Identity(identity.cls, (*identity.fields, *beside))
    return identity, beside


@dataclass(frozen=True, slots=True)
class _State:
    identity: Hashable
    own: Watch
    """Its fields,"""
    others: Watch
    """and what is in them."""
    fields: dict[str, _Held]
    records: tuple[Record, ...]
    times: int
    """How often somebody was seen to have given its clients something."""
    reads: Reads
    """What its code reads: with the rest at once, as threads look at the same time."""


_NOT_YET = _State(None, Watch(), Watch(), {}, (), 0, NOTHING)
_CLASS = "class"
"""Of a component of the program's own, among its fields."""
_CLEANUP = "_client_cleanup"
"""What closes a client when nobody has it any more."""


class _Held:
    """What a field held, how that is compared, and what tells whether it has changed."""

    __slots__ = ("assigned", "compared", "counts", "records", "value", "watch")

    def __init__(self, value: Any, look: Look, kept: bool, before: _Held | None) -> None:
        self.value, self.watch, self.counts = value, _NOTHING_TO_WATCH, True
        self.records: list[Record] = []
        self.assigned = False
        if type(value) in ATOMS:
            self.compared = exactly(value)
            return
        self.compared = exactly(look.at(value))
        self.watch, self.records = look.watch, look.records
        if before is not None:
            is_another = before.value is not value and is_client(type(before.value))
            self.assigned = note_assigned(before.watch, look, is_another)
        self.counts = not (kept and look.records and not look.records[-1].changed)
        """A client that is as it was made says no more than the fields of which it was."""


_NOTHING_TO_WATCH = Watch()
