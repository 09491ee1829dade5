"""Which of several equal engines serves a request: the one that has most of its prompt in the cache, unless it is too
busy; else the least loaded.

Sending a session where its prefix lies saves that prefill, but alone it would send everybody to one engine. So affinity
holds only among the engines whose load is near the least (as in SGLang's cache-aware router, and consistent hashing
with bounded loads). Synchronous, without a clock; used by every host.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence

from .beginnings import Reuse

SLACK = 4.0
"""Requests that an engine may have more than the least loaded one and still be chosen for a prefix it holds."""
KEPT_BLOCKS = 65_536
"""Blocks remembered per engine; the least recently used are forgotten first, as engines do."""


def choose(loads: Sequence[float], held: Sequence[int] = (), *, slack: float = SLACK) -> int:
    """The index of the engine to take.

    loads: requests that each engine has; infinite for one that can't serve now. held: tokens of this request's prompt
    that each has in its cache, if known. Ties go to the least loaded, then to the first. Raises ValueError for none.
    """
    least = min(loads)
    near = [index for index, load in enumerate(loads) if load <= least + slack]
    return min(near, key=lambda index: (-held[index] if held else 0, loads[index], index))


def may_take(load: float, held: int, others: Iterable[tuple[float, int]], *, slack: float = SLACK) -> bool:
    """Whether an engine that has room may take a request that waits for it and for others: none of those, as far as
    they have room, too, has more of its prompt and isn't much busier, or has as much and is much less busy. So an idle
    engine takes over what a busy one would be better for.

    load, held: of the engine; others: the same of each other one.
    """
    return not any(
        (has > held and busy <= load + slack) or (has == held and busy + slack < load) for busy, has in others
    )


class Prefixes:
    """The prompts that one engine has been given lately, as chains of whole blocks. Not thread-safe."""

    def __init__(self, block_tokens: int, kept_blocks: int = KEPT_BLOCKS) -> None:
        """block_tokens: granularity of the engine's prefix cache; 0: it has none, and nothing is ever held."""
        self._block_tokens = block_tokens
        self._kept_blocks = kept_blocks
        self._chains: OrderedDict[int, None] = OrderedDict()
        self._watching: list[Callable[[Hashable], None]] = []

    def watch(self, changed: Callable[[Hashable], None]) -> None:
        """Have it called with each block that comes or goes."""
        self._watching.append(changed)

    def _tell(self, block: int) -> None:
        for changed in self._watching:
            changed(block)

    def held(self, token_ids: Sequence[int]) -> int:
        """How many tokens of a prompt the engine should find in its cache."""
        return self.reuse(self.blocks(token_ids)).found * self._block_tokens

    def reuse(self, blocks: Sequence[int]) -> Reuse:
        """What the engine should find of a prompt. What it is computing counts: it can be shared as it comes."""
        found = next((n for n, block in enumerate(blocks) if block not in self._chains), len(blocks))
        return Reuse(found, blocks[found] if found < len(blocks) else None, blocks=len(blocks))

    def add(self, token_ids: Sequence[int]) -> None:
        """The engine is given this prompt."""
        self.note(self.blocks(token_ids))

    def note(self, blocks: Sequence[int]) -> None:
        """As `add`."""
        for chain in blocks:
            if chain in self._chains:
                self._chains.move_to_end(chain)
            else:
                self._chains[chain] = None
                self._tell(chain)
        while len(self._chains) > self._kept_blocks:
            self._tell(self._chains.popitem(last=False)[0])

    def forget(self) -> None:
        """The engine's cache is empty again."""
        gone, self._chains = self._chains, OrderedDict()
        for chain in gone:
            self._tell(chain)

    def needs(self, tokens: float) -> int:
        """Blocks, for so many tokens."""
        return math.ceil(tokens / self._block_tokens) if self._block_tokens else 0

    def blocks(self, token_ids: Sequence[int]) -> list[int]:
        """Each block by what it holds and all that precedes it."""
        block, chain = self._block_tokens, 0
        chains = []
        for end in range(block, len(token_ids) + 1, block) if block else ():
            chain = hash((chain, *token_ids[end - block : end]))
            chains.append(chain)
        return chains
