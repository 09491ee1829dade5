"""What clients send; what turns a call away: too many at a time, or too many so far; the cookies that they set.

Clients hide those from who calls: they wait, and ask again. So they are looked at where the client sends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any
from urllib.parse import urljoin

from ...process.clock import now_s
from ...process.coroutines import around
from ...text.objects import is_a
from ..identities.clients import COOKIES, OF_CARRIERS, note_answered
from ..methods import patches
from ..methods.epochs import write
from .routes import note_led

_STATUSES = (429, 503, 529)
_NAMES = ("RateLimit", "Throttl", "TooManyRequests", "ResourceExhausted", "Overloaded", "PoolTimeout")
"""Parts of the names of errors that carry no status."""
_CLIENTS = (
    ("httpx", "Client", False),
    ("httpx", "AsyncClient", True),
    ("httpx2", "Client", False),
    ("httpx2", "AsyncClient", True),
    ("requests", "Session", False),
)
"""Package, class, and whether its `send` is a coroutine."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of a client that makes no object of it, or another one."""

    method: str
    url: str


Read = Callable[[Any, Any, Any], Sent]


def _of_aiohttp(session: Any, args: Any, kwargs: Any) -> Sent:
    named = dict(zip(("method", "str_or_url"), args, strict=False)) | kwargs
    base = getattr(session, "_base_url", None) or ""  # where it is missing, a path alone tells no host
    return Sent(str(named.get("method", "")).upper(), urljoin(str(base), str(named.get("str_or_url", ""))))


def _of_urllib(opener: Any, args: Any, kwargs: Any) -> Sent:
    named = dict(zip(("fullurl", "data"), args, strict=False)) | kwargs
    asked, data = named.get("fullurl"), named.get("data")
    if is_a(asked, str):
        return Sent("GET" if data is None else "POST", asked)
    return Sent("POST" if data is not None else asked.get_method(), asked.full_url)


_OTHERS = (
    ("aiohttp", "ClientSession", "_request", _of_aiohttp, True),
    ("urllib.request", "OpenerDirector", "open", _of_urllib, False),
)
"""Clients whose answers are not looked at: package, class, what all of its requests go through, what it is asked, and
whether that is a coroutine."""
MAX_AFTER_S = 3_600.0
MAX_CAUSES = 4


def _nobody(began_s: float, after_s: float) -> None:
    pass


def _untold(client: Any, args: Any, kwargs: Any) -> Callable[[], None] | None:
    return None


sends: Callable[[Any, Any, Any], Callable[[], None] | None] = _untold
"""A client is about to send a request: what to call when it has. Set by `accel.run.uses`."""


def _nothing(client: Any, request: Any) -> Any:
    return None


written: Callable[[Any, Any], Any] = _nothing
"""The component that a request writes to. Set by `accel.parts.network.hosts`."""
turned_away: Callable[[float, float], None] = _nobody
"""A request was: when it was sent, and in how many seconds it may come again (0: nobody said). What it raises goes
through the client. Set by `accel.run.issued.turned_away`."""


def _never() -> bool:
    return False


answers_call: Callable[[], bool] = _never
"""Whether what is being sent here is a call of a component's. Set by `accel.run.issued.turned_away`."""


withholds: Callable[[], bool] = _never
"""Whether cookies of an answer that comes here are to be withheld from its client, as the program has not made the call
yet. Set by `accel.run.issued.turned_away`."""
session_opened: Callable[[], None] = lambda: None  # noqa: E731
"""An answer whose cookies were withheld is here; may raise. Set by the same."""


def opens_session(response: Any) -> bool:
    """Whether an answer sets a cookie that is no carrier's."""
    with suppress(AttributeError, RuntimeError):
        told = response.headers.get_list("set-cookie") if hasattr(response.headers, "get_list") else ()
        return any(each.partition("=")[0].strip() not in OF_CARRIERS for each in told)
    return False


def install() -> None:
    """Look at what clients send from now on that are loaded by now."""
    for package, name, is_async in _CLIENTS:
        cls = getattr(sys.modules.get(package), name, None)
        if is_a(cls, type) and not patches.is_wrapped(cls, "send"):
            patches.wrap(cls, "send", _asend if is_async else _send)
    for package, name, method, read, is_async in _OTHERS:
        cls = getattr(sys.modules.get(package), name, None)
        if is_a(cls, type) and hasattr(cls, method) and not patches.is_wrapped(cls, method):
            patches.wrap(cls, method, partial(_aother if is_async else _other, read))
    for package in ("httpx", "httpx2"):
        cls = getattr(sys.modules.get(package), "Cookies", None)
        if is_a(cls, type) and not patches.is_wrapped(cls, "extract_cookies"):
            patches.wrap(cls, "extract_cookies", _extract)


def _extract(wrapped: Callable[..., Any], cookies: Any, args: Any, kwargs: Any) -> Any:
    """An answer sets cookies in its client."""
    if not answers_call():
        return wrapped(*args, **kwargs)
    if withholds() and opens_session(args[0] if args else kwargs.get("response")):
        return None
    with COOKIES:  # nobody looks at them meanwhile
        before = list(cookies.jar)
        try:
            return wrapped(*args, **kwargs)
        finally:
            note_answered(before, cookies.jar)


@contextmanager
def _sending(client: Any, args: Any, kwargs: Any) -> Iterator[tuple[float, Any]]:
    """A request, until its client has the answer: when it began, and the component that it writes to."""
    began_s = now_s()
    over, changed = sends(client, args, kwargs), written(client, args[0] if args else kwargs.get("request"))
    try:
        yield began_s, changed
    except Exception as error:
        if _found_no_connection(error):
            turned_away(began_s, 0.0)
        raise
    finally:
        if over is not None:
            over()


def _send(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    with _sending(client, args, kwargs) as (began_s, changed):
        response = wrapped(*args, **kwargs) if changed is None else write(changed, wrapped, args, kwargs)
    try:
        _answered(response, began_s)
    except BaseException:
        response.close()
        raise
    return response


def _answered(response: Any, began_s: float) -> None:
    """Raises what ends the call that it answers."""
    _note_led(response)
    if opens_session(response) and withholds():
        session_opened()
    after_s = _after_s(response)
    if after_s is not None:
        turned_away(began_s, after_s)


def _note_led(response: Any) -> None:
    """It may have come by others. One that somebody made himself may say nothing of that."""
    with suppress(AttributeError, RuntimeError):
        if response.history:
            note_led([str(each.request.url) for each in (*response.history, response)])


async def _asend(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    with _sending(client, args, kwargs) as (began_s, changed):
        response = await (wrapped(*args, **kwargs) if changed is None else write(changed, wrapped, args, kwargs))
    try:
        _answered(response, began_s)
    except BaseException:
        await response.aclose()
        raise
    return response


def _other(read: Read, wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    with _sending(client, (_told(read, client, args, kwargs),), {}) as (_, changed):
        return wrapped(*args, **kwargs) if changed is None else write(changed, wrapped, args, kwargs)


def _aother(read: Read, wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
    sent = _told(read, client, args, kwargs)  # by the frame that calls, before anybody awaits it
    over, changed = sends(client, (sent,), {}), written(client, sent)
    try:
        coming = wrapped(*args, **kwargs) if changed is None else write(changed, wrapped, args, kwargs)
    except BaseException:
        if over is not None:
            over()
        raise
    return coming if over is None else around(_awaited(coming, over), coming)


async def _awaited(coming: Any, over: Callable[[], None]) -> Any:
    try:
        return await coming
    finally:
        over()


def _told(read: Read, client: Any, args: Any, kwargs: Any) -> Sent:
    """Of what can't be told, the client says what is wrong with it."""
    try:
        return read(client, args, kwargs)
    except (AttributeError, TypeError, ValueError):
        return Sent("", "")


def _found_no_connection(error: Exception) -> bool:
    """Whether the client itself has turned a request away, as all of its connections were taken."""
    return type(error).__name__ == "PoolTimeout"


def _after_s(response: Any) -> float | None:
    """In how many seconds a request that was turned away may come again, as far as the answer says so; else None."""
    status = getattr(response, "status_code", 0)
    if not is_a(status, int) or status < 400:
        return None
    said = response.headers.get("retry-after")
    if said is None and status not in _STATUSES:
        return None
    after_s = 0.0
    with suppress(TypeError, ValueError):  # a date
        after_s = float(said)
    return min(max(after_s, 0.0), MAX_AFTER_S) if isfinite(after_s) else 0.0


def says_so(error: BaseException) -> bool:
    """Whether an error, or what caused it, is such an answer."""
    return any(
        any(part in type(each).__name__ for part in _NAMES) or any(status in _STATUSES for status in _statuses(each))
        for each in causes(error)
    )


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what caused it, and so on; a few."""
    at: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if at is None:
            return
        yield at
        at = at.__cause__ or at.__context__


def _statuses(error: BaseException) -> list[Any]:
    response = getattr(error, "response", None)
    if is_a(response, Mapping):
        response = response.get("ResponseMetadata", {})
        return [response.get("HTTPStatusCode")] if is_a(response, Mapping) else []
    return [getattr(error, "status_code", None), getattr(error, "code", None), getattr(response, "status_code", None)]
