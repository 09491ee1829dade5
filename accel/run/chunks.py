"""What a call has streamed so far, and who waits for more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..process import forks
from .waiting import Woken, wake

Aside = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A call of a callback manager: method and arguments."""

growing = forks.lock()
"""Held while any of it grows, or somebody looks how far that is."""


class Chunks:
    """Of one call. `delta`: the text that a chunk adds, where its method says so."""

    def __init__(self, delta: Callable[[Any], str] | None) -> None:
        self.delta = delta
        self.parts: list[Any] = []
        self.asides: dict[int, list[Aside]] = {}
        """What an early stream told the stand-in of its callback manager, by the number of the chunk it came with."""
        self.told = False
        """That there are more has been posted, and not been looked at yet."""
        self._waiting: list[Woken] = []

    @property
    def text(self) -> str:
        return "".join(map(self.delta, list(self.parts))) if self.delta is not None else ""

    def feed(self, chunk: Any) -> None:
        with growing:
            self.parts.append(chunk)
            self._wake()

    def note_asides(self, manager: Any) -> None:
        """Before the next chunk is fed, and after the last one."""
        said = manager.take() if hasattr(type(manager), "take") else []
        if said:
            self.asides[len(self.parts)] = said

    def beyond(self, position: int, over: Callable[[], bool]) -> Woken | None:
        """None if there is another chunk, or no more will come; else what to wait for."""
        with growing:
            if len(self.parts) > position or over():
                return None
            woken = Woken()
            self._waiting.append(woken)
            return woken

    def close(self) -> None:
        """There are no more."""
        with growing:
            self._wake()

    def forget_waiting(self) -> None:
        """Those who wait are not here (`gone`)."""
        self._waiting = []

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        wake(waiting)
