"""GETs of hosts that a user has declared, by `requests` and `httpx`: calls of a component that only reads.

accel.register("https://api.example.com", readonly=True)       # from now on
requests.get("https://api.example.com/find", params={...})     # is a search, and so is `get` of a session or a client

What its client is set to (headers, cookies, auth) is the component's identity. An early one is sent by a client of its
own that is set alike (`web`), so that the program's stays as it is. What is unusual about a call or its client (a
stream, a body, hooks, code for `auth`, a transport) makes it one of which nothing is seen; answers that set cookies or
lead elsewhere make the program ask that host itself. Nothing is patched before a host is declared.
"""

from __future__ import annotations

import copy
import sys
import weakref
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ...errors import CallCancelled, ConfigurationError
from ...process.coroutines import around
from ...process.properties import cached_property
from ...text.values import Opaque, Tree, freeze, snapshot, thaw
from ..identities.own_code import own_code
from ..methods import patches
from ..methods.methods import METHODS, Method
from ..methods.sdks import is_file_of
from . import http, wire
from .web import alike, is_plain, note_making, of_httpx, of_session, pairs_of, view

_PORTS = {"http": ":80", "https": ":443"}
_READS = ("GET", "HEAD", "OPTIONS")


class Get:
    """GETs of one host, by clients that are set alike. Each host has a class of its own below this one, whose name is
    what stands for it in lines to paste."""

    accel_address: ClassVar[str] = ""

    def __init__(self, settings: Mapping[str, Tree]) -> None:
        vars(self).update(settings)

    def accel_resource(self) -> str:
        return self.accel_address

    def get(self, *args: Any, **kwargs: Any) -> Any:
        """An early one."""
        http = _http_of(self)
        with http.again(self) as client:
            return _checked(self, client.request(*args, **http.straight(kwargs)), kwargs, http)

    async def aget(self, *args: Any, **kwargs: Any) -> Any:
        http = _http_of(self)
        with http.again(self) as client:
            try:
                return _checked(self, await client.request(*args, **http.straight(kwargs)), kwargs, http)
            finally:
                await client.aclose()


_hosts: dict[str, type[Get]] = {}
"""By origin, what was declared."""
MAX_CLIENTS = 64
_clients: dict[tuple[type, Hashable], Any] = {}
"""By host and settings, the last of the program's clients, by which an early one is made."""
_ours: weakref.WeakSet[Any] = weakref.WeakSet()
"""Clients of early calls."""


def _nobody(host: type[Get], why: str) -> None:
    pass


unfit: Callable[[type[Get], str], None] = _nobody
"""A host is not asked early from now on. Set by `accel.parts.components`."""


def declare(address: str, reads: bool) -> type[Get]:
    """The class of this host's GETs. `reads`: the user says that they only read. Raises ConfigurationError."""
    origin = _origin(address)
    if origin is None:
        raise ConfigurationError(
            f"register({address!r}) names no host, or more than one.",
            'Give scheme and host (and port) alone, such as "https://api.example.com".',
        )
    if origin not in _hosts and not reads:
        raise ConfigurationError(
            f"Nobody said what GETs of {origin} do.",
            "Say readonly=True if they only read what nobody changes during a run.",
        )
    if origin not in _hosts:
        _hosts[origin] = type(f'"{origin}"', (Get,), {"accel_address": origin})
    install()
    return _hosts[origin]


def is_declared(origin: str) -> bool:
    return origin in _hosts


def forget(address: str) -> None:
    """Nothing was declared of this host."""
    _hosts.pop(_origin(address) or "", None)


def _origin(address: str) -> str | None:
    """Of an address that is nothing else."""
    with suppress(ValueError):
        parts = urlsplit(address)
        if parts.path in ("", "/") and not (parts.query or parts.fragment or "@" in parts.netloc):
            return origin_of(address)
    return None


def origin_of(url: str) -> str | None:
    """Scheme and host of an absolute address of a usual form, and the port if it is another one than usual."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    host, scheme = (parts.hostname or "").lower(), parts.scheme.lower()
    if scheme not in _PORTS or not host or not url.isprintable() or any(mark in parts.netloc for mark in "@\\ "):
        return None
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" + (f":{port}" if port is not None and f":{port}" != _PORTS[scheme] else "")


def _written(client: Any, request: Any) -> Get | None:
    """A declared host that a request writes to, however it was made."""
    host = _hosts.get(origin_of(str(getattr(request, "url", ""))) or "")
    writes = host is not None and str(getattr(request, "method", "")).upper() not in _READS
    return host({}) if host is not None and writes else None


def install() -> None:
    """Look at what clients ask that are loaded by now, if a host was declared."""
    if _hosts:
        http.written = _written
        http.install()
        wire.install(_written)
    for each in _HTTP if _hosts else ():
        cls = each.loaded()
        if cls is not None and not patches.is_wrapped(cls, "request"):
            patches.wrap(cls, "request", each.request)
            if not each.of_requests:
                patches.wrap(cls, "__init__", note_making)


class Http:
    """One class of clients."""

    def __init__(self, package: str, name: str, is_async: bool = False) -> None:
        self.package, self.name, self.is_async = package, name, is_async
        self.of_requests = package == "requests"
        self.redirects = "allow_redirects" if self.of_requests else "follow_redirects"
        self.takes = {"params", "headers", "auth", "timeout", self.redirects}
        self.takes |= {"cookies", "proxies", "verify", "cert"} if self.of_requests else set()
        self.method = Method(
            name="aget" if is_async else "get",
            family=f"get {package}{' (async)' * is_async}",
            op="searching",
            kind="async" if is_async else "sync",
            read=self._read,
            build=self._build,
            view=view,
            direct=True,
        )
        METHODS[self.method.family, self.method.name] = self.method

    def loaded(self) -> type | None:
        cls = getattr(sys.modules.get(self.package), self.name, None)
        return cls if isinstance(cls, type) else None

    # --- calls of the program

    def request(self, wrapped: Callable[..., Any], client: Any, args: Any, kwargs: Any) -> Any:
        component = self._component(client, args, kwargs)
        if component is None:
            return wrapped(*args, **kwargs)
        response = patches.reach(self.method, component, wrapped, args, kwargs)
        if self.is_async:
            return around(_looked_at(component, response), response)
        _look_at(component, response)
        return response

    def _component(self, client: Any, args: Any, kwargs: Any) -> Get | None:
        """What a GET of a declared host is a call of; None for all other requests. (Those that write are seen where
        they are sent.)"""
        named = dict(zip(("method", "url"), args, strict=False)) | kwargs
        verb, url = named.get("method"), named.get("url")
        host = _hosts.get(self._asked_of(client, url) or "")
        if host is None or not isinstance(verb, str) or client in _ours:
            return None
        if verb.upper() != "GET" or len(args) > 2 or type(client) is not self.loaded():
            return None
        if not all(_is_its_own(cls, name, self.package) for cls, name in self._sending()):
            return None  # somebody hears of what is sent, and has to when the program sends it
        tree = self._read(None, args, kwargs)
        if not is_plain(tree) or (settings := self.settings(client)) is None or own_code(client):
            return None
        component = host(settings)
        _keep(component, client)
        return component

    def _sending(self) -> Iterator[tuple[type, str]]:
        """What a request goes through."""
        package: Any = sys.modules[self.package]
        cls = getattr(package, self.name)
        yield cls, "send"
        if self.of_requests:
            yield package.adapters.HTTPAdapter, "send"
        elif self.is_async:
            yield package.AsyncHTTPTransport, "handle_async_request"
        else:
            yield package.HTTPTransport, "handle_request"

    def _asked_of(self, client: Any, url: Any) -> str | None:
        text = str(url)
        with suppress(ValueError):
            parts = urlsplit(text)
            if not (self.of_requests or parts.scheme or parts.netloc):
                return origin_of(str(getattr(client, "base_url", "")))
        return origin_of(text)

    # --- inputs

    def _read(self, component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
        """Address and arguments, without those that say what holds anyway; opaque is what is unusual."""
        named = dict(zip(("method", "url"), args, strict=False)) | kwargs
        tree: dict[str, Tree] = {"url": str(named.pop("url", ""))}
        named.pop("method", None)
        for name, value in named.items():
            if self._holds_anyway(name, value):
                continue
            value = pairs_of(value) if name == "params" else value
            tree[name] = self._tree(value) if name in self.takes else Opaque(value)
        return tree

    def _holds_anyway(self, name: str, value: Any) -> bool:
        if type(value).__name__ == "UseClientDefault" or (name == "stream" and value is False):
            return True
        if self.of_requests and name == self.redirects and value is True:
            return True
        return value is None and (self.of_requests or name not in ("auth", "timeout"))

    def _tree(self, value: Any) -> Tree:
        """A timeout of `httpx` tells what it says."""
        told = getattr(value, "as_dict", None) if type(value).__name__ == "Timeout" else None
        found = snapshot([value if told is None else {_TIMEOUT: told()}], exact=True)
        return found[0] if isinstance(found, list) else found

    def _build(self, component: Any, tree: Tree) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kwargs = {name: thaw(value) for name, value in tree.items()}
        timeout = kwargs.get("timeout")
        if isinstance(timeout, dict) and _TIMEOUT in timeout:
            kwargs["timeout"] = sys.modules[self.package].Timeout(**timeout[_TIMEOUT])
        return ("GET", kwargs.pop("url")), kwargs

    # --- clients

    def settings(self, client: Any) -> dict[str, Tree] | None:
        """What a client is set to, as plain values; None if there is more to it."""
        try:
            found = snapshot(of_session(client) if self.of_requests else of_httpx(client), exact=True)
        except _UNUSUAL:
            return None
        return {"client": f"{self.package}.{self.name}", **found} if is_plain(found) else None

    @contextmanager
    def again(self, component: Get) -> Iterator[Any]:
        """A client like the one by whose settings the component was made, of the same settings at this moment. Raises
        CallCancelled where there is none."""
        client = _clients.get(_alike(component))
        try:
            made = copy.deepcopy(client) if self.of_requests else alike(client)
        except _UNUSUAL as error:  # another thread may be setting it
            raise CallCancelled("its client can't be made again") from error
        if made is None:
            raise CallCancelled("nobody knows how its client was made")
        _ours.add(made)
        try:
            now = self.settings(made)
            if now is None or now != vars(component):
                raise CallCancelled("its client is set otherwise by now")
            yield made
        finally:
            if not self.is_async:
                made.close()

    @cached_property
    def usual(self) -> dict[str, Tree] | None:
        """What a client is set to that nobody has set to anything."""
        made: Any = self.loaded()
        made = made() if made is not None else None
        _ours.add(made)
        return self.settings(made)

    def straight(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        return {**kwargs, self.redirects: False}


def _alike(component: Get) -> tuple[type, Hashable]:
    return type(component), freeze(dict(vars(component)))


def _keep(component: Get, client: Any) -> None:
    alike = _alike(component)
    _clients.pop(alike, None)
    _clients[alike] = client
    while len(_clients) > MAX_CLIENTS:
        with suppress(KeyError, StopIteration, RuntimeError):  # another thread keeps one
            del _clients[next(iter(_clients))]


def _is_its_own(cls: type, name: str, package: str) -> bool:
    """Whether a method is as the package made it, but for Accel's own look at it."""
    function = cls.__dict__.get(name)
    function = getattr(function, "__wrapped__", None) if patches.is_wrapped(cls, name) else function
    return type(function) is FunctionType and is_file_of(package, function.__code__.co_filename)


_TIMEOUT = "each timeout"
_UNUSUAL = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def is_nobodys(component: Any) -> bool:
    """Whether it asks a declared host as anybody would: `requests.get`, or a client that was set to nothing."""
    return isinstance(component, Get) and vars(component) == _http_of(component).usual


def _http_of(component: Get) -> Http:
    return _BY_NAME[vars(component)["client"]]


_HTTP = [
    Http("requests", "Session"),
    *(Http(name, cls, cls[0] == "A") for name in ("httpx", "httpx2") for cls in ("Client", "AsyncClient")),
]
_BY_NAME = {f"{http.package}.{http.name}": http for http in _HTTP}

# --- answers


def _sets_cookies(response: Any) -> bool:
    return "set-cookie" in response.headers


def _leads_on(response: Any) -> bool:
    return bool(getattr(response, "has_redirect_location", False) or getattr(response, "is_redirect", False))


_COOKIES, _ELSEWHERE = "its answers set cookies", "its answers lead elsewhere"


def _checked(component: Get, response: Any, kwargs: Mapping[str, Any], http: Http) -> Any:
    """The answer to an early call. Raises CallCancelled if the program's own would have done more than to read."""
    client = vars(component)
    follows = kwargs.get(http.redirects, True if http.of_requests else client["follow_redirects"])
    why = _COOKIES if _sets_cookies(response) else _ELSEWHERE if follows and _leads_on(response) else ""
    if why:
        unfit(type(component), why)
        raise CallCancelled(why)
    return response


def _look_at(component: Get, response: Any) -> None:
    """The answer to the program's own."""
    if any(map(_sets_cookies, (response, *response.history))):
        unfit(type(component), _COOKIES)
    elif response.history:
        unfit(type(component), _ELSEWHERE)


async def _looked_at(component: Get, response: Awaitable[Any]) -> Any:
    found = await response
    _look_at(component, found)
    return found
