"""The KV cache of a simulated language model: blocks of tokens, shared by equal beginnings, up to a capacity.

A request takes its place for prompt and answer when it begins, as if its length were known, and keeps it until it ends;
so nothing that runs is ever sent back to wait. Whole blocks of prompts stay after their request as long as nobody needs
the room; which of those goes first is the eviction's choice. Synchronous, without a clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from accel.engine.beginnings import Reuse, worth
from accel.errors import ConfigurationError

from .idle import Idle

NEXT_USE, LEAST_RECENT, AT_ONCE = "steps to next use", "least recently used", "at once"
EVICTIONS = (NEXT_USE, LEAST_RECENT, AT_ONCE)
"""Which block goes first, of those that no request holds (`accel_sim.idle`); "at once": all of them, so that only
requests that run at the same time share."""


@dataclass(eq=False, slots=True)
class Place:
    """What one request holds. `found_tokens` of its prompt were in the cache when it began."""

    blocks: list[int]
    """The whole blocks of its prompt, each named by all tokens up to its end."""
    found_tokens: int
    shared: int
    """The first of `blocks`, which are in the cache."""
    own: int
    """Blocks that nobody else can find: of the prompt's rest and of the answer."""


class KVCache:
    def __init__(self, capacity_tokens: int, block_tokens: int, eviction: str = NEXT_USE) -> None:
        """capacity_tokens: 0 for any number. Raises ConfigurationError for an unknown eviction, or no room for two
        tokens."""
        if eviction not in EVICTIONS:
            raise ConfigurationError(f"There is no eviction {eviction!r}.", f"one of {', '.join(EVICTIONS)}")
        if capacity_tokens and capacity_tokens // block_tokens * block_tokens < 2:
            raise ConfigurationError(
                f"A KV cache of {capacity_tokens} tokens has no room for a prompt and its answer.",
                f"a multiple of {block_tokens}, the tokens of a block, or 0 for any number",
            )
        self._block = block_tokens
        self._capacity = capacity_tokens // block_tokens if capacity_tokens else None
        self._eviction = eviction
        self._held: Counter[int] = Counter()
        """Blocks that can be found, by how many requests hold them."""
        self._idle = Idle(self._capacity, eviction == NEXT_USE)
        """Blocks that can be found and nobody holds."""
        self._coming: Counter[int] = Counter()
        """Blocks of prompts that are not computed yet, by how many requests compute them."""
        self._own = 0
        self._watching: list[Callable[[Hashable], None]] = []
        self.evicted_blocks = 0

    def watch(self, changed: Callable[[Hashable], None]) -> None:
        """As `accel.engine.beginnings.Cache`."""
        self._watching.append(changed)

    def _tell(self, block: int) -> None:
        for changed in self._watching:
            changed(block)

    @property
    def most_tokens(self) -> int | None:
        """Of a request that is alone; None for any number."""
        return None if self._capacity is None else self._capacity * self._block

    @property
    def used_tokens(self) -> int:
        """By requests and by what is kept for others."""
        return (len(self._held) + len(self._idle) + self._own) * self._block

    @property
    def held_tokens(self) -> int:
        """By requests alone."""
        return (len(self._held) + self._own) * self._block

    def blocks(self, ids: Sequence[int]) -> list[int]:
        """The names of a prompt's whole blocks, for `begin`."""
        names, chain = [], 0
        for end in range(self._block, len(ids) + 1, self._block):
            chain = hash((chain, *ids[end - self._block : end]))
            names.append(chain)
        return names

    def begin(self, blocks: list[int], prompt_tokens: int, answer_tokens: int) -> Place | None:
        """A place for a prompt and its answer; None while others hold too much."""
        # Never the prompt's last token, which gives the first output.
        most = (prompt_tokens - 1) // self._block
        shared = next((n for n, block in enumerate(blocks[:most]) if not self._known(block)), most)
        own = -(-(prompt_tokens + answer_tokens) // self._block) - shared
        if self._capacity is not None:
            woken = sum(block in self._idle for block in blocks[:shared])
            if len(self._held) + self._own + woken + own > self._capacity:
                return None
        for block in blocks[:shared]:
            self._hold(block)
        self._own += own
        self._coming.update(blocks[shared:])
        for block in blocks[shared:]:
            self._tell(block)
        self._make_room()
        return Place(blocks, shared * self._block, shared, own)

    def reuse(self, blocks: list[int]) -> Reuse:
        """What a prompt would find now."""
        found = next((n for n, block in enumerate(blocks) if not self._known(block)), len(blocks))
        following = blocks[found] if found < len(blocks) else None
        return Reuse(found, following, following in self._coming, len(blocks))

    def holds(self, blocks: list[int]) -> int:
        """What of a prompt's blocks is worth a wait: found here, or being computed."""
        known = (n for n, block in enumerate(blocks) if not self._known(block) and block not in self._coming)
        return worth(next(known, len(blocks)), len(blocks))

    def computed(self, place: Place, tokens: int) -> None:
        """So many tokens of the prompt are computed: its whole blocks can be found. What two requests computed at the
        same time is kept once."""
        for block in place.blocks[place.shared : tokens // self._block]:
            self._hold(block)
            self._has_come(block)
            place.shared += 1
            place.own -= 1
            self._own -= 1

    def want(self, blocks: list[int], change: int = 1) -> None:
        """So many more prompts wait that begin with these blocks."""
        self._idle.want(blocks, change)

    def end(self, place: Place, run: str = "", next_use: int = 0) -> None:
        """The request is over, or given up; `run` asks for something that begins alike so many calls later (0: never,
        or nobody knows). Ends go before beginnings, which more prompts may share."""
        self._idle.expect(place.blocks[: place.shared], run, next_use)
        self._own -= place.own
        for block in place.blocks[place.shared :]:
            self._has_come(block)
        for block in reversed(place.blocks[: place.shared]):
            self._held[block] -= 1
            if not self._held[block]:
                del self._held[block]
                self._lay_down(block)
        place.blocks, place.shared, place.own = [], 0, 0
        self._make_room()

    def forget(self) -> None:
        """What no request holds."""
        for block in self._idle.clear():
            self._tell(block)

    def _has_come(self, block: int) -> None:
        self._coming[block] -= 1
        if not self._coming[block]:
            del self._coming[block]
            self._tell(block)

    def _known(self, block: int) -> bool:
        return block in self._held or block in self._idle

    def _hold(self, block: int) -> None:
        if not self._known(block):
            self._tell(block)
        self._idle.remove(block)
        self._held[block] += 1

    def _lay_down(self, block: int) -> None:
        if self._eviction != AT_ONCE:
            self._idle.add(block)
        else:
            self._tell(block)

    def _make_room(self) -> None:
        while self._capacity is not None and len(self._held) + len(self._idle) + self._own > self._capacity:
            self._tell(self._idle.pop())
            self.evicted_blocks += 1
