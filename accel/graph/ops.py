"""The kinds of primitives (Ayo, table 2) and what passes may know of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Effect = Literal["pure", "sampled", "reads", "writes", "unknown"]
EngineKind = Literal["llm", "embedding", "search", "store", "rerank", "tool", "none"]


@dataclass(frozen=True, slots=True)
class Op:
    """A kind of primitive (Ayo, table 2). Passes ask these properties; no pass lists names."""

    name: str
    engine: EngineKind
    effect: Effect
    batchable: bool = False
    splittable: bool = False
    """A known prefix of its input can be worked on before the rest is known."""
    streams: bool = False
    """Its output becomes known piece by piece."""

    @property
    def issuable(self) -> bool:
        """May run before its demand (invariant 2)."""
        return self.effect in ("pure", "sampled", "reads")


OPS = {
    op.name: op
    for op in (
        Op("input", "none", "unknown"),
        Op("enter", "none", "unknown"),
        Op("exit", "none", "unknown"),
        Op("aggregate", "none", "pure"),
        Op("decode", "llm", "sampled", batchable=True, splittable=True, streams=True),
        Op("prefill", "llm", "pure", batchable=True),
        Op("embedding", "embedding", "pure", batchable=True),
        Op("searching", "search", "reads"),
        Op("reranking", "rerank", "pure", batchable=True),
        Op("ingestion", "store", "writes"),
        Op("tool", "tool", "pure"),
    )
}
