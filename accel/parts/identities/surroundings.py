"""What clients take from the process with each request: proxies, certificates, credentials.

A program may set it between two calls through the very same client, or through none that lasts (`requests.get`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_LOWER = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
NAMES = (
    *_LOWER, *map(str.upper, _LOWER),
    "NETRC", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""Of environment variables, as `requests`, `httpx` and `urllib` read them."""
_NETRC = ("~/.netrc", "~/_netrc")
_held: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
"""Where the interpreter keeps the variables: asking `os.environ` for one that is missing takes a microsecond."""
_keys = [os.environ.encodekey(name) if _held is not os.environ else name for name in NAMES]
_first: list[Any] = []
"""Their values when they were first looked at."""


def otherwise() -> tuple[tuple[str, str], ...] | None:
    """The variables' values, if they are others than when they were first looked at."""
    values = now()
    if not _first:
        _first.extend(values)
    return None if values == tuple(_first) else tuple(_told().items())


def now() -> tuple[Any, ...]:
    """The variables' values, as the interpreter keeps them; None where there is none."""
    return tuple(map(_held.get, _keys))


def _told() -> dict[str, str]:
    return {name: os.environ[name] for name in NAMES if name in os.environ}


def told() -> dict[str, Any]:
    """The variables' values, and which file of credentials there is, as it is now."""
    files = [os.environ["NETRC"]] if "NETRC" in os.environ else _NETRC
    found: dict[str, Any] = {}
    for file in map(os.path.expanduser, files):
        with suppress(OSError, ValueError):
            seen = os.stat(file)
            found[file] = [seen.st_ino, seen.st_size, seen.st_mtime_ns]
    return {**_told(), **found}
