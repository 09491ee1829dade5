"""Bringing a backend up, all of it or nothing. What `accel up` does."""

from collections.abc import Callable
from typing import Any

import ray

from accel.backend import BackendError
from accel.errors import AccelError, EngineStartError
from accel_ray import keeper
from accel_ray.cluster import Cluster, describe
from accel_ray.config import Deployment, EngineSpec, check_engines
from accel_ray.ending import CLOSE_S
from accel_ray.kinds import kind_of
from accel_ray.looking import Found, look
from accel_ray.placement import check_fit
from accel_ray.wire import ActorSpec, Reply

PLACED_S = 120.0


def up(deployment: Deployment, told: Callable[[str], None]) -> Found:
    """Start every engine. On failure nothing of it is left. `told` hears of progress. Raises an AccelError."""
    check_engines(deployment, "This backend")
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
            return look(cluster, kept)
        finally:
            cluster.disconnect()
    except BaseException:
        if kept is not None:
            keeper.stop(kept)
        raise


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


def _taken(namespace: str, why: str) -> BackendError:
    return BackendError(
        f"There is a backend in namespace {namespace!r} already: {why}.",
        f"End it with `accel down --namespace {namespace}`, or start this one in another: accel up --namespace NAME",
    )
