"""One Ray for all tests of this folder, with two logical GPUs; every test has a namespace of its own on it."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accel.engine.profile import Profile, ProfileFile
from accel_sim import SimEmbeddingConfig, SimLLMConfig, SimRerankConfig, SimStoreConfig

BATCHES = ((1, 8, 1e-5), (8, 8, 4e-5))
OTHERS = {
    "embedding": Profile("embedding", batches=BATCHES, batch_tokens=64),
    "reranking": Profile("reranking", batches=BATCHES, batch_tokens=64),
    "searching": Profile("searching", search=((10, 1e-5), (100, 2e-5))),
}
EMBEDDING = SimEmbeddingConfig(OTHERS["embedding"])
RERANKING = SimRerankConfig(OTHERS["reranking"])
STORE = SimStoreConfig("records", 3, OTHERS["searching"])


@pytest.fixture(scope="package")
def ray_up() -> Iterator[None]:
    ray = pytest.importorskip("ray", reason="the extra ray is not installed")
    from accel_ray.cluster import start_own
    from accel_ray.config import LocalRay

    guard = start_own(LocalRay(num_cpus=4, num_gpus=2, object_store_mib=80))
    yield
    ray.shutdown()
    guard.close()


@pytest.fixture
def namespace(ray_up: None) -> Iterator[str]:
    """Its actors are ended with the test."""
    name = uuid.uuid4().hex[:8]
    yield name
    end_actors(name)


def end_actors(namespace: str) -> None:
    import ray

    from accel_ray.cluster import Cluster
    from accel_ray.config import LocalRay

    for handle in Cluster(None, namespace, LocalRay()).handles().values():
        ray.kill(handle, no_restart=True)


@pytest.fixture(scope="package")
def fast_profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of engines that take next to no time."""
    return profile_file(tmp_path_factory.mktemp("profiles") / "fast.json", token_s=2e-4)


@pytest.fixture(scope="package")
def slow_profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of engines whose answers can be interrupted."""
    return profile_file(tmp_path_factory.mktemp("profiles") / "slow.json", token_s=4e-3)


@pytest.fixture(scope="package")
def narrow_profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of engines that serve two requests at a time."""
    return profile_file(tmp_path_factory.mktemp("profiles") / "narrow.json", token_s=4e-3, slots=2)


def profile_file(path: Path, token_s: float, slots: int = 16) -> str:
    decode = ((1, token_s), (8, 2 * token_s))
    profile = Profile("llm", ((10, 1e-4), (100, 1e-3)), decode, batch_tokens=512, block_tokens=16, slots=slots)
    ProfileFile({"llm": profile, **OTHERS}).save(path)
    return str(path)


def sim_llm(profile: str, **options: Any) -> SimLLMConfig:
    return SimLLMConfig(profile, max_model_len=2048, **options)
