"""Servers that keep the beginnings of prompts (vLLM, SGLang): known beginnings are read before the program calls.

Such a server is asked for one token, by a copy of the program's own client on the same connections: only where users
say that it keeps prefixes, and it is their own. Nobody hears of it, and nothing of it is a result.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ...graph.ir import Node
from ...parts.listed.table import listed
from ...parts.methods.methods import METHODS, Method
from ...parts.methods.patches import has_leaf, original, stands
from ...text.extract import Partial
from ...text.values import Tree, texts_of
from ..calls.call import Call
from ..gains.worth import CHARS_PER_TOKEN
from ..run import Run
from ..scope import Scope, scope
from ..settings import Bound
from ..waits.gates import gate_of

LEAST_TOKENS = 256
"""Fewer are read in less time than a request more takes."""
_LEFT_OUT = frozenset(
    "max_tokens max_completion_tokens max_output_tokens n best_of stream stream_options response_format".split()
)
"""What may ask for more than one token, or for a form that it can't have. Tools stay: they are a part of the prompt."""
_MORE = ("model_kwargs", "additional_kwargs", "extra_body")
"""Fields whose contents are sent, too."""


_asked_for: WeakKeyDictionary[Run, list[str]] = WeakKeyDictionary()
"""By run, the beginnings that servers were asked to read."""


def method_of(run: Run, bound: Bound) -> Method | None:
    """The method that is asked for one token, in the colour of the program's; None where none may be."""
    entry, facts = listed(type(bound.component)), bound.facts
    if entry is None or not (entry.limit and facts.prefix_caching and facts.local) or bound.unused:
        return None
    kind = "async" if bound.method.is_async else "sync"
    if kind == "async" and run.host.loop is None:
        return None
    for method in list(METHODS.values()):
        if method.family == bound.method.family and method.kind == kind and has_leaf(bound.component, method.name):
            return method if stands(bound.component, method.name) else None
    return None


def pays(run: Run, bound: Bound, tree: Tree) -> bool:
    """Whether the server has yet to read enough of this beginning: nothing of this run has begun with it."""
    text, read = "".join(_known(tree)), _asked_for.get(run, [])
    most = text[: max(0, len(text) - LEAST_TOKENS * CHARS_PER_TOKEN)]
    if len(text) < LEAST_TOKENS * CHARS_PER_TOKEN or any(each.startswith(text) for each in read):
        return False
    calls = [call for call in run.calls.all() if call.identity == bound.identity and call.state != "queued"]
    begun = ["".join(texts_of(call.input)) for call in calls]
    return not any(each.startswith(most) for each in (*read, *begun) if most)


def _known(tree: Tree) -> Iterator[str]:
    """The texts up to where the input is known."""
    for text in texts_of(tree):
        yield text
        if isinstance(text, Partial):
            return


@dataclass
class Asking:
    """A request for one token. It has a place in its component, as an early call has."""

    run: Run
    bound: Bound
    call: Call
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def work(self) -> Callable[[], Any]:
        """To be run in a copy of the run's entry context, on a thread or on the run's loop, or never."""
        return self._awaited if self.call.method.is_async else self._asked

    def _asked(self) -> None:
        leaf = self._begin()
        if leaf is not None:
            try:
                leaf(*self.args, **self.kwargs)
            finally:
                self.call.leave()

    async def _awaited(self) -> None:
        leaf: Callable[..., Coroutine[Any, Any, Any]] | None = self._begin()
        if leaf is not None:
            try:
                await leaf(*self.args, **self.kwargs)
            finally:
                self.call.leave()

    def _begin(self) -> Callable[..., Any] | None:
        """The leaf of a copy that is asked for one token; None if the component is another one by now."""
        component, run = self.bound.component, self.run
        same = run.identities.of(component, self.call.method.by_object) == self.call.identity
        if run.closed or run.plan.keys.note(component) != self.bound.keys or not same:
            self.call.leave()
            return None
        scope.set(Scope(run, call=self.call, early=True))
        run.host.set_config()
        try:
            leaf: Callable[..., Any] = original(_short(component), self.call.method)
        except BaseException:
            self.call.leave()
            raise
        return leaf


def asking(run: Run, node: Node, bound: Bound, method: Method, tree: Tree) -> Asking | None:
    """The request for this beginning; None if its component has no place for it now."""
    args, kwargs = method.build(bound.component, tree)
    kwargs = {name: value for name, value in _without_limits(kwargs).items() if name != "run_manager"}
    call = Call(method, bound.component, bound.identity, tree, bound.key(tree), run.ambient, standing="early")
    call.issued_for, call.dropped_by = node.site, Call.leave
    call.loop = run.host.loop if method.is_async else None
    call.happens("begin")
    if not gate_of(bound.component).try_enter_early(call, bound.facts.concurrency or 1):
        return None
    run.token.on_cancel(call.leave)
    _asked_for.setdefault(run, []).append("".join(_known(tree)))
    return Asking(run, bound, call, args, kwargs)


def _short(component: Any) -> Any:
    """A copy on the same connections that is given one token."""
    entry = listed(type(component))
    assert entry is not None
    fields: dict[str, Any] = {entry.limit: 1}
    for name, value in (("n", 1), ("best_of", 1), ("streaming", False)):
        if getattr(component, name, None):
            fields[name] = value
    for name in _MORE:
        held = getattr(component, name, None)
        if isinstance(held, dict):
            fields[name] = _without_limits(held)
    return component.model_copy(update=fields)


def _without_limits(held: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_limits(value) if name in _MORE and isinstance(value, dict) else value
        for name, value in held.items()
        if name not in _LEFT_OUT
    }
