"""Runs the modules that say ACCEL_DIFFERENTIAL in three modes, and prints what was covered."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests import plugin
from compat_tests.differential import session_counts
from compat_tests.fakes import Parts, register_fakes
from compat_tests.plugin import accel_mode, compared
from compat_tests.probe import Probe

__all__ = ["accel_mode", "compared"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if not metafunc.config.pluginmanager.has_plugin("compat_tests.plugin"):
        plugin.pytest_generate_tests(metafunc)


@pytest.fixture
def parts(request: pytest.FixtureRequest) -> Parts:
    """Fake components; declared to the accelerator where the test has one."""
    if request.getfixturevalue("accel_mode") != "plain":
        import accel

        register_fakes(accel.register)
    return Parts(Probe(0))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not terminalreporter.config.pluginmanager.has_plugin("compat_tests.plugin"):
        plugin.pytest_terminal_summary(terminalreporter)
    counts = session_counts
    if counts:
        terminalreporter.write_line(
            f"properties: {counts['programs']:,} programs (sync {counts['sync']:,}, async {counts['async']:,}), "
            f"{counts['demanded']:,} calls demanded, {counts['issued']:,} issued early, "
            f"{counts['retired']:,} retired early, {counts['wasted']:,} wasted, {counts['mismatches']:,} mismatches"
        )
