"""LangChain's component families: which leaf methods they have, how their inputs and outputs are seen and rebuilt."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackManager, CallbackManager
from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings
from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseLanguageModel
from langchain_core.language_models.chat_models import BaseChatModel, SimpleChatModel, generate_from_stream
from langchain_core.language_models.llms import LLM, BaseLLM
from langchain_core.outputs import ChatGenerationChunk, ChatResult, LLMResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from accel.graph.rules import CACHE, LIMITER, Reason
from accel.parts.components import TOOL, said_of_class
from accel.parts.listed.table import listed
from accel.parts.methods import patches
from accel.parts.methods.methods import Inner, Method, arguments, build_call, no_view, read_call
from accel.parts.methods.patches import install
from accel.run.issued.nested import tells
from accel.run.scope import scope
from accel.run.waits.chunks import Aside
from accel.text.copies import copy_vectors
from accel.text.functions import add_functions
from accel.text.objects import is_a
from accel.text.values import Opaque, Tree, snapshot, thaw

from . import callers, stores, surroundings
from .computes import COMPUTES
from .function_tools import CONFIG, FUNCTION_TOOLS, is_of_function, takes
from .guards import guard_of
from .tool_calls import closed_calls
from .views import view_answer, view_messages

# --- arguments ------------------------------------------------------------------------------------------------------


class RecordingRunManager:
    """Stands in for the callback manager of an early call, whose run doesn't exist yet. A leaf that looks at it can't
    be run early: its events would be lost."""

    def __init__(self) -> None:
        self.looked_at = False

    def __getattr__(self, name: str) -> Any:
        self.looked_at = True
        raise AttributeError(f"an early call has no callback manager yet ({name})")


class TokenRunManager(RecordingRunManager):
    """Stands in for that of a chat model, which may tell of its tokens also where nobody streams (Ollama's client
    does). What it is told is said again to the real one: of a stream, with the chunk that it came with."""

    def __init__(self, asynchronous: bool) -> None:
        super().__init__()
        self._asynchronous = asynchronous
        self._said: list[Aside] = []

    def __getattr__(self, name: str) -> Any:
        if name != "on_llm_new_token":
            return super().__getattr__(name)
        return self._ahear if self._asynchronous else self._hear

    def _hear(self, *args: Any, **kwargs: Any) -> None:
        self._said.append(("on_llm_new_token", args, kwargs))

    async def _ahear(self, *args: Any, **kwargs: Any) -> None:
        self._hear(*args, **kwargs)

    def take(self) -> list[Aside]:
        """What was said since the last time."""
        said, self._said = self._said, []
        return said


def _own_kwargs(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in kwargs.items() if key != "run_manager"}


def _read_messages(component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
    named = arguments(("messages", "stop", "run_manager"), args, kwargs)
    named.pop("run_manager", None)
    messages, stop = named.pop("messages"), named.pop("stop", None)
    return {
        "messages": view_messages(messages, component),
        "stop": snapshot(stop),
        "kwargs": snapshot(named, exact=True),
    }


def _read_stream(component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
    """LangChain tells listeners of chunks itself, or gives the stream its callback manager to do so."""
    tree = _read_messages(component, args, kwargs)
    if len(args) > 2 and args[2] is not None:
        return {**tree, "managed": Opaque(args[2])}
    return tree if kwargs.get("run_manager") is None else {**tree, "managed": True}


def _build_messages(manager: Callable[[Tree], Any]) -> Callable[[Any, Tree], tuple[tuple[Any, ...], dict[str, Any]]]:
    def build(component: Any, tree: Tree) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kwargs = thaw(tree["kwargs"])
        if tree["stop"] is not None:
            kwargs["stop"] = list(tree["stop"])
        made = manager(tree)
        if made is not None:
            kwargs["run_manager"] = made
        return (thaw(tree["messages"]),), kwargs

    return build


def _read_prompts(component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
    named = _own_kwargs(arguments(("prompts", "stop", "run_manager"), args, kwargs))
    prompts, stop = named.pop("prompts"), named.pop("stop", None)
    return {"prompts": snapshot(prompts, exact=True), "stop": snapshot(stop), "kwargs": snapshot(named, exact=True)}


def _build_prompts(component: Any, tree: Tree) -> tuple[tuple[Any, ...], dict[str, Any]]:
    stop = None if tree["stop"] is None else list(tree["stop"])
    return (thaw(tree["prompts"]),), {**thaw(tree["kwargs"]), "stop": stop, "run_manager": RecordingRunManager()}


def _read_call(component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
    return read_call(component, args, _own_kwargs(kwargs))


def _build_managed(component: Any, tree: Tree) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, kwargs = build_call(component, tree)
    return args, {**kwargs, "run_manager": RecordingRunManager()}


def _read_tool(component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
    """LangChain gives its callback manager to those that ask for it."""
    own = {key: value for key, value in _own_kwargs(kwargs).items() if key != CONFIG or not is_of_function(component)}
    tree: dict[str, Tree] = read_call(component, args, own)
    return {**tree, "managed": True} if "run_manager" in kwargs else tree


def _build_tool(component: Any, tree: Tree) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, kwargs = _build_managed(component, tree) if "managed" in tree else build_call(component, tree)
    return args, {**kwargs, CONFIG: {}} if is_of_function(component) else kwargs


def _read_ranking(component: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
    """Callbacks are part of the input where somebody would hear them: being opaque, they keep the call from being made
    early. So does a tuple of documents, which a snapshot takes for a list."""
    named = arguments(("documents", "query", "callbacks"), args, kwargs)
    callbacks = named.pop("callbacks", None)
    tree: dict[str, Tree] = {
        name: Opaque(value) if type(value) is tuple else snapshot(value, exact=True) for name, value in named.items()
    }
    if callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks:
        tree["callbacks"] = Opaque(callbacks)
    return tree


def _build_ranking(component: Any, tree: Tree) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (), {name: thaw(value) for name, value in tree.items()}


# --- results --------------------------------------------------------------------------------------------------------


def _merge_chat(chunks: Iterable[ChatGenerationChunk]) -> ChatResult | None:
    held = list(chunks)
    return generate_from_stream(iter(held)) if held else None


def _chat_delta(chunk: ChatGenerationChunk) -> str:
    content = chunk.message.content
    return content if isinstance(content, str) else ""


def _chat_tokens(result: ChatResult) -> tuple[Any, Any]:
    usage = getattr(result.generations[0].message, "usage_metadata", None) if result.generations else None
    return (usage["input_tokens"], usage["output_tokens"]) if usage else (0, 0)


def _view_texts(result: LLMResult) -> Tree:
    return [[generation.text for generation in generations] for generations in result.generations]


def _text_tokens(result: LLMResult) -> tuple[Any, Any]:
    """As the clients of OpenAI's protocol tell."""
    usage = (result.llm_output or {}).get("token_usage") or {}
    return usage.get("prompt_tokens"), usage.get("completion_tokens")


def _lend_chat(result: ChatResult) -> ChatResult:
    """For another run of a batch: LangChain gives its message an id of that run."""
    lent = copy.deepcopy(result)
    for generation in lent.generations:
        generation.message.id = None
    return lent


# --- the table ------------------------------------------------------------------------------------------------------


def _twins(name: str, asynchronous: str, **same: Any) -> Iterator[Method]:
    yield Method(name=name, kind="sync", **same)
    yield Method(name=asynchronous, kind="async", sync_name=name, **same)


def _chat() -> Iterator[Method]:
    same: dict[str, Any] = {
        "family": "chat",
        "op": "decode",
        "view": view_answer,
        "merge": _merge_chat,
        "delta": _chat_delta,
        "calls": closed_calls,
        "tokens": _chat_tokens,
        "lend": _lend_chat,
        "relisted": True,
        "own": {"run_manager": None},
        "prefill": "accel_prefill",
        "aprefill": "accel_aprefill",
    }
    whole = {**same, "read": _read_messages}
    yield Method(name="_generate", kind="sync", streamed="_stream", build=_whole_builder(False), **whole)
    yield Method(
        name="_agenerate", kind="async", streamed="_astream", sync_name="_generate", build=_whole_builder(True), **whole
    )
    same["read"] = _read_stream
    yield Method(name="_stream", kind="stream", build=_stream_builder(False), streamed="_stream", **same)
    yield Method(
        name="_astream", kind="astream", build=_stream_builder(True), streamed="_astream", sync_name="_stream", **same
    )


def _whole_builder(asynchronous: bool) -> Callable[[Any, Tree], tuple[tuple[Any, ...], dict[str, Any]]]:
    return _build_messages(lambda tree: TokenRunManager(asynchronous))


def _stream_builder(asynchronous: bool) -> Callable[[Any, Tree], tuple[tuple[Any, ...], dict[str, Any]]]:
    return _build_messages(lambda tree: TokenRunManager(asynchronous) if "managed" in tree else None)


CHAT = tuple(_chat())
COMPLETION = tuple(
    _twins(
        "_call", "_acall", family="completion", op="decode", read=_read_call, build=_build_managed, view=snapshot,
        lend=copy.deepcopy,
    )
)  # fmt: skip
COMPLETIONS = tuple(
    _twins(
        "_generate", "_agenerate", family="completions", op="decode", read=_read_prompts, build=_build_prompts,
        view=_view_texts, tokens=_text_tokens, lend=copy.deepcopy,
    )
)  # fmt: skip
"""Of models that take several prompts at once."""
EMBEDDINGS = tuple(
    method
    for name in ("embed_query", "embed_documents")
    for method in _twins(
        name,
        f"a{name}",
        family=name,
        op="embedding",
        read=_read_call,
        build=build_call,
        view=no_view,
        copy=copy_vectors,
    )
)


def _own_embedder(store: Any, *leaves: str) -> Any:
    """What these methods of a store of ours begin with; None where a subclass may do otherwise."""
    ours = _definer(store, "accel_embedder")
    if ours is None or any(_definer(store, name) not in (ours, VectorStore) for name in leaves):
        return None
    return store.accel_embedder()


def _query_embedder(store: Any, *leaves: str) -> Any:
    """What embeds the query of these methods, as it is."""
    return store.embedding if type(store) is InMemoryVectorStore else _own_embedder(store, *leaves)


def _definer(component: Any, name: str) -> type | None:
    return next((base for base in type(component).__mro__ if name in base.__dict__), None)


def _embeds_query(name: str) -> Inner:
    paths = (("args", 0), ("kwargs", "query"))
    return Inner("embedding", "embed_query", paths, lambda store: _query_embedder(store, name, f"a{name}"))


SEARCHES = tuple(
    method
    for name in ("similarity_search", "similarity_search_with_score", "max_marginal_relevance_search")
    for method in _twins(
        name, f"a{name}", family=name, op="searching", read=_read_call, build=build_call, view=snapshot, by_object=True,
        inner=_embeds_query(name), lend=copy.deepcopy,
    )
)  # fmt: skip
_EMBEDS_TEXTS = Inner(
    "embedding",
    "embed_documents",
    (("args", 0), ("kwargs", "texts")),
    lambda store: _own_embedder(store, "add_texts", "aadd_texts"),
)
WRITES = tuple(
    method
    for name in ("add_texts", "add_documents", "delete")
    for method in _twins(
        name,
        f"a{name}",
        family="write",
        op="ingestion",
        read=_read_call,
        build=build_call,
        view=snapshot,
        by_object=True,
        inner=_EMBEDS_TEXTS if name == "add_texts" else None,
    )
)


def _retriever(family: str, **same: Any) -> tuple[Method, ...]:
    leaves = "_get_relevant_documents", "_aget_relevant_documents"
    return tuple(
        _twins(
            *leaves, family=family, op="searching", read=_read_call, build=_build_managed, view=snapshot,
            lend=copy.deepcopy, **same,
        )
    )  # fmt: skip


RETRIEVER = _retriever("retriever", by_object=True)
PUBLIC_RETRIEVER = _retriever("public_retriever")
"""A client of a public service is what its fields say: a program may change one between two searches."""
TOOLS = tuple(
    _twins(
        "_run", "_arun", family=TOOL, op="searching", read=_read_tool, build=_build_tool, view=snapshot, takes=takes,
        lend=copy.deepcopy,
    )
)  # fmt: skip
"""Of tools that only read, by listing or declaration; all others are no components. Also by their fields."""
RERANKER = tuple(
    _twins(
        "compress_documents", "acompress_documents", family="reranker", op="reranking", read=_read_ranking,
        build=_build_ranking, view=snapshot,
    )
)  # fmt: skip

FAMILIES: tuple[tuple[type, tuple[Method, ...]], ...] = (
    (BaseChatModel, CHAT),
    (LLM, COMPLETION),
    (BaseLLM, COMPLETIONS),
    (Embeddings, EMBEDDINGS),
    (VectorStore, (*SEARCHES, *WRITES)),
    (BaseRetriever, RETRIEVER),
    (BaseDocumentCompressor, RERANKER),
    (BaseTool, TOOLS),
)
LISTED_FRAMEWORK_CLASSES: frozenset[type] = frozenset({InMemoryVectorStore, *FUNCTION_TOOLS})
"""Concrete classes inside langchain_core that are components themselves; its other classes are bases and composites."""

add_functions(COMPUTES)
_CLASSES = patches.Classes()


def install_all() -> None:
    """Patch every component class that exists now; classes defined later are found at the next run."""
    if not patches.enabled:
        return
    if not patches.is_wrapped(AsyncCallbackManager, "configure"):
        callers.install()
        surroundings.install()
        for manager in (CallbackManager, AsyncCallbackManager):
            patches.put(manager, "configure", _telling(vars(manager)["configure"]))
    stores.install_all()
    for base, methods in FAMILIES:
        for cls in _CLASSES.new(base):
            if base is BaseTool and not _only_reads(cls):
                continue  # it may be declared later
            _CLASSES.note(cls)
            if base is BaseLLM and issubclass(cls, LLM):
                continue  # it is called with one prompt at a time
            if cls is SimpleChatModel:
                install(cls, CHAT[0])  # `_generate`, which calls what the program wrote
                continue
            if cls.__module__.startswith("langchain_core.") and not _is_component(cls):
                continue
            for method in PUBLIC_RETRIEVER if methods is RETRIEVER and _is_public(cls) else methods:
                install(cls, method)


def _telling(configure: Any) -> Any:
    """Every runnable begins with asking who listens, also one that a component runs. A plain function, because all
    programs of the process go through it."""
    ask = configure.__func__

    @wraps(ask)
    def told(*args: Any, **kwargs: Any) -> Any:
        if scope.get() is not None:
            tells("runs a runnable of its own, which has callbacks")
        return ask(*args, **kwargs)

    return classmethod(told)


def _is_public(cls: type) -> bool:
    said = listed(cls)
    return said is not None and bool(said.readonly)


def _only_reads(cls: type) -> bool:
    """Whether this very class of tools is listed or declared as one that changes nothing."""
    said = said_of_class(cls)
    return bool(said.readonly or said.deterministic or said.pure) or cls in FUNCTION_TOOLS


def _is_component(cls: type) -> bool:
    return cls in LISTED_FRAMEWORK_CLASSES or cls.__module__.startswith(
        ("langchain_core.language_models.fake", "langchain_core.embeddings.fake")
    )


def holds(component: Any) -> Reason | None:
    """Why LangChain may answer a call of this component without calling it, stop it, or must slow it down."""
    guard = guard_of(getattr(component, "callbacks", None))
    if guard is not None or not isinstance(component, BaseLanguageModel):
        return guard
    cached = getattr(component, "cache", None)
    if cached or (cached is None and get_llm_cache() is not None):
        return CACHE()
    return LIMITER() if getattr(component, "rate_limiter", None) is not None else None


_BASES = tuple(base for base, _ in FAMILIES)


def is_component(value: Any) -> bool:
    return is_a(value, _BASES)
