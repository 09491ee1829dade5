"""Profiles that engines have measured on this machine, kept in the cache: later programs know them at once."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from accel.engine import profile
from accel.engine.profile import Profile, ProfileFile
from accel.errors import AccelError
from accel_local.cache import cache_dir

log = logging.getLogger("accel.local")


def remember(label: str, measured: Profile) -> None:
    """Keep it for the engine of this label."""
    path = _path(label)
    path.parent.mkdir(parents=True, exist_ok=True)
    ProfileFile({measured.engine: measured}).save(path)


def recall(label: str) -> Profile | None:
    """What was kept; None if nothing was, or if it can't be read any more."""
    path = _path(label)
    if not path.exists():
        return None
    try:
        return next(iter(profile.load(path).profiles.values()))
    except (AccelError, StopIteration) as error:
        log.warning("ignoring the profile kept for %s: %s", label, error)
        return None


def _path(label: str) -> Path:
    return cache_dir("profiles", hashlib.sha256(label.encode()).hexdigest()[:16] + ".json")
