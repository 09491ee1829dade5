"""Which host serves a process's engines: this process itself, or Ray actors that many programs share.

    Backend.ray("auto").use()               # from here on
    with Backend.ray(config="backend.yaml"):  # meanwhile
        ...

Components and their configs stay the same. There is no fallback: a backend that can't be reached is an error.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from .errors import AccelError, MissingExtra


class BackendError(AccelError):
    """A backend that can't be reached, is of another version, or whose name is taken."""


class Backend:
    """Where engines come from. Nothing happens before `use()` or `with`; both act on the whole process."""

    def __init__(self, source: Any) -> None:
        """source: an `accel_local.sources.EngineSource`; use the class methods."""
        self._source = source
        self._meanwhile: AbstractContextManager[None] | None = None

    @classmethod
    def local(cls, config: str | Path | dict[str, Any] | None = None) -> Backend:
        """Engines in this process, on its own machine: what Accel does unless told otherwise.

        config: a `backend.yaml`, of which this host heeds engines, options and replicas.
        """
        if config is None:
            return cls(import_module("accel_local.host").IN_PROCESS)
        deployment = _ray("accel_ray.config").read(config)
        deployed = _ray("accel_ray.routes").in_process(deployment)
        return cls(import_module("accel_local.sources").InProcess(deployed))

    @classmethod
    def ray(
        cls,
        address: str | None = None,
        config: str | Path | dict[str, Any] | None = None,
        *,
        namespace: str | None = None,
    ) -> Backend:
        """Engines as Ray actors.

        address: "auto" for what `accel up` started on this machine, or the Ray it is part of; or host:port. None: the
        config's, else the Ray that this process is connected to, else a Ray of its own that ends with it. The format of
        the config is in docs/backend.md.
        config: a `backend.yaml`. What it declares is started with the first use unless it is up; without one, only
        what is up serves, and on a Ray without any engine whatever the program asks for is started.
        namespace: keeps backends apart. None: the config's, else the one backend that is up, else "accel". If several
        are up, a BackendError names them: none is taken by chance.

        On a Ray that isn't its own, what a program has started goes on for others, until `accel down`.
        """
        return cls(_ray("accel_ray.source").RaySource(address, config, namespace))

    def use(self) -> Backend:
        """Serve this process's engines from now on; those it has now are closed. Used again, it begins anew. Raises
        BackendError."""
        host = import_module("accel_local.host")
        if host.source() is self._source:
            host.shutdown()
        self._connect()
        host.use(self._source)
        return self

    def __enter__(self) -> Backend:
        """Serve this process's engines meanwhile. Raises BackendError."""
        self._connect()
        self._meanwhile = import_module("accel_local.host").served_by(self._source)
        self._meanwhile.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile.__exit__(kind, error, trace)

    def _connect(self) -> None:
        """At once and in the caller's thread, so that errors appear where the backend is chosen."""
        connect = getattr(self._source, "connect", None)
        if connect is not None:
            import_module("accel_local.host").prepare()  # before Ray puts its own handler of SIGTERM there
            connect()


def _ray(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra("The Ray host", "ray", error.name or "") from error
