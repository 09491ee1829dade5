"""Accel for LlamaIndex: the adapter, and the drop-in component classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .embedding import AccelEmbedding as AccelEmbedding
    from .llm import AccelLLM as AccelLLM
    from .rerank import AccelRerank as AccelRerank
    from .vector_store import AccelVectorStore as AccelVectorStore

_HOMES = {
    "AccelEmbedding": "embedding",
    "AccelLLM": "llm",
    "AccelRerank": "rerank",
    "AccelVectorStore": "vector_store",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
