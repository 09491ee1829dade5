"""A pytest plugin that runs tests of LangGraph graphs in three modes and compares what their graphs gave.

    pytest -p accel_langgraph.testing.plugin --accel-differential path/to/tests

- *plain*: unmodified. Its outcome is the test's.
- *accelerated*: every graph that is compiled is accelerated, and learns as the test goes.
- *forced*: the plans that the accelerated mode learnt are there from the first call on, every option is open, and tiny
  random delays before early calls shuffle their completions.

Each outermost call of a graph is logged: method, input, chunks, result or exception, and its runs as callbacks tell of
them; of each test also what checkpointers were given. Generated ids and times are made equal. A test fails if it passes
plain and not in another mode, or if the logs of the others aren't equal to the first. Chunks and interrupts of nodes
that run side by side come in any order: a log that differs in their order alone is counted as reordered, and fails only
with `--accel-strict-order`. A test that differs from another plain run of itself is counted as varying, and not judged.

Tests in modules that say ``ACCEL_DIFFERENTIAL = True`` run so without the option. Graphs that were compiled before the
test began (when its module was imported) stay as they are. Where no call of a graph was compared, the summary says so,
and with the option the exit code is 5, pytest's own where no tests were collected.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from _pytest.runner import runtestprotocol
from langgraph.func import entrypoint
from langgraph.graph import StateGraph

import accel
from accel.learn.lessons import learn
from accel.process import threads
from accel.run.gains.pace import load
from accel.run.plans.plan import Plan

from . import witness
from .log import Entry, differences, logged
from .normal import plain
from .saved import in_order, watch_checkpointer, written
from .witness import watch

UNMODIFIED = "unmodified"
"""Without any of this, when only the outcomes are asked for."""
VARYING = "varying"
MODES = ("plain", "accelerated", "forced")
AGAIN = 12
"""Plain runs that are made of a test before a difference is laid to acceleration."""
COUNTED = ("demanded", "issued", "retired", "wasted")

counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""What this process has run, by mode."""


class Trial:
    """One test in one mode."""

    def __init__(self, mode: str, learnt: list[tuple[list[str], Plan]], watched: bool) -> None:
        """learnt: plans of the test's graphs in the order of their compilation, with the names of their nodes.
        watched: every node asks a witness."""
        self.mode = mode
        self._watched = watched
        self.log: list[Entry] = []
        self.reports: list[pytest.TestReport] = []
        self._learnt = learnt
        self._graphs: list[Any] = []

    @property
    def outcome(self) -> str:
        return next((report.outcome for report in self.reports if report.outcome != "passed"), "passed")

    @contextmanager
    def under_way(self, seed: str) -> Iterator[None]:
        """Every graph that is compiled meanwhile is as this mode has it, and its calls are logged."""
        with pytest.MonkeyPatch.context() as patched, chaos(seed) if self.mode == "forced" else nullcontext():
            for cls, name in ((StateGraph, "compile"), (entrypoint, "__call__")) if self.mode != UNMODIFIED else ():
                patched.setattr(cls, name, self._adopting(getattr(cls, name)))
            written.clear()
            yield
            self.log.append(Entry(-1, "saved", None, in_order()))

    def _adopting(self, made: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **options: self._adopt(made(*args, **options))

    def _adopt(self, graph: Any) -> Any:
        number, names = len(self._graphs), sorted(graph.nodes)
        watch_checkpointer(graph.checkpointer)
        if self._watched:
            watch(graph)
        if self.mode == "accelerated":
            graph = accel.accelerate(graph)
        elif self.mode == "forced":
            known = self._learnt[number:][:1]
            plan = known[0][1] if known and known[0][0] == names else None
            graph = accel.accelerate(graph, plan=plan, speculate="likely", egress="inputs")
        graph.__class__ = logged(type(graph), number, self.log, self._ended)
        self._graphs.append(graph)
        return graph

    def _ended(self) -> None:
        """A call of a graph has ended: let the learner catch up, so that the next one can gain."""
        if self.mode in ("accelerated", "forced"):
            accel.settle()

    def learnt(self) -> list[tuple[list[str], Plan]]:
        return [(sorted(graph.nodes), bold(graph.plan)) for graph in self._graphs]

    def counted(self) -> Counter[str]:
        self._ended()
        total = Counter(tests=1, graphs=len(self._graphs), calls=len(self.log) - 1)
        for graph in self._graphs if self.mode in ("accelerated", "forced") else ():
            report = graph.report()
            total.update({name: getattr(report, name) for name in COUNTED})
        return total


def bold(plan: Plan) -> Plan:
    """A plan that takes what was seen for what always happens, and for worth it. One that knows something stays as it
    is."""
    if plan.last is None or any(node.predictable for node in plan.learnt.nodes):
        return plan
    taken = Plan()
    taken.follow(learn([plan.last, replace(plan.last, input="another")]).map(lambda node: node.proven(at_once=False)))
    taken.barriers, taken.contexts, taken.used = plan.barriers, plan.contexts, plan.used
    return taken


current = pytest.StashKey[Trial]()


@contextmanager
def chaos(seed: str) -> Iterator[None]:
    """Tiny random delays before early calls."""
    draw = random.Random(seed)
    before = threads.before_call

    def before_call() -> None:
        if before is not None:
            before()
        time.sleep(draw.uniform(0.0, 0.002) if draw.random() < 0.5 else 0.0)

    threads.before_call = before_call
    try:
        yield
    finally:
        threads.before_call = before


# --- pytest's hooks


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("accel")
    group.addoption("--accel-differential", action="store_true", help="run tests plain, accelerated and forced")
    group.addoption("--accel-strict-order", action="store_true", help="the order of stream chunks must be equal, too")
    group.addoption("--accel-witness", action="store_true", help="have every node ask a model: more calls to predict")
    group.addoption("--accel-outcomes", metavar="FILE", help="append a line of JSON for each test and mode")


def _says(item: pytest.Item, option: str, marker: str) -> bool:
    return item.config.getoption(option, default=False) or getattr(getattr(item, "module", None), marker, False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run the test once in each mode."""
    if _says(item, "--accel-differential", "ACCEL_DIFFERENTIAL"):
        modes: tuple[str, ...] = MODES
    elif item.config.getoption("--accel-outcomes", default=None):
        modes = (UNMODIFIED,)
    else:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    first: Trial | None = None
    learnt: list[tuple[list[str], Plan]] = []
    for mode in modes:
        trial = _try(item, mode, learnt)
        counted = trial.counted()
        if first is not None:
            accel.uninstall()
            if first.outcome == "passed" and _differs(item, trial, first) and _varies(item, first):
                counts[mode]["varying"] += 1
                _write(item, trial, VARYING, [], Counter())
                continue
        _judge(item, trial, first, counted)
        first = first or trial
        learnt = trial.learnt() if mode == "accelerated" else learnt
    _tear_down(item, nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _try(item: pytest.Item, mode: str, learnt: list[tuple[list[str], Plan]]) -> Trial:
    """Run the test once. Fixtures of wider scope stay: to pytest, its parent comes next."""
    again, following = current in item.stash, cast(pytest.Item, item.parent)
    trial = item.stash[current] = Trial(mode, learnt, item.config.getoption("--accel-witness", default=False))
    if again:
        item._initrequest()  # type: ignore[attr-defined]  # as plugins that rerun tests do; pytest has no other way
    with trial.under_way(item.nodeid):
        trial.reports = runtestprotocol(item, log=False, nextitem=following)
    return trial


def _differs(item: pytest.Item, trial: Trial, first: Trial) -> list[str]:
    in_order = _says(item, "--accel-strict-order", "ACCEL_STRICT_ORDER")
    found = [] if trial.outcome == "passed" else [f"{trial.outcome} instead of passed"]
    return found or differences(trial.log, first.log, in_order=in_order, mode=trial.mode)


def _varies(item: pytest.Item, first: Trial) -> bool:
    """Whether the test differs from run to run by itself, once its nodes take turns in any order."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(witness, "delays", random.Random(item.nodeid))
        return any(_differs(item, _try(item, "plain", []), first) for _ in range(AGAIN))


def _tear_down(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What the next test doesn't need."""
    call = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown")
    if call.excinfo is not None:
        item.ihook.pytest_runtest_logreport(report=item.ihook.pytest_runtest_makereport(item=item, call=call))


def _judge(item: pytest.Item, trial: Trial, first: Trial | None, counted: Counter[str]) -> None:
    """Report the first trial as it is, of others what differs from it. A test that fails plain shows nothing more."""
    found: list[str] = []
    lost = first is None or (first.outcome == "passed" != trial.outcome)
    if first is not None and first.outcome == "passed":
        found = _differs(item, trial, first)
        if not found:
            pairs = zip(trial.log, first.log, strict=True)
            counted["reordered"] = sum(not mine.matches(theirs, in_order=True) for mine, theirs in pairs)
        counted["mismatches"] = bool(found)
    counts[trial.mode].update(counted)
    _write(item, trial, trial.outcome, found, counted)
    for report in trial.reports if lost else ():
        report.sections.append(("mode", trial.mode))
        item.ihook.pytest_runtest_logreport(report=report)
    if found and not lost:
        item.ihook.pytest_runtest_logreport(report=_unequal(item, trial.mode, found))


def _unequal(item: pytest.Item, mode: str, found: list[str]) -> pytest.TestReport:
    text = f"{mode}: not as the plain graph:\n" + "\n".join(found)
    keywords: Any = dict.fromkeys(item.keywords, 1)
    return pytest.TestReport(item.nodeid, item.location, keywords, "failed", text, "call")


def _write(item: pytest.Item, trial: Trial, outcome: str, found: list[str], counted: Counter[str]) -> None:
    path = item.config.getoption("--accel-outcomes", default=None)
    if path:
        worker = getattr(item.config, "workerinput", {}).get("workerid", "")  # several write under pytest-xdist
        line = {
            "test": item.nodeid, "mode": trial.mode, "outcome": outcome, "differences": found,
            "counts": dict(counted),
        }  # fmt: skip
        with Path(f"{path}{'.' if worker else ''}{worker}").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


@pytest.fixture(autouse=True)
def accel_follows_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a machine that is busy with something else."""
    monkeypatch.setattr(load, "enabled", False)


@pytest.fixture
def accel_mode(request: pytest.FixtureRequest) -> str:
    """In which mode the test runs."""
    return request.node.stash[current].mode if current in request.node.stash else "plain"


@pytest.fixture
def compared(request: pytest.FixtureRequest) -> Callable[..., None]:
    """For tests written for this plugin: whatever else must be equal in all modes."""
    log = request.node.stash[current].log
    return lambda *values: log.append(Entry(-1, "compared", plain(values)))


NOTHING = (
    "differential: nothing was compared, as no test compiled a graph and called it. Graphs that are compiled when a "
    "module is imported stay as they are: compile them in the test, or in a fixture of its own."
)
_SENT = "accel_differential"
"""What a worker of pytest-xdist has run, in what it tells the process that shows the summary."""


def _compared_nothing() -> bool:
    return counts["plain"]["tests"] > 0 and not counts["accelerated"]["calls"]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Who asks for a comparison, and gets none, must not see success."""
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        told[_SENT] = {mode: dict(total) for mode, total in counts.items()}
    elif session.exitstatus == pytest.ExitCode.OK and session.config.getoption("--accel-differential"):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED if _compared_nothing() else session.exitstatus


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for mode, total in getattr(node, "workeroutput", {}).get(_SENT, {}).items():
        counts[mode].update(total)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for mode, total in counts.items():
        if total:
            names = ("tests", "graphs", "calls", *COUNTED, "reordered", "varying", "mismatches")
            shown = ", ".join(f"{total[name]:,} {name}" for name in names if mode != "plain" or name in names[:3])
            terminalreporter.write_line(f"differential, {mode}: {shown}")
    if _compared_nothing():
        terminalreporter.write_line(NOTHING, red=True)
