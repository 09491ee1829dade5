"""A forked child takes no part in the engines of its parent: it starts its own, and ends only those."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import accel_local
from accel.tests.forked import PATIENCE_S, Fork, in_child
from accel_local import host
from accel_local.sources import InProcess

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@dataclass(frozen=True)
class Config:
    """An engine that answers with the process it is in, and writes into a file when it starts and ends."""

    log: str

    @property
    def label(self) -> str:
        return "test engine"

    def create(self) -> Any:
        return Engine(self.log)


class Engine:
    known_profile = None

    def __init__(self, log: str) -> None:
        self._log = log

    def _write(self, what: str) -> None:
        with open(self._log, "a") as file:
            file.write(f"{what} in {os.getpid()}\n")

    async def start(self) -> None:
        self._write("started")

    async def close(self) -> None:
        self._write("closed")

    async def where(self) -> int:
        return os.getpid()

    async def stalls(self, entered: threading.Event) -> int:
        entered.set()
        await asyncio.Event().wait()
        return 0


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Any]:
    accel_local.shutdown()
    yield Config(str(tmp_path / "log"))
    accel_local.shutdown()


def answers(config: Any) -> bool:
    return bool(accel_local.run(accel_local.engine(config).where()) == os.getpid())


def story(config: Config, child: int) -> list[str]:
    names = {str(os.getpid()): "parent", str(child): "child"}
    lines = [line.rsplit(" ", 1) for line in Path(config.log).read_text().splitlines()]
    return [f"{what} {names[pid]}" for what, pid in lines]


def test_a_child_starts_and_ends_its_own(config: Any) -> None:
    assert answers(config)

    def child() -> Any:
        before = accel_local.running()
        answered = answers(config)
        accel_local.shutdown()
        return [os.getpid(), before, answered]

    pid, before, answered = in_child(child)
    assert (before, answered) == ([], True)
    assert answers(config)
    assert story(config, pid) == ["started in parent", "started in child", "closed in child"]


def test_a_fork_while_the_engine_is_busy_and_the_host_is_locked(config: Any) -> None:
    entered, over = threading.Event(), threading.Event()
    stalled = threading.Thread(target=_stall, args=(config, entered))
    stalled.start()
    assert entered.wait(PATIENCE_S)
    held = threading.Event()

    def hold() -> None:
        with host._host_lock:
            held.set()
            over.wait(PATIENCE_S)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(PATIENCE_S)
    try:
        assert in_child(lambda: answers(config)) is True
    finally:
        over.set()
        holder.join()
    assert answers(config)
    accel_local.shutdown()
    stalled.join(PATIENCE_S)
    assert not stalled.is_alive()


def _stall(config: Any, entered: threading.Event) -> None:
    with pytest.raises(accel_local.host.EngineClosed):
        accel_local.run(accel_local.engine(config).stalls(entered))


@pytest.mark.parametrize("where", ["served_by", "hosted_on"])
def test_a_child_leaves_a_block_that_serves_meanwhile(config: Any, where: str) -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    block = host.served_by(InProcess()) if where == "served_by" else accel_local.hosted_on(loop, thread)
    assert answers(config) or where == "hosted_on"
    with block:
        assert answers(config)
        fork = Fork()
    if fork.child:
        fork.report(lambda: [os.getpid(), answers(config)])
    pid, answered = fork.found()
    assert answered
    assert "closed in child" not in story(config, pid)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_sigterm_ends_a_child_and_its_engines(config: Any) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        assert answers(config)
        fork = Fork()
        if fork.child:
            answers(config)
            os.kill(os.getpid(), signal.SIGTERM)
        os.close(fork._write)
        _, status = os.waitpid(fork.pid, 0)
        os.close(fork._read)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert os.WTERMSIG(status) == signal.SIGTERM
    assert answers(config)
    assert story(config, fork.pid) == ["started in parent", "started in child", "closed in child"]


EXITS = """
import os, sys, warnings
import accel_local
from backends.tests.test_forked_engines import Config, answers

warnings.simplefilter("ignore", DeprecationWarning)
config = Config(sys.argv[1])
assert answers(config)
child = os.fork()
if child == 0:
    if sys.argv[2] == "uses":
        assert answers(config)
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
assert answers(config)
print(os.getpid(), child)
"""


@pytest.mark.parametrize("uses", ["uses", "leaves"])
def test_a_child_that_exits_leaves_its_parents_engines_up(tmp_path: Path, uses: str) -> None:
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(EXITS), str(log), uses],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stderr.splitlines() if not line.startswith("accel: ")]
    parent, child = done.stdout.split()
    names = {parent: "parent", child: "child"}
    said = [line.rsplit(" ", 1) for line in log.read_text().splitlines()]
    own = ["started in child", "closed in child"] if uses == "uses" else []
    assert [f"{what} {names[pid]}" for what, pid in said] == ["started in parent", *own, "closed in parent"]
