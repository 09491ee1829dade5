"""Runs engines in this process: one daemon event loop owns them all, equal configs share one engine.

Nothing starts before its first use. `shutdown()` closes in reverse order of starting; it also runs at interpreter exit
and, where the main thread first touched this module's API, on SIGTERM.
"""

from accel_local.host import (
    aengine,
    arun,
    astream,
    engine,
    hosted_on,
    known_profile,
    prepare,
    run,
    running,
    shutdown,
    stream,
)

__all__ = [
    "aengine",
    "arun",
    "astream",
    "engine",
    "hosted_on",
    "known_profile",
    "prepare",
    "run",
    "running",
    "shutdown",
    "stream",
]
