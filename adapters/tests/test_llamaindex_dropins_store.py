"""The LlamaIndex vector store on a simulated engine, its filters, and a whole index with a query engine."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import Document
from llama_index.core.schema import (
    BaseNode,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import (
    FilterCondition,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from pydantic import ValidationError

import accel_local
from accel import engine as protocols
from accel.engine import Priority, Record
from accel.engine.profile import Profile
from accel.errors import ConfigurationError, InvalidRequest, RequestError
from accel.parts.components import facts_of
from accel.parts.methods.epochs import resource_of
from accel_langgraph import AccelVectorStore as LangChainStore
from accel_llamaindex import AccelVectorStore
from accel_sim import SimStoreConfig

QUICK = Profile("searching", search=((100, 1e-5),))
_numbers = itertools.count()


def new_store(dimension: int = 2) -> AccelVectorStore:
    config = SimStoreConfig(f"llamaindex {next(_numbers)}", dimension, QUICK, ingest_s=0.0)
    return AccelVectorStore(engine=config)


def node(id: str, vector: list[float], text: str = "", doc: str = "", **metadata: Any) -> TextNode:
    relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=doc)} if doc else {}
    return TextNode(id_=id, text=text or f"text {id}", embedding=vector, metadata=metadata, relationships=relationships)


NODES = [
    node("a", [1.0, 0.0], doc="one", topic="cats", page=1, tags=["x", "y"]),
    node("b", [0.9, 0.1], doc="one", topic="cats", page=2, tags=["y"]),
    node("c", [0.5, 0.5], doc="two", topic="dogs", page=1, tags=[]),
    node("d", [0.0, 1.0], doc="two", topic="dogs", page=2.5),
    node("e", [-1.0, 0.0], page=True),
]


def where(*parts: Any, condition: str = "and") -> MetadataFilters:
    """Filters out of (key, operator, value) and of filters."""
    made = [
        part if isinstance(part, MetadataFilters) else MetadataFilter(key=part[0], operator=part[1], value=part[2])
        for part in parts
    ]
    return MetadataFilters(filters=made, condition=FilterCondition(condition))


def found(store: AccelVectorStore, vector: list[float] | None = None, k: int = 9, **settings: Any) -> list[str]:
    result = store.query(VectorStoreQuery(vector or [1.0, 0.0], similarity_top_k=k, **settings))
    assert result.ids == [one.node_id for one in result.nodes or []]
    assert result.similarities == sorted(result.similarities or [], reverse=True)
    return result.ids or []


@pytest.fixture
def store() -> AccelVectorStore:
    filled = new_store()
    assert filled.add(NODES) == ["a", "b", "c", "d", "e"]
    return filled


# --- reading


async def test_queries(store: AccelVectorStore) -> None:
    query = VectorStoreQuery([1.0, 0.0], similarity_top_k=3)
    result = store.query(query)
    assert result.ids == ["a", "b", "c"]
    assert result.similarities == pytest.approx([1.0, 0.9938837, 0.7071068])
    bare = [one.model_copy(update={"embedding": None}) for one in NODES]
    assert result.nodes == bare[:3]
    assert await store.aquery(query) == result
    assert found(store, [0.0, 2.0], k=2) == ["d", "c"]
    assert found(new_store()) == []


async def test_nodes_and_documents_can_be_asked_for(store: AccelVectorStore) -> None:
    assert found(store, node_ids=["e", "c", "c", "none"]) == ["c", "e"]
    assert found(store, node_ids=[]) == ["a", "b", "c", "d", "e"], "an index that has no ids of its own passes []"
    assert found(store, doc_ids=["two"]) == ["c", "d"]
    assert found(store, doc_ids=["two", "one", "three"], k=3) == ["a", "b", "c"]
    assert found(store, doc_ids=["one"], node_ids=["a", "d"]) == ["a"]
    assert found(store, doc_ids=["one"], filters=where(("page", "==", 2))) == ["b"]
    some = await store.aquery(VectorStoreQuery([1.0, 0.0], similarity_top_k=2, node_ids=["d", "b", "a"]))
    all_ = store.query(VectorStoreQuery([1.0, 0.0], similarity_top_k=2))
    assert some.ids == all_.ids == ["a", "b"] and some.nodes == all_.nodes
    assert some.similarities == pytest.approx(all_.similarities)


async def test_get_nodes(store: AccelVectorStore) -> None:
    bare = {one.node_id: one.model_copy(update={"embedding": None}) for one in NODES}
    assert store.get_nodes(["d", "none", "a"]) == [bare["d"], bare["a"]]
    assert await store.aget_nodes(["d", "a"], where(("topic", "==", "cats"))) == [bare["a"]]
    assert store.get_nodes(filters=where(("page", "in", [2.5, 1, 3]))) == [bare["a"], bare["c"], bare["d"]]
    assert await store.aget_nodes() == list(bare.values())
    assert store.get_nodes([]) == new_store().get_nodes() == []


def test_a_listing_that_is_not_whole_is_an_error(store: AccelVectorStore) -> None:
    engine: Any = accel_local.engine(store.engine_config())
    search = engine.search

    async def approximate(*args: Any, **kwargs: Any) -> Any:
        return [hits[:2] for hits in await search(*args, **kwargs)]

    engine.search = approximate
    with pytest.raises(RequestError, match="finds only what is near"):
        store.get_nodes()


async def test_the_priority_of_whoever_asks_arrives(store: AccelVectorStore) -> None:
    engine: Any = accel_local.engine(store.engine_config())
    search, seen = engine.search, []

    async def watched(*args: Any, priority: Priority, **kwargs: Any) -> Any:
        seen.append(priority.value)
        return await search(*args, priority=priority, **kwargs)

    engine.search = watched
    token = protocols.priority.set(Priority(9))
    try:
        store.query(VectorStoreQuery([1.0, 0.0]))
        await store.aquery(VectorStoreQuery([1.0, 0.0], doc_ids=["one", "two"]))
    finally:
        protocols.priority.reset(token)
    assert seen == [9, 9, 9]


# --- writing


async def test_adding_replaces_and_deleting_deletes(store: AccelVectorStore) -> None:
    assert await store.async_add([node("a", [0.0, -1.0], "new", doc="three")]) == ["a"]
    assert store.get_nodes(["a"])[0].get_content() == "new" and found(store, doc_ids=["three"]) == ["a"]
    store.delete("one")
    assert found(store) == ["c", "a", "d", "e"]
    await store.adelete("two")
    assert found(store) == ["a", "e"]
    store.delete("none")
    await store.aclear()
    assert store.add([]) == await store.async_add([]) == found(store) == []
    store.add(NODES)
    store.clear()
    assert found(store) == []


async def test_deleting_nodes(store: AccelVectorStore) -> None:
    store.delete_nodes(["a", "none"])
    await store.adelete_nodes(filters=where(("page", "in", [2, 2.5])))
    assert found(store) == ["c", "e"]
    store.delete_nodes(["c", "e"], where(("topic", "==", "dogs"), ("topic", "==", "cats"), condition="or"))
    assert found(store) == ["e"]
    await store.adelete_nodes([], where(("topic", "==", "dogs")))
    store.delete_nodes(filters=where(("page", "in", [])))
    assert found(store) == ["e"]
    for empty in (None, MetadataFilters(filters=[]), where(MetadataFilters(filters=[]))):
        with pytest.raises(InvalidRequest, match="clear"):
            store.delete_nodes(filters=empty)
        with pytest.raises(InvalidRequest, match="clear"):
            await store.adelete_nodes(None, empty)
    assert found(store) == ["e"]


# --- what nodes are, after a round trip

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)
_related = st.builds(RelatedNodeInfo, node_id=_text, metadata=st.dictionaries(_text, _json, max_size=2))
_relationships = st.fixed_dictionaries(
    {},
    optional={
        NodeRelationship.SOURCE: _related,
        NodeRelationship.NEXT: _related,
        NodeRelationship.CHILD: st.lists(_related, max_size=2),
    },
)
_common: dict[str, Any] = {
    "id_": _text,
    "metadata": st.dictionaries(_text | st.sampled_from(["doc_id", "ref_doc_id", "text"]), _json, max_size=4),
    "relationships": _relationships,
    "excluded_llm_metadata_keys": st.lists(_text, max_size=2),
    "metadata_template": st.just("{key} is {value}"),
    "embedding": st.just([0.6, 0.8]),
}
_as_text: dict[str, Any] = {**_common, "text": _text, "start_char_idx": st.none() | st.integers(), "mimetype": _text}
_media = st.none() | st.builds(MediaResource, text=st.none() | _text, mimetype=st.none() | _text)
_nodes: st.SearchStrategy[BaseNode] = st.one_of(
    st.builds(TextNode, **_as_text),
    st.builds(IndexNode, index_id=_text, **_as_text),
    st.builds(ImageNode, image_url=_text, image_mimetype=st.just("image/png"), **_as_text),
    st.builds(Node, text_resource=_media, image_resource=_media, **_common),
)


@settings(deadline=None)
@given(_nodes)
def test_nodes_come_back_as_they_were(stored: BaseNode) -> None:
    store = AccelVectorStore(engine=SimStoreConfig("round trips", 2, QUICK, ingest_s=0.0))
    store.clear()
    before = stored.model_copy(deep=True)
    store.add([stored])
    assert stored == before
    (back,) = store.get_nodes([stored.node_id])
    (nearest,) = store.query(VectorStoreQuery([0.0, 1.0])).nodes or []
    assert type(back) is type(stored) and back.model_dump() == {**stored.model_dump(), "embedding": None}
    assert list(back.metadata) == list(stored.metadata) and nearest == back


def test_a_document_comes_back_as_a_text_node(store: AccelVectorStore) -> None:
    store.add([Document(id_="doc", text="whole", metadata={"k": [1]}, embedding=[1.0, 1.0])])
    (back,) = store.get_nodes(["doc"])
    assert isinstance(back, TextNode) and back.text == "whole" and back.metadata == {"k": [1]}


def test_records_of_others_are_text_nodes(store: AccelVectorStore) -> None:
    engine = accel_local.engine(store.engine_config())
    accel_local.run(engine.ingest([Record("z", "not LlamaIndex's", [1.0, 0.0], {"topic": "birds"})]))
    assert store.get_nodes(["z"]) == [TextNode(id_="z", text="not LlamaIndex's", metadata={"topic": "birds"})]


# --- filters


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        (MetadataFilters(filters=[]), "abcde"),
        (where(("topic", "==", "cats")), "ab"),
        (where(("topic", "==", "cats"), ("page", "==", 2)), "b"),
        (where(("topic", "==", "cats"), ("topic", "==", "dogs")), ""),
        (where(("topic", "==", "cats"), ("page", "==", 2.5), condition="or"), "abd"),
        (where(("page", "in", [1, 7])), "ac"),
        (where(("topic", "in", ["cats", "dogs"]), ("page", "in", [1, 2])), "abc"),
        (where(("topic", "in", [])), ""),
        (where(("tags", "contains", "y")), "ab"),
        (where(("tags", "all", ["x", "y"])), "a"),
        (where(("tags", "contains", "y"), ("tags", "contains", "x")), "a"),
        (where(("tags", "any", ["x", "z"])), "a"),
        (where(("tags", "==", "y")), ""),
        (where(("page", "==", "1")), ""),
        (where(("ref_doc_id", "==", "two")), "cd"),
        (where(where(("topic", "==", "cats"), ("page", "==", 1)), ("page", "==", 2.5), condition="or"), "ad"),
        (where(where(("topic", "==", "cats"), ("page", "==", 1), condition="or"), ("tags", "contains", "y")), "ab"),
        (MetadataFilters(filters=[MetadataFilter(key="page", value=1)], condition=None), "ac"),
    ],
)
def test_filters(store: AccelVectorStore, filters: MetadataFilters, ids: str) -> None:
    assert found(store, filters=filters) == list(ids)
    assert found(store, filters=filters, k=1) == list(ids[:1])
    assert found(store, filters=filters, node_ids=list("abcde")) == list(ids), "judged here, as the engine judges"


@pytest.mark.parametrize(
    "filters",
    [
        where(("page", ">", 1)),
        where(("topic", "!=", "cats")),
        where(("topic", "nin", ["cats"])),
        where(("topic", "text_match", "at")),
        where(("topic", "is_empty", None)),
        where(("topic", "==", None)),
        where(("tags", "==", ["y"])),
        where(("topic", "in", "cats")),
        where(("tags", "contains", ["y"])),
        where(("page", "==", float("nan"))),
        where(("topic", "==", "cats"), condition="not"),
        where(where(("page", "<=", 1)), ("topic", "==", "cats"), condition="or"),
    ],
)
async def test_other_filters_are_refused(store: AccelVectorStore, filters: MetadataFilters) -> None:
    query = VectorStoreQuery([1.0, 0.0], filters=filters)
    for refused in (
        lambda: store.query(query),
        lambda: store.delete_nodes(filters=filters),
        lambda: store.get_nodes(filters=filters),
    ):
        with pytest.raises(InvalidRequest, match=r"cannot filter by(.|\n)*supported: == and in"):
            refused()
    for awaited in (store.aquery(query), store.adelete_nodes(["a"], filters), store.aget_nodes(["a"], filters)):
        with pytest.raises(InvalidRequest, match="cannot filter by"):
            await awaited
    assert len(found(store)) == 5


def test_hits_keep_the_engine_s_order_of_equals() -> None:
    store = new_store()
    store.add([node(id, [1.0, 1.0]) for id in "cab"])
    assert found(store) == ["a", "b", "c"]
    assert found(store, k=2, doc_ids=["None"]) == ["a", "b"], "LlamaIndex stores this name for nodes of no document"
    assert found(store, k=2, node_ids=["c", "b"]) == ["b", "c"]


# --- errors and settings


async def test_bad_calls_say_what_is_wrong(store: AccelVectorStore) -> None:
    with pytest.raises(InvalidRequest, match=r"'f' has no embedding(.|\n)*VectorStoreIndex"):
        store.add([NODES[0], TextNode(id_="f", text="x")])
    with pytest.raises(InvalidRequest, match="2 dimensions, not 3"):
        await store.async_add([node("f", [1.0, 2.0, 3.0])])
    with pytest.raises(InvalidRequest, match="no embedding"):
        store.query(VectorStoreQuery(query_str="cats"))
    for ids in (None, ["a"]):
        with pytest.raises(InvalidRequest, match="dimensions, not 3"):
            store.query(VectorStoreQuery([1.0, 2.0, 3.0], node_ids=ids))
        with pytest.raises(InvalidRequest, match="0 nodes"):
            await store.aquery(VectorStoreQuery([1.0, 2.0], similarity_top_k=0, node_ids=ids))
    with pytest.raises(InvalidRequest, match="mode 'mmr'"):
        store.query(VectorStoreQuery([1.0, 2.0], mode=VectorStoreQueryMode.MMR))
    for refused in (
        lambda: store.query(VectorStoreQuery([1.0, 2.0]), mmr_threshold=0.5),
        lambda: store.add(NODES, batch=1),
        lambda: store.delete("one", batch=1),
        lambda: store.delete_nodes(["a"], batch=1),
    ):
        with pytest.raises(ConfigurationError, match="mmr_threshold|batch"):
            refused()
    assert len(found(store)) == 5, "none of these changed anything"


def test_without_an_engine_the_dimension_must_be_known() -> None:
    store = AccelVectorStore()
    for refused in (store.engine_config, store.clear, store.get_nodes, lambda: store.delete("doc")):
        with pytest.raises(ConfigurationError, match="dimension="):
            refused()
    assert store.accel_profiles() == []
    assert AccelVectorStore(dimension=3, temporary=True).engine_config().dimension == 3  # type: ignore[attr-defined]


def test_settings() -> None:
    store = AccelVectorStore(collection="docs", dsn="postgresql://me:hidden@db:5432/x", dimension=2)
    assert "hidden" not in f"{store!r} {store} {store.to_dict()} {store.accel_resource()}"
    assert store.stores_text and store.is_embedding_query and store.client is None
    assert (
        resource_of(store)
        == LangChainStore(  # they would write the same records
            None,
            "docs",
            dsn="postgresql://me:other@db:5432/x",  # type: ignore[arg-type]
        ).accel_resource()
    )
    assert resource_of(store) != resource_of(AccelVectorStore(collection="more", dsn=store.dsn))
    facts = facts_of(store)
    assert facts.pure and facts.owned and facts.local and facts.concurrency == 4096
    with pytest.raises(ValidationError, match="colection"):
        AccelVectorStore(colection="a")
    with pytest.raises(ValidationError, match="collection"):
        AccelVectorStore(collection="")
    simulated = new_store()
    assert simulated.accel_profiles() == []
    simulated.add(NODES)
    assert simulated.accel_profiles() == [QUICK]
