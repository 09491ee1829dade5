"""What comes of a call: a result, an error or nothing; and who waits for that."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

from ...process import forks
from ...text.copies import Rows
from .waiting import Woken, wake

_lock = forks.lock()
"""Of all of them: most calls are waited for by nobody, and a lock each is most of what they would be made of."""


class Outcome:
    """Comes once; what comes later is ignored."""

    __slots__ = ("_error", "_value", "_waiting", "dropped", "over")

    def __init__(self) -> None:
        self.over = False
        self.dropped = False
        """It is over, and nothing came."""
        self._value: Any = None
        self._error: BaseException | None = None
        self._waiting: Sequence[Woken] = ()

    def give(self, value: Any) -> None:
        self._end(value, None, dropped=False)

    def fail(self, error: BaseException) -> None:
        self._end(None, error, dropped=False)

    def drop(self) -> None:
        self._end(None, None, dropped=True)

    def _end(self, value: Any, error: BaseException | None, dropped: bool) -> None:
        with _lock:
            if self.over:
                return
            self._value, self._error, self.dropped, self.over = value, error, dropped, True
            waiting, self._waiting = self._waiting, ()
        wake(waiting)

    def result(self) -> Any:
        """Of one that is over. Raises the error; CancelledError if nothing came."""
        if self._error is not None:
            raise self._error
        if self.dropped or not self.over:
            raise CancelledError
        return self._value.lists() if type(self._value) is Rows else self._value

    def wake(self, woken: Woken) -> None:
        """Have this resolved when it is over."""
        with _lock:
            if not self.over:
                self._waiting = (*self._waiting, woken)
                return
        wake((woken,))
