"""The benchmark's applications: ordinary LangGraph programs, each written twice.

`build` is the program as one writes it first, a call after the other. `build_by_hand` is the same program with the
concurrency that LangGraph's own means give; with deterministic components it ends in the same state.
"""

from __future__ import annotations

from bench.apps import advanced_rag, chat, crag, factool, naive_rag, reflect
from bench.apps.parts import SMALL, App, Parts, Sizes

APPS: dict[str, App] = {
    "naive_rag": naive_rag,
    "advanced_rag": advanced_rag,
    "factool": factool,
    "crag": crag,
    "reflect": reflect,
    "chat": chat,
}

__all__ = ["APPS", "SMALL", "App", "Parts", "Sizes"]
