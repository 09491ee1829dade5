"""Programs of which requests arrive one by one, and several are under way at a time, as ordinary LangGraph code.

Modules are as those of `corpus.batches`.
"""

from __future__ import annotations

from corpus.arrivals import reading
from corpus.batches import PROGRAMS as BATCHES
from corpus.batches import Program

PROGRAMS: dict[str, Program] = {
    "reading": reading,
    **{name: BATCHES[name] for name in ("reflection", "debate", "W3-two-critics")},
}
"""An agent whose context grows from call to call; a chain and a discussion over a document; a chain of short prompts
that share nothing."""

__all__ = ["PROGRAMS", "Program"]
