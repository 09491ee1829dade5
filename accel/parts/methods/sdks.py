"""Methods that programs call themselves: those of SDK clients, by the built-in table, and those that users declare.

client.chat.completions.create(model="m", messages=[...])      # a call of the component client.chat.completions
accel.register(Catalogue, methods=["search"], readonly=True)   # from now on, calls of `search` are, too
"""

from __future__ import annotations

import inspect
import sys
import types
import weakref
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import ConfigurationError, choose
from ...text.values import Opaque, Tree, add_view, class_name, class_named, leaves, snapshot
from ..listed.classes import LISTED
from . import patches
from .methods import Kind, Method, build_call, no_view, read_call

_DIARY = ("id", "created", "created_at", "model", "model_version", "object", "response_id", "sdk_http_response",
          "service_tier", "system_fingerprint", "total_duration", "usage", "usage_metadata")  # fmt: skip
"""What answers say of their making: nobody pastes that into prompts."""


_RAW = "X-Stainless-Raw-Response"
"""By this header an SDK's `with_streaming_response` tells itself that the program reads the answer."""


def _read(component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
    """What is asked to stream gives an object that reads on: the call is never early."""
    tree: dict[str, Tree] = read_call(component, args, kwargs)
    headers = kwargs.get("extra_headers")
    unread = isinstance(headers, Mapping) and headers.get(_RAW) == "stream"
    return {**tree, "streams": Opaque(object())} if kwargs.get("stream") or unread else tree


def _read_content(component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
    """Google's client calls functions of the program's that it is given as tools: then neither."""
    tree: dict[str, Tree] = read_call(component, args, kwargs)
    plain = not any(isinstance(leaf, Opaque) for _, leaf in leaves(tree))
    return tree if plain else {**tree, "calls": Opaque(object())}


def _view(result: Any) -> Tree:
    tree = snapshot(result)
    return {key: value for key, value in tree.items() if key not in _DIARY} if isinstance(tree, dict) else tree


def _view_model(value: Any) -> dict[str, Tree]:
    """What was set, as it is what is sent."""
    return {_MODEL: class_name(value), **{name: getattr(value, name) for name in sorted(value.model_fields_set)}}


def _build_model(fields: dict[str, Any]) -> Any:
    cls = class_named(fields.pop(_MODEL), sys.modules["pydantic"].BaseModel)
    return cls.model_construct(_fields_set=set(fields), **fields)


def _tokens(result: Any) -> tuple[int, int]:
    usage = getattr(result, "usage", None)
    for before, after in (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")):
        counts = getattr(usage, before, None), getattr(usage, after, None)
        if isinstance(counts[0], int) and isinstance(counts[1], int):
            return counts[0], counts[1]
    return 0, 0


_KINDS: dict[Kind, str] = {"sync": "", "async": " (async)"}
"""How the families of such methods end."""


def _methods() -> Iterator[Method]:
    decode: dict[str, Any] = {"op": "decode", "view": _view, "tokens": _tokens}
    embedding: dict[str, Any] = {"op": "embedding", "view": no_view}
    for family, name, more in (
        ("create", "create", decode),
        ("parse", "parse", decode),
        ("chat", "chat", decode),
        ("generate", "generate", decode),
        ("generate_content", "generate_content", {**decode, "read": _read_content}),
        ("embedding", "create", embedding),
        ("embed", "embed", embedding),
        ("search", "search", {"op": "searching", "view": snapshot}),
    ):
        for kind, suffix in _KINDS.items():
            shared = {"read": _read, **more}
            yield Method(name=name, family=f"sdk {family}{suffix}", kind=kind, build=build_call, direct=True, **shared)


METHODS = {(method.family, method.name): method for method in _methods()}
"""Of SDKs, by family and name."""
_LISTED = [
    (package, name, [method for (family, _), method in METHODS.items() if family in entry.families])
    for package, classes in LISTED.items()
    for name, entry in classes.items()
    if any(family.startswith("sdk ") for family in entry.families)
]
_WITH_MODELS = frozenset(("anthropic", "groq", "openai"))
"""Packages whose answers are models of pydantic: programs put parts of them into the next call's messages."""
_seen: set[str] = set()
"""Of those, the ones that were loaded."""
_MODEL = "sdk_model"
_leaves: set[type] = set()
"""Classes of SDKs that have been patched."""
DECLARED = "declared "
"""How the families of methods begin that users declare."""
_declared: weakref.WeakKeyDictionary[type, list[Method]] = weakref.WeakKeyDictionary()


def install_all() -> None:
    """Patch what is loaded by now."""
    if not patches.enabled:
        return
    for package in _WITH_MODELS - _seen:
        base = getattr(sys.modules.get(package), "BaseModel", None)
        if base is not None:
            _seen.add(package)
            add_view(base, _view_model, _MODEL, _build_model)
    for package, name, methods in _LISTED:
        module = sys.modules.get(package)
        cls = getattr(module, name, None) if module is not None else None
        if isinstance(cls, type):
            for method in methods:
                if not patches.is_installed(cls, method.name) and _is_its_own(cls, method.name, package):
                    patches.install(cls, method)
                    _leaves.add(cls)
    for cls, methods in list(_declared.items()):
        for method in methods:
            patches.install(cls, method)


def _is_its_own(cls: type, name: str, package: str) -> bool:
    """Whether a method is as the package made it. One that somebody has wrapped, to tell of its calls, is let be."""
    function = cls.__dict__.get(name)
    return isinstance(function, types.FunctionType) and is_file_of(package, function.__code__.co_filename)


@lru_cache(1_024)
def is_file_of(package: str, file: str) -> bool:
    """Asked with every run about a method that somebody has wrapped."""
    root = sys.modules[package.partition(".")[0]]
    folders = [Path(folder).resolve() for folder in getattr(root, "__path__", ())]
    return any(Path(file).resolve().is_relative_to(folder) for folder in folders)


def is_leaf(value: Any) -> bool:
    """Whether it is an object of a class that has such methods."""
    bases = type(value).__mro__
    return any(base in _leaves for base in bases) or (bool(_declared) and any(base in _declared for base in bases))


def _public_methods(cls: type) -> list[str]:
    members = {name: member for base in reversed(cls.__mro__) for name, member in vars(base).items()}
    return sorted(name for name, it in members.items() if isinstance(it, types.FunctionType) and name[0] != "_")


def declare(component: Any, names: tuple[str, ...]) -> None:
    """Calls of these methods are calls of a component from now on. Raises ConfigurationError."""
    cls = component if isinstance(component, type) else type(component)
    found: list[tuple[type, Method]] = []
    for name in names:
        base = next((base for base in cls.__mro__ if name in base.__dict__), None)
        function = base.__dict__[name] if base is not None else None
        if base is None or not isinstance(function, types.FunctionType):
            raise ConfigurationError(
                f"{cls.__name__} has no method {name!r} that could be declared.",
                choose(name, _public_methods(cls), "Name methods that it defines:"),
            )
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigurationError(f"{cls.__name__}.{name} yields.", "Declare methods that return.")
        kind: Kind = "async" if inspect.iscoroutinefunction(function) else "sync"
        method = Method(
            name=name,
            family=f"{DECLARED}{name}{_KINDS[kind]}",
            op="tool",
            kind=kind,
            read=_read,
            build=build_call,
            view=snapshot,
            by_object=True,
            direct=True,
        )
        found.append((base, method))
    for base, method in found:
        known = _declared.setdefault(base, [])
        if all(one.name != method.name for one in known):
            known.append(method)
        patches.install(base, method)
