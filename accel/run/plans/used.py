"""Which components a program has used, by call site."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from ...engine.profile import Profile
from ...graph.ir import Node
from ...parts.identities.fields import fields_of
from ...parts.identities.identity import Identities, Seen
from ...parts.methods.methods import METHODS, Method
from ...trace.ambient import Dimensions
from ...trace.record import Trace
from ..settings import Host

MAX_MIXED = 256
"""Components by site that are remembered for sites that call several."""
MAX_ASKED = 16
"""Of these, those of one site whose fields are remembered: most tools that a model has."""


@dataclass(frozen=True, slots=True)
class SavedCall:
    """What a call site called in the process that saved the plan."""

    cls: str
    """The class of the component,"""
    family: str
    method: str
    like: str
    """and the first site that called the same component, maybe this one."""


class Used:
    """Of one program."""

    def __init__(self) -> None:
        self.at: dict[str, tuple[Any, Method]] = {}
        """By call site, the last one."""
        self.mixed: set[str] = set()
        """Call sites that one run called several components from (tasks without a frame of the user's):"""
        self.at_mixed: dict[tuple[str, Hashable], tuple[Any, Method]] = {}
        """those, by identity,"""
        self.whose: dict[str, Hashable] = {}
        """and by node the identity of the one that it calls."""
        self.methods: dict[tuple[str, bool], Method] = {}
        """By call site and whether somebody listened to tokens (then frameworks stream): the method it last called."""
        self.varying: set[str] = set()
        """Call sites seen with different components (a model per user): which one a run takes shows when it uses it."""
        self.alike: dict[str, set[str]] = {}
        """By such a site, those that called an equal component in all runs since."""
        self.anew: set[str] = set()
        """Call sites that were seen with different components of the same class and fields: the program makes one for
        each call."""
        self._loops: dict[str, weakref.ref[asyncio.AbstractEventLoop]] = {}
        """By call site, the loop on which it was reached last."""
        self.saved: dict[str, SavedCall] = {}
        """Of a loaded plan, by call site."""
        self._identities: dict[str, Hashable] = {}
        self.seen: Mapping[int, Seen] = {}
        """The last components of all sites, as they were when a run looked at them."""
        self.engines = False
        """There are components among them that Accel's own engines serve."""
        self._fields: dict[str, dict[Hashable, Dimensions]] = {}
        """By call site, of the last components that somebody asked about."""

    def by(self, node: Node, mixed: bool) -> tuple[Any, Method] | None:
        """The component and method that calls of a node went to in earlier runs; `mixed`: its site calls several."""
        if mixed:
            return self.at_mixed.get((node.site, self.whose.get(node.learnt_as)))
        return self.at.get(node.site)

    def fields(self, site: str, identity: Hashable) -> Dimensions:
        """What a component consists of that is called there (`fields_of`)."""
        known = self._fields.get(site, {})
        fields = known.get(identity)
        if fields is None:
            fields = fields_of(identity)
            others = list(known.items())[1 - MAX_ASKED :]
            self._fields[site] = {**dict(others), identity: fields}  # anew, as others may read it
        return fields

    def made_with(self, trace: Trace) -> Callable[[Node], list[Dimensions]]:
        """The fields of the components with which a run made the calls of a node. Of a site that called several, those
        of the node's own where it has but one."""
        at: dict[str, dict[Hashable, None]] = {}
        for call in trace.calls:
            at.setdefault(call.site, {})[call.identity] = None

        def of(node: Node) -> list[Dimensions]:
            found = list(at.get(node.site, ()))
            own = self.whose.get(node.learnt_as)
            found = [own] if len(found) > 1 and own in found else found
            return [fields for one in found if (fields := self.fields(node.site, one))]

        return of

    def loop_at(self, site: str) -> asyncio.AbstractEventLoop | None:
        """The loop to which the last component of a site belongs: its connections do."""
        loop = self._loops.get(site)
        return loop() if loop is not None else None

    def note(self, trace: Trace, host: Host, identities: Identities, forget: Callable[[str], None]) -> None:
        """What a run has used. `forget`: called with a site whose component is another one than it was."""
        self._note_mixed(trace)
        for call in trace.calls:
            method = METHODS[(call.family, call.method)]
            before, _ = self.at.get(call.site, (call.component, method))
            if before is not call.component:
                if self._identities[call.site] == call.identity:
                    self.anew.add(call.site)
                else:
                    self.varying.add(call.site)
                    forget(call.site)
            if host.loop is not None:
                self._loops[call.site] = weakref.ref(host.loop)
            self._identities[call.site] = call.identity
            self.engines = self.engines or hasattr(type(call.component), "__accel__")
            self.at[call.site] = (call.component, method)
            self.methods[call.site, host.streaming] = method
        self._note_alike(trace)
        self.seen = identities.seen(component for component, _ in self.at.values())

    def _note_alike(self, trace: Trace) -> None:
        called: dict[str, set[Hashable]] = {}
        for call in trace.calls if self.varying else ():
            called.setdefault(call.site, set()).add(call.identity)
        for site in called.keys() & self.varying:
            equal = {other for other, identities in called.items() if identities == called[site]}
            before = self.alike.get(site, equal)
            self.alike[site] = {other for other in before if other in equal or other not in called}

    def _note_mixed(self, trace: Trace) -> None:
        identities: dict[str, Hashable] = {}
        for call in trace.calls:
            if identities.setdefault(call.site, call.identity) != call.identity:
                self.mixed.add(call.site)
        for call in trace.calls:
            if call.site in self.mixed:
                self.at_mixed[call.site, call.identity] = (call.component, METHODS[(call.family, call.method)])
        while len(self.at_mixed) > MAX_MIXED:
            del self.at_mixed[next(iter(self.at_mixed))]

    def profiles(self) -> dict[str, Profile]:
        """By kind of engine, what the components know about theirs; the first one of a kind."""
        found: dict[str, Profile] = {}
        for component, _ in list(self.at.values()):
            ask = getattr(type(component), "accel_profiles", None)
            for profile in ask(component) if ask is not None else ():
                found.setdefault(profile.engine, profile)
        return found
