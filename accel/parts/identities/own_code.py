"""Code of the program's own that a listed component runs with each call: functions and objects that its HTTP client
was given, as hooks, authentication, a transport, middleware. Nobody vouches for those, and so not for the component.

ChatOpenAI(model="m", http_client=httpx.Client(auth=sign))        # `sign` would run early, on a thread of Accel's
ChatOpenAI(model="m", http_client=httpx.Client(verify=False))     # nothing of the program's runs

A component is looked into once, and again where something else stands in a field of it or of its clients.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple

from ...text.objects import attributes, in_class, is_a
from ..listed.table import calls_the_programs
from ..program.places import cells
from .clients import OF_USE, PACKAGES, SDKS, TRACER

_CARRIERS = SDKS | frozenset("google requests urllib3".split())
"""Packages whose clients send requests, and may have been given code that runs with each."""
_KNOWN = PACKAGES | _CARRIERS | frozenset(
    "aiohttp anyio azure certifi cryptography httpx_aiohttp msal msal_extensions multidict pydantic pydantic_core "
    "tenacity truststore yarl".split()
)  # fmt: skip
"""Whose code may run within a client: that of the integrations, of the clients, and of what these are made with."""
_PROVIDERS = frozenset(("azure",))
"""Of these, those whose functions give tokens of the principal for which they were made, whoever asks."""
MAX_HELD = 5_000
"""Objects that such a function may hold."""
_STANDARD = sys.stdlib_module_names - {"unittest"}
"""Objects of these packages are data in a client, unless they are called."""
_PLAIN = frozenset((str, int, float, bool, bytes, type(None)))
_FUNCTIONS = (FunctionType, BuiltinFunctionType)
_CLIENT = re.compile(r"client|session|transport", re.IGNORECASE)
"""Names of fields that hold clients, or what they are made with."""


def own_code(component: Any) -> str:
    """Why a component of a listed class runs code of the program's own; empty if it does not."""
    if calls_the_programs(component):
        return "it calls functions, or an object of a class, of the program's own"
    name = _look(component).given
    if name == _TRACING:
        return "its client tells OpenTelemetry of each call, and early ones are none of the program's"
    return f"its client was given {name}, which is the program's own and would run with each early call" if name else ""


class _Seen(NamedTuple):
    """A look at a component."""

    of: Callable[[], Any]
    holders: list[_Holder]
    untold: bool
    """Spans went nowhere."""
    given: str
    """What was found that is the program's, if anything."""
    sending: list[Callable[[], Any]]
    """The clients that send."""

    def stands(self, component: Any) -> bool:
        return (
            self.of() is component
            and self.untold == _goes_nowhere()
            and all(holder.stands() for holder in self.holders)
        )


_looks: dict[int, _Seen] = {}
"""By id of a component."""


def senders(component: Any, looked: bool = False) -> list[Any]:
    """Clients of HTTP libraries that a component of a listed class holds, which send its requests. `looked`: it was
    looked at just now."""
    seen = _looks.get(id(component)) if looked else None
    if seen is None or seen.of() is not component:
        seen = _look(component)
    return [client for each in seen.sending if (client := each()) is not None]


def _sends(value: Any) -> bool:
    """Whether it is a client of `httpx` or a session of `requests`; the object, which may be anything, is not asked."""
    return any(in_class(type(value), name) is not None for name in ("_transport_for_url", "get_adapter"))


def _look(component: Any) -> _Seen:
    known = _looks.get(id(component))
    if known is not None and known.stands(component):
        return known
    untold, given = _goes_nowhere(), ""
    holders: list[_Holder] = [_Holder(component)]
    sending = []
    for value in _reached(component, holders):
        if _sends(value):
            sending.append(_weakly(value))
        if type(value).__name__ == "ProxyTracer" and _package(type(value)) == "opentelemetry":
            given = given or ("" if untold else _TRACING)
        elif not _is_known(value):
            given = given or _name(value)
    try:
        of: Callable[[], Any] = weakref.ref(component, partial(_forget, id(component)))
    except TypeError:  # no weak references: looked at again each time
        return _Seen(lambda: component, holders, untold, given, sending)
    seen = _looks[id(component)] = _Seen(of, holders, untold, given, sending)
    return seen


_TRACING = "spans"


def _goes_nowhere() -> bool:
    """Whether nobody has told OpenTelemetry where the spans of this process go."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None or "OTEL_PYTHON_TRACER_PROVIDER" in os.environ:
        return trace is None
    return is_a(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _forget(at: int, _: object) -> None:
    _looks.pop(at, None)


class _Holder:
    """An object or a container, and what stood in its fields: by id and type, as it may hold what holds it."""

    __slots__ = ("_held", "_of")

    def __init__(self, value: Any) -> None:
        self._of: Callable[[], Any] = (lambda: value) if is_a(value, dict | list) else _weakly(value)
        self._held = _marks(value)

    def stands(self) -> bool:
        value = self._of()
        return value is not None and _marks(value) == self._held


def _weakly(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def _marks(value: Any) -> list[tuple[int, type]]:
    return [(id(each), type(each)) for each in _fields(value).values() if type(each) not in _PLAIN]


def _fields(value: Any) -> dict[Any, Any]:
    if is_a(value, dict):
        return dict(value)
    if is_a(value, list | tuple | set | frozenset | deque):
        return dict(enumerate(list(value)))
    return attributes(value)


def _reached(component: Any, holders: list[_Holder]) -> Iterator[Any]:
    """All that the clients of a component hold; `holders` gets those that were looked into."""
    coming = [component] if _package(type(component)) in _CARRIERS else list(_clients(component))
    seen: dict[int, Any] = {}
    while coming:
        value = coming.pop()
        if type(value) in _PLAIN or is_a(value, type) or id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        if is_a(value, partial):
            coming += (value.func, value.args, value.keywords)
        elif is_a(value, MethodType):
            coming += (value.__func__, value.__self__)
        elif is_a(value, _FUNCTIONS):
            coming += (value.__wrapped__,) if hasattr(value, "__wrapped__") else ()
        elif is_a(value, Mapping | list | tuple | set | frozenset | deque) or _is_opened(type(value)):
            fields = _fields(value)
            if _may_be_given_more(value, fields):
                holders.append(_Holder(value))
            coming += [each for name, each in fields.items() if name not in OF_USE or name == TRACER]
            coming += fields if is_a(value, dict) else ()


def _is_opened(cls: type) -> bool:
    return cls.__name__ not in _DATA and _package(cls) in PACKAGES | _CARRIERS


def _may_be_given_more(value: Any, fields: dict[Any, Any]) -> bool:
    """Not what can't change, headers and the like, and connections, which nobody gives anything later."""
    if is_a(value, dict):
        return not all(type(each) in _PLAIN for each in fields.values())
    return not is_a(value, tuple | frozenset) and _package(type(value)) not in _CONNECTIONS


_CONNECTIONS = frozenset("httpcore httpcore2 urllib3".split())
_DATA = frozenset("Cookies Headers IndexedCookieJar Limits ParseResult QueryParams Timeout URL URLPattern".split())
"""Classes of clients that hold nothing but text and numbers."""


def _clients(component: Any) -> Iterable[Any]:
    """The clients that a component of a framework's sends with, and what they are made with. It holds more of the
    program's that it does not call."""
    for name, value in _fields(component).items():
        if any(_package(base) in _CARRIERS for base in type(value).__mro__):
            yield value
        elif _CLIENT.search(name) is not None and (type(value) is dict or is_the_programs(type(value))):
            yield value


_INSTALLED = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))


def is_the_programs(cls: type) -> bool:
    """Whether a class is neither Python's nor of a package that was installed."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    return _package(cls) not in _STANDARD and not file.startswith(_INSTALLED)


_provide: weakref.WeakKeyDictionary[FunctionType, bool] = weakref.WeakKeyDictionary()


def provides(value: Any) -> bool:
    """Whether it is a library's function that gives tokens of one principal, and holds nothing of anybody else's."""
    if not is_a(value, FunctionType) or _root(value.__globals__.get("__name__")) not in _PROVIDERS:
        return False
    if value not in _provide:
        held = list(islice(_held(value), MAX_HELD))
        _provide[value] = len(held) < MAX_HELD and all(map(_is_known, held))
    return _provide[value]


def _held(function: FunctionType) -> Iterator[Any]:
    """What a function of a provider's holds, and what objects of its package hold in it."""
    coming: list[Any] = [*cells(function).values()]
    seen: dict[int, Any] = {}
    while coming:
        value = coming.pop()
        if type(value) in _PLAIN or id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        if is_a(value, dict | list | tuple) or _package(type(value)) in _PROVIDERS:
            coming += _fields(value).values()


def _is_known(value: Any) -> bool:
    """Whether it runs no code but that of packages that are known."""
    if is_a(value, partial | MethodType):
        return True  # its parts are looked at
    if is_a(value, FunctionType):
        root = _root(value.__globals__.get("__name__"))
        return provides(value) if root in _PROVIDERS else root in _KNOWN
    if callable(value):
        return _root(getattr(value, "__module__", None)) in _KNOWN and _package(type(value)) in _KNOWN | _BUILT_IN
    return _package(type(value)) in _KNOWN | _STANDARD


_BUILT_IN = frozenset(("builtins", "functools"))
"""Where the types of functions are from."""


def _name(value: Any) -> str:
    kind = type(value)
    if is_a(value, _FUNCTIONS):
        return f"the function {value.__qualname__}"
    return f"an object of the class {kind.__qualname__}"


def _package(cls: type) -> str:
    return _root(cls.__module__)


def _root(module: Any) -> str:
    return module.partition(".")[0] if is_a(module, str) else ""
