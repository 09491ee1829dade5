"""Objects of web frameworks: what of a request is data, and what is the server's machinery.

Told by the names of modules and classes: none of the frameworks need be there.
"""

from __future__ import annotations

from typing import Any

_MACHINERY = {
    "flask.app.Flask", "flask.sansio.scaffold.Scaffold", "flask.scaffold.Scaffold",
    "werkzeug.routing.map.Map", "werkzeug.routing.rules.Rule",
    "starlette.applications.Starlette", "starlette.routing.Router", "starlette.routing.BaseRoute",
    "starlette.middleware.Middleware",
    "django.core.handlers.base.BaseHandler", "django.urls.resolvers.URLResolver", "django.urls.resolvers.URLPattern",
}  # fmt: skip
"""Classes of applications, routers and routes: one object for all requests, so which one it is says enough."""

_FIELDS = {
    "starlette.requests.HTTPConnection": {
        "_receive", "_send", "_stream_consumed", "_is_disconnected",
        "_headers", "_url", "_base_url", "_cookies", "_query_params",  # made of the scope, when first asked for
    },
    "werkzeug.wrappers.request.Request": {
        "json_module", "routing_exception", "stream",
        "args", "cookies", "url", "base_url", "host", "host_url", "full_path", "user_agent",  # made of the environment
    },
    "flask.ctx.AppContext": {"_cv_tokens", "_cv_token", "_push_count"},
    "flask.ctx.RequestContext": {"_cv_tokens", "_cv_token"},
    "werkzeug.datastructures.mixins.UpdateDictMixin": {"on_update"},
    "flask.sessions.SessionMixin": {"accessed"},
    "django.http.request.HttpRequest": {
        "environ",  # the same as META
        "_stream", "_read_started", "_upload_handlers", "resolver_match",
    },
    "django.contrib.sessions.backends.base.SessionBase": {"accessed", "serializer"},
    "django.utils.functional.SimpleLazyObject": {"_setupfunc"},
}  # fmt: skip
"""By class, the fields that hold machinery, or say again what others do."""

_OF_SCOPES = {"router", "route", "endpoint", "extensions"}
_OF_SERVERS = (".wsgi.", ".gunicorn.", ".uwsgi.", ".gevent.")
"""How the names of what a server puts into a WSGI environment begin: streams, sockets and functions, made for each
request, are its machinery."""
_SAID = (str, bool, int, tuple)


def is_machinery(cls: type) -> bool:
    """Whether its objects belong to the application, and to no request."""
    return any(name in _MACHINERY for name in _names(cls))


def data(cls: type, parts: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The parts of an object that are data of a request, and all parts of any other object."""
    here = {name for name, _ in parts}
    without = {f".{field}" for name in _names(cls) for field in _FIELDS.get(name, ())}
    if issubclass(cls, dict) and {".type", ".asgi"} <= here:  # an ASGI scope
        without |= {f".{key}" for key in _OF_SCOPES} | {name for name in here if name.endswith("_astack")}
    if issubclass(cls, dict) and ".wsgi.version" in here:  # a WSGI environment
        without |= {name for name, part in parts if name.startswith(_OF_SERVERS) and type(part) not in _SAID}
        without |= {name for name in here if name.startswith(".werkzeug.")}
    if ".environ" in here and "werkzeug.wrappers.request.Request" in _names(cls):
        without.add(".headers")  # a view of the environment
    return [part for part in parts if part[0] not in without] if without else parts


def _names(cls: type) -> list[str]:
    return [f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__]
