"""The parts of a query engine (retriever, postprocessors, synthesizer) tell their run when they start and end.

They are the framework nodes of a run: what enters and leaves them is known to the learner, and nothing is issued past
one that ever raised. LlamaIndex's template methods are wrapped once, for the whole process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager
from llama_index.core.extractors import BaseExtractor
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.node_parser import NodeParser
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index.core.schema import BaseNode, MetadataMode, Node, TextNode
from llama_index_instrumentation.dispatcher import Dispatcher

from accel.parts.methods import patches
from accel.parts.methods.methods import METHODS, read_call
from accel.parts.methods.patches import has_leaf
from accel.process.coroutines import around
from accel.run.issued.announced import Announced, announce
from accel.run.issued.nested import tells
from accel.run.run import Run
from accel.run.scope import Scope, scope
from accel.run.settings import Host
from accel.trace.record import Visit

from .components import holds
from .made_of import Parts
from .splitting import watch_splitters


@dataclass(slots=True)
class LlamaHost(Host):
    parts: Parts | None = None
    """What the object is made of."""
    main: Any = None
    """The object itself."""


_WATCHED = (
    (BaseRetriever, "retrieve", "aretrieve"),
    (BaseNodePostprocessor, "postprocess_nodes", "apostprocess_nodes"),
    (BaseExtractor, "__call__", "acall"),
    (NodeParser, "__call__", "acall"),
    (BaseSynthesizer, "synthesize", "asynthesize"),
)


_LAST = (BaseSynthesizer, "asynthesize")
"""What `watch` wraps last."""


def _texts_of(nodes: Sequence[Any]) -> list[str]:
    """What will be embedded of nodes of LlamaIndex's own classes; nothing if others are among them."""
    if any(type(node).__module__ != BaseNode.__module__ for node in nodes):
        return []
    texts = [node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes if node.embedding is None]
    return [text for text in texts if text]


def _announce_embeddings(
    model: BaseEmbedding, texts: Sequence[str], asynchronous: bool, first: int = 0, loop: Announced | None = None
) -> Announced | None:
    """The program is going to embed these, in batches of the model's size. `first`: batches that it sends at once;
    `loop`: what has been announced of it before."""
    here = scope.get()
    if here is None or here.early or here.call is not None or holds(model):
        return loop
    size = model.embed_batch_size
    batches = [list(texts[at : at + size]) for at in range(first * size, len(texts), size)]
    prefix = "_a" if asynchronous else "_"
    if has_leaf(model, f"{prefix}get_text_embeddings"):
        method = METHODS["text_embeddings", f"{prefix}get_text_embeddings"]
        inputs = [read_call(model, (batch,), {}) for batch in batches]
    elif has_leaf(model, f"{prefix}get_text_embedding"):
        method = METHODS["text_embedding", f"{prefix}get_text_embedding"]
        inputs = [read_call(model, (text,), {}) for batch in batches for text in batch]
    else:
        return loop
    if loop is None:
        return announce(here.run, here, model, method, inputs)
    loop.add(inputs)
    return loop


def _embedding_batches(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    texts = args[0] if args else kwargs.get("texts", ())
    _announce_embeddings(instance, texts, asynchronous=False, first=1)
    return wrapped(*args, **kwargs)


def _indexing(asynchronous: bool) -> Callable[..., Any]:
    def wrapper(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Nodes are embedded and inserted in parts: the next ones are embedded while these are inserted."""
        nodes = args[0] if args else kwargs.get("nodes", ())
        size = instance._insert_batch_size
        if scope.get() is not None:
            parts = [_texts_of(nodes[at : at + size]) for at in range(0, len(nodes), size)]
            for number, texts in enumerate(parts):
                _announce_embeddings(instance._embed_model, texts, asynchronous, first=0 if number else 1)
        return wrapped(*args, **kwargs)

    return wrapper


_SPLITTING = ("repack", "truncate")
"""How a synthesizer cuts what it was given into texts that fit into prompts (`PromptHelper`)."""


_LISTENED = (
    (Dispatcher, ("span_enter", "event")),
    (CallbackManager, ("start_trace", "on_event_start")),
)
"""Methods that tell of the program, whoever listens; fifty calls of them in one query. `Dispatcher.aevent` is one
more."""


def watch() -> None:
    """Have the parts of query engines tell their run when they start and end, what was found, and how texts were
    cut. Idempotent."""
    if patches.is_wrapped(*_LAST):
        return
    wrappers: list[tuple[type, str, Any]] = [(PromptHelper, name, _tell_cut) for name in _SPLITTING]
    for owner, names in _LISTENED:
        for name in names:
            patches.put(owner, name, _telling(vars(owner)[name]))
    for kind in (Node, TextNode):
        patches.put(kind, "get_content", _reading(vars(kind)["get_content"]))
    wrappers += [
        (Dispatcher, "aevent", _atelling),
        (BaseEmbedding, "get_text_embedding_batch", _embedding_batches),
        (VectorStoreIndex, "build_index_from_nodes", _indexing(asynchronous=False)),
        (VectorStoreIndex, "insert_nodes", _indexing(asynchronous=False)),
        (VectorStoreIndex, "ainsert_nodes", _indexing(asynchronous=True)),
    ]
    for part, name, asynchronous in _WATCHED:
        wrappers += [(part, name, _tell)] if name in vars(part) else []
        wrappers += [(part, asynchronous, _atell)] if asynchronous in vars(part) else []
    assert wrappers[-1][:2] == _LAST
    watch_splitters(_announce_embeddings, _main_of)
    for cls, method, wrapper in wrappers:
        patches.wrap(cls, method, wrapper)


def _main_of(run: Run) -> Any:
    return run.host.main if isinstance(run.host, LlamaHost) else None


_TELLS = "tells LlamaIndex's instrumentation of itself"


def _telling(function: Callable[..., Any]) -> Callable[..., Any]:
    """Spans, events and callbacks, whoever listens. A plain function, because all programs of the process go through
    it."""

    @wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        if scope.get() is not None:
            tells(_TELLS)
        return function(*args, **kwargs)

    return told


def _atelling(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tells(_TELLS)
    return wrapped(*args, **kwargs)


def _part(instance: Any) -> tuple[Run, str] | None:
    """The run and the name of this part in it, if it is one."""
    here = scope.get()
    if here is None or here.early or here.call is not None or not isinstance(here.run.host, LlamaHost):
        return None
    host = here.run.host
    if host.parts is None or instance is host.main:
        return None
    name = host.parts.name(instance)
    return (here.run, name) if name and here.within != name else None


def _outer() -> Visit | None:
    here = scope.get()
    return here.visit if here is not None else None


def _given(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {**{str(number): value for number, value in enumerate(args)}, **kwargs}


def _tell(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    part = _part(instance)
    if part is None:
        result = wrapped(*args, **kwargs)
        _tell_found(instance, result)
        return result
    run, name = part
    visit = run.enter(name, _given(args, kwargs), outer=_outer())
    token = scope.set(Scope(run, visit))
    try:
        result = wrapped(*args, **kwargs)
    except BaseException as error:
        run.fail(visit, error)
        raise
    finally:
        scope.reset(token)
    run.leave(visit, _answer(result))
    return result


def _answer(result: Any) -> Any:
    """Without the sources of a response, which are what the synthesizer was given."""
    return {"response": result.response} if isinstance(result, Response) else result


def _tell_found(instance: Any, result: Any) -> None:
    """What a retriever brought that a graph's node, or the object itself, uses: what its documents say is known from
    here on."""
    here = scope.get()
    if here is None or here.early or here.call is not None or not isinstance(instance, BaseRetriever):
        return
    if not isinstance(here.run.host, LlamaHost):
        here.run.leave(here.run.enter(f"{here.within or 'main'}.retrieve", None), result)


def _reading(function: Callable[..., str]) -> Callable[..., str]:
    """However the program came by a document: its text is nobody's program."""

    @wraps(function)
    def read(*args: Any, **kwargs: Any) -> str:
        text = function(*args, **kwargs)
        here = scope.get()
        if here is not None and not here.early:
            here.run.trace.read(text)
        return text

    return read


def _tell_cut(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The texts that prompts are made of: where they begin and end nothing else tells. A text that stayed whole is
    known earlier by what it was made of."""
    result = wrapped(*args, **kwargs)
    here = scope.get()
    if here is not None and not here.early and here.call is None and len(result) > 1:
        here.run.leave(here.run.enter(f"{here.within}.{wrapped.__name__}", None), result)
    return result


def _atell(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    part = _part(instance)
    if part is not None:
        return _atold(*part, wrapped, args, kwargs)
    coming = wrapped(*args, **kwargs)
    return around(_afound(instance, coming), coming) if isinstance(instance, BaseRetriever) else coming


async def _afound(instance: Any, coming: Awaitable[Any]) -> Any:
    result = await coming
    _tell_found(instance, result)
    return result


async def _atold(run: Run, name: str, wrapped: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    visit = run.enter(name, _given(args, kwargs), outer=_outer())
    token = scope.set(Scope(run, visit))
    try:
        result = await wrapped(*args, **kwargs)
    except BaseException as error:
        run.fail(visit, error)
        raise
    finally:
        scope.reset(token)
    run.leave(visit, _answer(result))
    return result
