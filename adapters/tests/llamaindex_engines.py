"""Query engines and retrievers of every kind, as LlamaIndex's documentation writes them."""

from __future__ import annotations

from typing import Any

from llama_index.core import StorageContext, SummaryIndex
from llama_index.core.evaluation import RelevancyEvaluator
from llama_index.core.indices.query.query_transform import HyDEQueryTransform, StepDecomposeQueryTransform
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.query_engine import (
    CustomQueryEngine,
    FLAREInstructQueryEngine,
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import BaseSynthesizer, TreeSummarize, get_response_synthesizer
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    BaseRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
    TransformRetriever,
)
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import IndexNode, NodeRelationship, TextNode
from llama_index.core.selectors import LLMMultiSelector, LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool, RetrieverTool

from .llamaindex_clerk import NODES, Clerk, Kind, index, told
from .llamaindex_programs import TOPICS


def query(engine: Any, question: str) -> str:
    return told(engine.query(question))


async def aquery(engine: Any, question: str) -> str:
    return told(await engine.aquery(question))


# --- query engines


class OwnEngine(CustomQueryEngine):
    retriever: BaseRetriever
    synthesizer: BaseSynthesizer

    def custom_query(self, query_str: str) -> Any:
        return self.synthesizer.synthesize(query_str, self.retriever.retrieve(query_str))


def custom() -> Any:
    synthesizer = get_response_synthesizer(llm=Clerk(), response_mode="accumulate")
    return OwnEngine(retriever=index().as_retriever(similarity_top_k=4), synthesizer=synthesizer)


class Fresh(CustomQueryEngine):
    """Makes its model for each query."""

    retriever: BaseRetriever

    def custom_query(self, query_str: str) -> Any:
        model = Clerk()
        found = self.retriever.retrieve(query_str)
        notes = [str(model.complete(f"A note on {query_str} from {one.node.get_content()}")) for one in found]
        return str(Clerk().complete("\n\n".join(notes)))


def tools(model: Clerk, **options: Any) -> list[QueryEngineTool]:
    engines = [index(NODES[:12]).as_query_engine(llm=model, **options), index(NODES[12:]).as_query_engine(llm=model)]
    return [
        QueryEngineTool.from_defaults(engine, name=name, description=f"about {name}")
        for engine, name in zip(engines, ("land", "sea"), strict=True)
    ]


def sub_questions(use_async: bool = False) -> Any:
    model = Clerk()
    return SubQuestionQueryEngine.from_defaults(
        tools(model), llm=model, question_gen=LLMQuestionGenerator.from_defaults(llm=model), use_async=use_async,
        verbose=False, response_synthesizer=get_response_synthesizer(llm=model),
    )  # fmt: skip


def router(several: bool) -> Any:
    model = Clerk()
    selector = LLMMultiSelector.from_defaults(llm=model) if several else LLMSingleSelector.from_defaults(llm=model)
    return RouterQueryEngine.from_defaults(
        tools(model, response_mode="accumulate", similarity_top_k=3), selector=selector, llm=model,
        summarizer=TreeSummarize(llm=model),
    )  # fmt: skip


def hyde() -> Any:
    engine = index().as_query_engine(llm=Clerk(), response_mode="accumulate", similarity_top_k=3)
    return TransformQueryEngine(engine, query_transform=HyDEQueryTransform(llm=Clerk()))


def retry() -> Any:
    engine = index().as_query_engine(llm=Clerk(), response_mode="accumulate", similarity_top_k=3)
    return RetryQueryEngine(engine, RelevancyEvaluator(llm=Clerk()))


def flare() -> Any:
    engine = index().as_query_engine(llm=Clerk(), response_mode="accumulate", similarity_top_k=3)
    return FLAREInstructQueryEngine(engine, llm=Clerk(), max_iterations=4)


def multi_step() -> Any:
    model = Clerk()
    engine = index().as_query_engine(llm=model, response_mode="accumulate", similarity_top_k=3)
    return MultiStepQueryEngine(
        engine, StepDecomposeQueryTransform(llm=model), get_response_synthesizer(llm=model), num_steps=2
    )


def of_mode(mode: str, **options: Any) -> Any:
    return index().as_query_engine(llm=Clerk(), response_mode=mode, similarity_top_k=3, **options)


def reranked() -> Any:
    rerank = LLMRerank(llm=Clerk(), choice_batch_size=3, top_n=2)
    return index().as_query_engine(llm=Clerk(), similarity_top_k=9, node_postprocessors=[rerank])


def chosen_by_model() -> Any:
    return SummaryIndex(NODES[:12]).as_query_engine(llm=Clerk(), retriever_mode="llm", choice_batch_size=4)


def recursive() -> Any:
    below = {topic: index([n for n in NODES if n.node_id.startswith(topic)]).as_retriever() for topic in TOPICS}
    above = index([IndexNode(text=f"All about {topic}.", index_id=topic, id_=f"to {topic}") for topic in TOPICS])
    retriever = RecursiveRetriever("top", retriever_dict={"top": above.as_retriever(similarity_top_k=2), **below})
    return RetrieverQueryEngine.from_args(retriever, llm=Clerk(), response_mode="accumulate")


# --- retrievers


def retrieve(retriever: Any, question: str) -> str:
    return told(retriever.retrieve(question))


async def aretrieve(retriever: Any, question: str) -> str:
    return told(await retriever.aretrieve(question))


def fusion(mode: FUSION_MODES, use_async: bool = False) -> Any:
    retrievers = [index(NODES[:12]).as_retriever(similarity_top_k=3), index(NODES[8:]).as_retriever(similarity_top_k=3)]
    return QueryFusionRetriever(
        retrievers, llm=Clerk(), mode=mode, num_queries=4, similarity_top_k=4, use_async=use_async,
        retriever_weights=[0.6, 0.4],
    )  # fmt: skip


def auto_merging() -> Any:
    """The parts of a topic are children of one node with all of it."""
    leaves, parents = [], []
    for topic in TOPICS:
        parts = [node.model_copy(deep=True) for node in NODES if node.node_id.startswith(topic)]
        parent = TextNode(text=" ".join(node.text for node in parts), id_=f"all of {topic}")
        parent.relationships[NodeRelationship.CHILD] = [node.as_related_node_info() for node in parts]
        for node in parts:
            node.relationships[NodeRelationship.PARENT] = parent.as_related_node_info()
        leaves += parts
        parents.append(parent)
    documents = SimpleDocumentStore()
    documents.add_documents([*leaves, *parents])
    return AutoMergingRetriever(
        index(leaves).as_retriever(similarity_top_k=6), StorageContext.from_defaults(docstore=documents)
    )


def router_retriever(several: bool) -> Any:
    kind = LLMMultiSelector if several else LLMSingleSelector
    found = [index(NODES[:12]).as_retriever(similarity_top_k=3), index(NODES[12:]).as_retriever(similarity_top_k=3)]
    described = [
        RetrieverTool.from_defaults(each, description=f"about {name}")
        for each, name in zip(found, ("land", "sea"), strict=True)
    ]
    return RouterRetriever(kind.from_defaults(llm=Clerk()), described, llm=Clerk())


def transformed() -> Any:
    return TransformRetriever(index().as_retriever(similarity_top_k=3), HyDEQueryTransform(llm=Clerk()))


ENGINES: dict[str, Kind] = {
    "custom query engine": Kind(custom, query),
    "models made per query": Kind(lambda: Fresh(retriever=index().as_retriever(similarity_top_k=4)), query),
    "sub-questions": Kind(sub_questions, query, aquery),
    "sub-questions, gathered": Kind(lambda: sub_questions(use_async=True), query, aquery, orderly=False),
    "router, one": Kind(lambda: router(False), query, aquery),
    "router, several": Kind(lambda: router(True), query, aquery, orderly=False),
    "multi-step": Kind(multi_step, query, aquery),
    "flare": Kind(flare, query, aquery),
    "hyde": Kind(hyde, query, aquery),
    "retry": Kind(retry, query, aquery),
    "generation": Kind(lambda: of_mode("generation"), query, aquery),
    "no_text": Kind(lambda: of_mode("no_text"), query, aquery, early=False),
    "context_only": Kind(lambda: of_mode("context_only"), query, aquery, early=False),
    "reranked in batches": Kind(reranked, query, aquery),
    "chosen by a model": Kind(chosen_by_model, query, aquery),
    "recursive": Kind(recursive, query, aquery),
    "vector retriever": Kind(lambda: index().as_retriever(similarity_top_k=3), retrieve, aretrieve, early=False),
    **{
        f"fusion, {mode.value}": Kind(lambda mode=mode: fusion(mode), retrieve, aretrieve)  # type: ignore[misc]
        for mode in FUSION_MODES
    },
    "fusion, gathered": Kind(
        lambda: fusion(FUSION_MODES.RECIPROCAL_RANK, use_async=True), retrieve, aretrieve, orderly=False
    ),
    "auto-merging": Kind(auto_merging, retrieve, aretrieve, early=False),
    "router retriever, one": Kind(lambda: router_retriever(False), retrieve, aretrieve, early=False),
    "router retriever, several": Kind(lambda: router_retriever(True), retrieve, aretrieve, early=False),
    "transform retriever": Kind(transformed, retrieve, aretrieve),
}
