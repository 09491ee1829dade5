"""Fake LangChain components that behave like real ones.

Every answer is a function of the full prompt, except where a class says otherwise. Delays are at most a millisecond and
are the subject of the properties (they shuffle completions); nothing waits on them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from pydantic import PrivateAttr

from compat_tests.answers import WORDS, digest, follow, sampled
from compat_tests.probe import Probe

TENANT: ContextVar[str] = ContextVar("tenant", default="a")
REMOTE_URL = "https://api.example.com/v1"
OWNER: ContextVar[str] = ContextVar("owner", default="nobody")
"""Whose request is served: set just before a program is called, and by nobody else."""
TENANTS = "ab"


def as_text(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(f"{message.type}: {message.content}" for message in messages)


class FollowerChat(BaseChatModel):
    """Only the synchronous leaf: the simplest chat model anyone writes. Nothing is known of it: one call at a time."""

    name_in_log: str = "follower"
    style: str = ""
    _probe: Probe = PrivateAttr()
    _exclusive: bool = PrivateAttr(default=True)

    def __init__(self, probe: Probe, **fields: Any) -> None:
        super().__init__(**fields)
        self._probe = probe

    @property
    def _llm_type(self) -> str:
        return "follower"

    def _answer(self, text: str, stop: list[str] | None, options: dict[str, Any]) -> AIMessage:
        length = options.get("length", 0)
        return AIMessage(follow(text, self.style, stop, length)[: 400 if not length else 20 + length])

    def _serve(self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]) -> ChatResult:
        text = as_text(messages)
        call = self._probe.enter(self.name_in_log, text, exclusive=self._exclusive)
        answer = None
        try:
            time.sleep(self._probe.delay_s())
            answer = self._answer(text, stop, options)
        finally:
            self._probe.leave(call, str(answer.content) if answer else None)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._serve(messages, stop, kwargs)


class StreamingChat(FollowerChat):
    """All four leaves; streams word by word."""

    name_in_log: str = "streaming"

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        text = as_text(messages)
        call = self._probe.enter(self.name_in_log, text, exclusive=self._exclusive)
        answer = None
        try:
            await asyncio.sleep(self._probe.delay_s())
            answer = self._answer(text, stop, kwargs)
        finally:
            self._probe.leave(call, str(answer.content) if answer else None)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        text = as_text(messages)
        call = self._probe.enter(self.name_in_log, text, exclusive=self._exclusive)
        sent = ""
        try:
            time.sleep(self._probe.delay_s())
            for chunk in chunks_of(self._answer(text, stop, kwargs)):
                if run_manager:
                    run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                sent += chunk.text
                yield chunk
        finally:
            self._probe.leave(call, sent)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        text = as_text(messages)
        call = self._probe.enter(self.name_in_log, text, exclusive=self._exclusive)
        sent = ""
        try:
            await asyncio.sleep(self._probe.delay_s())
            for chunk in chunks_of(self._answer(text, stop, kwargs)):
                if run_manager:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                sent += chunk.text
                yield chunk
        finally:
            self._probe.leave(call, sent)


def chunks_of(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    words = str(message.content).split(" ")
    for position, word in enumerate(words):
        text = word if position == 0 else f" {word}"
        last = {"chunk_position": "last"} if position == len(words) - 1 else {}
        yield ChatGenerationChunk(message=AIMessageChunk(content=text, id=message.id, **last))


class LocalChat(StreamingChat):
    """Declared: pure, local, eight calls at a time."""

    name_in_log: str = "local"
    _exclusive: bool = PrivateAttr(default=False)


class RemoteChat(StreamingChat):
    """A provider somewhere else: what it receives has left the building."""

    name_in_log: str = "remote"
    base_url: str = REMOTE_URL
    api_key: str = "sk-fake"


class SampledChat(LocalChat):
    """One of three possible answers per prompt; each answer carries an id of its own, as providers' answers do."""

    name_in_log: str = "sampled"
    temperature: float = 0.9

    def _answer(self, text: str, stop: list[str] | None, options: dict[str, Any]) -> AIMessage:
        follow(text)  # Whether it fails depends on the prompt alone, so that the other arm can replay it.
        variant, sample_id = self._probe.sample(text, 3)
        return AIMessage(sampled(text, variant), id=sample_id, response_metadata={"sample": [text, variant]})


class ScriptedChat(FollowerChat):
    """Answers depend on the order of calls: must never be called early."""

    name_in_log: str = "scripted"
    position: int = 0

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = self._probe.enter(self.name_in_log, as_text(messages), orderly=True)
        self.position += 1
        answer = f"reply {self.position}: {WORDS[self.position % len(WORDS)]}"
        self._probe.leave(call, answer)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


class TenantChat(LocalChat):
    """The answer depends on who asks, and that is in a ContextVar."""

    name_in_log: str = "tenant"

    def _answer(self, text: str, stop: list[str] | None, options: dict[str, Any]) -> AIMessage:
        tenant = TENANT.get()
        return AIMessage(f"[{tenant}] {follow(text, tenant)}")


class FakeEmbeddings(Embeddings):
    """Declared: local, elementwise."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe

    def _vector(self, text: str) -> list[float]:
        draw = random.Random(digest(text))
        return [draw.random() for _ in range(4)]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        call = self.probe.enter("embed", "\n".join(texts), exclusive=False)
        time.sleep(self.probe.delay_s())
        self.probe.leave(call, None)
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        call = self.probe.enter("embed", text, exclusive=False)
        time.sleep(self.probe.delay_s())
        self.probe.leave(call, None)
        return self._vector(text)


class FakeStore(VectorStore):
    """In-memory store. `rows` may change behind its back: `rows[...] = ...` is another process writing."""

    def __init__(self, probe: Probe, name: str = "store", embedding: Embeddings | None = None) -> None:
        self.probe = probe
        self.name = name
        self.embedding = embedding
        self.rows: dict[str, str] = {}

    @property
    def embeddings(self) -> Embeddings | None:
        return self.embedding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        texts = list(texts)
        ids = ids or [f"{digest(text) % 10**8:08d}" for text in texts]
        call = self.probe.enter(self.name, f"add {texts}", orderly=True)
        if self.embedding:
            self.embedding.embed_documents(texts)
        self.rows.update(zip(ids, texts, strict=True))
        self.probe.leave(call, None)
        return ids

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        call = self.probe.enter(self.name, f"delete {ids}", orderly=True)
        for row in ids if ids is not None else list(self.rows):
            self.rows.pop(row, None)
        self.probe.leave(call, None)
        return True

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        call = self.probe.enter(self.name, query)
        time.sleep(self.probe.delay_s())
        if self.embedding:
            self.embedding.embed_query(query)
        found = nearest(query, self.rows_for(query), k)
        self.probe.leave(call, None)
        return found

    def rows_for(self, query: str) -> dict[str, str]:
        return self.rows

    @classmethod
    def from_texts(
        cls, texts: list[str], embedding: Embeddings, metadatas: list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> FakeStore:
        store = cls(Probe(0), embedding=embedding)
        store.add_texts(texts, metadatas)
        return store


class ReadonlyStore(FakeStore):
    """Declared readonly: nobody writes while programs run."""


class Vault(ReadonlyStore):
    """A tenant's records. No two requests find the same text: then two runs would show it as the program's own."""

    def rows_for(self, query: str) -> dict[str, str]:
        return {row: text.replace("?", str(digest(query, row) % 10_000)) for row, text in self.rows.items()}


def nearest(query: str, rows: dict[str, str], k: int) -> list[Document]:
    wanted = set(query.lower().split())

    def score(row: str) -> tuple[int, int]:
        return (-len(wanted & set(rows[row].lower().split())), digest(query, row))

    return [Document(rows[row], id=row, metadata={"row": row}) for row in sorted(rows, key=score)[:k]]


class KeywordRetriever(BaseRetriever):
    """A custom retriever over rows that the program may change."""

    rows: dict[str, str]
    k: int = 2
    _probe: Probe = PrivateAttr()

    def __init__(self, probe: Probe, **fields: Any) -> None:
        super().__init__(**fields)
        self._probe = probe

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        call = self._probe.enter("retriever", query)
        time.sleep(self._probe.delay_s())
        self._probe.leave(call, None)
        return nearest(query, self.rows, self.k)


class RewritingRetriever(KeywordRetriever):
    """A composite: asks a model before it searches."""

    model: BaseChatModel

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        rewritten = self.model.invoke(f"Rewrite the query {query}").content
        return nearest(str(rewritten), self.rows, self.k)


@dataclass(eq=False)
class Parts:
    """The components of one arm, under the names that programs use."""

    probe: Probe

    def __post_init__(self) -> None:
        probe = self.probe
        documents = [f"{WORDS[i]} {WORDS[-i - 1]} fact {i}" for i in range(8)]
        self.local = LocalChat(probe)
        self.follower = FollowerChat(probe)
        self.remote = RemoteChat(probe)
        self.sampled = SampledChat(probe)
        self.scripted = ScriptedChat(probe)
        self.tenant = TenantChat(probe)
        self.embed = FakeEmbeddings(probe)
        self.store = FakeStore(probe, "store", self.embed)
        self.library = ReadonlyStore(probe, "library")
        self.library.rows = {f"d{i}": text for i, text in enumerate(documents)}
        self.retriever = KeywordRetriever(probe, rows=dict(self.library.rows))
        self.rewriter = RewritingRetriever(probe, rows=dict(self.library.rows), model=self.local)
        self.abroad = RemoteChat(probe, name_in_log="abroad", base_url="https://models.example.org/v1")
        self.gated = RemoteChat(probe, name_in_log="gated", base_url="https://gated.example.org/v1")
        self.models = {tenant: self.model_of(tenant) for tenant in TENANTS}
        self.vaults = {tenant: Vault(probe, f"vault-{tenant}") for tenant in TENANTS}
        for tenant, vault in self.vaults.items():
            vault.rows = {f"{tenant}{i}": f"case ? {WORDS[i]} zq{tenant}0v {WORDS[2 * i]}" for i in range(4)}

    def model_of(self, tenant: str) -> RemoteChat:
        """A tenant's model: one provider for all of them, but everyone has their own key."""
        url = "https://tenants.example.com/v1"
        model = RemoteChat(self.probe, name_in_log=f"own-{tenant}", base_url=url, api_key=f"sk-{tenant}")
        model._exclusive = False  # several of one name
        return model

    def namespace(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "probe"}

    def stored(self) -> dict[str, object]:
        """What the run left behind in its components."""
        return {
            "store": dict(self.store.rows),
            "retriever": dict(self.retriever.rows),
            "next": self.scripted.position,
            "styles": [model.style for model in (self.local, self.follower, self.remote)],
        }


def register_fakes(register: Callable[..., object]) -> None:
    """Declares of the fakes what the user of such components would declare."""
    for model in (LocalChat, SampledChat, TenantChat):
        register(model, pure=True, local=True, concurrency=8)
    register(FakeEmbeddings, pure=True, local=True, concurrency=8, elementwise=True)
    register(ReadonlyStore, readonly=True, local=True)
