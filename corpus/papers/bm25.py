"""Keyword search: a retriever that ranks texts by BM25."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from heapq import nlargest
from math import log
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

K1, B = 1.2, 0.75


class BM25Retriever(BaseRetriever):
    """The index is made once; searching only reads it, from any thread."""

    texts: tuple[str, ...]
    k: int = 4
    _weights: dict[str, list[tuple[int, float]]] = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._weights = _weights(self.texts)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return self._best(query)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self._best(query)

    def _best(self, query: str) -> list[Document]:
        scores: dict[int, float] = defaultdict(float)
        for word in _words(query):
            for number, weight in self._weights.get(word, []):
                scores[number] += weight
        best = nlargest(self.k, scores, key=lambda number: (scores[number], -number))
        return [Document(id=str(number), page_content=self.texts[number]) for number in best]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _weights(texts: Sequence[str]) -> dict[str, list[tuple[int, float]]]:
    """Per word, the texts it is in and what it adds to their scores."""
    counts = [Counter(_words(text)) for text in texts]
    mean_length = sum(count.total() for count in counts) / max(len(counts), 1)
    holders: dict[str, list[int]] = defaultdict(list)
    for number, count in enumerate(counts):
        for word in count:
            holders[word].append(number)
    weights: dict[str, list[tuple[int, float]]] = {}
    for word, numbers in holders.items():
        rarity = log(1 + (len(texts) - len(numbers) + 0.5) / (len(numbers) + 0.5))
        weights[word] = []
        for number in numbers:
            often, length = counts[number][word], counts[number].total() / mean_length
            weights[word].append((number, rarity * often * (K1 + 1) / (often + K1 * (1 - B + B * length))))
    return weights
