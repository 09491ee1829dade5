"""Batches of queries: which objects have them, how many runs at once, and how queries and responses are written."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptMixin
from llama_index.core.schema import NodeWithScore, QueryBundle
from workflows.context.serializers import JsonSerializer

from accel.errors import ConfigurationError, kind_of
from accel.run.batches.journal import Serde
from accel.run.batches.many import Asked

from .kinds import QUERIED

_DATACLASSES: dict[str, Any] = {f"${cls.__name__}": cls for cls in (Response, PydanticResponse, QueryBundle)}
"""What LlamaIndex's own serializer doesn't know, by the key that marks it;"""
_FOUND = "$NodeWithScore"
"""and what it can't make again, as it forgets of what class the node is."""


def serde() -> Serde:
    """LlamaIndex's own, as workflows keep their state with it."""
    return Serde(_dumps, _loads)


def _dumps(value: Any) -> tuple[str, bytes]:
    return "json", JsonSerializer().serialize(_opened(value)).encode()


def _loads(written: tuple[str, bytes]) -> Any:
    return _closed(JsonSerializer().deserialize(written[1].decode()))


def _opened(value: Any) -> Any:
    name = f"${type(value).__name__}"
    if isinstance(value, NodeWithScore):
        return {_FOUND: [value.node, value.score]}
    cls = _DATACLASSES.get(name)
    if cls is not None and type(value) is cls:
        return {name: {each.name: _opened(getattr(value, each.name)) for each in dataclasses.fields(cls)}}
    if isinstance(value, dict):
        return {key: _opened(held) for key, held in value.items()}
    return [_opened(held) for held in value] if isinstance(value, list) else value


def _closed(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_closed(held) for held in tree]
    if not isinstance(tree, dict):
        return tree
    name, held = next(iter(tree.items()), ("", None))
    if name == _FOUND and isinstance(held, list):
        return NodeWithScore(node=held[0], score=held[1])
    if name in _DATACLASSES and isinstance(held, dict):
        return _DATACLASSES[name](**{key: _closed(field) for key, field in held.items()})
    return {key: _closed(each) for key, each in tree.items()}


def bounded(obj: Any, asked: Asked, asynchronous: bool) -> Asked:
    """With as many runs at once as may be. Raises ConfigurationError where one run changes what the next one finds.

    LlamaIndex takes the output parser out of a template while it fills it in, and puts it back: threads that do so at
    the same time would lose it.
    """
    if not isinstance(obj, QUERIED):
        raise ConfigurationError(
            f"A {kind_of(obj)} has no batches: a run of it may change what the next one does.",
            "Give a query engine, a retriever or a response synthesizer; or call it input by input.",
        )
    one = not asynchronous and any(map(_parses, _templates(obj)))
    return dataclasses.replace(asked, max_concurrency=1) if one else asked


def _templates(obj: Any) -> Iterator[BasePromptTemplate]:
    prompts = obj.get_prompts().values() if isinstance(obj, PromptMixin) else ()
    for prompt in prompts:
        yield from (prompt, *(held for held in _held(prompt)))


def _held(prompt: Any) -> Iterator[BasePromptTemplate]:
    """Those among which it selects."""
    inner = getattr(prompt, "default_template", None)
    for each in (inner, *(held for _, held in getattr(prompt, "conditionals", None) or ())):
        if isinstance(each, BasePromptTemplate):
            yield each
            yield from _held(each)


def _parses(prompt: BasePromptTemplate) -> bool:
    return getattr(prompt, "output_parser", None) is not None
