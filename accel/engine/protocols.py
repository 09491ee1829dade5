"""What an engine is: the async protocols every backend implements, and the values that cross them.

An engine lives on one event loop, its host's (`accel_local` or another). It is made by a *config*: a hashable frozen
dataclass whose equality decides sharing, so that two users of equal configs share one engine.

Failure is a value: one bad request never fails its neighbours. `generate` ends its stream with a delta that carries a
`RequestError`; `embed`, `search` and `rerank` return the error in the place of the item that failed. Only a broken
engine raises. Cancelling the awaiting task, or closing the stream, aborts the request.

Every call has a `Priority`: lower is served first; 0 is a call the program demands, early calls carry larger numbers.
An early call that the program comes to wait for is raised to a demand, wherever it waits.
"""

import math
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Hashable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from accel.errors import RequestError

from ..process import forks
from .placement import Operator
from .profile import Profile

TokenIds = Sequence[int]
Vector = Sequence[float]
ChatMessage = Mapping[str, Any]
"""``{"role": "user", "content": "..."}`` as chat templates take it; the first one may also hold the list ``tools``, for
templates that take one."""
Metadata = Mapping[str, Any]  # any JSON object
Prompt = str | TokenIds | Sequence[ChatMessage]

T = TypeVar("T")


_changing = forks.lock()
"""Held, for a moment, while a token or a priority changes: every call has one of each, and locks of their own would be
most of them."""


class CancelToken:
    """Lets one thread abort a call that runs in another. Thread-safe; cancelling twice is cancelling once."""

    __slots__ = ("_callbacks", "_cancelled", "_next_key")

    def __init__(self) -> None:
        self._callbacks: dict[int, Callable[[], None]] | None = None  # most calls are never told of to anybody
        self._next_key = 0
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        """Call every registered callback once, in this thread."""
        with _changing:
            self._cancelled = True
            callbacks, self._callbacks = list((self._callbacks or {}).values()), None
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called on cancel (now, if cancelled already); returns a function that unregisters it."""
        with _changing:
            if not self._cancelled:
                key = self._next_key
                self._next_key += 1
                self._callbacks = {} if self._callbacks is None else self._callbacks
                self._callbacks[key] = callback
                return lambda: self._forget(key)
        callback()
        return lambda: None

    def _forget(self, key: int) -> None:
        with _changing:
            if self._callbacks is not None:
                self._callbacks.pop(key, None)


class Session:
    """A run as engines know it, from its first call to its end: what one of its calls leaves in the KV cache serves the
    next. Thread-safe.

    due_s: when the run is to be over, by `accel.process.clock`; infinite where nobody says. program: what it is a run
    of.
    Pickled it arrives without those who want to know of its end.
    """

    __slots__ = ("__weakref__", "_over", "due_s", "name", "program")

    def __init__(self, name: str, due_s: float = math.inf, program: str = "") -> None:
        self.name = name
        self.due_s = due_s
        self.program = program
        self._over = CancelToken()

    @property
    def ended(self) -> bool:
        return self._over.cancelled

    def end(self) -> None:
        """It makes no more calls. Calls, in this thread, whoever wants to know."""
        self._over.cancel()

    def on_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called at its end (now, if it has ended); returns a function that unregisters it."""
        return self._over.on_cancel(callback)

    def __reduce__(self) -> tuple[type["Session"], tuple[str, float, str]]:
        return Session, (self.name, self.due_s, self.program)

    def __repr__(self) -> str:
        return f"Session({self.name!r}, {self.due_s})"


class Priority:
    """How urgent a call is, and whose: what `accel.engine.batching` chooses by among all that wait. Thread-safe.

    value: 0, a call the program waits for; larger, early work; lower is served first. run: whose call it is ("": of no
    run). arrived_s: when that run began, by `accel.process.clock`. depth: how many primitives of
    the run still depend on it. batch: the run is many, of which nobody waits for one more than for another. session:
    of the single run; None for a call of no run. left_s: how long that run should take yet, with this call. next_use:
    how many calls later it asks for what begins alike; 0: nobody knows. outline: what the batch is going to ask of
    language models, as far as is known.
    Pickled it arrives as it stands, and is raised there for itself.
    """

    __slots__ = (
        "_callbacks", "_value", "arrived_s", "batch", "depth", "left_s", "next_use", "outline", "run", "session"
    )  # fmt: skip

    def __init__(
        self,
        value: int = 0,
        run: str = "",
        arrived_s: float = 0.0,
        depth: int = 0,
        batch: bool = False,
        session: Session | None = None,
        left_s: float = 0.0,
        next_use: int = 0,
        outline: Sequence[Operator] = (),
    ) -> None:
        self._value = value
        self.run = run
        self.arrived_s = arrived_s
        self.depth = depth
        self.batch = batch
        self.session = session
        self.left_s = left_s
        self.next_use = next_use
        self.outline = outline
        self._callbacks: tuple[Callable[[], None], ...] = ()

    @property
    def value(self) -> int:
        return self._value

    def raise_to_demand(self) -> None:
        """The program waits for it now. Calls, in this thread, whoever wants to know."""
        with _changing:
            if self._value <= 0:
                return
            self._value = 0
            callbacks, self._callbacks = self._callbacks, ()
        for callback in callbacks:
            callback()

    def on_raise(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called when the program comes to wait for it; returns a function that unregisters it."""
        with _changing:
            if self._value > 0:
                self._callbacks = (*self._callbacks, callback)
        return lambda: self._forget(callback)

    def _forget(self, callback: Callable[[], None]) -> None:
        with _changing:
            self._callbacks = tuple(other for other in self._callbacks if other is not callback)

    @property
    def query(self) -> str:
        """The name of the single run, also of one of a batch."""
        return self.session.name if self.session is not None else self.run

    def arrived(self, arrived_s: float, session: Session | None) -> "Priority":
        """The same, of a run that began then, and is this one here; raised for itself."""
        given = (self._value, self.run, arrived_s, self.depth, self.batch, session)
        return Priority(*given, self.left_s, self.next_use, self.outline)

    def __reduce__(self) -> tuple[type["Priority"], tuple[Any, ...]]:
        given = (self._value, self.run, self.arrived_s, self.depth, self.batch, self.session)
        return Priority, (*given, self.left_s, self.next_use, self.outline)

    def __repr__(self) -> str:
        return f"Priority({self._value}, {self.run!r}, {self.arrived_s}, {self.depth}, batch={self.batch})"


DEMAND = Priority(0)

# Read by the leaf methods of our drop-in classes, set by whoever makes the call: the core, for early calls.
cancel_token: ContextVar[CancelToken | None] = ContextVar("accel_cancel_token", default=None)
priority: ContextVar[Priority] = ContextVar("accel_priority", default=DEMAND)


@dataclass(frozen=True, slots=True)
class Constraint:
    """Limits the output. `value`: a JSON schema as JSON text, a regular expression, or a tuple of allowed answers."""

    kind: Literal["json_schema", "regex", "choice"]
    value: str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to decode. Temperature 0 is greedy; a stop string ends the text and is not part of it.

    `ignore_end` decodes on past the model's own end of answer, for measuring.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    constraint: Constraint | None = None
    ignore_end: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request. `cached_tokens` of the prompt came out of the prefix cache."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


FinishReason = Literal["stop", "length", "error"]


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer. The last one has `finish_reason` and `usage`, or `finish_reason="error"` and `error`."""

    text: str
    tokens: int
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    error: RequestError | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A piece of text in a vector store. Ingesting an id again replaces its record."""

    id: str
    text: str
    vector: Vector
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result; `score` is the cosine similarity to the query, higher is nearer."""

    id: str
    text: str
    metadata: Metadata
    score: float


class Engine(Protocol):
    """The life of an engine. All coroutines run on the host's loop."""

    async def start(self) -> None:
        """Load. On failure raise an AccelError and leave nothing running."""

    async def close(self) -> None:
        """Stop serving and free everything; running requests end with an error. A second close does nothing."""

    @property
    def known_profile(self) -> Profile | None:
        """The figures, if they have been measured on this machine before, or given."""

    async def profile(self) -> Profile:
        """Measure, once per engine (seconds of work); later calls return the same figures."""


@runtime_checkable
class LLMEngine(Engine, Protocol):
    @property
    def max_prompt_tokens(self) -> int:
        """Longest prompt that still leaves room for one token of answer."""

    @property
    def cache_block_tokens(self) -> int:
        """Granularity of the prefix cache: a prefix shorter than this gains nothing. 0: no prefix cache."""

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt; messages go through the model's chat template. Thread-safe, callable anywhere."""

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Ids that begin the prompt of `messages` however the last content goes on. Thread-safe; may be empty."""

    def generate(
        self, prompt: Prompt, sampling: Sampling, *, priority: Priority = DEMAND
    ) -> AsyncGenerator[Delta, None]:
        """Stream an answer. Closing the stream aborts the request."""

    async def prefill(self, token_ids: TokenIds, *, priority: Priority = DEMAND) -> int:
        """Warm the prefix cache with a prompt's beginning; returns how many tokens later requests can reuse."""


@runtime_checkable
class EmbeddingEngine(Engine, Protocol):
    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, priority: Priority = DEMAND) -> list[Vector | RequestError]:
        """One vector or error per text, in order. Concurrent calls may share a batch."""


@runtime_checkable
class VectorStore(Engine, Protocol):
    """One collection. Readers see either all of a finished `ingest` or, before it, none of it."""

    async def ingest(self, records: Sequence[Record]) -> None: ...

    async def search(
        self, vectors: Sequence[Vector], k: int, *, where: Metadata | None = None, priority: Priority = DEMAND
    ) -> list[list[Hit] | RequestError]:
        """The `k` nearest records per vector, nearest first, ties by id, whose metadata contains `where`."""

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """The records that exist among `ids`, in the order of `ids`."""

    async def delete(self, ids: Sequence[str] | None = None, *, where: Metadata | None = None) -> int:
        """Delete by ids, by metadata, or with neither everything; returns how many records went."""

    async def count(self, *, where: Metadata | None = None) -> int: ...


@runtime_checkable
class StagedVectorStore(VectorStore, Protocol):
    """A collection that can take records in while more are being made."""

    async def ingest_batches(self, batches: AsyncIterable[Sequence[Record]]) -> None:
        """As one `ingest` of all batches, in their order. Raises what `batches` raises; on any error, and when it is
        cancelled, none of them was ingested."""


@runtime_checkable
class RerankEngine(Engine, Protocol):
    async def rerank(
        self, query: str, texts: Sequence[str], *, priority: Priority = DEMAND
    ) -> list[float | RequestError]:
        """A relevance score or error per text, in order; higher is more relevant."""


EngineT_co = TypeVar("EngineT_co", bound=Engine, covariant=True)


class EngineConfig(Hashable, Protocol[EngineT_co]):
    """Names an engine and can make it. Equal configs mean the same engine."""

    @property
    def label(self) -> str:
        """A short name for logs and progress, without secrets."""

    def create(self) -> EngineT_co:
        """Make the engine, unstarted and without heavy imports."""


def unwrap(result: T | RequestError) -> T:
    """The value, or the error raised."""
    if isinstance(result, RequestError):
        raise result
    return result
