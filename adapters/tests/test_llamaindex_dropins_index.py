"""A LlamaIndex index and its query engine, all of it on simulated engines."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, Settings, StorageContext, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

from accel.engine.profile import Profile, ProfileFile
from accel_llamaindex import AccelEmbedding, AccelLLM, AccelRerank, AccelVectorStore
from accel_sim import SimEmbeddingConfig, SimLLMConfig, SimRerankConfig, SimStoreConfig

_numbers = itertools.count()

TEXTS = {
    "cats": "Cats purr when they are content. A kitten is a young cat.",
    "taxes": "Taxes are due in May. Late payers owe interest to the state.",
    "trains": "Trains run late in winter. The night train crosses the border at four.",
}


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> AccelLLM:
    profile = Profile("llm", prefill=((10, 1e-5), (1000, 1e-4)), decode=((1, 1e-5),), batch_tokens=2048, block_tokens=4)
    path: Path = tmp_path_factory.mktemp("profile") / "quick.json"
    ProfileFile({"llm": profile}).save(path)
    return AccelLLM(engine=SimLLMConfig(str(path), name="of the index"), max_tokens=8)


def an_index(callbacks: CallbackManager, use_async: bool) -> VectorStoreIndex:
    quick = Profile("embedding", batches=((1, 16, 1e-5), (64, 16, 1e-4)), batch_tokens=4096)
    embedding = AccelEmbedding(engine=SimEmbeddingConfig(quick, dimension=64), callback_manager=callbacks)
    config = SimStoreConfig(f"index {next(_numbers)}", 64, Profile("searching", search=((100, 1e-5),)), ingest_s=0.0)
    documents = [Document(id_=name, text=text, metadata={"topic": name}) for name, text in TEXTS.items()]
    return VectorStoreIndex.from_documents(
        documents,
        storage_context=StorageContext.from_defaults(vector_store=AccelVectorStore(engine=config)),
        embed_model=embedding,
        transformations=[SentenceSplitter(chunk_size=32, chunk_overlap=0, tokenizer=str.split)],
        callback_manager=callbacks,
        use_async=use_async,
    )


@pytest.mark.parametrize("use_async", [False, True])
async def test_an_index_and_its_query_engine(llm: AccelLLM, use_async: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = TokenCountingHandler(tokenizer=str.split)
    callbacks = CallbackManager([counter])
    monkeypatch.setattr(Settings, "_callback_manager", callbacks)  # query engines give it to their models
    index = an_index(callbacks, use_async)
    assert counter.total_embedding_token_count > 30
    rerank = AccelRerank(
        engine=SimRerankConfig(Profile("reranking", batches=((1, 16, 1e-5),), batch_tokens=4096)), top_n=1
    )
    engine = index.as_query_engine(llm=llm, similarity_top_k=2, node_postprocessors=[rerank])
    response: Any = engine.query("When are taxes due to the state?")
    assert [source.metadata["topic"] for source in response.source_nodes] == ["taxes"]
    (count,) = counter.llm_token_counts
    assert count.prompt_token_count > 60 and count.completion_token_count == llm.max_tokens
    assert count.prompt_token_count != len(count.prompt.split()), "the engine's own count"
    awaited: Any = await engine.aquery("When are taxes due to the state?")
    assert awaited.response == response.response and awaited.source_nodes == response.source_nodes
    streaming: Any = index.as_query_engine(llm=llm, similarity_top_k=2, node_postprocessors=[rerank], streaming=True)
    assert "".join(streaming.query("When are taxes due to the state?").response_gen) == response.response
    some = MetadataFilter(key="topic", operator=FilterOperator.IN, value=["cats", "trains"])
    filtered: Any = index.as_retriever(similarity_top_k=5, filters=MetadataFilters(filters=[some]))
    assert {source.metadata["topic"] for source in await filtered.aretrieve("taxes")} == {"cats", "trains"}
    await index.adelete_ref_doc("taxes")
    left = await asyncio.to_thread(index.as_retriever(similarity_top_k=5).retrieve, "taxes")
    assert {source.metadata["topic"] for source in left} == {"cats", "trains"}
