"""A store of ours on a simulated engine, and embedders that say what they were asked, early or not."""

from __future__ import annotations

import itertools
from typing import Any

from langchain_core.embeddings import Embeddings

import accel
from accel.engine.profile import Profile
from accel_langgraph import AccelVectorStore
from accel_sim import SimStoreConfig
from adapters.tests.core_fakes import World

DIMENSION = 4
BATCH_TOKENS = 40
"""The micro-batches of these embedders: what is worth it by their profile."""
EMBEDDING = Profile("embedding", batches=((1, BATCH_TOKENS, 0.01), (10, BATCH_TOKENS, 0.1)))
SEARCHING = Profile("searching", search=((1, 0.0001), (1000, 0.0001)))
_numbers = itertools.count()


def vector(text: str) -> list[float]:
    """A function of the text alone."""
    return [float(len(text)), float(sum(map(ord, text)) % 97), float(len(text.split())), 1.0]


class Elementwise(Embeddings):
    """Declared: pure, local, four calls at a time, each text as it would be alone. Serves a call as the world says."""

    def __init__(self, world: World, name: str = "embed") -> None:
        self.world = world
        self.name = name

    def accel_profiles(self) -> list[Profile]:
        return [EMBEDDING]

    def embed_query(self, text: str) -> list[float]:
        self.world.serve(self.name, f"query: {text}")
        return vector(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.world.serve(self.name, "texts: " + "|".join(texts))
        return [vector(text) for text in texts]


class Remote(Elementwise):
    """Of a service elsewhere."""

    base_url = "https://api.example.com/v1"


class Together(Elementwise):
    """Says nothing about the elements of a batch."""


class Unmeasured(Elementwise):
    """Has no profile."""

    def accel_profiles(self) -> list[Profile]:
        return []


class Narrow(Elementwise):
    """One call at a time."""


class Coroutines(Elementwise):
    """Has both colours."""

    async def aembed_query(self, text: str) -> list[float]:
        self.world.serve(self.name, f"query: {text}")
        return vector(text)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self.world.serve(self.name, "texts: " + "|".join(texts))
        return [vector(text) for text in texts]


accel.register(Elementwise, pure=True, local=True, concurrency=4, elementwise=True)
accel.register(Remote, local=False)
accel.register(Together, elementwise=False)
accel.register(Narrow, concurrency=1)
accel.register(Coroutines, pure=True, local=True, concurrency=4, elementwise=True, twins=True)


def config() -> SimStoreConfig:
    """Of a store that nobody else uses."""
    return SimStoreConfig(f"stages {next(_numbers)}", DIMENSION, SEARCHING, ingest_s=0.0)


def store_with(embedding: Any, engine: Any = None) -> AccelVectorStore:
    return AccelVectorStore(embedding, "stages", dimension=DIMENSION, engine=engine or config())
