"""LlamaIndex's component families: which leaf methods they have, how their inputs and outputs are seen and rebuilt.

LlamaIndex wraps leaves into decorators that emit events and spans; the leaf below them is what is patched and run
early (`leaf_place`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import CellType, FunctionType
from typing import Any

import wrapt
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.llms.types import ChatResponse, CompletionResponse
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.tools import FunctionTool
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from accel.graph.rules import CACHE, GUARDED, LIMITER, Reason
from accel.parts.components import facts_of
from accel.parts.identities.looks import tells_only
from accel.parts.identities.own_code import is_the_programs
from accel.parts.listed.table import passes_on
from accel.parts.methods import patches
from accel.parts.methods.methods import Method, build_call, read_call
from accel.parts.methods.patches import Place, install
from accel.run.uses import aused, used
from accel.text.copies import copy_vectors
from accel.text.functions import add_functions
from accel.text.objects import field, is_a
from accel.text.values import Tree, snapshot, thaw

from . import views  # noqa: F401  how nodes, messages and queries are seen
from .computes import COMPUTES

# --- leaves below decorators ----------------------------------------------------------------------------------------

_CALLBACKS = frozenset(
    {
        "wrapped_llm_chat", "wrapped_async_llm_chat", "wrapped_llm_predict", "wrapped_async_llm_predict",
        "dummy_wrapper", "async_dummy_wrapper",
    }
)  # fmt: skip
"""Functions of `llama_index.core.llms.callbacks` that hold the decorated one in a cell called ``f``."""


class _InCell:
    def __init__(self, cell: CellType) -> None:
        self._cell = cell

    def get(self) -> Any:
        return self._cell.cell_contents

    def put(self, function: Any) -> None:
        self._cell.cell_contents = function


class _InSpan:
    def __init__(self, span: Any) -> None:
        self._span = span

    def get(self) -> Any:
        return self._span.__wrapped__

    def put(self, function: Any) -> None:
        self._span.__wrapped__ = function


def leaf_place(function: Any) -> Place | None:
    """Where the innermost of LlamaIndex's decorators keeps the leaf; None for an undecorated function."""
    place: Place | None = None
    while True:
        if isinstance(function, wrapt.FunctionWrapper):
            place = _InSpan(function)
        elif isinstance(function, FunctionType) and function.__code__.co_name in _CALLBACKS:
            place = _InCell((function.__closure__ or ())[function.__code__.co_freevars.index("f")])
        else:
            return place
        function = place.get()


# --- calls of language models ---------------------------------------------------------------------------------------


def _asking(name: str) -> dict[str, Any]:
    """How the calls of a method are seen that takes `name`, and whatever else a class of the program's does: each
    argument as it is given, as what a model does with one more is its own affair."""

    def read(component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
        more = dict(kwargs)
        tree = {name: snapshot(args[0] if args else more.pop(name), exact=True)}
        if not args:
            tree["by_name"] = True
        elif args[1:]:
            tree["args"] = snapshot(args[1:], exact=True)
        return {**tree, "kwargs": snapshot(more, exact=True)}

    def build(component: Any, tree: Tree) -> tuple[tuple[Any, ...], dict[str, Any]]:
        asked, more = thaw(tree[name]), thaw(tree["kwargs"])
        if "by_name" in tree:
            return (), {name: asked, **more}
        return (asked, *thaw(tree.get("args", ()))), more

    return {"read": read, "build": build}


def _view_chat(response: ChatResponse) -> Tree:
    message = response.message
    tree: dict[str, Tree] = {"content": message.content}
    if message.additional_kwargs:
        tree["additional_kwargs"] = snapshot(message.additional_kwargs)
    calls = [snapshot(block) for block in message.blocks if getattr(block, "block_type", "") == "tool_call"]
    return {**tree, "tool_calls": calls} if calls else tree


def _view_completion(response: CompletionResponse) -> Tree:
    return {"content": response.text}


def _last(chunks: list[Any]) -> Any:
    """Every chunk holds the answer up to there."""
    return chunks[-1].model_copy(update={"delta": None}) if chunks else None


def _delta(chunk: ChatResponse | CompletionResponse) -> str:
    return chunk.delta or ""


def _tokens(response: ChatResponse | CompletionResponse) -> tuple[Any, Any]:
    """Where LlamaIndex's token counters look first: usage in OpenAI's form."""
    counts = response.additional_kwargs
    if not ("prompt_tokens" in counts and "completion_tokens" in counts):
        counts = _held(response.raw, "usage")
    return _held(counts, "prompt_tokens"), _held(counts, "completion_tokens")


def _held(value: Any, name: str) -> Any:
    """What nobody has to be asked for: the program may never read it."""
    return value.get(name) if type(value) is dict else field(value, name)


def _llm(family: str, whole: str, streamed: str, **same: Any) -> Iterator[Method]:
    same |= {"family": family, "op": "decode", "merge": _last, "delta": _delta, "tokens": _tokens}
    same |= {"prefill": "accel_prefill", "aprefill": "accel_aprefill", "lend": copy.deepcopy}
    yield Method(name=whole, kind="sync", streamed=streamed, **same)
    yield Method(name=f"a{whole}", kind="async", streamed=f"a{streamed}", sync_name=whole, **same)
    yield Method(name=streamed, kind="stream", streamed=streamed, **same)
    yield Method(name=f"a{streamed}", kind="astream", streamed=f"a{streamed}", sync_name=streamed, opens=True, **same)


# --- the table ------------------------------------------------------------------------------------------------------


def _twins(name: str, asynchronous: str, **same: Any) -> Iterator[Method]:
    same = {"read": read_call, "build": build_call, "view": snapshot, **same}
    yield Method(name=name, kind="sync", **same)
    yield Method(name=asynchronous, kind="async", sync_name=name, **same)


def _unread(*_: Any) -> Tree:
    """Of a write it matters only that it is made."""
    return None


LANGUAGE_MODEL = (
    *_llm("llama_chat", "chat", "stream_chat", view=_view_chat, **_asking("messages")),
    *_llm("llama_completion", "complete", "stream_complete", view=_view_completion, **_asking("prompt")),
)
EMBEDDING = tuple(
    method
    for name in ("query_embedding", "text_embedding", "text_embeddings")
    for method in _twins(f"_get_{name}", f"_aget_{name}", family=name, op="embedding", copy=copy_vectors)
)
STORE = (
    *_twins("query", "aquery", family="store_query", op="searching", by_object=True, lend=copy.deepcopy),
    *(
        method
        for name, asynchronous in (
            ("add", "async_add"),
            ("delete", "adelete"),
            ("delete_nodes", "adelete_nodes"),
            ("clear", "aclear"),
        )
        for method in _twins(name, asynchronous, family="store_write", op="ingestion", by_object=True)
    ),
)
DOCUMENTS = (
    *_twins("get_nodes", "aget_nodes", family="documents", op="searching", by_object=True, lend=copy.deepcopy),
    *(
        method
        for name, asynchronous in (
            ("add_documents", "async_add_documents"),
            ("delete_document", "adelete_document"),
            ("delete_ref_doc", "adelete_ref_doc"),
        )
        for method in _twins(
            name, asynchronous, family="documents_write", op="ingestion", by_object=True, read=_unread, view=_unread
        )
    ),
)
"""Look-ups, by which what a search found is known where the store of vectors keeps no texts."""
RETRIEVER = tuple(
    _twins("_retrieve", "_aretrieve", family="retrieve", op="searching", by_object=True, lend=copy.deepcopy)
)
RERANKER = tuple(_twins("_postprocess_nodes", "_apostprocess_nodes", family="postprocess", op="reranking"))

FAMILIES: tuple[tuple[type, tuple[Method, ...]], ...] = (
    (BaseLLM, LANGUAGE_MODEL),
    (BaseEmbedding, EMBEDDING),
    (BasePydanticVectorStore, STORE),
    (BaseDocumentStore, DOCUMENTS),
    (BaseRetriever, RETRIEVER),
    (BaseNodePostprocessor, RERANKER),
)
LISTED_FRAMEWORK_CLASSES: frozenset[type] = frozenset({SimpleVectorStore, KVDocumentStore})
"""Concrete classes inside llama_index.core that are components; its other classes are bases and composites."""

tells_only(CallbackManager, lambda manager: manager.handlers)
add_functions(COMPUTES)
_CLASSES = patches.Classes()


def install_all() -> None:
    """Patch every component class that exists now; classes defined later are found at the next run."""
    if not patches.enabled:
        return
    for method in DOCUMENTS:
        install(BaseDocumentStore, method)  # the look-ups, which all document stores have from there
    patches.wrap(FunctionTool, "call", used)
    patches.wrap(FunctionTool, "acall", aused)
    for base, methods in FAMILIES:
        for cls in _CLASSES.new(base):
            _CLASSES.note(cls)
            if _is_component_class(cls):
                passing = passes_on(cls)
                for method in methods:
                    if not (passing and patches.pass_on(cls, method.name)):
                        install(cls, method, leaf_place)


def _is_component_class(cls: type) -> bool:
    """Postprocessors change the nodes they are given: only classes that promise not to are components."""
    if issubclass(cls, BaseNodePostprocessor):
        return "__accel__" in cls.__dict__
    return not cls.__module__.startswith("llama_index.core.") or cls in LISTED_FRAMEWORK_CLASSES


def holds(component: Any) -> Reason | None:
    """Why LlamaIndex may answer a call of this component without calling it, stop it, or must slow it down."""
    manager = getattr(component, "__dict__", {}).get("callback_manager")
    guards = [type(each) for each in getattr(manager, "handlers", ()) if is_the_programs(type(each))]
    if guards:  # what it raises goes through
        return GUARDED(handler=guards[0].__name__, lifted="handlers of instrumentation events stop none")
    # Models of language have no such cache, and pydantic takes long to say that they have no such field.
    if not isinstance(component, BaseLLM) and getattr(component, "embeddings_cache", None) is not None:
        return CACHE()
    return LIMITER() if getattr(component, "rate_limiter", None) is not None else None


def is_component(value: Any) -> bool:
    if is_a(value, BaseNodePostprocessor):
        return bool(facts_of(value).pure)
    return is_a(value, BaseLLM | BaseEmbedding | BasePydanticVectorStore | BaseDocumentStore | BaseRetriever)
