"""The ordered record of one run: which calls it made, with what, and the values that entered and left its nodes."""

from __future__ import annotations

import itertools
import re
import sys
import sysconfig
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from .clock import now_s
from .values import Tree

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
    """The dimensions of the context it ran in (`accel.run.ambient`)."""
    found: set[str] = field(default_factory=set)
    """Texts of documents that the program read, where the framework tells."""
    clock: itertools.count[int] = field(default_factory=itertools.count)

    def read(self, text: str) -> None:
        """The program has read a document."""
        if len(self.found) < MAX_FOUND:
            self.found.add(text)

    def tick(self) -> int:
        """The position of the next event; `next` on a count is atomic."""
        return next(self.clock)


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
_OURS = frozenset(
    "accel accel_langgraph accel_llamaindex accel_local accel_pgvector accel_ray accel_sentence_transformers accel_sim "
    "accel_transformers accel_vllm".split()
)
"""Accel's packages; where their files lie tells nothing."""
_user_code: dict[CodeType, str | None] = {}
_FRAMES = 6
_BOUNDARIES = (
    "/langgraph/_internal/_runnable.py",
    "/accel_langgraph/chains.py",
    "/accel/run/streams.py",
    "/accel_llamaindex/accelerated.py",
    "/asyncio/events.py",
    "/asyncio/base_events.py",
    "/concurrent/futures/thread.py",
    "/threading.py",
)
"""Library files through which a framework or the interpreter enters user code."""


def _is_ours(module: str) -> bool:
    """Whether a module is a part of Accel, and no test of it."""
    package, _, inner = module.partition(".")
    return package in _OURS and "tests" not in inner.split(".")


def _user_name(code: CodeType, module: str) -> str | None:
    """``file:function`` of user code, None for libraries."""
    file = code.co_filename
    if file.startswith("<frozen") or file.startswith(_LIBRARIES) or file == "<string>":
        return None
    if _is_ours(module):
        return None
    return f"{file.rsplit('/', 1)[-1]}:{code.co_qualname}"


def call_site(frame: FrameType | None = None) -> str:
    """The nearest user frames, innermost first: ``file:function:line<file:function:line``.

    Several frames, so that calls through one helper function are told apart by who called the helper.
    """
    at = frame or sys._getframe(1)
    found: list[str] = []
    here: FrameType | None = at
    while here is not None:
        code = here.f_code
        if code in _user_code:
            name = _user_code[code]
        else:
            name = _user_code[code] = _user_name(code, here.f_globals.get("__name__", ""))
        if name is not None:
            found.append(f"{name}:{here.f_lineno}")
            if len(found) == _FRAMES:
                break
        elif code.co_filename.endswith(_BOUNDARIES):
            break  # beyond the node, task or thread: who runs the program is not part of the site
        here = here.f_back
    return "<".join(found)


def where(site: str) -> str:
    """The innermost user frame of a site: file:function:line."""
    frames = site.rsplit("|", 1)[-1]
    return re.split(r"(?<=\d)<", frames, maxsplit=1)[0] or "no user frame"  # names hold "<locals>"
