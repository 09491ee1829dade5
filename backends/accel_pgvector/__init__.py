"""Postgres with pgvector as a vector store: an embedded server, or any DSN."""

from accel_pgvector.store import PgVectorConfig, PgVectorStore

__all__ = ["PgVectorConfig", "PgVectorStore"]
