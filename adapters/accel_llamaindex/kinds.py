"""What of LlamaIndex can be accelerated, and which of its methods open a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Signature, signature
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.evaluation import BaseEvaluator, BatchEvalRunner
from llama_index.core.evaluation.retrieval.base import BaseRetrievalEvaluator
from llama_index.core.extractors import BaseExtractor
from llama_index.core.indices.base import BaseIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import NodeParser
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index.core.schema import QueryBundle, TransformComponent
from llama_index.core.workflow import Workflow

Methods = tuple[tuple[str, str], ...]
"""Methods that open a run, with their coroutines."""

MAIN: tuple[tuple[type, Methods], ...] = (
    (BaseQueryEngine, (("query", "aquery"),)),
    (BaseRetriever, (("retrieve", "aretrieve"),)),
    (BaseSynthesizer, (("synthesize", "asynthesize"),)),
    (BaseNodePostprocessor, (("postprocess_nodes", "apostprocess_nodes"),)),
    (BaseChatEngine, (("chat", "achat"), ("stream_chat", "astream_chat"))),
    (BaseEvaluator, (("evaluate", "aevaluate"), ("evaluate_response", "aevaluate_response"))),
    (
        BatchEvalRunner,
        tuple((f"evaluate_{what}", f"aevaluate_{what}") for what in ("queries", "responses", "response_strs")),
    ),
    (BaseRetrievalEvaluator, (("evaluate", "aevaluate"),)),
    (BaseExtractor, (("__call__", "acall"), ("process_nodes", "aprocess_nodes"), ("extract", "aextract"))),
    (NodeParser, (("__call__", "acall"), ("get_nodes_from_documents", "aget_nodes_from_documents"))),
    (TransformComponent, (("__call__", "acall"),)),
    (IngestionPipeline, (("run", "arun"),)),
    (BaseIndex, (("insert_nodes", "ainsert_nodes"), ("insert", "ainsert"))),
    (Workflow, ()),
)
"""By kind of object; a workflow's `run` gives a handler (`workflows`)."""
BUILT = BaseIndex
"""Of these also the class, whose `build_index_from_nodes` opens a run."""
ASKED_BY = ("as_query_engine", "as_retriever", "as_chat_engine")
"""Of an object of that kind, the methods that make what it is asked with."""
TAKES = (
    "query and chat engines, retrievers, response synthesizers, node postprocessors, evaluators, transformations, "
    "ingestion pipelines, indexes (objects, or the class), workflows and agents"
)
QUERIED = (BaseQueryEngine, BaseRetriever, BaseSynthesizer)


NAMES: tuple[tuple[type, str], ...] = (
    (BaseQueryEngine, "engine"),
    (BaseRetriever, "retriever"),
    (BaseSynthesizer, "synthesizer"),
    (BaseNodePostprocessor, "postprocessor"),
    (BaseChatEngine, "chat_engine"),
    (BaseEvaluator, "evaluator"),
    (BatchEvalRunner, "runner"),
    (BaseRetrievalEvaluator, "evaluator"),
    (BaseExtractor, "extractor"),
    (TransformComponent, "transformation"),
    (IngestionPipeline, "pipeline"),
    (BaseIndex, "index"),
    (Workflow, "workflow"),
)
"""By kind of object, what users name it; a workflow that is an agent is one."""


def name_of(obj: Any) -> str:
    """What users name such an object; a class by its own name."""
    if isinstance(obj, type):
        return obj.__name__
    if any(cls.__module__.startswith("llama_index.core.agent.") for cls in type(obj).__mro__):
        return "agent"
    return next(name for kind, name in NAMES if isinstance(obj, kind))


def methods_of(cls: type) -> Methods | None:
    """None for a class of another kind. Embeddings are transformations, too, but components, without inner calls."""
    if issubclass(cls, BaseEmbedding):
        return None
    return next((methods for kind, methods in MAIN if issubclass(cls, kind)), None)


Input = Callable[[Any, tuple[Any, ...], Mapping[str, Any]], dict[str, Any] | None]


def input_of(cls: type) -> Input:
    """What a run is given, by the parameters of one method of one class; a query as text is the query that it stands
    for. None for arguments that the method doesn't take, as it will say."""
    parameters: Signature | None = None
    queried = issubclass(cls, QUERIED)

    def read(method: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
        nonlocal parameters
        if parameters is None:
            parameters = signature(method)
        try:
            given = parameters.bind(*args, **kwargs).arguments
        except TypeError:
            return None
        if not queried:
            return given
        return {key: QueryBundle(value) if isinstance(value, str) else value for key, value in given.items()}

    return read
