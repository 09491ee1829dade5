"""Arms that nothing is early in, and whose every run is followed: they show what an unmodified run calls, and when."""

from __future__ import annotations

from typing import Any

import accel


def recorder(program: Any) -> Any:
    """The program, followed. By itself it would rest, as one that gains nothing, and show some of its runs only."""
    recorded = accel.accelerate(program, speculate="off")
    recorded.plan.follows = lambda loop=None: True
    return recorded
