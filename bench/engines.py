"""What the benchmark's programs run on: simulated engines in virtual or real time, or real engines on this machine.

Every arm has components and a store of its own; the engines behind them are the same, because their configs are equal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import accel_local
from accel.engine.profile import Profile
from accel_langgraph import AccelChatModel, AccelEmbeddings, AccelReranker, AccelVectorStore
from accel_sim import (
    Group,
    SimDevicesConfig,
    SimEmbeddingConfig,
    SimLLMConfig,
    SimReplicasConfig,
    SimRerankConfig,
    SimStoreConfig,
    profile_of,
    virtual,
)
from accel_sim.kv_cache import NEXT_USE
from accel_sim.llm import Served
from accel_sim.skipping import skipping
from corpus.papers import SMALL, Parts, Sizes

T = TypeVar("T")
KINDS = ("llm", "embedding", "reranking", "searching")
SIM_DIMENSION = 64


@dataclass
class Engines:
    """`clock`: "virtual", "skipped" (`accel_sim.skipping`) or "real" seconds. `profiles`: what the limit is computed
    with."""

    name: str
    clock: str
    sizes: Sizes
    profiles: Mapping[str, Profile]
    make: Callable[[str], Parts]
    _models: list[AccelChatModel] = field(default_factory=list)

    def parts(self, arm: str) -> Parts:
        parts = self.make(arm)
        for model in (parts.llm, parts.light_llm):
            if isinstance(model, AccelChatModel) and all(m.engine_config != model.engine_config for m in self._models):
                self._models.append(model)
        return parts

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the measurement on this clock."""
        if self.clock == "virtual":
            self._models.clear()
            return virtual.run(main)
        with skipping() if self.clock == "skipped" else nullcontext():
            return asyncio.run(main())

    async def forget_prefixes(self) -> None:
        """So that no arm finds what another has computed."""
        for engine in await self._engines():
            await accel_local.arun(engine.reset_prefix_cache())

    async def served(self) -> Served:
        """By the simulated language models, since they started."""
        each = [asdict(engine.served) for engine in await self._engines()]
        return Served(**{name: sum(one[name] for one in each) for name in asdict(Served())})

    async def _engines(self) -> list[Any]:
        return [await accel_local.aengine(model.engine_config) for model in self._models]


def simulated(
    profile: str = "7b",
    clock: str = "virtual",
    seed: int = 0,
    sizes: Sizes | None = None,
    *,
    kv_tokens: int = 0,
    replicas: int = 1,
    models: int = 1,
    batching: str = "topology-aware",
    eviction: str = NEXT_USE,
    one_line: bool = True,
    devices: Group | None = None,
) -> Engines:
    """`profile`: a published one by model size, or a file (`python -m bench profile`). kv_tokens, replicas: of each
    language model. models: with 2 the light one is another, as large. batching, eviction, one_line: their
    policies. devices: on which the models take turns."""
    profiles = {kind: profile_of(profile, kind) for kind in KINDS}

    def model(name: str) -> AccelChatModel:
        config: Any = SimLLMConfig(
            profile=profile, seed=seed, kv_tokens=kv_tokens, name=name, batching=batching, eviction=eviction
        )
        if devices is not None:
            config = SimDevicesConfig(config, devices)
        elif replicas > 1:
            config = SimReplicasConfig(config, replicas, one_line)
        return AccelChatModel(model=f"simulated {profile}{name and ' '}{name}", engine=config)

    def make(arm: str) -> Parts:
        llm = model("")
        light_llm = model("light") if models > 1 else llm
        embeddings = AccelEmbeddings(engine=SimEmbeddingConfig(profiles["embedding"], SIM_DIMENSION))
        store_config = SimStoreConfig(arm, SIM_DIMENSION, profiles["searching"])
        store = AccelVectorStore(embeddings, arm, dimension=SIM_DIMENSION, engine=store_config)
        reranker = AccelReranker(engine=SimRerankConfig(profiles["reranking"]))
        return Parts(llm, light_llm, embeddings, store, reranker, sizes or Sizes())

    return Engines(f"simulated {profile}", clock, sizes or Sizes(), profiles, make)


def on_this_machine(profiles: Mapping[str, Profile], sizes: Sizes = SMALL) -> Engines:
    """vLLM, sentence-transformers and pgvector as `accel_local` hosts them; float32, so that answers repeat exactly."""
    llm = AccelChatModel(dtype="float32", temperature=0.0)
    embeddings = AccelEmbeddings()
    reranker = AccelReranker()

    def make(arm: str) -> Parts:
        store = AccelVectorStore(embeddings, arm, temporary=True)
        return Parts(llm, llm, embeddings, store, reranker, sizes)

    return Engines("real engines on this machine", "real", sizes, profiles, make)
