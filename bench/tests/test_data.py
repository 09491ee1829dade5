from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from langchain_core.documents import Document

from corpus.papers import SMALL
from corpus.papers.bm25 import BM25Retriever
from corpus.papers.data import FOLDER_VARIABLE, GSM8K, MT_BENCH, SOURCES, SQUAD, TRUTHFUL_QA, Article, load, sample
from corpus.papers.text import about_words, chunk, lines, passages, unique


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    asked = [
        {"question": " Who built it? ", "is_impossible": False},
        {"question": "Who built it?", "is_impossible": False},
        {"question": "Who sank it?", "is_impossible": True},
    ]
    squad = {"data": [{"title": "Tower", "paragraphs": [{"context": "Ada built it.", "qas": asked}]}]}
    (tmp_path / SQUAD).write_text(json.dumps(squad))
    (tmp_path / TRUTHFUL_QA).write_text("Type,Question\nA,Do whales sing?\n")
    (tmp_path / GSM8K).write_text('{"question": "1 + 1?", "answer": "2"}\n\n')
    (tmp_path / MT_BENCH).write_text('{"turns": ["Hello.", "Shorter."]}\n')
    return tmp_path


def test_loads_from_the_folder_that_the_environment_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    data_sets = load()
    assert [(article.title, article.paragraphs[0].text) for article in data_sets.articles] == [
        ("Tower", "Ada built it.")
    ]
    assert data_sets.questions == ("Who built it?",)
    assert data_sets.truthful == ("Do whales sing?",)
    assert data_sets.maths == ("1 + 1?",)
    assert data_sets.chats == (("Hello.", "Shorter."),)


def test_says_which_data_sets_it_needs_and_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    with pytest.raises(ValueError, match=FOLDER_VARIABLE) as raised:
        load()
    assert all(name in str(raised.value) and source in str(raised.value) for name, source in SOURCES.items())


def test_names_the_missing_ones_only(folder: Path) -> None:
    (folder / GSM8K).unlink()
    with pytest.raises(ValueError, match="grade-school-math") as raised:
        load(folder)
    assert SQUAD not in str(raised.value)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("content", ["", '{"a": 1}\n'])
def test_names_a_file_that_is_something_else(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content)
    with pytest.raises(ValueError, match=name):
        load(folder)


def test_the_sample_is_two_articles_of_six_paragraphs() -> None:
    data_sets = sample()
    assert [len(article.paragraphs) for article in data_sets.articles] == [6, 6]
    assert len(data_sets.maths) == len(data_sets.chats) == 3
    assert len(set(data_sets.questions)) == len(data_sets.questions) >= 12


def test_chunks_overlap_and_cover_the_text() -> None:
    assert chunk("a b c d e f g", 4, 1) == ["a b c d", "d e f g"]
    assert chunk("a b c d e", 4, 1) == ["a b c d", "d e"]
    assert chunk("a b", 4, 1) == ["a b"]
    assert chunk("a b c d", 2, 0) == ["a b", "c d"]
    assert chunk(" ", 4, 1) == []
    with pytest.raises(ValueError, match="overlap"):
        chunk("a b", 4, 4)


def test_passages_take_articles_in_turn_and_halve_long_paragraphs() -> None:
    data_sets = sample()
    first, second = data_sets.articles
    uneven = replace(data_sets, articles=(first, Article(second.title, second.paragraphs[:2])))
    found = passages(uneven, replace(SMALL, chunk_words=40, passages=1000))
    assert sorted(" ".join(found).split()) == sorted(
        word for article in uneven.articles for paragraph in article.paragraphs for word in paragraph.text.split()
    )
    assert found[0] == " ".join(first.paragraphs[0].text.split()[:30])
    assert second.paragraphs[0].text.startswith(found[1])
    assert max(len(passage.split()) for passage in found) <= 40
    assert passages(uneven, replace(SMALL, chunk_words=40, passages=5)) == found[:5]


def test_lines_and_lengths() -> None:
    assert lines("\n one \n\n two\nthree", 2) == ["one", "two"]
    assert lines(" \n", 2) == []
    assert (about_words(150), about_words(4)) == (90, 10)


def test_unique_keeps_the_first_of_each_content() -> None:
    documents = [Document(id=name, page_content=text) for name, text in [("1", "a"), ("2", "b"), ("3", "a")]]
    assert [document.id for document in unique(documents)] == ["1", "2"]


async def test_keyword_search_is_the_same_in_both_colours() -> None:
    texts = passages(sample(), replace(SMALL, chunk_words=100))
    searcher = BM25Retriever(texts=texts, k=3)
    before = SimpleNamespace(**vars(searcher))
    found = searcher.invoke("How many arches has the viaduct at Hollen?")
    assert "seven arches" in found[0].page_content and len(found) == 3
    assert await searcher.ainvoke("How many arches has the viaduct at Hollen?") == found
    assert searcher.invoke("zyx") == []
    assert SimpleNamespace(**vars(searcher)) == before
