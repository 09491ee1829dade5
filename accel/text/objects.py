"""What an object of the program's is, and holds, without asking it.

Objects may stand for others and work when they are looked at: Flask's `request` raises outside of a request, Django's
`request.user` reads the database. `isinstance`, `__dict__` and `getattr` would be answered by what they stand for.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import lru_cache
from threading import local
from types import GetSetDescriptorType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

__all__ = ["attributes", "is_a", "own", "private"]

if TYPE_CHECKING:
    from builtins import isinstance as is_a  # so that checkers narrow types by it
else:

    def is_a(value, kinds):
        """Whether the object itself is one of these. A function that `wrapt` has wrapped is a function."""
        cls = type(value)
        return issubclass(cls, kinds) or (_wraps_functions(cls) and isinstance(value, kinds))


@lru_cache(4_096)
def _wraps_functions(cls: type) -> bool:
    wrapt = sys.modules.get("wrapt")
    return wrapt is not None and issubclass(cls, (wrapt.FunctionWrapper, wrapt.BoundFunctionWrapper))


_Member = GetSetDescriptorType | MemberDescriptorType
_USUAL = vars(type("Usual", (), {}))["__dict__"].__doc__
"""What the interpreter says of the `__dict__` that it gives to classes. Those of extensions may do anything."""
_UNSEEN: Any = object()
_members: WeakKeyDictionary[type, Any] = WeakKeyDictionary()
"""By class, what gives the attributes of its objects."""


def own(value: Any) -> dict[str, Any] | None:
    """The attributes of an object, where it keeps them; those of a `threading.local` are of this thread. None if it has
    no place for them, or other code would give them; and for classes."""
    cls = type(value)
    if issubclass(cls, local):
        return dict(vars(value))
    given = _members.get(cls, _UNSEEN)
    if given is _UNSEEN:
        given = _members[cls] = None if issubclass(cls, type) else _member(cls)
    return None if given is None else cast("dict[str, Any]", given.__get__(value))


def _member(cls: type) -> _Member | None:
    for base in cls.__mro__:
        member = vars(base).get("__dict__")
        if member is not None:
            known = member.__doc__ == _USUAL or base.__module__.partition(".")[0] in sys.stdlib_module_names
            return member if known and type(member) in (GetSetDescriptorType, MemberDescriptorType) else None
    return None


def attributes(value: Any) -> dict[str, Any]:
    """Those, and what a pydantic model keeps private."""
    return {**(own(value) or {}), **private(value)}


def private(value: Any) -> dict[str, Any]:
    slot = getattr(type(value), "__pydantic_private__", None)
    with suppress(AttributeError):  # not set
        return (slot.__get__(value) if type(slot) is MemberDescriptorType else None) or {}
    return {}
