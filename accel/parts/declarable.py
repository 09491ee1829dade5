"""What `register` and `pure` take, and what to do with anything else. What can be known at once to be no component is
refused; of the rest a report says whether its calls can be seen."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Mapping
from inspect import isasyncgenfunction, isgeneratorfunction
from typing import Any

from ..errors import ConfigurationError, choose, kind_of
from ..frameworks import frameworks
from ..process.clock import now_s
from .listed.facts import Said
from .methods import patches
from .network.hosts import Get

FACT_NAMES = tuple(Said.__annotations__)
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    functools.partial,
    functools._lru_cache_wrapper,
    staticmethod,
    classmethod,
)
_DOUBLES = "unittest"
"""The only part of the standard library whose objects stand for others."""


def check_facts(facts: Mapping[str, Any]) -> None:
    """Raises ConfigurationError for facts that are not known, or say nothing."""
    for name, value in facts.items():
        if name not in FACT_NAMES:
            raise ConfigurationError(f"register() knows no fact {name!r}.", choose(name, FACT_NAMES, "It knows"))
        if name != "concurrency" and not isinstance(value, bool):
            raise ConfigurationError(f"register({name}={value!r}) says neither yes nor no.", "Give True or False.")
    n = facts.get("concurrency", 1)
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ConfigurationError(
            f"register(concurrency={n!r}) is not a number of calls.",
            "Give the number of calls that may be inside the component at a time, at least 1.",
        )


def names_of(methods: Iterable[str] | None) -> tuple[str, ...]:
    """Of methods that are declared. Raises ConfigurationError."""
    if methods is None:
        return ()
    names = (methods,) if isinstance(methods, str) else tuple(methods)
    remedy = "Give the names of what your program calls, such as methods=['search'], or leave it out."
    for name in names:
        if not isinstance(name, str):
            raise ConfigurationError(f"register(methods=...) has a {kind_of(name)} among its names.", remedy)
    if not names:
        raise ConfigurationError("register(methods=[]) names no method.", remedy)
    return names


def check_component(component: Any, names: tuple[str, ...]) -> None:
    """Raises ConfigurationError for what is no component, whatever a program does with it later. `names`: of the
    methods that make one of any object that has them."""
    if isinstance(component, types.MethodType):
        owner = component.__self__ if isinstance(component.__self__, type) else type(component.__self__)
        _refuse_method(owner.__name__, component.__name__)
    if isinstance(component, _FUNCTIONS):
        _refuse_function(component)
    if component is None or (not names and _is_pythons(component)):
        raise ConfigurationError(
            f"register() takes a component, not {kind_of(component)}.",
            "Give the class of a model, store, retriever, tool or client, or an instance of it.",
        )
    for framework in () if names else frameworks():
        advice = framework.instead_of_declaring(component)
        if advice:
            raise ConfigurationError(f"register() takes a component, not {kind_of(component)}.", advice)


def _refuse_function(function: Any) -> None:
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__qualname__", "").rpartition(".")[0].rpartition(".")[2]
    if isinstance(function, types.FunctionType) and owner.isidentifier():
        _refuse_method(owner, name)
    is_named = name.isidentifier()
    given = f"the function {name}" if is_named else "a lambda" if name else kind_of(function)
    line = f"{name} = accel.pure({name})" if is_named else "accel.pure(...) around it where it is made"
    raise ConfigurationError(
        f"register() takes an object or a class, not {given}.",
        f"{line}, if it only computes its result from its arguments.",
    )


def _refuse_method(owner: str, name: str) -> None:
    raise ConfigurationError(
        f"register() takes an object or a class, not its method {owner}.{name}.",
        f"accel.register({owner}, methods=[{name!r}], readonly=True), if it only reads.",
    )


def check_function(given: Any) -> None:
    """Raises ConfigurationError for what `pure` can't declare: a class, data, a generator, or an object of which a
    program makes no calls that Accel could answer."""
    remedy = _instead_of_function(given)
    if remedy:
        raise ConfigurationError(f"accel.pure takes a function, not {kind_of(given)}.", remedy)
    if any(yields(each) for yields in (isgeneratorfunction, isasyncgenfunction) for each in forms(given)):
        name = getattr(given, "__qualname__", kind_of(given))
        raise ConfigurationError(f"{name} yields; a pure function returns.", "Return a list instead.")


def forms(function: Any) -> tuple[Any, Any]:
    """Of what can be called, itself and the method by which its class has it called: one of both is what it does."""
    return function, type(function).__call__


def _instead_of_function(given: Any) -> str | None:
    """What to declare instead of what is no function."""
    if callable(given) and isinstance(given, (*_FUNCTIONS, types.MethodType)):
        return None
    advice = next((found for each in frameworks() if (found := each.instead_of_declaring(given))), None)
    if advice:
        return advice
    if isinstance(given, type) and not _is_pythons(given):
        return (
            f"accel.register({given.__name__}, methods=[...], pure=True), with the names of the methods that only "
            "compute their result from their arguments."
        )
    if not callable(given) and not _is_pythons(given):
        return "Declare it with accel.register(obj, pure=True), if it only computes its result from its arguments."
    is_function = callable(given) and not isinstance(given, type)
    return None if is_function else "Give the function itself, without calling it: score = accel.pure(score)."


def _is_pythons(component: Any) -> bool:
    """Whether it is of Python itself: plain data, a lock, a generator, a module."""
    cls = component if isinstance(component, type) else type(component)
    home = cls.__module__.partition(".")[0]
    return home in sys.stdlib_module_names and home not in ("__main__", _DOUBLES)


# --- what was declared, and whether its calls can be seen

_given: dict[int, tuple[Callable[[], Any], float]] = {}
"""By id: a reference to a class or object, and when it was declared."""


def reference(component: Any, forget: Callable[[], object]) -> Callable[[], Any]:
    """How to get at a component without keeping it alive, where that can be; `forget` is called when it is gone."""
    try:
        return weakref.ref(component, lambda _: forget())
    except TypeError:
        return lambda: component


def note(component: Any) -> None:
    """It was declared."""
    _given[id(component)] = reference(component, functools.partial(_given.pop, id(component), None)), now_s()


def unseen(before_s: float) -> list[str]:
    """The classes of what was declared before this moment, with all adapters having looked at it since, and has no
    method whose calls can be seen."""
    given = [(refer(), at_s) for refer, at_s in list(_given.values())]
    classes = [each if isinstance(each, type) else type(each) for each, at_s in given if at_s < before_s]
    hidden = [cls for cls in classes if not (patches.has_leaves(cls) or issubclass(cls, Get) or _comes_later(cls))]
    return sorted({cls.__name__ for cls in hidden})


def _comes_later(cls: type) -> bool:
    """Whether it is a component of a framework of which nothing has run yet."""
    homes = {base.__module__.partition(".")[0] for base in cls.__mro__}
    waiting = (each for each in frameworks() if each.adapter not in sys.modules)
    return any(not homes.isdisjoint(framework.packages) for framework in waiting)
