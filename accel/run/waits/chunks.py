"""What a call has streamed so far, and who waits for more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...parts.methods.methods import Method
from ...process import forks
from ...text.extract import Open, Partial
from ...text.turns import CALLS, CONTENT
from ...text.values import Tree
from .waiting import Woken, wake

Aside = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A call of a callback manager: method and arguments."""

_NONE: Mapping[int, list[Aside]] = {}
growing = forks.lock()
"""Held while any of it grows, or somebody looks how far that is."""


class Chunks:
    """Of one call. `method`: says what a chunk adds."""

    __slots__ = ("_waiting", "asides", "method", "parts", "told")

    def __init__(self, method: Method) -> None:
        self.method = method
        self.parts: list[Any] = []
        self.asides: Mapping[int, list[Aside]] = _NONE
        """What an early call told the stand-in of its callback manager, by the number of the chunk it came with."""
        self.told = False
        """That there are more has been posted, and not been looked at yet."""
        self._waiting: Sequence[Woken] = ()

    @property
    def known(self) -> dict[str, Tree]:
        """What is known of the output."""
        parts = list(self.parts)
        closed, said = self.method.closed(parts), Partial("".join(map(self.method.added, parts)))
        return {CONTENT: said, CALLS: Open(closed)} if closed else {CONTENT: said}

    def feed(self, chunk: Any) -> None:
        with growing:
            self.parts.append(chunk)
            self._wake()

    def note_asides(self, manager: Any) -> None:
        """Before the next chunk is fed, and at the end."""
        said = manager.take() if hasattr(type(manager), "take") else []
        if said:
            self.asides = {**self.asides, len(self.parts): said}

    def beyond(self, position: int, over: Callable[[], bool]) -> Woken | None:
        """None if there is another chunk, or no more will come; else what to wait for."""
        with growing:
            if len(self.parts) > position or over():
                return None
            woken = Woken()
            self._waiting = (*self._waiting, woken)
            return woken

    def close(self) -> None:
        """There are no more."""
        with growing:
            self._wake()

    def forget_waiting(self) -> None:
        """Those who wait are not here (`gone`)."""
        self._waiting = ()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, ()
        wake(waiting)
