"""Leaf methods of component classes, patched once on the concrete class that defines them.

Outside an accelerated run a patched method costs one context look-up. `uninstall` restores every class.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Protocol

from . import forks
from .ir import First, leads
from .record import Visit
from .values import Tree

if TYPE_CHECKING:
    from .run.call import Call
    from .run.run import Run

Kind = Literal["sync", "async", "stream", "astream"]


@dataclass(frozen=True, slots=True)
class Inner:
    """What a leaf does before all else: a call of another component with one of its own arguments, as it is."""

    op: str
    family: str
    """Of that component's methods; it takes the argument alone, by position (`accel.functions.read_call`)."""
    paths: tuple[tuple[str | int, ...], ...]
    """Where the argument may stand in the input of the leaf."""
    component: Callable[[Any], Any]
    """The live inner component of an outer one; None where that one may do otherwise."""

    def first(self, component: Any, input: Tree) -> First | None:
        """What a call of `component` with this input begins with."""
        path = next((path for path in self.paths if leads(input, path)), None)
        return First(self.op, self.family, path) if path is not None and self.component(component) is not None else None


@dataclass(frozen=True, slots=True)
class Method:
    """How one leaf method of a component family is seen. Adapters write these; the core calls them."""

    name: str
    family: str
    """Methods of one family answer the same question: a call of one may be answered by another."""
    op: str
    kind: Kind
    read: Callable[[Any, tuple[Any, ...], dict[str, Any]], Tree]
    """The full input of a call as a tree, without what the framework passes for itself."""
    build: Callable[[Any, Tree], tuple[tuple[Any, ...], dict[str, Any]]]
    """Live arguments for an early call with this input."""
    view: Callable[[Any], Tree]
    """The output as a tree; of chunks merged for streams."""
    merge: Callable[[list[Any]], Any] | None = None
    """One result out of a stream's chunks."""
    delta: Callable[[Any], str] | None = None
    """The text a chunk adds to the output's ``content``."""
    copy: Callable[[Any], Any] | None = None
    """How a result is handed out again; None where a result may retire only once."""
    streamed: str = ""
    """The streaming method of the same family and colour."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """What the streaming method gets in place of arguments that the framework passes for itself."""
    opens: bool = False
    """A coroutine that gives the async iterator, not the iterator itself."""
    sync_name: str = ""
    """For coroutines: the same method without a loop."""
    tokens: Callable[[Any], tuple[int, int]] | None = None
    """Prompt and output tokens of a result."""
    prefill: str = ""
    """The component's method that warms its cache with a prompt whose last text is only a prefix, if it has one."""
    aprefill: str = ""
    """The same as a coroutine."""
    by_object: bool = False
    """Components of this family are themselves only (stores, retrievers, tools)."""
    inner: Inner | None = None
    """The call of another component that it begins with."""

    @property
    def is_async(self) -> bool:
        return self.kind in ("async", "astream")


@dataclass(frozen=True, slots=True)
class Scope:
    """Where the current code runs: in which run, inside which call, early or as the program's own."""

    run: Run
    visit: Visit | None = None
    """The framework node that is running, this time."""
    call: Call | None = None
    early: bool = False
    called: str = ""
    """Where the program called what its framework does here, in a task or thread of its own."""

    @property
    def within(self) -> str:
        """The name of the framework node; empty outside of any."""
        return self.visit.node if self.visit is not None else ""


class _CurrentScope:
    """The scope of the current code. None in a run that is gone: its code goes on as without Accel."""

    def __init__(self) -> None:
        self._held: ContextVar[Scope | None] = ContextVar("accel_scope", default=None)

    def get(self) -> Scope | None:
        here = self._held.get()
        return None if here is None or here.run.gone else here

    def set(self, here: Scope) -> Token[Scope | None]:
        return self._held.set(here)

    def reset(self, token: Token[Scope | None]) -> None:
        self._held.reset(token)


scope = _CurrentScope()

METHODS: dict[tuple[str, str], Method] = {}
"""All methods that adapters have declared, by family and name."""

enabled = True
"""False after `uninstall`, until something is accelerated again."""
active_runs = 0
"""How many accelerated runs are going on in this process."""


class Place(Protocol):
    """Where a decorator of the framework keeps the function it decorates."""

    def get(self) -> Any: ...

    def put(self, function: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class _Patch:
    leaf: Any
    """The function below Accel's wrapper."""
    restore: Callable[[], None]


_installed: dict[tuple[type, str], _Patch] = {}
_wrapped: dict[tuple[Any, str], Any] = {}
_lock = forks.lock()
_epochs: defaultdict[object, int] = defaultdict(int)


def resource_of(component: Any) -> object:
    """What a read reads and a write changes: the store's own name where it has one, else the object."""
    name = getattr(type(component), "accel_resource", None)
    return name(component) if callable(name) else id(component)


def epoch(resource: object) -> int:
    """How many writes to this resource passed through this process, in or outside runs."""
    return _epochs[resource]


def forget_runs() -> None:
    """None is going on any more, whatever their ends were or will be."""
    global active_runs
    active_runs = 0


def count_run(change: int) -> None:
    """A run started (+1) or ended (-1)."""
    global active_runs
    with _lock:
        active_runs += change


def bump(resource: object) -> None:
    with _lock:
        _epochs[resource] += 1


def _wrapper(method: Method) -> Callable[..., Any]:
    writes = method.op == "ingestion"

    def intercept(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        here = scope.get()
        if here is None:
            if writes:
                return _write_outside(instance, wrapped, args, kwargs)
            return _unscoped(method, instance, wrapped, args, kwargs) if active_runs else wrapped(*args, **kwargs)
        return here.run.demand(here, method, instance, wrapped, args, kwargs)

    return intercept


def _unscoped(method: Method, instance: Any, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    from .run import unscoped  # needs this module

    return unscoped.call(method, instance, wrapped, args, kwargs)


def _write_outside(instance: Any, wrapped: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A write outside any run still moves the epoch; before and after, so that no read spans it."""
    resource = resource_of(instance)
    bump(resource)
    result = wrapped(*args, **kwargs)
    if hasattr(result, "__await__"):
        return _bump_after(resource, result)
    bump(resource)
    return result


async def _bump_after(resource: object, result: Any) -> Any:
    try:
        return await result
    finally:
        bump(resource)


def install(cls: type, method: Method, find: Callable[[Any], Place | None] = lambda function: None) -> None:
    """Patch `cls.name` if the class itself defines it. Idempotent.

    `find`: where the framework's decorators keep the leaf of a decorated function. It is patched there, so that their
    events and spans stay around the demand, and early calls have none.
    """
    key = (cls, method.name)
    METHODS.setdefault((method.family, method.name), method)
    defined = cls.__dict__.get(method.name)
    if not enabled or defined is None or key in _installed or not callable(defined):
        return
    with _lock:
        if key not in _installed:
            place = find(defined)
            _installed[key] = _in_class(cls, method, defined) if place is None else _in_place(place, method)


def _in_class(cls: type, method: Method, defined: Any) -> _Patch:
    import wrapt  # takes longer to import than all of Accel's core

    setattr(cls, method.name, wrapt.FunctionWrapper(defined, _wrapper(method)))
    return _Patch(defined, lambda: setattr(cls, method.name, defined))


def _in_place(place: Place, method: Method) -> _Patch:
    leaf = place.get()
    wrapper = _wrapper(method)

    def patched(instance: Any, *args: Any, **kwargs: Any) -> Any:
        return wrapper(leaf.__get__(instance), instance, args, kwargs)

    patched.__signature__ = signature(leaf, follow_wrapped=False)  # type: ignore[attr-defined]
    patched.__name__, patched.__qualname__ = leaf.__name__, leaf.__qualname__
    place.put(patched)
    return _Patch(leaf, lambda: place.put(leaf))


def wrap(cls: type, name: str, wrapper: Callable[..., Any]) -> None:
    """Put a wrapper (by wrapt's signature) around a method of a framework's class, until `uninstall`. Idempotent."""
    if not enabled or (cls, name) in _wrapped:
        return
    import wrapt  # as above

    with _lock:
        if (cls, name) not in _wrapped:
            _wrapped[cls, name] = cls.__dict__[name]
            setattr(cls, name, wrapt.FunctionWrapper(cls.__dict__[name], wrapper))


def put(owner: Any, name: str, value: Any) -> None:
    """Put a value in the place of an attribute of a framework's module or class, until `uninstall`. Idempotent."""
    with _lock:
        if enabled and (owner, name) not in _wrapped:
            _wrapped[owner, name] = owner.__dict__[name]
            setattr(owner, name, value)


def enable() -> None:
    """Something is accelerated: classes may be patched (again)."""
    global enabled
    enabled = True


def is_installed(cls: type, name: str) -> bool:
    return (cls, name) in _installed


def has_leaf(component: Any, name: str) -> bool:
    """Whether a concrete class of the component defines this leaf (a framework's default does not count)."""
    return any((base, name) in _installed for base in type(component).__mro__)


def original(component: Any, name: str) -> Any:
    """The component's bound method below Accel's wrapper."""
    for base in type(component).__mro__:
        if name in base.__dict__:
            patch = _installed.get((base, name))
            leaf = patch.leaf if patch is not None else base.__dict__[name]
            return leaf.__get__(component, type(component))
    raise AttributeError(name)


def uninstall() -> None:
    """Restore every patched class."""
    global enabled
    with _lock:
        enabled = False
        for patch in _installed.values():
            patch.restore()
        _installed.clear()
        for (cls, name), function in _wrapped.items():
            setattr(cls, name, function)
        _wrapped.clear()
