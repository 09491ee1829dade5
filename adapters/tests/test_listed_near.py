"""Stores that are not listed, and that are in this process: local where they tell so, once a user vouches for them."""

from __future__ import annotations

import importlib
import sqlite3
from pathlib import Path

import pytest

from accel import register
from accel.parts.components import facts_of
from adapters.tests.test_listed_classes import Vectors, real

pytestmark = pytest.mark.filterwarnings("ignore")  # of packages about themselves


def test_a_lance_store_is_local_where_it_is_a_folder(tmp_path: Path) -> None:
    of_langchain = real("langchain_community", "LanceDB")
    lance = importlib.import_module("lancedb")
    near, far = lance.connect(tmp_path), lance.connect("db://name", api_key="k", region="us-east-1")
    stores = [of_langchain(connection=near, embedding=Vectors())]
    of_llamaindex = real("llama_index.vector_stores.lancedb", "LanceDBVectorStore")
    stores.append(of_llamaindex(connection=near))
    for store in stores:
        assert facts_of(store).local and not facts_of(store).pure, "nobody vouches for it"
        register(store, readonly=True)
        assert facts_of(store).local and facts_of(store).pure
        store._reranker = object()
        assert not facts_of(store).local, "it may ask a service"
        store._reranker, store._connection = None, far
        assert not facts_of(store).local


def test_what_says_that_it_is_an_address_is_remote() -> None:
    connection = type("LanceDBConnection", (), {"__module__": "lancedb.db", "uri": "s3://bucket/folder"})()
    table = type("RemoteTable", (), {"__module__": "lancedb.remote.table"})()
    store = type("LanceDB", (), {"__module__": "langchain_community.vectorstores.lancedb"})()
    assert not facts_of(store).local, "nothing holds it"
    store._connection = connection
    assert not facts_of(store).local
    for place, local in (("data/lance", True), ("memory://", True), ("md:name", False), ("db://name", False)):
        connection.uri = place
        assert facts_of(store).local is local, place
    connection.uri, store._table = "data/lance", table
    assert not facts_of(store).local
    other = type("LanceDB", (), {"__module__": "my_app"})()
    other._connection = connection
    assert not facts_of(other).local, "of another package"


def test_sqlite_is_in_this_process() -> None:
    store = type("SQLiteVec", (), {"__module__": "langchain_community.vectorstores.sqlitevec"})()
    store._connection = sqlite3.connect(":memory:")
    try:
        assert facts_of(store).local and not facts_of(store).pure
    finally:
        store._connection.close()
