"""Keeps track of the processes that engines start behind our back, so that none outlives us.

Each engine that starts or uses such processes keeps a record file in the cache. Closing the engine ends what is left of
them and removes the record; `sweep` does the same for records whose owner was killed before it could. A `Guard` sweeps
as soon as its program is gone:

    python -m accel_local.processes

waits for the end of its standard input, and sweeps.
"""

import json
import logging
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import psutil

from accel_local.cache import cache_dir

log = logging.getLogger("accel.local")


class Record:
    """Says which processes this one uses."""

    def __init__(self) -> None:
        self._path = cache_dir("run", f"{os.getpid()}-{id(self):x}.json")

    def write(self, used: Iterable[psutil.Process]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        entries = [_identity(process) for process in used if process.is_running()]
        # At once: who sweeps meanwhile must not take what we use for unused.
        written = self._path.with_suffix(".new")
        written.write_text(json.dumps({"owner": _identity(psutil.Process()), "uses": entries}))
        written.replace(self._path)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


class Guard:
    """Ends processes at once when this one is gone, however it ended."""

    def __init__(self) -> None:
        self._record = Record()
        # In a session of its own: what ends this one's leaves it alone.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "accel_local.processes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._alive = self._process.stdin
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._alive.close)  # a child that outlives us holds nothing up

    def watch(self, processes: Iterable[psutil.Process]) -> None:
        self._record.write(processes)

    def close(self) -> None:
        """They have been told to end."""
        self._record.remove()
        self._alive.close()
        self._process.wait()


class ChildProcesses:
    """The descendants of this process, named `name_prefix...`, that appeared after this object was made."""

    def __init__(self, name_prefix: str) -> None:
        self._name_prefix = name_prefix
        self._before = {child.pid for child in _descendants()}
        self._known: dict[int, psutil.Process] = {}
        self._record = Record()

    def remember(self) -> None:
        """Note the ones that exist now. They stay known when their parent dies and they are no descendants any more."""
        for child in _descendants():
            if child.pid not in self._before and _name(child).startswith(self._name_prefix):
                self._known[child.pid] = child
        self._record.write(self._known.values())

    def end(self, grace_s: float = 2.0) -> None:
        """End those still running: politely, then by force. Blocks for at most about twice `grace_s`."""
        self.remember()
        _end(list(self._known.values()), grace_s)
        self._record.remove()


def sweep() -> None:
    """End processes recorded by owners that are gone and used by nobody else, and remove their records."""
    used: set[psutil.Process] = set()
    left: dict[Path, list[psutil.Process]] = {}
    for record in cache_dir("run").glob("*.json"):
        try:
            content = json.loads(record.read_text())
            processes = [process for entry in content["uses"] if (process := find(*entry)) is not None]
            if find(*content["owner"]) is not None:
                used.update(processes)
            else:
                left[record] = processes
        except (OSError, ValueError, KeyError, TypeError):
            continue  # another process is just removing it
    for record, processes in left.items():
        unused = [process for process in processes if process not in used]
        for process in unused:
            log.warning("ending process %d (%s), left behind by a killed program", process.pid, _name(process))
        _end(unused, grace_s=2.0)
        record.unlink(missing_ok=True)


def still_running(processes: Iterable[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """Those that haven't ended in time. One that has, and that its parent hasn't asked after, counts as ended."""
    until_s = time.monotonic() + timeout_s
    with ExitStack() as opened, selectors.DefaultSelector() as waiting:
        for process in processes:
            try:
                descriptor = os.pidfd_open(process.pid)
            except ProcessLookupError:
                continue
            opened.callback(os.close, descriptor)
            if process.is_running():  # or its id is somebody else's by now
                waiting.register(descriptor, selectors.EVENT_READ, process)
        while waiting.get_map() and (left_s := until_s - time.monotonic()) > 0:
            for key, _ in waiting.select(left_s):
                waiting.unregister(key.fd)
        return [key.data for key in waiting.get_map().values()]


def _end(processes: list[psutil.Process], grace_s: float) -> None:
    for act in (psutil.Process.terminate, psutil.Process.kill):
        for process in processes:
            try:
                act(process)
            except psutil.NoSuchProcess:
                continue
        _, processes = psutil.wait_procs(processes, timeout=grace_s)
        if not processes:
            return


def _descendants() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)  # type: ignore[no-any-return]


def _identity(process: psutil.Process) -> tuple[int, float]:
    """Process ids are reused; together with the time of creation they are not."""
    try:
        return process.pid, process.create_time()
    except psutil.NoSuchProcess:
        return process.pid, 0.0


def find(pid: int, created: float) -> psutil.Process | None:
    """None if it is gone, also where its parent hasn't asked after it yet."""
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - created) < 1.0
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def _name(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()).strip() or process.name()
    except psutil.NoSuchProcess:
        return ""


if __name__ == "__main__":
    sys.stdin.read()
    sweep()
