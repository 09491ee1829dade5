"""What the calls of the program's components keep in their objects: what they count, or remember of what they were
asked. By it no component is another one than it was before the call."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator

from ...text.classes import of_class, of_classes
from .code import codes, function_of, is_users, libraries_bases, users_bases, written
from .steps import Step, changed_at, steps_of


@of_classes
def kept_in_use(component: type, part: type, by_class: bool = False) -> frozenset[str]:
    """The attributes that a component's calls assign or add to, in objects of `part` that it holds: what they count, or
    keep. `by_class`: of whatever they assign or add to, which may be the class."""
    used = _in_use(component, part)
    return frozenset(name for own in used for name in (own.kept_anywhere() if by_class else own.kept()))


@of_classes
def only_noted(component: type, part: type) -> frozenset[str]:
    """Those of them that the calls count or add to, or assign and don't read, or not before: they are no settings,
    which a program may change between two calls."""
    used = list(_in_use(component, part))
    assigned = {name for own in used for name in own.assigned()} - {name for own in used for name in own.read()}
    first = {name for own in used if own.is_entry for name in own.assigned_first()}
    return frozenset((assigned | first).union(*(own.added() for own in used)))


@of_class
def noted_of_its_own(cls: type) -> frozenset[str]:
    """The same, in the component itself: of the fields that classes of the program's brought. Those of a library, a key
    or an address among them, say what it is."""
    brought = {name for base in users_bases(cls) for name in inspect.get_annotations(base)}
    return only_noted(cls, cls) & brought


def _in_use(component: type, part: type) -> Iterator[_Own]:
    """The code of what a framework calls of the component, and of what that calls of the component and of what it
    holds; what else may be called (a method that sets something) is none of that."""
    functions: dict[str, list[types.FunctionType]] = {}
    called: set[str] = set()
    for base in (*component.__mro__, *part.__mro__):
        for name, member in list(vars(base).items()) if is_users(base) else ():
            if functions_of_it := written(member):
                functions.setdefault(name, []).extend(functions_of_it)
                if type(function_of(member)) is not types.FunctionType:  # what a component is called by is looked at
                    called.add(name)
    called.update(name for name in functions if any(name in vars(base) for base in libraries_bases(component)))
    entries = frozenset(name for name in called if name in dir(component))
    coming, reached = list(entries), {"__init__", "__post_init__"}
    while coming:
        name = coming.pop()
        if name in reached:
            continue
        reached.add(name)
        for function in functions[name]:
            for code in codes(function.__code__):
                is_entry = name in entries and code is function.__code__
                own = _Own(steps_of(code), function.__code__.co_varnames[:1], is_entry)
                coming += own.called() & functions.keys()
                yield own


@of_class
def kept_by_itself(cls: type) -> frozenset[str]:
    """The attributes that any of its methods assigns or adds to, once it is made: of a class that extends no library's
    it is not known which of them are its calls."""
    found = set[str]()
    for base in users_bases(cls):
        for name, member in list(vars(base).items()):
            for function in written(member) if name not in ("__init__", "__post_init__") else ():
                for code in codes(function.__code__):
                    found |= _Own(steps_of(code), function.__code__.co_varnames[:1], is_entry=False).kept()
    return frozenset(found)


@of_class
def is_called_by_libraries(cls: type) -> bool:
    """Whether the program's class puts methods in the place of a library's, which calls them: then it is known what its
    calls keep."""
    own = [name for base in users_bases(cls) for name in vars(base) if not name.startswith("__")]
    return any(callable(vars(base).get(name)) for base in libraries_bases(cls) for name in own)


class _Own:
    """What code does to its object, whose name is `itself`, and to what that holds."""

    def __init__(self, steps: list[Step], itself: tuple[str, ...], is_entry: bool) -> None:
        self._steps, self._itself, self._changed = steps, itself, changed_at(steps)
        self.is_entry = is_entry
        """A framework calls it."""

    def _is_of_it(self, at: int) -> bool:
        """Whether what stands there gives it, or what it holds."""
        while at >= 0 and self._steps[at].does in ("take", "copy"):
            at -= 1
        return at >= 0 and self._steps[at].does in ("load own", "load cell") and self._steps[at].name in self._itself

    def _taken(self) -> Iterator[int]:
        """Where attributes are taken of it."""
        return (at for at, step in enumerate(self._steps) if step.does == "take" and self._is_of_it(at - 1))

    def called(self) -> set[str]:
        """Names of methods that may be called of it."""
        return {self._steps[at].name for at in self._taken()}

    def added(self) -> set[str]:
        """The attributes that are added to: counted up, or changed in place."""
        return {self._steps[at].name for at in self._taken() if self._is_added_to(at)}

    def _is_added_to(self, at: int) -> bool:
        """Whether what is taken there is changed in place, or taken to be assigned again (`+=`)."""
        return at in self._changed or self._steps[at - 1].does == "copy"

    def assigned(self) -> set[str]:
        return {
            step.name
            for at, step in enumerate(self._steps)
            if step.does == "store attribute" and self._is_of_it(at - 1)
        }

    def assigned_first(self) -> set[str]:
        """Those that are assigned in any case, and not read before: what they held says nothing."""
        found, read = set[str](), set[str]()
        for at, step in enumerate(self._steps):
            if step.does == "jump":
                break
            if step.does == "take":
                read.add(step.name)
            elif step.does == "store attribute" and step.name not in read and self._is_of_it(at - 1):
                found.add(step.name)
        return found

    def kept(self) -> set[str]:
        return self.added() | self.assigned()

    def read(self) -> set[str]:
        """The attributes that are taken for what they hold."""
        return {self._steps[at].name for at in self._taken() if not self._is_added_to(at)}

    def kept_anywhere(self) -> Iterator[str]:
        """The attributes that are assigned or added to, of whatever object."""
        yield from (step.name for step in self._steps if step.does == "store attribute")
        yield from (self._steps[at].name for at in self._changed)
