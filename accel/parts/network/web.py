"""Clients of `requests` and `httpx`: what they are set to, as plain values, another one that is set alike, and what
answers say. With what a client of `httpx` was made it does not tell: that is noted, once a host was declared."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

from ...text.objects import is_a
from ...text.values import Opaque, Tree, leaves, snapshot
from ..identities.surroundings import told

MAX_BYTES = 1_000_000
"""Of a longer answer nothing is looked for in later inputs."""
_MAKING = ("cert", "default_encoding", "http1", "http2", "limits", "mounts", "proxy", "transport", "verify")
_made_with: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
_made_in: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
"""What these took from the process when they were made."""
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
MAX_TRUSTED = 8
_trusted: dict[Hashable, Any] = {}
"""By package, which versions of HTTP a client speaks, and the process's certificates: see `_usual_trust`."""


def note_making(wrapped: Callable[..., Any], client: Any, args: Any, kwargs: dict[str, Any]) -> None:
    wrapped(*args, **kwargs)
    with suppress(TypeError):
        made_with = {name: kwargs[name] for name in _MAKING if not _says_nothing(name, kwargs.get(name))}
        if "limits" in made_with:
            made_with["limits"] = vars(made_with["limits"])
        _made_with[client] = made_with
        _made_in[client] = told()


def was_made_before(client: Any) -> bool:
    """Whether it is a client of `httpx` of which nobody noted how it was made."""
    return type(client).__module__.startswith("httpx") and client not in _made_with


def _says_nothing(name: str, value: Any) -> bool:
    return value is None or (name == "verify" and value is True)


def is_plain(tree: Tree) -> bool:
    return not any(is_a(leaf, Opaque) for _, leaf in leaves(tree))


def _is_known(made_with: dict[str, Any] | None) -> bool:
    """Whether it is noted, and can be used again."""
    return made_with is not None and is_plain(snapshot(made_with, exact=True))


def _cookies(jar: Any) -> dict[str, Tree]:
    return {f"{each.domain}{each.path} {each.name}": each.value for each in jar}


def of_session(session: Any) -> dict[str, Any]:
    """Of one of `requests`. What it holds beside (another `send`) is not among these."""
    unusual = vars(session).keys() - set(session.__attrs__)
    if unusual or session.stream or any(session.hooks.values()):
        raise TypeError
    tries = {place: vars(each.max_retries) for place, each in session.adapters.items()}
    if any(type(each).__module__ != "requests.adapters" for each in session.adapters.values()):
        raise TypeError
    return {
        "headers": dict(session.headers),
        "cookie_credentials": _cookies(session.cookies),
        "auth": _credentials(session.auth),
        "proxies": dict(session.proxies),
        "client_params": session.params,
        "verify": session.verify,
        "cert": session.cert,
        "trust_env": session.trust_env,
        _SURROUNDINGS: told() if session.trust_env else None,
        "max_redirects": session.max_redirects,
        "tries": {place: {name: _text(value) for name, value in said.items()} for place, said in tries.items()},
    }


_SURROUNDINGS = "credentials_around"
"""The name of the setting: proxies may be given with a password."""


def _text(value: Any) -> str:
    return repr(sorted(value) if is_a(value, frozenset | set) else value)  # equal sets may be told in any order


def of_httpx(client: Any) -> dict[str, Any]:
    if {"send", "request", "build_request"} & vars(client).keys() or any(client.event_hooks.values()):
        raise TypeError
    if len(client.headers) != len(client.headers.multi_items()):
        raise TypeError
    made_with = _made_with.get(client)
    if not _is_known(made_with):
        raise TypeError
    return {
        "headers": dict(client.headers),
        "cookie_credentials": _cookies(client.cookies.jar),
        "auth": _credentials(client.auth),
        "client_params": [list(pair) for pair in client.params.multi_items()],
        "address": str(client.base_url),
        "timeout": client.timeout.as_dict(),
        "follow_redirects": client.follow_redirects,
        "max_redirects": client.max_redirects,
        "trust_env": client.trust_env,
        _SURROUNDINGS: _made_in[client] if client.trust_env else None,
        "making": made_with,
    }


def _credentials(auth: Any) -> Tree:
    """A name and a password, however they were given."""
    if is_a(auth, tuple):
        return dict(zip(("user", "password"), auth, strict=True))
    if auth is None:
        return None
    return dict(vars(auth)) if type(auth).__name__ in ("HTTPBasicAuth", "BasicAuth") else Opaque(auth)


def alike(client: Any) -> Any:
    """A client of `httpx` like this one, with connections of its own; None if it is not known how that was made."""
    made_with = _made_with.get(client)
    if made_with is None or not _is_known(made_with):
        return None
    limits = made_with.get("limits")
    if limits is not None:
        package = sys.modules[type(client).__module__.partition(".")[0]]
        made_with = {**made_with, "limits": package.Limits(**limits)}
    made = type(client)(trust_env=client.trust_env, **{"verify": _usual_trust(client, made_with)} | made_with)
    _made_with[made] = _made_with[client]
    made.cookies = client.cookies  # of its own: what an answer sets is not set in the program's
    made.headers, made.params, made.base_url, made.timeout = (
        client.headers, client.params, client.base_url, client.timeout
    )  # fmt: skip
    made.auth, made.follow_redirects, made.max_redirects = client.auth, client.follow_redirects, client.max_redirects
    return made


def _usual_trust(client: Any, made_with: dict[str, Any]) -> Any:
    """What a client that was told nothing of certificates trusts: made once, as it takes 20 ms, which a coroutine's
    early call would spend on the program's own loop."""
    package = type(client).__module__.partition(".")[0]
    make = getattr(sys.modules[package], "create_ssl_context", None)
    if make is None or not made_with.keys().isdisjoint(("verify", "cert")):
        return True
    speaks = made_with.get("http1", True), made_with.get("http2", False)  # said in the handshake
    key = package, *speaks, *(_file_of(name) for name in _CERTIFICATES if client.trust_env)
    trusted = _trusted.get(key)
    if trusted is None:
        if len(_trusted) >= MAX_TRUSTED:
            _trusted.clear()
        trusted = _trusted[key] = make(trust_env=client.trust_env)
    return trusted


def _file_of(name: str) -> tuple[str, int] | None:
    """What an environment variable names, and when that changed."""
    path = os.environ.get(name)
    try:
        return (path, os.stat(path).st_mtime_ns) if path else None
    except OSError:
        return path or "", 0


def pairs_of(params: Any) -> Any:
    """In the order in which they go into the address."""
    if not is_a(params, dict):
        return params
    listed = ((name, value if is_a(value, list | tuple) else [value]) for name, value in params.items())
    return [(name, each) for name, values in listed for each in values]


def view(response: Any) -> Tree:
    """What it says. `text` is not asked: it keeps its encoding, which the program may still set."""
    content = response.content
    charset = (response.charset_encoding if hasattr(response, "charset_encoding") else response.encoding) or "utf-8"
    if len(content) > MAX_BYTES:
        return None
    try:
        text = content.decode(charset)
    except (LookupError, UnicodeDecodeError):
        return None
    told: dict[str, Tree] = {"status_code": response.status_code, "text": text}
    if "json" in response.headers.get("content-type", ""):
        with suppress(ValueError):
            told["json"] = response.json()
    return told
