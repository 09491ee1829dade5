"""A prefix cache that tests fill: what is in it, what is being computed, and who is told of changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from accel.engine.beginnings import Reuse


class ToldCache:
    def __init__(self) -> None:
        self.held: set[Hashable] = set()
        self.coming: set[Hashable] = set()
        self._watching: list[Callable[[Hashable], None]] = []

    def watch(self, changed: Callable[[Hashable], None]) -> None:
        self._watching.append(changed)

    def tell(self, block: Hashable) -> None:
        for changed in self._watching:
            changed(block)

    def reuse(self, blocks: Sequence[Hashable]) -> Reuse:
        found = next((n for n, block in enumerate(blocks) if block not in self.held), len(blocks))
        following = blocks[found] if found < len(blocks) else None
        return Reuse(found, following, following in self.coming, len(blocks))
