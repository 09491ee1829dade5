"""Names of runs: unlike those of all others, also of other processes that use the same engines."""

from __future__ import annotations

import itertools
import os
from uuid import uuid4

_process = uuid4().hex
_numbers = itertools.count()


def new() -> str:
    """Ascends within a process."""
    return f"{_process}-{os.getpid()}-{next(_numbers):012}"
