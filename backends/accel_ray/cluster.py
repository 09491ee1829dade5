"""Ray itself, from a program's side: connecting, and the actors of one namespace. All of it blocks."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from accel.backend import BackendError
from accel.errors import EngineClosed
from accel_local.processes import Guard, sweep
from accel_ray.actor import EngineActor
from accel_ray.addresses import host_and_port
from accel_ray.config import LocalRay
from accel_ray.keeper import Kept
from accel_ray.placement import Node
from accel_ray.wire import ActorSpec, unpacked, version

# It says with every start what the user of a backend can't do anything about.
logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)

CONNECT_S = 5.0
DESCRIBE_S = 30.0
CONCURRENCY = 10_000
"""An actor takes all calls there are: what waits, waits in its engine's queue, where priorities count. They share one
event loop, which concurrency groups would not."""


@dataclass(frozen=True, slots=True)
class Served:
    """An actor that is up, and what it is for."""

    spec: ActorSpec
    handle: Any


class Cluster:
    """One namespace of a Ray cluster."""

    def __init__(self, address: str | None, namespace: str, local: LocalRay, kept: Kept | None = None) -> None:
        """address: None for a Ray of our own. kept: the one that `accel up` started, if that is meant."""
        self._address = kept.address if kept is not None else address
        self._ours = kept is not None
        self.namespace = namespace
        """The one that is meant; may be changed before its actors are asked for anything."""
        self._local = local
        self._connected = False
        self._gcs = ""
        self._guard: Guard | None = None
        """Of a Ray of our own."""

    @property
    def owned(self) -> bool:
        """Whether the Ray is our own and ends with us."""
        return self._guard is not None

    # Connecting

    def connect(self) -> None:
        """Raises BackendError or ConfigurationError. A second call does nothing."""
        if ray.is_initialized():
            self._check_same_cluster()
        else:
            if self._address is None:
                self._guard = start_own(self._local)
            else:
                _attach(self._address, ours=self._ours)
            self._connected = True
        self._gcs = str(ray.get_runtime_context().gcs_address)

    @property
    def address(self) -> str:
        """Of the Ray, once connected."""
        return self._gcs

    def reachable(self) -> bool:
        """Whether the Ray is still there. Ray itself waits for one that is gone, and ends the process in the end."""
        try:
            check_address(self._gcs)
        except BackendError:
            return False
        return True

    def gone(self) -> EngineClosed:
        """What calls raise when it isn't."""
        return EngineClosed(
            f"The Ray at {self._gcs} is gone, and the backend in namespace {self.namespace!r} with it.",
            "start it again (accel up), then accel_local.shutdown() or Backend.ray(...).use() begins anew here",
        )

    def disconnect(self) -> None:
        """Only if it was us who connected."""
        if self._connected:
            guard, self._connected, self._guard = self._guard, False, None
            ray.shutdown()
            if guard is not None:
                guard.close()
                sweep()

    def _check_same_cluster(self) -> None:
        here = ray.get_runtime_context().gcs_address
        if self._address not in (None, "auto", here):
            raise BackendError(
                f"This process is connected to the Ray at {here}, not {self._address}.",
                "call ray.shutdown() first, or leave out the address",
            )

    # Actors

    def handles(self) -> dict[str, Any]:
        """The actors of the namespace by name, in whatever state, but for those that are gone for good."""
        listed = ray.util.list_named_actors(all_namespaces=True)
        names = sorted(entry["name"] for entry in listed if entry["namespace"] == self.namespace)
        found = {name: self.handle(name) for name in names}
        return {name: handle for name, handle in found.items() if handle is not None}

    def namespaces(self) -> list[str]:
        """Those with actors of Accel's."""
        listed = ray.util.list_named_actors(all_namespaces=True)
        found = set()
        for entry in listed:
            if entry["namespace"] not in found and self._is_ours(entry["name"], entry["namespace"]):
                found.add(entry["namespace"])
        return sorted(found)

    def _is_ours(self, name: str, namespace: str) -> bool:
        try:
            return ours(ray.get_actor(name, namespace=namespace))
        except ValueError:
            return False  # just gone

    def handle(self, name: str) -> Any | None:
        if not ray.is_initialized():
            raise self.gone()
        try:
            return ray.get_actor(name, namespace=self.namespace)
        except ValueError:
            return None

    def served(self) -> list[Served]:
        """The engines of the namespace. Raises BackendError if they are of another version, or none of ours."""
        handles = self.handles()
        asked = {name: describe(handle, name, self.namespace) for name, handle in handles.items()}
        found = []
        for name, reference in asked.items():
            try:
                described = ray.get(reference, timeout=DESCRIBE_S)
            except ray.exceptions.GetTimeoutError as error:
                raise BackendError(
                    f"Actor {name!r} of namespace {self.namespace!r} doesn't answer.",
                    "`accel status` says in which state it is; `accel down` ends it",
                ) from error
            except ray.exceptions.RayActorError:
                continue  # just gone
            except ray.exceptions.RayError as error:
                raise BackendError(
                    f"Actor {name!r} of namespace {self.namespace!r} is of another kind or version: {error}",
                    "end it with `accel down` of its own version, or choose another namespace",
                ) from error
            found.append(Served(self.checked(described), handles[name]))
        return found

    def checked(self, described: dict[str, Any]) -> ActorSpec:
        """What an actor is for. Raises BackendError if its version isn't ours."""
        package, protocol = described.get("package"), described.get("protocol")
        if (package, protocol) != version():
            ours = version()
            raise BackendError(
                f"The backend in namespace {self.namespace!r} runs Accel {package} (protocol {protocol}), "
                f"this program Accel {ours[0]} (protocol {ours[1]}).",
                "install one version on both sides, or start this one's backend in a namespace of its own: "
                "accel up --namespace NAME",
            )
        spec: ActorSpec = unpacked(described["spec"])
        return spec

    def start(self, spec: ActorSpec) -> Any:
        """The actor of this name, made if there is none. It waits for resources, if need be, and starts no engine."""
        return _ACTOR.options(
            name=spec.name,
            namespace=self.namespace,
            lifetime="detached",
            get_if_exists=True,
            num_cpus=spec.num_cpus,
            num_gpus=spec.num_gpus,
        ).remote(spec)

    def nodes(self) -> list[Node]:
        """What is free where."""
        free = ray._private.state.available_resources_per_node()
        nodes = [node for node in ray.nodes() if node["Alive"]]
        return [
            Node(
                node["NodeManagerHostname"],
                cpus=free.get(node["NodeID"], {}).get("CPU", 0.0),
                gpus=free.get(node["NodeID"], {}).get("GPU", 0.0),
                all_cpus=node["Resources"].get("CPU", 0.0),
                all_gpus=node["Resources"].get("GPU", 0.0),
            )
            for node in nodes
        ]

    def end(self, handles: Sequence[Any], timeout_s: float, *, sweep: bool = True) -> None:
        """Close the engines of these actors, then end the actors, and what their engines left running. Others' actors
        are let be."""
        handles = [handle for handle in handles if ours(handle)]
        closing = [handle.close.remote() for handle in handles]
        _answered(closing, timeout_s)
        for handle in handles:
            ray.kill(handle, no_restart=True)
        if sweep and not self.owned:  # else that is for `disconnect`, when nothing is left of it
            self.sweep()

    def end_unused(self, handles: Sequence[Any], timeout_s: float) -> None:
        """As `end`, for actors that at most one program, this one, has to do with."""
        asked = {handle: handle.describe.remote() for handle in handles}
        answered = _answered(list(asked.values()), timeout_s)
        used = [handle for handle, said in asked.items() if said in answered and _clients(said) > 1]
        self.end([handle for handle in handles if handle not in used], timeout_s)

    def sweep(self) -> None:
        """On every node, end processes of engines whose actor is gone."""
        nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
        work = [
            _SWEEP.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=True)).remote()
            for node in nodes
        ]
        _answered(work, DESCRIBE_S)


def describe(handle: Any, name: str, namespace: str) -> Any:
    """A reference to what the actor says of itself. It is waited for while the actor is being restarted."""
    if not ours(handle):
        raise BackendError(
            f"In namespace {namespace!r} the name {name!r} is taken by an actor that isn't Accel's.",
            "choose another namespace: accel up --namespace NAME, Backend.ray(namespace=...)",
        )
    return handle.describe.options(max_task_retries=-1).remote()


def ours(handle: Any) -> bool:
    """Whether it is an actor of Accel's, of whatever version."""
    return hasattr(handle, "describe") and hasattr(handle, "close")


def _answered(references: list[Any], timeout_s: float) -> list[Any]:
    """Those that are there in time."""
    if not references:
        return []
    there: list[Any] = ray.wait(references, num_returns=len(references), timeout=timeout_s)[0]
    return there


def _clients(said: Any) -> int:
    try:
        return int(ray.get(said)["clients"])
    except ray.exceptions.RayError:
        return 0


_ACTOR: Any = ray.remote(max_restarts=-1, max_task_retries=0, max_concurrency=CONCURRENCY)(EngineActor)
_SWEEP: Any = ray.remote(num_cpus=0, max_retries=0)(sweep)


# --- connecting


def start_own(local: LocalRay, folder: str | None = None) -> Guard:
    """A Ray on this machine that ends with this process. folder: for its files, else Ray's usual place."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    guard = Guard()
    before = set(psutil.Process().children())
    with _sigterm_kept():
        ray.init(
            address="local",
            num_cpus=local.num_cpus,
            num_gpus=local.num_gpus,
            object_store_memory=local.object_store_mib * 2**20,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            _temp_dir=folder,
        )
    # When its raylet is killed, an agent reports that for a minute to a server that is gone as well. All else of Ray
    # ends by itself.
    raylets = [child for child in set(psutil.Process().children()) - before if _is_raylet(child)]
    guard.watch([agent for raylet in raylets for agent in raylet.children()])
    return guard


def _is_raylet(process: psutil.Process) -> bool:
    try:
        return bool(process.name() == "raylet")
    except psutil.NoSuchProcess:  # another child of this process, which has just ended
        return False


def _attach(address: str, *, ours: bool) -> None:
    check_address(address)
    if ours:
        _take_token()
    try:
        with _sigterm_kept():
            ray.init(address=address, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, OSError, ValueError) as error:
        raise _unreachable(address, " ".join(str(error).split())) from error


def _take_token() -> None:
    """A Ray of our own asks for this user's token, which Ray by itself only shows to a Ray that it has found itself."""
    try:
        from ray._private.authentication.authentication_token_setup import maybe_enable_token_auth_if_token_available
    except ImportError:
        return  # an older Ray, without tokens
    maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


def check_address(address: str) -> None:
    """Raises ConfigurationError if it isn't one, BackendError if nothing listens there: Ray itself would try for
    minutes, and then end the process."""
    if address == "auto":
        return
    host, port = host_and_port(address)
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except OSError as error:
        raise _unreachable(address, str(error)) from error


def _unreachable(address: str, why: str) -> BackendError:
    if "ersion mismatch" in why:
        return BackendError(
            f"The Ray at {address} is of another version: {why}", "install one version of Ray and Python on both sides"
        )
    if address == "auto":
        return BackendError(
            "No Ray is running on this machine.", "start a backend: accel up backend.yaml; or give its address"
        )
    return BackendError(
        f"No Ray can be reached at {address}: {why}",
        "check host and port; `ray status` there says whether it is up; one that wants a token is reached with "
        "RAY_AUTH_MODE=token",
    )


@contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Ray puts a handler of its own in the place of ours, which closes engines."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread() and callable(before):
        signal.signal(signal.SIGTERM, before)
