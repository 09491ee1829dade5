"""A LlamaIndex vector store on Postgres with pgvector (`accel_local` with `accel_pgvector`)."""

import asyncio
import math
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode, Node, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
from pydantic import ConfigDict, Field, PrivateAttr

import accel_local
from accel.engine import EngineConfig, Hit, Priority, Record, Vector, priority, unwrap
from accel.engine import VectorStore as Store
from accel.engine.profile import Profile
from accel.errors import ConfigurationError, InvalidRequest, RequestError
from accel_pgvector import PgVectorConfig

from .engine_field import EngineField
from .filters import Where, alternatives, both, passes

_REF_DOC_ID = "ref_doc_id"
_MORE_THAN_THERE_IS = 2**31 - 1

_Found = Hit | Record


class AccelVectorStore(BasePydanticVectorStore):
    """A collection of nodes. Stores with the same place and collection are the same store.

    dsn: a Postgres with pgvector; None is an embedded server whose data lies in `folder`, or in the cache.
    dimension: of the vectors; None: as the first ones it is given. temporary: a collection of its own, which is dropped
    when the engines shut down. engine: the config of another vector store's engine, which then says all this itself.

    Similarities are cosines: higher is nearer. Filters are answered by the database: `==` and `in` on text and numbers,
    `contains`, `any` and `all` on lists, combined by `and` and `or`; others are refused.
    """

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 4096, "pure": True, "owned": True}
    model_config = ConfigDict(extra="forbid")

    stores_text: bool = True
    collection: str = Field(default="documents", min_length=1)
    dsn: str | None = Field(default=None, exclude=True, repr=False)  # may hold a password
    folder: str | None = None
    dimension: int | None = Field(default=None, ge=1)
    temporary: bool = False
    engine: EngineField = None
    _seen_dimension: int | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        accel_local.prepare()

    @classmethod
    def class_name(cls) -> str:
        return "AccelVectorStore"

    @property
    def client(self) -> None:
        """None: the database is reached through the engine."""
        return None

    def accel_resource(self) -> str:
        """The same for every object that reads and writes the same records; no password."""
        place = self.engine.label if self.engine is not None else self._pgvector(1).place
        return f"{place}#{self.collection}"

    def engine_config(self) -> EngineConfig[Store]:
        """Raises ConfigurationError while the dimension is not known."""
        return self._config()

    def accel_profiles(self) -> list[Profile]:
        """What is known about the speed of its engine."""
        if self.engine is None and self.dimension is None and self._seen_dimension is None:
            return []
        found = accel_local.known_profile(self._config())
        return [found] if found is not None else []

    # Writing

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        _no_options(kwargs)
        records = [_record(node) for node in nodes]
        if records:
            accel_local.run(self._store(records[0].vector).ingest(records))
        return [record.id for record in records]

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        _no_options(kwargs)
        records = [_record(node) for node in nodes]
        if records:
            store = await self._astore(records[0].vector)
            await accel_local.arun(store.ingest(records))
        return [record.id for record in records]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document."""
        _no_options(delete_kwargs)
        accel_local.run(self._store().delete(where={_REF_DOC_ID: ref_doc_id}))

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        _no_options(delete_kwargs)
        store = await self._astore()
        await accel_local.arun(store.delete(where={_REF_DOC_ID: ref_doc_id}))

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete by ids, by metadata, or what fits both."""
        wheres = _to_delete(node_ids, filters, delete_kwargs)
        accel_local.run(_delete(self._store(), node_ids, wheres))

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        wheres = _to_delete(node_ids, filters, delete_kwargs)
        store = await self._astore()
        await accel_local.arun(_delete(store, node_ids, wheres))

    def clear(self) -> None:
        accel_local.run(self._store().delete())

    async def aclear(self) -> None:
        store = await self._astore()
        await accel_local.arun(store.delete())

    # Reading

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        _no_options(kwargs)
        search = _Search.of(query)
        return search.result(accel_local.run(search.ask(self._store(search.vector), priority.get())))

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        _no_options(kwargs)
        search = _Search.of(query)
        store = await self._astore(search.vector)
        return search.result(await accel_local.arun(search.ask(store, priority.get())))

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """By ids, in their order; by metadata, or with neither all of them, in the order of their ids."""
        wheres = alternatives(filters)
        return [_node(found) for found in accel_local.run(self._get(self._store(), node_ids, wheres))]

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        wheres = alternatives(filters)
        store = await self._astore()
        return [_node(found) for found in await accel_local.arun(self._get(store, node_ids, wheres))]

    def _get(self, store: Store, node_ids: list[str] | None, wheres: list[Where]) -> Coroutine[Any, Any, list[_Found]]:
        if node_ids is not None:
            return _by_id(store, node_ids, wheres)
        return _everything(store, self._known_dimension(), wheres)

    # The engine

    def _config(self, dimension: int | None = None) -> EngineConfig[Store]:
        """dimension: that of a vector at hand."""
        if self.engine is not None:
            config: EngineConfig[Store] = self.engine
            return config
        return self._pgvector(self.dimension or dimension or self._known_dimension())

    def _pgvector(self, dimension: int) -> PgVectorConfig:
        return PgVectorConfig(self.collection, dimension, dsn=self.dsn, folder=self.folder, temporary=self.temporary)

    def _known_dimension(self) -> int:
        known = self.dimension or self._seen_dimension or getattr(self.engine, "dimension", None)
        if known is None:
            raise ConfigurationError(
                f"The dimension of collection {self.collection!r} is not known before its first vector.",
                "give dimension=, that of the embedding model",
            )
        return int(known)

    def _store(self, example: Vector | None = None) -> Store:
        found = accel_local.engine(self._config(len(example) if example is not None else None))
        return self._remembering(found, example)

    async def _astore(self, example: Vector | None = None) -> Store:
        found = await accel_local.aengine(self._config(len(example) if example is not None else None))
        return self._remembering(found, example)

    def _remembering(self, found: Store, example: Vector | None) -> Store:
        """The collection exists now, with vectors like this one."""
        if example is not None and self._seen_dimension is None:
            self._seen_dimension = len(example)
        return found


def _no_options(options: Mapping[str, Any]) -> None:
    if options:
        raise ConfigurationError(f"AccelVectorStore does not know {', '.join(sorted(options))}.", "leave it out")


# --- nodes and records


def _record(node: BaseNode) -> Record:
    """The text of text nodes is stored as the record's own; other nodes may hold more than text, and stay whole."""
    if node.embedding is None:
        raise InvalidRequest(
            f"Node {node.node_id!r} has no embedding.", "set node.embedding first, as VectorStoreIndex does"
        )
    apart = node.class_name() != Node.class_name()
    metadata = node_to_metadata_dict(node, remove_text=apart)
    return Record(node.node_id, node.get_content(metadata_mode=MetadataMode.NONE), node.embedding, metadata)


def _node(found: _Found) -> BaseNode:
    metadata = dict(found.metadata)
    if "_node_content" not in metadata:  # stored by another program than LlamaIndex's
        return TextNode(id_=found.id, text=found.text, metadata=metadata)
    whole = metadata["_node_type"] == Node.class_name()
    return metadata_dict_to_node(metadata, text=None if whole else found.text)


@dataclass(frozen=True, slots=True)
class _Search:
    """A query as searches of the engine: one for each alternative. Those of some nodes are made here, because an engine
    can't limit its own to ids."""

    vector: Vector
    k: int
    wheres: list[Where]
    node_ids: list[str]

    @classmethod
    def of(cls, query: VectorStoreQuery) -> Self:
        if query.mode != VectorStoreQueryMode.DEFAULT:
            raise InvalidRequest(f"AccelVectorStore has no query mode {query.mode.value!r}.", "use the mode 'default'")
        if query.query_embedding is None:
            raise InvalidRequest("The query has no embedding.", "set query_embedding, as an index's retriever does")
        if query.similarity_top_k < 1:
            raise InvalidRequest(f"A search for {query.similarity_top_k} nodes makes no sense.", "ask for at least one")
        of_documents: list[Where] = [{_REF_DOC_ID: doc_id} for doc_id in query.doc_ids or ()] or [{}]
        wheres = both(alternatives(query.filters), of_documents)
        # An index whose store has the texts passes an empty list of ids, and means all nodes.
        return cls(query.query_embedding, query.similarity_top_k, wheres, query.node_ids or [])

    async def ask(self, store: Store, urgent: Priority) -> list[_Found]:
        """The nearest of each alternative, or all records that are asked for by id."""
        if self.node_ids:
            return await _by_id(store, self.node_ids, self.wheres)
        searches = (store.search([self.vector], self.k, where=w or None, priority=urgent) for w in self.wheres)
        return [hit for found in await asyncio.gather(*searches) for hit in unwrap(found[0])]

    def result(self, found: Sequence[_Found]) -> VectorStoreQueryResult:
        hits = [one if isinstance(one, Hit) else self._compared(one) for one in found]
        if self.node_ids or len(self.wheres) > 1:  # else they come in the engine's own order
            distinct = {hit.id: hit for hit in hits}.values()
            hits = sorted(distinct, key=lambda hit: (math.isnan(hit.score), -hit.score, hit.id))[: self.k]
        return VectorStoreQueryResult(
            nodes=[_node(hit) for hit in hits],
            similarities=[hit.score for hit in hits],
            ids=[hit.id for hit in hits],
        )

    def _compared(self, record: Record) -> Hit:
        """With the cosine that a search would give it."""
        if len(record.vector) != len(self.vector):
            raise InvalidRequest(
                f"The collection holds vectors of {len(record.vector)} dimensions, not {len(self.vector)}.",
                "embed with the model the collection was filled with",
            )
        stored, asked = np.asarray(record.vector), np.asarray(self.vector)
        lengths = float(np.linalg.norm(stored) * np.linalg.norm(asked))
        score = float(stored @ asked) / lengths if lengths else math.nan
        return Hit(record.id, record.text, record.metadata, score)


async def _by_id(store: Store, node_ids: Sequence[str], wheres: list[Where]) -> list[_Found]:
    records = await store.get(node_ids)
    return [record for record in records if any(passes(record.metadata, where) for where in wheres)]


async def _everything(store: Store, dimension: int, wheres: list[Where]) -> list[_Found]:
    """A search for more than there is, from anywhere: engines have no listing."""
    start = [1.0, *[0.0] * (dimension - 1)]
    found: dict[str, _Found] = {}
    for where in wheres:
        hits = unwrap((await store.search([start], _MORE_THAN_THERE_IS, where=where or None))[0])
        if len(hits) < await store.count(where=where or None):
            raise RequestError(
                "The collection changed meanwhile, or its index finds only what is near.",
                "try again, or get the nodes by their ids",
            )
        found.update({hit.id: hit for hit in hits})
    return [found[id] for id in sorted(found)]


def _to_delete(node_ids: list[str] | None, filters: MetadataFilters | None, options: Mapping[str, Any]) -> list[Where]:
    _no_options(options)
    wheres = alternatives(filters)
    if node_ids is None and wheres == [{}]:
        raise InvalidRequest("delete_nodes got neither node_ids nor filters.", "to delete everything, call clear()")
    return wheres


async def _delete(store: Store, node_ids: list[str] | None, wheres: list[Where]) -> None:
    for where in wheres:
        await store.delete(node_ids, where=where or None)
