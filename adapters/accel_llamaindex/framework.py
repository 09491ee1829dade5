"""What Accel is told of LlamaIndex, without importing it."""

from __future__ import annotations

from accel.frameworks import Framework

FRAMEWORK = Framework(
    "LlamaIndex",
    "llamaindex",
    "one of LlamaIndex's query engines, retrievers, response synthesizers, node postprocessors, chat engines, "
    "evaluators, extractors, ingestion pipelines, indexes, workflows and agents",
    (
        ("llama_index.core.base.base_query_engine", "BaseQueryEngine"),
        ("llama_index.core.base.base_retriever", "BaseRetriever"),
        ("llama_index.core.response_synthesizers.base", "BaseSynthesizer"),
        ("llama_index.core.postprocessor.types", "BaseNodePostprocessor"),
        ("llama_index.core.chat_engine.types", "BaseChatEngine"),
        ("llama_index.core.evaluation.base", "BaseEvaluator"),
        ("llama_index.core.evaluation.batch_runner", "BatchEvalRunner"),
        ("llama_index.core.evaluation.retrieval.base", "BaseRetrievalEvaluator"),
        ("llama_index.core.extractors.interface", "BaseExtractor"),
        ("llama_index.core.ingestion.pipeline", "IngestionPipeline"),
        ("llama_index.core.indices.base", "BaseIndex"),
        ("llama_index.core.workflow", "Workflow"),
    ),
    adapter="accel_llamaindex.accelerated",
    packages=("llama_index", "workflows"),
    families=("llama_index",),
    boundaries=("/accel_llamaindex/accelerated.py",),
    programs="accel_llamaindex.programs",
    supports=(("llama-index-core", "0.14.25", "0.15"),),
)
