"""What the rounds of a loop hand on to the next one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from .evaluate import Env
from .extract import Open
from .paths import DROPPED, UNKNOWN, follow
from .templates import Ref
from .values import Tree


@dataclass(frozen=True, slots=True)
class Relay:
    """What the rounds of a loop hand on, as a list: what it was before them, then what each of them made of it."""

    start: Ref | None
    """None: the first round is not one of those."""
    later: Ref
    """Of a node that comes later in the graph, by its position."""
    first: int = 0
    """So many positions are empty: what is handed on stands where the elements of another list do."""

    @property
    def refs(self) -> tuple[Ref, ...]:
        return (self.start, self.later) if self.start is not None else (self.later,)

    def __str__(self) -> str:
        return ", then ".join(map(str, self.refs)) + (f", from {self.first} on" if self.first else "")


def relayed(relay: Relay, rounds: Tree, env: Env) -> list[Tree]:
    """What is handed on as far as it is known; `rounds`: what they made of it, as the node puts it out."""
    start, made = relay.start, rounds if isinstance(rounds, list) else Open()
    coming = [] if start is None else [follow(env.value(start.node), start.path)]
    coming += [follow(item, relay.later.path[1:]) for item in made if item is not DROPPED]
    known = list(takewhile(lambda value: value is not UNKNOWN, coming))  # what isn't there yet is no round yet
    values = [UNKNOWN] * relay.first + known
    return values if len(known) == len(coming) and not isinstance(made, Open) else Open(values)
