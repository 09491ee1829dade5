"""Keepers of local Rays (`accel_ray.keeping`): started, found again by anybody of the same user, and ended with all
that they had."""

import json
import os
import select
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from accel.backend import BackendError
from accel_local.cache import cache_dir
from accel_local.processes import find, still_running, sweep
from accel_ray.config import LocalRay

START_S = 120.0
END_S = 20.0


@dataclass(frozen=True, slots=True)
class Kept:
    """A keeper that has been started. Process ids are reused; together with the time of creation they are not."""

    namespace: str
    pid: int
    created: float
    address: str
    folder: str
    """Of its Ray's files."""

    def process(self) -> psutil.Process | None:
        """None if it is gone."""
        return find(self.pid, self.created)


def _file(namespace: str, suffix: str) -> Path:
    return cache_dir("ray", quote(namespace, safe="") + suffix)


def note(keeper: Kept) -> str:
    """Have others find a keeper that is up; gives what `start` reads of it."""
    said = json.dumps(asdict(keeper))
    _file(keeper.namespace, ".json").write_text(said, encoding="utf-8")
    return said


def kept(namespace: str) -> Kept | None:
    """The keeper of a namespace, if it is up. What one that was killed left behind is removed."""
    return _read(_file(namespace, ".json"))


def all_kept() -> list[Kept]:
    """All keepers of this user that are up, by namespace."""
    found = [_read(file) for file in cache_dir("ray").glob("*.json")]
    return sorted((each for each in found if each is not None), key=lambda kept: kept.namespace)


def _read(file: Path) -> Kept | None:
    try:
        found = Kept(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    if found.process() is None:
        _forget(found)
        return None
    return found


def _forget(keeper: Kept) -> None:
    sweep()
    shutil.rmtree(keeper.folder, ignore_errors=True)
    _file(keeper.namespace, ".json").unlink(missing_ok=True)


def start(namespace: str, local: LocalRay) -> Kept:
    """Start a Ray on this machine that outlives this process. Raises BackendError."""
    log = _file(namespace, ".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "accel_ray.keeping", namespace, local.model_dump_json()]
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True, text=True
        )
    assert process.stdout is not None
    with process.stdout as output:
        try:
            ready, _, _ = select.select([output], [], [], START_S)
            said = output.readline() if ready else ""  # nothing either, if it ends
        except BaseException:
            process.terminate()
            raise
    if not said:
        process.terminate()
        process.wait()
        last = " ".join(log.read_text(encoding="utf-8").split())[-300:]
        raise BackendError(f"Ray could not be started: {last or 'it said nothing'}", f"read {log}")
    process.returncode = 0  # it goes on without us: nobody waits for it
    return Kept(**json.loads(said))


def stop(keeper: Kept) -> list[psutil.Process]:
    """End a keeper, its Ray, and whatever of it is left; gives all that it had. Blocks for some seconds."""
    process = keeper.process()
    had: list[psutil.Process] = []
    if process is not None:
        had = _processes(process)
        process.terminate()
        still_running([process], END_S)
        for other in had:
            try:
                other.kill()
            except psutil.NoSuchProcess:
                continue
        still_running(had, END_S)
    _forget(keeper)
    return had


def _processes(keeper: psutil.Process) -> list[psutil.Process]:
    """It, and all that came of it: what is in its session, also without a parent, and what left its session."""
    session = [other for other in psutil.process_iter() if _session_of(other) == keeper.pid]
    try:
        below = keeper.children(recursive=True)
    except psutil.NoSuchProcess:
        below = []
    return list({keeper, *session, *below})


def _session_of(process: psutil.Process) -> int:
    try:
        return os.getsid(process.pid)
    except (ProcessLookupError, PermissionError):
        return 0
