"""Prints what the random programs covered; fixtures of the tests that run in three modes."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from accel.learn import view
from accel.process import threads
from compat_tests.differential import session_counts
from compat_tests.fakes import Parts, register_fakes
from compat_tests.named import LANGGRAPH
from compat_tests.probe import Probe, early_threads

# What these name came with LangGraph 1.2, or with the package langchain, which needs that.
NEWER = ("agents", "checkpoints", "control", "policies")
if LANGGRAPH < (1, 2):
    collect_ignore = [f"test_named_{name}.py" for name in NEWER]


@pytest.fixture(autouse=True)
def early_threads_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    before = threads.before_call

    def before_call() -> None:
        early_threads.add(threading.current_thread())
        if before is not None:
            before()

    monkeypatch.setattr(threads, "before_call", before_call)


@pytest.fixture(autouse=True)
def nothing_follows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Components here take no time: everything would, and nothing would be early."""
    monkeypatch.setattr(view, "AT_ONCE_S", -1.0)


@pytest.fixture
def parts(accel_mode: str) -> Parts:
    """Fake components; declared to the accelerator where the test has one."""
    if accel_mode != "plain":
        import accel

        register_fakes(accel.register)
    return Parts(Probe(0))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    counts = session_counts
    if counts:
        terminalreporter.write_line(
            f"properties: {counts['programs']:,} programs (sync {counts['sync']:,}, async {counts['async']:,}; "
            f"{counts['issuing'] / max(counts['programs'], 1):.0%} issue something), "
            f"{counts['demanded']:,} calls demanded, {counts['issued']:,} issued early, "
            f"{counts['retired']:,} retired early, {counts['wasted']:,} wasted, {counts['mismatches']:,} mismatches"
        )
