"""The runs that are going on, and how runs are called."""

from __future__ import annotations

import itertools
import os
import weakref
from typing import Any
from uuid import uuid4

from ..process.threads import issuer

OPEN: weakref.WeakSet[Any] = weakref.WeakSet()
"""Runs; they are made in the module that imports this one."""
_process = uuid4().hex
_numbers = itertools.count()


def new_name() -> str:
    """Unlike those of all other runs, also of other processes that use the same engines; ascends within a process."""
    return f"{_process}-{os.getpid()}-{next(_numbers):012}"


def open_runs() -> list[Any]:
    """All of them, although others begin and end meanwhile."""
    return [run for held in OPEN.data.copy() if (run := held()) is not None]  # type: ignore[attr-defined]  # as WeakSet.copy


def followed(timeout_s: float) -> bool:
    """Wait until everything that open runs were told has been looked at; False if that takes longer."""
    return all([run.inbox.settle(timeout_s) for run in open_runs()]) and issuer.settle(timeout_s)
