"""Early calls of loops whose place the program took for another call: it may make them next, as what it goes through
may begin with more than is known."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from ..calls.call import Call
from .outlook import Outlook

MOST = 4
"""Of a loop. Of more than these the first one is given up: what the program goes through is another thing."""


class Displaced:
    """They have no place; the program's own call finds them by its key."""

    def __init__(self, drop: Callable[[Call], None]) -> None:
        self._drop = drop
        self._of: dict[str, deque[Call]] = {}
        """By node, in their order."""

    def note(self, state: Outlook, call: Call) -> None:
        """The program took its place."""
        if not state.node.many:
            self._drop(call)
            return
        held = self._of.setdefault(state.node.name, deque())
        held.append(call)
        while len(held) > MOST:
            self._give_up(held.popleft())

    def end(self, states: Mapping[str, Outlook]) -> None:
        """The program makes no more calls in the loops that are over."""
        for name in [name for name in self._of if states[name].frozen]:
            for call in self._of.pop(name):
                self._give_up(call)

    def _give_up(self, call: Call) -> None:
        if call.bound is None and not call.demanded:  # it has been found, or has another place
            self._drop(call)
