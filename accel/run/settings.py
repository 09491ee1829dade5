"""What the user asked for, what the framework tells about a run, and what a run counts."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..errors import ConfigurationError, choose, knows_its_options
from ..graph.rules import Reason
from ..graph.topology import Control
from ..parts.components import Facts, facts_of
from ..parts.identities.identity import Identities
from ..parts.methods.methods import Method
from ..parts.references import References
from ..text.values import Tree, exactly

Speculate = Literal["auto", "certain", "likely", "off"]
Egress = Literal["known", "inputs"]


_DIMENSION = re.compile(r"context|(configurable|metadata|context)\.[^\s.].*|(tag|ContextVar) \S.*")
"""Names of what comes in beside the input, as `trace.ambient` gives them."""


@dataclass(frozen=True, slots=True)
class Cap:
    """A bound of what early calls that nobody demanded take within a sliding window, over all runs: of an accelerated
    object (or of all of a `plan_scope`), or of each tenant. Where it is reached, nothing is early until some of it is
    older than the window. Raises ConfigurationError."""

    calls: int | None = None
    """So many calls,"""
    tokens: int | None = None
    """so many tokens,"""
    money: float | None = None
    """and so much for tokens of language models, by the prices below (each default: unbounded)."""
    window_s: float = 3600.0
    """The window, in seconds."""
    per: str = ""
    """A dimension of the context, such as "configurable.tenant_id", "metadata.org", "context.user", "tag team" (of
    "team:blue") or "ContextVar tenant": each of its values has a cap of its own (default: all runs together)."""
    input_per_million: float = 0.0
    """What a million tokens cost that language models are given,"""
    output_per_million: float = 0.0
    """and a million that they write."""

    def __post_init__(self) -> None:
        for name in ("calls", "tokens"):
            bound = getattr(self, name)
            if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool) or bound < 1):
                raise ConfigurationError(
                    f"Cap({name}={bound!r}) is not a number of {name}.", "Give a whole number, 1 at least."
                )
        for name in ("money", "window_s", "input_per_million", "output_per_million"):
            amount = getattr(self, name)
            if amount is not None and not is_amount(amount, least=0.0 if "million" in name else sys.float_info.min):
                raise ConfigurationError(f"Cap({name}={amount!r}) is not an amount.", "Give a number above 0.")
        if self.per != "" and not (isinstance(self.per, str) and _DIMENSION.fullmatch(self.per)):
            raise ConfigurationError(
                f"Cap(per={self.per!r}) names no dimension of the context.",
                "Give one such as 'configurable.tenant_id', 'metadata.org', 'context.user', 'tag team' or "
                "'ContextVar tenant'.",
            )
        if self.calls is None and self.tokens is None and self.money is None:
            raise ConfigurationError("Cap() bounds nothing.", "Give calls=, tokens= or money=.")
        if self.money is not None and not self.input_per_million + self.output_per_million:
            raise ConfigurationError(
                f"Cap(money={self.money!r}) has no prices.", "Give input_per_million= and output_per_million=, too."
            )

    def __str__(self) -> str:
        amounts = ((self.calls, "calls"), (self.tokens, "tokens"), (self.money, "of money"))
        bounds = ", ".join(f"{bound:g} {name}" for bound, name in amounts if bound is not None)
        return f"{bounds} in vain within {self.window_s:g} s{f' for each {self.per}' if self.per else ''}"


def is_amount(value: Any, least: float = 0.0) -> bool:
    """Whether it is a number, finite and not below `least`."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < float("inf")


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of early work: per run, and with `caps` over all runs (invariant 9). Raises ConfigurationError for what
    bounds nothing, or everything."""

    max_outstanding: int = 32
    """Early calls running at a time: at least 1."""
    max_issued: int = 10_000
    """Early calls in all: at least 1."""
    waste: float = 0.02
    """What early calls that nobody demanded may take, as a share (0 to 1) of what the program's own take: seconds
    inside components, and tokens, over the last runs. Calls that may not be demanded stay below it (`speculate`)."""
    caps: Sequence[Cap] = ()
    """What may be in vain within a while, over all runs, and for each tenant."""

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
        if not isinstance(self.caps, list | tuple) or not all(isinstance(cap, Cap) for cap in self.caps):
            raise ConfigurationError(
                f"Budget(caps={self.caps!r}) is not a list of caps.", "Write caps=[accel.Cap(calls=...)]."
            )
        object.__setattr__(self, "caps", tuple(self.caps))


Cap.__init__ = knows_its_options(Cap.__init__)  # type: ignore[method-assign]
Budget.__init__ = knows_its_options(Budget.__init__)  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked of `accelerate`. Raises ConfigurationError."""

    speculate: Speculate = "auto"
    egress: Egress = "known"
    budget: Budget = Budget()
    deadline_s: float | None = None
    """Of a single run: within how many seconds it is to be over, as its request says."""

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


PASSING = Settings(speculate="off")
"""This very object: the run goes on as without Accel, and is counted among those under way."""


@dataclass(slots=True)
class Counts:
    """What a run did, for the report."""

    demanded: int = 0
    issued: int = 0
    retired: int = 0
    shared: int = 0
    """Demands answered by the result of an equal demand: an earlier one (embeddings), or another run's of the batch."""
    wasted: int = 0
    fed: int = 0
    turned_away: int = 0
    """Early calls that their endpoint turned away."""
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
    guard: Callable[[Any], Reason | None] = lambda manager: None
    """Whom a callback manager, with which the program makes a call, asks whether it may be made; or nobody."""
    references: References = field(default_factory=References)
    """Which live components the program itself refers to."""
    thread: int = field(default_factory=threading.get_ident)
    """On which the run begins."""


Key = tuple[str, Hashable, Hashable]
"""Of a call: method family, identity of the component, input."""


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
    _facts_now: Facts | None = None

    @property
    def facts_now(self) -> Facts:
        """As somebody vouches for it when this is first asked for, which may be after this run first used it."""
        if self._facts_now is None:
            self._facts_now = facts_of(self.component, self.identities)
        return self._facts_now

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

    @property
    def whose(self) -> tuple[str, Hashable]:
        """What calls of it, whatever their input, have in common."""
        return self.method.family, self.identity

    def key(self, tree: Tree) -> Key:
        return (*self.whose, exactly(tree))
