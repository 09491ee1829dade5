"""Clients of SDKs, by what they were made of.

A program that makes a model for each call makes a client for each, too. What such a client sends, and where, is said by
its address, key, headers and settings; its pools, locks and cookies are its own. So two clients of the same class that
were made alike count as one, whatever each has done since. A client of a user's own class is only itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from contextlib import suppress
from functools import partial
from http.cookiejar import Cookie, CookieJar
from typing import Any

from ...process import forks
from ...text.classes import of_class
from ..listed.classes import LISTED

_GOOGLES = "google.genai"
"""Other packages share the first part of this name."""


def _package(module: str) -> str:
    return _GOOGLES if f"{module}.".startswith(f"{_GOOGLES}.") else module.partition(".")[0]


SDKS = frozenset(
    f"anthropic cohere {_GOOGLES} groq httpcore httpcore2 httpx httpx2 mistralai ollama openai together".split()
)
"""Packages whose classes keep what they were made of in fields, and send nothing else."""
PACKAGES = SDKS | {_package(package) for package in LISTED}
TRACER = "_lazy_tracer"
"""The field in which a client keeps what tells OpenTelemetry of its calls, from the first one on."""
OF_USE = frozenset(
    "_aiohttp_sessions _async_auth_locks _async_retry _connections _last_challenge _network_backend _nonce_count "
    "_optional_thread_lock _platform _pool_lock _requests _retry _state _sync_auth_lock _thread_lock "
    f"{TRACER}".split()
)
"""Fields that tell what an object has done, or that it makes of others, not how it was made."""
SETTINGS = "_http_options"
"""The field that holds what an SDK makes its connections of: those beside it are its own, unless they stand in it."""


class Identity:
    """Class and fields of a component or a client, to be compared by: its hash is worked out once."""

    __slots__ = ("_hash", "cls", "fields")

    def __init__(self, cls: type, fields: tuple[tuple[str, Hashable], ...]) -> None:
        self.cls = cls
        self.fields = fields
        self._hash = hash((cls, fields))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Identity) or self._hash != other._hash or self.cls is not other.cls:
            return False
        return self.fields == other.fields

    def __hash__(self) -> int:
        return self._hash


def is_client(cls: type) -> bool:
    """Whether it is a class of an SDK's, or one that a package of the built-in table derives from such a class."""
    return _is_client(cls)


@of_class
def _is_client(cls: type) -> bool:
    return _package(cls.__module__) in PACKAGES and any(_package(base.__module__) in SDKS for base in cls.__mro__)


def is_connection(cls: type) -> bool:
    """Whether it is what SDKs send with, which knows addresses and headers, but no model and no prompt."""
    return _is_connection(cls)


@of_class
def _is_connection(cls: type) -> bool:
    return any(_package(base.__module__) in _CONNECTIONS for base in cls.__mro__)


def is_sender(cls: type) -> bool:
    """Whether objects of an SDK's class are clients themselves, and not what these send with."""
    return not is_connection(cls) or hasattr(cls, "send")


def is_closed(component: Any) -> bool:
    """Whether a client, or the one that a part of a client sends with, was closed: it answers nothing any more."""
    client: Any = component
    while is_client(type(client)):
        closed = getattr(client, "is_closed", False)
        if closed() if callable(closed) else closed:
            return True
        client = getattr(client, "_client", None)
    return False


_CONNECTIONS = frozenset("httpcore httpcore2 httpx httpx2".split())
_DEFAULT = "HttpxClientWrapper"
"""How the names of classes end of which SDKs make the connections that nobody gave them."""


def made_by_sdk(cls: type) -> bool:
    return cls.__name__.endswith(_DEFAULT)


def is_sdks(cls: type) -> bool:
    """Whether a package of an SDK defines it."""
    return _package(cls.__module__) in SDKS


@of_class
def kept_elsewhere(cls: type) -> tuple[str, ...]:
    """The fields that a class of an SDK's keeps elsewhere than in its objects, though its bases do not: those of
    `openai`'s module, which `openai.api_key = ...` sets, for its client."""
    bases = [base for base in cls.__mro__ if is_sdks(base)]
    return tuple(
        name
        for base in bases[:-1]
        for name, value in vars(base).items()
        if isinstance(value, property) and value.fset is not None
    )


# --- changes --------------------------------------------------------------------------------------------------------


class Record:
    """What a client was when it was first looked at, and whether somebody has changed it since."""

    __slots__ = ("_client", "_first", "changed", "restless")

    def __init__(self, client: weakref.ref[Any], first: Identity) -> None:
        self._client, self._first = client, hash(first)  # no more of it: it may hold what holds the client
        self.changed = False
        """Somebody has: it belongs to whom that was, until the run has used it as it is."""
        self.restless = False
        """Within a run."""

    def note(self, made: Identity) -> None:
        self.changed = self.changed or self._first != hash(made)

    def is_of(self, client: Any) -> bool:
        return self._client() is client


_records: dict[int, Record] = {}


def recorded(client: Any, made: Identity) -> Record | None:
    """A client was looked at; None if it can't be told again."""
    record = _records.get(id(client))
    if record is None or not record.is_of(client):
        try:
            record = Record(weakref.ref(client, partial(_forget, id(client))), made)
        except TypeError:  # no weak references
            return None
        _records[id(client)] = record
    record.note(made)
    return record


def _forget(at: int, gone: object) -> None:
    record = _records.get(at)
    if record is not None and record.is_of(None):
        _records.pop(at, None)


COOKIES = forks.lock()
"""Held by whoever sets cookies that may be no change, or looks at them."""
_answered: weakref.WeakSet[Cookie] = weakref.WeakSet()
OF_CARRIERS = frozenset(
    "__cf_bm __cflb __cfruid __cfseq __cfwaitingroom _cfuvid cf_clearance AWSALB AWSALBCORS AWSALBTG AWSALBTGCORS "
    "AWSELB AWSELBCORS ARRAffinity ARRAffinitySameSite ApplicationGatewayAffinity ApplicationGatewayAffinityCORS GCLB "
    "_abck ak_bmsc bm_mi bm_sv bm_sz".split()
)
"""Cookies by which Cloudflare, Amazon, Azure, Google and Akamai tell robots, and find the same machine again."""


def note_answered(before: list[Cookie], jar: CookieJar) -> None:
    """A call's answer has set cookies, which its client sends with the next one."""
    _answered.update(cookie for cookie in jar if not any(cookie is one for one in before))


def given_cookies(jar: CookieJar) -> list[Cookie]:
    """Those by which who answers may know whom. What carriers on the way set with every other answer to a call is
    none of that: early or not, a call has those that it gets."""
    while True:
        with COOKIES, suppress(RuntimeError):  # another thread sets one
            return [cookie for cookie in jar if cookie.name not in OF_CARRIERS or cookie not in _answered]


def told_by(jar: CookieJar) -> list[Any]:
    """Names, values and hosts of the cookies but for carriers', where nobody notes which of them calls were answered
    with: a log-in's are among them."""
    with COOKIES:
        return [text for each in jar if each.name not in OF_CARRIERS for text in (each.name, each.value, each.domain)]
