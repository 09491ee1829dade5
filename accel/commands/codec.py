"""Calls of components, written down: by which key one is found again, and what it gave, without secrets."""

from __future__ import annotations

import inspect
import json
import os
import re
import types
import weakref
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

from ..parts.identities.credentials import credentials_of
from ..text.objects import is_a
from ..text.values import Opaque, Tree, Vector, is_handed_on, rebuild, snapshot, thaw
from ..trace.ambient import CREDENTIAL
from .compare import GENERATED

REDACTED = "[redacted]"
_VECTOR = "$vector"
_FORMS = re.compile(
    r"\b(?:sk|pk|rk|gsk|tvly|xai|hf|ghp|gho|glpat|xox[abps]|pplx|nvapi)[-_][A-Za-z0-9_\-]{16,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_\-]{30,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}|(?i:\bbearer\s+[\w.\-]{8,})"
)
"""How keys of common services look."""
_HEADERS = re.compile(
    r"^((proxy-)?authorization|(x-)?api[-_]?key|(set-)?cookie|password|(client_)?secret|(access|refresh|id)_token)$",
    re.IGNORECASE,
)
"""Names under which answers hold them. Not all that may hold one: a model may ask for the key of a table."""
_SHORTEST_HELD, _SHORTEST_AROUND = 6, 12
"""Of a component's secrets, and of the environment's, of which some are words."""
_MAX_DEPTH = 4


class Unwritable(Exception):
    """A value of which no exact copy can be made from a text."""


# --- keys -----------------------------------------------------------------------------------------------------------


def key_of(tree: Tree) -> str:
    """Of an input: equal inputs have equal keys, in any process."""
    return _digest(json.dumps(_named(tree), sort_keys=True, default=repr))


def alike_of(tree: Tree) -> str:
    """The same without ids and times that no two runs share, and what messages say of their making."""
    return _digest(GENERATED.sub("", json.dumps(_unmade(_named(tree)), sort_keys=True, default=repr)))


def _unmade(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _unmade(value) for key, value in tree.items() if not is_handed_on(key)}
    return [_unmade(value) for value in tree] if isinstance(tree, list) else tree


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _named(tree: Tree) -> Any:
    """With names for what only a process has."""
    return rebuild(tree, lambda path, leaf: _name(leaf))


def _name(leaf: Tree) -> Any:
    if isinstance(leaf, Vector):
        return leaf.numbers()
    if not isinstance(leaf, Opaque):
        return leaf
    named = is_a(leaf.obj, type | types.FunctionType | types.BuiltinFunctionType)
    of = leaf.obj if named else type(leaf.obj)
    return f"{of.__module__}.{of.__qualname__}"


class Names:
    """What components are called in a file: class and configuration, as they were when first seen. Later they may count
    their calls."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, tuple[str, str]]] = {}

    def of(self, component: Any) -> tuple[str, str]:
        """The class, and a digest of plain fields that are no secrets."""
        held = self._known.get(id(component))
        if held is not None and held[0]() is component:
            return held[1]
        name = self._look(component)
        try:
            reference: Callable[[], Any] = weakref.ref(component)
        except TypeError:
            reference = lambda: component  # noqa: E731
        self._known[id(component)] = reference, name
        return name

    def _look(self, component: Any) -> tuple[str, str]:
        if inspect.isroutine(component):
            return f"{component.__module__}.{component.__qualname__}", ""
        cls = type(component)
        fields = _plain_fields(getattr(component, "__dict__", {}), 0)
        return f"{cls.__module__}.{cls.__qualname__}", _digest(json.dumps(fields, sort_keys=True, default=repr))


def _plain_fields(fields: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in list(fields.items()):
        if not isinstance(name, str) or name.startswith("_") or CREDENTIAL.search(name):
            continue
        if value is None or isinstance(value, bool | int | float | str):
            found[name] = value
        elif isinstance(value, Mapping) and depth < _MAX_DEPTH:
            found[name] = _plain_fields(value, depth + 1)
        elif isinstance(value, list | tuple) and all(isinstance(item, bool | int | float | str) for item in value):
            found[name] = list(value)
    return found


# --- results --------------------------------------------------------------------------------------------------------


def encoded(value: Any, secrets: Iterable[str]) -> Any:
    """As JSON has it, without these secrets and whatever looks like one. Raises Unwritable."""
    tree = snapshot([value], exact=True)
    if isinstance(tree, Opaque):
        raise Unwritable(type(value).__name__)
    return _written(tree[0], sorted(secrets, key=len, reverse=True), "")


def decoded(written: Any) -> Any:
    """A new value, equal to the one that was encoded but for its secrets. Raises LookupError where a class of it isn't
    imported."""
    return thaw(_read(written))


def _written(tree: Tree, secrets: list[str], name: str) -> Any:
    if isinstance(tree, dict):
        return {key: _written(value, secrets, key) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_written(value, secrets, name) for value in tree]
    if isinstance(tree, Vector):
        return {_VECTOR: tree.numbers()}
    if isinstance(tree, str):
        if tree and _HEADERS.match(name):
            return REDACTED
        return without(tree, secrets)
    if tree is None or isinstance(tree, bool | int | float):
        return tree
    raise Unwritable(type(tree.obj if isinstance(tree, Opaque) else tree).__name__)


def _read(written: Any) -> Tree:
    if isinstance(written, dict):
        if written.keys() == {_VECTOR}:
            return Vector.of(written[_VECTOR])
        return {key: _read(value) for key, value in written.items()}
    return [_read(value) for value in written] if isinstance(written, list) else written


# --- secrets --------------------------------------------------------------------------------------------------------


def secrets_of(component: Any) -> set[str]:
    """What a component holds of them, and the environment."""
    held = {_text(value) for value in credentials_of(component).values()}
    around = {value for name, value in os.environ.items() if CREDENTIAL.search(name)}
    return {
        *(text for text in held if len(text) >= _SHORTEST_HELD),
        *(text for text in around if len(text) >= _SHORTEST_AROUND),
    }


def _text(credential: Any) -> str:
    reveal = getattr(type(credential), "get_secret_value", None)
    value = reveal(credential) if reveal is not None else credential
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def without(text: str, secrets: Iterable[str]) -> str:
    """A text without these, the longest first, and without what looks like a key."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return _FORMS.sub(REDACTED, text)
