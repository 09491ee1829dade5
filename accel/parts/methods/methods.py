"""How the leaf methods of component classes are seen: what adapters declare, and the core calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...graph.first import First, leads
from ...text.values import Opaque, Tree, snapshot, thaw

Kind = Literal["sync", "async", "stream", "astream"]


@dataclass(frozen=True, slots=True)
class Inner:
    """What a leaf does before all else: a call of another component with one of its own arguments, as it is."""

    op: str
    family: str
    """Of that component's methods; it takes the argument alone, by position (`read_call`)."""
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
    calls: Callable[[list[Any]], list[Tree]] | None = None
    """The output's first calls of tools (`accel.text.turns`) that no further chunk can change."""
    copy: Callable[[Any], Any] | None = None
    """How a result is handed out again; None where a result may retire only once. Raises Uncopied of one that nobody
    else may have."""
    fresh: bool = True
    """A result never holds an object that was given, by which the program could tell it from a copy."""
    lend: Callable[[Any], Any] | None = None
    """How a result is handed out to another run of a batch, with ids of its own; None where that is `copy`."""
    streamed: str = ""
    """The streaming method of the same family and colour."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """What the streaming method gets in place of arguments that the framework passes for itself."""
    opens: bool = False
    """A coroutine that gives the async iterator, not the iterator itself."""
    sync_name: str = ""
    """For coroutines: the same method without a loop."""
    tokens: Callable[[Any], tuple[Any, Any]] | None = None
    """Prompt and output tokens of a result, as it says."""
    prefill: str = ""
    """The component's method that warms its cache with a prompt whose last text is only a prefix, if it has one."""
    aprefill: str = ""
    """The same as a coroutine."""
    by_object: bool = False
    """Components of this family are themselves only (stores, retrievers, tools)."""
    inner: Inner | None = None
    """The call of another component that it begins with."""
    direct: bool = False
    """A leaf where the program itself calls it. What other components call of it is a part of theirs."""
    relisted: bool = False
    """The framework makes the list for it with each call: who adds to it changes nothing of the program's."""
    takes: Callable[[Any], bool] | None = None
    """Of which components of a patched class calls are seen; None: of all."""

    @property
    def hands_on(self) -> Callable[[Any], Any] | None:
        """How other runs of a batch get a result; None where each makes its own call."""
        return self.lend or self.copy

    @property
    def is_async(self) -> bool:
        return self.kind in ("async", "astream")

    def handed(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of an early call, of which others are still to be asked whether the call has changed them."""
        return ([*args[0]], *args[1:]) if self.relisted and args else args

    # What a program's own class takes and gives may be anything: what can't be seen is nobody's concern but Accel's.

    def seen_input(self, component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
        """The input of a call; where it is none that the family knows, one that nothing is like."""
        return _or({"unknown": Opaque(object())}, self.read, component, args, kwargs)

    def seen_output(self, result: Any) -> Tree:
        return None if result is None else snapshot(_or(Opaque(object()), self.view, result))

    def counted(self, result: Any) -> tuple[int, int]:
        """Prompt and output tokens of a result, if it says so."""
        told = _or(None, self.tokens, result) if self.tokens is not None and result is not None else None
        return told if told is not None and all(type(count) is int for count in told) else (0, 0)

    def merged(self, chunks: list[Any]) -> Any:
        """The result that a stream's chunks make; None if they make none."""
        return _or(None, self.merge, chunks) if self.merge is not None else None

    def added(self, chunk: Any) -> str:
        text = _or("", self.delta, chunk) if self.delta is not None else ""
        return text if isinstance(text, str) else ""

    def closed(self, chunks: list[Any]) -> Sequence[Tree]:
        """The calls of tools that no further chunk can change."""
        return _or((), self.calls, chunks) if self.calls is not None else ()


def _or(otherwise: Any, ask: Callable[..., Any], *given: Any) -> Any:
    try:
        return ask(*given)
    except Exception:  # noqa: BLE001 - an object that is not what its class is to give, or code of a user's that raises
        return otherwise


METHODS: dict[tuple[str, str], Method] = {}
"""All methods that adapters have declared, by family and name."""


def no_view(result: Any) -> Tree:
    """Vectors are of no use to templates."""
    return None


def arguments(names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name. Raises TypeError if there are more, as nobody knows what these are."""
    if len(args) > len(names) or not kwargs.keys().isdisjoint(names[: len(args)]):
        raise TypeError(f"it takes {len(names)} arguments by position")
    return {**dict(zip(names, args, strict=False)), **kwargs}


def read_call(component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
    """The input of a call of which nothing is the framework's own."""
    return {"args": snapshot(args, exact=True), "kwargs": snapshot(kwargs, exact=True)}


def build_call(component: Any, tree: Tree) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Its arguments, from what `read_call` gave."""
    return tuple(thaw(tree["args"])), thaw(tree["kwargs"])
