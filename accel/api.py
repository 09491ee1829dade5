"""What users call: `accelerate`, `settle`, `uninstall`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from .errors import ConfigurationError, MissingExtra, WrongObject, kind_of, knows_its_options
from .frameworks import Framework, frameworks
from .insight import Insight, load_plan
from .parts.methods import patches
from .process.threads import learner
from .run.gains.pace import Alike
from .run.ongoing import followed
from .run.plans.plan import Plan
from .run.plans.which import Identity
from .run.settings import Budget, Egress, Settings, Speculate
from .run.switch import read_environment

T = TypeVar("T")
log = logging.getLogger("accel")

_scopes: dict[tuple[str, Identity], Plan] = {}
_alone: dict[Identity, Alike] = {}
"""By program, the objects that share nothing."""


@knows_its_options
def accelerate(
    obj: T,
    *,
    speculate: Speculate = "auto",
    egress: Egress = "known",
    pure_nodes: Iterable[str] = (),
    plan: Plan | str | os.PathLike[str] | None = None,
    plan_scope: str | None = None,
    budget: Budget | None = None,
) -> T:
    """The same kind of object, with the same results, sooner.

    `obj`: a compiled LangGraph graph, an `@entrypoint`, a chain of LangChain's runnables, or a query engine, retriever,
    response synthesizer, chat engine, evaluator, ingestion pipeline, index, workflow or agent of LlamaIndex; it is not
    changed. Of an index also the class, whose instances are then built faster. One that is accelerated already is given
    back as it is, and takes no other options.
    `speculate`: "certain" issues only what every run so far demanded and the graph's shape makes sure of, or a value of
    this run has decided (a router's answer, as two runs have shown); "auto" (default) also what may be in vain (the
    branch that runs mostly take), if by its chance it saves more than it wastes, while all waste stays below the
    budget's; "likely" what at least half of the runs went on to, whatever is wasted; "off" only records.
    `egress`: "known" (default) sends a value early to a remote endpoint only if that endpoint has it already, "inputs"
    lifts that.
    `pure_nodes`: names of a graph's nodes that only compute their result from the state (default: none).
    `plan`: a plan of an earlier object, or the path of a saved one (default: an empty one).
    `plan_scope`: objects of one scope share what they learn (for tenants: one scope each), if their class and the names
    of their nodes are the same; the first of them may bring a `plan` (default: this object is a scope of its own).
    `budget`: bounds of early work per run, and with `caps` of what is in vain over all runs and for each tenant
    (default: `Budget()`).

    Raises WrongObject, a TypeError, for anything else, naming what is accepted; ConfigurationError for options that are
    unknown or contradict the object, a plan that is of another program or damaged, a version of the framework that
    Accel does not support, and an environment variable ACCEL that is not off, watch or on; MissingExtra if a part of
    Accel is not installed.
    """
    read_environment()
    nodes = _names(pure_nodes)
    settings = Settings(speculate, egress, Budget() if budget is None else budget)
    if isinstance(obj, Insight):
        own = obj._accel.settings
        if settings not in (own, Settings()) or nodes or plan is not None or plan_scope is not None:
            raise ConfigurationError(
                f"This {kind_of(obj)} is accelerated already, and goes on with the options that it was given then.",
                "Accelerate the unmodified object, with all options at once.",
            )
        return obj
    framework = _framework_of(obj)
    framework.check_versions()
    try:
        adapter = import_module(framework.adapter)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"accelerate() for {framework.name}", framework.extra, error.name or "") from error
    program = _program(obj)
    lessons = Plan() if plan is None else plan if isinstance(plan, Plan) else load_plan(plan)
    lessons.make_for(program)
    if plan_scope is not None:
        if not isinstance(plan_scope, str) or not plan_scope:
            raise ConfigurationError(
                f"plan_scope={plan_scope!r} names no scope.",
                "Give a text that tells tenants apart, such as plan_scope=str(tenant_id), or leave it out.",
            )
        lessons = _scopes.setdefault((plan_scope, program), lessons)
        lessons.scope = plan_scope
    elif plan is None:
        lessons.pace.join(alike := _alone.setdefault(program, Alike()))
        if lessons.pace.never and not alike.told:
            alike.told = True
            log.warning(
                "%s: it is accelerated for each request, as it seems, and each object learns by itself, but runs too "
                "seldom to gain: the next ones run as without Accel. Remedy: accelerate it once, or with "
                "plan_scope=..., by which all objects of a scope share what they learn",
                kind_of(obj),
            )
    return adapter.accelerate_object(obj, settings, lessons, nodes)  # type: ignore[no-any-return]


def _names(pure_nodes: Any) -> tuple[str, ...]:
    remedy = "Give a list of the names of nodes, such as pure_nodes=['score']."
    if isinstance(pure_nodes, str):
        raise ConfigurationError(
            f"pure_nodes={pure_nodes!r} is a text, not a list.", f"Write pure_nodes=[{pure_nodes!r}]."
        )
    try:
        names = tuple(pure_nodes)
    except TypeError:
        raise ConfigurationError(f"pure_nodes={pure_nodes!r} is not a list.", remedy) from None
    for name in names:
        if not isinstance(name, str):
            raise ConfigurationError(f"pure_nodes has a {kind_of(name)} among its names.", remedy)
    return names


def _framework_of(obj: object) -> Framework:
    known = frameworks()
    if not known:
        raise ConfigurationError(
            "Accel can be imported, but isn't installed: its adapters are found by what an installation records.",
            "pip install accelgraph with the extra of your framework, or in a checkout pip install -e .",
        )
    for framework in known:
        if framework.makes(obj):
            return framework
    takes = ", or ".join(framework.takes for framework in known)
    missing = " or ".join(f"'accelgraph[{framework.extra}]'" for framework in known if not framework.is_installed)
    remedy = next((advice for framework in known if (advice := framework.advice(obj))), None) or (
        f"For their support: pip install {missing}"
        if missing
        else "Give it the object that your program calls: a compiled graph, a chain, or a query engine, say."
    )
    raise WrongObject(f"accelerate() takes {takes}, not {kind_of(obj)}.", remedy)


def _program(obj: Any) -> Identity:
    """Objects of one scope share a plan only for the same program."""
    cls, nodes = obj if isinstance(obj, type) else type(obj), getattr(obj, "nodes", None)
    names = map(str, nodes) if isinstance(nodes, Mapping) else ()
    return Identity(cls.__qualname__, frozenset(name for name in names if not name.startswith("__")))


def settle(timeout_s: float = 30.0) -> bool:
    """Wait until everything that happened so far has been followed and learnt; False if that takes longer than
    `timeout_s` seconds (default: 30). Programs need not call it: tests and measurements do. With a tenth of a second it
    tells whether a report would wait."""
    return followed(timeout_s) and learner.settle(timeout_s)


def uninstall() -> None:
    """Restore every class Accel has patched. Accelerated objects go on working as without Accel, until
    something is accelerated again."""
    patches.uninstall()
