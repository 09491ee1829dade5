"""Which live component a predicted call goes to: one that this run has used, or that the program refers to.

A component that may hold a credential is not called because an earlier run did (invariant 3).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from ..components import Facts, facts_of
from ..identity import identity_of
from ..intercept import METHODS, Method, has_leaf
from ..ir import Node
from .settings import Bound

if TYPE_CHECKING:
    from .run import Run


class Bindings:
    """The components of one run, by call site."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._used: dict[str, tuple[Any, Method]] = {}
        """By call site, the component and method of its last demand in this run."""
        self._used_with: dict[tuple[int, tuple[str, ...]], Any] = {}
        """The components that it has used, and with which credentials."""
        self._used_like: dict[str, tuple[Hashable, Any]] = {}
        """By what a saved plan says that several sites call: the component that one of them called here."""
        self._parted: set[str] = set()
        """Of those, what several sites do not call together any more."""
        self._mixed: set[str] = set()
        """Call sites of which this run has used several components."""
        self._identities: dict[str, Hashable] = {}
        self._facts: dict[int, tuple[Any, Facts]] = {}

    def facts(self, component: Any) -> Facts:
        """`facts_of`, looked up once per run."""
        held = self._facts.get(id(component))
        if held is None or held[0] is not component:
            held = self._facts[id(component)] = (component, facts_of(component))
        return held[1]

    def note(self, site: str, component: Any, method: Method, identity: Hashable) -> None:
        """The program calls this component here."""
        self._used[site] = (component, method)
        self._used_with[id(component), self._run.plan.keys.note(component)] = component
        saved = self._run.plan.saved_calls.get(site)
        if saved is not None and self._used_like.setdefault(saved.like, (identity, component))[0] != identity:
            self._parted.add(saved.like)
        if self._identities.setdefault(site, identity) != identity:
            self._mixed.add(site)

    def of(self, node: Node) -> Bound | None:
        """The component that a node's calls go to, used in this run, or known to the plan and referenced by the
        program; None if that is not clear yet."""
        bound = self._at_site(node)
        return self._inner(bound) if node.stage_of and bound is not None else bound

    def _at_site(self, node: Node) -> Bound | None:
        run, plan = self._run, self._run.plan
        mixed = node.site in self._mixed or node.site in plan.mixed
        used = self._used.get(node.site) if not mixed else None
        if used is not None:
            component, method = used
        else:
            known = plan.binding(node, mixed)
            known = known or (self._saved(node.site) if not mixed else None)
            if known is None:
                return None
            component, method = known
            method = plan.methods.get((node.site, run.host.streaming), method)
            if node.site in plan.varying and not mixed:
                component = self._only_one_used(type(component))
            elif node.site in plan.bindings and not plan.contexts.bindings.allow(node.site, run.trace.ambient):
                return None
            if component is None:
                return None
        bound = Bound(component, method, self.facts(component))
        return bound if self._may_call(bound) else None

    def _may_call(self, bound: Bound) -> bool:
        """Whether this run has used the component, or an equal one, with the key that it has now, or the program refers
        to it and nobody has ever changed its key."""
        component, keys = bound.component, self._run.plan.keys
        if (id(component), keys.note(component)) in self._used_with:
            return True
        if self._run.host.references(component) and keys.trusts(component):
            return True
        return any(
            type(other) is type(component)
            and identity_of(other, m.by_object) == bound.identity
            and (id(other), keys.note(other)) in self._used_with
            for other, m in list(self._used.values())
        )

    def _saved(self, site: str) -> tuple[Any, Method] | None:
        """For a site of a saved plan that was not seen here yet: what it calls, if this run has used the component at
        another site, or the program refers to but one of its class."""
        saved = self._run.plan.saved_calls.get(site)
        method = METHODS.get((saved.family, saved.method)) if saved is not None else None
        if saved is None or method is None or saved.like in self._parted:
            return None
        _, component = self._used_like.get(saved.like, (None, None))
        # A plan may be older than the program: an endpoint elsewhere is not taken for another one.
        if component is None or type(component).__qualname__ != saved.cls or not self.facts(component).local:
            component = self._run.host.references.only(saved.cls, method.by_object)
        return (component, method) if component is not None else None

    def _only_one_used(self, cls: type) -> Any:
        """The component of this class that this run has used; None if it has used none or several."""
        used = [(other, method) for other, method in list(self._used.values()) if type(other) is cls]
        same = {identity_of(other, method.by_object): other for other, method in used}
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
        return Bound(component, method, self.facts(component))
