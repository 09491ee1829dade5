"""What the program uses that is no component: tools that nobody vouches for, and clients of which no call is seen,
where they send. All goes on as without Accel; that they were used, and how long it took, is kept for reports."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from ..frameworks import frameworks
from ..graph.rules import LET_BE, MADE_BEFORE
from ..parts.listed.table import listed
from ..parts.network import http
from ..parts.network.hosts import is_declared, origin_of
from ..parts.network.web import was_made_before
from ..process.clock import now_s
from ..process.coroutines import around
from ..text.objects import own
from ..trace.ambient import CREDENTIAL
from ..trace.record import Outgoing, Use
from ..trace.sites import call_site, called_by_user
from .scope import scope

MAX_USES = 1_000
"""Of a run."""
MAX_CHARACTERS, MAX_LISTED = 2_000, 64
"""Of a text, and texts of a list, that are kept."""


def used(wrapped: Callable[..., Any], tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a tool was called, by wrapt's signature."""
    if scope.get() is None:
        return wrapped(*args, **kwargs)
    with _noted(tool, call_site(), _texts(args, kwargs)):
        return wrapped(*args, **kwargs)


def aused(wrapped: Callable[..., Any], tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same of a coroutine."""
    awaited = wrapped(*args, **kwargs)
    if scope.get() is None:
        return awaited
    return around(_awaited(awaited, tool, call_site(), _texts(args, kwargs)), awaited)


async def _awaited(awaited: Awaitable[Any], tool: Any, site: str, texts: frozenset[str]) -> Any:
    with _noted(tool, site, texts):
        return await awaited


def _texts(args: Any, kwargs: Any, kinds: tuple[type, ...] = (str,)) -> frozenset[str]:
    """Of arguments, and of dicts and lists of arguments; a tool may be given much more, which nobody looks through.
    `kinds`: of values that count as text."""
    given = [*args, *(value for name, value in kwargs.items() if name not in _FRAMEWORKS)]
    inner = [part for each in given if type(each) is dict for part in list(each.values())]
    inner += [part for each in [*given, *inner] if type(each) is list for part in each[:MAX_LISTED]]
    # Of large numbers Python refuses to print the digits.
    said = [hex(each) if type(each) is int else each for each in [*given, *inner] if type(each) in kinds]
    texts = (str(each).strip() for each in said)
    return frozenset(text for text in texts if 0 < len(text) <= MAX_CHARACTERS)


_FRAMEWORKS = frozenset("callbacks color config metadata run_id run_name start_color tags tool_call_id".split())
"""What a framework gives a tool beside its input."""


@contextmanager
def _noted(tool: Any, frames: str, texts: frozenset[str]) -> Generator[None, None, None]:
    here = scope.get()
    if here is None or here.early or here.run.closed or len(here.run.trace.uses) >= MAX_USES:
        yield
        return
    said = getattr(tool, "metadata", None)  # an object with a name, or a dict of the user's
    name = str(getattr(tool, "name", "") or getattr(said, "name", "") or type(tool).__name__)
    trace, site = here.run.trace, f"|{type(tool).__qualname__}|{frames or here.called}"
    use = Use(tool, name, site, here.within, here.visit, now_s(), texts=texts)
    trace.uses.append(use)
    try:
        yield
    finally:
        use.ended_s = now_s()


# --- requests that are part of no call


def _sends(client: Any, args: Any, kwargs: Any) -> Callable[[], None] | None:
    here = scope.get()
    if here is None or here.call is not None or here.early or here.run.closed:
        return None
    trace = here.run.trace
    if len(trace.uses) >= MAX_USES:
        return None
    request = args[0] if args else kwargs.get("request")
    host = origin_of(str(getattr(request, "url", ""))) or ""
    frame = called_by_user(inspect.currentframe())
    owner, name, can_be_declared = _called(frame, client)
    site = f"|{type(client).__qualname__}|{call_site() or here.called}"
    called, verb = f"{owner}.{name}" if owner else name, str(getattr(request, "method", ""))
    given, held = _given(frame)
    use = Outgoing(
        weakref.ref(client), called, site, here.within, here.visit, now_s(), host=host, verb=verb, owner=owner,
        method=name if can_be_declared else "", can_be_made=not isinstance(request, http.Sent),
        texts=given, held=held,
    )  # fmt: skip
    if verb == "GET" and is_declared(host):
        use.let_be = (MADE_BEFORE if was_made_before(client) else LET_BE)(component=called, host=host)
    trace.uses.append(use)

    def over() -> None:
        use.ended_s = now_s()

    return over


def _given(frame: FrameType | None) -> tuple[frozenset[str], frozenset[str]]:
    """The texts and numbers that the user gave a method, and the texts that its object holds."""
    if frame is None:
        return frozenset(), frozenset()
    names, rest, more, values = inspect.getargvalues(frame)
    named = {name: values[name] for name in names if name in values}
    itself = own(named.pop("self", None)) or {}
    # Code may have made something else of the others.
    others = [each for each in (values.get(rest or ""),) if type(each) is tuple]
    by_name = [each for each in (values.get(more or ""),) if type(each) is dict]
    given = [part for each in (named, *by_name) for part in _told(each)]
    return _texts([*given, *(part for each in others for part in each)], {}, (str, int, float)), _texts(
        _told(itself), {}
    )


def _told(held: dict[Any, Any]) -> list[Any]:
    """All that is not called a credential."""
    return [value for name, value in list(held.items()) if not CREDENTIAL.search(str(name))]


def _called(frame: FrameType | None, client: Any) -> tuple[str, str, bool]:
    """The class and the name of the method that the user calls, and whether that can be declared; a function by its
    package, of no class."""
    if frame is None:
        return type(client).__name__, "send", False
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount and code.co_varnames[0] == "self" else None
    if first is not None and hasattr(type(first), code.co_name):
        return type(first).__name__, code.co_name, first is not client and _can_be_declared(type(first), code)
    return "", f"{str(frame.f_globals.get('__name__', '')).partition('.')[0]}.{code.co_name}", False


def _can_be_declared(cls: type, code: CodeType) -> bool:
    """Not what is listed (somebody has wrapped it), what yields, and what frameworks are made of."""
    yields = code.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR)
    package = cls.__module__.partition(".")[0]
    of_framework = any(package in framework.packages for framework in frameworks())
    return not (yields or code.co_name.startswith("_") or of_framework or listed(cls) is not None)


http.sends = _sends
