"""Every kind of LlamaIndex object, unmodified and accelerated: what it answers, its sources and its memory are the
same, and what may be early is."""

from __future__ import annotations

import asyncio
import copy
import inspect
import time
from collections.abc import Callable
from typing import Any

import llama_index.core
import pytest
from llama_index.core import Settings, StorageContext, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import QueryBundle, TransformComponent
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import DEFAULT_COLLECTION
from llama_index.core.workflow import (
    Context,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from workflows.retry_policy import retry_policy, stop_after_attempt, wait_fixed

import accel
from accel.parts.identities.identity import identity_of

from .llamaindex_clerk import NODES, Clerk, Kind, Letters, index, scored
from .llamaindex_given import fresh
from .llamaindex_kinds import KINDS, ingest, splitter
from .llamaindex_programs import QUESTIONS, TOPICS, Heard

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's own calls of what it deprecates


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What programs that name no model take."""
    monkeypatch.setattr(Settings, "_llm", Clerk())
    monkeypatch.setattr(Settings, "_embed_model", Letters())


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """Of all callback managers that are made."""
    counter = TokenCountingHandler(tokenizer=str.split)
    monkeypatch.setattr(llama_index.core, "global_handler", counter)
    return Heard(counter)


def ask(obj: Any, kind: Kind, question: str, heard: Heard) -> dict[str, Any]:
    """What it answers and tells. A program that gathers tells of concurrent calls in any order."""
    heard.forget()
    found = kind.ask(obj, question)
    if inspect.iscoroutine(found):
        return all_of(asyncio.run(found), heard, orderly=False)
    return all_of(found, heard, orderly=kind.orderly)


def all_of(answer: Any, heard: Heard, orderly: bool) -> dict[str, Any]:
    spans, events = heard.spans(), heard.events()
    if not orderly:
        spans, events = sorted(spans), sorted(events)
    return {"answer": answer, "tokens": heard.tokens(), "spans": spans, "events": events}


@pytest.mark.usefixtures("loop_at_hand")
@pytest.mark.parametrize("name", KINDS)
def test_whole(name: str, heard: Heard) -> None:
    kind = KINDS[name]
    plain, fast = kind.make(), accel.accelerate(kind.make())
    for question in QUESTIONS[:4]:
        assert ask(fast, kind, question, heard) == ask(plain, kind, question, heard)
        assert accel.settle()
    told = fast._accel.plan.total
    assert (told.demanded > 0) is kind.calls
    assert told.retired > 0 or not kind.early


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.aask is not None])
async def test_on_a_loop(name: str, heard: Heard) -> None:
    kind = KINDS[name]
    assert kind.aask is not None
    plain, fast = kind.make(), accel.accelerate(kind.make())
    for question in QUESTIONS[:4]:
        heard.forget()
        expected = all_of(await kind.aask(plain, question), heard, orderly=False)
        heard.forget()
        assert all_of(await kind.aask(fast, question), heard, orderly=False) == expected
        assert await asyncio.to_thread(accel.settle)
    told = fast._accel.plan.total
    assert (told.demanded > 0) is kind.calls
    assert told.retired > 0 or not kind.early


PARTS = ("reranking", "structured reranking", "keywords", "splitting by meaning", "paths of a graph", "titles")


@pytest.mark.parametrize("name", PARTS)
def test_a_part_stays_what_it_was(name: str) -> None:
    """Also for pydantic, for the keys of an ingestion cache, and for copies."""
    plain = KINDS[name].make()
    fast = accel.accelerate(plain)
    for one in (fast, copy.copy(fast), copy.deepcopy(fast)):
        assert isinstance(one, type(plain)) and type(one).__name__ == type(plain).__name__
        assert one.model_dump() == plain.model_dump() and isinstance(one, accel.Accelerated)
    if isinstance(plain, TransformComponent):
        assert get_transformation_hash(NODES, fast) == get_transformation_hash(NODES, plain)
    assert accel.accelerate(fast) is fast


@pytest.mark.usefixtures("loop_at_hand")
def test_accelerated_parts_in_objects_that_are_not(heard: Heard) -> None:
    """Each of their calls is a run of its own."""
    rerank, model = LLMRerank(llm=Clerk(), choice_batch_size=3, top_n=2), Clerk()
    fast_rerank = accel.accelerate(rerank)
    engines = [
        index().as_query_engine(llm=model, similarity_top_k=9, node_postprocessors=[each])
        for each in (rerank, fast_rerank)
    ]
    pipelines = []
    for each in ((fast_keywords := accel.accelerate(KINDS["keywords"].make())), KINDS["keywords"].make()):
        pipelines.append(IngestionPipeline(transformations=[splitter(), each], disable_cache=True))
    for question in QUESTIONS[:4]:
        told = []
        for engine, pipeline in zip(engines, reversed(pipelines), strict=True):
            heard.forget()
            answer = str(engine.query(question)), ingest(pipeline, question)
            told.append(all_of(answer, heard, orderly=False))
            assert accel.settle()
        assert told[0] == told[1]
    assert fast_rerank.plan.runs == fast_keywords.plan.runs == 4
    assert fast_rerank.plan.total.retired > 0 and fast_keywords.plan.total.retired > 0


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("reranking", lambda obj: obj.postprocess_nodes(scored(QUESTIONS[0]))),
        ("reranking", lambda obj: obj.postprocess_nodes(scored(QUESTIONS[0]), QueryBundle("a"), query_str="b")),
        ("structured reranking", lambda obj: obj.postprocess_nodes(scored(QUESTIONS[0]), nobody="asks")),
        ("titles", lambda obj: obj([None])),
        ("evaluator of a retriever", lambda obj: obj.evaluate(QUESTIONS[0])),
        ("hyde", lambda obj: obj.query()),
        ("evaluator", lambda obj: asyncio.run(obj.aevaluate(nobody="asks"))),
    ],
)
@pytest.mark.usefixtures("loop_at_hand")
def test_a_part_fails_as_it_did(name: str, call: Callable[[Any], Any]) -> None:
    errors = []
    for obj in (KINDS[name].make(), accel.accelerate(KINDS[name].make())):
        with pytest.raises(Exception) as caught:  # noqa: B017, PT011 - whichever it is
            call(obj)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


async def test_warming_a_part_up() -> None:
    fast = accel.accelerate(KINDS["reranking"].make())
    await fast.awarmup([{"nodes": scored(question), "query_str": question} for question in QUESTIONS[:3]])
    extractor = accel.accelerate(KINDS["keywords"].make())
    await extractor.awarmup([fresh(question) for question in QUESTIONS[:3]])
    for each in (fast, extractor):
        assert any(node.evidence.confidence == "verified" for node in each.plan.learnt.nodes)


def test_callback_managers_count_as_whom_they_tell() -> None:
    """A program that makes a model for each call makes a manager for each, too."""
    listener = TokenCountingHandler()
    models = [Clerk(), Clerk(), *(Clerk(callback_manager=CallbackManager([listener])) for _ in range(2))]
    assert identity_of(models[0], False) == identity_of(models[1], False)
    assert identity_of(models[2], False) == identity_of(models[3], False) != identity_of(models[0], False)
    before = identity_of(models[0], False)
    models[0].callback_manager.add_handler(listener)
    assert identity_of(models[0], False) != before


def test_no_search_is_early_for_nothing() -> None:
    """What it finds goes to a remote model, which may not be sent that before the program sends it."""

    class Remote(Clerk):
        pass

    accel.register(Remote, local=False, concurrency=16, streams_equal=True, twins=True)

    class Engine(CustomQueryEngine):
        retriever: BaseRetriever
        model: Remote

        def custom_query(self, query_str: str) -> Any:
            again = self.model.complete(f"Say this again: {query_str}")
            return str(again) + "".join(
                str(self.model.complete(f"A note on {query_str} from {found.node.get_content()}"))
                for found in self.retriever.retrieve(query_str)
            )

    plain, fast = (Engine(retriever=index().as_retriever(), model=Remote()) for _ in range(2))
    fast = accel.accelerate(fast)
    for question in QUESTIONS[:5]:
        assert str(fast.query(question)) == str(plain.query(question))
        assert accel.settle()
    assert fast._accel.plan.total.fed == 0
    assert any("may not be sent what it finds yet" in reason for reason in fast.report().reasons)
    allowed = accel.accelerate(plain, egress="inputs")
    for question in QUESTIONS[:5]:
        allowed.query(question)
        assert accel.settle()
    assert allowed._accel.plan.total.fed > 0


def test_no_code_of_the_programs_in_a_document_store_runs_early() -> None:
    asked: list[str] = []

    class Kept(SimpleKVStore):
        def get(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
            asked.append(key)
            return super().get(key, collection)

    def make() -> Any:
        storage = StorageContext.from_defaults(docstore=SimpleDocumentStore(Kept()))
        found = VectorStoreIndex(NODES, embed_model=Letters(), storage_context=storage)
        return found.as_query_engine(llm=Clerk(), response_mode="accumulate", similarity_top_k=4)

    plain, fast = make(), accel.accelerate(make())
    for question in [*QUESTIONS, *QUESTIONS[:2]]:
        asked.clear()
        expected = str(plain.query(question))
        keys = list(asked)
        asked.clear()
        assert str(fast.query(question)) == expected
        assert accel.settle()
        assert asked == keys


class Approved(Workflow):
    said: list[str]

    @step
    async def publish(self, ctx: Context, ev: StartEvent) -> StopEvent:
        model = Clerk()
        draft = await model.acomplete(f"Draft a story on {ev.topic}.")
        answer = await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(prefix=str(draft)))
        self.said.append("allowed")
        published = await model.acomplete(f"Publish the story on {ev.topic} now.")
        return StopEvent(result=f"{published} {answer.response}")


async def test_nothing_is_early_that_waits_for_a_person() -> None:
    """Nobody but the step itself knows that it will ask."""

    async def publish(workflow: Approved, topic: str) -> str:
        workflow.said.clear()
        handler = workflow.run(topic=topic)
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                workflow.said.append(event.prefix)
                assert await asyncio.to_thread(accel.settle)
                handler.ctx.send_event(HumanResponseEvent(response="yes"))
        return str(await handler)

    plain = Approved()
    plain.said = []
    fast = accel.accelerate(plain, egress="inputs")
    for topic in TOPICS:
        expected = [await publish(plain, topic), *plain.said]
        assert [await publish(fast, topic), *fast.said] == expected
        assert await asyncio.to_thread(accel.settle)
    assert fast.report().issued == 0


class Tries(Workflow):
    failed = False

    @step(retry_policy=retry_policy(wait=wait_fixed(0.001), stop=stop_after_attempt(2)))
    async def tell(self, ev: StartEvent) -> StopEvent:
        said = await Clerk().acomplete(f"Tell of {ev.topic}.")
        self.failed = not self.failed
        if self.failed:
            raise ConnectionError("the first time")
        return StopEvent(result=str(said))


async def test_a_workflow_that_tries_steps_again_is_not_followed_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "accel"):
        fast = accel.accelerate(Tries())
    assert "a step that is tried again (retry_policy) is not followed. Remedy: try again inside the step" in caplog.text
    for topic in TOPICS:
        assert await fast.run(topic=topic) == await Tries().run(topic=topic)
    assert fast.plan.runs == 0


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("sub-questions", "engine"),
        ("tree_summarize", "synthesizer"),
        ("reranking", "postprocessor"),
        ("keywords", "extractor"),
        ("splitting by meaning", "transformation"),
        ("evaluator of a retriever", "evaluator"),
        ("simple chat", "chat_engine"),
        ("evaluator", "evaluator"),
        ("batch of evaluations", "runner"),
        ("workflow", "workflow"),
        ("agent", "agent"),
        ("extractors", "pipeline"),
        ("tree index", "TreeIndex"),
    ],
)
def test_lines_of_reports_name_objects_as_their_users_do(kind: str, name: str) -> None:
    assert accel.accelerate(KINDS[kind].make())._accel.program == name


def test_the_line_that_a_query_engine_gains_by_can_be_pasted() -> None:
    class Slow(Clerk):
        def _answer(self, prompt: str) -> str:
            time.sleep(0.1)  # most of what the program takes, however busy the machine
            return super()._answer(prompt)

    class Remote(Slow):
        pass

    accel.register(Slow, local=True, concurrency=16, streams_equal=True, twins=True)
    accel.register(Remote, local=False, concurrency=16, streams_equal=True, twins=True)

    class Engine(CustomQueryEngine):
        near: Slow
        model: Remote

        def custom_query(self, query_str: str) -> str:
            return f"{self.near.complete(f'First: {query_str}')} {self.model.complete(f'Second: {query_str}')}"

    engine = Engine(near=Slow(), model=Remote())
    fast = accel.accelerate(engine)
    for question in QUESTIONS[:3]:
        fast.query(question)
        assert accel.settle()
    (found,) = fast.report().declarations
    assert found.line == 'accel.accelerate(engine, egress="inputs")'
    assert eval(found.line, {"accel": accel, "engine": engine}).query(QUESTIONS[0])  # noqa: S307 - as a user would
