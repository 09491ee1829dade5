"""What users call: `accelerate`, `pure`, `uninstall`, `settle`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, TypeVar

from .errors import ConfigurationError, MissingExtra
from .frameworks import frameworks
from .parts import patches
from .process.threads import learner
from .run.plan import Plan
from .run.run import followed
from .run.saved import load
from .run.settings import Budget, Settings

T = TypeVar("T")

_SPECULATE = ("auto", "certain", "likely", "off")
_EGRESS = ("known", "inputs")
_scopes: dict[tuple[str, str], Plan] = {}


def accelerate(
    obj: T,
    *,
    speculate: str = "auto",
    egress: str = "known",
    pure_nodes: Iterable[str] = (),
    plan: Plan | str | None = None,
    plan_scope: str | None = None,
    budget: Budget | None = None,
) -> T:
    """The same kind of object, with the same results, sooner.

    `obj`: a compiled LangGraph graph, an `@entrypoint`, a chain of LangChain's runnables, or a query engine, retriever,
    response synthesizer, chat engine, evaluator, ingestion pipeline, index, workflow or agent of LlamaIndex; it is not
    changed. Of an index also the class, whose instances are then built faster.
    `speculate`: "certain" issues only what every run so far demanded and the graph's shape makes sure of, or a value of
    this run has decided (a router's answer, as two runs have shown); "auto" also what may be in vain (the branch
    that runs mostly take), if by its chance it saves more than it wastes, while all waste stays below the budget's;
    "likely" what at least half of the runs went on to, whatever is wasted; "off" only records. `egress`: "known" sends
    a value early to a remote endpoint only if that endpoint has it already, "inputs" lifts that.
    `plan`: a plan of an earlier object, or the path of a saved one. `plan_scope`: objects of one scope share what they
    learn (for tenants: one scope each), if their class and the names of their nodes are the same; the first of them may
    bring a `plan`.

    Raises TypeError for anything else, naming what is accepted; ConfigurationError for unknown options.
    """
    if speculate not in _SPECULATE:
        raise ConfigurationError(f"speculate={speculate!r} is not known.", f"Use one of {', '.join(_SPECULATE)}.")
    if egress not in _EGRESS:
        raise ConfigurationError(f"egress={egress!r} is not known.", f"Use one of {', '.join(_EGRESS)}.")
    framework = next((framework for framework in frameworks() if framework.makes(obj)), None)
    if framework is None:
        takes = ", or ".join(framework.takes for framework in frameworks())
        install = " or ".join(f"'accelgraph[{framework.extra}]'" for framework in frameworks())
        given = f"{type(obj).__name__}: {_short(obj)}"
        raise TypeError(f"accelerate() takes {takes}, not {given}. For their support: pip install {install}")
    try:
        adapter = import_module(framework.adapter)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"accelerate() for {framework.name}", framework.extra, error.name or "") from error
    if isinstance(plan, str):
        plan = load(plan)
    if plan_scope is not None:
        plan = _scopes.setdefault((plan_scope, _program(obj)), plan or Plan())
    settings = Settings(speculate, egress, budget or Budget())
    return adapter.accelerate_object(obj, settings, plan, tuple(pure_nodes))  # type: ignore[no-any-return]


def _program(obj: Any) -> str:
    """Which program an object is: its type and nodes. Objects of one scope share a plan only for the same program."""
    return f"{type(obj).__qualname__}:{','.join(sorted(getattr(obj, 'nodes', ())))}"


def _short(obj: object) -> str:
    text = repr(obj)
    return text if len(text) <= 60 else text[:57] + "..."


def settle(timeout_s: float = 30.0) -> bool:
    """Wait until everything that happened so far has been followed and learnt; False if that takes longer."""
    return followed(timeout_s) and learner.settle(timeout_s)


def uninstall() -> None:
    """Restore every class Accel has patched. Accelerated objects go on working, without acceleration."""
    patches.uninstall()
