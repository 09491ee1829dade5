"""Functions of the user's that may compute what stands in an input and what no known value explains.

Nobody watches functions at work. So these are those that the user's lines on the way to the call refer to by name, and
that neither make calls themselves nor refer to components, or make them, nor ask for the time or for chance. Where
there is but one, and nothing undeclared has answered before, which may have said the text, the report has a line that
declares it.
"""

from __future__ import annotations

import dis
import gc
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from ..graph.rules import COMPUTED, PURE_FUNCTION, Reason
from ..learn.learner import UNEXPLAINED
from ..parts.identities.own_code import is_the_programs
from ..parts.program.code import codes, named_by
from ..parts.program.places import cells
from ..parts.references import referenced
from ..run.gains.soonest import Best
from ..trace.record import Trace
from ..trace.sites import codes_of, name_of

if TYPE_CHECKING:
    from ..run.plans.plan import Plan

MOST_NAMED = 3
_VARYING = frozenset(
    "now today utcnow time time_ns perf_counter monotonic localtime gmtime ctime strftime random randint choice "
    "choices sample shuffle uuid1 uuid4 token_hex token_urlsafe urandom environ getenv".split()
)
"""Names of what answers otherwise the next time."""
SOONER_S = 0.005
"""To begin with a call less sooner gains nothing."""


@dataclass(frozen=True, slots=True)
class Computing:
    """A function, as the user's line refers to it."""

    name: str
    where: str
    """File, function and line."""
    line: str
    """To paste."""

    def __str__(self) -> str:
        return f"{self.name} ({self.where.partition(':')[0]}:{self.where.rpartition(':')[2]})"


def computed(trace: Trace, site: str) -> Reason | None:
    """Why no known value explains calls of a site, if a function may compute a part of their input. Looks through all
    objects of the process."""
    found = _functions(trace, site)
    named = ", ".join(map(str, found[:MOST_NAMED])) + ", ..." * (len(found) > MOST_NAMED)
    return COMPUTED(why=UNEXPLAINED, functions=named) if found else None


def gains(plan: Plan, trace: Trace, best: Best, before_s: float) -> Iterator[tuple[Computing, int, float]]:
    """The one function that may be behind a site's calls, how many these are, and how much sooner they could begin.
    `before_s`: what begins later may be made of what something undeclared has answered."""
    sooner: dict[str, list[float]] = {}
    for call in trace.calls:
        gain_s = best.sooner_s.get(call, 0.0) if call.started_s < before_s else 0.0
        if gain_s > SOONER_S and UNEXPLAINED in [n.evidence.reason for n in plan.graph.by_site.get(call.site, ())]:
            sooner.setdefault(call.site, []).append(gain_s)
    lines: dict[Computing, list[float]] = {}
    for site, gained_s in sooner.items():
        found = _functions(trace, site)
        if len(found) == 1:
            lines.setdefault(found[0], []).extend(gained_s)
    for one, gained_s in lines.items():
        yield one, len(gained_s), max(gained_s)


def _functions(trace: Trace, site: str) -> list[Computing]:
    """Nearest to the call first."""
    calling = set(codes_of({call.site for call in trace.calls} | {use.site for use in trace.uses}))
    components = {id(call.component) for call in trace.calls}
    kinds = {type(call.component) for call in trace.calls}
    found: dict[CodeType, Computing] = {}
    for user in _users(codes_of([site]), calling):
        for name, function in _named(user):
            code = function.__code__
            where = name_of(code, function.__module__)
            new = where and code not in calling and code not in found
            works = new and not (inspect.isgeneratorfunction(function) or _makes(function, kinds) or _varies(code))
            reached = referenced([function], lambda it: id(it) in components, _opens_none) if works else {}
            if works and components.isdisjoint(reached):
                found[code] = Computing(name, f"{where}:{code.co_firstlineno}", _line(name))
    return list(found.values())


def _makes(function: FunctionType, kinds: set[type]) -> bool:
    """Whether its code names the class of a component: it makes them."""
    return any(isinstance(each, type) and each in kinds for each in named_by(function).values())


def _varies(code: CodeType) -> bool:
    """Whether it names what is another value each time."""
    return any(not _VARYING.isdisjoint(each.co_names) for each in codes(code))


def _opens_none(value: object) -> bool:
    return False


def _line(name: str) -> str:
    return f"accel.pure({name})" if "." in name else PURE_FUNCTION.line.format(component=name)


def _users(codes: list[CodeType], calling: set[CodeType]) -> Iterator[FunctionType]:
    """The functions with this code, as far as they live. Where an older program has one, too, those that refer to
    what the calls came through."""
    held = [each for each in gc.get_referrers(*codes) if type(each) is FunctionType] if codes else []
    for code in codes:
        alike = [each for each in held if each.__code__ is code]
        linked = [each for each in alike if any(inner.__code__ in calling for _, inner in _named(each))]
        yield from linked or alike


def _named(function: FunctionType) -> Iterator[tuple[str, FunctionType]]:
    """The functions of the user's that its code names: of its module, of the functions around it, of other modules, and
    methods of objects."""
    code, around = function.__code__, cells(function)
    for name, inner in _loaded(code):
        value: Any = around[name] if name in around else function.__globals__.get(name)
        if type(value) is FunctionType:
            yield name, value
        elif isinstance(value, ModuleType) or (value is not None and is_the_programs(type(value))):
            own = vars(value if isinstance(value, ModuleType) else type(value)).get(inner)
            if type(own) is FunctionType:
                yield f"{name}.{inner}", own


def _loaded(code: CodeType) -> Iterator[tuple[str, str]]:
    """The names of variables that code loads from outside, each with the attribute that it takes of it next."""
    steps = list(dis.get_instructions(code))
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            takes = after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD")
            yield str(step.argval), str(after.argval) if after is not None and takes else ""
    for held in code.co_consts:
        if isinstance(held, CodeType):
            yield from _loaded(held)
