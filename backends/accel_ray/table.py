"""The conformance table: every engine on every host, by the checks of `accel.engine.conformance`."""

import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import accel_local
from accel.backend import Backend
from accel.engine import EngineConfig
from accel.engine.conformance import EMBEDDING_CHECKS, LLM_CHECKS, RERANK_CHECKS, VECTOR_STORE_CHECKS
from accel.engine.profile import Profile, ProfileFile
from accel.errors import AccelError, ConfigurationError
from accel_local.models import DEFAULT_EMBEDDING, DEFAULT_LLM, ensure_model
from accel_ray.cluster import Cluster
from accel_ray.config import LocalRay
from accel_ray.ending import CLOSE_S
from accel_ray.kinds import KINDS
from accel_ray.mistakes import one_of

BATCHES = ((1, 8, 1e-5), (8, 8, 4e-5))
MODELS = {
    "vllm": DEFAULT_LLM,
    "transformers": DEFAULT_LLM,
    "sentence_transformers": DEFAULT_EMBEDDING,
    "rerank": DEFAULT_EMBEDDING,
}
"""What engines are checked with."""


@contextmanager
def _on_ray() -> Iterator[None]:
    """On a Ray of our own, or on the one that this process is connected to; nothing is left there."""
    namespace = f"conformance-{uuid.uuid4().hex[:8]}"
    with Backend.ray(namespace=namespace):
        try:
            yield
        finally:
            cluster = Cluster(None, namespace, LocalRay())
            cluster.end(list(cluster.handles().values()), CLOSE_S, sweep=False)


HOSTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {"local": Backend.local, "ray": _on_ray}


@dataclass(frozen=True, slots=True)
class Cell:
    """An engine on a host. `failures`: (check, why), of `checks`; what isn't installed has no checks."""

    engine: str
    host: str
    checks: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    missing: str = ""

    @property
    def said(self) -> str:
        return self.missing or f"{self.checks - len(self.failures)} of {self.checks}"

    def as_dict(self) -> dict[str, Any]:
        failures = [{"check": check, "why": why} for check, why in self.failures]
        return {**asdict(self), "passed": self.checks - len(self.failures), "failures": failures}


def fill(engines: Sequence[str] | None, hosts: Sequence[str] | None, told: Callable[[str], None]) -> list[Cell]:
    """Run the checks; None means all. `told` hears of progress. Raises ConfigurationError for unknown names."""
    chosen, places = _known(engines, KINDS, "engine"), _known(hosts, HOSTS, "host")
    cells = []
    with tempfile.TemporaryDirectory(prefix="accel-conformance-") as folder:
        for host in places:
            with HOSTS[host]():
                cells += [_cell(engine, host, Path(folder), told) for engine in chosen]
    return cells


def rows(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """How many checks passed: a head and rows, engines down, hosts across."""
    hosts = list(dict.fromkeys(cell.host for cell in cells))
    held = {(cell.engine, cell.host): cell for cell in cells}
    engines = dict.fromkeys(cell.engine for cell in cells)
    return ["engine", *hosts], [[engine, *(held[engine, host].said for host in hosts)] for engine in engines]


def simulated(folder: Path) -> dict[str, EngineConfig[Any]]:
    """Simulated engines that take next to no time. Their profile is a file in `folder`."""
    from accel_sim import SimEmbeddingConfig, SimLLMConfig, SimRerankConfig, SimStoreConfig

    file = folder / "llm.json"
    if not file.exists():
        decode = ((1, 2e-4), (8, 4e-4))
        profile = Profile("llm", ((10, 1e-4), (100, 1e-3)), decode, batch_tokens=512, block_tokens=16, slots=16)
        ProfileFile({"llm": profile}).save(file)
    searching = Profile("searching", search=((10, 1e-5), (100, 2e-5)))
    return {
        "sim_llm": SimLLMConfig(str(file), max_model_len=2048),
        "sim_embedding": SimEmbeddingConfig(Profile("embedding", batches=BATCHES, batch_tokens=64)),
        "sim_rerank": SimRerankConfig(Profile("reranking", batches=BATCHES, batch_tokens=64)),
        "sim_store": SimStoreConfig("conformance", 3, searching, ingest_s=1e-6),
    }


def _cell(engine: str, host: str, folder: Path, told: Callable[[str], None]) -> Cell:
    kind = KINDS[engine]
    if not kind.installed:
        return Cell(engine, host, missing=f"no {kind.package}")
    told(f"{engine} on {host}: starting")
    try:
        if engine in MODELS:
            ensure_model(MODELS[engine])
        served = accel_local.engine(_config(engine, folder))
    except AccelError as error:
        return Cell(engine, host, 1, (("start", error.what),))
    checks = _checks(engine)
    failures = []
    for check in checks:
        told(f"{engine} on {host}: {check.__name__}")
        try:
            accel_local.run(check(served))
        except Exception as error:  # noqa: BLE001  the table says so
            failures.append((check.__name__, f"{type(error).__name__}: {error}"))
    return Cell(engine, host, len(checks), tuple(failures))


def _config(engine: str, folder: Path) -> EngineConfig[Any]:
    match engine:
        case "vllm" | "transformers":
            return KINDS[engine].make(options={"dtype": "float32"})
        case "pgvector":
            from accel_pgvector import PgVectorConfig

            return PgVectorConfig("conformance", 3, folder=str(folder / "postgres"), temporary=True)
        case "sentence_transformers" | "rerank":
            return KINDS[engine].make()
        case _:
            return simulated(folder)[engine]


def _checks(engine: str) -> Sequence[Any]:
    match engine:
        case "vllm" | "transformers" | "sim_llm":
            return LLM_CHECKS
        case "sentence_transformers" | "sim_embedding":
            return EMBEDDING_CHECKS
        case "rerank" | "sim_rerank":
            return RERANK_CHECKS
        case _:
            return VECTOR_STORE_CHECKS


def _known(asked: Sequence[str] | None, known: dict[str, Any], what: str) -> list[str]:
    for name in asked or ():
        if name not in known:
            raise ConfigurationError(f"There is no {what} {name!r}.", one_of(known, name))
    return list(asked or known)
