"""Embeddings are shared inside a run: everybody gets one of the kind that the component gives, and one of his own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langgraph.graph import START, StateGraph
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.query_engine import CustomQueryEngine

import accel
from accel import accelerate

from .core_fakes import State


class Row(list[float]):
    """A class of the program's."""


KINDS: dict[str, Callable[[list[float]], Any]] = {"array": np.array, "tuple": tuple, "list": list, "row": Row}


def numbers(text: str) -> list[float]:
    return [float(ord(letter)) for letter in text[-3:]]


class Letters(Embeddings):
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def embed_query(self, text: str) -> Any:
        return KINDS[self.kind](numbers(text))

    def embed_documents(self, texts: list[str]) -> Any:
        return [self.embed_query(text) for text in texts]


class LlamaLetters(BaseEmbedding):
    kind: str

    def _get_query_embedding(self, query: str) -> Any:
        return KINDS[self.kind](numbers(query))

    async def _aget_query_embedding(self, query: str) -> Any:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> Any:
        return self._get_query_embedding(text)


for declared in (Letters, LlamaLetters):
    accel.register(declared, pure=True, local=True, concurrency=4)


def used(vector: Any) -> tuple[str, float]:
    """What it is and holds, before it is changed in place."""
    told = type(vector).__name__, float(sum(vector))
    if not isinstance(vector, tuple):
        vector[0] = -1.0
    return told


def wanted(kind: str, text: str) -> tuple[str, float]:
    return type(KINDS[kind]([])).__name__, sum(numbers(text))


@pytest.mark.parametrize("kind", KINDS)
def test_a_vector_is_of_its_own_kind_and_its_owners_alone(kind: str) -> None:
    letters = Letters(kind)

    def work(state: State) -> State:
        alone = [used(letters.embed_query(text)) for text in "aba"]
        together = [used(vector) for _ in range(2) for vector in letters.embed_documents(["a", "b"])]
        return {"a": [*alone, *together]}

    fast = accelerate(StateGraph(State).add_node("work", work).add_edge(START, "work").compile())
    for _ in range(3):
        assert fast.invoke({"q": "t"})["a"] == [wanted(kind, text) for text in "abaabab"]
        assert accel.settle(10)


class Sums(CustomQueryEngine):
    letters: Any

    def custom_query(self, query_str: str) -> str:
        return str([used(self.letters.get_query_embedding(query_str + text)) for text in "aba"])


@pytest.mark.parametrize("kind", KINDS)
def test_so_it_is_with_those_of_llamaindex(kind: str) -> None:
    fast = accelerate(Sums(letters=LlamaLetters(kind=kind, model_name=kind)))
    for _ in range(3):
        assert str(fast.query("of ")) == str([wanted(kind, f"of {text}") for text in "aba"])
        assert accel.settle(10)
