"""What Accel is told of LlamaIndex, without importing it."""

from __future__ import annotations

from accel.frameworks import Framework

FRAMEWORK = Framework(
    "LlamaIndex",
    "llamaindex",
    "one of LlamaIndex's query engines, retrievers, ingestion pipelines and vector store indexes",
    (
        ("llama_index.core.base.base_query_engine", "BaseQueryEngine"),
        ("llama_index.core.base.base_retriever", "BaseRetriever"),
        ("llama_index.core.ingestion.pipeline", "IngestionPipeline"),
        ("llama_index.core.indices.vector_store.base", "VectorStoreIndex"),
    ),
    adapter="accel_llamaindex.accelerated",
    packages=("llama_index",),
    families=("llama_index",),
    boundaries=("/accel_llamaindex/accelerated.py",),
)
