"""Documents that a pipeline splits and embeds: what has been split is embedded while the rest is being split.

Each document goes through LlamaIndex's own splitter by itself, and what will be embedded of its parts follows from it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import NodeParser, SentenceSplitter, TokenTextSplitter
from llama_index.core.schema import BaseNode, Document, MetadataMode, TextNode

from accel.parts.methods import patches
from accel.run.issued.announced import Announced
from accel.run.scope import scope
from accel.trace.ambient import FRAMEWORK_VARS

SPLITTERS = (SentenceSplitter, TokenTextSplitter)
"""Exactly these: a subclass may do something else with its parts."""
Announce = Callable[[BaseEmbedding, Sequence[str], bool, int, Announced | None], Announced | None]
"""That a model is going to embed these texts, after those that were announced before (`parts`)."""


class Splitting:
    """Of documents, by one of `SPLITTERS`."""

    def __init__(self, splitter: Any, documents: Sequence[BaseNode], model: BaseEmbedding, announce: Announce) -> None:
        self._documents = deque(documents)
        self._with_metadata = splitter.include_metadata
        self._model = model
        self._announce = announce
        self._loop: Announced | None = None
        self._texts: list[str] = []

    def came(self, text: str, parts: Sequence[str]) -> None:
        """The next document's text was split so. Batches that are full are announced; the last one is when the model is
        asked."""
        document: Any = self._documents.popleft() if self._documents else None
        if type(document) not in (Document, TextNode) or document.source_node is not None:  # which says more
            self._documents.clear()
        elif document.get_content(metadata_mode=MetadataMode.NONE) == text:
            self._texts += [self._embedded(document, part) for part in parts]
            size = self._model.embed_batch_size
            full = len(self._texts) // size * size
            if full:
                self._loop = self._announce(self._model, self._texts[:full], False, 0, self._loop)
                del self._texts[:full]
        else:
            self._documents.clear()

    def _embedded(self, document: Any, part: str) -> str:
        """As LlamaIndex makes nodes of parts, which it embeds with the document's metadata."""
        node = TextNode(
            text=part,
            metadata=dict(document.metadata) if self._with_metadata else {},
            excluded_embed_metadata_keys=document.excluded_embed_metadata_keys,
            metadata_seperator=document.metadata_separator,
            metadata_template=document.metadata_template,
            text_template=document.text_template,
        )
        return node.get_content(metadata_mode=MetadataMode.EMBED)


_going_on: ContextVar[Splitting | None] = ContextVar("accel_llamaindex_splitting", default=None)
FRAMEWORK_VARS.add(_going_on)


def watch_splitters(announce: Announce, host_of: Callable[[Any], Any]) -> None:
    """Have pipelines embed what they have split. `host_of`: a run's accelerated object. Idempotent."""

    def parse(wrapped: Any, splitter: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        model = _embeds_next(splitter, host_of)
        if model is None:
            return wrapped(*args, **kwargs)
        documents = args[0] if args else kwargs["documents"]
        token = _going_on.set(Splitting(splitter, documents, model, announce))
        try:
            return wrapped(*args, **kwargs)
        finally:
            _going_on.reset(token)

    patches.wrap(NodeParser, "get_nodes_from_documents", parse)
    for cls in SPLITTERS:
        patches.wrap(cls, "split_text_metadata_aware", _split)


def _split(wrapped: Any, splitter: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    parts = wrapped(*args, **kwargs)
    going = _going_on.get()
    if going is not None:
        going.came(args[0] if args else kwargs["text"], parts)
    return parts


def _embeds_next(splitter: Any, host_of: Callable[[Any], Any]) -> BaseEmbedding | None:
    """The model that a pipeline runs next on what this splitter makes, if it may be called before it is used. (Within a
    splitter that has ever failed nothing is announced.)"""
    here = scope.get()
    if type(splitter) not in SPLITTERS or here is None or here.early or here.visit is None:
        return None
    main = host_of(here.run)
    if not isinstance(main, IngestionPipeline):
        return None
    steps = main.transformations
    places = [number for number, step in enumerate(steps[:-1]) if step is splitter]
    model = steps[places[0] + 1] if len(places) == 1 else None
    return model if isinstance(model, BaseEmbedding) and here.run.bindings.trusts(model) else None
