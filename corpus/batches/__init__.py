"""Twelve programs that papers on many requests at once have measured, as ordinary LangGraph code.

Halo's workflows W1 to W6 (section 4.1, table 2, figure 7) and Helium's six (arXiv 2603.16104, evaluation). A module has
`build(parts)`, `prepare(parts, data_sets)` for what is in the store before the first input, `inputs(data_sets, count,
seed)`, `CALLS` of models per input, and `PAPER`: where it is from and what the paper measured. The models are greedy.
The prompts are ours; where numbers of agents or rounds are, too, the module says so.
"""

from __future__ import annotations

from typing import Any, Protocol

from langgraph.graph.state import CompiledStateGraph

from corpus.batches import (
    debate,
    iterative,
    map_reduce,
    parallel_chains,
    reflection,
    trading,
    w1_retrieval,
    w2_critique,
    w3_two_critics,
    w4_voting,
    w5_two_voters,
    w6_turns,
)
from corpus.papers.data import DataSets
from corpus.papers.parts import Parts


class Program(Protocol):
    """A module of this package."""

    CALLS: int
    PAPER: str
    __name__: str

    def build(self, parts: Parts) -> CompiledStateGraph[Any, Any, Any, Any]: ...

    async def prepare(self, parts: Parts, data_sets: DataSets) -> None: ...

    def inputs(self, data_sets: DataSets, count: int, seed: int) -> list[dict[str, Any]]: ...


PROGRAMS: dict[str, Program] = {
    "W1-retrieval": w1_retrieval,
    "W2-critique": w2_critique,
    "W3-two-critics": w3_two_critics,
    "W4-voting": w4_voting,
    "W5-two-voters": w5_two_voters,
    "W6-turns": w6_turns,
    "debate": debate,
    "map-reduce": map_reduce,
    "parallel-chains": parallel_chains,
    "reflection": reflection,
    "iterative": iterative,
    "trading": trading,
}

__all__ = ["PROGRAMS", "Program"]
