"""What is known about components: which are pure, concurrent, local; declared, listed or found by reading their code.

Nothing here imports a framework: adapters say which classes are components, users add facts with `register`.
"""

from __future__ import annotations

import dis
import ipaddress
import types
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from . import forks, intercept
from .errors import AccelError
from .intercept import METHODS, has_leaf
from .listed import Facts as Facts
from .listed import listed

FACT_NAMES = tuple(name for name in Facts.__slots__ if name not in ("reason", "owned"))
_UNKNOWN = Facts()
TOOL = "tool"
"""The family of leaves that do what a tool is for."""

_by_class: dict[type, Facts] = {}
_by_object: dict[int, tuple[Any, Facts]] = {}
_scanned: weakref.WeakKeyDictionary[type, Facts] = weakref.WeakKeyDictionary()
_lock = forks.lock()


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


_told: dict[tuple[Any, str], str] = {}
"""By class (or function) and leaf method, how its calls tell listeners of themselves from within; empty if those seen
did not."""


def note_told(component: Any, method: str, how: str) -> None:
    """A call has ended. Who tells once counts as telling always."""
    key = _kind(component), method
    _told[key] = how or _told.get(key, "")


def tells_within(component: Any, method: str) -> str | None:
    """How calls through this method tell listeners of themselves; empty if they don't, None if none was seen yet."""
    kind = _kind(component)
    return _asking.get(kind) or _told.get((kind, method))


_asking: dict[Any, str] = {}
"""By class (or function), what it asks for that only the program's own calls have; through whatever method."""


def note_asks(component: Any, how: str) -> None:
    _asking[_kind(component)] = how


def _kind(component: Any) -> Any:
    return component if isinstance(component, types.FunctionType) else type(component)


def is_declared(component: Any) -> bool:
    """Whether this very object was registered."""
    held = _by_object.get(id(component))
    return held is not None and held[0] is component


def said_of(component: Any) -> Facts:
    """What users and the table said of a live component, most specific first; what nobody said is None."""
    facts = _by_object.get(id(component), (None, _UNKNOWN))[1]
    return facts.over(said_of_class(type(component)))


def said_of_class(cls: type) -> Facts:
    """The same of a class."""
    facts = _UNKNOWN
    for base in cls.__mro__:
        facts = facts.over(_by_class.get(base, _UNKNOWN))
        own = base.__dict__.get("__accel__")
        if isinstance(own, dict):
            facts = facts.over(Facts(**own, reason="an Accel class"))
        if base is cls:
            facts = facts.over(listed(cls) or _UNKNOWN)
    return facts


def facts_of(component: Any) -> Facts:
    """Everything known about a live component, most specific first."""
    facts = said_of(component)
    if facts.pure is None:
        facts = facts.over(_read(component, facts))
    if facts.local is None:
        facts = replace(facts, local=has_private_endpoint(component))
    return facts.over(Facts(concurrency=1, readonly=False, owned=False, elementwise=False, streams_equal=False))


def _read(component: Any, said: Facts) -> Facts:
    """What its code shows. A tool may do anything, also where its code keeps no state: somebody must have said that it
    only reads."""
    is_tool = any(method.family == TOOL and has_leaf(component, method.name) for method in list(METHODS.values()))
    if is_tool and not said.readonly:
        return Facts(pure=False, reason=f"nobody declared what {type(component).__name__} does")
    return _scan(type(component))


# --- endpoints ------------------------------------------------------------------------------------------------------

_ENDPOINT_FIELDS = (
    "base_url",
    "api_base",
    "openai_api_base",
    "anthropic_api_url",
    "fireworks_api_base",
    "groq_api_base",
    "together_api_base",
    "xai_api_base",
    "endpoint",
    "endpoint_url",
    "azure_endpoint",
    "server_url",
    "url",
    "host",
)


def endpoint_of(component: Any) -> str | None:
    """The address a component talks to, where a field tells."""
    return next(_addresses(component), None)


def _addresses(component: Any) -> Iterator[str]:
    for name in _ENDPOINT_FIELDS:
        value = getattr(component, name, None)
        if value and not callable(value):
            yield str(value)  # also address objects


def has_private_endpoint(component: Any) -> bool:
    """Whether the component's address is loopback or private; all of them, where several fields have one. Names that
    would need a look-up count as public."""
    addresses = list(_addresses(component))
    return bool(addresses) and all(map(_is_private, addresses))


def _is_private(address: str) -> bool:
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_private
    except ValueError:
        return False


# --- reading code for state -----------------------------------------------------------------------------------------

_ASSIGNMENTS = {"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL"}
_ITEM_ASSIGNMENTS = {"STORE_SUBSCR", "DELETE_SUBSCR"}
_MUTATORS = frozenset(
    "append appendleft add clear extend insert pop popleft popitem remove discard setdefault update sort reverse "
    "write put put_nowait __setattr__ __setitem__ __delitem__ __next__".split()
)
_DRAWS = frozenset(("next", "anext", "setattr", "random"))
_FRAMEWORKS = (
    "langchain_core",
    "llama_index.core",
    "llama_index_instrumentation",
    "pydantic",
    "builtins",
    "abc",
    "typing",
)
"""Their code isn't read: what it keeps (events, spans, validation) has no part in answers."""


def _scan(cls: type) -> Facts:
    known = _scanned.get(cls)
    if known is None:
        known = _scanned[cls] = _read_leaves(cls)
    return known


def _read_leaves(cls: type) -> Facts:
    """Pure unless a leaf, or what it calls of the class and of its module, assigns to an attribute, item or global,
    mutates a container it didn't make itself, or draws from an iterator. Errs on the side of not pure."""
    names = {method.name for method in METHODS.values() if method.op not in ("ingestion", "tool")}
    queue = [function for name in sorted(names) for function in _user_methods(cls, name)]
    done: set[types.FunctionType] = set()
    while queue:
        function = queue.pop()
        if function in done:
            continue
        done.add(function)
        for code in _codes(function.__code__):
            why = _state_in(code)
            if why:
                name = function.__name__
                return Facts(pure=False, reason=f"{cls.__name__}.{name} {why} (line {code.co_firstlineno})")
            for name in code.co_names:
                queue.extend(_user_methods(cls, name))
            for name in _globals_used(code):  # not attributes that happen to have a function's name
                helper = function.__globals__.get(name)
                if isinstance(helper, types.FunctionType) and _package(helper) == _package(function):
                    queue.append(helper)
    return Facts(pure=True, reason="no state found in its code")


def _globals_used(code: types.CodeType) -> set[str]:
    return {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


def _package(function: types.FunctionType) -> str:
    return (function.__module__ or "").split(".")[0]


def _user_methods(cls: type, name: str) -> Iterator[types.FunctionType]:
    """The functions behind a method or property: every definition a ``super()`` may lead to, but those of framework
    base classes."""
    for base in cls.__mro__:
        ours = not _is_framework(base.__module__)
        if ours or _is_component_itself(base):
            found = base.__dict__.get(name)
            yield from _user_functions(found.fget if isinstance(found, property) else found, ours)


def _is_component_itself(cls: type) -> bool:
    """Whether a framework's class is no base but does the work: its fake models, which may answer from a script."""
    return not getattr(cls, "__abstractmethods__", ()) and any(m.name in cls.__dict__ for m in METHODS.values())


def _user_functions(part: Any, ours: bool = True) -> Iterator[types.FunctionType]:
    """The user's functions behind decorators of frameworks and of Accel. ours: False if it is a framework's itself."""
    part = getattr(part, "__func__", part)
    wrapped = getattr(part, "__wrapped__", None)
    if callable(wrapped):
        yield from _user_functions(wrapped, ours)
    elif isinstance(part, types.FunctionType):
        module = part.__globals__.get("__name__", "")
        if not (ours and _is_framework(module)) and module != intercept.__name__:
            yield part
            return
        for cell in part.__closure__ or ():
            if isinstance(cell.cell_contents, types.FunctionType) and not _is_framework(cell.cell_contents.__module__):
                yield from _user_functions(cell.cell_contents)


def _is_framework(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in _FRAMEWORKS)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _state_in(code: types.CodeType) -> str | None:
    """Why this code seems to keep state; None if it doesn't."""
    own = _own_variables(code)

    def is_own(instruction: dis.Instruction | None) -> bool:
        return (
            instruction is not None
            and instruction.opname.startswith(("LOAD_FAST", "LOAD_DEREF"))
            and instruction.argval in own
        )

    before: list[dis.Instruction | None] = [None, None]
    augmented = False
    """Whether ``container[key] += ...`` is under way on a container of the code's own."""
    instructions = list(dis.get_instructions(code))
    for instruction, following in zip(instructions, [*instructions[1:], None], strict=True):
        name, value = instruction.opname, instruction.argval
        if name in _ASSIGNMENTS or (name == "STORE_DEREF" and value in code.co_freevars):
            return f"assigns to {value}"
        if name == "COPY" and before[-1] is not None and before[-1].opname != "COPY":
            augmented = is_own(before[-2]) and _is_name(before[-1])
        swapped = before[-1] is not None and before[-1].opname == "SWAP"
        if name in _ITEM_ASSIGNMENTS and not (augmented if swapped else is_own(before[-2]) and _is_name(before[-1])):
            return "assigns to an item of something it may not own"
        if name in ("LOAD_METHOD", "LOAD_ATTR") and value in _MUTATORS and not is_own(before[-1]):
            return f"calls .{value}() on something it may not own"
        if name in ("LOAD_GLOBAL", "LOAD_NAME") and value in _DRAWS and not _makes_generator(following):
            return f"uses {value}"
        before = [before[-1], instruction]
    return None


def _makes_generator(following: dis.Instruction | None) -> bool:
    """``random.Random(seed)``: a generator of the code's own, not the shared one."""
    return following is not None and following.argval == "Random"


def _is_name(instruction: dis.Instruction | None) -> bool:
    """Whether one instruction loads all of a key: then the one before it loads the container."""
    return instruction is not None and instruction.opname.startswith(("LOAD_CONST", "LOAD_FAST", "LOAD_GLOBAL"))


_FRESH = ("BUILD_", "LIST_", "DICT_", "SET_", "MAP_", "CALL", "BINARY_OP", "BINARY_SLICE", "UNPACK_", "LOAD_CONST",
          "SEND", "END_SEND")  # fmt: skip


def _own_variables(code: types.CodeType) -> set[str]:
    """Local variables that only ever name what the code made or was given by a call, not a part of an argument."""
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    own = {name for name in (*code.co_varnames, *code.co_cellvars) if name not in given}
    borrows = any(name in ("getattr", "vars") for name in code.co_names)
    stored = False
    source: dis.Instruction | None = None
    before: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if not instruction.opname.startswith(("STORE_FAST", "STORE_DEREF")):
            before, source, stored = source, instruction, False
            continue
        name = source.opname if source is not None else ""
        fresh = name.startswith(_FRESH) and not (name.startswith("CALL") and borrows)
        if name.startswith("UNPACK_"):
            fresh = before is not None and before.opname != "FOR_ITER"
        elif name == "BINARY_SUBSCR":
            fresh = before is not None and before.opname == "BUILD_SLICE"
        elif stored:
            fresh = False  # one of several targets: not the value just made
        if not fresh:
            own.discard(instruction.argval)
        stored = True
    return own
