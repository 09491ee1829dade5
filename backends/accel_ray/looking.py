"""What is up: every backend, its actors, and what they say of themselves. What `accel status` shows."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import ray

from accel.errors import AccelError
from accel_ray.cluster import Cluster, describe, ours
from accel_ray.config import DEFAULT_NAMESPACE, LocalRay
from accel_ray.keeper import Kept
from accel_ray.places import Place, namespaces, places

ANSWER_S = 5.0
ALIVE = "ALIVE"


@dataclass(frozen=True, slots=True)
class Status:
    """One actor. `state` is Ray's word: ALIVE, RESTARTING, PENDING_CREATION …; what only the actor itself knows is
    None if it doesn't answer."""

    engine: str
    replica: str
    state: str
    restarts: int
    label: str | None = None
    version: str | None = None
    node: str | None = None
    pid: int | None = None
    up_s: float | None = None
    requests: int | None = None
    clients: int | None = None

    @property
    def name(self) -> str:
        return f"{self.engine}:{self.replica}" if self.replica else self.engine


@dataclass(frozen=True, slots=True)
class Found:
    """A backend that is up. `problem`: why nothing else is known of it. `kept`: who holds its Ray, if `accel up`
    started that on this machine."""

    namespace: str
    address: str
    actors: tuple[Status, ...] = ()
    problem: str = ""
    kept: Kept | None = field(default=None, repr=False)

    @property
    def ends_its_ray(self) -> bool:
        """Whether its Ray was started for it, and ends with it."""
        return self.kept is not None and self.kept.namespace == self.namespace

    @property
    def well(self) -> bool:
        return not self.problem and bool(self.actors) and all(actor.state == ALIVE for actor in self.actors)

    def attach(self, address: str | None = None) -> str:
        """The line with which a program is served by it. address: as the user gave it."""
        where = "auto" if self.kept is not None else address or self.address
        name = "" if self.namespace == DEFAULT_NAMESPACE else f", namespace={self.namespace!r}"
        return f"Backend.ray({where!r}{name}).use()"

    def as_dict(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "address": self.address,
            "ends_its_ray": self.ends_its_ray,
            "well": self.well,
            "problem": self.problem,
            "actors": [asdict(actor) for actor in self.actors],
        }


def look_around(address: str | None) -> list[Found]:
    """Every backend at an address, or (None) those of this machine. Raises BackendError if an address was given and
    nothing is there."""
    found = []
    for place in places(address):
        try:
            found += list(_found_at(place))
        except AccelError as error:
            if place.kept is None and address is not None:
                raise
            name = place.kept.namespace if place.kept is not None else "?"
            found.append(Found(name, place.address, problem=error.what, kept=place.kept))
    return found


def _found_at(place: Place) -> Iterator[Found]:
    cluster = Cluster(place.address, DEFAULT_NAMESPACE, LocalRay(), place.kept)
    cluster.connect()
    try:
        for name in namespaces(cluster, place):
            cluster.namespace = name
            yield look(cluster, place.kept)
    finally:
        cluster.disconnect()


def look(cluster: Cluster, kept: Kept | None) -> Found:
    """At the cluster's namespace."""
    handles = cluster.handles()
    asked = {name: describe(handle, name, cluster.namespace) for name, handle in handles.items() if ours(handle)}
    if asked:
        ray.wait(list(asked.values()), num_returns=len(asked), timeout=ANSWER_S)
    actors = tuple(_status(name, handle, asked.get(name)) for name, handle in sorted(handles.items()))
    return Found(cluster.namespace, cluster.address, actors, kept=kept)


def _status(name: str, handle: Any, asked: Any) -> Status:
    known = ray._private.state.actors(handle._actor_id.hex())
    state, restarts = str(known.get("State", "UNKNOWN")), int(known.get("NumRestarts", 0))
    engine, _, replica = name.rpartition(":")
    try:
        said = ray.get(asked, timeout=0) if asked is not None else None
    except (ray.exceptions.RayError, ray.exceptions.GetTimeoutError):
        said = None
    if said is None:
        return Status(engine or name, replica if engine else "", state, restarts)
    return Status(
        engine,
        replica,
        state,
        restarts,
        label=said["label"],
        version=f"{said['package']} ({said['protocol']})",
        node=said["node"],
        pid=said["pid"],
        up_s=said["up_s"],
        requests=said["requests"],
        clients=said["clients"],
    )
