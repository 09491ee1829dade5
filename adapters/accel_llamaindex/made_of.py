"""What an accelerated object is made of: the retrievers, postprocessors, synthesizers and transformations that it
refers to, by name. They are the framework nodes of its runs.

What an object holds is named by the way to it, what is made while it runs by its class. The parts of a query engine
that holds nothing else run one after the other; of all others only what they did in earlier runs tells when they run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
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
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from accel.graph.topology import END, START, Topology

KINDS = (BaseRetriever, BaseNodePostprocessor, BaseSynthesizer, BaseExtractor, NodeParser)
MAX_OBJECTS = 2_000
MAX_DEPTH = 10
MAX_MADE = 64
"""Names of parts that are made while a program runs."""
_CONTAINERS = (dict, list, tuple)


class Parts:
    """Of one accelerated object."""

    def __init__(self, obj: Any) -> None:
        self._held: dict[int, tuple[Any, str]] = {}
        self._made: dict[str, None] = {}
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
        for name, part in _parts(way, root):
            if id(part) not in self._held:
                self._held[id(part)] = (part, name)
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
        """Where control may go. All parts may run: whether they do, runs tell."""
        if self._topology is None:
            self._topology = self._drawn()
        return self._topology

    def _drawn(self) -> Topology:
        made = list(self._made)
        groups = [[*group, *made] for group in self._groups if group] or [made]
        successors: dict[str, frozenset[str]] = {START: frozenset(groups[0]) or frozenset((END,))}
        always = {START: frozenset(groups[0])}
        for group, after in zip(groups, [*groups[1:], [END]], strict=True):
            for name in group:
                successors[name] = successors.get(name, frozenset()) | frozenset(group) | frozenset(after)
                always[name] = always.get(name, frozenset()) | (frozenset(after) - {END})
        return Topology(successors, always)


def _in_order(obj: Any) -> Iterator[tuple[str, Any]]:
    """What runs one after the other, with names."""
    if not isinstance(obj, RetrieverQueryEngine):
        yield "", obj
        return
    yield "retriever", obj._retriever
    for number, postprocessor in enumerate(obj._node_postprocessors):
        yield f"postprocessor {number + 1}", postprocessor
    yield "synthesizer", obj._response_synthesizer


def _parts(way: str, root: Any) -> Iterator[tuple[str, Any]]:
    """The nearest first, by the way to each. What they work with (models, stores, documents) holds none."""
    seen: dict[int, Any] = {}
    coming: deque[tuple[str, Any, int]] = deque([(way, root, 0)])
    while coming and len(seen) < MAX_OBJECTS:
        at, value, depth = coming.popleft()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if at and isinstance(value, KINDS):
            yield at, value
        if depth < MAX_DEPTH:
            for name, inner in _fields(value):
                if isinstance(inner, _CONTAINERS) or _is_opened(type(inner)):
                    coming.append((f"{at}.{name}" if at else name, inner, depth + 1))


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
    if isinstance(value, dict):
        yield from ((str(key), inner) for key, inner in list(value.items()))
    elif isinstance(value, list | tuple):
        yield from ((str(number + 1), inner) for number, inner in enumerate(value))
    else:
        private = getattr(value, "__pydantic_private__", None) or {}
        for name, inner in [*getattr(value, "__dict__", {}).items(), *private.items()]:
            yield name.strip("_"), inner
