"""What is around a program's components: tenants, caches, rate limiters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from langchain_core.caches import InMemoryCache as ModelCache
from langchain_core.globals import set_llm_cache
from langchain_core.rate_limiters import BaseRateLimiter, InMemoryRateLimiter
from langgraph.cache.memory import InMemoryCache as NodeCache
from langgraph.checkpoint.memory import InMemorySaver

from compat_tests.answers import MARK
from compat_tests.fakes import TENANTS, Parts
from compat_tests.watch import Watch


@dataclass(eq=False)
class Caller:
    """An object of each request's own: two of them are never equal, but their fields may be."""

    tenant: str
    request_id: str


CALLER: ContextVar[Caller] = ContextVar("caller")


@dataclass(frozen=True)
class Setting:
    """Where a program runs. Sources that use tenants' own components say so by `tenancy`."""

    tenancy: str = "one"
    """one: everything is everybody's. context: one object for all, a request's tenant is in a ContextVar. scopes: an
    object per tenant, each with a plan scope. fresh: the same, accelerated anew for each request."""
    cache: str = "none"  # none | model | global | nodes
    limited: str = ""
    """The model that has a rate limiter, and which kind: "local counted", "remote timed"."""
    pauses: bool = False
    callers: str = "none"
    """What the program may ask about the request's caller. none: nothing. variable: an object in a ContextVar. runtime:
    one in LangGraph's runtime context."""
    numbered: bool = False
    """The input has a number for each request: one that is made twice differs in that alone."""

    @property
    def scoped(self) -> bool:
        return self.tenancy in ("scopes", "fresh")


class Counted(BaseRateLimiter):
    """Permits everything, and counts."""

    def __init__(self, unused: list[str]) -> None:
        self.unused = unused

    def acquire(self, *, blocking: bool = True) -> bool:
        self.unused.append("permission")
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        return self.acquire(blocking=blocking)


class Timed(InMemoryRateLimiter):
    """LangChain's own, so generous that nobody waits for long; counts, too."""

    def __init__(self, unused: list[str]) -> None:
        super().__init__(requests_per_second=1e6, check_every_n_seconds=1e-4, max_bucket_size=1e6)
        self.unused = unused

    def acquire(self, *, blocking: bool = True) -> bool:
        permitted = super().acquire(blocking=blocking)
        self.unused.extend(["permission"] * permitted)
        return permitted

    async def aacquire(self, *, blocking: bool = True) -> bool:
        permitted = await super().aacquire(blocking=blocking)
        self.unused.extend(["permission"] * permitted)
        return permitted


class Surroundings:
    """Of one arm, with caches and limiters of its own."""

    def __init__(self, setting: Setting, parts: Parts, watch: Watch) -> None:
        self.setting, self.parts, self.watch = setting, parts, watch
        self.model_cache = ModelCache()
        self.node_cache: NodeCache[Any] = NodeCache()
        self.asked: set[tuple[str, str]] = set()
        """Components and texts of earlier runs of the plain program."""
        if setting.cache == "model":
            parts.local.cache = parts.remote.cache = self.model_cache
        if setting.limited:
            name, kind = setting.limited.split()
            unused = watch.limits[name] = []
            getattr(parts, name).rate_limiter = Timed(unused) if kind == "timed" else Counted(unused)

    def namespace(self, tenant: str) -> dict[str, object]:
        """What the program's source finds in its module, next to its components."""
        options: dict[str, object] = {}
        if self.setting.pauses:
            options["checkpointer"] = InMemorySaver()
        if self.setting.cache == "nodes":
            options["cache"] = self.node_cache
        own = {"own": self.parts.models.get(tenant), "vault": self.parts.vaults.get(tenant)}
        return {"compile_options": options, "model_of": self.parts.model_of, **own}

    @property
    def tenants(self) -> str:
        """One graph for each of them; an empty name for everybody's."""
        return TENANTS if self.setting.scoped else ""

    @contextmanager
    def entered(self) -> Iterator[None]:
        """LangChain's global cache is of the process, and each arm has its own."""
        if self.setting.cache == "global":
            set_llm_cache(self.model_cache)
        try:
            yield
        finally:
            if self.setting.cache == "global":
                set_llm_cache(None)

    def caches(self, component: str, text: str) -> bool:
        """Whether a cache answers instead of a component, or instead of the node that would ask it."""
        if self.setting.cache == "nodes":
            kept = self.node_cache._cache  # nothing, where none of the nodes is cached
            return bool(kept) and (component, text) in self.asked and MARK.search(text) is not None  # else any may ask
        models = "local remote abroad gated follower tenant scripted own-a own-b".split()
        asked = json.dumps(text.rpartition("human: ")[2])
        return component in {"model": ["local", "remote"], "global": models}.get(self.setting.cache, []) and any(
            asked in str(key) for key in self.model_cache._cache
        )

    def stored(self) -> dict[str, object]:
        """What caches hold. Nodes side by side are cached in any order, and a child writes down what it finds."""
        nodes = {str(space): sorted(keys) for space, keys in sorted(self.node_cache._cache.items())}
        return {"models": sorted(self.model_cache._cache), "nodes": nodes}
