"""Which blocks of a KV cache go first: those that nobody is known to need, then those that are needed last.

Of a block is known whether a prompt that waits begins with it, and how many calls later the runs that had it need it
again (`Priority.next_use`): the nearest of all that share it counts. Of equals the least recently used goes first. What
was to be used again, and wasn't while the whole cache was turned over, goes before all others. Synchronous, without a
clock.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable

UNKNOWN = 1 << 30
"""Steps until a block is used again of which nobody knows."""


class Idle:
    """Blocks that can be found and that no request holds."""

    def __init__(self, blocks: int | None, by_next_use: bool) -> None:
        """blocks: of the whole cache; None for any number. by_next_use: else the least recently used goes first."""
        self._patience = blocks
        self._by_next_use = by_next_use
        self._lines: dict[int, OrderedDict[int, int]] = {}
        """By the steps until they are used again, in the order in which they became idle, and how many had gone."""
        self._steps: dict[int, int] = {}
        self._again: dict[int, dict[str, int]] = {}
        """By block, the runs that need it again, and in how many steps."""
        self._wanted: Counter[int] = Counter()
        self._gone = 0

    def __contains__(self, block: int) -> bool:
        return block in self._steps

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, block: int) -> None:
        steps = self._steps[block] = self._next_use(block)
        self._lines.setdefault(steps, OrderedDict())[block] = self._gone

    def remove(self, block: int) -> None:
        """It is held."""
        steps = self._steps.pop(block, None)
        if steps is not None:
            del self._lines[steps][block]

    def pop(self) -> int:
        """The one that goes."""
        lines = {steps: line for steps, line in self._lines.items() if line}
        late = [steps for steps, line in lines.items() if self._overdue(next(iter(line.values())))]
        block, _ = lines[max(late or lines)].popitem(last=False)
        del self._steps[block]
        self._again.pop(block, None)
        self._gone += 1
        return block

    def clear(self) -> list[int]:
        """Those that were there."""
        gone = list(self._steps)
        for block in gone:
            self._again.pop(block, None)
        self._steps.clear()
        self._lines.clear()
        return gone

    def expect(self, blocks: Iterable[int], run: str, steps: int) -> None:
        """A run needs these blocks, which are held, again in so many calls; 0: never, as far as is known."""
        for block in blocks if self._by_next_use else ():
            if steps:
                self._again.setdefault(block, {})[run] = steps
            elif (runs := self._again.get(block)) is not None:
                runs.pop(run, None)

    def want(self, blocks: Iterable[int], change: int) -> None:
        """So many more prompts that wait begin with these blocks."""
        for block in blocks if self._by_next_use else ():
            self._wanted[block] += change
            if not self._wanted[block]:
                del self._wanted[block]
            if block in self._steps and self._next_use(block) != self._steps[block]:
                self.remove(block)
                self.add(block)

    def _next_use(self, block: int) -> int:
        if block in self._wanted:
            return 0
        return min(self._again.get(block, {}).values(), default=UNKNOWN)

    def _overdue(self, gone: int) -> bool:
        return self._patience is not None and self._gone - gone > self._patience
