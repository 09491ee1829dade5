"""Six programs that papers have measured, each written twice, on public data sets (`data`).

`build` is the program as one writes it first, a call after the other. `build_by_hand` is the same program with the
concurrency that LangGraph's own means give; with deterministic components it ends in the same state.
"""

from __future__ import annotations

from corpus.papers import advanced_rag, chat, crag, factool, naive_rag, reflect
from corpus.papers.parts import SMALL, App, Parts, Sizes

APPS: dict[str, App] = {
    "naive_rag": naive_rag,
    "advanced_rag": advanced_rag,
    "factool": factool,
    "crag": crag,
    "reflect": reflect,
    "chat": chat,
}

__all__ = ["APPS", "SMALL", "App", "Parts", "Sizes"]
