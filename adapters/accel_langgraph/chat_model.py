"""A LangChain chat model served by a language model in this process (`accel_local` with `accel_vllm`)."""

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict

import accel_local
from accel import engine as engines
from accel.engine import Constraint, Delta, EngineConfig, LLMEngine, Sampling, priority
from accel.engine.profile import Profile
from accel.errors import ConfigurationError, EngineClosed
from accel.text.values import Tree
from accel_local.models import DEFAULT_LLM
from accel_vllm import VLLMConfig

from . import prompts
from .structured import structured
from .timeouts import within
from .tool_calls import CallReader, Piece
from .tools import TOOL_KEYWORDS, Offer, chosen, offer, openai_tools

_SAMPLING_KEYWORDS = ("temperature", "top_p", "max_tokens", "seed")
_CONSTRAINT_KEYWORDS = ("response_format", "regex", "choice")
_KEYWORDS = (*_SAMPLING_KEYWORDS, *_CONSTRAINT_KEYWORDS, *TOOL_KEYWORDS, "model", "timeout")

_ANY_OBJECT = '{"type": "object", "additionalProperties": true}'

_tool_templates: dict[EngineConfig[LLMEngine], bool] = {}
"""Whether the chat template of an engine knows tools, once that was looked at."""


@dataclass(frozen=True, slots=True)
class _Request:
    deltas: AsyncGenerator[Delta, None]
    model_name: str
    reader: CallReader | None
    """None: no tools are on offer, so that all of the answer is text."""


class AccelChatModel(BaseChatModel):
    """Models with equal engine settings share one engine. All methods may be called from any threads and loops at once.

    Sampling settings, `model` and `timeout` can be overridden per call, and an output can be limited: `response_format`
    (OpenAI's form), `regex` or `choice` (a list of strings). Tools are bound with `bind_tools`.

    timeout: seconds until an answer must be complete, from when the program waits for it; RequestError where it isn't.
    streaming: LangChain then streams inside `invoke`, too. The answers are the same.
    """

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 4096, "streams_equal": True, "pure": True}
    model_config = ConfigDict(extra="forbid")

    model: str = DEFAULT_LLM
    dtype: str = "auto"
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 256
    stop: list[str] | None = None
    seed: int | None = None
    timeout: float | None = None
    streaming: bool = False
    max_model_len: int = 4096
    max_num_seqs: int = 32
    kv_cache_gib: float | None = None
    gpu_memory_utilization: float = 0.9
    engine: Any = None
    """The config of another engine (`accel.engine.EngineConfig`); None: vLLM, as the fields above say."""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        accel_local.prepare()

    @property
    def engine_config(self) -> EngineConfig[LLMEngine]:
        return self._config({})

    def _config(self, kwargs: dict[str, Any]) -> EngineConfig[LLMEngine]:
        """The engine of a call with these keywords."""
        model = kwargs.get("model") or self.model
        if self.engine is not None:
            if model != self.model:
                raise ConfigurationError(
                    f"model={model!r} cannot be served: this chat model was given an engine of its own.",
                    "leave model out of the call, or engine out of the chat model",
                )
            return self.engine  # type: ignore[no-any-return]
        return VLLMConfig(
            model=model,
            dtype=self.dtype,
            max_model_len=self.max_model_len,
            max_num_seqs=self.max_num_seqs,
            kv_cache_gib=self.kv_cache_gib,
            gpu_memory_utilization=self.gpu_memory_utilization,
        )

    @property
    def _llm_type(self) -> str:
        return "accel"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        fields = self.model_dump(include={"model", "dtype", "stop", *_SAMPLING_KEYWORDS})
        return {**fields, "engine": repr(self.engine_config)}  # LangChain's caches tell models apart by this

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        return {**params, "ls_provider": "accel", "ls_model_name": kwargs.get("model") or _name(self.engine_config)}

    # Calls

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        engine = accel_local.engine(self._config(kwargs))
        return accel_local.run(self._answer(self._request(engine, messages, stop, kwargs)))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        engine = await accel_local.aengine(self._config(kwargs))
        return await accel_local.arun(self._answer(self._request(engine, messages, stop, kwargs)))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        engine = accel_local.engine(self._config(kwargs))
        request = self._request(engine, messages, stop, kwargs)
        with contextlib.closing(accel_local.stream(request.deltas)) as deltas:
            for delta in deltas:
                chunk = _chunk(request, delta)
                if chunk is None:
                    continue
                if run_manager is not None:
                    run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        engine = await accel_local.aengine(self._config(kwargs))
        request = self._request(engine, messages, stop, kwargs)
        async with contextlib.aclosing(accel_local.astream(request.deltas)) as deltas:
            async for delta in deltas:
                chunk = _chunk(request, delta)
                if chunk is None:
                    continue
                if run_manager is not None:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    # Partial prefill

    def accel_prefill(self, messages: list[BaseMessage], **kwargs: Any) -> int:
        """Warm the prefix cache for a call whose messages are these, the last content known only up to here.

        `kwargs` are those of that call. Returns the number of prompt tokens it will find in the cache; 0 if less than
        one cache block is certain.
        """
        engine = accel_local.engine(self._config(kwargs))
        prefix = engine.encode_prefix(self._turns(engine, messages, kwargs, offer(kwargs), cut=True))
        if len(prefix) < max(1, engine.cache_block_tokens):
            return 0
        return accel_local.run(engine.prefill(prefix, priority=priority.get()))

    async def accel_aprefill(self, messages: list[BaseMessage], **kwargs: Any) -> int:
        engine = await accel_local.aengine(self._config(kwargs))
        prefix = engine.encode_prefix(self._turns(engine, messages, kwargs, offer(kwargs), cut=True))
        if len(prefix) < max(1, engine.cache_block_tokens):
            return 0
        return await accel_local.arun(engine.prefill(prefix, priority=priority.get()))

    def accel_repeats(self, input: Tree) -> bool:
        """Whether equal calls give the same (`accel.parts.methods.repeats`): they take the likeliest token."""
        temperature: object = input["kwargs"].get("temperature", self.temperature)
        return temperature == 0

    def accel_profiles(self) -> list[Profile]:
        """What is known about the speed of its engine."""
        found = accel_local.known_profile(self.engine_config)
        return [found] if found is not None else []

    # Tools and structured output

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | dict[str, Any] | bool | None = None,
        parallel_tool_calls: bool | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """A model that may call these tools, or with a `tool_choice` of "any", "required" or a tool's name must.

        An answer that must be a call is forced into the JSON schema of the arguments while it is decoded, so that it is
        valid unless `max_tokens` cuts it off; it is one call, or with `parallel_tool_calls` up to `tools.MAX_CALLS`. A
        model that is free to call may also answer with several. With `strict` every argument is required.
        """
        formatted = openai_tools(tools, strict=strict)
        asked: dict[str, Any] = {"tools": formatted}
        if tool_choice is not None:
            asked["tool_choice"] = chosen(tool_choice, [tool.get("function", {}).get("name") for tool in formatted])
        if parallel_tool_calls is not None:
            asked["parallel_tool_calls"] = parallel_tool_calls
        offer(asked)  # what is wrong with them is best said now
        return self.bind(**asked, **kwargs)

    def with_structured_output(
        self,
        schema: dict[str, Any] | type | None = None,
        *,
        method: str = "json_schema",
        include_raw: bool = False,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """The answer is forced into the JSON schema while it is decoded, and parsed.

        method: "json_schema", "function_calling" (as the arguments of a tool) or "json_mode" (where no schema is any
        object). With `strict` every property is required.
        """
        if kwargs:
            raise ConfigurationError(f"with_structured_output does not know {sorted(kwargs)}.", "leave it out")
        return structured(self, schema, method, include_raw=include_raw, strict=strict)

    # Between LangChain and the engine

    def _request(
        self, engine: LLMEngine, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> _Request:
        """Encoded here, in the caller's thread: the host's loop stays free."""
        offered = offer(kwargs)
        sampling = self._sampling(stop, kwargs, offered)
        turns = self._turns(engine, messages, kwargs, offered)
        deltas = engine.generate(engine.encode(turns), sampling, priority=priority.get())
        timeout_s = kwargs.get("timeout", self.timeout)
        if timeout_s is not None:
            deltas = within(deltas, timeout_s, priority.get())
        reader = None if offered is None else CallReader(offered, json.dumps(turns, sort_keys=True, default=repr))
        return _Request(deltas, _name(self._config(kwargs)), reader)

    def _turns(
        self,
        engine: LLMEngine,
        messages: Sequence[BaseMessage],
        kwargs: dict[str, Any],
        offered: Offer | None,
        *,
        cut: bool = False,
    ) -> list[engines.ChatMessage]:
        if not prompts.needs_tools(messages, offered):
            return prompts.plain(messages, None, cut=cut)
        config = self._config(kwargs)
        if config not in _tool_templates:
            _tool_templates[config] = prompts.knows_tools(engine.encode)
        if _tool_templates[config]:
            return prompts.native(messages, offered)
        return prompts.plain(messages, offered, cut=cut)

    def _sampling(self, stop: list[str] | None, kwargs: dict[str, Any], offered: Offer | None) -> Sampling:
        unknown = set(kwargs) - set(_KEYWORDS)
        if unknown:
            raise ConfigurationError(
                f"AccelChatModel does not know {', '.join(sorted(unknown))}.",
                f"known per call: stop, {', '.join(_KEYWORDS)}",
            )
        settings = {name: kwargs.get(name, getattr(self, name)) for name in _SAMPLING_KEYWORDS}
        stops = stop if stop is not None else self.stop
        constraint = _constraint(kwargs)
        if offered is not None and constraint is not None:
            raise ConfigurationError(
                "tools exclude response_format, regex and choice: an answer so limited could never be a call.",
                "offer the form of the answer as a tool, with tool_choice='any'",
            )
        if offered is not None:
            constraint = offered.constraint()
        return Sampling(**settings, stop=tuple(stops or ()), constraint=constraint)

    async def _answer(self, request: _Request) -> ChatResult:
        whole = Piece()
        async with contextlib.aclosing(request.deltas) as deltas:
            text: list[str] = []
            async for delta in deltas:
                if delta.error is not None:
                    raise delta.error
                piece = _read(request.reader, delta)
                text.append(piece.text)
                whole.calls += piece.calls
                if delta.finish_reason is not None:
                    whole.text = "".join(text)
                    message = message_chunk_to_message(_message(request, whole, delta))
                    return ChatResult(generations=[ChatGeneration(message=message)])
        raise EngineClosed("The engine ended an answer without its last part.")


def _name(config: EngineConfig[LLMEngine]) -> str:
    return str(getattr(config, "model", config.label))


def _read(reader: CallReader | None, delta: Delta) -> Piece:
    if reader is None:
        return Piece(delta.text)
    piece = reader.add(delta.text)
    if delta.finish_reason is not None:
        rest = reader.close()
        piece = Piece(piece.text + rest.text, [*piece.calls, *rest.calls])
    return piece


def _chunk(request: _Request, delta: Delta) -> ChatGenerationChunk | None:
    """None: nothing can be told yet."""
    if delta.error is not None:
        raise delta.error
    piece = _read(request.reader, delta)
    if request.reader is not None and delta.finish_reason is None and not piece.text and not piece.calls:
        return None
    return ChatGenerationChunk(message=_message(request, piece, delta))


def _message(request: _Request, piece: Piece, delta: Delta) -> AIMessageChunk:
    """`piece` as a chunk, which with the last delta ends the message."""
    if delta.finish_reason is None:
        return AIMessageChunk(content=piece.text, tool_call_chunks=piece.calls)
    return AIMessageChunk(
        content=piece.text,
        tool_call_chunks=piece.calls,
        usage_metadata=_usage(delta),
        response_metadata={
            "model_name": request.model_name,
            "model_provider": "accel",
            "finish_reason": delta.finish_reason,
        },
        chunk_position="last",
    )


def _usage(last: Delta) -> UsageMetadata | None:
    if last.usage is None:
        return None
    return UsageMetadata(
        input_tokens=last.usage.prompt_tokens,
        output_tokens=last.usage.completion_tokens,
        total_tokens=last.usage.prompt_tokens + last.usage.completion_tokens,
        input_token_details={"cache_read": last.usage.cached_tokens},
    )


def _constraint(kwargs: dict[str, Any]) -> Constraint | None:
    given = [name for name in _CONSTRAINT_KEYWORDS if kwargs.get(name) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise ConfigurationError(f"{' and '.join(given)} exclude each other.", "give one of them")
    value = kwargs[given[0]]
    if given[0] == "regex":
        return Constraint("regex", str(value))
    if given[0] == "choice":
        return Constraint("choice", tuple(value))
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return Constraint("json_schema", _ANY_OBJECT)
    try:
        schema = value["json_schema"]["schema"]
    except (KeyError, TypeError) as error:
        raise ConfigurationError(
            "response_format is not understood.",
            "{'type': 'json_schema', 'json_schema': {'name': ..., 'schema': {...}}}, or {'type': 'json_object'}",
        ) from error
    return Constraint("json_schema", json.dumps(schema))
