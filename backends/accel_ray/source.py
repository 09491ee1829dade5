"""The engines of a Ray backend, for a host: finds or starts the actors that serve a config."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accel.backend import BackendError
from accel.engine import Engine, EngineConfig
from accel.engine.profile import Profile
from accel_local.replicas import replicated
from accel_ray.cluster import Cluster
from accel_ray.config import Deployment, EngineSpec, read
from accel_ray.kinds import lasting, private
from accel_ray.placement import check_fit
from accel_ray.places import joined
from accel_ray.proxies import proxy
from accel_ray.remote import Replica, Session, blocking
from accel_ray.routes import Route, route
from accel_ray.wire import ActorSpec, Private

CLOSE_S = 20.0


class RaySource:
    """See `accel.backend.Backend.ray`."""

    def __init__(
        self,
        address: str | None = None,
        config: str | Path | dict[str, Any] | None = None,
        namespace: str | None = None,
    ) -> None:
        self._deployment = read(config) if config is not None else Deployment()
        self._address = address or self._deployment.address
        self._namespace = namespace or (self._deployment.namespace if config is not None else None)
        """None: the one there is."""
        self._lock = threading.Lock()
        self._session: Session | None = None

    def connect(self) -> None:
        """Blocks for up to some seconds. Raises BackendError. A second call does nothing."""
        with self._lock:
            if self._session is not None and self._session.gone is None:
                return
            cluster = joined(self._address, self._namespace, self._deployment.local)
            try:
                self._specs(cluster)
            except BaseException:
                cluster.disconnect()
                raise
            self._session = Session(cluster)

    async def start(self, config: EngineConfig[Any]) -> Engine:
        found, session, handles, new = await blocking(lambda: self._actors(config))
        served = Private(found.config, session.client) if private(found.config) else found.config
        actors = found.spec.actors()
        replicas = [Replica(session, actor, served, handle) for actor, handle in zip(actors, handles, strict=True)]
        try:
            await asyncio.gather(*(replica.open() for replica in replicas))
        except BaseException:
            if session.gone is None:
                await blocking(lambda: session.cluster.end_unused(new, CLOSE_S))
            raise
        for replica in replicas:
            replica.forgetful = replica.opened.family == "store" and not lasting(found.config)
        return replicated([await proxy(replica) for replica in replicas], config.label)

    def known_profile(self, config: EngineConfig[Any]) -> Profile | None:
        """What this machine remembers was not measured on the backend's."""
        return None

    def close(self) -> None:
        with self._lock:
            session, self._session = self._session, None
        if session is None:
            return
        session.leave(CLOSE_S)
        cluster = session.cluster
        if cluster.owned:
            cluster.end(list(cluster.handles().values()), CLOSE_S)
        cluster.disconnect()

    def _actors(self, config: EngineConfig[Any]) -> tuple[Route, Session, list[Any], list[Any]]:
        """Where the config is served, our session, the actors' handles, and those of them that are new."""
        if self._session is not None:
            self._session.check()
        self.connect()
        session = self._session
        assert session is not None
        cluster = session.cluster
        nodes = cluster.nodes()
        gpus = max((node.all_gpus for node in nodes), default=0.0)
        found = route(config, self._specs(cluster), cluster.namespace, gpus)
        actors = found.spec.actors()
        up = {actor.name: cluster.handle(actor.name) for actor in actors}
        missing = [actor for actor in actors if up[actor.name] is None]
        check_fit(missing, nodes)
        started = {actor.name: cluster.start(actor) for actor in missing}
        handles = [up[actor.name] or started[actor.name] for actor in actors]
        return found, session, handles, list(started.values())

    def _specs(self, cluster: Cluster) -> list[EngineSpec]:
        """What is up, and what this program's config declares beside it. Raises BackendError if they contradict."""
        up = specs_of([served.spec for served in cluster.served()])
        for spec in self._deployment.engines:
            held = up.setdefault(spec.name, spec)
            if held != spec:
                raise BackendError(
                    f"Namespace {cluster.namespace!r} has another engine {spec.name!r}: {held.config.label}, "
                    f"{held.replicas} replicas of {held.num_gpus:g} GPU and {held.num_cpus:g} CPU.",
                    "use another name or namespace, or end that backend: accel down",
                )
        return list(up.values())


def specs_of(actors: Sequence[ActorSpec]) -> dict[str, EngineSpec]:
    """The engines that actors belong to, by name."""
    return {actor.engine: EngineSpec.of(actor) for actor in actors}
