"""A backend as a whole: bringing it up, looking at it, taking it down. What `accel up`, `status` and `down` do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ray

from accel.backend import BackendError
from accel.errors import AccelError, EngineStartError
from accel_ray import keeper
from accel_ray.cluster import Cluster, describe, ours
from accel_ray.config import Deployment, EngineSpec, LocalRay
from accel_ray.kinds import kind_of
from accel_ray.placement import check_fit
from accel_ray.wire import ActorSpec, Reply

ANSWER_S = 5.0
CLOSE_S = 30.0
PLACED_S = 120.0


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


def up(deployment: Deployment, told: Callable[[str], None]) -> list[Status]:
    """Start every engine. On failure nothing of it is left. `told` hears of progress. Raises an AccelError."""
    if not deployment.engines:
        raise BackendError("This backend has no engines.", "declare some under `engines:` in backend.yaml")
    namespace, kept = deployment.namespace, None
    address = deployment.address
    if address is None:
        if keeper.kept(namespace) is not None:
            raise _taken(namespace, "it was started on this machine before")
        told("starting a local Ray")
        kept = keeper.start(namespace, deployment.local)
    cluster = Cluster(address, namespace, deployment.local, kept)
    try:
        cluster.connect()
        try:
            if held := cluster.handles():
                raise _taken(namespace, f"it has {', '.join(held)}")
            check_fit([actor for spec in deployment.engines for actor in spec.actors()], cluster.nodes())
            _start_all(cluster, deployment.engines, told)
            return look(cluster)
        finally:
            cluster.disconnect()
    except BaseException:
        if kept is not None:
            keeper.stop(kept, namespace)
        raise


def status(address: str | None, namespace: str) -> list[Status]:
    """Every actor of the backend, in order. Raises BackendError."""
    cluster = _found(address, namespace)
    try:
        return look(cluster)
    finally:
        cluster.disconnect()


def down(address: str | None, namespace: str) -> list[str]:
    """End every actor with its engines' processes, and the Ray if `up` started it; returns the actors' names.
    Raises BackendError if there is no Ray to ask."""
    kept = keeper.kept(namespace) if address is None else None
    try:
        cluster = _found(address, namespace)
        try:
            handles = cluster.handles()
            cluster.end(list(handles.values()), CLOSE_S, sweep=kept is None)
            return [name for name, handle in handles.items() if ours(handle)]
        finally:
            cluster.disconnect()
    except BackendError:
        if kept is None:
            raise
        return []  # its Ray is broken: what follows ends all of it
    finally:
        if kept is not None:
            keeper.stop(kept, namespace)


def look(cluster: Cluster) -> list[Status]:
    handles = cluster.handles()
    asked = {name: describe(handle, name, cluster.namespace) for name, handle in handles.items() if ours(handle)}
    if asked:
        ray.wait(list(asked.values()), num_returns=len(asked), timeout=ANSWER_S)
    return [_status(name, handle, asked.get(name)) for name, handle in sorted(handles.items())]


def _status(name: str, handle: Any, asked: Any) -> Status:
    known = ray._private.state.actors(handle._actor_id.hex())
    state, restarts = str(known.get("State", "UNKNOWN")), int(known.get("NumRestarts", 0))
    engine, _, replica = name.rpartition(":")
    try:
        said = ray.get(asked, timeout=0) if asked is not None else None
    except (ray.exceptions.RayError, ray.exceptions.GetTimeoutError):
        said = None
    if said is None:
        return Status(engine or name, replica, state, restarts)
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


def _start_all(cluster: Cluster, specs: tuple[EngineSpec, ...], told: Callable[[str], None]) -> None:
    actors = {actor.name: actor for spec in specs for actor in spec.actors()}
    handles = {name: cluster.start(actor) for name, actor in actors.items()}
    try:
        told("waiting for the actors' processes")
        placing = [describe(handle, name, cluster.namespace) for name, handle in handles.items()]
        _, waiting = ray.wait(placing, num_returns=len(placing), timeout=PLACED_S)
        if waiting:
            raise EngineStartError(
                f"Ray gave {len(waiting)} of {len(placing)} actors no process within {PLACED_S:.0f} s.",
                "`ray status` says what is free; num_gpus and num_cpus are what they want",
            )
        opening = {handles[name].open.remote(actor.config, ""): name for name, actor in actors.items() if _opens(actor)}
        left = list(opening)
        while left:
            told(f"starting {', '.join(sorted(opening[one] for one in left))}")
            (done, *_), left = ray.wait(left, num_returns=1)
            _check(actors[opening[done]], done)
    except BaseException:
        cluster.end(list(handles.values()), CLOSE_S)
        raise


def _opens(actor: ActorSpec) -> bool:
    """What each program asks for anew is not started before."""
    kind = kind_of(actor.config)
    return kind is None or not kind.asked


def _check(actor: ActorSpec, done: Any) -> None:
    try:
        reply: Reply = ray.get(done)
        reply.result()
    except AccelError as error:
        raise EngineStartError(f"Engine {actor.engine!r} did not start. {error.what}", error.remedy) from error
    except ray.exceptions.RayError as error:
        text = " ".join(str(error).split())[:300]
        raise EngineStartError(
            f"Engine {actor.engine!r} did not start: its actor died: {text}",
            "it may need more memory than there is; Ray's logs say more (session_latest/logs)",
        ) from error


def _found(address: str | None, namespace: str) -> Cluster:
    kept = keeper.kept(namespace) if address in (None, "auto") else None
    cluster = Cluster(address or "auto", namespace, LocalRay(), kept)
    cluster.connect()
    return cluster


def _taken(namespace: str, why: str) -> BackendError:
    return BackendError(
        f"There is a backend in namespace {namespace!r} already: {why}.",
        "end it with `accel down`, or start this one in another namespace: accel up --namespace NAME",
    )
