"""sentence-transformers as an embedding and a reranking engine, in this process."""

from accel_sentence_transformers.engine import SentenceTransformersConfig, SentenceTransformersEngine
from accel_sentence_transformers.rerank import RerankConfig, SentenceTransformersReranker

__all__ = ["RerankConfig", "SentenceTransformersConfig", "SentenceTransformersEngine", "SentenceTransformersReranker"]
