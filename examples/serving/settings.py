"""What the servers are told by their environment, and what they tell an operator."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel import Accelerated


@dataclass(frozen=True)
class Settings:
    model_url: str
    """Of a server that speaks OpenAI's protocol, with `/v1` at the end."""
    accelerated: bool = True
    """False leaves the line of Accel's out: what `load` compares with."""
    plan_file: Path | None = None
    """What was learnt, for the next start and for other workers."""

    @classmethod
    def from_environment(cls) -> Settings:
        plan = os.environ.get("PLAN_FILE")
        return cls(
            model_url=os.environ.get("MODEL_URL", "http://127.0.0.1:8001/v1"),
            accelerated=os.environ.get("ACCELERATED", "1") == "1",
            plan_file=Path(plan) if plan else None,
        )

    @property
    def plan(self) -> Path | None:
        """The file, if it has been written."""
        return self.plan_file if self.plan_file is not None and self.plan_file.exists() else None


def reported(program: Any) -> dict[str, Any]:
    """Nothing of an unmodified program."""
    if not isinstance(program, Accelerated):
        return {}
    told_by = program.report()
    counts = {name: getattr(told_by, name) for name in ("demanded", "issued", "retired", "wasted")}
    return {"process": os.getpid(), **counts, "text": str(told_by)}
