"""`accel.check` on LlamaIndex's kinds of objects, live and from a cassette."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import accel
from accel.commands.programs import program_of
from accel.errors import ConfigurationError
from adapters.tests.llamaindex_clerk import Clerk, index
from adapters.tests.llamaindex_kinds import KINDS
from adapters.tests.llamaindex_programs import QUESTIONS, TOPICS

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of LlamaIndex's own calls
    pytest.mark.usefixtures("loop_at_hand"),
]

ENGINES = ("sub-questions", "router, several", "hyde", "recursive", "reranked in batches")
CHATS = ("simple chat", "context chat", "condense chat")


@pytest.mark.parametrize("kind", [*ENGINES, *CHATS])
def test_engines_take_text_and_are_equal_live_and_replayed(kind: str, tmp_path: Path) -> None:
    made = KINDS[kind].make()
    tape = tmp_path / "answers.jsonl"
    live = accel.check(made, QUESTIONS[:3], rounds=2)
    assert live, str(live)
    for recorded in (True, False):
        result = accel.check(made, QUESTIONS[:3], rounds=2, cassette=tape)
        assert result, str(result)
        assert result.cassette is not None
        assert (result.cassette.recorded > 0) is recorded and not result.cassette.kept


@pytest.mark.parametrize("awaited", [False, True])
def test_early_calls_are_compared_where_an_engine_has_some(awaited: bool) -> None:
    result = accel.check(KINDS["hyde"].make(), QUESTIONS[:3], awaited=awaited)
    assert result, str(result)
    assert result.counts["retired"] > 0


def test_a_chat_is_streamed_in_turns() -> None:
    result = accel.check(KINDS["simple chat"].make(), QUESTIONS[:2], rounds=2)
    assert result.ways == ("chat", "stream") and result, str(result)


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("workflow", [{"question": question} for question in QUESTIONS[:3]]),
        ("agent", QUESTIONS[:2]),
        ("accumulate", [{"query": QUESTIONS[0], "nodes": ["A glacier.", "Ice."]}, {"query": "Why?", "nodes": ["Sea"]}]),
        ("reranking", [{"query_str": topic, "nodes": [f"{topic}.", "The sea.", "Ice."]} for topic in TOPICS[:3]]),
        ("keywords", [[f"All about {topic}.", "It is cold."] for topic in TOPICS[:3]]),
        ("splitting by meaning", [[f"All about {topic}. It is cold. It is old."] for topic in TOPICS[:2]]),
        ("evaluator of a retriever", [{"query": question, "expected_ids": ["x"]} for question in QUESTIONS[:2]]),
        ("extractors", [[f"All about {topic}. It is cold."] for topic in TOPICS[:2]]),
        ("evaluator", [{"query": "What?", "response": f"{topic}.", "contexts": [topic]} for topic in TOPICS[:2]]),
    ],
)
def test_others_take_what_they_take(kind: str, inputs: list[Any], tmp_path: Path) -> None:
    with program_of(KINDS[kind].make()) as program:
        given = [program.kind.given(program.obj, value) for value in inputs]
        result = accel.check(program.obj, given, rounds=2, cassette=tmp_path / "answers.jsonl")
    assert result, str(result)


def test_an_engine_is_not_asked_what_is_no_text() -> None:
    with program_of(KINDS["hyde"].make()) as program, pytest.raises(ValueError, match="takes text"):
        program.kind.given(program.obj, {"query": 3})


def test_an_index_says_what_to_name_instead() -> None:
    with pytest.raises(ConfigurationError, match="as_query_engine"):
        accel.check(index(), QUESTIONS)
    engine = partial(index().as_query_engine, llm=Clerk())
    with pytest.raises(ConfigurationError, match="no inputs"):
        accel.check(engine, [])
