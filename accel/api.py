"""What users call: `accelerate`, `pure`, `uninstall`, `settle`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from . import intercept
from .errors import ConfigurationError, MissingExtra
from .learn.plan import Plan
from .run import gone as gone  # what is left behind is known from the first run on
from .run.settings import Budget, Settings
from .run.threads import issuer, learner

T = TypeVar("T")

_SPECULATE = ("certain", "likely", "off")
_EGRESS = ("known", "inputs")
_scopes: dict[tuple[str, str], Plan] = {}


def accelerate(
    obj: T,
    *,
    speculate: str = "certain",
    egress: str = "known",
    pure_nodes: Iterable[str] = (),
    plan: Plan | str | None = None,
    plan_scope: str | None = None,
    budget: Budget | None = None,
) -> T:
    """The same kind of object, with the same results, sooner.

    `obj`: a compiled LangGraph graph, an `@entrypoint`, a chain of LangChain's runnables, or a query engine, retriever,
    ingestion pipeline or vector store index of LlamaIndex; it is not changed. Of a vector store index also the class,
    whose instances are then built faster.
    `speculate`: "certain" issues only what every run so far demanded and the graph's shape makes sure of, or a value of
    this run has decided (a router's answer, as two runs have shown); "likely" also what at least half of the runs did;
    "off" only records. `egress`: "known" sends a value early to a remote endpoint only if that
    endpoint has it already, "inputs" lifts that.
    `plan`: a plan of an earlier object, or the path of a saved one. `plan_scope`: objects of one scope share what they
    learn (for tenants: one scope each), if their class and the names of their nodes are the same; the first of them may
    bring a `plan`.

    Raises TypeError for anything else, naming what is accepted; ConfigurationError for unknown options.
    """
    if speculate not in _SPECULATE:
        raise ConfigurationError(f"speculate={speculate!r} is not known.", f"Use one of {', '.join(_SPECULATE)}.")
    if egress not in _EGRESS:
        raise ConfigurationError(f"egress={egress!r} is not known.", f"Use one of {', '.join(_EGRESS)}.")
    framework = _framework_of(obj)
    if framework is None:
        raise TypeError(
            "accelerate() takes a compiled LangGraph graph (StateGraph(...).compile()), a LangChain chain, or one of "
            "LlamaIndex's query engines, retrievers, ingestion pipelines and vector store indexes, not "
            f"{type(obj).__name__}: {_short(obj)}. For their support: pip install 'accelgraph[langgraph]' or "
            "'accelgraph[llamaindex]'"
        )
    try:
        adapter = import_module(framework.adapter)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"accelerate() for {framework.name}", framework.extra, error.name or "") from error
    if isinstance(plan, str):
        from .learn.saved import load

        plan = load(plan)
    if plan_scope is not None:
        plan = _scopes.setdefault((plan_scope, _program(obj)), plan or Plan())
    settings = Settings(speculate, egress, budget or Budget())
    return adapter.accelerate_object(obj, settings, plan, tuple(pure_nodes))  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class _Framework:
    """`kinds`: the classes of objects it makes, by module; those not imported yet have no objects."""

    name: str
    extra: str
    adapter: str
    components: str
    kinds: tuple[tuple[str, str], ...]


_FRAMEWORKS = (
    _Framework(
        "LangGraph",
        "langgraph",
        "accel_langgraph.graph",
        "accel_langgraph.components",
        (("langgraph.pregel", "Pregel"), ("langchain_core.runnables", "Runnable")),
    ),
    _Framework(
        "LlamaIndex",
        "llamaindex",
        "accel_llamaindex.accelerated",
        "accel_llamaindex.components",
        (
            ("llama_index.core.base.base_query_engine", "BaseQueryEngine"),
            ("llama_index.core.base.base_retriever", "BaseRetriever"),
            ("llama_index.core.ingestion.pipeline", "IngestionPipeline"),
            ("llama_index.core.indices.vector_store.base", "VectorStoreIndex"),
        ),
    ),
)


def _framework_of(obj: object) -> _Framework | None:
    for framework in _FRAMEWORKS:
        for module, name in framework.kinds:
            kind = getattr(sys.modules.get(module), name, None)
            if kind is not None and (isinstance(obj, kind) or (isinstance(obj, type) and issubclass(obj, kind))):
                return framework
    return None


def _program(obj: Any) -> str:
    """Which program an object is: its type and nodes. Objects of one scope share a plan only for the same program."""
    return f"{type(obj).__qualname__}:{','.join(sorted(getattr(obj, 'nodes', ())))}"


def _short(obj: object) -> str:
    text = repr(obj)
    return text if len(text) <= 60 else text[:57] + "..."


def settle(timeout_s: float = 30.0) -> bool:
    """Wait until everything that happened so far has been followed and learnt; False if that takes longer."""
    return issuer.settle(timeout_s) and learner.settle(timeout_s)


def uninstall() -> None:
    """Restore every class Accel has patched. Accelerated objects go on working, without acceleration."""
    intercept.uninstall()
    for framework in _FRAMEWORKS:
        components = sys.modules.get(framework.components)
        if components is not None:
            components.forget_classes()
