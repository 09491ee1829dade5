"""Call sites: where in the user's code a call is made."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

from ..frameworks import frameworks, installed
from .record import CallRecord, Use

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
    "/accel/run/demands/streams.py",
    "/asyncio/events.py",
    "/asyncio/base_events.py",
    "/asyncio/runners.py",  # of loops that are no Python (uvloop)
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


@lru_cache(4_096)
def is_frameworks(module: str) -> bool:
    """Whether a module is a part of a framework, or of an integration of it, wherever that was installed (a layer, a
    folder of its own beside the program). A program's own packages may begin with the same word."""
    top = module.partition(".")[0]
    if not any(top.startswith(framework.families) for framework in frameworks()):
        return False
    if (getattr(sys.modules.get(module), "__file__", None) or "").startswith(_LIBRARIES):
        return True
    own = any(top in framework.packages for framework in frameworks())
    return own or installed(top.replace("_", "-")) is not None


_seen: dict[int, tuple[CodeType, str]] = {}
"""By id of the code, which is kept (to hash it takes longer than all else): see `_name`."""
_INNER, _BOUNDARY = "", "|"


def _name(code: CodeType, module: str) -> str:
    """``file:function`` of user code; of other code `_INNER`, or `_BOUNDARY` beyond which the site does not go."""
    file = code.co_filename
    library = file.startswith(("<frozen", *_LIBRARIES)) or file == "<string>"
    if not (library or is_ours(module) or is_frameworks(module)):
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


def name_of(code: CodeType, module: str) -> str:
    """How a site names code of the user's, without the line; empty for other code."""
    return _name(code, module).removeprefix(_BOUNDARY)


def codes_of(sites: Iterable[str]) -> list[CodeType]:
    """The user's code that these sites name, innermost first."""
    frames = dict.fromkeys(frame for site in sites for frame in re.split(r"(?<=\d)<", site.rsplit("|", 1)[-1]) if frame)
    named: dict[str, list[CodeType]] = {}
    for code, name in list(_seen.values()):
        named.setdefault(name, []).append(code)
    found: dict[CodeType, None] = {}
    for frame in frames:
        name, _, number = frame.rpartition(":")  # lambdas share a name
        for code in named.get(name, ()):
            if any(line == int(number) for _, _, line in code.co_lines()):
                found[code] = None
    return list(found)


def called_by_user(frame: FrameType | None) -> FrameType | None:
    """What the nearest user frame calls, on the way to this one; without a user frame, what is called first."""
    called = None
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        name = _name(frame.f_code, module)
        if name:
            break
        if not is_ours(module):
            called = frame
        frame = frame.f_back
    return called


NOWHERE = "no user frame"


def where(site: str) -> str:
    """The innermost user frame of a site: file:function:line."""
    frames = site.rsplit("|", 1)[-1]
    return re.split(r"(?<=\d)<", frames, maxsplit=1)[0] or NOWHERE  # names hold "<locals>"


def line_of(call: CallRecord | Use) -> str:
    """The line of the user's that made a call; where none did (the framework itself calls), the framework node and
    what it called."""
    frame = where(call.site)
    if frame != NOWHERE:
        return frame
    return f"{called(call)} in {call.within or 'the program'}"


def called(call: CallRecord | Use) -> str:
    """The tool, or the class of the component; as the site names it where that is no more (`released`)."""
    if isinstance(call, Use):
        return call.name
    component = call.component
    return type(component).__name__ if component is not None else call.site.split("|")[2].rpartition(".")[2]


def function_of(line: str) -> str:
    """The user's function that a line is in, by its own name; empty for a lambda, a module, or no line."""
    _, _, rest = line.partition(":")
    names = rest.rpartition(":")[0].split(".")
    if names[-1] in ("", "<lambda>", "<module>"):
        return ""
    return next((name for name in reversed(names) if not name.startswith("<")), "")
