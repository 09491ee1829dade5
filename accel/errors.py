"""Every error a user of Accel can meet, each saying what happened and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class AccelError(Exception):
    """Base of all errors raised by Accel. `what` is the fact, `remedy` the way out ("" where there is none)."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}\n  Remedy: {self.remedy}" if self.remedy else self.what


class ConfigurationError(AccelError):
    """An option that is unknown, out of range or contradicts another one."""


class WrongObject(AccelError, TypeError):
    """An object of a kind that a function of Accel doesn't take."""


class AccelWarning(UserWarning):
    """What works, but hardly as it is meant: what it is, and the remedy, as in errors."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}\n  Remedy: {remedy}")


class MissingExtra(AccelError):
    """A part of Accel whose dependencies are not installed."""

    def __init__(self, needed_for: str, extra: str, missing: str = "") -> None:
        named = f" (no module named {missing!r})" if missing else ""
        super().__init__(
            f"{needed_for} needs packages that are not installed{named}.", f"pip install 'accelgraph[{extra}]'"
        )
        self.extra = extra


class ModelNotFound(AccelError):
    """A model name that is neither a folder nor a model in the cache."""


class EngineStartError(AccelError):
    """An engine could not be started; nothing of it is left running."""


class NotEnoughMemory(EngineStartError):
    """The machine, or the configured KV cache, is too small for the engine."""


class DatabaseError(AccelError):
    """A database that cannot be reached, or lacks something we need. Never contains a password."""


class EngineClosed(AccelError):
    """A call reached an engine after it was shut down."""


class RequestError(AccelError):
    """One request failed; others on the same engine are not affected."""


class InvalidRequest(RequestError):
    """A request that can never succeed as it is: empty or too long a prompt, a broken schema, a wrong dimension."""


class CallCancelled(AccelError):
    """The call was aborted through its `accel.engine.CancelToken`; the engine stopped working on it."""

    def __init__(self, what: str = "The call was cancelled.") -> None:
        super().__init__(what)


# --- names that are not known ---------------------------------------------------------------------------------------


def choose(given: object, known: Iterable[str], use: str = "Use one of") -> str:
    """The remedy for a name that is not known: the one that was meant, if one is close, else all of them."""
    from difflib import get_close_matches  # here: it takes a while, and mostly nobody needs it

    names = list(known)
    close = get_close_matches(given, names, 1) if isinstance(given, str) else ()
    return f"Did you mean {close[0]!r}?" if close else f"{use} {', '.join(names)}."


def kind_of(obj: object) -> str:
    """What an object that was given is, without what it holds."""
    return f"the class {obj.__name__}" if isinstance(obj, type) else type(obj).__name__


def check_options(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Of options that go on to the program, raise ConfigurationError for one that is nearly the function's own."""
    from difflib import get_close_matches  # as above

    own = list(known)
    for name in given:
        for meant in get_close_matches(name, own, 1, cutoff=0.85) if name not in own else ():
            raise ConfigurationError(f"{function}() has no option {name!r}.", f"Did you mean {meant!r}?")


def knows_its_options(function: Callable[P, R]) -> Callable[P, R]:
    """Have an option that the function doesn't know raise ConfigurationError, with the name that was meant."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    name = function.__qualname__.removesuffix(".__init__")
    options = known[1:]  # the first one is what it is about

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for given in kwargs:
            if given not in known:
                raise ConfigurationError(f"{name}() has no option {given!r}.", choose(given, options, "It has"))
        return function(*args, **kwargs)

    return checked
