"""Writes to declared hosts, seen at the connection: whatever client makes them, or none at all. Most clients that wait
come down to `http.client`."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from ..methods import patches
from ..methods.epochs import write
from .http import Sent

_writing: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""By connection, the host that its request writes to, until it is answered."""


def install(written: Callable[[Any, Sent], Any]) -> None:
    """`written`: the host that a request writes to, if one was declared."""

    def request(wrapped: Callable[..., Any], connection: Any, args: Any, kwargs: Any) -> Any:
        named = dict(zip(("method", "url"), args, strict=False)) | kwargs
        scheme = "https" if connection.default_port == http.client.HTTPS_PORT else "http"
        host = written(connection, Sent(str(named.get("method")), f"{scheme}://{connection.host}:{connection.port}"))
        if host is None:
            return wrapped(*args, **kwargs)
        _writing[connection] = host
        return write(host, wrapped, args, kwargs)

    def answer(wrapped: Callable[..., Any], connection: Any, args: Any, kwargs: Any) -> Any:
        host = _writing.pop(connection, None)
        return wrapped(*args, **kwargs) if host is None else write(host, wrapped, args, kwargs)

    patches.wrap(http.client.HTTPConnection, "putrequest", request)
    patches.wrap(http.client.HTTPConnection, "getresponse", answer)
