"""What Accel is told of LlamaIndex, without importing it."""

from __future__ import annotations

from accel.frameworks import Framework

_CALLED = "Accelerate what calls it, such as a query engine: by itself it has nothing to issue early."
_PARTS = "Declare the models, stores, retrievers and clients that it calls."
_NO_CALLS = "Leave it out: it makes no calls."

FRAMEWORK = Framework(
    "LlamaIndex",
    "llamaindex",
    "one of LlamaIndex's query and chat engines, retrievers, synthesizers, postprocessors, evaluators, "
    "transformations, pipelines, indexes, workflows and agents",
    (
        ("llama_index.core.base.base_query_engine", "BaseQueryEngine"),
        ("llama_index.core.base.base_retriever", "BaseRetriever"),
        ("llama_index.core.response_synthesizers.base", "BaseSynthesizer"),
        ("llama_index.core.postprocessor.types", "BaseNodePostprocessor"),
        ("llama_index.core.chat_engine.types", "BaseChatEngine"),
        ("llama_index.core.evaluation.base", "BaseEvaluator"),
        ("llama_index.core.evaluation.batch_runner", "BatchEvalRunner"),
        ("llama_index.core.evaluation.retrieval.base", "BaseRetrievalEvaluator"),
        ("llama_index.core.schema", "TransformComponent"),
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
    instead=(
        ("llama_index.core.base.llms.base", "BaseLLM", _CALLED),
        ("llama_index.core.base.embeddings.base", "BaseEmbedding", _CALLED),
        ("llama_index.core.types", "BasePydanticProgram", _CALLED),
        ("llama_index.core.base.base_selector", "BaseSelector", "Accelerate the router that chooses with it."),
        (
            "llama_index.core.question_gen.types",
            "BaseQuestionGenerator",
            "Accelerate the engine that asks it, such as SubQuestionQueryEngine.",
        ),
        (
            "llama_index.core.indices.query.query_transform.base",
            "BaseQueryTransform",
            "Accelerate the engine or retriever that uses it, such as TransformQueryEngine or TransformRetriever.",
        ),
        ("llama_index.core.tools.types", "BaseTool", "Accelerate the agent or engine that uses it."),
    ),
    no_components=(
        (
            "llama_index.core.tools.function_tool",
            "FunctionTool",
            "Declare its function: FunctionTool.from_defaults(accel.pure(f))",
        ),
        ("llama_index.core.tools.types", "BaseTool", _PARTS),
        ("llama_index.core.base.base_query_engine", "BaseQueryEngine", _PARTS),
        ("llama_index.core.chat_engine.types", "BaseChatEngine", _PARTS),
        ("llama_index.core.response_synthesizers.base", "BaseSynthesizer", _PARTS),
        ("llama_index.core.evaluation.base", "BaseEvaluator", _PARTS),
        ("llama_index.core.ingestion.pipeline", "IngestionPipeline", _PARTS),
        ("llama_index.core.indices.base", "BaseIndex", _PARTS),
        ("llama_index.core.storage.storage_context", "StorageContext", _PARTS),
        ("llama_index.core.settings", "_Settings", _PARTS),
        ("llama_index.core.workflow", "Workflow", _PARTS),
        ("llama_index.core.prompts.base", "BasePromptTemplate", _NO_CALLS),
        ("llama_index.core.schema", "BaseNode", _NO_CALLS),
    ),
)
