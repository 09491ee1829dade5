"""What waits for simulated language models: requests, and the line in which those of batches wait for equal engines."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from accel.engine import Delta, Priority
from accel.engine.batching import Waiting
from accel.engine.replicas import may_take

from .kv_cache import KVCache, Place


class Taker(Protocol):
    """An engine that takes from a line."""

    kv_cache: KVCache
    is_full: bool

    @property
    def load(self) -> int: ...

    def wake(self) -> None: ...

    def _leave(self, request: Request, place: Place) -> None: ...


@dataclass(eq=False, slots=True)
class Request:
    ids: list[int]
    pieces: list[str]
    finish: str
    priority: Priority
    blocks: list[int]
    """Of the prompt, as the KV cache names them."""
    deltas: asyncio.Queue[Delta] = field(default_factory=asyncio.Queue)
    engine: Taker | None = None
    """That serves it,"""
    place: Place | None = None
    """and where it is in its KV cache, while it runs."""
    done: int = 0
    """Tokens in the KV cache."""
    produced: int = 0
    gone: bool = False
    wants: bool = False
    """Whether it waits, and is of a batch: what it begins with is kept."""

    @property
    def cached(self) -> int:
        return self.place.found_tokens if self.place is not None else 0


class Line:
    """The requests of batches that several equal engines take from, each when it has room."""

    def __init__(self) -> None:
        self.waiting: Waiting[Request] = Waiting()
        self.engines: list[Taker] = []
        self.changes = 0
        """How often there has come something new to choose from."""

    def wake(self) -> None:
        for engine in self.engines:
            engine.wake()

    def is_for(self, engine: Taker, request: Request) -> bool:
        """Whether no other one that has room should rather serve it: one that has more of it, or much less to do."""
        others = [one for one in self.engines if one is not engine and not one.is_full]
        held = engine.kv_cache.holds(request.blocks)
        return may_take(engine.load, held, [(one.load, one.kv_cache.holds(request.blocks)) for one in others])
