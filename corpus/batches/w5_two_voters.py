"""As `w4_voting`, with two models: one judge and the clerk are the second one's: 3 calls at once, then 2."""

from __future__ import annotations

from langgraph.graph.state import CompiledStateGraph

from corpus.batches.w4_voting import State, inputs, prepare, voting
from corpus.papers.parts import Parts

PAPER = "Halo, table 2, W5"
CALLS = 5

__all__ = ["CALLS", "PAPER", "build", "inputs", "prepare"]


def build(parts: Parts) -> CompiledStateGraph[State, None, State, State]:
    return voting([parts.llm, parts.light_llm, parts.llm], parts.light_llm, parts.llm, parts.sizes)
