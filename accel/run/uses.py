"""Tools that the program uses and that are no components: nobody vouches for them. Their calls go on as without Accel;
that they were made, and how long they took, is kept for reports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

from ..process.clock import now_s
from ..process.coroutines import around
from ..trace.record import Use
from ..trace.sites import call_site
from .scope import scope

MAX_USES = 1_000
"""Of a run."""


def used(wrapped: Callable[..., Any], tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a tool was called, by wrapt's signature."""
    if scope.get() is None:
        return wrapped(*args, **kwargs)
    with _noted(tool, call_site()):
        return wrapped(*args, **kwargs)


def aused(wrapped: Callable[..., Any], tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same of a coroutine."""
    awaited = wrapped(*args, **kwargs)
    return awaited if scope.get() is None else around(_awaited(awaited, tool, call_site()), awaited)


async def _awaited(awaited: Awaitable[Any], tool: Any, site: str) -> Any:
    with _noted(tool, site):
        return await awaited


@contextmanager
def _noted(tool: Any, frames: str) -> Generator[None, None, None]:
    here = scope.get()
    if here is None or here.early or here.run.closed or len(here.run.trace.uses) >= MAX_USES:
        yield
        return
    said = getattr(tool, "metadata", None)  # an object with a name, or a dict of the user's
    name = str(getattr(tool, "name", "") or getattr(said, "name", "") or type(tool).__name__)
    trace, site = here.run.trace, f"|{type(tool).__qualname__}|{frames or here.called}"
    use = Use(tool, name, site, here.within, here.visit, now_s())
    trace.uses.append(use)
    try:
        yield
    finally:
        use.ended_s = now_s()
