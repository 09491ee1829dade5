"""What is known about components: which are pure, concurrent, local; declared, listed or found by reading their code.

Nothing here imports a framework: adapters say which classes are components, users add facts with `register`.
"""

from __future__ import annotations

import dis
import ipaddress
import threading
import types
import weakref
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from .errors import AccelError
from .values import Opaque, freeze


@dataclass(frozen=True, slots=True)
class Facts:
    """What Accel may do with a component. `None` means that nobody said."""

    pure: bool | None = None
    """Answers don't depend on earlier calls and a call changes nothing (a sample counts as an answer)."""
    concurrency: int | None = None
    """How many threads or tasks may be inside one instance."""
    local: bool | None = None
    """Input stays on this machine or network."""
    readonly: bool | None = None
    """A read: nobody changes what it reads during a run, so an early read may stand for the program's own."""
    owned: bool | None = None
    """All writes to it pass through Accel's own classes."""
    elementwise: bool | None = None
    """A batch gives what its elements give alone."""
    streams_equal: bool | None = None
    """Merged chunks equal the unstreamed message."""
    reason: str = ""

    def over(self, other: Facts) -> Facts:
        """These facts, completed by `other`."""
        gaps = {name: getattr(other, name) for name in self.__slots__ if getattr(self, name) is None}
        return replace(self, **gaps, reason=self.reason or other.reason)


FACT_NAMES = tuple(name for name in Facts.__slots__ if name not in ("reason", "owned"))
_UNKNOWN = Facts()

_HTTP = Facts(pure=True, concurrency=64, reason="listed: stateless HTTP client")
LISTED: dict[str, Facts] = {
    "ChatOpenAI": _HTTP,
    "AzureChatOpenAI": _HTTP,
    "OpenAIEmbeddings": _HTTP,
    "AzureOpenAIEmbeddings": _HTTP,
    "ChatAnthropic": _HTTP,
    "ChatMistralAI": _HTTP,
    "ChatGroq": _HTTP,
    "ChatOllama": _HTTP,
    "OllamaEmbeddings": _HTTP,
    "HuggingFaceEmbeddings": Facts(pure=True, concurrency=1, local=True, reason="listed: model in this process"),
    "FakeEmbeddings": Facts(pure=True, concurrency=1, local=True, reason="listed: random numbers"),
    "DeterministicFakeEmbedding": Facts(pure=True, concurrency=8, local=True, reason="listed: function of the text"),
    "InMemoryVectorStore": Facts(pure=True, concurrency=8, local=True, reason="listed: a dict in this process"),
}
"""Listed classes by name, each with its reason. A listed class must come from a langchain package."""

_by_class: dict[type, Facts] = {}
_by_object: dict[int, tuple[Any, Facts]] = {}
_scanned: weakref.WeakKeyDictionary[type, Facts] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def register(component: Any, **facts: Any) -> Any:
    """Declare what Accel can't know about a component class or one instance, and give it back.

    Facts: ``pure``, ``concurrency`` (calls at a time, at least 1), ``local``, ``readonly``, ``elementwise``,
    ``streams_equal``; see `Facts`. Facts of an instance go before those of its class.
    """
    unknown = [name for name in facts if name not in FACT_NAMES]
    if unknown:
        raise AccelError(f"register() doesn't know {unknown[0]!r}; known facts are {', '.join(FACT_NAMES)}")
    n = facts.get("concurrency")
    if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 1):
        raise AccelError(f"concurrency={n!r}: give the number of calls that may be inside the component, at least 1")
    given = Facts(**facts, reason="declared with accel.register")
    with _lock:
        if isinstance(component, type):
            _by_class[component] = given.over(_by_class.get(component, _UNKNOWN))
        else:
            held = _by_object.get(id(component), (None, _UNKNOWN))[1]
            _by_object[id(component)] = (component, given.over(held))
    return component


def is_declared(component: Any) -> bool:
    """Whether this very object was registered."""
    held = _by_object.get(id(component))
    return held is not None and held[0] is component


def facts_of(component: Any) -> Facts:
    """Everything known about a live component, most specific first."""
    cls = type(component)
    facts = _by_object.get(id(component), (None, _UNKNOWN))[1]
    for base in cls.__mro__:
        if base in _by_class:
            facts = facts.over(_by_class[base])
        own = base.__dict__.get("__accel__")
        if isinstance(own, dict):
            facts = facts.over(Facts(**own, reason="an Accel class"))
        if base.__module__.startswith("langchain") and base.__name__ in LISTED and base is cls:
            facts = facts.over(LISTED[base.__name__])
    if facts.pure is None:
        facts = facts.over(_scan(cls))
    if facts.local is None:
        facts = replace(facts, local=has_private_endpoint(component))
    return facts.over(Facts(concurrency=1, readonly=False, owned=False, elementwise=False, streams_equal=False))


# --- endpoints ------------------------------------------------------------------------------------------------------

_ENDPOINT_FIELDS = (
    "base_url",
    "openai_api_base",
    "endpoint",
    "endpoint_url",
    "azure_endpoint",
    "server_url",
    "url",
    "host",
)


def endpoint_of(component: Any) -> str | None:
    """The address a component talks to, where a field tells."""
    for name in _ENDPOINT_FIELDS:
        value = getattr(component, name, None)
        if isinstance(value, str) and value:
            return value
    return None


def has_private_endpoint(component: Any) -> bool:
    """Whether the component's address is loopback or private. Names that would need a look-up count as public."""
    address = endpoint_of(component)
    if address is None:
        return False
    host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False


# --- reading code for state -----------------------------------------------------------------------------------------

_ASSIGNMENTS = {"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL"}
_ITEM_ASSIGNMENTS = {"STORE_SUBSCR", "DELETE_SUBSCR"}
_MUTATORS = frozenset(
    "append appendleft add clear extend insert pop popleft popitem remove discard setdefault update sort reverse "
    "write put put_nowait".split()
)
_DRAWS = frozenset(("next", "anext", "setattr", "random"))
_LEAVES = (
    "_generate _agenerate _stream _astream _call _acall embed_query embed_documents aembed_query aembed_documents "
    "_get_relevant_documents _aget_relevant_documents similarity_search"
).split()


def _scan(cls: type) -> Facts:
    known = _scanned.get(cls)
    if known is None:
        known = _scanned[cls] = _read_leaves(cls)
    return known


def _read_leaves(cls: type) -> Facts:
    """Pure unless a leaf, or a method of the class it calls, assigns to an attribute, item or global, mutates a
    container it didn't make itself, or draws from an iterator. Errs on the side of not pure."""
    queue = [name for name in _LEAVES if _user_method(cls, name)]
    done: set[str] = set()
    while queue:
        name = queue.pop()
        if name in done:
            continue
        done.add(name)
        function = _user_method(cls, name)
        if function is None:
            continue
        for code in _codes(function.__code__):
            why = _state_in(code)
            if why:
                return Facts(pure=False, reason=f"{cls.__name__}.{name} {why} (line {code.co_firstlineno})")
            queue.extend(attr for attr in code.co_names if _user_method(cls, attr))
    return Facts(pure=True, reason="no state found in its code")


def _user_method(cls: type, name: str) -> types.FunctionType | None:
    """The function behind a method, unless a framework base class defines it."""
    for base in cls.__mro__:
        if name in base.__dict__:
            if base.__module__.split(".")[0] in ("langchain_core", "pydantic", "builtins", "abc", "typing"):
                return None
            found = base.__dict__[name]
            found = getattr(found, "__wrapped__", found)
            found = getattr(found, "__func__", found)
            return found if isinstance(found, types.FunctionType) else None
    return None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _state_in(code: types.CodeType) -> str | None:
    """Why this code seems to keep state; None if it doesn't."""
    own = set(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])

    def is_own(instruction: dis.Instruction | None) -> bool:
        return instruction is not None and instruction.opname.startswith("LOAD_FAST") and instruction.argval in own

    before: list[dis.Instruction | None] = [None, None]
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name in _ASSIGNMENTS or (name == "STORE_DEREF" and value in code.co_freevars):
            return f"assigns to {value}"
        if name in _ITEM_ASSIGNMENTS and not is_own(before[-2]):
            return "assigns to an item of something it may not own"
        if name in ("LOAD_METHOD", "LOAD_ATTR") and value in _MUTATORS and not is_own(before[-1]):
            return f"calls .{value}() on something it may not own"
        if name in ("LOAD_GLOBAL", "LOAD_NAME") and value in _DRAWS:
            return f"uses {value}"
        before = [before[-1], instruction]
    return None


# --- identity -------------------------------------------------------------------------------------------------------


def identity_of(component: Any, by_object: bool) -> Hashable:
    """What must be equal for two components to be the same one (invariant 3).

    `by_object`: stores, retrievers, tools are themselves only. Clients: class plus all fields, secrets by value.
    """
    if by_object:
        return Opaque(component)
    fields = dict(getattr(component, "__dict__", {}))
    fields.update(getattr(component, "__pydantic_private__", None) or {})
    return (type(component), freeze({str(name): _field(value) for name, value in fields.items()}))


def _field(value: Any) -> Any:
    """A field as identity sees it: plain data, secrets and nested configuration by value, everything else (clients,
    loggers, caches) as the object it is."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple):
        return [_field(item) for item in value]
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return {key: _field(item) for key, item in value.items()}
    reveal = getattr(value, "get_secret_value", None)
    if reveal is not None and not isinstance(value, type):
        return ["secret", reveal()]
    if isinstance(getattr(type(value), "model_fields", None), dict):
        return [Opaque(type(value)), {name: _field(getattr(value, name, None)) for name in type(value).model_fields}]
    return Opaque(value)


def holds_credential(component: Any) -> bool:
    """Whether any field is a secret or is named like one."""
    for name, value in getattr(component, "__dict__", {}).items():
        if value and (
            hasattr(value, "get_secret_value")
            or any(word in name.lower() for word in ("api_key", "token_", "password", "secret"))
        ):
            return True
    return False
