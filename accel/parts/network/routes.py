"""Which way requests take to a private address: straight, or through somebody else's hands.

A client may be set to send by a proxy, the process's variables may name one, and who answers may lead a request on.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ...text.objects import in_class
from ..identities.own_code import senders
from ..identities.surroundings import now

MAX_LED = 1_024
_led: dict[str, None] = {}
"""Private places whose answers have led requests to a public one."""


@lru_cache(4_096)
def is_private(address: str) -> bool:
    """Whether it is loopback or private. Names that would need a look-up count as public."""
    try:
        host = urlsplit(_with_scheme(address)).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_private
    except ValueError:
        return False


def note_led(urls: Iterable[str]) -> None:
    """A request went to these, one after the other."""
    first, *others = urls
    if len(_led) < MAX_LED and is_private(first) and not all(map(is_private, others)):
        _led[_place(first)] = None


def leads_away(component: Any, addresses: Iterable[str], looked: bool = False) -> bool:
    """Whether what a component sends to private addresses reaches others first, as its clients are set, and as far as
    answers have shown. `looked`: see `senders`."""
    asked = [_with_scheme(address) for address in addresses]
    if not _led.keys().isdisjoint(map(_place, asked)):
        return True
    ways = [_proxy_of(client, address) for client in senders(component, looked) for address in asked]
    if not ways or None in ways:
        ways += [_proxy_around(address, now()) for address in asked]
    return not all(is_private(way) for way in ways if way)


def _proxy_of(client: Any, address: str) -> str | None:
    """The proxy by which a client sends there, empty if by none; None if it asks the process's variables each time."""
    if in_class(type(client), "_transport_for_url") is None:  # of `requests`
        return next((str(proxy) for proxy in client.proxies.values() if proxy), None if client.trust_env else "")
    try:
        way = client._transport_for_url(type(client.base_url)(address)) if client._mounts else client._transport
    except AttributeError:  # of another make
        return None
    proxy = getattr(getattr(way, "_pool", None), "_proxy_url", None)
    return proxy.host.decode() if proxy is not None else ""


@lru_cache(256)
def _proxy_around(address: str, _: tuple[str | None, ...]) -> str:
    """The same by the process's variables as they are."""
    parts, proxies = urlsplit(address), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    return "" if not proxy or proxy_bypass(parts.netloc) else proxy


def _with_scheme(address: str) -> str:
    return address if "//" in address else f"http://{address}"


def _place(address: str) -> str:
    return urlsplit(_with_scheme(address)).netloc.rpartition("@")[2]
