"""Which live component a predicted call goes to: one that this run has used, or that the program refers to.

A component that may hold a credential is not called because an earlier run did (invariant 3).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import replace
from typing import Any

from ..graph.ir import Node
from ..learn.memory import once
from ..parts.components import Facts, facts_of
from ..parts.identities.identity import Identities
from ..parts.methods.methods import METHODS, Method
from ..parts.methods.patches import has_leaf
from ..parts.network.hosts import is_nobodys
from ..text.turns import NONE, SOME, Called
from ..trace.record import Trace
from .plans.plan import Plan
from .settings import Bound, Host

_NEVER: tuple[Any, Hashable, int] = (None, None, 0)
Moment = dict[tuple[str, str], Bound | None]
"""What was found in one turn, in which nothing of the program's happens."""


def alike(one: Bound | None, other: Bound | None) -> bool:
    """Whether what two bindings say of a component is the same to all rules."""
    if one is None or other is None:
        return one is other
    same = one.component is other.component and one.method is other.method and one.facts is other.facts
    return same and one.keys == other.keys and one.unused == other.unused


@once
def called_by(node: Node) -> frozenset[str]:
    """The names that somebody has called whenever the calls of a node are made."""
    decided = [when.yes for when in node.when if isinstance(when.ref.path[-1], Called)]
    return frozenset().union(*decided) - {SOME, NONE}


class Bindings:
    """The components of one run, by call site."""

    def __init__(self, plan: Plan, host: Host, identities: Identities, trace: Trace) -> None:
        self._plan, self._host, self._identities, self._trace = plan, host, identities, trace
        self._used: dict[str, tuple[Any, Method]] = {}
        """By call site, the component and method of its last demand in this run."""
        self._used_with: dict[tuple[int, tuple[str, ...]], Any] = {}
        """The components that it has used, and with which credentials."""
        self._used_as: dict[int, tuple[Any, Hashable, int]] = {}
        """By id, those, as what it used them last, and how often somebody had changed their clients."""
        self._used_like: dict[str, tuple[Hashable, Any]] = {}
        """By what a saved plan says that several sites call: the component that one of them called here."""
        self._parted: set[str] = set()
        """Of those, what several sites do not call together any more."""
        self._mixed: set[str] = set()
        """Call sites of which this run has used several components."""
        self._called_as: dict[str, Hashable] = {}
        """By call site, the identity of its first component in this run."""
        self._facts: dict[int, tuple[Any, Facts]] = {}
        self._trusted: dict[tuple[int, tuple[str, ...], frozenset[str]], tuple[Any, bool]] = {}
        """By id, credentials and called names, components that may be called before they are used, or may not."""
        self._version = 0
        """How often the run has used something else than before, somewhere."""
        self._found: dict[str, tuple[int, Bound | None]] = {}
        """By node, what was found, at which version."""

    def facts(self, component: Any) -> Facts:
        """`facts_of`, looked up once per run, unless somebody changes its clients: they may send elsewhere by now."""
        held = self._facts.get(id(component))
        known = held is not None and held[0] is component
        if held is None or not known or not self._identities.untouched(component):
            facts = facts_of(component, self._identities)
            if held is None or not known or held[1] != facts:
                held = self._facts[id(component)] = (component, facts)
        return held[1]

    def as_used(self, component: Any, identity: Hashable) -> bool:
        """Whether what a component sends by itself, beside the input (address, headers, a variable that its code
        reads), is what the program would send now. Where somebody has changed that, it is another request's until this
        run has used it; and where that happens within runs, nobody knows."""
        if self._identities.is_as_ever(component):
            return True
        held, as_what, _ = self._used_as.get(id(component), _NEVER)
        return held is component and as_what == identity and not self._identities.is_restless(component)

    def note(self, site: str, component: Any, method: Method, identity: Hashable) -> tuple[str, ...]:
        """The program calls this component here, with the credentials that are returned."""
        before, used_before = self._used.get(site, (None, None))
        keys = self._plan.keys.note(component)
        with_keys = (id(component), keys)
        new = before is not component or used_before is not method or with_keys not in self._used_with
        self._used[site] = (component, method)
        self._used_with[with_keys] = component
        times = self._identities.times(component)
        held, as_what, times_before = self._used_as.get(id(component), _NEVER)
        if held is not component or as_what != identity or times != times_before:
            self._used_as[id(component)] = component, identity, times
            if held is component:
                self._identities.note_changed(component)
                new = True
        if new:
            self._version += 1  # last: who asks in between asks again
        saved = self._plan.used.saved.get(site)
        if saved is not None and self._used_like.setdefault(saved.like, (identity, component))[0] != identity:
            self._parted.add(saved.like)
            self._version += 1
        if self._called_as.setdefault(site, identity) != identity and site not in self._mixed:
            self._mixed.add(site)
            self._version += 1
        return keys

    def of(self, node: Node) -> Bound | None:
        """The component that a node's calls go to, used in this run, or known to the plan and referenced by the
        program; None if that is not clear yet. Nobody has looked since the run last used something new whether it is
        still what it was, and may be called (`now`)."""
        version, bound = self._found.get(node.name, (-1, None))
        return bound if version == self._version else self._look(node, {}, closely=False)

    def now(self, node: Node, moment: Moment) -> Bound | None:
        """The same, as it is at this moment: asked once for all nodes of a call site, if they are given the same."""
        return self._look(node, moment, closely=True)

    def _look(self, node: Node, moment: Moment, closely: bool) -> Bound | None:
        """`closely`: also at what takes long to look at."""
        version = self._version
        stage_of = node.schedule.stage_of
        of_node = self._is_mixed(node.site) or called_by(node)
        asked = (node.name if of_node else node.site, stage_of)
        found = moment.get(asked)
        if asked not in moment or (found is not None and not self._holds_its_keys(found)):
            bound = self._at_site(node, closely)
            found = moment[asked] = self._inner(bound) if stage_of and bound is not None else bound
        self._found[node.name] = (version, found)
        return found

    def _is_mixed(self, site: str) -> bool:
        """Whether several components have been called there."""
        return site in self._mixed or site in self._plan.used.mixed

    def _holds_its_keys(self, bound: Bound) -> bool:
        return self._plan.keys.note(bound.component) == bound.keys

    def _bound(self, component: Any, method: Method) -> Bound:
        keys = self._plan.keys.note(component)
        return Bound(component, method, self.facts(component), self._identities, keys)

    def has_shown(self, site: str) -> bool:
        """Whether this run, or one before that streams as it does, has shown by which method it calls there."""
        return site in self._used or (site, self._host.streaming) in self._plan.used.methods

    def renew(self) -> None:
        """Nodes may have other components than before."""
        self._version += 1

    def _at_site(self, node: Node, closely: bool) -> Bound | None:
        plan = self._plan
        mixed = self._is_mixed(node.site)
        used = self._used.get(node.site) if not mixed else None
        if used is not None:
            component, method = used
        else:
            known = plan.used.by(node, mixed)
            known = known or (self._saved(node.site) if not mixed else None)
            if known is None:
                return None
            component, method = known
            method = plan.used.methods.get((node.site, self._host.streaming), method)
            if node.site in plan.used.varying and not mixed:
                component = self._only_one_used(type(component), plan.used.alike.get(node.site, ()))
            elif node.site in plan.used.at and not plan.contexts.bindings.allow(node.site, self._trace.ambient):
                return None
            if component is None:
                return None
        bound = self._bound(component, method)
        return self._may_call(bound, node, closely)

    def _may_call(self, bound: Bound, node: Node, closely: bool) -> Bound | None:
        """The component, if this run has used it with the key that it has now, or the program refers to it and nobody
        has ever changed its key; else an equal one that the run has used; else the one that an earlier run made here,
        if it has a key that everybody may use, or none."""
        component, keys, used = bound.component, self._plan.keys, self._plan.used
        site, made_at = node.site, node.site if node.site in used.anew else ""
        if (id(component), bound.keys) in self._used_with or self._is_trusted(
            component, bound.keys, closely, made_at, called_by(node)
        ):
            as_ever = self._identities.is_as_ever(component)
            return bound if as_ever or self.as_used(component, bound.identity) else None
        for other, method in list(self._used.values()):
            if (
                type(other) is type(component)
                and self._identities.of(other, method.by_object) == bound.identity
                and (id(other), keys.note(other)) in self._used_with
                and self.as_used(other, bound.identity)
            ):
                return self._bound(other, bound.method)
        lent = site in used.anew and (not bound.method.is_async or used.loop_at(site) is self._host.loop)
        if lent and keys.of_everybody(component) and self._identities.is_as_ever(component):
            return replace(bound, unused=True)
        return None

    def trusts(self, component: Any) -> bool:
        """Whether the program refers to it, and it may be called before this run has used it."""
        return self._is_trusted(component, self._plan.keys.note(component), closely=True)

    def _is_trusted(
        self,
        component: Any,
        keys: tuple[str, ...],
        closely: bool,
        made_at: str = "",
        called: frozenset[str] = frozenset(),
    ) -> bool:
        """Whether it may be called with these keys before this run has used them; asked once for all sites that call
        it, unless it is to be looked at `closely`. `made_at`, `called`: see `References`."""
        with_keys = (id(component), keys, called)
        trusted = self._trusted.get(with_keys) if not closely else None
        if trusted is None or trusted[0] is not component:
            refers = is_nobodys(component) or self._host.references(component, made_at, called)
            trusts = refers and self._plan.keys.trusts(component)
            trusted = self._trusted[with_keys] = (component, trusts)
        return trusted[1]

    def _saved(self, site: str) -> tuple[Any, Method] | None:
        """For a site of a saved plan that was not seen here yet: what it calls, if this run has used the component at
        another site, or the program refers to but one of its class."""
        saved = self._plan.used.saved.get(site)
        method = METHODS.get((saved.family, saved.method)) if saved is not None else None
        if saved is None or method is None or saved.like in self._parted:
            return None
        _, component = self._used_like.get(saved.like, (None, None))
        # A plan may be older than the program: an endpoint elsewhere is not taken for another one.
        if component is None or type(component).__qualname__ != saved.cls or not self.facts(component).local:
            component = self._host.references.only(saved.cls, method.by_object)
        return (component, method) if component is not None else None

    def _only_one_used(self, cls: type, sites: Collection[str]) -> Any:
        """The component of this class that this run has used at these sites; None if it has used none or several."""
        called = [self._used[site] for site in sites if site in self._used]
        used = [(other, method) for other, method in called if type(other) is cls]
        same = {self._identities.of(other, method.by_object): other for other, method in used}
        return next(iter(same.values())) if len(same) == 1 else None

    def _inner(self, outer: Bound) -> Bound | None:
        """The component that a call of this one will begin with: the live one that it holds now."""
        inner = outer.method.inner
        component = inner.component(outer.component) if inner is not None else None
        if inner is None or component is None:
            return None
        leaves = [m for m in METHODS.values() if m.family == inner.family and has_leaf(component, m.name)]
        same_colour = (m for m in leaves if m.kind == outer.method.kind)
        method = next(same_colour, next((m for m in leaves if m.kind == "sync"), None))
        if method is None:
            return None
        return self._bound(component, method)
