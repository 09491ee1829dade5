"""An ordinary LlamaIndex program: answer questions about the Python packages installed here from their descriptions.

Fusion RAG: the model writes further search queries, each is looked up, the lists of results are fused by reciprocal
rank, and every passage that is left gives an answer of its own. Any language model, embedding model and vector store of
LlamaIndex.
"""

from __future__ import annotations

from advanced_rag import package_passages
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

QUERIES = 3
PASSAGES = 4
ANSWER = PromptTemplate(
    "Context information is below.\n{context_str}\n\nAnswer the question from the context, in one or two sentences.\n"
    "Question: {query_str}\nAnswer: "
)


def nodes() -> list[TextNode]:
    passages = enumerate(package_passages())
    return [TextNode(text=found.page_content, id_=f"passage {n}", metadata=found.metadata) for n, found in passages]


def index_of(embed_model: BaseEmbedding, store: BasePydanticVectorStore) -> VectorStoreIndex:
    storage = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(nodes(), embed_model=embed_model, storage_context=storage)


def query_engine(llm: LLM, index: VectorStoreIndex) -> RetrieverQueryEngine:
    retriever = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=PASSAGES)],
        llm=llm,
        num_queries=QUERIES + 1,
        mode=FUSION_MODES.RECIPROCAL_RANK,
        similarity_top_k=PASSAGES,
        use_async=False,
    )
    return RetrieverQueryEngine.from_args(
        retriever, llm=llm, response_mode=ResponseMode.ACCUMULATE, text_qa_template=ANSWER
    )
