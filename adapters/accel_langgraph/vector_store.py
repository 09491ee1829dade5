"""A LangChain vector store on Postgres with pgvector (`accel_local` with `accel_pgvector`)."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

import accel_local
from accel.engine import EngineConfig, Hit, Record, priority, unwrap
from accel.engine import VectorStore as Store
from accel.errors import ConfigurationError, InvalidRequest
from accel_langgraph import staging
from accel_langgraph.embeddings import AccelEmbeddings
from accel_langgraph.staging import Span
from accel_pgvector import PgVectorConfig


class AccelVectorStore(VectorStore):
    """A collection of texts. Stores with the same place and collection are the same store.

    dsn: a Postgres with pgvector; None is an embedded server whose data lies in `folder`, or in the cache.
    temporary: the collection is dropped when the engines shut down. Scores are cosine similarities: higher is nearer.
    engine: the config of another vector store's engine, which then says all this itself.
    Searches take `filter`, a dict that a document's metadata must contain.
    """

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 4096, "pure": True, "owned": True}

    def __init__(
        self,
        embedding: Embeddings,
        collection: str = "documents",
        *,
        dsn: str | None = None,
        folder: str | None = None,
        dimension: int | None = None,
        temporary: bool = False,
        engine: EngineConfig[Store] | None = None,
    ) -> None:
        if not collection:
            raise ConfigurationError("A vector store needs a collection name.", "give collection='documents', say")
        self._embedding = embedding
        self._collection = collection
        self._dsn = dsn
        self._folder = folder
        self._dimension = dimension
        self._temporary = temporary
        self._engine = engine
        accel_local.prepare()

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

    def accel_resource(self) -> str:
        """The same for every object that reads and writes the same records; no password."""
        place = self._engine.label if self._engine is not None else self._pgvector(1).place
        return f"{place}#{self._collection}"

    def accel_embedder(self) -> Embeddings:
        """What a search begins with: this embeds the query, as it is."""
        return self._embedding

    def engine_config(self) -> EngineConfig[Store]:
        """Needs to know the dimension: if it was not given, embeds one word."""
        return self._config(self._dimension or self._probe())

    def count(self) -> int:
        return accel_local.run(self._store().count())

    # Writing

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        texts = list(texts)
        stages = self._stages(texts, metadatas, ids)
        if stages is not None:

            def embed(span: Span) -> list[Record]:
                some = slice(*span)
                return _records(texts[some], self._embedding.embed_documents(texts[some]), *_some(some, metadatas, ids))

            return staging.add(stages.spans, embed, self._store)
        records = _records(texts, self._embedding.embed_documents(texts), metadatas, ids)
        if records:
            accel_local.run(self._store(records[0].vector).ingest(records))
        return [record.id for record in records]

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        texts = list(texts)
        stages = self._stages(texts, metadatas, ids)
        if stages is not None:

            async def embed(span: Span) -> list[Record]:
                some = slice(*span)
                vectors = await self._embedding.aembed_documents(texts[some])
                return _records(texts[some], vectors, *_some(some, metadatas, ids))

            return await staging.aadd(stages.spans, embed, self._astore, stages.under_way)
        records = _records(texts, await self._embedding.aembed_documents(texts), metadatas, ids)
        if records:
            store = await self._astore(records[0].vector)
            await accel_local.arun(store.ingest(records))
        return [record.id for record in records]

    def delete(self, ids: list[str] | None = None, *, filter: dict[str, Any] | None = None, **kwargs: Any) -> bool:
        """By ids, by metadata, or with neither everything."""
        accel_local.run(self._store().delete(ids, where=filter))
        return True

    async def adelete(
        self, ids: list[str] | None = None, *, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> bool:
        store = await self._astore()
        await accel_local.arun(store.delete(ids, where=filter))
        return True

    def _stages(
        self, texts: list[str], metadatas: list[dict[str, Any]] | None, ids: list[str] | None
    ) -> staging.Stages | None:
        """How this addition is to be staged, if it is; one that is going to fail takes the plain way."""
        if any(given is not None and len(given) != len(texts) for given in (metadatas, ids)):
            return None
        return staging.stages(texts, self._embedding)

    # Reading

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        return [_stored(record) for record in accel_local.run(self._store().get(list(ids)))]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        store = await self._astore()
        return [_stored(record) for record in await accel_local.arun(store.get(list(ids)))]

    def similarity_search(
        self, query: str, k: int = 4, *, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        return self.similarity_search_by_vector(self._embedding.embed_query(query), k, filter=filter)

    async def asimilarity_search(
        self, query: str, k: int = 4, *, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        return await self.asimilarity_search_by_vector(await self._embedding.aembed_query(query), k, filter=filter)

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        hits = self._search(self._embedding.embed_query(query), k, filter)
        return [(_found(hit), hit.score) for hit in hits]

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, *, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        hits = await self._asearch(await self._embedding.aembed_query(query), k, filter)
        return [(_found(hit), hit.score) for hit in hits]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        return [_found(hit) for hit in self._search(embedding, k, filter)]

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        return [_found(hit) for hit in await self._asearch(embedding, k, filter)]

    def _select_relevance_score_fn(self) -> Any:
        return lambda similarity: max(0.0, min(1.0, similarity))

    # Making

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        store = cls(embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        store = cls(embedding, **kwargs)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    # The engine

    def _config(self, dimension: int) -> EngineConfig[Store]:
        return self._engine or self._pgvector(dimension)

    def _pgvector(self, dimension: int) -> PgVectorConfig:
        return PgVectorConfig(
            self._collection, dimension, dsn=self._dsn, folder=self._folder, temporary=self._temporary
        )

    def _probe(self) -> int:
        if isinstance(self._embedding, AccelEmbeddings):
            return accel_local.engine(self._embedding.engine_config).dimension
        return len(self._embedding.embed_query("dimension"))

    async def _aprobe(self) -> int:
        if isinstance(self._embedding, AccelEmbeddings):
            return (await accel_local.aengine(self._embedding.engine_config)).dimension
        return len(await self._embedding.aembed_query("dimension"))

    def _store(self, example: Sequence[float] | None = None) -> Store:
        """A vector at hand tells the dimension: the embedding is not asked for what the program never asks it."""
        dimension = self._dimension or (len(example) if example is not None else self._probe())
        return accel_local.engine(self._config(dimension))

    async def _astore(self, example: Sequence[float] | None = None) -> Store:
        dimension = self._dimension or (len(example) if example is not None else await self._aprobe())
        return await accel_local.aengine(self._config(dimension))

    def _search(self, vector: list[float], k: int, filter: dict[str, Any] | None) -> list[Hit]:
        search = self._store(vector).search([vector], k, where=filter, priority=priority.get())
        return unwrap(accel_local.run(search)[0])

    async def _asearch(self, vector: list[float], k: int, filter: dict[str, Any] | None) -> list[Hit]:
        store = await self._astore(vector)
        return unwrap((await accel_local.arun(store.search([vector], k, where=filter, priority=priority.get())))[0])


def _records(
    texts: list[str],
    vectors: list[list[float]],
    metadatas: list[dict[str, Any]] | None,
    ids: list[str] | None,
) -> list[Record]:
    metadatas = metadatas if metadatas is not None else [{} for _ in texts]
    if len(metadatas) != len(texts) or (ids is not None and len(ids) != len(texts)):
        raise InvalidRequest(
            f"{len(texts)} texts came with {len(metadatas)} metadatas and {'no' if ids is None else len(ids)} ids.",
            "give one of each per text, or none",
        )
    # Documents of which only some have an id come with None for the others.
    names = [name or str(uuid.uuid4()) for name in (ids or [""] * len(texts))]
    rows = zip(names, texts, vectors, metadatas, strict=True)
    return [Record(name, text, vector, metadata or {}) for name, text, vector, metadata in rows]


def _some(
    some: slice, metadatas: list[dict[str, Any]] | None, ids: list[str] | None
) -> tuple[list[dict[str, Any]] | None, list[str] | None]:
    return metadatas[some] if metadatas is not None else None, ids[some] if ids is not None else None


def _found(hit: Hit) -> Document:
    return Document(id=hit.id, page_content=hit.text, metadata=dict(hit.metadata))


def _stored(record: Record) -> Document:
    return Document(id=record.id, page_content=record.text, metadata=dict(record.metadata))
