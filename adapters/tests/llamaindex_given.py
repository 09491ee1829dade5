"""What works on given nodes or answers: response synthesizers, node postprocessors, extractors and evaluators, each by
itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llama_index.core.evaluation import (
    BatchEvalRunner,
    FaithfulnessEvaluator,
    RelevancyEvaluator,
    RetrieverEvaluator,
)
from llama_index.core.extractors import (
    KeywordExtractor,
    QuestionsAnsweredExtractor,
    SummaryExtractor,
    TitleExtractor,
)
from llama_index.core.indices.property_graph import SimpleLLMPathExtractor
from llama_index.core.node_parser import SemanticSplitterNodeParser
from llama_index.core.postprocessor import LLMRerank, SimilarityPostprocessor, StructuredLLMRerank
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import BaseNode, NodeRelationship, QueryBundle, RelatedNodeInfo

from .llamaindex_clerk import Caller, Clerk, Kind, Letters, index, of_topic, scored, told
from .llamaindex_engines import fusion

# --- response synthesizers


def synthesizer(mode: Any, **options: Any) -> Any:
    return get_response_synthesizer(
        llm=Clerk(context_window=360 if mode == "tree_summarize" else 4096), response_mode=mode, **options
    )


def synthesize(obj: Any, question: str) -> str:
    return told(obj.synthesize(question, scored(question)))


async def asynthesize(obj: Any, question: str) -> str:
    return told(await obj.asynthesize(question, scored(question)))


def stream(obj: Any, question: str) -> str:
    response = obj.synthesize(question, scored(question))
    return repr([list(response.response_gen), told(response.source_nodes)])


async def astream(obj: Any, question: str) -> str:
    response = await obj.asynthesize(question, scored(question))
    return repr([[part async for part in response.async_response_gen()], told(response.source_nodes)])


# --- node postprocessors


def rerank(kind: Any, model: Any) -> Any:
    return kind(llm=model, choice_batch_size=2, top_n=3)


def postprocess(obj: Any, question: str) -> str:
    return told(obj.postprocess_nodes(scored(question), QueryBundle(question)))


async def apostprocess(obj: Any, question: str) -> str:
    return told(await obj.apostprocess_nodes(scored(question), query_str=question))


# --- transformations


def extractor(kind: Any) -> Callable[[], Any]:
    return lambda: kind(llm=Clerk(), show_progress=False, num_workers=1)


def fresh(question: str) -> list[BaseNode]:
    """Copies, as extractors change what they are given, of two documents."""
    nodes: list[BaseNode] = [node.model_copy(deep=True) for node in of_topic(question)]
    for number, node in enumerate(nodes):
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"document {number // 2}")
    return nodes


def extract(obj: Any, question: str) -> str:
    """In all the ways that there are."""
    processed = obj.process_nodes(fresh(question), excluded_llm_metadata_keys=["n"])
    return told([obj.extract(fresh(question)), told(obj(fresh(question))), told(processed)])


async def aextract(obj: Any, question: str) -> str:
    processed = await obj.aprocess_nodes(fresh(question), excluded_llm_metadata_keys=["n"])
    return told([await obj.aextract(fresh(question)), told(await obj.acall(fresh(question))), told(processed)])


def semantic() -> Any:
    return SemanticSplitterNodeParser(embed_model=Letters(), id_func=lambda n, document: f"{document.id_}-{n}")


def split(obj: Any, question: str) -> str:
    return told(obj.get_nodes_from_documents(fresh(question)))


async def asplit(obj: Any, question: str) -> str:
    return told(await obj.aget_nodes_from_documents(fresh(question)))


def transform(obj: Any, question: str) -> str:
    return told(obj(fresh(question)))


async def atransform(obj: Any, question: str) -> str:
    return told(await obj.acall(fresh(question)))


# --- evaluators


def evaluated(question: str) -> dict[str, Any]:
    return {"query": question, "response": f"It is {question}", "contexts": [node.text for node in of_topic(question)]}


def evaluate(obj: Any, question: str) -> str:
    return told([obj.evaluate(**evaluated(question))])


async def aevaluate(obj: Any, question: str) -> str:
    return told([await obj.aevaluate(**evaluated(question))])


def batch() -> Any:
    evaluators = {"faithful": FaithfulnessEvaluator(llm=Clerk()), "relevant": RelevancyEvaluator(llm=Clerk())}
    return BatchEvalRunner(evaluators, workers=8)


async def abatch(obj: Any, question: str) -> str:
    given = [evaluated(f"{number}: {question}") for number in range(3)]
    found = await obj.aevaluate_response_strs(
        queries=[one["query"] for one in given], response_strs=[one["response"] for one in given],
        contexts_list=[one["contexts"] for one in given],
    )  # fmt: skip
    return results_of(found)


def results_of(found: dict[str, list[Any]]) -> str:
    return told(sorted((name, [result.model_dump() for result in results]) for name, results in found.items()))


def asked_of_batch(question: str) -> dict[str, Any]:
    engine = index().as_query_engine(llm=Clerk(), response_mode="accumulate", similarity_top_k=2)
    return {"query_engine": engine, "queries": [question, f"And why is it known, {question}"]}


def batch_queries(obj: Any, question: str) -> str:
    return results_of(obj.evaluate_queries(**asked_of_batch(question)))


async def abatch_queries(obj: Any, question: str) -> str:
    return results_of(await obj.aevaluate_queries(**asked_of_batch(question)))


def answered(question: str) -> dict[str, Any]:
    asked = asked_of_batch(question)
    engine = asked.pop("query_engine")
    return {**asked, "responses": [engine.query(each) for each in asked["queries"]]}


def batch_responses(obj: Any, question: str) -> str:
    return results_of(obj.evaluate_responses(**answered(question)))


async def abatch_responses(obj: Any, question: str) -> str:
    return results_of(await obj.aevaluate_responses(**answered(question)))


def retrieval() -> Any:
    evaluator = RetrieverEvaluator.from_metric_names(["mrr", "hit_rate"], retriever=fusion(FUSION_MODES.RELATIVE_SCORE))
    evaluator.node_postprocessors = [rerank(LLMRerank, Clerk())]
    return evaluator


def evaluate_retrieval(obj: Any, question: str) -> str:
    return told([obj.evaluate(question, [node.node_id for node in of_topic(question)])])


async def aevaluate_retrieval(obj: Any, question: str) -> str:
    return told([await obj.aevaluate(question, [node.node_id for node in of_topic(question)])])


GIVEN: dict[str, Kind] = {
    "accumulate": Kind(lambda: synthesizer("accumulate"), synthesize, asynthesize),
    "tree_summarize": Kind(lambda: synthesizer("tree_summarize"), synthesize, asynthesize),
    "tree_summarize, gathered": Kind(
        lambda: synthesizer("tree_summarize", use_async=True), synthesize, asynthesize, orderly=False
    ),
    "compact, streamed": Kind(lambda: synthesizer("compact", streaming=True), stream, astream, early=False),
    "refine, streamed": Kind(lambda: synthesizer("refine", streaming=True), stream, astream, early=False),
    "generation, streamed": Kind(lambda: synthesizer("generation", streaming=True), stream, astream, early=False),
    "simple_summarize, streamed": Kind(
        lambda: synthesizer("simple_summarize", streaming=True), stream, astream, early=False
    ),
    "tree_summarize, streamed": Kind(lambda: synthesizer("tree_summarize", streaming=True), stream, astream),
    "reranking": Kind(lambda: rerank(LLMRerank, Clerk()), postprocess, apostprocess),
    "structured reranking": Kind(lambda: rerank(StructuredLLMRerank, Caller()), postprocess, apostprocess),
    "postprocessor without a model": Kind(
        lambda: SimilarityPostprocessor(similarity_cutoff=0.5), postprocess, apostprocess, early=False, calls=False
    ),
    "keywords": Kind(extractor(KeywordExtractor), extract, aextract, orderly=False),
    "summaries": Kind(extractor(SummaryExtractor), extract, aextract, orderly=False),
    "titles": Kind(extractor(TitleExtractor), extract, aextract, orderly=False),
    "questions": Kind(extractor(QuestionsAnsweredExtractor), extract, aextract, orderly=False),
    "splitting by meaning": Kind(semantic, split, asplit, early=False),
    "paths of a graph": Kind(
        lambda: SimpleLLMPathExtractor(llm=Clerk(), num_workers=1), transform, atransform, orderly=False
    ),
    "evaluator": Kind(lambda: FaithfulnessEvaluator(llm=Clerk()), evaluate, aevaluate, early=False),
    "batch of evaluations": Kind(batch, abatch, abatch, orderly=False),
    "batch of queries": Kind(batch, batch_queries, abatch_queries, orderly=False),
    "batch of responses": Kind(batch, batch_responses, abatch_responses, orderly=False),
    "evaluator of a retriever": Kind(retrieval, evaluate_retrieval, aevaluate_retrieval),
}
