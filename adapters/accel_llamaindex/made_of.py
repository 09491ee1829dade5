"""What an accelerated object is made of: the retrievers, postprocessors, synthesizers and transformations that it
refers to, by name. They are the framework nodes of its runs.

What an object holds is named by the way to it, what is made while it runs by its class. The parts of a query engine
that holds nothing else run one after the other; of all others only what they did in earlier runs tells when they run.
Of what a router chooses from, nobody knows before whether it runs, whichever way earlier runs went.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from llama_index.core import StorageContext
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.callbacks import CallbackManager
from llama_index.core.extractors import BaseExtractor
from llama_index.core.node_parser import NodeParser
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine, SubQuestionQueryEngine
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index.core.retrievers import RouterRetriever
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from accel.graph.topology import END, START, Topology
from accel.text.objects import attributes, is_a

KINDS = (BaseRetriever, BaseNodePostprocessor, BaseSynthesizer, BaseExtractor, NodeParser)
MAX_OBJECTS = 2_000
MAX_DEPTH = 10
MAX_MADE = 64
"""Names of parts that are made while a program runs."""
CHOICES: dict[type, str] = {
    RouterQueryEngine: "_query_engines",
    SubQuestionQueryEngine: "_query_engines",
    RouterRetriever: "_retrievers",
}
"""Who chooses, and the field with what there is to choose from."""
_CONTAINERS = (dict, list, tuple)


class Parts:
    """Of one accelerated object."""

    def __init__(self, obj: Any) -> None:
        self._held: dict[int, tuple[Any, str]] = {}
        self._made: dict[str, None] = {}
        self._chosen: dict[str, str] = {}
        """By name of a part: the way to what is chosen with it, empty where nobody chooses."""
        self._groups: list[list[str]] = []
        self._topology: Topology | None = None
        for way, root in _in_order(obj):
            self._groups.append(self._hold(way, root))

    def are_of(self, obj: Any) -> bool:
        """Whether another object has these very parts: a copy that is not deep."""
        return self._held.keys() == Parts(obj)._held.keys()

    def _hold(self, way: str, root: Any) -> list[str]:
        """The part there, if it is one, and those that it holds."""
        names: list[str] = []
        for name, part, chosen in _parts(way, root):
            if id(part) not in self._held:
                self._held[id(part)] = (part, name)
                self._chosen[name] = chosen
                names.append(name)
        return names

    def name(self, part: Any) -> str:
        """Empty where a run makes too many of its own."""
        held = self._held.get(id(part))
        if held is not None and held[0] is part:
            return held[1]
        name = type(part).__name__
        if name not in self._made:
            if len(self._made) >= MAX_MADE:
                return ""
            self._made[name] = None
            self._topology = None
        return name

    @property
    def topology(self) -> Topology:
        """Where control may go. All parts may run: whether they do, runs tell, or who chooses."""
        if self._topology is None:
            self._topology = self._drawn()
        return self._topology

    @property
    def chosen(self) -> frozenset[str]:
        """The parts that run only if somebody chooses them."""
        return frozenset(name for name, chosen in self._chosen.items() if chosen)

    def _drawn(self) -> Topology:
        made = list(self._made)
        groups = [[*group, *made] for group in self._groups if group] or [made]
        successors: dict[str, frozenset[str]] = {START: frozenset(groups[0]) or frozenset((END,))}
        always = {START: self._unchosen(groups[0])}
        for group, after in zip(groups, [*groups[1:], [END]], strict=True):
            for number, name in enumerate(group):
                successors[name] = successors.get(name, frozenset()) | frozenset(group) | frozenset(after)
                with_it = self._chosen_with(name, group[number + 1 :])
                always[name] = always.get(name, frozenset()) | self._unchosen(after) | with_it
        return Topology(successors, always)

    def _unchosen(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(name for name in names if not self._chosen.get(name)) - {END}

    def _chosen_with(self, name: str, others: Iterable[str]) -> frozenset[str]:
        """Which of these were chosen with a part."""
        chosen = self._chosen.get(name)
        return frozenset(other for other in others if chosen and self._chosen.get(other) == chosen)


def _in_order(obj: Any) -> Iterator[tuple[str, Any]]:
    """What runs one after the other, with names."""
    if not is_a(obj, RetrieverQueryEngine):
        yield "", obj
        return
    yield "retriever", obj._retriever
    for number, postprocessor in enumerate(obj._node_postprocessors):
        yield f"postprocessor {number + 1}", postprocessor
    yield "synthesizer", obj._response_synthesizer


def _parts(way: str, root: Any) -> Iterator[tuple[str, Any, str]]:
    """The nearest first, by the way to each, and the way to what is chosen with it. What they work with (models,
    stores, documents) holds none."""
    seen: dict[int, Any] = {}
    choices: set[int] = set()
    coming: deque[tuple[str, Any, int, str]] = deque([(way, root, 0, "")])
    while coming and len(seen) < MAX_OBJECTS:
        at, value, depth, chosen = coming.popleft()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if at and is_a(value, KINDS):
            yield at, value, chosen
        choices.update(_choices(value))
        if depth < MAX_DEPTH:
            for name, inner in _fields(value):
                if is_a(inner, _CONTAINERS) or _is_opened(type(inner)):
                    where = f"{at}.{name}" if at else name
                    coming.append((where, inner, depth + 1, where if id(value) in choices else chosen))


def _choices(value: Any) -> Iterator[int]:
    """The ids of the lists and dicts from which this object chooses: where there is one thing, there is no choice."""
    for cls, name in CHOICES.items():
        held = getattr(value, name, ()) if is_a(value, cls) else ()
        if len(held) > 1:
            yield id(held)


_CLOSED = (
    BaseLLM,
    BaseEmbedding,
    BasePydanticVectorStore,
    BaseNode,
    BasePromptTemplate,
    CallbackManager,
    StorageContext,
)
"""What parts work with, and say."""


def _is_opened(cls: type) -> bool:
    ours = any(base.__module__.startswith(("llama_index.", "workflows.")) for base in cls.__mro__)
    return ours and not issubclass(cls, _CLOSED)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    if is_a(value, dict):
        yield from ((str(key), inner) for key, inner in list(value.items()))
    elif is_a(value, list | tuple):
        yield from ((str(number + 1), inner) for number, inner in enumerate(value))
    else:
        yield from ((name.strip("_"), inner) for name, inner in attributes(value).items())
