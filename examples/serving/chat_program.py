"""A chat about documents with LlamaIndex: each message is looked up in four wordings, and answered from what was found
and from what was said before."""

from __future__ import annotations

from llama_index.core import VectorStoreIndex
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import TextNode
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.openai import OpenAI

from .rag_program import notes


class Parts:
    """What all conversations share."""

    def __init__(self, base_url: str) -> None:
        # A name that the client knows: by it, it asks for the length of the context.
        self.llm = OpenAI(model="gpt-4o-mini", api_base=base_url, api_key="local", temperature=0)
        embeddings = OpenAIEmbedding(model_name="local-embedding", api_base=base_url, api_key="local")
        nodes = [TextNode(text=text, id_=f"note {number}") for number, text in enumerate(notes())]
        self.index = VectorStoreIndex(nodes, embed_model=embeddings)


def chat_engine(parts: Parts) -> ContextChatEngine:
    """One for each conversation: it remembers what was said."""
    retriever = QueryFusionRetriever(
        [parts.index.as_retriever(similarity_top_k=2)],
        llm=parts.llm,
        num_queries=4,
        mode=FUSION_MODES.RECIPROCAL_RANK,
        similarity_top_k=4,
        use_async=False,
    )
    return ContextChatEngine.from_defaults(retriever=retriever, llm=parts.llm)
