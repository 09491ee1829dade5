"""Which frames of a stack are the program's, and which are Accel's own, wherever its files lie."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from accel.trace import sites

ROOT = Path(sites.__file__).parents[2]
PROGRAM = """
from accel.trace.sites import call_site
from accel.process.threads import Worker


def asks():
    return call_site()


def program():
    worker, found = Worker("worker"), []
    worker.do(lambda: found.append(asks()))
    assert not worker.faults
    return found[0]


print(program())
"""


def test_a_checkout_below_a_folder_named_tests_knows_its_own_frames(tmp_path: Path) -> None:
    checkout = tmp_path / "tests" / "checkout"
    shutil.copytree(ROOT / "accel", checkout / "accel", ignore=shutil.ignore_patterns("tests", "__pycache__"))
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        env={"PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    frames = [frame.split(":")[:2] for frame in done.stdout.strip().split("<program.py")]
    assert done.returncode == 0, done.stderr
    assert "accel" not in done.stdout and "threads.py" not in done.stdout
    assert len(frames) == 4, done.stdout  # asks, the lambda, program, the module


def test_every_package_of_accel_is_known_as_its_own() -> None:
    homes = (ROOT, ROOT / "adapters", ROOT / "backends")
    assert {path.parent.name for home in homes for path in home.glob("accel*/__init__.py")} == sites.packages()


def test_tests_and_examples_are_programs() -> None:
    assert not sites.is_ours("accel.tests.test_core_learn")
    assert not sites.is_ours("adapters.tests.core_fakes")
    assert not sites.is_ours("accel_tools.helpers")
    assert sites.is_ours("accel_langgraph.testing.plugin")
    assert sites.is_ours("accel")


async def _asks() -> str:
    return sites.call_site(sys._getframe())


async def _in_a_task() -> str:
    return await asyncio.create_task(_asks())


@pytest.mark.parametrize("loops", ["asyncio", "uvloop"])
def test_who_runs_a_loop_is_no_part_of_a_site(loops: str) -> None:
    """Also where no frame of Python's stands between."""
    runs = pytest.importorskip(loops, reason="uvloop comes with the servers that use it").run
    assert re.fullmatch(r"test_record\.py:_asks:\d+", runs(_in_a_task()))
