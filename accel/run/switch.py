"""How much Accel does, as operators set it: for the process, and for what a request begins.

"off": programs run as without Accel, after one check. "watch": they are recorded and learnt from, and nothing is early
or shared. "on": as `accelerate` was told.

The process: the environment variable ACCEL (default "on"), until `set_mode`. "off" holds for all. Otherwise what a
request asks goes first: its metadata (`{"accel": "watch"}`, of frameworks that have some), then `with accel.mode(...)`
around it. So a process that watches may have some requests on, and one that is on may have some off.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Literal, get_args

from ..errors import ConfigurationError, choose
from ..parts.methods import patches
from ..trace.ambient import FRAMEWORK_VARS
from .settings import Settings

Mode = Literal["off", "watch", "on"]
State = Literal["off", "watch", "on", "uninstalled"]
VARIABLE, KEY = "ACCEL", "accel"
"""Of the environment; of a request's metadata."""
WATCHING = Settings(speculate="off")
log = logging.getLogger("accel")

off = False
"""Whether the process is: what everybody asks first."""
_process: Mode = "on"
_was_set = False
"""By `set_mode`; the environment says nothing any more."""
_around: ContextVar[Mode | None] = ContextVar("accel_mode", default=None)
FRAMEWORK_VARS.add(_around)


def set_mode(mode: Mode) -> None:
    """How much Accel does in this process, from the next run on: "off" (programs run as without Accel), "watch" (they
    are recorded and learnt from, nothing is early) or "on" (default, or what the environment variable ACCEL says).
    Runs that have begun go on as they are. Raises ConfigurationError for other values."""
    global _was_set
    _set(_checked(mode, f"set_mode({mode!r})"))
    _was_set = True


def mode(mode: Mode) -> AbstractContextManager[None]:
    """How much Accel does in the runs that begin inside: ``with accel.mode("off"): fast.invoke(...)``. It goes with the
    context, into tasks and threads that copy it; metadata of the request goes before it, a process that is off before
    both. Raises ConfigurationError for other values than "off", "watch" and "on"."""
    return _meanwhile(_checked(mode, f"mode({mode!r})"))


@contextmanager
def _meanwhile(mode: Mode) -> Generator[None, None, None]:
    token = _around.set(mode)
    try:
        yield
    finally:
        _around.reset(token)


def read_environment() -> None:
    """What the environment says, unless `set_mode` has been called. Raises ConfigurationError."""
    if not _was_set:
        given = os.environ.get(VARIABLE, "").strip().lower() or "on"
        _set(_checked(given, f"The environment variable {VARIABLE}={given}"))


def asked_by(metadata: Mapping[str, Any] | None) -> Mode | None:
    """What a request's metadata say; nothing, mostly. Raises ConfigurationError."""
    if not metadata or KEY not in metadata:
        return None
    given = metadata[KEY]
    return _checked(given, f"The metadata {KEY}={given!r}")


def settings_for(settings: Settings, asked: Mode | None) -> Settings | None:
    """What a run that begins here is to heed; None if it goes on as without Accel. `asked`: by its metadata."""
    if off or not patches.enabled:
        return None
    here = asked or _around.get() or _process
    if here == "on":
        return settings
    return WATCHING if here == "watch" else None


def state() -> State:
    """How much Accel does in this process, whatever single requests ask."""
    return _process if patches.enabled else "uninstalled"


def _set(mode: Mode) -> None:
    global _process, off
    if mode != _process:
        log.info("the mode of this process is %s now, it was %s", mode, _process)
    _process, off = mode, mode == "off"


def _checked(given: Any, what: str) -> Mode:
    if given not in get_args(Mode):
        raise ConfigurationError(f"{what} is not known.", choose(given, get_args(Mode)))
    return given  # type: ignore[no-any-return]
