"""Where Accel keeps what is expensive to make again: converted models, the embedded database, process records."""

import os
from pathlib import Path


def cache_dir(*parts: str) -> Path:
    """`$ACCEL_CACHE`, else the XDG cache directory's `accel`, joined with `parts`. Not created here."""
    configured = os.environ.get("ACCEL_CACHE")
    if configured:
        return Path(configured).expanduser().joinpath(*parts)
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache").joinpath("accel", *parts)
