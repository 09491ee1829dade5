"""Which values each recipient of data has seen in this run (invariant 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

from ..process import forks
from ..text.values import Opaque, Tree, leaves


def texts_sent(tree: Tree) -> list[str]:
    """What of an input says something of anybody."""
    return [str(leaf) for _, leaf in leaves(tree) if leaf is not None and not isinstance(leaf, Opaque | bool)]


class Ledger:
    """Texts sent to and received from each recipient."""

    def __init__(self) -> None:
        self._seen: defaultdict[Hashable, list[str]] = defaultdict(list)
        self._lock = forks.lock()

    def add(self, endpoint: Hashable, tree: Tree) -> None:
        texts = texts_sent(tree)
        with self._lock:
            self._seen[endpoint].extend(texts)

    def knows(self, endpoint: Hashable, values: Iterable[str]) -> bool:
        """Whether every value is part of something the endpoint already has."""
        with self._lock:
            seen = self._seen.get(endpoint, ())
            return all(not value.strip() or any(value in text for text in seen) for value in values)
