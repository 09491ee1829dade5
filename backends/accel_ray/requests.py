"""The requests an actor works on, by id, and the programs they belong to. What is said of a request may arrive before
the request itself; and a program may end without saying anything."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from accel.engine import Priority, Session

REMEMBERED = 10_000
"""Ids of requests that were spoken of and not seen; far more than can be on their way."""


@dataclass(slots=True)
class _Request:
    client: str
    priority: Priority
    cancel: Callable[[], object]


class Requests:
    """Lives on the actor's loop."""

    def __init__(self) -> None:
        self._under_way: dict[str, _Request] = {}
        self._aborted: OrderedDict[str, None] = OrderedDict()
        self._raised: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._under_way)

    @contextmanager
    def under_way(self, id: str, client: str, priority: Priority, cancel: Callable[[], object]) -> Iterator[None]:
        """While the request is worked on. `cancel` is called, at most once, if it is to be given up."""
        self._under_way[id] = _Request(client, priority, cancel)
        try:
            if id in self._raised:
                del self._raised[id]
                priority.raise_to_demand()
            if id in self._aborted:
                del self._aborted[id]
                self.abort(id)
            yield
        finally:
            self._under_way.pop(id, None)

    def abort(self, id: str) -> None:
        request = self._under_way.pop(id, None)
        if request is None:
            _remember(self._aborted, id)
        else:
            request.cancel()

    def raise_to_demand(self, id: str) -> None:
        request = self._under_way.get(id)
        if request is None:
            _remember(self._raised, id)
        else:
            request.priority.raise_to_demand()

    def abort_all_of(self, client: str) -> None:
        for id, request in list(self._under_way.items()):
            if request.client == client:
                self.abort(id)


class Sessions:
    """The runs that have asked an actor for something, by the programs they belong to, each as one object. They end as
    they do in their program, or with it."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[str, Session]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def here(self, client: str, given: Session | None, later_s: float) -> Session | None:
        """The run that came with a request. `later_s`: what the clock shows here more than in its program."""
        if given is None:
            return None
        if given.name not in self._open:
            self._open[given.name] = client, Session(given.name, given.due_s + later_s, given.program)
            if len(self._open) > REMEMBERED:
                self._open.popitem(last=False)[1][1].end()
        return self._open[given.name][1]

    def end(self, name: str) -> None:
        """Unknown ones have ended."""
        if name in self._open:
            self._open.pop(name)[1].end()

    def end_all_of(self, client: str) -> None:
        for name in [name for name, (whose, _) in self._open.items() if whose == client]:
            self.end(name)


def _remember(ids: OrderedDict[str, None], id: str) -> None:
    ids[id] = None
    if len(ids) > REMEMBERED:
        ids.popitem(last=False)


class Leases:
    """Which programs are there: each has to be heard of now and then. Synchronous; is told the time."""

    def __init__(self, ttl_s: float) -> None:
        self._ttl_s = ttl_s
        self._seen_s: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._seen_s)

    def seen(self, client: str, now_s: float) -> None:
        self._seen_s[client] = now_s

    def forget(self, client: str) -> None:
        self._seen_s.pop(client, None)

    def expired(self, now_s: float) -> list[str]:
        """Those not heard of for longer than the lease, which are forgotten with this."""
        gone = [client for client, seen_s in self._seen_s.items() if now_s - seen_s > self._ttl_s]
        for client in gone:
            del self._seen_s[client]
        return gone
