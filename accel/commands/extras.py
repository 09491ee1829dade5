"""Packages that only commands need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import MissingExtra

EXTRA = "cli"


def needs(module: str, what: str) -> Any:
    """An optional module. Raises MissingExtra."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(what, EXTRA, error.name or "") from error
