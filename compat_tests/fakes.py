"""Fake LangChain components that behave like real ones.

Every answer is a function of the full prompt, except where a class says otherwise. Delays are at most a millisecond and
are the subject of the properties (they shuffle completions); nothing waits on them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from compat_tests.answers import WORDS, follow, sampled
from compat_tests.fakes_stores import (
    FakeEmbeddings,
    FakeStore,
    KeywordRetriever,
    ReadonlyStore,
    RewritingRetriever,
    Vault,
)
from compat_tests.probe import Call, Probe

TENANT: ContextVar[str] = ContextVar("tenant", default="a")
REMOTE_URL = "https://api.example.com/v1"
FIRST_KEY = "sk-fake"
"""Of models, before a node gives them another one."""
OWNER: ContextVar[str] = ContextVar("owner", default="nobody")
"""Whose request is served: set just before a program is called, and by nobody else."""
SESSION = threading.local()
"""What a program keeps for its thread."""
TENANTS = "ab"


def as_text(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(f"{message.type}: {message.content}" for message in messages)


class FollowerChat(BaseChatModel):
    """Only the synchronous leaf: the simplest chat model anyone writes. Nobody vouches for it: it is never early."""

    name_in_log: str = "follower"
    style: str = ""
    _probe: Probe = PrivateAttr()
    _vouched: bool = PrivateAttr(default=False)
    """Whether calls may be early; if so, one at a time or several."""
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

    def _enter(self, text: str) -> Call:
        return self._probe.enter(self.name_in_log, text, exclusive=self._exclusive, vouched=self._vouched)

    def _serve(self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]) -> ChatResult:
        text = as_text(messages)
        call = self._enter(text)
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
        call = self._enter(text)
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
        call = self._enter(text)
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
        call = self._enter(text)
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
    _vouched: bool = PrivateAttr(default=True)
    _exclusive: bool = PrivateAttr(default=False)


class RemoteChat(StreamingChat):
    """A provider somewhere else: what it receives has left the building. Declared: pure, one call at a time."""

    name_in_log: str = "remote"
    base_url: str = REMOTE_URL
    api_key: str = FIRST_KEY
    _vouched: bool = PrivateAttr(default=True)

    def _enter(self, text: str) -> Call:
        return self._probe.enter(
            self.name_in_log, text, exclusive=self._exclusive, vouched=self._vouched, key=self.api_key
        )


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


class SessionChat(StreamingChat):
    """The answer depends on what the thread that asks has set. Nobody vouches for it."""

    name_in_log: str = "session"

    def _answer(self, text: str, stop: list[str] | None, options: dict[str, Any]) -> AIMessage:
        return AIMessage(f"[{getattr(SESSION, 'user', 'nobody')}] {follow(text)}")


class BoundChat(StreamingChat):
    """Holds a handle that belongs to the thread that made it, as those of databases do. Nobody vouches for it."""

    name_in_log: str = "bound"
    _thread: int = PrivateAttr(default_factory=threading.get_ident)

    def _answer(self, text: str, stop: list[str] | None, options: dict[str, Any]) -> AIMessage:
        if threading.get_ident() != self._thread:
            self._probe.violations.append(f"{text!r} in a thread that the handle doesn't belong to")
        return AIMessage(follow(text))


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
        self.session = SessionChat(probe)
        self.hasty = LocalChat(probe, name_in_log="hasty", cache=False)
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

    def bound_chat(self) -> BoundChat:
        """With a handle of this thread."""
        return BoundChat(self.probe)

    def namespace(self) -> dict[str, object]:
        parts = {name: value for name, value in vars(self).items() if name != "probe"}
        return {**parts, "bound_chat": self.bound_chat, "SESSION": SESSION}

    def stored(self) -> dict[str, object]:
        """What the run left behind in its components."""
        return {
            "store": dict(self.store.rows),
            "retriever": dict(self.retriever.rows),
            "next": self.scripted.position,
            "styles": [model.style for model in (self.local, self.follower, self.remote)],
            "keys": [model.api_key for model in (self.remote, self.abroad)],
        }


def register_fakes(register: Callable[..., object]) -> None:
    """Declares of the fakes what the user of such components would declare. Not of all: some are to be left alone."""
    for model in (LocalChat, SampledChat, TenantChat):
        register(model, pure=True, local=True, concurrency=8, twins=True)
    register(RemoteChat, pure=True, twins=True)
    register(FakeEmbeddings, pure=True, local=True, concurrency=8, elementwise=True)
    register(FakeStore, pure=True, local=True)
    for store in (ReadonlyStore, Vault):
        register(store, pure=True, readonly=True, local=True)
    register(KeywordRetriever, pure=True, local=True)
