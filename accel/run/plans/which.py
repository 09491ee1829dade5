"""Which program a plan is about."""

from __future__ import annotations

from typing import NamedTuple


class Identity(NamedTuple):
    """Which program an object is, as far as can be told without running it."""

    kind: str
    """Its class."""
    nodes: frozenset[str]
    """The names of its nodes; none where it has none by name."""

    def is_other(self, than: Identity) -> bool:
        """Whether it can't be an earlier or later version of the other one."""
        return self.kind != than.kind or bool(self.nodes and than.nodes and self.nodes.isdisjoint(than.nodes))

    def __str__(self) -> str:
        return f"{self.kind} with the nodes {', '.join(sorted(self.nodes))}" if self.nodes else self.kind
