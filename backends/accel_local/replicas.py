"""Several equal engines as one: what they don't take at once waits in one line in front of them (`accel.engine.slots`);
each request goes to one of them, and on to another one, or to the same one come back, if what served it is lost.

What a program waits for is submitted again; early work is not: its loss is cheaper than its repetition. A stream goes
on after what has already been delivered, if its text repeats; where that can't be known, the loss is the call's error.
"""

import contextlib
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar, cast

from accel.engine import (
    DEMAND,
    ChatMessage,
    Delta,
    EmbeddingEngine,
    Engine,
    Hit,
    LLMEngine,
    Metadata,
    Priority,
    Prompt,
    Record,
    RerankEngine,
    Sampling,
    TokenIds,
    Vector,
    VectorStore,
)
from accel.engine.batching import TOPOLOGY_AWARE, tokens_of
from accel.engine.profile import Profile
from accel.engine.slots import Entrance, Room, Slots
from accel.errors import ConfigurationError, EngineClosed, RequestError

RESUBMISSIONS = 3
"""How often a request is submitted again: one that ends every engine it meets must not go round for ever."""

E = TypeVar("E", bound=Engine)
T = TypeVar("T")


class EngineLost(EngineClosed):
    """What served a call is gone, with nothing of the call's left behind: it may be made again."""


class _Replicas(Generic[E]):
    """A member says in `room` how many requests it takes at a time; one that doesn't is given all of them at once."""

    _policy = replace(TOPOLOGY_AWARE, apart=False, reuses=False, admits=False)

    def __init__(self, members: Sequence[E], label: str, *, one_line: bool = True) -> None:
        """one_line: whether what members have no room for waits here; else requests are shared out as they come."""
        self._members = members
        self._label = label
        rooms = [_room(member) if one_line and len(members) > 1 else None for member in members]
        policy = self._policy if all(rooms) else AS_THEY_COME
        self._entrance = Entrance(policy)
        self._slots = [
            Slots(*(room or ANY)[:2], policy, self._entrance, partial(_load, member))
            for room, member in zip(rooms, members, strict=True)
        ]
        for slots, member, room in zip(self._slots, members, rooms, strict=True):
            slots.caches(getattr(member, "cache_block_tokens", 0), room.kv_blocks if room else None)
            if hasattr(member, "on_back"):
                member.on_back(self._entrance.admit)

    # Life

    async def start(self) -> None:
        """They are started."""

    async def close(self) -> None:
        self._entrance.close(lambda: EngineClosed(f"{self._label} was closed."))
        for member in self._members:
            await member.close()

    @property
    def stopped(self) -> bool:
        return all(map(has_stopped, self._members))

    @property
    def known_profile(self) -> Profile | None:
        """Of one of them."""
        return self._members[0].known_profile

    async def profile(self) -> Profile:
        return await self._members[0].profile()

    # Requests

    async def _call(self, call: Callable[[E], Awaitable[T]], priority: Priority, size: int = 1) -> T:
        for left in range(RESUBMISSIONS, -1, -1):
            async with self._entrance.place(priority, size=size) as turn:
                try:
                    return await call(self._member(turn.slots))
                except EngineLost as lost:
                    self._check(lost, left, priority)
        raise AssertionError

    def _member(self, slots: Slots) -> E:
        return self._members[self._slots.index(slots)]

    def _check(self, lost: EngineLost, left: int, priority: Priority) -> None:
        """Raises, unless the call may be submitted again."""
        if priority.value > 0:
            raise lost
        if left == 0:
            raise EngineClosed(
                f"{self._label} was lost {RESUBMISSIONS + 1} times while it served one call: {lost.what}",
                "what ends the engine is probably this request; the backend's logs say more",
            ) from lost


ANY = Room(1 << 30)
AS_THEY_COME = replace(TOPOLOGY_AWARE, reserved=0.0, apart=False, reuses=False, admits=False)


def _room(member: Any) -> Room | None:
    return cast("Room | None", getattr(member, "room", None))


def _load(member: Any) -> float:
    """Requests that a member has from others than us; infinite while it can't serve. One that says nothing has none."""
    return math.inf if has_stopped(member) else float(getattr(member, "load", 0.0))


def has_stopped(engine: Any) -> bool:
    """Whether an engine serves no more, though nobody closed it: its process or thread has ended. One that has none
    doesn't say. Any thread may ask."""
    return bool(getattr(engine, "stopped", False))


class Encoded(list[int]):
    """Token ids that may mean something only to the engine that gave them, and what says the same to any engine: the
    prompt, or the messages that begin one."""

    def __init__(self, ids: Sequence[int], source: Prompt, *, prefix: bool = False) -> None:
        super().__init__(ids)
        self.source = source
        self.prefix = prefix


def only_ids(prompt: Prompt) -> bool:
    """Whether all that is known of a prompt are its token ids."""
    return not isinstance(prompt, str | Encoded) and all(isinstance(item, int) for item in prompt)


class ReplicatedLLM(_Replicas[LLMEngine]):
    """A member whose `portable_ids` is true has a tokenizer whose ids mean the same to all of them."""

    _policy = TOPOLOGY_AWARE

    def __init__(self, members: Sequence[LLMEngine], label: str, *, one_line: bool = True) -> None:
        super().__init__(members, label, one_line=one_line)
        self._portable = bool(getattr(members[0], "portable_ids", False))

    @property
    def max_prompt_tokens(self) -> int:
        return self._members[0].max_prompt_tokens

    @property
    def cache_block_tokens(self) -> int:
        return self._members[0].cache_block_tokens

    def encode(self, prompt: Prompt) -> list[int]:
        ids = self._members[0].encode(prompt)
        return ids if self._portable or only_ids(prompt) else Encoded(ids, prompt)

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]:
        ids = self._members[0].encode_prefix(messages)
        return ids if self._portable else Encoded(ids, messages, prefix=True)

    async def reset_prefix_cache(self) -> None:
        """Forget all cached prompts; benchmarks do this between arms."""
        for member, slots in zip(self._members, self._slots, strict=True):
            slots.prefixes.forget()
            await cast(Any, member).reset_prefix_cache()

    async def generate(
        self, prompt: Prompt, sampling: Sampling, *, priority: Priority = DEMAND
    ) -> AsyncGenerator[Delta, None]:
        delivered = Delivered(self._label, sampling)
        for left in range(RESUBMISSIONS, -1, -1):
            try:
                async with self._for(prompt, priority) as (member, begin):
                    asked = self._said_to(member, prompt)
                    async with contextlib.aclosing(member.generate(asked, sampling, priority=priority)) as deltas:
                        async for delta in deltas:
                            begin()
                            rest = delivered.beyond(delta)
                            if rest is not None:
                                yield rest
                return
            except EngineLost as lost:
                self._check(lost, left, priority)
                delivered.begin_again(lost)

    async def prefill(self, token_ids: TokenIds, *, priority: Priority = DEMAND) -> int:
        """What a lost engine had warmed is lost with it: then no token can be reused."""
        try:
            async with self._for(token_ids, priority) as (member, _):
                return await member.prefill(cast(TokenIds, self._said_to(member, token_ids)), priority=priority)
        except EngineLost:
            return 0

    @contextlib.asynccontextmanager
    async def _for(
        self, prompt: Prompt, priority: Priority
    ) -> AsyncGenerator[tuple[LLMEngine, Callable[[], None]], None]:
        """The member that serves a prompt, and what to call with each piece of its answer."""
        numbers: TokenIds = ()
        only = self._slots[0] if only_ids(prompt) and not self._portable else None
        if len(self._members) > 1:
            known = isinstance(prompt, Encoded) or only_ids(prompt)
            numbers = cast(TokenIds, prompt if known else self._members[0].encode(prompt))
        async with self._entrance.place(priority, numbers, only=only) as turn:
            try:
                yield self._member(turn.slots), turn.begin
            except EngineLost:
                turn.slots.prefixes.forget()
                raise

    def _said_to(self, member: LLMEngine, prompt: Prompt) -> Prompt:
        """The same prompt in words that this member understands."""
        if len(self._members) == 1 or not isinstance(prompt, Encoded):
            return prompt
        return member.encode_prefix(cast(Sequence[ChatMessage], prompt.source)) if prompt.prefix else prompt.source


class Delivered:
    """What a caller has got of an answer, so that an answer begun again goes on where it was."""

    def __init__(self, label: str, sampling: Sampling) -> None:
        self._label = label
        self._repeats = sampling.temperature == 0
        self._text = ""
        self._tokens = 0
        self._chars_seen = 0
        """Of the answer as it comes now."""
        self._tokens_seen = 0

    def begin_again(self, lost: EngineLost) -> None:
        """Raises if the caller has a part already that another answer may contradict."""
        if (self._text or self._tokens) and not self._repeats:
            raise EngineClosed(
                f"{self._label} was lost in the middle of an answer that was sampled: {lost.what}",
                "make the call again; at temperature 0 Accel does that itself",
            ) from lost
        self._chars_seen = self._tokens_seen = 0

    def beyond(self, delta: Delta) -> Delta | None:
        """What of the next piece is new; None if nothing is. Raises EngineClosed if it contradicts the old."""
        if delta.error is not None:
            return delta
        start = self._chars_seen
        self._chars_seen += len(delta.text)
        self._tokens_seen += delta.tokens
        known = self._text[start : self._chars_seen]
        ends_early = delta.finish_reason is not None and self._chars_seen < len(self._text)
        if ends_early or not delta.text.startswith(known):
            raise EngineClosed(
                f"{self._label} was lost in the middle of an answer, and gave another one when asked again.",
                "make the call again; dtype='float32' makes answers at temperature 0 repeat",
            )
        text, tokens = delta.text[len(known) :], max(0, self._tokens_seen - self._tokens)
        if not text and not tokens and delta.finish_reason is None:
            return None
        self._text += text
        self._tokens = max(self._tokens, self._tokens_seen)
        return delta if len(text) == len(delta.text) else replace(delta, text=text, tokens=tokens)


def _tokens(texts: Sequence[Any]) -> int:
    return sum(tokens_of(text) for text in texts if isinstance(text, str))


class ReplicatedEmbedding(_Replicas[EmbeddingEngine]):
    @property
    def dimension(self) -> int:
        return self._members[0].dimension

    async def embed(self, texts: Sequence[str], *, priority: Priority = DEMAND) -> list[Vector | RequestError]:
        return await self._call(lambda member: member.embed(texts, priority=priority), priority, _tokens(texts))


class ReplicatedReranker(_Replicas[RerankEngine]):
    async def rerank(
        self, query: str, texts: Sequence[str], *, priority: Priority = DEMAND
    ) -> list[float | RequestError]:
        size = _tokens(texts) + len(texts) * _tokens([query])
        return await self._call(lambda member: member.rerank(query, texts, priority=priority), priority, size)


class ResubmittingStore(_Replicas[VectorStore]):
    """One store, whose reads are made again if it is lost and comes back. Writes are not: nobody knows whether they
    were carried out."""

    async def search(
        self, vectors: Sequence[Vector], k: int, *, where: Metadata | None = None, priority: Priority = DEMAND
    ) -> list[list[Hit] | RequestError]:
        return await self._call(lambda store: store.search(vectors, k, where=where, priority=priority), priority)

    async def get(self, ids: Sequence[str]) -> list[Record]:
        return await self._call(lambda store: store.get(ids), DEMAND)

    async def count(self, *, where: Metadata | None = None) -> int:
        return await self._call(lambda store: store.count(where=where), DEMAND)

    async def ingest(self, records: Sequence[Record]) -> None:
        await self._write(self._members[0].ingest(records))

    async def delete(self, ids: Sequence[str] | None = None, *, where: Metadata | None = None) -> int:
        return await self._write(self._members[0].delete(ids, where=where))

    async def create_index(self) -> None:
        await self._write(cast(Any, self._members[0]).create_index())

    async def _write(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except EngineLost as lost:
            raise EngineClosed(
                f"{self._label} was lost during a write; nobody knows whether it was carried out: {lost.what}",
                "look what is there, or write the same records again: that does no harm",
            ) from lost


_GROUPS: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (LLMEngine, ReplicatedLLM),
    (EmbeddingEngine, ReplicatedEmbedding),
    (RerankEngine, ReplicatedReranker),
)


def replicated(members: Sequence[Any], label: str) -> Engine:
    """Engines of one kind as one engine of that kind. Raises ConfigurationError for several stores: each would hold
    other records."""
    for protocol, group in _GROUPS:
        if isinstance(members[0], protocol):
            return cast(Engine, group(members, label))
    if isinstance(members[0], VectorStore) and len(members) == 1:
        return ResubmittingStore(members, label)
    raise ConfigurationError(f"{label} can't be shared out among {len(members)} replicas.", "give it one replica")
