"""Accel for LangGraph and LangChain: the adapter, and the drop-in component classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chat_model import AccelChatModel as AccelChatModel
    from .embeddings import AccelEmbeddings as AccelEmbeddings
    from .reranker import AccelReranker as AccelReranker
    from .vector_store import AccelVectorStore as AccelVectorStore

_HOMES = {
    "AccelChatModel": "chat_model",
    "AccelEmbeddings": "embeddings",
    "AccelReranker": "reranker",
    "AccelVectorStore": "vector_store",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
