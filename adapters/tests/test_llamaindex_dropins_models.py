"""The LlamaIndex classes on simulated engines: structured output, embeddings, reranking."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TextNode
from pydantic import BaseModel, ValidationError

import accel_local
from accel import engine as protocols
from accel.engine import DEMAND, Constraint, Priority
from accel.engine.profile import Profile, ProfileFile
from accel.errors import InvalidRequest, RequestError
from accel.parts.components import facts_of
from accel_llamaindex import AccelEmbedding, AccelLLM, AccelRerank
from accel_sim import SimEmbeddingConfig, SimLLMConfig, SimRerankConfig
from adapters.tests.llamaindex_scripted import MESSAGES, RENDERED, everything, in_thread, scripted

QUICK = Profile("embedding", batches=((1, 16, 1e-5), (64, 16, 1e-4)), batch_tokens=4096)


# --- structured output, on a simulated model that fills schemas


class Colour(BaseModel):
    name: str
    warm: bool
    shades: list[str]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> AccelLLM:
    profile = Profile("llm", prefill=((10, 1e-5), (1000, 1e-4)), decode=((1, 1e-5),), batch_tokens=2048, block_tokens=4)
    path = tmp_path_factory.mktemp("profile") / "quick.json"
    ProfileFile({"llm": profile}).save(path)
    return AccelLLM(engine=SimLLMConfig(str(path)), max_tokens=400)


class Spans(BaseSpanHandler[Any]):
    names: list[str] = []

    def new_span(self, id_: str, *args: Any, **kwargs: Any) -> None:
        self.names.append(id_.rsplit("-", 5)[0])

    def prepare_to_exit_span(self, id_: str, *args: Any, **kwargs: Any) -> None: ...

    def prepare_to_drop_span(self, id_: str, *args: Any, **kwargs: Any) -> None: ...


async def test_structured_predictions(simulated: AccelLLM) -> None:
    template = PromptTemplate("Describe {colour}.")
    spans = Spans()
    get_dispatcher().add_span_handler(spans)
    try:
        found = simulated.structured_predict(Colour, template, colour="red")
    finally:
        get_dispatcher().span_handlers.remove(spans)
    assert spans.names.count("AccelLLM.structured_predict") == 1 == spans.names.count("AccelLLM.chat")
    assert isinstance(found, Colour)
    assert await simulated.astructured_predict(Colour, PromptTemplate("Describe {colour}."), colour="red") == found
    streamed = list(simulated.stream_structured_predict(Colour, PromptTemplate("Describe {colour}."), colour="red"))
    assert streamed[-1] == found and len(streamed) > 3
    astreamed = await simulated.astream_structured_predict(Colour, PromptTemplate("Describe {colour}."), colour="red")
    assert [part.model_dump() async for part in astreamed] == [part.model_dump() for part in streamed]


async def test_structured_models(simulated: AccelLLM) -> None:
    model = simulated.as_structured_llm(Colour)
    response = model.chat([ChatMessage(content="Describe red.")])
    assert isinstance(response.raw, Colour) and Colour.model_validate_json(response.message.content or "")
    assert (await model.achat([ChatMessage(content="Describe red.")])).raw == response.raw
    assert isinstance((await model.acomplete("Describe blue.")).raw, Colour)


def test_a_structured_prediction_forces_the_schema_unless_the_caller_chose() -> None:
    llm, engine = scripted('{"name": "red", "warm": true, "shades": []}')
    wanted = Colour(name="red", warm=True, shades=[])
    assert llm.structured_predict(Colour, PromptTemplate("x")) == wanted
    llm.structured_predict(Colour, PromptTemplate("x"), llm_kwargs={"max_tokens": 9})
    llm.structured_predict(Colour, PromptTemplate("x"), llm_kwargs={"regex": ".*", "max_tokens": 3})
    first, more, second = (asked[1] for asked in engine.asked)
    assert first.constraint == Constraint("json_schema", json.dumps(Colour.model_json_schema())) == more.constraint
    assert more.max_tokens == 9
    assert second.constraint == Constraint("regex", ".*") and second.max_tokens == 3


async def test_constraints_and_stops_on_a_simulated_model(simulated: AccelLLM) -> None:
    whole, awaited, streamed, astreamed = await everything(simulated, choice=["one two three"], stop=["three"])
    assert whole[0].message.content == "one two "
    assert streamed[-1].model_copy(update={"delta": None}).message == whole[0].message == awaited[0].message
    assert "".join(part.delta for part in astreamed) == "one two "
    usage = whole[0].raw["usage"]
    engine = accel_local.engine(simulated.engine_config)
    assert usage["prompt_tokens"] == len(engine.encode(RENDERED))
    assert simulated.predict(PromptTemplate("Say {word}"), word="hello")
    assert "".join(simulated.stream(PromptTemplate("Say {word}"), word="hello")) == simulated.complete("Say hello").text


def test_threads_and_loops_at_once(simulated: AccelLLM) -> None:
    expected = simulated.chat(MESSAGES).message
    runs = [in_thread(lambda: simulated.chat(MESSAGES).message) for _ in range(4)]
    runs += [in_thread(lambda: asyncio.run(simulated.achat(MESSAGES)).message) for _ in range(4)]
    for thread, _ in runs:
        thread.join()
    assert [outcome for _, outcome in runs] == [[expected]] * 8


# --- embeddings


@pytest.fixture(scope="module")
def embedding() -> AccelEmbedding:
    return AccelEmbedding(engine=SimEmbeddingConfig(QUICK, dimension=8), embed_batch_size=2)


async def test_embeddings(embedding: AccelEmbedding) -> None:
    texts = ["a cat", "tax law", "a dog", "trains", "rain"]
    vectors = embedding.get_text_embedding_batch(texts)
    assert [len(vector) for vector in vectors] == [8] * 5 and vectors[0] != vectors[1]
    assert await embedding.aget_text_embedding_batch(texts) == vectors
    assert embedding.get_text_embedding("a cat") == embedding.get_query_embedding("a cat") == vectors[0]
    assert await embedding.aget_text_embedding("trains") == await embedding.aget_query_embedding("trains") == vectors[3]
    assert embedding.get_text_embedding_batch([]) == await embedding.aget_text_embedding_batch([]) == []
    assert embedding.get_agg_embedding_from_queries(["a cat"]) == vectors[0]
    nodes = [TextNode(text=text) for text in texts]
    assert [node.embedding for node in await embedding.acall(nodes)] == vectors


async def test_one_call_of_the_engine_for_each_batch(embedding: AccelEmbedding) -> None:
    engine: Any = accel_local.engine(embedding.engine_config)
    calls: list[tuple[int, int]] = []
    embed = engine.embed

    async def counting(texts: Sequence[str], *, priority: Priority = DEMAND) -> Any:
        calls.append((len(texts), priority.value))
        return await embed(texts, priority=priority)

    engine.embed = counting
    token = protocols.priority.set(Priority(9))
    try:
        embedding.get_text_embedding_batch(list("abcde"))
        await embedding.aget_text_embedding_batch(list("abc"))
    finally:
        protocols.priority.reset(token)
        del engine.embed
    assert calls == [(2, 9), (2, 9), (1, 9), (2, 9), (1, 9)]


def test_tokens_of_embeddings_are_counted(embedding: AccelEmbedding) -> None:
    counter = TokenCountingHandler(tokenizer=str.split)
    counted = embedding.model_copy(update={"callback_manager": CallbackManager([counter])})
    counted.get_text_embedding_batch(["a cat", "tax law", "a dog"])
    assert counter.total_embedding_token_count == 6


async def test_a_text_that_fails_fails_the_call(embedding: AccelEmbedding) -> None:
    with pytest.raises(InvalidRequest, match="NoneType"):
        embedding.get_text_embedding_batch(["a", None])  # type: ignore[list-item]
    with pytest.raises(InvalidRequest, match="int"):
        await embedding.aget_query_embedding(3)  # type: ignore[arg-type]


def test_facts_profiles_and_settings() -> None:
    facts = facts_of(AccelEmbedding())
    assert facts.pure and facts.local and facts.elementwise and facts.concurrency == 4096
    facts = facts_of(AccelRerank())
    assert facts.pure and facts.local and facts.concurrency == 4096
    one, other = (AccelEmbedding(engine=SimEmbeddingConfig(QUICK, seed=seed)) for seed in (1, 2))
    assert one.to_dict() != other.to_dict(), "ingestion caches tell embeddings apart by this"
    assert one.accel_profiles() == []
    one.get_text_embedding("a")
    assert one.accel_profiles() == [QUICK]
    with pytest.raises(ValidationError, match="top_n"):
        AccelRerank(top_n=0)
    with pytest.raises(ValidationError, match="embed_batch_size"):
        AccelEmbedding(embed_batch_size=0)


# --- reranking


@dataclass(frozen=True)
class CountedWords:
    """The config of an engine whose score is the number of words that query and text share."""

    label: str = "counted words"

    def create(self) -> CountingEngine:
        return CountingEngine()


class CountingEngine:
    known_profile: Profile | None = None

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def profile(self) -> Profile:
        raise NotImplementedError

    async def rerank(
        self, query: str, texts: Sequence[str], *, priority: Priority = DEMAND
    ) -> list[float | RequestError]:
        asked = set(query.split())
        return [RequestError("bad") if text == "bad" else float(len(asked & set(text.split()))) for text in texts]


def nodes() -> list[NodeWithScore]:
    texts = ("a dog", "a red cat", "one red cat", "nothing", "red")
    return [
        NodeWithScore(node=TextNode(id_=str(n), text=text, metadata={"deep": {"n": n}}, text_template="{content}"))
        for n, text in enumerate(texts)
    ]


@pytest.fixture
def rerank() -> AccelRerank:
    return AccelRerank(engine=CountedWords(), top_n=3)


async def test_the_best_come_first_and_ties_stay_in_order(rerank: AccelRerank) -> None:
    best = rerank.postprocess_nodes(nodes(), query_str="a red cat")
    assert [(found.node_id, found.score) for found in best] == [("1", 3.0), ("2", 2.0), ("0", 1.0)]
    assert await rerank.apostprocess_nodes(nodes(), QueryBundle("a red cat")) == best
    alike = rerank.model_copy(update={"top_n": 9}).postprocess_nodes(nodes(), query_str="zebra")
    assert [found.node_id for found in alike] == ["0", "1", "2", "3", "4"]
    assert rerank.postprocess_nodes([], query_str="a") == await rerank.apostprocess_nodes([], query_str="a") == []


async def test_nodes_are_copies(rerank: AccelRerank) -> None:
    engine = object()
    given = [*nodes(), NodeWithScore(node=IndexNode(text="a red cat", index_id="i", obj=engine), score=0.5)]
    before = [found.model_copy(deep=True) for found in given[:-1]]
    for best in (
        rerank.postprocess_nodes(given, query_str="a red cat"),
        await rerank.apostprocess_nodes(given, query_str="a red cat"),
    ):
        assert isinstance(best[1].node, IndexNode) and best[1].node.obj is engine and best[1].score == 3.0
        best[0].node.metadata["deep"]["n"] = best[1].node.metadata["new"] = "changed"
        best[0].node.relationships.clear()
        best[0].score = 9
    assert given[:-1] == before
    assert given[-1].score == 0.5 and given[-1].node.metadata == {} and given[0].score is None


async def test_what_embeddings_see_of_a_node_is_judged(rerank: AccelRerank) -> None:
    given = [
        NodeWithScore(node=TextNode(id_="hidden", text="x", metadata={"k": "red"}, excluded_embed_metadata_keys=["k"])),
        NodeWithScore(node=TextNode(id_="shown", text="x", metadata={"k": "red"})),
    ]
    assert [found.node_id for found in rerank.postprocess_nodes(given, query_str="red")] == ["shown", "hidden"]


async def test_reranking_without_a_query_or_with_a_bad_text_fails(rerank: AccelRerank) -> None:
    with pytest.raises(InvalidRequest, match="no query"):
        rerank.postprocess_nodes(nodes())
    with pytest.raises(InvalidRequest, match="no query"):
        await rerank.apostprocess_nodes(nodes())
    with pytest.raises(RequestError, match="bad"):
        rerank.postprocess_nodes([NodeWithScore(node=TextNode(text="bad"))], query_str="a")


async def test_a_simulated_reranker() -> None:
    config = SimRerankConfig(Profile("reranking", batches=((1, 16, 1e-5),), batch_tokens=4096))
    rerank = AccelRerank(engine=config, top_n=2)
    best = rerank.postprocess_nodes(nodes(), query_str="a red cat")
    assert best[0].node_id == "1" and len(best) == 2
    assert await rerank.apostprocess_nodes(nodes(), query_str="a red cat") == best
