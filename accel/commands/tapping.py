"""Every call of a component in a run of a program, unmodified or accelerated: counted, and answered from a cassette.

It sits below Accel's patches (`accel.parts.methods.patches.tap`): what runs early is seen, too.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ..errors import AccelError, CallCancelled
from ..parts.methods import patches, sdks
from ..parts.methods.methods import Method
from ..parts.network import hosts
from ..process.clock import now_s
from ..run.scope import scope
from ..run.waits.steps import Do, Give, Steps, atake, atake_stream, take, take_stream
from ..text.comparable import is_comparable
from ..text.values import Tree, is_class_name, leaves
from ..trace.ambient import FRAMEWORK_VARS
from .cassette import Answer, Cassette, Key, NotRecorded, takes
from .kinds import Programs

LEAST_S = 0.005
"""A replayed call takes so long at least: early ones have the time to go that they have with real components."""
Wait = Callable[[float], float]
"""From the seconds that a call took to those that its replay takes."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A call of a component."""

    key: Key
    op: str
    input: Tree = field(compare=False)
    inside: Leaf | None = None
    """The call that made it."""

    @property
    def name(self) -> str:
        return f"{self.key.component.rpartition('.')[2]}.{self.key.family}"

    @property
    def said(self) -> str:
        """Its texts, the last ones first to be seen, as prompts begin alike; settings behind them."""
        found = [(path, text) for path, text in reversed(leaves(self.input)) if isinstance(text, str)]
        found.sort(key=lambda each: each[0][:1] == ("kwargs",))
        keyed = ((str(path[-1]) if path else "", text) for path, text in found)
        return " | ".join(text for key, text in keyed if text and not is_class_name(key, text))


@dataclass(eq=False, slots=True)
class RunLog:
    """One run of the program."""

    accelerated: bool
    asked: list[Leaf] = field(default_factory=list)
    """By the program, in the order it came to that."""
    ran: list[Leaf] = field(default_factory=list)
    """For the program, and not by an early call."""
    early: list[Leaf] = field(default_factory=list)
    unrecorded: int = 0
    """Calls of the accelerated program that the cassette had no answer for."""
    begun: Counter[Key] = field(default_factory=Counter)
    open: Counter[Key] = field(default_factory=Counter)
    places: defaultdict[Key, set[tuple[Hashable, Hashable]]] = field(default_factory=lambda: defaultdict(set))
    """When and where in the program calls were made that were recorded."""

    def enter(self, key: Key, place: tuple[Hashable, Hashable]) -> bool:
        """A call begins. Whether an equal one goes on beside it, or did: then their order is a matter of luck."""
        beside = self.open[key] > 0 or any(at == place[0] and where != place[1] for at, where in self.places[key])
        self.open[key] += 1
        self.places[key].add(place)
        return beside


_log: ContextVar[RunLog | None] = ContextVar("accel_run_log", default=None)
_inside: ContextVar[tuple[Any, str, Leaf, bool] | None] = ContextVar("accel_inside_leaf", default=None)
"""The component, family and call that the current code is inside of; whether the cassette has all of it."""
FRAMEWORK_VARS.update((_log, _inside))
_one = threading.Lock()


class Tapping:
    """`accel.parts.methods.patches.Tap`."""

    def __init__(
        self, programs: Programs, cassette: Cassette | None, wait: Wait = lambda took_s: LEAST_S, exact: bool = True
    ) -> None:
        """`wait`: how long a replayed call takes. `exact`: answers come in the program's order, and the accelerated
        program may ask only what the unmodified one did; else as they are asked for, and what is missing is recorded.
        """
        self.programs, self.cassette, self.wait, self.exact = programs, cassette, wait, exact
        self._names = cassette or Cassette()
        self._last: RunLog | None = None
        self._lock = threading.Lock()

    @contextmanager
    def within(self) -> Generator[None, None, None]:
        """Calls are seen until the end of the block: by one at a time in a process."""
        with _one:
            patches.enable()
            self.look()
            patches.tap = self
            try:
                yield
            finally:
                patches.tap = None

    def look(self) -> int:
        """Find the classes of components that there are by now. A number that grows when some are new."""
        self.programs.install()
        sdks.install_all()
        hosts.install()
        return patches.installations()

    @contextmanager
    def run(self, accelerated: bool) -> Generator[RunLog, None, None]:
        """Around one run."""
        log = self._last = RunLog(accelerated)
        token = _log.set(log)
        try:
            yield log
        finally:
            _log.reset(token)

    # --- what patches tell

    def asked(self, method: Method, component: Any, args: Any, kwargs: Any) -> None:
        here = scope.get()
        if not self.exact or (here is not None and here.early) or self._is_part(method, component):
            return  # who measures does not count
        log = self._log()
        if log is not None:
            log.asked.append(self._leaf(method, component, args, kwargs))

    def leaf(self, method: Method, component: Any, leaf: Callable[..., Any]) -> Callable[..., Any]:
        def tapped(*args: Any, **kwargs: Any) -> Any:
            if self._is_part(method, component) or self._log() is None:
                return leaf(*args, **kwargs)
            return _Play(self, method, component, args, kwargs).driven(leaf)

        return tapped

    def _log(self) -> RunLog | None:
        return _log.get() or self._last

    def _is_part(self, method: Method, component: Any) -> bool:
        """Of a call that is under way: the same primitive, one that the cassette has as a whole, or an SDK's."""
        outer = _inside.get()
        if outer is None:
            return False
        return outer[3] or method.direct or (outer[0] is component and outer[1] == method.family)

    def _leaf(self, method: Method, component: Any, args: Any, kwargs: Any) -> Leaf:
        tree = method.seen_input(component, args, kwargs)
        if isinstance(tree, dict) and "managed" in tree:  # by the framework's own callback manager
            tree = {name: value for name, value in tree.items() if name != "managed"}
        outer = _inside.get()
        key = self._names.key(method, component, tree)
        return Leaf(key, method.op, tree, outer[2] if outer is not None else None)


class _Play:
    """One call that came to a component: answered from the cassette, or made and recorded."""

    def __init__(self, tap: Tapping, method: Method, component: Any, args: Any, kwargs: Any) -> None:
        self.tap, self.method, self.component, self.args, self.kwargs = tap, method, component, args, kwargs
        log = tap._log()
        assert log is not None
        self.log = log
        here = scope.get()
        self.early = here is not None and here.early
        self.call = tap._leaf(method, component, args, kwargs)
        self.cassette = tap.cassette if takes(method) else None
        if self.cassette is not None and not is_comparable(self.call.input):
            self.cassette.lives(self.call.key, self.call.name)  # an object in it may be another one in another process
            self.cassette = None
        self.turn = 0
        self.beside = False
        self._is_open = False
        self._began_s = 0.0
        self._chunks: list[tuple[float, Any]] = []

    def begin(self) -> Answer | None:
        """Its answer, if that is recorded. Raises where an accelerated program must not ask what it asks."""
        (self.log.early if self.early else self.log.ran).append(self.call)
        key = self.call.key
        answer = self._recorded(self.cassette) if self.cassette is not None else None
        if answer is not None:
            assert self.cassette is not None
            self.cassette.replayed += 1
        else:
            with self.tap._lock:
                self.beside = self.log.enter(key, self.tap.programs.place())
            self._is_open, self._began_s = True, now_s()
        return answer

    def driven(self, leaf: Callable[..., Any]) -> Any:
        """The call, as its method's callers make it."""
        kind = self.method.kind
        if kind in ("sync", "async"):
            return (take if kind == "sync" else atake)(self.whole(leaf))
        if kind == "stream":
            return take_stream(self.streamed(leaf))
        read = atake_stream(self.streamed(leaf))
        return _opened(read) if self.method.opens else read

    def whole(self, leaf: Callable[..., Any]) -> Steps[Any]:
        answer = self.begin()
        if answer is not None:
            yield self.rest(self.tap.wait(answer.seconds))
            return self.result(answer)
        try:
            with self.live():
                result = yield Do(lambda: leaf(*self.args, **self.kwargs))
            return self.done(result)
        finally:
            self.leave()

    def streamed(self, leaf: Callable[..., Any]) -> Steps[None]:
        answer = self.begin()
        if answer is not None:
            waited_s = 0.0
            for at, chunk in self.chunks(answer):
                yield self.rest(max(0.0, self.tap.wait(at) - waited_s))
                waited_s = self.tap.wait(at)
                yield Give(chunk)
            return
        is_async, stream, close = self.method.is_async, None, None
        try:
            with self.live():
                stream = leaf(*self.args, **self.kwargs)
                stream = (yield Do(lambda: stream)) if self.method.opens else stream if is_async else iter(stream)
            close = getattr(stream, "aclose" if is_async else "close", None)
            while True:
                with self.live():
                    chunk = yield Do(lambda: anext(stream, self) if is_async else next(stream, self))
                if chunk is self:
                    break
                self.hear(chunk)
                yield Give(chunk)
            self.done(None)
        finally:
            self.leave()
            if close is not None:
                yield Do(close)

    def rest(self, seconds: float) -> Do:
        sleep: Callable[[float], Any] = asyncio.sleep if self.method.is_async else time.sleep
        return Do(lambda: sleep(seconds))

    def leave(self) -> None:
        """It is over, however it ended. Idempotent."""
        if self._is_open:
            self._is_open = False
            with self.tap._lock:
                self.log.open[self.call.key] -= 1

    def _recorded(self, cassette: Cassette) -> Answer | None:
        key, log, exact = self.call.key, self.log, self.tap.exact
        if cassette.is_live(key):
            return None
        turns = cassette.turns(key, self.method)
        if self.early and (not turns or (exact and not all(turn.same(turns[0]) for turn in turns))):
            # Nobody pays for a guess; and which of several answers is whose, only the program's own order says.
            raise CallCancelled("there is no recorded answer to it")
        with self.tap._lock:
            self.turn = log.begun[key]
            log.begun[key] += not (self.early and exact)
        if self.method.op != "decode" or log.accelerated:
            self.turn = min(self.turn, max(0, len(turns) - 1))
        if self.turn < len(turns):
            return turns[self.turn]
        if log.accelerated:
            log.unrecorded += 1
            if exact:
                raise NotRecorded(
                    f"{self.call.name} was asked what the unmodified program did not ask it.",
                    "Look at the first difference of the check.",
                )
        return None

    def result(self, answer: Answer) -> Any:
        assert self.cassette is not None
        return self.cassette.result(answer, self.method, self.tap.programs)

    def chunks(self, answer: Answer) -> Generator[tuple[float, Any], None, None]:
        assert self.cassette is not None
        yield from self.cassette.chunks(answer, self.method, self.tap.programs)

    @contextmanager
    def live(self) -> Generator[None, None, None]:
        """Around the component's own work."""
        token = _inside.set((self.component, self.method.family, self.call, self.cassette is not None))
        try:
            yield
        except AccelError:  # ours, of an early call that can't go on
            raise
        except Exception as error:
            self._keep(Answer(self.turn, now_s() - self._began_s, self.beside, error=error))
            raise
        finally:
            _inside.reset(token)

    def hear(self, chunk: Any) -> None:
        self._chunks.append((now_s() - self._began_s, chunk))

    def done(self, result: Any) -> Any:
        """It has ended well: its result, without secrets if it was recorded, as the next run gets it."""
        streams = self.method.kind in ("stream", "astream")
        answer = Answer(self.turn, now_s() - self._began_s, self.beside, result, self._chunks if streams else None)
        if not self._keep(answer) or streams:
            return result
        return self.result(answer)

    def _keep(self, answer: Answer) -> bool:
        """Whether the cassette has it now."""
        cassette = self.cassette
        return cassette is not None and cassette.add(self.call.key, answer, self.tap.programs, self.component)


async def _opened(stream: Any) -> Any:
    return stream
