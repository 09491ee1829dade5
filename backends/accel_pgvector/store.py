"""A collection of records in Postgres with pgvector: one table, exact cosine search until an index is made."""

import asyncio
import contextlib
import hashlib
import json
import random
import re
import secrets
import statistics
import time
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from accel.engine import DEMAND, Hit, Metadata, Priority, Record, Vector
from accel.engine.profile import Profile
from accel.errors import DatabaseError, EngineClosed, InvalidRequest, MissingExtra, RequestError
from accel_local.profiles import recall, remember
from accel_local.threads import Worker
from accel_pgvector.embedded import EmbeddedPostgres

CONNECT_TIMEOUT_S = 10
TEMPORARY = "accel_tmp_"


@dataclass(frozen=True, slots=True)
class PgVectorConfig:
    """Equal configs share one store."""

    collection: str
    """Its name in the database."""
    dimension: int
    """Of its vectors."""
    dsn: str | None = field(default=None, repr=False)  # may hold a password
    """Of a Postgres with pgvector: postgresql://user@host/database. Left out: an embedded server."""
    folder: str | None = None
    """Of the embedded server's data. Left out: Accel's cache."""
    connections: int = 8
    """Most connections at a time."""
    temporary: bool = False
    """Whether it starts empty, whatever others of this name hold. It is dropped when the engine closes, or by the next
    temporary collection if this process was killed."""

    @property
    def label(self) -> str:
        return f"pgvector collection {self.collection!r} in {self.place}"

    @property
    def place(self) -> str:
        """Names the database, without its password."""
        if self.dsn is None:
            return f"embedded Postgres {self.folder or '(cache)'}"
        return without_password(self.dsn)

    def create(self) -> "PgVectorStore":
        return PgVectorStore(self)


@contextlib.asynccontextmanager
async def _refusing() -> AsyncGenerator[None, None]:
    """What Postgres can't hold is the caller's mistake."""
    import psycopg

    try:
        yield
    except (psycopg.DataError, UnicodeError) as error:
        remedy = "remove NUL characters and lone surrogates"
        raise InvalidRequest(f"Postgres can't store this: {str(error).strip()}", remedy) from error


def without_password(dsn: str) -> str:
    """A DSN fit for messages and names, in either of libpq's forms."""
    dsn = re.sub(r"(//[^:/@\s]*):[^@/\s]*@", r"\1@", dsn)
    return re.sub(r"(?i)\b((?:ssl)?password)\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]+)", r"\1=***", dsn)


class PgVectorStore:
    def __init__(self, config: PgVectorConfig) -> None:
        self._config = config
        self._pool: Any = None
        self._server: EmbeddedPostgres | None = None
        self._profile: Profile | None = None
        self._staging = 0
        """How many connections `ingest_batches` holds."""
        # Any name is a good collection name; the digest keeps apart what the cleaning makes equal.
        clean = re.sub(r"\W", "_", config.collection)[:40].lower()
        self._table = f"accel_{clean}_{hashlib.sha256(config.collection.encode()).hexdigest()[:8]}"
        self._owner: Any = None
        """The connection whose lock says that a temporary collection is in use."""
        if config.temporary:
            self._table = f"{TEMPORARY}{secrets.token_hex(8)}_{clean}"

    async def start(self) -> None:
        try:
            import psycopg
            from pgvector.psycopg import register_vector_async
            from psycopg_pool import AsyncConnectionPool
        except ImportError as error:
            raise MissingExtra("The pgvector store", "pgvector", error.name or "") from error
        try:
            dsn = self._config.dsn
            if dsn is None:
                worker = Worker("accel-postgres")
                try:
                    self._server = await worker.do(lambda: EmbeddedPostgres(self._config.folder))
                finally:
                    worker.stop()
                dsn = self._server.dsn
            try:
                if self._config.temporary:
                    await self._own(psycopg, dsn)
                await self._prepare(psycopg, dsn)
            except (psycopg.Error, OSError, UnicodeError) as error:
                raise _database_error(self._config, error) from error
            self._pool = AsyncConnectionPool(
                dsn,
                min_size=1,
                max_size=self._config.connections,
                configure=register_vector_async,
                kwargs={"autocommit": True, "connect_timeout": CONNECT_TIMEOUT_S},
                open=False,
            )
            await self._pool.open(wait=True, timeout=CONNECT_TIMEOUT_S)
        except BaseException:
            await self.close()
            raise

    async def _prepare(self, psycopg: Any, dsn: str) -> None:
        """Make the collection unless it exists; a plain connection gives plainer errors than a pool."""
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
        async with connection:
            # Two processes that create the same thing at once: one of them fails even with IF NOT EXISTS.
            async with connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock(hashtext('accel'))")
                await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
                await connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {self._table} (id text PRIMARY KEY, content text NOT NULL, "
                    f"metadata jsonb NOT NULL, embedding vector({self._config.dimension}) NOT NULL)"
                )
            cursor = await connection.execute(
                "SELECT atttypmod FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'embedding'",
                (self._table,),
            )
            row = await cursor.fetchone()
            if row[0] != self._config.dimension:
                raise DatabaseError(
                    f"Collection {self._config.collection!r} holds vectors of {row[0]} dimensions, "
                    f"not {self._config.dimension}.",
                    "use another collection name, or the embedding model it was filled with",
                )

    async def _own(self, psycopg: Any, dsn: str) -> None:
        """Hold a lock from before the collection is made until it is gone, and drop those whose holder is gone."""
        self._owner = await psycopg.AsyncConnection.connect(dsn, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
        await self._owner.execute("SELECT pg_advisory_lock(hashtext(%s))", (self._table,))
        cursor = await self._owner.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND starts_with(tablename, %s)",
            (TEMPORARY,),
        )
        for (table,) in await cursor.fetchall():
            cursor = await self._owner.execute("SELECT pg_try_advisory_lock(hashtext(%s))", (table,))
            if (await cursor.fetchone())[0]:
                await self._owner.execute(f'DROP TABLE IF EXISTS "{table}"')
                await self._owner.execute("SELECT pg_advisory_unlock(hashtext(%s))", (table,))

    @property
    def stopped(self) -> bool:
        """Whether a server of our own has ended: the next call starts another one, with the same data."""
        return self._server is not None and self._server.stopped

    async def close(self) -> None:
        stopped = self.stopped
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()
        owner, self._owner = self._owner, None
        if owner is not None and not stopped:
            async with owner:
                await owner.execute(f"DROP TABLE IF EXISTS {self._table}")
        server, self._server = self._server, None
        if server is not None:
            server.close()  # blocking, on purpose: at interpreter exit no thread can be started any more

    async def ingest(self, records: Sequence[Record]) -> None:
        self._check(records)
        async with _refusing(), self._connection() as connection, connection.transaction():
            await self._prepare_incoming(connection)
            await self._take_in(connection, records)

    async def ingest_batches(self, batches: AsyncIterable[Sequence[Record]]) -> None:
        """One transaction, which holds a connection and the rows it replaces while batches are being made. So that
        searches find connections, at most half of them are lent to this; then batches are collected first."""
        if self._staging >= self._config.connections // 2:
            await self.ingest([record async for records in batches for record in records])
            return
        self._staging += 1
        try:
            async with self._connection() as connection, connection.transaction():
                await self._prepare_incoming(connection)
                async for records in batches:
                    self._check(records)
                    async with _refusing():
                        await self._take_in(connection, records)
        finally:
            self._staging -= 1

    def _check(self, records: Sequence[Record]) -> None:
        for record in records:
            if len(record.vector) != self._config.dimension:
                raise self._wrong_dimension(len(record.vector))

    async def _prepare_incoming(self, connection: Any) -> None:
        await connection.execute(f"CREATE TEMP TABLE incoming (LIKE {self._table}) ON COMMIT DROP")

    async def _take_in(self, connection: Any, records: Sequence[Record]) -> None:
        from pgvector import Vector as PgVector

        latest = {record.id: record for record in records}  # one statement may not touch a row twice
        async with connection.cursor() as cursor:
            await cursor.execute("TRUNCATE incoming")
            async with cursor.copy("COPY incoming FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(["text", "text", "jsonb", "vector"])
                for record in latest.values():
                    metadata = _jsonb(dict(record.metadata))
                    await copy.write_row((record.id, record.text, metadata, PgVector(list(record.vector))))
            await cursor.execute(
                f"INSERT INTO {self._table} SELECT * FROM incoming ON CONFLICT (id) DO UPDATE SET "
                "content = excluded.content, metadata = excluded.metadata, embedding = excluded.embedding"
            )

    async def search(
        self, vectors: Sequence[Vector], k: int, *, where: Metadata | None = None, priority: Priority = DEMAND
    ) -> list[list[Hit] | RequestError]:
        """Postgres has no priorities: `priority` orders nothing here."""
        results = await asyncio.gather(*(self._search_one(vector, k, where) for vector in vectors))
        return list(results)

    async def _search_one(self, vector: Vector, k: int, where: Metadata | None) -> list[Hit] | RequestError:
        import psycopg
        from pgvector import Vector as PgVector

        if len(vector) != self._config.dimension:
            return self._wrong_dimension(len(vector))
        if k < 1:
            return InvalidRequest(f"A search for {k} records makes no sense.", "give a positive k")
        try:
            async with self._connection() as connection:
                cursor = await connection.execute(
                    f"SELECT id, content, metadata, 1 - (embedding <=> %(v)s) FROM {self._table} "
                    "WHERE %(where)s::jsonb IS NULL OR metadata @> %(where)s::jsonb "
                    "ORDER BY embedding <=> %(v)s, id LIMIT %(k)s",
                    {"v": PgVector(list(vector)), "where": None if where is None else json.dumps(dict(where)), "k": k},
                )
                rows = await cursor.fetchall()
        except psycopg.Error as error:
            return RequestError(f"The search failed: {error}")
        return [Hit(id, text, metadata, float(score)) for id, text, metadata, score in rows]

    async def get(self, ids: Sequence[str]) -> list[Record]:
        async with self._connection() as connection:
            cursor = await connection.execute(
                f"SELECT id, content, embedding, metadata FROM {self._table} WHERE id = ANY(%s)", (list(ids),)
            )
            rows = await cursor.fetchall()
        found = {id: Record(id, text, _floats(vector), metadata) for id, text, vector, metadata in rows}
        return [found[id] for id in ids if id in found]

    async def delete(self, ids: Sequence[str] | None = None, *, where: Metadata | None = None) -> int:
        conditions, values = ["true"], []
        if ids is not None:
            conditions.append("id = ANY(%s)")
            values.append(list(ids))
        if where is not None:
            conditions.append("metadata @> %s")
            values.append(_jsonb(dict(where)))
        async with _refusing(), self._connection() as connection:
            cursor = await connection.execute(f"DELETE FROM {self._table} WHERE {' AND '.join(conditions)}", values)
            return int(cursor.rowcount)

    async def count(self, *, where: Metadata | None = None) -> int:
        async with _refusing(), self._connection() as connection:
            cursor = await connection.execute(
                f"SELECT count(*) FROM {self._table} WHERE metadata @> %s", (_jsonb(dict(where or {})),)
            )
            row = await cursor.fetchone()
            return int(row[0])

    async def create_index(self) -> None:
        """An HNSW index: searches become approximate and fast. Load first; loading into an index is slow."""
        async with self._connection() as connection:
            await connection.execute(
                f"CREATE INDEX IF NOT EXISTS {self._table}_hnsw ON {self._table} "
                "USING hnsw (embedding vector_cosine_ops)"
            )

    @property
    def known_profile(self) -> Profile | None:
        return self._profile or recall(self._config.label)

    async def profile(self) -> Profile:
        if self._profile is None:
            self._profile = await measure_profile(self, self._config.dimension)
            remember(self._config.label, self._profile)
        return self._profile

    def _connection(self) -> Any:
        if self._pool is None:
            raise EngineClosed(f"{self._config.label} is not open.")
        return self._pool.connection()

    def _wrong_dimension(self, got: int) -> InvalidRequest:
        return InvalidRequest(
            f"Collection {self._config.collection!r} takes vectors of {self._config.dimension} dimensions, not {got}.",
            "embed with the model the collection was filled with",
        )


async def measure_profile(store: PgVectorStore, dimension: int) -> Profile:
    """Seconds per search of the collection as it is, on an idle engine; the size is the number of its records."""
    dice = random.Random(0)
    times = []
    for _ in range(20):
        vector = [dice.uniform(-1, 1) for _ in range(dimension)]
        began = time.perf_counter()
        await store.search([vector], 4)
        times.append(time.perf_counter() - began)
    return Profile(engine="searching", search=((await store.count(), statistics.median(times)),), source="measured")


def _jsonb(value: Any) -> Any:
    from psycopg.types.json import Jsonb

    return Jsonb(value)


def _floats(vector: Any) -> list[float]:
    return [float(number) for number in vector.to_list()] if hasattr(vector, "to_list") else [float(n) for n in vector]


def _database_error(config: PgVectorConfig, error: Exception) -> DatabaseError:
    """One message with a remedy for the usual ways a DSN is wrong; libpq's own text never contains the password."""
    text = " ".join(str(error).split())
    if "vector" in text and ("extension" in text or "control file" in text):
        return DatabaseError(
            f"The Postgres at {config.place} has no pgvector extension: {text}",
            "install pgvector on that server (CREATE EXTENSION needs the right to do so), or leave out the dsn",
        )
    if 'missing "="' in text or "invalid" in text.lower() or "unterminated" in text:
        # libpq repeats pieces of what it cannot read, possibly a password; we do not.
        return DatabaseError("The dsn cannot be read.", "write it as postgresql://user:password@host:5432/database")
    return DatabaseError(
        f"No connection to {config.place}: {text}",
        "check host, port, user, password and database of the dsn, or leave it out for an embedded Postgres",
    )
