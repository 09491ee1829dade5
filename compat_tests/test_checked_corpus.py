"""`accel check` on programs of the corpus, live and from a cassette: no difference is seen where there is none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.vectorstores import InMemoryVectorStore

import accel
from corpus import programs
from corpus.components import Model, Vectors

PROGRAMS = ("graded_rag", "chat_turns", "map_reduce_summary", "document_pipeline", "react_loop", "field_notes")
ARE_EARLY = ("map_reduce_summary", "document_pipeline")
VARY = ("field_notes",)
"""Puts what it has found into its store, and finds more with each run."""


def built(name: str) -> tuple[Any, Any]:
    (program,) = programs([name])
    embeddings = Vectors(scale=0.1)
    store = InMemoryVectorStore(embeddings)
    if program.documents:
        store.add_texts(list(program.documents))
    return program, program.build(SimpleNamespace(llm=Model(scale=0.02), embeddings=embeddings, store=store))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_corpus_is_equal(name: str, tmp_path: Path) -> None:
    program, graph = built(name)
    inputs = list(program.inputs[:2])
    for tape in (None, tmp_path / "answers.jsonl", tmp_path / "answers.jsonl"):
        result = accel.check(graph, inputs, rounds=3, cassette=tape, awaited=program.awaited or None)
        assert result or (name in VARY and result.verdict == "varying"), str(result)
    assert result.cassette is not None and result.cassette.recorded == 0
    if name in ARE_EARLY:
        assert result.counts["retired"] > 0
