"""sentence-transformers as an embedding engine, in this process."""

from accel_sentence_transformers.engine import SentenceTransformersConfig, SentenceTransformersEngine

__all__ = ["SentenceTransformersConfig", "SentenceTransformersEngine"]
