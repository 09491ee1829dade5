"""Where the data of a component goes."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from .listed import addresses_of, is_inside

ADDRESS_FIELDS = ("base_url", "api_base", "endpoint", "endpoint_url", "azure_endpoint", "server_url", "url", "host")
"""Where clients often keep an address. That of an unlisted class may be another one: this is a hint for people."""


def endpoint_of(component: Any) -> str | None:
    """The address that a component seems to talk to."""
    known = addresses_of(component)
    if known is not None:
        return next(iter(known), None)
    values = (getattr(component, name, None) for name in ADDRESS_FIELDS)
    return next((str(value) for value in values if value and not callable(value)), None)  # also address objects


def stays_near(component: Any) -> bool:
    """Whether data of a listed component stays in this process, or this network."""
    return is_inside(component) or has_private_endpoint(component)


def has_private_endpoint(component: Any) -> bool:
    """Whether all addresses of a listed component are loopback or private. Names that would need a look-up count as
    public, and so does what nobody knows."""
    return all(map(_is_private, known)) if (known := addresses_of(component)) else False


def _is_private(address: str) -> bool:
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_private
    except ValueError:
        return False
