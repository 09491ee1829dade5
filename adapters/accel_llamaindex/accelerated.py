"""`accelerate` for LlamaIndex: a shallow copy of a subclass of the same name, whose main method opens a run.

Query engines, retrievers, ingestion pipelines and vector indexes run as they are. What a query engine is made of
(retriever, postprocessors, synthesizer) tells the run when it starts and ends; everything else happens at the component
boundary.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from inspect import Signature, signature
from types import FunctionType
from typing import Any, TypeVar

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.base import global_stack_trace, global_stack_trace_ids
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.callbacks.base_handler import global_stack_trace as handler_stack_trace
from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import ToolMetadata
from llama_index_instrumentation.dispatcher import DISPATCHER_SPAN_DECORATED_ATTR, active_instrument_tags
from llama_index_instrumentation.span import active_span_id

from accel.errors import ConfigurationError
from accel.graph.topology import Control
from accel.insight import Insight, shallow
from accel.parts.patches import enable
from accel.parts.references import References, Ways
from accel.run.drive import begin
from accel.run.plan import Plan
from accel.run.run import Run
from accel.run.scope import Scope, scope
from accel.run.settings import Settings
from accel.run.streams import astreamed, streamed
from accel.run.waiting import loop_here
from accel.trace.ambient import FRAMEWORK_VARS, LISTENERS

from .components import holds, install_all, is_component
from .made_of import Parts
from .parts import LlamaHost, watch

FRAMEWORK_VARS.update(
    (global_stack_trace, global_stack_trace_ids, handler_stack_trace, active_span_id, active_instrument_tags)
)
LISTENERS.update((CallbackManager, BaseCallbackHandler))

MAIN: tuple[tuple[type, tuple[tuple[str, str], ...]], ...] = (
    (BaseQueryEngine, (("query", "aquery"),)),
    (BaseRetriever, (("retrieve", "aretrieve"),)),
    (IngestionPipeline, (("run", "arun"),)),
    (VectorStoreIndex, (("insert_nodes", "ainsert_nodes"), ("insert", "ainsert"))),
)
"""By kind of object, the methods that open a run, and their coroutines."""
S = TypeVar("S", Generator[Any, None, None], AsyncGenerator[Any, None])
SUPPORTED = "query engines, retrievers, ingestion pipelines and vector store indexes (objects, or the index class)"


class Acceleration:
    """What an accelerated object carries: its parts, which are live, plan and settings. Without parts its copies carry
    the same."""

    def __init__(self, original: Any, settings: Settings, plan: Plan) -> None:
        self.settings = settings
        self.plan = plan
        self.ways = Ways()
        references = _references_of(original, self.ways)
        plan.keys.look(original, references.components)
        plan.program.look(references)
        self.parts = Parts(original)
        plan.topology = self.parts.topology

    def begin(self, obj: Any, value: Any, asynchronous: bool) -> Run:
        """The handle of a new run."""
        install_all()
        watch()
        self.plan.topology = self.parts.topology  # it may have shown more parts since
        host = LlamaHost(
            control=Control(self.parts.topology, self.plan.barriers, (), ()),
            config=lambda: None,
            loop=loop_here() if asynchronous else None,  # a plain call blocks the loop it may be on
            holds=holds,
            references=_references_of(obj, self.ways),
            parts=self.parts,
            main=obj,
        )
        return begin(self.plan, self.settings, host, value)


def _references_of(original: Any, ways: Ways) -> References:
    return References([original], is_component, _is_opened, _says, ways)


def _is_opened(value: Any) -> bool:
    kind = value if isinstance(value, type | FunctionType) else type(value)
    return (kind.__module__ or "").startswith("llama_index.")


def _says(value: Any, held: bool) -> Any:
    """Prompts and what tools say of themselves are the program's text; so are the names of what its indexes hold."""
    if isinstance(value, IndexDict):
        return list(value.nodes_dict.values())
    return vars(value) if isinstance(value, BasePromptTemplate | ToolMetadata) else None


# --- the object -----------------------------------------------------------------------------------------------------


class Accelerated(Insight):
    """Mixed in front of the object's own class."""

    __slots__ = ()
    _accel: Acceleration

    def _like(self, plain: Any) -> Any:
        if not self._accel.parts:
            return shallow(plain, type(self))
        return accelerate_object(plain, self._accel.settings, self._accel.plan)

    def _remade(self, plain: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return accelerate_object, (plain, self._accel.settings, None)

    def _run_once(self, value: Any, **options: Any) -> Any:
        name, _ = _main(type(self))[0]
        if isinstance(self, IngestionPipeline):
            return self.run(documents=value, **options)
        return getattr(self, name)(value, **options)

    async def _arun_once(self, value: Any, **options: Any) -> Any:
        _, name = _main(type(self))[0]
        if isinstance(self, IngestionPipeline):
            return await self.arun(documents=value, **options)
        return await getattr(self, name)(value, **options)


def _main(cls: type) -> tuple[tuple[str, str], ...]:
    return next((methods for kind, methods in MAIN if issubclass(cls, kind)), ())


def accelerate_object(obj: Any, settings: Settings, plan: Plan | None, pure_nodes: tuple[str, ...] = ()) -> Any:
    """An accelerated copy; the object itself if it is accelerated already. Of an index class, a subclass whose
    instances are built faster."""
    cls = obj if isinstance(obj, type) else type(obj)
    if issubclass(cls, Accelerated):
        return obj
    methods = _main(cls)
    if not methods or (cls is obj and not issubclass(cls, VectorStoreIndex)):
        raise TypeError(f"accelerate() takes LlamaIndex's {SUPPORTED}, not {obj if cls is obj else cls.__name__}.")
    if pure_nodes:
        raise ConfigurationError("pure_nodes names nodes of a graph.", "Declare functions with accel.pure instead.")
    members: dict[str, Any] = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    for name, asynchronous in methods:
        members[name] = _opening(cls, name)
        members[asynchronous] = _aopening(cls, asynchronous)
    if cls is obj:
        members["build_index_from_nodes"] = _opening(cls, "build_index_from_nodes")
    metaclass: Any = type(cls)
    fast_class = metaclass(cls.__name__, (Accelerated, cls), members)
    # On the class, which is this object's own: fields of pydantic models must stay as they are.
    type.__setattr__(fast_class, "_accel", Acceleration(obj, settings, plan or Plan()))
    enable()
    install_all()
    watch()
    return fast_class if cls is obj else shallow(obj, fast_class)


Input = Callable[[Any, tuple[Any, ...], Mapping[str, Any]], dict[str, Any]]


def _input() -> Input:
    """What a run is given, by the parameters of one method of one class; a query as text is the query that it stands
    for."""
    parameters: Signature | None = None

    def read(method: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        nonlocal parameters
        if parameters is None:
            parameters = signature(method)
        given = parameters.bind(*args, **kwargs).arguments
        return {key: QueryBundle(value) if isinstance(value, str) else value for key, value in given.items()}

    return read


def _span_of(cls: type, name: str, function: Any) -> Any:
    """LlamaIndex decorates overrides of methods that have spans; these only call the method that has one."""
    if hasattr(getattr(cls, name), DISPATCHER_SPAN_DECORATED_ATTR):
        setattr(function, DISPATCHER_SPAN_DECORATED_ATTR, True)
    function.__name__, function.__doc__ = name, getattr(cls, name).__doc__
    return function


def _opening(cls: type, name: str) -> Any:
    given = _input()

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        inner: Callable[..., Any] = getattr(super(Accelerated, self), name)
        if self._passes():
            return inner(*args, **kwargs)
        run: Run = self._accel.begin(self, given(inner, args, kwargs), asynchronous=False)
        token = scope.set(Scope(run))
        try:
            result = inner(*args, **kwargs)
        except BaseException:
            run.finish(False)
            raise
        finally:
            scope.reset(token)
        return _finished(run, result)

    return _span_of(cls, name, method)


def _aopening(cls: type, name: str) -> Any:
    given = _input()

    async def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        inner: Callable[..., Awaitable[Any]] = getattr(super(Accelerated, self), name)
        if self._passes(asynchronous=True):
            return await inner(*args, **kwargs)
        run: Run = self._accel.begin(self, given(inner, args, kwargs), asynchronous=True)
        token = scope.set(Scope(run))
        try:
            result = await inner(*args, **kwargs)
        except BaseException:
            run.finish(False)
            raise
        finally:
            scope.reset(token)
        return _finished(run, result)

    return _span_of(cls, name, method)


def _finished(run: Run, result: Any) -> Any:
    """The run ends with the method, or with the stream that it gave."""
    if isinstance(result, StreamingResponse) and isinstance(result.response_gen, Generator):
        parts = result.response_gen
        result.response_gen = _kept(run, streamed(lambda: run, lambda: parts))
    elif isinstance(result, AsyncStreamingResponse) and isinstance(result.response_gen, AsyncGenerator):
        aparts = result.response_gen
        result.response_gen = _kept(run, astreamed(lambda: run, lambda: aparts))
    else:
        run.finish(True)
    return result


def _kept(run: Run, stream: S) -> S:
    """A stream that is thrown away unread ends its run, too."""
    weakref.finalize(stream, lambda: run.finish(False)).atexit = False  # as it is then: it may be `Gone`
    return stream
