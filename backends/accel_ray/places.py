"""Where backends may be: the Rays of this machine, and the one namespace that is meant where none was named."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import ray

from accel.backend import BackendError
from accel.errors import ConfigurationError
from accel_ray import keeper
from accel_ray.cluster import Cluster, check_address
from accel_ray.config import DEFAULT_NAMESPACE, LocalRay
from accel_ray.keeper import Kept


@dataclass(frozen=True, slots=True)
class Place:
    """A Ray. `kept`: who holds it, if `accel up` started it."""

    address: str
    kept: Kept | None = None


def places(address: str | None) -> list[Place]:
    """Those to look at: the Ray this process is connected to; else that of an address; else ("auto", or None) all that
    `accel up` started on this machine, and the Ray the machine is part of. What other programs started for themselves
    is looked at only for "auto", and only if there is nothing else. Raises BackendError."""
    held = {kept.address: kept for kept in keeper.all_kept()}
    if ray.is_initialized():
        cluster = Cluster(address, DEFAULT_NAMESPACE, LocalRay())
        cluster.connect()
        return [Place(cluster.address, held.get(cluster.address))]
    if address not in (None, "auto"):
        return [Place(str(address), held.get(str(address)))]
    found = [Place(kept.address, kept) for kept in held.values()]
    machines = _machines_ray()
    if machines is not None and machines not in held:
        found.append(Place(machines))
    return found or ([Place("auto")] if address == "auto" else [])


def _machines_ray() -> str | None:
    """The address of the Ray that this machine is part of: what the environment says, or `ray start` has noted."""
    said = os.environ.get("RAY_ADDRESS", "")
    if said not in ("", "auto"):
        return said
    noted = ray._private.utils.read_ray_address()
    try:
        if noted:
            check_address(noted)
    except (BackendError, ConfigurationError):
        return None  # it was stopped without a word
    return noted or None


def joined(address: str | None, namespace: str | None, local: LocalRay) -> Cluster:
    """A connected cluster. namespace: None for the one there is. Raises BackendError, or ConfigurationError."""
    own = address is None and not ray.is_initialized()
    if namespace is not None or own:
        kept = keeper.kept(namespace) if namespace is not None and address == "auto" else None
        cluster = Cluster(address, namespace or DEFAULT_NAMESPACE, local, kept)
        cluster.connect()
        return cluster
    here = places(address)
    found: list[tuple[str, Place]] = []
    for place in here:
        cluster = Cluster(place.address, DEFAULT_NAMESPACE, local, place.kept)
        try:
            cluster.connect()
        except BackendError:
            if place is here[-1] and not found:
                raise
            continue  # it may be another one that is meant
        found += [(name, place) for name in namespaces(cluster, place)]
        if len(here) == 1 and len(found) < 2:
            cluster.namespace = found[0][0] if found else DEFAULT_NAMESPACE
            return cluster
        cluster.disconnect()
    if len(found) > 1:
        raise _several(address, found)
    name, place = found[0] if found else (DEFAULT_NAMESPACE, here[-1])
    cluster = Cluster(place.address, name, local, place.kept)
    cluster.connect()
    return cluster


def namespaces(cluster: Cluster, place: Place) -> list[str]:
    """Of a connected cluster: those with actors of Accel's, and the one it was started for."""
    own = {place.kept.namespace} if place.kept is not None else set()
    return sorted({*cluster.namespaces(), *own})


def _several(address: str | None, found: Sequence[tuple[str, Place]]) -> BackendError:
    rays = {place.address for _, place in found}
    said = [f"{name!r}{f' (Ray at {place.address})' if len(rays) > 1 else ''}" for name, place in found]
    name, place = found[0]
    twice = [other for other, _ in found].count(name) > 1
    at = place.address if twice else address
    call = f"Backend.ray({'' if at is None else f'{at!r}, '}namespace={name!r})"
    return BackendError(f"{len(found)} backends are up, in the namespaces {', '.join(said)}.", f"Name one: {call}")
