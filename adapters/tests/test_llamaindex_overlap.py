"""What of LlamaIndex's programs runs beside what: told by the order in which models and embeddings are asked, of which
one waits for the other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.extractors import KeywordExtractor
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TransformComponent

import accel

from . import llamaindex_programs
from .catching_up import catch_up
from .llamaindex_clerk import NODES, Clerk, told
from .llamaindex_engines import sub_questions
from .llamaindex_given import fresh
from .llamaindex_kinds import documents, splitter
from .llamaindex_programs import QUESTIONS, BatchedLetters, Scribe
from .llamaindex_programs import Letters as SingleLetters

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


meetings: dict[str, Meeting] = {}
"""Kept by no model, nor in a variable's place: one that holds or reads another is another model."""


class Together(Clerk):
    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        for meeting in meetings.values():
            await meeting.join()
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
    meeting = Meeting()
    monkeypatch.setitem(meetings, "now", meeting)
    assert await ask(fast, QUESTIONS[3]) == expected
    assert len(meeting.came) == 2


# --- splitting and embedding


class Splits:
    """Splits into words, as a splitter counts tokens; before the last document it waits until something is embedded."""

    def __init__(self, embedded: threading.Event) -> None:
        self.embedded, self.came = embedded, list[bool]()

    def __call__(self, text: str) -> list[str]:
        if "About the last" in text and not self.came:
            self.came.append(self.embedded.wait(WAIT_S))
        return text.split()


def many(splits: Any, model: BaseEmbedding, *others: Any) -> IngestionPipeline:
    parser = SentenceSplitter(chunk_size=60, chunk_overlap=0, tokenizer=splits, id_func=lambda n, doc: f"{doc.id_}-{n}")
    return IngestionPipeline(transformations=[parser, *others, model], disable_cache=True)


def library() -> list[Document]:
    found = [Document(text=node.text, id_=node.id_, metadata={"shelf": node.node_id[0]}) for node in NODES]
    found[3].excluded_embed_metadata_keys = ["shelf"]
    found[4].text_template = "{metadata_str} says: {content}"
    return [*found, Document(text="About the last there is little to say.", id_="last")]


@pytest.mark.parametrize("kind", [SingleLetters, BatchedLetters], ids=["single texts", "batches"])
def test_what_is_split_is_embedded_while_the_rest_is_split(
    kind: type[SingleLetters], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = many(str.split, kind(embed_batch_size=3)).run(documents=library())
    embedded, pairs = threading.Event(), llamaindex_programs._pairs

    def noticed(text: str) -> list[float]:
        embedded.set()
        return pairs(text)

    monkeypatch.setattr(llamaindex_programs, "_pairs", noticed)
    splits = Splits(embedded)
    fast = accel.accelerate(many(splits, kind(embed_batch_size=3)))
    assert [node.model_dump() for node in fast.run(documents=library())] == [node.model_dump() for node in expected]
    assert splits.came == [True]
    assert fast.report().retired > 0 and fast.report().wasted == 0


class Remote(BatchedLetters):
    pass


accel.register(Remote, pure=True, local=False, concurrency=16)


class Marks(TransformComponent):
    """Of the program's: what will be embedded, it alone knows."""

    def __call__(self, nodes: Any, **kwargs: Any) -> Any:
        return [node.model_copy(update={"text": f"Marked: {node.text}"}) for node in nodes]


class Own(SentenceSplitter):
    def split_text_metadata_aware(self, text: str, metadata_str: str) -> list[str]:
        return [f"Marked: {part}" for part in super().split_text_metadata_aware(text, metadata_str)]


def of_own(splits: Any, model: BaseEmbedding) -> IngestionPipeline:
    return IngestionPipeline(transformations=[Own(chunk_size=60, chunk_overlap=0, tokenizer=splits), model])


@pytest.mark.parametrize(
    "make",
    [
        lambda splits: many(splits, Remote(embed_batch_size=3)),
        lambda splits: many(splits, BatchedLetters(embed_batch_size=3), Marks()),
        lambda splits: of_own(splits, BatchedLetters(embed_batch_size=3)),
    ],
    ids=["a remote model", "something comes between", "a splitter of the program's"],
)
def test_what_may_go_nowhere_yet_or_is_not_known_yet_is_not_embedded(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened, pairs = list[str](), llamaindex_programs._pairs

    def noticed(text: str) -> list[float]:
        happened.append("embedded")
        return pairs(text)

    def splits(text: str) -> list[str]:
        if "About the last" in text:
            catch_up()
            happened.append("split")
        return text.split()

    expected = [node.embedding for node in make(str.split).run(documents=library())]
    monkeypatch.setattr(llamaindex_programs, "_pairs", noticed)
    fast = accel.accelerate(make(splits))
    assert [node.embedding for node in fast.run(documents=library())] == expected
    assert happened[0] == "split" and "embedded" in happened
    assert fast.report().wasted == 0


def test_past_a_splitter_that_has_failed_nothing_is_embedded() -> None:
    """Documents that it refuses are not embedded by the program."""
    model = BatchedLetters(embed_batch_size=3)
    parser = SentenceSplitter(chunk_size=60, chunk_overlap=0, tokenizer=str.split)
    fast = accel.accelerate(IngestionPipeline(transformations=[parser, model], disable_cache=True))
    long = Document(text="Too much is said of it.", metadata={"notes": "word " * 80}, id_="too long")
    with pytest.raises(ValueError, match="longer than chunk size"):
        fast.run(documents=[long])
    before = fast._accel.plan.total.issued
    with pytest.raises(ValueError, match="longer than chunk size"):
        fast.run(documents=[*library(), long])
    assert fast._accel.plan.total.issued == before == 0
