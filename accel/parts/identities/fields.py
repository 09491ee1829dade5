"""What a client consists of, field by field: what it adds to the inputs of its calls comes from there.

A lesson may hold what one client added (its system prompt). So it is used with another one only as far as the fields of
those that taught it allow, like the dimensions of a context (`accel.learn.contexts.contexts`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from ...text.objects import is_a
from ...text.values import Opaque
from ...trace.ambient import CREDENTIAL, Dimensions, digest, digest_of_secret
from .clients import Identity, is_connection


def fields_of(identity: Hashable) -> Dimensions:
    """Digests of a client's class and fields, when it had this identity. None of stores, retrievers and tools: those
    are only themselves."""
    if not isinstance(identity, Identity):
        return {}
    fields = {f"its field {name}": _digest(name, compared) for name, compared in identity.fields}
    return {"its class": digest(_name(identity.cls)), **fields}


def _digest(name: str, compared: Hashable) -> str:
    """Of what this process alone can compare, an object or a secret, it can't be told elsewhere what it was."""
    parts = list(_parts(compared))
    text = repr([part for part in parts if not isinstance(part, Opaque)])
    objects = "".join(digest(part) for part in parts if isinstance(part, Opaque))
    if objects:
        return f"~{digest(text)}{objects}"
    secret = CREDENTIAL.search(name) or "secret" in parts or "client" in parts
    return digest_of_secret(text) if secret and parts != [None] else digest(text)


def _parts(compared: Hashable) -> Iterator[Any]:
    if isinstance(compared, tuple) and compared[:1] == (Identity,):
        compared = compared[1]  # with its class, as `freeze` has it
    if isinstance(compared, Identity) and is_connection(compared.cls):
        yield None  # like one that the SDK makes: it carries inputs and adds nothing to them
    elif isinstance(compared, Identity):  # of an SDK's client, which has a key
        yield from ("client", _name(compared.cls), len(compared.fields))
        for name, held in compared.fields:
            yield name
            yield from _parts(held)
    elif isinstance(compared, tuple):
        yield len(compared)
        for part in compared:
            yield from _parts(part)
    elif isinstance(compared, type):
        yield _name(compared)
    elif isinstance(compared, Opaque) and is_a(compared.obj, type):
        yield "class", _name(compared.obj)
    else:
        yield compared


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
