"""Taking backends down, so that nothing of them is left running. What `accel down` does."""

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psutil

from accel.backend import BackendError
from accel_local.processes import still_running
from accel_ray import keeper
from accel_ray.cluster import Cluster, ours
from accel_ray.config import LocalRay
from accel_ray.looking import Found

CLOSE_S = 30.0
GONE_S = 30.0
"""How long the processes of actors may take to end."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What was ended of a namespace. `engine_processes`: those of its actors and what they had started, on this
    machine; `ray_processes`: those of its Ray, if that ended as well. `left`: what is still running, in words."""

    namespace: str
    address: str
    engines: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    engine_processes: int = 0
    ray_processes: int = 0
    left: tuple[str, ...] = ()


def end(found: Sequence[Found]) -> list[Ended]:
    """End these backends. A Ray of `accel up` ends with its own namespace, and whatever else is on it. Raises
    BackendError if a Ray that was there isn't any more."""
    ended = []
    for address in dict.fromkeys(one.address for one in found):
        ended += _end_at([one for one in found if one.address == address])
    return ended


def _end_at(found: Sequence[Found]) -> list[Ended]:
    """Backends of one Ray."""
    first = next((one for one in found if one.ends_its_ray), found[0])
    workers = {one.namespace: _processes(one) for one in found}
    actors: dict[str, list[str]] = {one.namespace: [] for one in found}
    of_ray: list[psutil.Process] = []
    try:
        if not first.problem:
            _end_actors(first, actors)
    except BackendError:
        if not first.ends_its_ray:
            raise  # else its Ray is broken: what follows ends all of it
    finally:
        if first.kept is not None and first.ends_its_ray:
            all_workers = {process for each in workers.values() for process in each}
            of_ray = [process for process in keeper.stop(first.kept) if process not in all_workers]
    return [
        Ended(
            one.namespace,
            one.address,
            tuple(dict.fromkeys(name.rpartition(":")[0] for name in actors[one.namespace])),
            tuple(actors[one.namespace]),
            len(workers[one.namespace]),
            len(of_ray) if one is first else 0,
            tuple(_left([*workers[one.namespace], *(of_ray if one is first else ())])),
        )
        for one in found
    ]


def _end_actors(first: Found, actors: dict[str, list[str]]) -> None:
    cluster = Cluster(first.address, first.namespace, LocalRay(), first.kept)
    cluster.connect()
    try:
        for namespace, names in actors.items():
            cluster.namespace = namespace
            handles = cluster.handles()
            cluster.end(list(handles.values()), CLOSE_S, sweep=not first.ends_its_ray)
            names += [name for name, handle in sorted(handles.items()) if ours(handle)]
    finally:
        cluster.disconnect()


def _processes(found: Found) -> set[psutil.Process]:
    """Of its actors, and what they have started, as far as they are on this machine."""
    here, processes = socket.gethostname(), set()
    for actor in found.actors:
        if actor.pid is None or actor.node != here:
            continue
        try:
            worker = psutil.Process(actor.pid)
            processes |= {worker, *worker.children(recursive=True)}
        except psutil.NoSuchProcess:
            continue
    return processes


def _left(processes: Iterable[psutil.Process]) -> list[str]:
    left = []
    for process in still_running(processes, GONE_S):
        try:
            left.append(f"{process.pid} {process.name()}")
        except psutil.NoSuchProcess:
            continue
    return sorted(left)
