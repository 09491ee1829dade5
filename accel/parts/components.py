"""What is known about components: who vouches for them, how many calls they take, where their data goes.

A component is entered early only if somebody vouches for it: Accel (its own classes), the built-in table (`listed`) or
the user (`register`, `accel.pure`). Nobody reads code to guess. Nothing here imports a framework.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar, Unpack

from ..errors import ConfigurationError
from ..process import forks
from .declarable import check_component, check_facts, names_of, note, reference
from .identities.identity import Identities
from .identities.own_code import own_code
from .identities.reads import names_in
from .listed.facts import Entry, Said
from .listed.table import Facts as Facts
from .listed.table import at, listed
from .methods.methods import METHODS, Method
from .methods.patches import has_leaf, installations, is_installed
from .methods.sdks import DECLARED, declare
from .network import hosts
from .network.recipients import ADDRESS_FIELDS, stays_near

C = TypeVar("C")
_UNKNOWN = Facts()
TOOL = "tool"
"""The family of leaves that do what a tool is for."""

_by_class: weakref.WeakKeyDictionary[type, Facts] = weakref.WeakKeyDictionary()
_by_object: dict[int, tuple[Any, Facts]] = {}
"""By id: a reference to the object, and what was said of it."""
_of_object: dict[int, tuple[tuple[int, int, int], Facts, Facts]] = {}
"""By id: how much was known of all classes when something was said of the object, what was said, and what is known."""
_named_by_class: weakref.WeakKeyDictionary[type, frozenset[str]] = weakref.WeakKeyDictionary()
_named_by_object: dict[int, tuple[Callable[[], Any], frozenset[str]]] = {}
"""By id: a reference to the object, and which of its methods were declared."""
_registered = 0
"""How often anything was."""
_lock = forks.lock()


def register(component: C, *, methods: Iterable[str] | None = None, **facts: Unpack[Said]) -> C:
    """Vouch for a component class or one instance, and give it back.

    It may be called early from now on, unless you say ``pure=False``; a tool only if you say ``pure=True`` or
    ``readonly=True``. Facts of an instance go before those of its class. Those of a class hold for its subclasses,
    unless they override a leaf method. Nothing is assumed of what you don't say:

    ``pure``: answers don't depend on earlier calls, and a call changes nothing; a sample counts as an answer.
    ``concurrency``: early calls begin while fewer than that are inside one instance, the program's own counted, at
    least 1 (default: 1). It does not bound those that the program makes by itself.
    ``local``: its input stays on this machine or network (default: it is sent to a remote service).
    ``readonly``: nobody changes what it reads during a run, so an early read may stand for the program's own.
    ``elementwise``: a batch gives what its elements give alone.
    ``streams_equal``: the chunks of a stream, merged, equal the message that isn't streamed.
    ``deterministic``: equal calls give equal answers, whenever and by whichever run they are made, and change nothing
    (ids aside): runs of a batch make them once. Of a sampling model it does not hold.
    ``twins``: methods and their coroutines give the same, so that one may answer for the other.
    ``prefix_caching``: its server (vLLM, SGLang) keeps the beginnings of prompts, and is yours. Known beginnings are
    read before the program calls, by requests for one token. For private addresses, or with ``local=True``.

    ``methods``: what the program calls of an object that is no component by itself (the client of an SDK), if you say
    that it is ``pure`` or ``readonly``. Functions are declared with `accel.pure`. An address in place of a component,
    ``register("https://api.example.com", readonly=True)``, is a host whose GETs by `requests` and `httpx` only read.

    Raises ConfigurationError for facts that are not known, and for what is no component, no method, or yields.
    """
    check_facts(facts)
    names = names_of(methods)
    if isinstance(component, str) and "://" in component and not names:
        host = hosts.declare(component, bool(facts.get("pure") or facts.get("readonly")))
        said = Facts(**facts, reason="declared with accel.register")
        vouch(host, replace(said, readonly=None, owned=True) if said.readonly else said)  # by what clients send
        return component
    check_component(component, names)
    if names:
        if not (facts.get("pure") or facts.get("readonly")):
            raise ConfigurationError(
                f"Nobody said what {names[0]!r} does.",
                "Say readonly=True if it only reads what nobody changes during a run, pure=True if it changes nothing.",
            )
        declare(component, names)
    given = Facts(**facts, reason="declared with accel.register")
    if given.prefix_caching:
        _check_prefixes(component, given)
    vouch(component, given, names)
    note(component)
    return component


def _check_prefixes(component: Any, given: Facts) -> None:
    """Raises ConfigurationError unless Accel knows how to ask it for one token, and it may be asked."""
    cls = component if isinstance(component, type) else type(component)
    entry = listed(cls)
    if hasattr(cls, "accel_prefill"):
        return
    if entry is None or not entry.limit:
        raise ConfigurationError(
            f"register(prefix_caching=True): Accel doesn't know how {cls.__name__} is asked for one token.",
            "Give one of the clients of OpenAI-compatible servers that docs/operating.md names.",
        )
    is_local = given.local if given.local is not None else said_of(component).local
    if component is not cls and not (stays_near(component) if is_local is None else is_local):
        raise ConfigurationError(
            f"register(prefix_caching=True): {cls.__name__} has a public address, where requests may cost.",
            "Add local=True if the server is your own.",
        )


def vouch(component: Any, given: Facts, names: tuple[str, ...] = ()) -> None:
    """Note what was said of a component, or of a declared function, and which methods were named."""
    global _registered
    with _lock:
        if isinstance(component, type):
            _by_class[component] = given.over(_by_class.get(component, _UNKNOWN))
            _named_by_class[component] = _named_by_class.get(component, frozenset()).union(names)
        else:
            said = _said_of_object(component)
            forget = partial(_forget, id(component))
            _named_by_object[id(component)] = (reference(component, forget), _named_of_object(component).union(names))
            _by_object[id(component)] = (reference(component, forget), given.over(said))
    _registered += 1  # last: who asks in between asks again


def _unfit(host: type, why: str) -> None:
    vouch(host, Facts(pure=False, reason=why))


hosts.unfit = _unfit


def _forget(at: int) -> None:
    _by_object.pop(at, None)
    _named_by_object.pop(at, None)
    _of_object.pop(at, None)


def _said_of_object(component: Any) -> Facts:
    held = _by_object.get(id(component))
    return held[1] if held is not None and held[0]() is component else _UNKNOWN


def _named_of_object(component: Any) -> frozenset[str]:
    held = _named_by_object.get(id(component))
    return held[1] if held is not None and held[0]() is component else frozenset()


def is_meant(component: Any, method: Method) -> bool:
    """Whether what was said of a component is about this method. One that was declared of another object or class says
    nothing of those that inherit the same function, whatever else of them was declared."""
    if not method.family.startswith(DECLARED) or method.name in _named_of_object(component):
        return True
    return any(method.name in _named_by_class.get(base, ()) for base in type(component).__mro__)


_told: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()
"""By kind and leaf method, how its calls tell listeners of themselves from within; empty if those seen did not."""


def note_told(component: Any, method: str, how: str) -> None:
    """A call has ended. Who tells once counts as telling always."""
    told = _told.setdefault(kind_of(component), {})
    told[method] = how or told.get(method, "")


def called_plainly(component: Any) -> bool:
    """Whether the program has ever called a component of this kind through a method that is no coroutine."""
    seen = _told.get(kind_of(component), {})
    return any(method.name in seen and not method.is_async for method in list(METHODS.values()))


def tells_within(component: Any, method: str) -> str | None:
    """How calls through this method tell listeners of themselves; empty if they don't, None if none was seen yet."""
    kind = kind_of(component)
    return _asking.get(kind) or _told.get(kind, {}).get(method)


_talking: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


def note_talks(component: Any, method: str) -> None:
    """A call through this method told its callback manager of its tokens, which is said again to the program's. Other
    methods may say something else, or nothing."""
    _talking.setdefault(kind_of(component), set()).add(method)


def talks(component: Any, method: str) -> bool:
    return method in _talking.get(kind_of(component), ())


_asking: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
"""By kind, what it asks for that only the program's own calls have; through whatever method."""


def note_asks(component: Any, how: str) -> None:
    _asking[kind_of(component)] = how


_made_of: dict[type, Callable[[Any], Any]] = {}


def add_kind(cls: type, function: Callable[[Any], Any]) -> None:
    """Objects of exactly this class behave as a function that they hold."""
    _made_of[cls] = function


def sort_of(component: Any) -> Any:
    """Of what there may be one for every tenant: a class; of what is made of functions, the code of one."""
    return kind_of(component) if type(component) in _made_of else type(component)


def kind_of(component: Any) -> Any:
    """What components have in common that behave alike: their class; of a function its code, which closures share."""
    made = _made(component)
    return made.__code__ if isinstance(made, types.FunctionType) else type(made)


def function_of(component: Any) -> types.FunctionType | None:
    """The function that it is, or is made of."""
    made = _made(component)
    return made if isinstance(made, types.FunctionType) else None


def _made(component: Any) -> Any:
    held = _made_of.get(type(component))
    return held(component) if held is not None else component


def is_declared(component: Any) -> bool:
    """Whether this very object was registered."""
    return _said_of_object(component) is not _UNKNOWN


def said_of(component: Any) -> Facts:
    """What users and the table said of a live component, most specific first; what nobody said is None."""
    said = _said_first(component)
    return replace(said, pure=None) if _unlisted(component, said) else said


def _said_first(component: Any) -> Facts:
    """Whatever its object was given."""
    return _said_of_object(component).over(said_of_class(type(component)))


def said_of_class(cls: type) -> Facts:
    """The same of a class. A class that overrides a leaf method inherits nothing; one that brings an address of its own
    inherits neither `local` nor `readonly`."""
    facts, moved = _UNKNOWN, False
    for base in cls.__mro__:
        said = _by_class.get(base, _UNKNOWN)
        own = base.__dict__.get("__accel__")
        if isinstance(own, dict):
            said = said.over(Facts(**{"pure": True, "twins": True, **own}, reason="an Accel class"))
        facts = facts.over(replace(said, **_OF_AN_ADDRESS) if moved else said)
        if _overrides_leaf(base):
            break
        moved = moved or _brings_address(base)
    return facts.over(listed(cls) or _UNKNOWN)


_OF_AN_ADDRESS: dict[str, Any] = dict.fromkeys(("local", "readonly", "deterministic", "prefix_caching"))


@lru_cache(1)
def _leaf_names(known: int) -> tuple[frozenset[str], frozenset[str]]:
    """Of all methods there are, `known` of them: names of leaves, and names that are leaves only in some classes."""
    methods = list(METHODS.values())
    return (
        frozenset(method.name for method in methods if not method.direct),
        frozenset(method.name for method in methods if method.direct),
    )


def _overrides_leaf(cls: type) -> bool:
    always, somewhere = _leaf_names(len(METHODS))
    return not always.isdisjoint(cls.__dict__) or any(
        is_installed(base, name) for name in somewhere & cls.__dict__.keys() for base in cls.__mro__
    )


def _brings_address(cls: type) -> bool:
    """Whether a class may send its data elsewhere than its base."""
    given = {*cls.__dict__, *cls.__dict__.get("__annotations__", {})}
    return "__init__" in given or not given.isdisjoint(ADDRESS_FIELDS)


def facts_of(component: Any, identities: Identities | None = None) -> Facts:
    """Everything known about a live component, most specific first. `pure` is True only if somebody vouches for it.
    `identities`: those of a run, which has looked at it before."""
    facts = _facts_but_local(component)
    why = _unlisted(component, facts)
    why = why or ((_of_its_thread(component, identities) or _by_what_was_set(component)) if facts.pure else "")
    facts = replace(facts, pure=False, reason=why) if why else facts
    if facts.local is not None:
        return facts
    return replace(facts, local=stays_near(component, looked=_vouching(component, facts) is not None))


def _vouching(component: Any, facts: Facts) -> Entry | None:
    """The table's entry, if nobody else vouches for a component."""
    entry = listed(type(component))
    return entry if entry is not None and facts.pure and facts.reason == entry.reason else None


def _unlisted(component: Any, facts: Facts) -> str:
    """Why an object of a listed class counts as none, where nobody but the table vouches for it; or nothing."""
    entry = _vouching(component, facts)
    if entry is None:
        return ""
    if entry.embeds and not has_leaf(at(component, entry.embeds), "embed_query"):
        return "it embeds with what is no component"
    return own_code(component)


def _of_its_thread(component: Any, identities: Identities | None) -> str:
    """Why calls of it on another thread are other ones; or nothing."""
    name = (identities or Identities()).thread_local(component)
    return f"{name}, a threading.local that its code reads, {_ELSEWHERE}" if name else ""


def _by_what_was_set(component: Any) -> str:
    """Why it may tell an early call from the program's own, whose input is equal; or nothing."""
    return _ANEW if not _SET.isdisjoint(names_in(component)) else ""


_SET = frozenset((".model_fields_set", ".__pydantic_fields_set__", "exclude_unset="))
_ANEW = "it goes by which fields of its input somebody has set, and what an early call is given is built anew"
_ELSEWHERE = "holds other values on another thread; keep them in a ContextVar that is set before the run, or pass them"


def agreed(component: Any) -> int:
    """How many calls at a time a live component takes early ones among; 0 where nobody vouches for it."""
    facts = _facts_but_local(component)
    return (facts.concurrency or 1) if facts.pure else 0


def declarations() -> int:
    """How many there were so far in this process: what was known of components before may have changed by the last."""
    return _registered


def _facts_but_local(component: Any) -> Facts:
    """But for `local` where nobody said anything of it: that depends on an object's fields, as they are now."""
    own = _said_of_object(component)
    if own is _UNKNOWN:
        return _facts_of_class(component)
    known = _registered, len(METHODS), installations()
    held = _of_object.get(id(component))
    if held is None or held[0] != known or held[1] is not own:
        held = _of_object[id(component)] = (known, own, _completed(component, _said_first(component)))
    return held[2]


def _completed(component: Any, facts: Facts) -> Facts:
    """But for `local`, which may depend on an object's fields."""
    if facts.pure is None:
        facts = replace(facts, pure=_is_vouched_for(component, facts), reason=facts.reason or _NOBODY)
    return facts.over(
        Facts(
            concurrency=1,
            readonly=False,
            owned=False,
            elementwise=False,
            streams_equal=False,
            twins=False,
            prefix_caching=False,
        )  # fmt: skip
    )


_of_class: weakref.WeakKeyDictionary[type, tuple[tuple[int, int, int], Facts]] = weakref.WeakKeyDictionary()
"""Facts of objects of which nothing was said by themselves, and how much was known of all classes then."""


def _facts_of_class(component: Any) -> Facts:
    cls, known = type(component), (_registered, len(METHODS), installations())
    held = _of_class.get(cls)
    if held is None or held[0] != known:
        held = _of_class[cls] = (known, _completed(component, said_of_class(cls)))
    return held[1]


_NOBODY = "nobody vouches for it"


def _is_vouched_for(component: Any, said: Facts) -> bool:
    """Something was declared. That of a tool must say that it changes nothing."""
    is_tool = any(method.family == TOOL and has_leaf(component, method.name) for method in list(METHODS.values()))
    return bool(said.readonly or said.deterministic) or (said != _UNKNOWN and not is_tool)
