"""What calls of graphs gave, written down in a form that can be compared with another run of the same test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from .normal import plain

METHODS = ("invoke", "ainvoke", "stream", "astream")

inside: ContextVar[bool] = ContextVar("inside_logged_call", default=False)


@dataclass(eq=False, slots=True)
class Entry:
    """An outermost call of a graph, with generated ids and times made equal."""

    graph: int
    """The how manieth that was compiled; -1 for what a test compares itself."""
    method: str
    given: Any
    chunks: list[Any] = field(default_factory=list)
    result: Any = None
    """Or the exception."""

    @property
    def call(self) -> str:
        return f"graph {self.graph}.{self.method}({self.given})"

    def matches(self, other: Entry, *, in_order: bool) -> bool:
        """Chunks and interrupts of nodes that run side by side come in any order."""
        if self.call != other.call:
            return False
        if in_order:
            return (self.chunks, self.result) == (other.chunks, other.result)
        mine, theirs = ((sorted(map(_unordered, e.chunks), key=repr), _unordered(e.result)) for e in (self, other))
        return mine == theirs


def _unordered(value: Any) -> Any:
    """The same with lists of interrupts sorted."""
    if isinstance(value, dict):
        return {
            key: sorted(map(_unordered, item), key=repr)
            if key in ("__interrupt__", "interrupts") and isinstance(item, list)
            else _unordered(item)
            for key, item in value.items()
        }
    return [_unordered(item) for item in value] if isinstance(value, list | tuple) else value


@contextmanager
def marked_inside() -> Iterator[None]:
    token = inside.set(True)
    try:
        yield
    finally:
        inside.reset(token)


def logged(kind: type, number: int, log: list[Entry], ended: Callable[[], None]) -> type:
    """A subclass of the same name whose calls from outside write to the log. `ended` is told of each that has ended."""
    base: Any = kind

    def begin(method: str, given: Any) -> Entry:
        log.append(Entry(number, method, plain(given)))
        return log[-1]

    def invoke(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        if inside.get():
            return base.invoke(self, input, *args, **kwargs)
        entry = begin("invoke", input)
        try:
            with marked_inside():
                result = base.invoke(self, input, *args, **kwargs)
        except BaseException as error:
            entry.result = plain(error)
            raise
        finally:
            ended()
        entry.result = plain(result)
        return result

    async def ainvoke(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        if inside.get():
            return await base.ainvoke(self, input, *args, **kwargs)
        entry = begin("ainvoke", input)
        try:
            with marked_inside():
                result = await base.ainvoke(self, input, *args, **kwargs)
        except BaseException as error:
            entry.result = plain(error)
            raise
        finally:
            ended()
        entry.result = plain(result)
        return result

    def stream(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        chunks = base.stream(self, input, *args, **kwargs)
        return log_chunks(begin("stream", input), chunks) if _is_ours(chunks, "__next__") else chunks

    def log_chunks(entry: Entry, chunks: Any) -> Iterator[Any]:
        try:
            while True:
                with marked_inside():
                    chunk = next(chunks)
                entry.chunks.append(plain(chunk))
                yield chunk
        except StopIteration:
            return
        except Exception as error:
            entry.result = plain(error)
            raise
        finally:
            with marked_inside():
                chunks.close()
            ended()

    def astream(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        chunks = base.astream(self, input, *args, **kwargs)
        return alog_chunks(begin("astream", input), chunks) if _is_ours(chunks, "__anext__") else chunks

    async def alog_chunks(entry: Entry, chunks: Any) -> AsyncIterator[Any]:
        try:
            while True:
                with marked_inside():
                    chunk = await anext(chunks)
                entry.chunks.append(plain(chunk))
                yield chunk
        except StopAsyncIteration:
            return
        except Exception as error:
            entry.result = plain(error)
            raise
        finally:
            with marked_inside():
                await chunks.aclose()
            ended()

    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = base.copy(self, *args, **kwargs)
        if not issubclass(type(made), kind):
            made.__class__ = logged(type(made), number, log, ended)
        return made

    methods = dict(zip(METHODS, (invoke, ainvoke, stream, astream), strict=True))
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), {**methods, **names, "copy": copy})


def _is_ours(chunks: Any, advance: str) -> bool:
    """Generators of calls from outside; event streams (version v3) are objects with methods of their own."""
    return not inside.get() and hasattr(chunks, advance) and (hasattr(chunks, "close") or hasattr(chunks, "aclose"))


def differences(got: list[Entry], want: list[Entry], *, in_order: bool, mode: str) -> list[str]:
    """Where a log isn't as the plain one, for people; empty if it is."""
    if len(got) != len(want):
        return [f"{len(got)} calls of graphs instead of {len(want)}"]
    found = []
    for mine, theirs in zip(got, want, strict=True):
        if mine.matches(theirs, in_order=in_order):
            continue
        found += [
            f"{theirs.call}: chunk {i}\n  {mode}: {a}\n  plain: {b}"
            for i, (a, b) in enumerate(zip(mine.chunks, theirs.chunks, strict=False))
            if a != b
        ]
        if len(mine.chunks) != len(theirs.chunks):
            found.append(f"{theirs.call}: {len(mine.chunks)} chunks instead of {len(theirs.chunks)}")
        if (mine.call, mine.result) != (theirs.call, theirs.result):
            found.append(f"{theirs.call}\n  {mode}: {mine.call} gave {mine.result}\n  plain: gave {theirs.result}")
    return found
