"""Inputs of the programs that read a document: documents, alone or with several questions each."""

from __future__ import annotations

import random
from itertools import islice

from corpus.papers.data import Article, DataSets, Paragraph
from corpus.papers.text import chunk, draw

PARAGRAPHS = 5
"""Of an article, for one document: some 600 words."""
QUESTIONS = 4
"""About each document, at most."""


def documents(data_sets: DataSets, count: int, seed: int) -> list[str]:
    """Different ones, in any order; they overlap where the articles are too few."""
    stretches = [_stretch(article, start) for article in data_sets.articles for start in range(len(article.paragraphs))]
    return ["\n\n".join(paragraph.text for paragraph in stretch) for stretch in draw(stretches, count, seed)]


def asked(data_sets: DataSets, count: int, seed: int) -> list[dict[str, str]]:
    """Documents, each with several of its questions. They come in any order, as questions of many people do."""
    starts = [
        (article, start)
        for article in data_sets.articles
        for start in range(0, len(article.paragraphs), PARAGRAPHS)
    ]  # fmt: skip
    dice = random.Random(seed)
    pairs = []
    for article, start in dice.sample(starts, len(starts)):
        stretch = _stretch(article, start)
        text = "\n\n".join(paragraph.text for paragraph in stretch)
        questions = [question for paragraph in stretch for question in paragraph.questions]
        chosen = dice.sample(questions, min(QUESTIONS, len(questions)))
        pairs += [{"document": text, "question": question} for question in chosen]
    if count > len(pairs):
        raise ValueError(f"{count} different inputs were asked for; the data sets have {len(pairs)}.")
    found = list(islice(pairs, count))
    dice.shuffle(found)
    return found


def pieces(document: str, count: int) -> list[str]:
    """About equal parts."""
    words = max(1, -(-len(document.split()) // count))
    return chunk(document, words, 0)[:count]


def _stretch(article: Article, start: int) -> tuple[Paragraph, ...]:
    """From there on, and from the article's beginning where it ends."""
    return (article.paragraphs[start:] + article.paragraphs[:start])[:PARAGRAPHS]
