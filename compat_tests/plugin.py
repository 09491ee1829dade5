"""A pytest plugin that runs tests of compiled LangGraph graphs in three modes and compares what their graphs gave.

    pytest -p compat_tests.plugin --accel-differential path/to/tests

- *plain*: unmodified.
- *accelerated*: `StateGraph.compile` returns accelerated graphs, which learn as the test goes.
- *forced*: the plans that the accelerated mode learnt are there from the first call on, every option is open, and tiny
  random delays before early calls shuffle their completions.

Each outermost call of a graph is logged: method, input, chunks, result or exception, with generated ids and times made
equal. The logs of the second and third mode must be equal to the first. Chunks of nodes that run side by side come in
any order: a log that differs in the order of chunks alone is counted as reordered, and fails only with
`--accel-strict-order`.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from langgraph.graph import StateGraph

from compat_tests.normal import plain
from compat_tests.probe import early_threads

MODES = ("plain", "accelerated", "forced")
METHODS = ("invoke", "ainvoke", "stream", "astream")

Entry = list[Any]
"""graph, method, input, chunks, result or exception"""

inside: ContextVar[bool] = ContextVar("inside_logged_call", default=False)
plain_logs: dict[str, list[Entry]] = {}
learnt: dict[str, list[tuple[list[str], Any]]] = {}
"""Plans by test: of its graphs in the order of their compilation, with the names of their nodes."""
counts: dict[str, Counter[str]] = {mode: Counter() for mode in MODES}


class Session:
    """One test in one mode."""

    def __init__(self, mode: str, test: str) -> None:
        self.mode = mode
        self.test = test
        self.graphs: list[Any] = []
        self.log: list[Entry] = []

    def adopt(self, graph: Any) -> Any:
        """The graph as this mode has it, with its calls logged."""
        names = sorted(graph.nodes)
        if self.mode == "accelerated":
            import accel

            graph = accel.accelerate(graph)
        elif self.mode == "forced":
            import accel

            known = learnt.get(self.test, [])[len(self.graphs) :][:1]
            plan = known[0][1] if known and known[0][0] == names else None
            graph = accel.accelerate(graph, plan=plan, speculate="likely", egress="inputs")
        graph.__class__ = logged(type(graph), self, len(self.graphs))
        self.graphs.append(graph)
        return graph

    def finished(self) -> None:
        """A call of a graph has ended: let the learner catch up, so that the next one can gain."""
        if self.mode != "plain":
            import accel

            accel.settle()

    def count(self) -> None:
        total = counts[self.mode]
        total.update(tests=1, graphs=len(self.graphs), calls=len(self.log))
        if self.mode == "plain":
            return
        for graph in self.graphs:
            report = graph.report()
            total.update(demanded=report.demanded, issued=report.issued, retired=report.retired, wasted=report.wasted)
        if self.mode == "accelerated":
            learnt[self.test] = [(sorted(graph.nodes), graph.plan) for graph in self.graphs]


current = pytest.StashKey[Session]()


@contextmanager
def marked_inside() -> Iterator[None]:
    token = inside.set(True)
    try:
        yield
    finally:
        inside.reset(token)


def logged(kind: type, session: Session, number: int) -> type:
    """A subclass of the same name whose calls from outside write to the session's log."""
    base: Any = kind

    def begin(method: str, given: Any) -> Entry:
        entry = [number, method, plain(given), [], None]
        session.log.append(entry)
        return entry

    def invoke(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        if inside.get():
            return base.invoke(self, input, *args, **kwargs)
        entry = begin("invoke", input)
        try:
            with marked_inside():
                result = base.invoke(self, input, *args, **kwargs)
        except BaseException as error:
            entry[4] = plain(error)
            raise
        finally:
            session.finished()
        entry[4] = plain(result)
        return result

    async def ainvoke(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        if inside.get():
            return await base.ainvoke(self, input, *args, **kwargs)
        entry = begin("ainvoke", input)
        try:
            with marked_inside():
                result = await base.ainvoke(self, input, *args, **kwargs)
        except BaseException as error:
            entry[4] = plain(error)
            raise
        finally:
            session.finished()
        entry[4] = plain(result)
        return result

    def stream(self: Any, input: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        chunks = base.stream(self, input, *args, **kwargs)
        return chunks if inside.get() else log_chunks(begin("stream", input), chunks)

    def log_chunks(entry: Entry, chunks: Any) -> Iterator[Any]:
        try:
            while True:
                with marked_inside():
                    chunk = next(chunks)
                entry[3].append(plain(chunk))
                yield chunk
        except StopIteration:
            return
        except Exception as error:
            entry[4] = plain(error)
            raise
        finally:
            with marked_inside():
                chunks.close()
            session.finished()

    def astream(self: Any, input: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        chunks = base.astream(self, input, *args, **kwargs)
        return chunks if inside.get() else alog_chunks(begin("astream", input), chunks)

    async def alog_chunks(entry: Entry, chunks: Any) -> AsyncIterator[Any]:
        try:
            while True:
                with marked_inside():
                    chunk = await anext(chunks)
                entry[3].append(plain(chunk))
                yield chunk
        except StopAsyncIteration:
            return
        except Exception as error:
            entry[4] = plain(error)
            raise
        finally:
            with marked_inside():
                await chunks.aclose()
            session.finished()

    methods = dict(zip(METHODS, (invoke, ainvoke, stream, astream), strict=True))
    return type(kind.__name__, (kind,), {**methods, "__module__": kind.__module__, "__qualname__": kind.__qualname__})


def compare(got: list[Entry], want: list[Entry], *, strict_order: bool, mode: str) -> list[str]:
    if len(got) != len(want):
        return [f"{len(got)} calls of graphs instead of {len(want)}"]
    found = []
    for mine, theirs in zip(got, want, strict=True):
        if mine == theirs:
            continue
        in_order = [[*entry[:3], sorted(entry[3], key=repr), entry[4]] for entry in (mine, theirs)]
        if in_order[0] == in_order[1] and not strict_order:
            counts[mode]["reordered"] += 1
            continue
        what = f"graph {theirs[0]}.{theirs[1]}({theirs[2]})"
        found += [
            f"{what}: chunk {i}\n  {mode}: {a}\n  plain: {b}"
            for i, (a, b) in enumerate(zip(mine[3], theirs[3], strict=False))
            if a != b
        ]
        if len(mine[3]) != len(theirs[3]):
            found.append(f"{what}: {len(mine[3])} chunks instead of {len(theirs[3])}")
        if mine[4] != theirs[4] or mine[:3] != theirs[:3]:
            found.append(f"{what}\n  {mode}: {mine[0:3]} gave {mine[4]}\n  plain: gave {theirs[4]}")
    return found


@contextmanager
def chaos(seed: str) -> Iterator[None]:
    """Tiny random delays before early calls."""
    import accel.run.threads as threads

    draw = random.Random(seed)

    def before_call() -> None:
        early_threads.add(threading.current_thread())
        time.sleep(draw.uniform(0.0, 0.002) if draw.random() < 0.5 else 0.0)

    threads.before_call = before_call
    try:
        yield
    finally:
        threads.before_call = None


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("accel")
    group.addoption("--accel-differential", action="store_true", help="run tests plain, accelerated and forced")
    group.addoption("--accel-strict-order", action="store_true", help="the order of stream chunks must be equal, too")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wanted = metafunc.config.getoption("--accel-differential", default=False)
    wanted = wanted or getattr(metafunc.module, "ACCEL_DIFFERENTIAL", False)
    if wanted:
        metafunc.parametrize("accel_mode", MODES, indirect=True)


@pytest.fixture(autouse=True)
def accel_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    mode: str | None = getattr(request, "param", None)
    if mode is None:  # not a test that was asked to run in three modes
        yield "plain"
        return
    test = request.node.nodeid.replace(f"-{mode}", "").replace(f"{mode}-", "").replace(f"[{mode}]", "")
    session = Session(mode, test)
    request.node.stash[current] = session
    compile_plain = StateGraph.compile
    monkeypatch.setattr(StateGraph, "compile", lambda *args, **options: session.adopt(compile_plain(*args, **options)))
    if mode == "forced":
        with chaos(test):
            yield mode
    else:
        yield mode
    session.finished()
    session.count()
    if mode == "plain":
        plain_logs[test] = session.log
    else:
        import accel

        accel.uninstall()
        strict = request.config.getoption("--accel-strict-order", default=False)
        strict = strict or getattr(request.module, "ACCEL_STRICT_ORDER", False)
        if test in plain_logs:
            differences = compare(session.log, plain_logs[test], strict_order=strict, mode=mode)
            counts[mode]["mismatches"] += bool(differences)
            if differences:
                pytest.fail("not as the plain graph:\n" + "\n".join(differences), pytrace=False)


@pytest.fixture
def compared(accel_mode: str, request: pytest.FixtureRequest) -> Callable[..., None]:
    """For tests written for this plugin: whatever else must be equal in all modes."""
    log = request.node.stash[current].log
    return lambda *values: log.append([-1, "compared", plain(values), [], None])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for mode, total in counts.items():
        if total:
            names = ("tests", "graphs", "calls", "demanded", "issued", "retired", "wasted", "reordered", "mismatches")
            shown = ", ".join(f"{total[name]:,} {name}" for name in names if mode != "plain" or name in names[:3])
            terminalreporter.write_line(f"differential, {mode}: {shown}")
