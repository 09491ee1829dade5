"""The engine protocols, forwarded to an actor."""

import math
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import cast

from accel.engine import (
    DEMAND,
    ChatMessage,
    Delta,
    Engine,
    Hit,
    Metadata,
    Priority,
    Prompt,
    Record,
    Sampling,
    TokenIds,
    Vector,
)
from accel.engine.profile import Profile
from accel.engine.slots import Room
from accel.errors import RequestError
from accel_local.replicas import Encoded, only_ids
from accel_ray.encoding import Encoder, local_encoder
from accel_ray.remote import Replica, blocking

AHEAD = 0.125
"""Of the places of an engine, requests that wait at it: a message takes some milliseconds."""


class _Remote:
    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._profile = replica.opened.known_profile

    async def start(self) -> None:
        """It is open."""

    async def close(self) -> None:
        """It goes on for others; `Session.leave` ends what was ours alone."""

    @property
    def load(self) -> float:
        return self._replica.load

    @property
    def room(self) -> Room | None:
        """What the engine takes, and so much more that it has something to begin with while a reply is on its way."""
        room = self._replica.opened.room
        return room._replace(places=room.places + math.ceil(AHEAD * room.places)) if room is not None else None

    def on_back(self, callback: Callable[[], None]) -> None:
        """Have `callback` called whenever the engine is there again after a loss."""
        self._replica.on_back = callback

    @property
    def known_profile(self) -> Profile | None:
        return self._profile

    async def profile(self) -> Profile:
        self._profile = cast(Profile, await self._replica.call("profile"))
        return self._profile


class RemoteLLM(_Remote):
    def __init__(self, replica: Replica, encoder: Encoder | None) -> None:
        super().__init__(replica)
        self._encoder = encoder

    @property
    def portable_ids(self) -> bool:
        """Whether ids are the model's own; a simulated one gives them out as it meets words."""
        return self._encoder is not None

    @property
    def max_prompt_tokens(self) -> int:
        return self._replica.opened.max_prompt_tokens

    @property
    def cache_block_tokens(self) -> int:
        return self._replica.opened.cache_block_tokens

    def encode(self, prompt: Prompt) -> list[int]:
        if self._encoder is not None:
            return self._encoder.encode(prompt)
        if only_ids(prompt):
            return list(cast(TokenIds, prompt))
        return Encoded(self._replica.ask("encode", prompt), prompt)

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]:
        if self._encoder is not None:
            return self._encoder.encode_prefix(messages)
        return Encoded(self._replica.ask("encode_prefix", messages), messages, prefix=True)

    async def reset_prefix_cache(self) -> None:
        await self._replica.call("reset_prefix_cache")

    async def generate(
        self, prompt: Prompt, sampling: Sampling, *, priority: Priority = DEMAND
    ) -> AsyncGenerator[Delta, None]:
        said = prompt.source if isinstance(prompt, Encoded) and not prompt.prefix else prompt
        pinned = not self.portable_ids and (only_ids(said) or isinstance(said, Encoded))
        batches = self._replica.stream(_plain(said), sampling, priority=priority, pinned=pinned)
        try:
            async for batch in batches:
                for delta in batch:
                    yield delta
        except RequestError as error:
            yield Delta("", 0, "error", error=error)
        finally:
            await batches.aclose()

    async def prefill(self, token_ids: TokenIds, *, priority: Priority = DEMAND) -> int:
        if isinstance(token_ids, Encoded) and token_ids.prefix:
            options, ids = {"messages": token_ids.source}, []
        else:
            options, ids = {}, list(token_ids)
        args = () if options else (ids,)
        pinned = bool(args) and not self.portable_ids
        warmed: int = await self._replica.call("prefill", *args, priority=priority, pinned=pinned, **options)
        return warmed


class RemoteEmbedding(_Remote):
    @property
    def dimension(self) -> int:
        return self._replica.opened.dimension

    async def embed(self, texts: Sequence[str], *, priority: Priority = DEMAND) -> list[Vector | RequestError]:
        vectors: list[Vector | RequestError] = await self._replica.call("embed", list(texts), priority=priority)
        return vectors


class RemoteReranker(_Remote):
    async def rerank(
        self, query: str, texts: Sequence[str], *, priority: Priority = DEMAND
    ) -> list[float | RequestError]:
        scores: list[float | RequestError] = await self._replica.call("rerank", query, list(texts), priority=priority)
        return scores


class RemoteStore(_Remote):
    async def ingest(self, records: Sequence[Record]) -> None:
        await self._replica.call("ingest", list(records))

    async def search(
        self, vectors: Sequence[Vector], k: int, *, where: Metadata | None = None, priority: Priority = DEMAND
    ) -> list[list[Hit] | RequestError]:
        found: list[list[Hit] | RequestError] = await self._replica.call(
            "search", list(vectors), k, where=where, priority=priority
        )
        return found

    async def get(self, ids: Sequence[str]) -> list[Record]:
        found: list[Record] = await self._replica.call("get", list(ids))
        return found

    async def delete(self, ids: Sequence[str] | None = None, *, where: Metadata | None = None) -> int:
        gone: int = await self._replica.call("delete", None if ids is None else list(ids), where=where)
        return gone

    async def count(self, *, where: Metadata | None = None) -> int:
        number: int = await self._replica.call("count", where=where)
        return number

    async def create_index(self) -> None:
        await self._replica.call("create_index")


async def proxy(replica: Replica) -> Engine:
    """The opened engine of an actor."""
    match replica.opened.family:
        case "llm":
            encoder = await blocking(lambda: local_encoder(replica.config, replica.opened.probes))
            return RemoteLLM(replica, encoder)
        case "embedding":
            return RemoteEmbedding(replica)
        case "reranking":
            return RemoteReranker(replica)
        case "store":
            return RemoteStore(replica)


def _plain(prompt: Prompt) -> Prompt:
    return prompt if isinstance(prompt, str) else list(prompt)  # type: ignore[return-value]
