"""Public programs as their authors wrote them, and what they are asked: none of their code.

`python -m bench strangers` runs them, if `ACCEL_STRANGERS` names a folder with checkouts.
"""

from __future__ import annotations

from bench.strangers.programs import Stranger


def strangers() -> list[Stranger]:
    from bench.strangers.with_langgraph import PROGRAMS
    from bench.strangers.with_llamaindex import PROGRAMS as OTHERS

    return [*PROGRAMS, *OTHERS]


def stranger(name: str) -> Stranger:
    """Raises ValueError for a name that is not known."""
    known = {program.name: program for program in strangers()}
    if name not in known:
        raise ValueError(f"{name!r} is no program; there are {', '.join(known)}")
    return known[name]
