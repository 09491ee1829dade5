"""`accelerate` for LlamaIndex: a shallow copy of a subclass of the same name, whose main method opens a run.

Whatever is accelerated (`kinds`) runs as it is. What it is made of (`made_of`) tells the run when it starts and ends;
everything else happens at the component boundary.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextvars import ContextVar
from functools import partial, wraps
from inspect import signature
from types import FunctionType
from typing import Any

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.base import global_stack_trace, global_stack_trace_ids
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.callbacks.base_handler import global_stack_trace as handler_stack_trace
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.indices.utils import default_format_node_batch_fn
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.tools import ToolMetadata
from llama_index.core.workflow import Workflow
from llama_index_instrumentation.dispatcher import active_instrument_tags
from llama_index_instrumentation.span import active_span_id
from workflows.handler import WorkflowHandler

from accel.api import accelerate
from accel.errors import ConfigurationError, WrongObject, kind_of
from accel.graph.topology import Control
from accel.insight import Insight, of_program, shallow
from accel.parts.methods.patches import enable
from accel.parts.references import References, Ways
from accel.process.properties import cached_property
from accel.run.batches.journal import Serde
from accel.run.batches.many import Asked
from accel.run.demands.streams import astreamed, inside, streamed
from accel.run.drive import begin
from accel.run.plans.plan import Plan
from accel.run.run import Run
from accel.run.scope import Within
from accel.run.settings import PASSING, Settings
from accel.run.switch import state
from accel.run.unfollowed import Unfollowed
from accel.run.waits.waiting import loop_here
from accel.text.objects import is_a, public
from accel.trace.ambient import FRAMEWORK_VARS, LISTENERS

from .batches import bounded, serde
from .components import holds, install_all, is_component
from .computes import set_to
from .framework import FRAMEWORK
from .kept import is_followed, kept, watch_chats
from .kinds import ASKED_BY, BUILT, TAKES, input_of, methods_of, name_of
from .made_of import Parts
from .parts import LlamaHost, watch
from .workflows import has_waited, may_follow, started, watch_waits

FRAMEWORK_VARS.update(
    (global_stack_trace, global_stack_trace_ids, handler_stack_trace, active_span_id, active_instrument_tags)
)
LISTENERS.update((CallbackManager, BaseCallbackHandler))


class Acceleration:
    """What an accelerated object carries: its parts, which are live, plan and settings. Copies with the same parts
    carry the same."""

    def __init__(self, original: Any, settings: Settings, plan: Plan) -> None:
        self.settings = settings
        self.plan = plan
        self.program = name_of(original)
        self.ways = Ways()
        self.made: dict[tuple[str, int, str], Plan] = {}
        """Of an index, by line of the program and class: what it makes there learns together."""
        self._original, self._looked = original, False
        if not (_makes.get() or plan.pace.never):
            self._look()
            plan.topology = self.parts.topology

    def _look(self) -> None:
        """At the program as it is before it runs. What an index makes is looked at when it is first followed: where it
        rests, that would be most of what a request costs."""
        references = _references_of(self._original, self.ways)
        self.plan.keys.look(self._original, references.components)
        self.plan.look(references)
        self._looked = True  # last: another thread that begins meanwhile looks as well

    @cached_property
    def parts(self) -> Parts:
        return Parts(self._original)

    def begin(self, obj: Any, settings: Settings, value: Any, asynchronous: bool) -> Run | Unfollowed:
        """The handle of a new run."""
        if settings is PASSING:
            return Unfollowed(self.plan)
        install_all()
        watch()
        if not self._looked:
            self._look()
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
        run = begin(self.plan, settings, host, value)
        run.trace.drawn, run.trace.chosen = False, self.parts.chosen
        return run


def _references_of(original: Any, ways: Ways) -> References:
    return References([original], is_component, _is_opened, _says, ways)


def _is_opened(value: Any) -> bool:
    kind = value if is_a(value, type | FunctionType) else type(value)
    return (kind.__module__ or "").startswith("llama_index.")


_WRITTEN = {default_format_node_batch_fn: ("Document",)}
"""Single words that LlamaIndex's functions write into prompts: of a library's code only more words count."""


def _says(value: Any, held: bool) -> Any:
    """Prompts and what tools say of themselves are the program's text; so are the names of what its indexes hold, and
    the numbers that its parts compute with."""
    if is_a(value, IndexDict):
        return list(value.nodes_dict.values())
    if is_a(value, FunctionType):
        return _WRITTEN.get(value)
    return public(value) if is_a(value, BasePromptTemplate | ToolMetadata) else set_to(value)


# --- the object -----------------------------------------------------------------------------------------------------


class Accelerated(Insight):
    """Mixed in front of the object's own class."""

    __slots__ = ()
    _accel: Acceleration

    def _accel_like(self, plain: Any) -> Any:
        if self._accel.parts.are_of(plain):
            return shallow(plain, type(self))
        return accelerate_object(plain, self._accel.settings, self._accel.plan)

    def _accel_remade(self, plain: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return accelerate_object, (plain, self._accel.settings, None)

    def _accel_serde(self) -> Serde:
        return serde()

    def _accel_batch(self, inputs: Any, asked: Asked, options: dict[str, Any]) -> list[Any]:
        return super()._accel_batch(inputs, bounded(self, asked, asynchronous=False), options)

    async def _accel_abatch(self, inputs: Any, asked: Asked, options: dict[str, Any]) -> list[Any]:
        return await super()._accel_abatch(inputs, bounded(self, asked, asynchronous=True), options)

    def _accel_run(self, value: Any, **options: Any) -> Any:
        if is_a(self, Workflow):
            raise ConfigurationError("A workflow runs as a coroutine.", "await accel.awarmup(fast, inputs)")
        name, _ = (methods_of(type(self)) or ())[0]
        args, named = _as_given(self, name, value, options)
        return getattr(self, name)(*args, **named)

    async def _accel_arun(self, value: Any, **options: Any) -> Any:
        name = "run" if is_a(self, Workflow) else (methods_of(type(self)) or ())[0][1]
        args, named = _as_given(self, name, value, options)
        return await getattr(self, name)(*args, **named)


def _as_given(obj: Any, name: str, value: Any, options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """How an input of `warmup` or `batch` is handed to a method: of what has no single one, a dict of arguments. Raises
    WrongObject for one that the method doesn't take."""
    if is_a(obj, IngestionPipeline):
        return (), {"documents": value, **options}
    if not is_a(value, Mapping):
        return (value,), options
    taken = signature(getattr(super(Accelerated, obj), name))
    try:
        taken.bind(**value, **options)
    except TypeError as error:
        raise WrongObject(
            f"{name}() can't be called with an input's keys, {', '.join(map(str, value))}: {error}.",
            f"Give as input what {name}() takes first, or a dict of its arguments: {', '.join(taken.parameters)}.",
        ) from None
    return (), {**value, **options}


def accelerate_object(obj: Any, settings: Settings, plan: Plan | None, pure_nodes: tuple[str, ...] = ()) -> Any:
    """An accelerated copy; the object itself if it is accelerated already. Of an index class, a subclass whose
    instances are built faster."""
    cls = obj if is_a(obj, type) else type(obj)
    if issubclass(cls, Accelerated):
        return obj
    methods = methods_of(cls)
    if methods is None or (cls is obj and not issubclass(cls, BUILT)):
        raise WrongObject(
            f"accelerate() takes LlamaIndex's {TAKES}, not {kind_of(obj)}.",
            FRAMEWORK.advice(obj) or f"Give the object that your program calls{', not its class' * (cls is obj)}.",
        )
    if pure_nodes:
        raise ConfigurationError("pure_nodes names nodes of a graph.", "Declare functions with accel.pure instead.")
    members: dict[str, Any] = {
        **of_program(cls), "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
    }  # fmt: skip
    for name, asynchronous in methods:
        members[name] = _opening(cls, name)
        members[asynchronous] = _aopening(cls, asynchronous)
    for name in ASKED_BY if issubclass(cls, BUILT) else ():
        members[name] = _making(cls, name)
    if cls is obj:
        members["build_index_from_nodes"] = _opening(cls, "build_index_from_nodes")
    plan = plan or Plan()
    if is_a(obj, Workflow):
        members["run"] = _starting(cls, may_follow(obj, plan))
    metaclass: Any = type(cls)
    fast_class = metaclass(cls.__name__, (Accelerated, cls), members)
    # On the class, which is this object's own: fields of pydantic models must stay as they are.
    type.__setattr__(fast_class, "_accel", Acceleration(obj, settings, plan))
    if is_a(obj, Workflow):
        fast_class._step_functions = type(obj)._step_functions  # of this very class, by its metaclass
    enable()
    install_all()
    watch()
    watch_chats()
    watch_waits()
    return fast_class if cls is obj else shallow(obj, fast_class)


def _as_of(cls: type, name: str, function: Any) -> Any:
    """With the name, the words and the signature of the method that it stands for: tools are made of these. LlamaIndex
    decorates overrides of methods that have spans, unless they say that they have one: it is that of the method."""
    return wraps(getattr(cls, name))(function)


def _opening(cls: type, name: str) -> Any:
    given = input_of(cls)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        inner: Callable[..., Any] = getattr(super(Accelerated, self), name)
        settings = self._accel_settings()
        value = given(inner, args, kwargs) if settings is not None else None
        if settings is None or value is None:
            return inner(*args, **kwargs)
        run = self._accel.begin(self, settings, value, asynchronous=False)
        try:
            with inside(run):
                result = inner(*args, **kwargs)
        except BaseException:
            run.finish(False)
            raise
        finally:
            run.member.returned()
        return _finished(run, result)

    return _as_of(cls, name, method)


def _aopening(cls: type, name: str) -> Any:
    given = input_of(cls)

    async def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        inner: Callable[..., Awaitable[Any]] = getattr(super(Accelerated, self), name)
        settings = self._accel_settings(asynchronous=True)
        value = given(inner, args, kwargs) if settings is not None else None
        if settings is None or value is None:
            return await inner(*args, **kwargs)
        run = self._accel.begin(self, settings, value, asynchronous=True)
        try:
            with inside(run):
                result = await inner(*args, **kwargs)
        except BaseException:
            run.finish(False)
            raise
        finally:
            run.member.returned()
        return _finished(run, result)

    return _as_of(cls, name, method)


def _starting(cls: type, follows: bool) -> Any:
    """A workflow's `run`."""
    given = input_of(cls)

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        inner: Callable[..., WorkflowHandler] = super(Accelerated, self).run
        follow = follows and not has_waited(self._accel.plan)
        settings = self._accel_settings(asynchronous=True) if follow else None
        value = given(inner, args, kwargs) if settings is not None else None
        if settings is None or value is None:
            return inner(*args, **kwargs)
        run = self._accel.begin(self, settings, value, True)
        return started(run, partial(inner, *args, **kwargs))

    return _as_of(cls, "run", run)


_makes: ContextVar[bool] = ContextVar("accel_makes", default=False)
"""Whether an index makes what it is asked with: that is accelerated as a whole, and nothing that it is made of."""
FRAMEWORK_VARS.add(_makes)


def _making(cls: type, name: str) -> Any:
    """What an index gives to ask it with is accelerated as the index is: another program, with a plan that it shares
    with what the index gives at the same line, so that one which is made for each request learns."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        inner: Callable[..., Any] = getattr(super(Accelerated, self), name)
        asking = sys._getframe(1)
        if _makes.get() or state() == "uninstalled":
            return inner(*args, **kwargs)
        with Within(_makes, True):
            made = inner(*args, **kwargs)
            own = self._accel.settings
            if methods_of(type(made)) is None or is_a(made, Accelerated):
                return made
            options = {"speculate": own.speculate, "egress": own.egress, "budget": own.budget}
            if self._accel.plan.scope is not None:
                return accelerate(made, **options, plan_scope=self._accel.plan.scope)
            made_at = (asking.f_code.co_filename, asking.f_lineno, type(made).__qualname__)
            plan = self._accel.made.get(made_at)
            if plan is None:
                plan = self._accel.made.setdefault(made_at, Plan())
            return accelerate(made, **options, plan=plan)

    return _as_of(cls, name, method)


def _finished(run: Run | Unfollowed, result: Any) -> Any:
    """The run ends with the method, or with the stream that it gave."""
    if is_a(run, Unfollowed):
        run.finish(True)
    elif is_a(result, StreamingResponse) and is_a(result.response_gen, Generator):
        parts = result.response_gen
        result.response_gen = kept(run, streamed(lambda: run, lambda: parts))
    elif is_a(result, AsyncStreamingResponse) and is_a(result.response_gen, AsyncGenerator):
        aparts = result.response_gen
        result.response_gen = kept(run, astreamed(lambda: run, lambda: aparts))
    elif not (is_a(result, StreamingAgentChatResponse) and is_followed(result)):
        run.finish(True)
    return result
