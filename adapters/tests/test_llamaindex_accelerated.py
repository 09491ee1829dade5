"""LlamaIndex programs, unmodified and accelerated: responses, sources, events, spans and token counts are the same."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.embedding import EmbeddingStartEvent
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.schema import Node, QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import FunctionTool
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index_instrumentation.dispatcher import Dispatcher

import accel
from accel.errors import ConfigurationError, WrongObject
from accel.parts.components import tells_within
from accel.parts.methods.patches import is_installed
from accel.run.gains.pace import load

from . import llamaindex_programs
from .catching_up import catch_up
from .llamaindex_programs import EVENTS, QUESTIONS, BatchedLetters, Letters, Program, Scribe, Told

MODES = ("compact", "refine", "tree_summarize", "accumulate", "compact_accumulate", "simple_summarize")


def in_any_order(told: Told) -> tuple[Any, ...]:
    """Programs that gather tell about concurrent calls in any order."""
    return (
        told.answer, told.sources, told.metadata, told.kind, told.tokens, sorted(told.spans), sorted(told.events),
    )  # fmt: skip


STREAMING = ("compact", "refine", "tree_summarize", "simple_summarize")


@pytest.mark.parametrize("fusion", [0, 2], ids=["plain", "fusion"])
@pytest.mark.parametrize(
    ("mode", "streaming"),
    [*((mode, False) for mode in MODES), *((mode, True) for mode in STREAMING)],
    ids=lambda value: value if isinstance(value, str) else "streaming" if value else "whole",
)
def test_sync_programs(mode: str, fusion: int, streaming: bool) -> None:
    program = Program(mode, fusion=fusion, streaming=streaming)
    fast = accel.accelerate(program.engine)
    for question in QUESTIONS[:4]:
        assert program.ask(fast, question) == program.ask(program.engine, question)
        assert accel.settle()
    retired = fast.report().retired
    if fusion or mode in ("accumulate", "tree_summarize"):
        assert retired > 0, fast.explain()


@pytest.mark.parametrize("fusion", [0, 2], ids=["plain", "fusion"])
@pytest.mark.parametrize("mode", MODES)
async def test_async_programs(mode: str, fusion: int) -> None:
    program = Program(mode, fusion=fusion)
    fast = accel.accelerate(program.engine)
    for question in QUESTIONS[:4]:
        plain, quick = await program.aask(program.engine, question), await program.aask(fast, question)
        assert in_any_order(quick) == in_any_order(plain)
        assert await asyncio.to_thread(accel.settle)
    assert fast.report().demanded > 0


@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize"])
async def test_async_streaming(mode: str) -> None:
    program = Program(mode, streaming=True)
    fast = accel.accelerate(program.engine)
    for question in QUESTIONS[:3]:
        plain, quick = await program.aask(program.engine, question), await program.aask(fast, question)
        assert in_any_order(quick) == in_any_order(plain)
        assert await asyncio.to_thread(accel.settle)


@pytest.mark.parametrize("mode", ["compact", "tree_summarize", "accumulate"])
def test_loops_and_threads_of_its_own(mode: str) -> None:
    program = Program(mode, fusion=2, use_async=True)
    fast = accel.accelerate(program.engine)
    for question in QUESTIONS[:4]:
        assert in_any_order(program.ask(fast, question)) == in_any_order(program.ask(program.engine, question))
        assert accel.settle()
    assert fast.report().demanded > 0


async def test_a_plain_call_on_a_running_loop() -> None:
    program = Program("accumulate", fusion=2, use_async=True)
    fast = accel.accelerate(program.engine)
    for question in QUESTIONS[:3]:
        assert in_any_order(program.ask(fast, question)) == in_any_order(program.ask(program.engine, question))
        assert await asyncio.to_thread(accel.settle)
    assert fast.report().demanded > 0


def test_an_answer_that_is_refined_is_one_node_whatever_the_number_of_passages(tmp_path: Path) -> None:
    sizes = set()
    for passages in (3, 6):
        program = Program("refine")
        engine = program.index.as_query_engine(
            llm=program.llm, response_mode="refine", similarity_top_k=passages
        )  # fmt: skip
        fast = accel.accelerate(engine)
        for question in QUESTIONS[:3]:
            assert str(fast.query(question)) == str(engine.query(question))
            assert accel.settle()
        path = tmp_path / f"{passages}.json"
        fast.save_plan(str(path))
        sizes.add(sum(node["op"] in ("decode", "relay") for node in json.loads(path.read_text())["nodes"]))
    assert sizes == {3}


class Delegating(Letters):
    """Its coroutine calls its method, which has a span of its own."""

    def _get_query_embedding(self, query: str) -> list[float]:
        catch_up()
        return llamaindex_programs._pairs(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class Chatty(Delegating):
    """Tells listeners of its work from within."""

    def _get_query_embedding(self, query: str) -> list[float]:
        get_dispatcher().event(EmbeddingStartEvent(model_dict={"chatty": query}))
        with self.callback_manager.event(CBEventType.EMBEDDING, payload={EventPayload.SERIALIZED: {}}) as event:
            vector = super()._get_query_embedding(query)
            event.on_end(payload={EventPayload.CHUNKS: [query], EventPayload.EMBEDDINGS: [vector]})
        return vector


for _class in (Delegating, Chatty):
    accel.register(_class, pure=True, local=True, concurrency=16, elementwise=True)


@pytest.mark.parametrize("use_async", [False, True])
@pytest.mark.parametrize("embedding", [Delegating, Chatty])
async def test_what_a_component_tells_from_within(embedding: type[Letters], use_async: bool) -> None:
    program = Program("compact", fusion=2, embedding=embedding, use_async=use_async)
    fast = accel.accelerate(program.engine)
    for question in QUESTIONS[:5]:
        plain, quick = await program.aask(program.engine, question), await program.aask(fast, question)
        assert in_any_order(quick) == in_any_order(plain)
        assert await asyncio.to_thread(accel.settle)
        assert in_any_order(program.ask(fast, question)) == in_any_order(program.ask(program.engine, question))
        assert await asyncio.to_thread(accel.settle)
    told = [tells_within(program.embedding, name) for name in ("_get_query_embedding", "_aget_query_embedding")]
    assert any(told), "found out by one that was tried early, or by the program's own"


def test_the_object_is_a_copy_of_the_same_kind() -> None:
    program = Program("compact")
    before = dict(vars(program.engine))
    fast = accel.accelerate(program.engine)
    assert type(fast).__name__ == type(program.engine).__name__ and isinstance(fast, type(program.engine))
    assert fast.retriever is program.engine.retriever
    assert vars(program.engine) == before == vars(fast)
    assert accel.accelerate(fast) is fast


def test_a_fusion_retriever_alone() -> None:
    program = Program("compact", fusion=2)
    retriever = program.engine.retriever
    fast = accel.accelerate(retriever)
    for question in QUESTIONS[:4]:
        assert [node.model_dump() for node in fast.retrieve(question)] == [
            node.model_dump() for node in retriever.retrieve(question)
        ]
        assert accel.settle()
    assert fast.report().retired > 0


def test_queries_are_embedded_while_the_list_is_still_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where writing the list is the first thing a program does, before the issuer has begun with the run."""
    program = Program("compact", fusion=4)
    fast = accel.accelerate(program.engine.retriever)
    for question in QUESTIONS[:3]:
        fast.retrieve(question)
        assert accel.settle()
    first_embedded, came = threading.Event(), []
    parts, pairs = Scribe._parts, llamaindex_programs._pairs

    def hesitant(self: Scribe, prompt: str) -> Any:
        for part in parts(self, prompt):
            yield part
            if part.text.count("\n") == 1 and not came:
                came.append(first_embedded.wait(30))  # the second line has begun: the first is complete

    def noticed(text: str) -> list[float]:
        if text.endswith("north"):  # as the first line does
            first_embedded.set()
        return pairs(text)

    monkeypatch.setattr(Scribe, "_parts", hesitant)
    monkeypatch.setattr(llamaindex_programs, "_pairs", noticed)
    fast.retrieve(QUESTIONS[3])
    assert came == [True]


# --- ingestion


def documents() -> list[Document]:
    return [Document(text=node.text, id_=f"doc-{node.id_}") for node in Program("compact").nodes]


def stored(store: SimpleVectorStore) -> Any:
    return store.data.embedding_dict, store.data.text_id_to_ref_doc_id


@pytest.mark.parametrize("single", [False, True], ids=["batches", "single texts"])
async def test_an_ingestion_pipeline(single: bool) -> None:
    model = (Letters if single else BatchedLetters)(embed_batch_size=3)

    def pipeline() -> IngestionPipeline:
        splitter = SentenceSplitter(chunk_size=60, chunk_overlap=0, id_func=lambda n, doc: f"{doc.id_}-{n}")
        return IngestionPipeline(
            transformations=[splitter, model], vector_store=SimpleVectorStore(), disable_cache=True
        )

    plain, inner = pipeline(), pipeline()
    fast = accel.accelerate(inner)
    assert type(fast).__name__ == "IngestionPipeline" and fast.model_dump() == inner.model_dump()
    EVENTS.seen.clear()
    expected = [node.model_dump() for node in plain.run(documents=documents())]
    told = list(EVENTS.seen)
    EVENTS.seen.clear()
    assert [node.model_dump() for node in fast.run(documents=documents())] == expected
    assert told == EVENTS.seen
    assert stored(plain.vector_store) == stored(inner.vector_store)
    assert fast.report().retired > 0 and fast.report().wasted == 0
    assert [node.model_dump() for node in await fast.arun(documents=documents())] == expected


def test_building_an_index() -> None:
    Fast = accel.accelerate(VectorStoreIndex)
    assert Fast.__name__ == "VectorStoreIndex" and issubclass(Fast, VectorStoreIndex)
    model = BatchedLetters(embed_batch_size=3)
    nodes = Program("compact").nodes
    plain = VectorStoreIndex(nodes, embed_model=model, insert_batch_size=6)
    fast = Fast(nodes, embed_model=model, insert_batch_size=6)
    assert stored(fast.vector_store) == stored(plain.vector_store)
    assert fast.report().retired >= len(nodes) // 3 - 3 and fast.report().wasted == 0
    more = [TextNode(text=f"Something new on {topic}.", id_=f"new {topic}") for topic in QUESTIONS]
    plain.insert_nodes(more)
    fast.insert_nodes(more)
    assert stored(fast.vector_store) == stored(plain.vector_store)
    assert fast.report().wasted == 0


async def test_inserting_into_an_index() -> None:
    model = BatchedLetters(embed_batch_size=3)
    nodes = Program("compact").nodes
    plain = VectorStoreIndex([], embed_model=model, insert_batch_size=6)
    inner = VectorStoreIndex([], embed_model=model, insert_batch_size=6)
    fast = accel.accelerate(inner)
    await plain.ainsert_nodes(nodes)
    await fast.ainsert_nodes(nodes)
    assert stored(inner.vector_store) == stored(plain.vector_store)
    assert fast.report().retired > 0 and fast.report().wasted == 0


def test_remote_embeddings_are_told_nothing_early() -> None:
    class Remote(BatchedLetters):
        pass

    accel.register(Remote, pure=True, local=False, concurrency=16)
    fast = accel.accelerate(VectorStoreIndex)
    fast(Program("compact").nodes, embed_model=Remote(embed_batch_size=3))
    assert fast._accel.plan.total.issued == 0
    allowed = accel.accelerate(VectorStoreIndex, egress="inputs")
    allowed(Program("compact").nodes, embed_model=Remote(embed_batch_size=3))
    assert allowed._accel.plan.total.retired > 0


# --- failures


def test_a_failure_is_the_programs_own_and_nothing_is_issued_past_it() -> None:
    class Picky(Scribe):
        def _answer(self, prompt: str) -> str:
            if "volcanoes?" in prompt and "part 1" in prompt:
                raise ValueError("not about this")
            return super()._answer(prompt)

    accel.register(Picky, local=True, concurrency=16, streams_equal=True)
    program = Program("accumulate")
    program.engine._response_synthesizer._llm = Picky()
    fast = accel.accelerate(program.engine)
    for question in [QUESTIONS[0], QUESTIONS[2], QUESTIONS[3], QUESTIONS[1], QUESTIONS[4]]:
        told = []
        for engine in (program.engine, fast):
            try:
                told.append(program.ask(engine, question).answer)
            except ValueError as error:
                told.append(repr(error))
        assert told[0] == told[1]
        assert accel.settle()
    assert fast.report().retired > 0


def test_a_stream_that_is_thrown_away_ends_its_run() -> None:
    program = Program("compact", streaming=True)
    fast = accel.accelerate(program.engine)
    before = load.runs
    response = fast.query(QUESTIONS[0])
    assert load.runs == before + 1
    del response
    assert load.runs == before


def test_caches_and_rate_limiters_hold_early_calls() -> None:
    from llama_index.core.storage.kvstore import SimpleKVStore

    program = Program("compact", fusion=1)
    cached = Letters(embeddings_cache=SimpleKVStore())
    program.index._embed_model = cached
    for retriever in program.engine.retriever._retrievers:
        retriever._embed_model = cached
    fast = accel.accelerate(program.engine)
    for question in QUESTIONS[:4]:
        program.ask(fast, question)
        assert accel.settle()
    assert "a cache may answer it" in fast.explain() + str(fast.report())


async def test_warming_up() -> None:
    program = Program("compact", fusion=1)
    fast = accel.accelerate(program.engine)
    await fast.awarmup(QUESTIONS[:2])
    first = fast.report().demanded
    await asyncio.to_thread(fast.warmup, QUESTIONS[2:4])
    assert fast.report().demanded == 2 * first > 0
    assert any(node.evidence.confidence == "verified" for node in fast.plan.learnt.nodes)


def test_what_is_not_supported_is_refused_with_what_is() -> None:
    with pytest.raises(TypeError, match="query and chat engines, retrievers, synthesizers, postprocessors"):
        accel.accelerate(VectorStoreIndex.as_query_engine)
    with pytest.raises(ConfigurationError, match=r"accel\.pure"):
        accel.accelerate(Program("compact").engine, pure_nodes=["retriever"])


@pytest.mark.parametrize(
    ("part", "remedy"),
    [
        (Scribe(), "Accelerate what calls it, such as a query engine"),
        (Letters(), "Accelerate what calls it, such as a query engine"),
        (LLMSingleSelector.from_defaults(llm=Scribe()), "the router that chooses with it"),
        (LLMQuestionGenerator.from_defaults(llm=Scribe()), "such as SubQuestionQueryEngine"),
        (HyDEQueryTransform(llm=Scribe()), "such as TransformQueryEngine or TransformRetriever"),
        (FunctionTool.from_defaults(len), "the agent or engine that uses it"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_part_is_refused_with_what_to_accelerate_instead(part: Any, remedy: str) -> None:
    with pytest.raises(WrongObject, match=remedy):
        accel.accelerate(part)


def test_uninstall_restores_the_classes() -> None:
    from llama_index.core.base.base_retriever import BaseRetriever

    program = Program("accumulate")
    plain = program.ask(program.engine, QUESTIONS[0])
    fast = accel.accelerate(program.engine)
    watched = BaseRetriever.retrieve
    assert program.ask(fast, QUESTIONS[0]) == plain
    accel.uninstall()
    assert BaseRetriever.retrieve is not watched
    assert program.ask(fast, QUESTIONS[0]) == program.ask(program.engine, QUESTIONS[0]) == plain
    assert accel.settle()


def test_what_is_wrapped_keeps_its_shape_until_uninstall() -> None:
    wrapped: list[tuple[type, str]] = [
        (Dispatcher, "span_enter"), (Dispatcher, "event"), (Dispatcher, "aevent"), (CallbackManager, "start_trace"),
        (CallbackManager, "on_event_start"), (Node, "get_content"), (TextNode, "get_content"),
    ]  # fmt: skip
    accel.uninstall()
    plain = [vars(cls)[name] for cls, name in wrapped]
    accel.accelerate(Program("accumulate").engine)
    for (cls, name), before in zip(wrapped, plain, strict=True):
        now = getattr(cls, name)
        assert vars(cls)[name] is not before
        assert inspect.signature(now) == inspect.signature(before)
        assert (now.__name__, now.__qualname__, now.__doc__) == (name, before.__qualname__, before.__doc__)
        assert inspect.iscoroutinefunction(now) == inspect.iscoroutinefunction(before)
    accel.uninstall()
    assert [vars(cls)[name] for cls, name in wrapped] == plain


@pytest.mark.parametrize("name", ["query", "aquery", "retrieve", "synthesize"])
def test_methods_have_the_signatures_of_those_that_they_stand_for(name: str) -> None:
    """Tools are made of these (`FunctionTool.from_defaults`): models are told what they take."""
    engine = Program("accumulate").engine
    before, now = getattr(engine, name), getattr(accel.accelerate(engine), name)
    assert inspect.signature(now) == inspect.signature(before) and len(inspect.signature(now).parameters) > 0
    assert (now.__name__, now.__doc__, now.__annotations__) == (name, before.__doc__, before.__annotations__)
    assert inspect.iscoroutinefunction(now) == inspect.iscoroutinefunction(before)
    tools = [FunctionTool.from_defaults(method) for method in (before, now)]
    assert tools[0].metadata.get_parameters_dict() == tools[1].metadata.get_parameters_dict()
    assert tools[0].metadata.description == tools[1].metadata.description


def test_a_program_from_before_uninstall_is_followed_again_with_the_next_one() -> None:
    program = Program("accumulate")
    fast = accel.accelerate(program.engine)
    accel.uninstall()
    accel.accelerate(Program("compact").engine)
    assert program.ask(fast, QUESTIONS[0]) == program.ask(program.engine, QUESTIONS[0])
    assert accel.settle()
    assert {visit.node for visit in fast.plan.last.visits} >= {"retriever", "synthesizer"}


def test_a_component_class_of_later_is_found_by_the_next_run() -> None:
    program = Program("accumulate")
    fast = accel.accelerate(program.engine)
    program.ask(fast, QUESTIONS[0])

    class Later(Scribe):
        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
            return CompletionResponse(text="later")

    assert not is_installed(Later, "complete")
    program.ask(fast, QUESTIONS[1])
    assert is_installed(Later, "complete")


def test_a_query_may_be_given_in_every_form() -> None:
    program = Program("accumulate")
    fast = accel.accelerate(program.engine)
    for _ in range(2):
        assert str(fast.query(QUESTIONS[0])) == str(fast.query(str_or_query_bundle=QueryBundle(QUESTIONS[0])))
    assert accel.settle()
    assert fast.plan.runs == 4
    assert fast.plan.last.input["str_or_query_bundle"]["query_str"] == QUESTIONS[0]
