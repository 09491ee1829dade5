"""Who follows a run."""

from __future__ import annotations

from typing import Protocol

from ..graph.rules import Reason
from ..text.evaluate import Index
from ..text.values import Tree
from ..trace.record import Visit
from .call import Call


class Follower(Protocol):
    """What a run tells of what happens in it, and what issues early calls for that."""

    reasons: dict[str, Reason | None]
    """By node: the last reason why it was held, None if it was issued."""

    def start(self) -> None: ...
    def publish(self, node: str, place: Index, value: Tree) -> None: ...
    def entered(self, visit: Visit) -> None: ...
    def left(self, visit: Visit, again: bool) -> None: ...
    def demanded(self, call: Call) -> None: ...
    def grown(self, call: Call) -> None: ...
    def finished(self, call: Call) -> None: ...
    def issue_ready(self) -> None: ...
