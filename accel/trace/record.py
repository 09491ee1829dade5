"""The ordered record of one run: which calls it made, with what, and the values that entered and left its nodes."""

from __future__ import annotations

import itertools
import re
import sys
import sysconfig
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ..frameworks import frameworks
from ..process.clock import now_s
from ..text.values import Tree

MAX_FOUND = 2_000


@dataclass(slots=True, eq=False)
class Visit:
    """One run of a framework node."""

    node: str
    start: int
    entered: Tree
    started_s: float
    end: int | None = None
    left: Tree = None
    ended_s: float | None = None
    failed: bool = False
    position: int = 0
    """How many times the node had run before."""
    outer: Visit | None = None
    """The visit of another node that it is a part of."""


@dataclass(slots=True, eq=False)
class CallRecord:
    """One demand. Positions count the events of the run: what ended before a call started was known to it."""

    site: str
    within: str
    method: str
    family: str
    op: str
    component: Any
    """The live component; traces stay in memory, plans never hold it."""
    identity: Hashable
    input: Tree
    key: Hashable
    start: int
    started_s: float
    parent: CallRecord | None = None
    visit: Visit | None = None
    """The run of the framework node that it was made in; others may be under way beside it."""
    end: int | None = None
    ended_s: float | None = None
    output: Tree = None
    failed: bool = False
    composite: bool = False
    """It made calls of its own that are primitives themselves (more than embedding its query)."""
    tokens: tuple[int, int] = (0, 0)
    """Prompt and output tokens, where the component tells."""
    retired: bool = False
    issued_s: float | None = None
    """When the early call that answered it started, and"""
    answered_s: float | None = None
    """when it had its result."""

    @property
    def ok(self) -> bool:
        return self.end is not None and not self.failed


@dataclass(slots=True, eq=False)
class Trace:
    """What happened in one run, in program order."""

    input: Tree = None
    calls: list[CallRecord] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    started_s: float = field(default_factory=now_s)
    ended_s: float | None = None
    completed: bool = False
    """Ran to its end: not raised, interrupted or abandoned."""
    ambient: Mapping[str, str] = field(default_factory=dict)
    """The dimensions of the context it ran in (`accel.trace.ambient`)."""
    found: set[str] = field(default_factory=set)
    """Texts of documents that the program read, where the framework tells."""
    resumed: bool = False
    """It goes on from where another run paused."""
    clock: itertools.count[int] = field(default_factory=itertools.count)

    def read(self, text: str) -> None:
        """The program has read a document."""
        if len(self.found) < MAX_FOUND:
            self.found.add(text)

    @property
    def given(self) -> Tree:
        """What the run is about: its input, and what it goes on with."""
        return [self.input, *(visit.entered for visit in self.visits[:1])] if self.resumed else self.input

    def tick(self) -> int:
        """The position of the next event; `next` on a count is atomic."""
        return next(self.clock)

    def failed(self, record: CallRecord | None) -> None:
        """A call ends with an error."""
        if record is not None:
            record.failed = True
            record.end, record.ended_s = self.tick(), now_s()


# --- call sites -----------------------------------------------------------------------------------------------------

_LIBRARIES = tuple(
    {
        str(Path(path).resolve()) + "/"
        for name, path in sysconfig.get_paths().items()
        if name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
    | {
        str(Path(path)) + "/"
        for name, path in sysconfig.get_paths().items()
        if name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)
_OURS = ("accel", "local", "pgvector", "ray", "sentence_transformers", "sim", "transformers", "vllm")
"""Accel's packages: the core, and backends by what follows `accel_`. Where their files lie tells nothing."""


@lru_cache(1)
def packages() -> frozenset[str]:
    """All packages of Accel, adapters included."""
    core, *backends = _OURS
    adapters = (framework.adapter.partition(".")[0] for framework in frameworks())
    return frozenset((core, *(f"{core}_{backend}" for backend in backends), *adapters))


_FRAMES = 6
_BOUNDARIES = (
    "/accel/run/streams.py",
    "/asyncio/events.py",
    "/asyncio/base_events.py",
    "/concurrent/futures/thread.py",
    "/threading.py",
)
"""Library files through which the interpreter, or Accel, enters user code."""


@lru_cache(1)
def _boundaries() -> tuple[str, ...]:
    """Those, and the frameworks'."""
    return sum((framework.boundaries for framework in frameworks()), _BOUNDARIES)


def is_ours(module: str) -> bool:
    """Whether a module is a part of Accel, and no test of it."""
    package, _, inner = module.partition(".")
    return package in packages() and "tests" not in inner.split(".")


_seen: dict[int, tuple[CodeType, str]] = {}
"""By id of the code, which is kept (to hash it takes longer than all else): see `_name`."""
_INNER, _BOUNDARY = "", "|"


def _name(code: CodeType, module: str) -> str:
    """``file:function`` of user code; of other code `_INNER`, or `_BOUNDARY` beyond which the site does not go."""
    file = code.co_filename
    library = file.startswith(("<frozen", *_LIBRARIES)) or file == "<string>" or is_ours(module)
    if not library:
        return f"{file.rsplit('/', 1)[-1]}:{code.co_qualname}"
    return _BOUNDARY if file.endswith(_boundaries()) else _INNER


def call_site(frame: FrameType | None = None) -> str:
    """The nearest user frames, innermost first: ``file:function:line<file:function:line``.

    Several frames, so that calls through one helper function are told apart by who called the helper.
    """
    found: list[str] = []
    here: FrameType | None = frame or sys._getframe(1)
    while here is not None:
        code = here.f_code
        seen = _seen.get(id(code))
        if seen is None:
            seen = _seen[id(code)] = code, _name(code, here.f_globals.get("__name__", ""))
        name = seen[1]
        if name is _BOUNDARY:
            break  # beyond the node, task or thread: who runs the program is not part of the site
        if name:
            found.append(f"{name}:{here.f_lineno}")
            if len(found) == _FRAMES:
                break
        here = here.f_back
    return "<".join(found)


def where(site: str) -> str:
    """The innermost user frame of a site: file:function:line."""
    frames = site.rsplit("|", 1)[-1]
    return re.split(r"(?<=\d)<", frames, maxsplit=1)[0] or "no user frame"  # names hold "<locals>"
