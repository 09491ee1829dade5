"""What calls of graphs gave, written down in a form that can be compared with another run of the same test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from accel.trace.ambient import FRAMEWORK_VARS

from .normal import plain
from .traces import Traces, traces

UNORDERED = ("__interrupt__", "interrupts", "children")
MOST = 3
"""Differences of one kind that are shown."""
METHODS = ("invoke", "ainvoke", "stream", "astream")


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
    traces: list[Any] = field(default_factory=list)
    """Its runs as a tracer sees them, children inside."""

    @property
    def call(self) -> str:
        return f"graph {self.graph}.{self.method}({self.given})"

    def matches(self, other: Entry, *, in_order: bool) -> bool:
        """Chunks and interrupts of nodes that run side by side come in any order."""
        if self.call != other.call:
            return False
        parts = ((e.result, e.chunks, e.traces) for e in (self, other))
        mine, theirs = parts if in_order else map(_any_order, parts)
        return mine == theirs


current: ContextVar[Entry | None] = ContextVar("current_logged_call", default=None)
"""The outermost call that is under way."""
FRAMEWORK_VARS.add(current)


def _any_order(parts: tuple[Any, ...]) -> list[Any]:
    result, *lists = parts
    return [_unordered(result), *(sorted(map(_unordered, items), key=repr) for items in lists)]


def _unordered(value: Any) -> Any:
    """The same with lists of interrupts and of child runs sorted. What had begun beside a run that failed is open."""
    if isinstance(value, dict):
        value = {**value, "children": []} if value.get("error") and "children" in value else value
        return {
            key: sorted(map(_unordered, item), key=repr)
            if key in UNORDERED and isinstance(item, list)
            else _unordered(item)
            for key, item in value.items()
        }
    return [_unordered(item) for item in value] if isinstance(value, list | tuple) else value


@contextmanager
def _inside(entry: Entry, tracer: Traces) -> Iterator[None]:
    tokens = current.set(entry), traces.set(tracer)
    try:
        yield
    finally:
        current.reset(tokens[0])
        traces.reset(tokens[1])


def unlogged() -> AbstractContextManager[None]:
    """Calls whose order is open are not written down: the test compares what they give."""
    apart = Entry(-1, "unlogged", None)
    return _inside(apart, Traces(apart.traces))


def logged(kind: type, number: int, log: list[Entry], ended: Callable[[], None]) -> type:
    """A subclass of the same name whose calls from outside write to the log. `ended` is told of each that has ended."""
    base: Any = kind

    def begin(method: str, given: Any) -> Entry:
        log.append(Entry(number, method, plain(given)))
        return log[-1]

    def invoke(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        if current.get():
            return base.invoke(self, input, *args, **kwargs)
        entry = begin("invoke", input)
        try:
            with _inside(entry, Traces(entry.traces)):
                result = base.invoke(self, input, *args, **kwargs)
        except BaseException as error:
            entry.result = plain(error)
            raise
        finally:
            ended()
        entry.result = plain(result)
        return result

    async def ainvoke(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        if current.get():
            return await base.ainvoke(self, input, *args, **kwargs)
        entry = begin("ainvoke", input)
        try:
            with _inside(entry, Traces(entry.traces)):
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
        tracer = Traces(entry.traces)
        try:
            while True:
                with _inside(entry, tracer):
                    chunk = next(chunks)
                entry.chunks.append(plain(chunk))
                yield chunk
        except StopIteration:
            return
        except Exception as error:
            entry.result = plain(error)
            raise
        finally:
            with _inside(entry, tracer):
                chunks.close()
            ended()

    def astream(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        chunks = base.astream(self, input, *args, **kwargs)
        return alog_chunks(begin("astream", input), chunks) if _is_ours(chunks, "__anext__") else chunks

    async def alog_chunks(entry: Entry, chunks: Any) -> AsyncIterator[Any]:
        tracer = Traces(entry.traces)
        try:
            while True:
                with _inside(entry, tracer):
                    chunk = await anext(chunks)
                entry.chunks.append(plain(chunk))
                yield chunk
        except StopAsyncIteration:
            return
        except Exception as error:
            entry.result = plain(error)
            raise
        finally:
            with _inside(entry, tracer):
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
    return not current.get() and hasattr(chunks, advance) and (hasattr(chunks, "close") or hasattr(chunks, "aclose"))


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
        ][:MOST]
        if len(mine.chunks) != len(theirs.chunks):
            found.append(f"{theirs.call}: {len(mine.chunks)} chunks instead of {len(theirs.chunks)}")
        ours, plains = (sorted(map(_unordered, entry.traces), key=repr) for entry in (mine, theirs))
        pairs = zip_longest(ours, plains, fillvalue="nothing")
        first = [_first_difference(*pair, "trace") for pair in pairs if pair[0] != pair[1]]
        found += [f"{theirs.call}: {where}\n  {mode}: {a}\n  plain: {b}" for where, a, b in first[:MOST]]
        if (mine.call, mine.result) != (theirs.call, theirs.result):
            found.append(f"{theirs.call}\n  {mode}: {mine.call} gave {mine.result}\n  plain: gave {theirs.result}")
    return found


def _first_difference(mine: Any, theirs: Any, path: str) -> tuple[str, Any, Any]:
    """Where two unequal trees begin to differ, and how."""
    if isinstance(mine, dict) and isinstance(theirs, dict) and mine.keys() == theirs.keys():
        pairs = [(f"{path}.{key}", mine[key], theirs[key]) for key in mine]
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        pairs = [(f"{path}[{place}]", *pair) for place, pair in enumerate(zip(mine, theirs, strict=True))]
    else:
        return path, mine, theirs
    return next(_first_difference(a, b, where) for where, a, b in pairs if a != b)
