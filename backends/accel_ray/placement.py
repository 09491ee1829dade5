"""Whether actors fit a cluster, before any is started: one that doesn't would wait for ever."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from accel.errors import EngineStartError
from accel_ray.wire import ActorSpec

_EPSILON = 1e-6


@dataclass(slots=True)
class Node:
    """What a node has free, and in all. GPUs are whole or parts of one."""

    name: str
    cpus: float
    gpus: float
    all_cpus: float
    all_gpus: float
    _free: list[float] = field(init=False)

    def __post_init__(self) -> None:
        whole = int(self.gpus + _EPSILON)
        self._free = [1.0] * whole + ([self.gpus - whole] if self.gpus - whole > _EPSILON else [])

    def take(self, cpus: float, gpus: float) -> bool:
        """Reserve that much, if it is free. A fraction of a GPU is a part of a single one."""
        if cpus > self.cpus + _EPSILON:
            return False
        if gpus >= 1:
            whole = [n for n, free in enumerate(self._free) if free >= 1.0 - _EPSILON]
            if len(whole) < gpus:
                return False
            for n in whole[: int(gpus)]:
                self._free[n] = 0.0
        elif gpus > 0:
            fitting = [n for n, free in enumerate(self._free) if free >= gpus - _EPSILON]
            if not fitting:
                return False
            tightest = min(fitting, key=lambda n: self._free[n])
            self._free[tightest] -= gpus
        self.cpus -= cpus
        return True


def check_fit(specs: Sequence[ActorSpec], nodes: Sequence[Node]) -> None:
    """Raises EngineStartError if these actors can't all be placed, largest first. Uses the nodes up."""
    total = f"{_sum(nodes, 'gpus')} of {_sum(nodes, 'all_gpus')} GPUs and {_sum(nodes, 'cpus')} of " + (
        f"{_sum(nodes, 'all_cpus')} CPUs are free on {len(nodes)} node{'s' if len(nodes) != 1 else ''}"
    )
    for spec in sorted(specs, key=lambda spec: (-spec.num_gpus, -spec.num_cpus)):
        if not any(node.take(spec.num_cpus, spec.num_gpus) for node in nodes):
            wants = f"{spec.num_gpus:g} GPU and {spec.num_cpus:g} CPU"
            raise EngineStartError(
                f"Engine {spec.engine!r} doesn't fit: each of its {spec.replicas} replicas wants {wants}; {total}.",
                "lower num_gpus (fractions share a GPU), num_cpus or replicas, end other backends with `accel down`, "
                "or add a node",
            )


def _sum(nodes: Sequence[Node], name: str) -> str:
    return f"{sum(getattr(node, name) for node in nodes):g}"
