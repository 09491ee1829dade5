"""Texts in and out of the applications: pieces of documents, lines of answers, drawing inputs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import chain, islice, zip_longest
from typing import TypeVar

from langchain_core.documents import Document

from corpus.papers.data import DataSets
from corpus.papers.parts import Sizes

T = TypeVar("T")


def chunk(text: str, words: int, overlap: int) -> list[str]:
    """Pieces of so many words; each begins with the last `overlap` words of the one before."""
    if not 0 <= overlap < words:
        raise ValueError(f"Chunks of {words} words can't overlap by {overlap}: give an overlap from 0 to {words - 1}.")
    found = text.split()
    if not found:
        return []
    starts = range(0, max(len(found) - overlap, 1), words - overlap)
    return [" ".join(found[start : start + words]) for start in starts]


def passages(data_sets: DataSets, sizes: Sizes) -> tuple[str, ...]:
    """The articles' paragraphs, the long ones in equal parts; every article's beginning before any article's end."""
    articles = [
        [piece for paragraph in article.paragraphs for piece in _equal_parts(paragraph.text, sizes.chunk_words)]
        for article in data_sets.articles
    ]
    in_turn = chain.from_iterable(zip_longest(*articles))
    return tuple(islice((piece for piece in in_turn if piece is not None), sizes.passages))


def _equal_parts(text: str, most_words: int) -> list[str]:
    words = text.split()
    parts = -(-len(words) // most_words)
    bounds = [len(words) * i // parts for i in range(parts + 1)] if parts else []
    return [" ".join(words[start:end]) for start, end in zip(bounds, bounds[1:], strict=False)]


def lines(text: str, most: int) -> list[str]:
    """The first lines of an answer that has one item per line."""
    return [line.strip() for line in text.splitlines() if line.strip()][:most]


def about_words(tokens: int) -> int:
    """A length to ask for, so that an answer ends before it is cut off after so many tokens."""
    return max(10, int(tokens * 0.6) // 10 * 10)


def unique(documents: Iterable[Document]) -> list[Document]:
    """The first of each content."""
    found: dict[str, Document] = {}
    for document in documents:
        found.setdefault(document.page_content, document)
    return list(found.values())


def draw(pool: Sequence[T], count: int, seed: int) -> list[T]:
    """So many different ones, the same for the same seed."""
    if count > len(pool):
        raise ValueError(f"{count} different inputs were asked for; the data sets have {len(pool)}.")
    return random.Random(seed).sample(pool, count)
