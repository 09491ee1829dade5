"""What the user asked for, what the framework tells about a run, and what a run counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..errors import ConfigurationError, choose, knows_its_options
from ..graph.rules import Reason
from ..graph.topology import Control
from ..parts.components import Facts
from ..parts.identity import Identities
from ..parts.methods import Method
from ..parts.references import References
from ..text.values import Tree, freeze

Speculate = Literal["auto", "certain", "likely", "off"]
Egress = Literal["known", "inputs"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of early work per run (invariant 9). Raises ConfigurationError for what bounds nothing, or everything."""

    max_outstanding: int = 32
    """Early calls running at a time: at least 1."""
    max_issued: int = 10_000
    """Early calls in all: at least 1."""
    waste: float = 0.02
    """What early calls that nobody demanded may take, as a share (0 to 1) of what the program's own take: seconds
    inside components, and tokens, over the last runs. Calls that may not be demanded stay below it (`speculate`)."""

    def __post_init__(self) -> None:
        for name in ("max_outstanding", "max_issued"):
            calls = getattr(self, name)
            if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
                raise ConfigurationError(
                    f"Budget({name}={calls!r}) is not a number of calls.",
                    "Give a whole number, 1 at least; for no early calls at all, accelerate(..., speculate='off').",
                )
        if not isinstance(self.waste, int | float) or isinstance(self.waste, bool) or not 0 <= self.waste <= 1:
            raise ConfigurationError(
                f"Budget(waste={self.waste!r}) is not a share of the program's own calls.",
                "Give a number from 0 (nothing may be in vain) to 1 (as much as the program itself takes).",
            )


Budget.__init__ = knows_its_options(Budget.__init__)  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked of `accelerate`. Raises ConfigurationError."""

    speculate: Speculate = "auto"
    egress: Egress = "known"
    budget: Budget = Budget()

    def __post_init__(self) -> None:
        for name, options in (("speculate", get_args(Speculate)), ("egress", get_args(Egress))):
            given = getattr(self, name)
            if given not in options:
                raise ConfigurationError(f"{name}={given!r} is not known.", choose(given, options))
        if not isinstance(self.budget, Budget):
            raise ConfigurationError(
                f"budget={self.budget!r} is not a Budget.",
                "Write budget=accel.Budget(max_outstanding=...), with the number of early calls at a time.",
            )


@dataclass(slots=True)
class Counts:
    """What a run did, for the report."""

    demanded: int = 0
    issued: int = 0
    retired: int = 0
    shared: int = 0
    """Demands answered by the result of an equal earlier demand (embeddings)."""
    wasted: int = 0
    fed: int = 0
    missed: int = 0
    prefills: int = 0
    failed_prefills: int = 0
    wasted_tokens: int = 0
    wasted_s: float = 0.0
    delayed: int = 0
    """Demands that early calls kept from entering their component,"""
    delayed_s: float = 0.0
    """for so long in all."""
    wasted_input_tokens: int = 0
    """Of `wasted_tokens`, those that language models were given,"""
    wasted_output_tokens: int = 0
    """and those that they wrote."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(slots=True)
class Host:
    """What the framework adapter tells about a run."""

    control: Control
    config: Callable[[], Hashable]
    """User configuration a component may read, at this moment."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """By kind, what came in beside the input, other than ContextVars: configurable values, metadata, tags, ..."""
    streaming: bool = False
    """Somebody listens to tokens, so models will be asked to stream."""
    max_concurrency: int | None = None
    loop: asyncio.AbstractEventLoop | None = None
    set_config: Callable[[], None] = lambda: None
    """Let components that read the user's configuration find it in the context of an early call."""
    holds: Callable[[Any], Reason | None] = lambda component: None
    """Why the framework would answer a call of this component without calling it (a cache, a rate limiter)."""
    references: References = field(default_factory=References)
    """Which live components the program itself refers to."""


@dataclass(slots=True)
class Bound:
    """The live component that a node's calls go to in this run."""

    component: Any
    method: Method
    facts: Facts
    identities: Identities
    keys: tuple[str, ...] = ()
    """The credentials that it held when it was found."""
    unused: bool = False
    """One like those that the program makes at this call site, run by run: this run has used none of them yet."""
    _identity: Hashable = None

    @property
    def identity(self) -> Hashable:
        """As it is when it is first asked for, which most bindings are not."""
        if self._identity is None:
            self._identity = self.identities.of(self.component, self.method.by_object)
        return self._identity

    def judges(self, egress: str) -> bool:
        """Whether it may be sent only what its endpoint has seen in this run. Where an unused one sends to, perhaps
        none but an earlier run wanted to send."""
        return self.unused or (not self.facts.local and egress == "known")

    def key(self, tree: Tree) -> tuple[Hashable, ...]:
        return (self.method.family, self.identity, freeze(tree))
