"""Where the data of a component goes, and who gets it there.

Behind one address there may be several that get data: a gateway hands it on to the vendor of the model that it is asked
for, a proxy books it on the account whose key it is sent with. So a recipient is an address, with a key; and with a
model and with headers, unless the address is that of a vendor which serves all of its models itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ...text.objects import own
from ...text.values import Tree, freeze, snapshot
from ..identities.clients import is_client
from ..listed.table import addresses_of, is_inside
from .hosts import Get
from .routes import is_private, leads_away

ADDRESS_FIELDS = ("base_url", "api_base", "endpoint", "endpoint_url", "azure_endpoint", "server_url", "url", "host")
"""Where clients often keep an address. That of an unlisted class may be another one: this is a hint for people."""


def endpoint_of(component: Any) -> str | None:
    """The address that a component seems to talk to."""
    known = addresses_of(component)
    if known is not None:
        return next(iter(known), None)
    values = (getattr(component, name, None) for name in ADDRESS_FIELDS)
    return next((str(value) for value in values if value and not callable(value)), None)  # also address objects


def stays_near(component: Any, looked: bool = False) -> bool:
    """Whether data of a listed component stays in this process, or this network. `looked`: `own_code` was asked just
    now."""
    return is_inside(component) or has_private_endpoint(component, looked)


def has_private_endpoint(component: Any, looked: bool = False) -> bool:
    """Whether all addresses of a listed component are loopback or private, and requests get there straight. Names that
    would need a look-up count as public, and so does what nobody knows."""
    known = addresses_of(component) or ()
    return bool(known) and all(map(is_private, known)) and not leads_away(component, known, looked)


# --- recipients

VENDORS = frozenset(
    "api.openai.com api.anthropic.com api.mistral.ai api.groq.com api.cohere.com api.cohere.ai api.x.ai "
    "api.deepseek.com api.together.xyz api.fireworks.ai api.cerebras.ai generativelanguage.googleapis.com".split()
)
"""Hosts behind which all models are one company's to serve,"""
_VENDORS = (".openai.azure.com", ".amazonaws.com")
"""and how the names of others end."""
_MODEL = ("model_name", "model", "model_id", "azure_deployment", "deployment_name", "engine")
"""Where components and calls say which model answers."""
_ROUTE = (
    "default_headers", "default_query", "additional_headers", "extra_body", "model_kwargs", "additional_kwargs",
    "openai_organization",
)  # fmt: skip
"""Where components say what a gateway may go by besides,"""
_ROUTE_OF_SDK = ("_custom_headers", "_custom_query", "organization", "project")
"""clients of SDKs,"""
_ROUTE_OF_CALL = ("extra_headers", "extra_query", "extra_body")
"""and calls."""
_ROUTE_OF_GET = ("auth", "cert", "cookies", "headers", "proxies")
"""Who asks a declared host, beside what its client is set to."""


def recipient(component: Any, keys: tuple[str, ...], tree: Tree) -> Hashable:
    """Who gets the data of a call. `keys`: the credentials that the component holds; `tree`: the input. The instance
    alone where an address, a model or an account is not told."""
    addresses = tuple(addresses_of(component) or ())
    if isinstance(component, Get):
        route = [tree.get(name) for name in _ROUTE_OF_GET] if isinstance(tree, Mapping) else []
        return addresses, freeze(snapshot(vars(component))), freeze(route)
    given: Any = tree.get("kwargs") if isinstance(tree, Mapping) else None
    asked: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    account = frozenset(keys) or _without_key(component)
    if not addresses or not account:
        return id(component)
    beside = freeze([asked.get(name) for name in _ROUTE_OF_CALL])
    if all(map(_is_vendors, addresses)):
        return addresses, account, beside
    model = _first(asked, _MODEL) or _first(own(component) or {}, _MODEL)
    if not isinstance(model, str):
        return id(component)
    is_part = is_client(type(component))
    holder, names = (getattr(component, "_client", component), _ROUTE_OF_SDK) if is_part else (component, _ROUTE)
    return addresses, account, beside, model, freeze([snapshot(getattr(holder, name, None)) for name in names])


def _without_key(component: Any) -> str:
    """Servers of this make take none."""
    return "none" if "ollama" in type(component).__module__ else ""


def _first(held: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((held[name] for name in names if held.get(name) not in (None, "")), None)


def _is_vendors(address: str) -> bool:
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return False
    return host in VENDORS or host.endswith(_VENDORS)
