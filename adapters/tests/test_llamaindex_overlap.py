"""What of LlamaIndex's programs runs beside what: told by the order in which models and embeddings are asked, of which
one waits for the other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.extractors import KeywordExtractor
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms.callbacks import llm_completion_callback

import accel

from . import llamaindex_programs
from .llamaindex_clerk import Clerk, told
from .llamaindex_engines import sub_questions
from .llamaindex_given import fresh
from .llamaindex_kinds import documents, splitter
from .llamaindex_programs import QUESTIONS, Scribe

WAIT_S = 10


def taught(fast: Any, ask: Callable[[Any, str], Any]) -> None:
    for question in QUESTIONS[:3]:
        ask(fast, question)
        assert accel.settle()


# --- sub-questions


@pytest.fixture
def hesitant(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """A model that, once it has written the first item of a list, waits until that is embedded: whether it was."""
    embedded, came = threading.Event(), []
    parts, pairs = Scribe._parts, llamaindex_programs._pairs

    def hesitates(self: Scribe, prompt: str) -> Any:
        for part in parts(self, prompt):
            yield part
            if part.text.count('"sub_question"') == 2 and QUESTIONS[3] in prompt and not came:
                came.append(embedded.wait(WAIT_S))

    def noticed(text: str) -> list[float]:
        if text.startswith(f"Beginning of: {QUESTIONS[3]}"):
            embedded.set()
        return pairs(text)

    monkeypatch.setattr(Scribe, "_parts", hesitates)
    monkeypatch.setattr(llamaindex_programs, "_pairs", noticed)
    yield came


def test_a_sub_question_begins_while_the_next_one_is_written(hesitant: list[bool]) -> None:
    plain, fast = sub_questions(), accel.accelerate(sub_questions())
    taught(fast, lambda engine, question: engine.query(question))
    assert str(fast.query(QUESTIONS[3])) == str(plain.query(QUESTIONS[3]))
    assert hesitant == [True]


async def test_a_sub_question_begins_on_a_loop_while_the_next_one_is_written(hesitant: list[bool]) -> None:
    fast = accel.accelerate(sub_questions())
    for question in QUESTIONS[:3]:
        await fast.aquery(question)
        assert await asyncio.to_thread(accel.settle)
    await fast.aquery(QUESTIONS[3])
    assert hesitant == [True]


# --- extractors


class Meeting:
    """Of the first two calls, neither of which is answered before both are asked."""

    def __init__(self) -> None:
        self.came: list[asyncio.Event] = []

    async def join(self) -> None:
        if len(self.came) < 2:
            here = asyncio.Event()
            self.came.append(here)
            if len(self.came) == 2:
                for each in self.came:
                    each.set()
            await asyncio.wait_for(here.wait(), WAIT_S)


class Together(Clerk):
    meeting: ClassVar[Meeting | None] = None

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        if self.meeting is not None:
            await self.meeting.join()
        return CompletionResponse(text=self._answer(prompt))


accel.register(Together, local=True, concurrency=16, streams_equal=True, twins=True)


def one_by_one(model: Together) -> KeywordExtractor:
    return KeywordExtractor(llm=model, num_workers=1, show_progress=False)


def in_a_pipeline(model: Together) -> IngestionPipeline:
    return IngestionPipeline(transformations=[splitter(), one_by_one(model)], disable_cache=True)


async def of_pipeline(pipeline: Any, question: str) -> str:
    return told(await pipeline.arun(documents=documents(question)))


async def by_itself(extractor: Any, question: str) -> str:
    return told(await extractor.acall(fresh(question)))


@pytest.mark.parametrize(("make", "ask"), [(one_by_one, by_itself), (in_a_pipeline, of_pipeline)])
async def test_an_extractor_asks_for_several_nodes_at_the_same_time(
    make: Any, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which has one worker, and by itself asks for one after the other."""
    plain, fast = make(Together()), accel.accelerate(make(Together()))
    for question in QUESTIONS[:3]:
        await ask(fast, question)
        assert await asyncio.to_thread(accel.settle)
    expected = await ask(plain, QUESTIONS[3])
    monkeypatch.setattr(Together, "meeting", meeting := Meeting())
    assert await ask(fast, QUESTIONS[3]) == expected
    assert len(meeting.came) == 2
