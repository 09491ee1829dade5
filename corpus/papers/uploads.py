"""What the document question answering programs share: a question that comes with its document, and its index."""

from __future__ import annotations

from typing import Any

from corpus.papers.data import DataSets
from corpus.papers.parts import Node, Parts
from corpus.papers.text import chunk, draw

LEAD_PARAGRAPHS = 2


def index_node(parts: Parts) -> Node:
    """Chunks the document and puts it into the store, under the request's id."""
    store, sizes = parts.store, parts.sizes

    async def index(state: Any) -> dict[str, Any]:
        chunks = chunk(state["document"], sizes.chunk_words, sizes.overlap_words)[: sizes.chunks]
        # With ids of its own a document uploaded again replaces itself, and isn't found twice.
        ids = [f"{state['id']}/{position}" for position in range(len(chunks))]
        metadatas = [{"doc": state["id"]} for _ in chunks]
        return {"chunk_ids": await store.aadd_texts(chunks, metadatas=metadatas, ids=ids)}

    return index


def document_inputs(data_sets: DataSets, count: int, seed: int, app: str) -> list[dict[str, Any]]:
    """Questions about articles. A document begins a little before the paragraph the question is about and goes on from
    the article's beginning: where the program cuts it off, the answer stays in."""
    pool = [
        (article, place, question)
        for article in data_sets.articles
        for place, paragraph in enumerate(article.paragraphs)
        for question in paragraph.questions
    ]
    found = []
    for number, (article, place, question) in enumerate(draw(pool, count, seed)):
        texts = [paragraph.text for paragraph in article.paragraphs]
        start = max(0, place - LEAD_PARAGRAPHS)
        document = "\n\n".join(texts[start:] + texts[:start])
        found.append({"id": f"{app}-{seed}-{number}", "document": document, "question": question})
    return found
