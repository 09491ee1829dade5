"""From function to function of the program's code, by the names in it: what it reads, and what it changes itself."""

from __future__ import annotations

import builtins
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ...text.classes import of_class
from ...text.objects import in_class, is_a, own
from ...trace import homed
from ...trace.ambient import FRAMEWORK_VARS
from ..listed.table import listed
from ..methods.methods import METHODS
from .code import codes, is_users, is_users_module, module_of, users_bases, written
from .steps import Step, changed_at, steps_of

Space = dict[str, Any] | CellType | type
"""What holds a variable: a module's, an object's or a class's attributes, or the cell of a closure."""
MAX_FUNCTIONS = 512
MISSING = object()
_NO_STEP = Step("other", "", 0)
_CODE = (
    ContextVar,
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    type,
    ModuleType,
    property,
    staticmethod,
    classmethod,
)
"""What is followed, or does not change."""
_BY_TEXT = frozenset(("getattr", "attrgetter"))
_BARE = frozenset(("__init__", "__post_init__", "__new__", "__del__", "__init_subclass__"))
"""Methods that made an object, or end it: no call runs them."""


@of_class
def is_function(cls: type) -> bool:
    """Whether its objects are functions, or wrap some: keep what they gave, or say what they are called with."""
    return cls in (FunctionType, _CACHED) or in_class(cls, "__wrapped__") is not None


_CACHED = type(lru_cache(lambda: None))
_NEUTRAL = sys.stdlib_module_names | {"pydantic", "typing_extensions"}
_INSTALLED = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))


@of_class
def is_held(cls: type) -> bool:
    """Whether its objects are the program's, for its own components to work with. What extends a library works for
    that, and may be a component itself."""
    return bool(users_bases(cls)) and all(
        is_users(base) or base.__module__.partition(".")[0] in _NEUTRAL for base in cls.__mro__
    )


def package_of(component: type) -> str:
    """The library that a component's class comes from, whose code is followed as the program's; of a listed class it is
    known what it does, and none is."""
    return "" if listed(component) else component.__module__.partition(".")[0]


@lru_cache(4_096)
def is_followed(module: str, package: str) -> bool:
    """Whether code of a module is followed: that of the program, or of the component's own package. What another
    library keeps for itself on a thread is no word of the program's."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return is_users_module(module) and (module.partition(".")[0] == package or not file.startswith(_INSTALLED))


class Following:
    """From function to function, by the names in their code."""

    def __init__(self, component: type, classes: tuple[type, ...], functions: tuple[FunctionType, ...]) -> None:
        self._component = component
        self._leaves = frozenset(name for _, name in METHODS)
        self._package = package_of(component)
        self._classes: dict[type, None] = dict.fromkeys(classes)
        self._named: set[type] = set()
        """Of those, the ones that code makes objects of."""
        self._coming = list(functions)
        self.local, self.context, self.whole = "", False, False
        self.environment: set[str] = set()
        self._places: dict[tuple[int, str], tuple[Space, str]] = {}
        self._changed: set[tuple[int, str]] = set()
        """Variables that this code itself assigns or adds to: what it counts or keeps."""
        self._kept: dict[int, Any] = {}
        """What it adds to, or takes from."""
        self._stored: set[str] = set()
        """Attributes of whatever object that it does so to."""
        self._taken: set[str] = set()
        self.named: set[str] = set()
        """Variables, attributes of whatever objects (".name"), and arguments that it gives by name ("name=")."""
        self._done: set[FunctionType] = set()

    def go(self) -> None:
        while len(self._done) < MAX_FUNCTIONS:
            self._coming += self._called()
            coming = [function for function in dict.fromkeys(self._coming) if function not in self._done]
            self._coming.clear()
            if not coming:
                return
            for function in coming:
                self._done.add(function)
                self._function(function)

    @property
    def read(self) -> list[tuple[Space, str]]:
        """The variables that it reads and does not change."""
        places = [place for at, place in self._places.items() if at not in self._changed]
        places = [(space, name) for space, name in places if id(space) not in self._kept]
        return [(space, name) for space, name in places if not (name in self._stored and _is_object(space))]

    def _called(self) -> Iterator[FunctionType]:
        """The methods that may be called by now."""
        for cls in list(self._classes):
            own = [base for base in cls.__mro__ if self._is_own(base.__module__)]
            library = {name for base in cls.__mro__ if base not in own and base is not object for name in vars(base)}
            declared = self._leaves if cls is self._component and not library else frozenset()
            for base in own:
                for name, member in list(vars(base).items()):
                    if is_a(member, threading.local):
                        self._meet(name, member)
                    if name in _BARE and cls not in self._named:
                        continue
                    by_others = name in library or (name.startswith("__") and name.endswith("__"))
                    if name in declared or by_others or name in self._taken or type(member) is property:
                        yield from written(member)

    def _function(self, function: FunctionType) -> None:
        for code in codes(function.__code__):
            self._code(code, function)
        for given in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._meet("a default", given)

    def _code(self, code: CodeType, function: FunctionType) -> None:
        steps = steps_of(code)
        changed = changed_at(steps)
        loaded = {step.name for step in steps if step.does in ("load", "import from")}
        taken = {step.name for step in steps if step.does == "take"}
        if not _BY_TEXT.isdisjoint(loaded | taken):
            taken.update(step.name for step in steps if step.does == "constant")
        given = [name for each in code.co_consts if type(each) is tuple for name in each if type(name) is str]
        self.named |= loaded | {f".{name}" for name in taken} | {f"{name}=" for name in given}
        imported: dict[str, Any] = {}
        for at, step in enumerate(steps):
            if step.does == "take":
                self._taken.add(step.name)
            elif step.does == "import":
                self._import(steps, at, function, imported)
            elif step.does == "store attribute":
                self._stored.add(step.name)
            elif step.does in ("assign", "assign cell"):
                space = self._space(step, function)
                self._changed.add((id(space), step.name))
            elif step.does in ("load", "load cell", "load own"):
                self._chain(steps, at, changed, function, imported)
        self._stored.update(steps[at].name for at in changed if steps[at].does == "take")

    def _space(self, step: Step, function: FunctionType) -> Space | None:
        """What holds a variable that a function names; None of one that it makes anew for each call."""
        if not step.does.endswith("cell"):
            return function.__globals__
        names = function.__code__.co_freevars
        return (function.__closure__ or ())[names.index(step.name)] if step.name in names else None

    def _import(self, steps: list[Step], at: int, function: FunctionType, imported: dict[str, Any]) -> None:
        """An import inside of a function, of what is loaded."""
        names = [step.name for step in steps[at : at + 2]]
        package = function.__globals__.get("__package__") or ""
        module = sys.modules.get(names[0]) or sys.modules.get(f"{package}.{names[0]}")
        if module is None:
            return
        if steps[at + 1].does == "store own":
            imported[names[1]] = sys.modules.get(names[0].partition(".")[0], module)
        for source, target in zip(steps[at + 1 :], steps[at + 2 :], strict=False):
            if source.does == "import from" and target.does == "store own":
                imported[target.name] = (module, source.name)
            elif source.does == "import":
                return

    def _chain(
        self, steps: list[Step], at: int, changed: set[int], function: FunctionType, imported: dict[str, Any]
    ) -> None:
        """A variable is read, and perhaps attributes of it."""
        name = steps[at].name
        if steps[at].does == "load own":
            if name not in imported:
                return
            held = imported[name]
            if is_a(held, ModuleType):
                self._attributes(steps, at, changed, held, None)
                return
            space: Space | None = vars(held[0])
            name = held[1]
        else:
            space = self._space(steps[at], function)
        if space is None or name == "__class__":
            return
        value = getter(space)(name)
        if value is MISSING and hasattr(builtins, name):
            return
        self._attributes(steps, at, changed, value, (space, name))

    def _attributes(
        self, steps: list[Step], at: int, changed: set[int], value: Any, place: tuple[Space, str] | None
    ) -> None:
        """What is taken of a value, step by step, and what it is in the end."""
        while True:
            if place is not None:
                self._read(place, value, is_changed=at in changed)
            self._meet(place[1] if place is not None else "", value)
            following = steps[at + 1] if at + 1 < len(steps) else None
            if value is os.environ or value is os.getenv:
                self._asks(steps, at)
                return
            if type(value) is dict:
                key = _key(steps, at)
                if key is not None:
                    self._read((value, key), value.get(key, MISSING), is_changed=at in changed)
                return
            if following is None or following.does != "take" or not self._opens(value):
                return
            at, held = at + 1, _attributes_of(value, following.name)
            if held is None:
                return
            place, value = (held, following.name), getter(held)(following.name)

    def _opens(self, value: Any) -> bool:
        """Whether it is of the program's, or what tells of the environment."""
        if is_a(value, ModuleType):
            return value is os or self._is_own(value.__name__)
        cls = value if is_a(value, type) else type(value)
        return is_users(cls) and self._is_own(cls.__module__)

    def _read(self, place: tuple[Space, str], value: Any, is_changed: bool) -> None:
        space, name = place
        at = id(space), name
        if is_changed:
            self._changed.add(at)
            self._kept[id(value)] = value
        if not is_a(value, _CODE) and value is not os.environ:
            self._places[at] = place

    def _asks(self, steps: list[Step], at: int) -> None:
        """For environment variables: by a name that stands there, or whichever."""
        after = [step for step in steps[at + 1 : at + 6] if step.does != "null"]
        asked = after[1:] if after and after[0].name == "get" else after
        name, *rest = asked or [_NO_STEP]
        does = [step.does for step in rest]
        is_one = does[:1] in (["item"], ["call"]) or (does[1:2] == ["call"] and rest[0].effect == 1)
        if name.does == "constant" and is_one:
            self.environment.add(name.name)
        else:
            self.whole = True

    def _meet(self, name: str, value: Any) -> None:
        """What code names may be more code."""
        if is_a(value, threading.local) or homed.is_of_thread(value):
            self.local = self.local or name
        elif type(value) is ContextVar:
            self.context = self.context or not (value.name in FRAMEWORK_VARS or value in FRAMEWORK_VARS)
        elif is_function(type(value)):
            self._coming += [each for each in written(value) if self._is_own(module_of(each))]
        elif is_a(value, MethodType):
            self._meet(name, value.__func__)
            self._meet(name, value.__self__)
        elif is_a(value, type):
            if is_held(value) and self._is_own(value.__module__):
                self._classes[value] = None
                self._named.add(value)
        cls: Any = type(value)
        if is_held(cls) and self._is_own(cls.__module__):
            self._classes[cls] = None
            for inner, held in (own(value) or {}).items():
                if is_a(held, threading.local) or type(held) is ContextVar:
                    self._meet(f"{name}.{inner}", held)

    def _is_own(self, module: str) -> bool:
        return is_followed(module, self._package)


def _key(steps: list[Step], at: int) -> str | None:
    """Of a dict that is loaded there, the key that code names: one that it is given may be anybody's."""
    after = [*steps[at + 1 : at + 4], _NO_STEP, _NO_STEP]
    if (after[0].does, after[1].does) == ("constant", "item"):
        return after[0].name
    if (after[0].does, after[0].name, after[1].does) == ("take", "get", "constant"):
        return after[1].name
    return None


def _is_object(space: Space) -> bool:
    """Whether these are an object's attributes, not a module's variables."""
    return is_a(space, type) or (is_a(space, dict) and "__name__" not in space)


def _attributes_of(value: Any, name: str) -> Any:
    """What holds an attribute."""
    if is_a(value, ModuleType):
        return vars(value)
    if is_a(value, type):
        return next((base for base in value.__mro__ if name in vars(base)), None)
    held = own(value)
    return held if held is not None and name in held else _attributes_of(type(value), name)


def getter(space: Space) -> Callable[[str], Any]:
    """What gives a variable there, or `MISSING`."""
    if is_a(space, CellType):
        return partial(_of_cell, space)
    held: Any = vars(space) if is_a(space, type) else space
    return partial(_of_names, held)


def _of_names(held: Mapping[str, Any], name: str) -> Any:
    return held.get(name, MISSING)


def _of_cell(cell: CellType, _: str) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return MISSING
