"""A LlamaIndex chat model served by a language model in this process (`accel_local` with `accel_vllm`)."""

import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from llama_index.core.base.llms.generic_utils import messages_to_prompt as generic_messages_to_prompt
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
    TextBlock,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.llm import LLM, default_completion_to_prompt
from llama_index.core.prompts import PromptTemplate
from llama_index.core.types import Model
from llama_index_instrumentation.dispatcher import DISPATCHER_SPAN_DECORATED_ATTR
from pydantic import BaseModel, ConfigDict

import accel_local
from accel.engine import Constraint, Delta, EngineConfig, LLMEngine, Prompt, Sampling, priority
from accel.engine.profile import Profile
from accel.errors import ConfigurationError, EngineClosed, InvalidRequest
from accel.text.values import Tree
from accel_local.models import DEFAULT_LLM
from accel_vllm import VLLMConfig

from .engine_field import EngineField

_SAMPLING_KEYWORDS = ("temperature", "top_p", "max_tokens", "seed")
_CONSTRAINT_KEYWORDS = ("response_format", "regex", "choice")
_KEYWORDS = ("stop", *_SAMPLING_KEYWORDS, *_CONSTRAINT_KEYWORDS)

# What chat templates call the roles that they don't know by LlamaIndex's names.
_ROLES = {
    MessageRole.DEVELOPER: "system",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.FUNCTION: "tool",
}

Response = TypeVar("Response", ChatResponse, CompletionResponse)


@dataclass(frozen=True, slots=True)
class _Request:
    prompt: Prompt
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer up to here. `delta` is the text of its last part, None for an answer that was not streamed."""

    text: str
    delta: str | None
    last: Delta


def _spans_in_super(method: Any) -> Any:
    """For an override that only calls `super()`, whose span is the one of the call."""
    setattr(method, DISPATCHER_SPAN_DECORATED_ATTR, True)
    return method


class AccelLLM(LLM):
    """Models with equal engine settings share one engine. All methods may be called from any threads and loops at once.

    Prompts go through the model's own chat template, unless `messages_to_prompt` or `completion_to_prompt` is given, or
    a completion's prompt is `formatted` already. Sampling settings can be overridden per call, as can the limit on the
    output: `response_format` (OpenAI's form, with a JSON schema), `regex` or `choice` (a list of strings). Structured
    predictions are forced into their JSON schema while they are decoded.
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
    max_model_len: int = 4096
    max_num_seqs: int = 32
    kv_cache_gib: float | None = None
    gpu_memory_utilization: float = 0.9
    engine: EngineField = None
    """The config of another engine (`accel.engine.EngineConfig`); None: vLLM, as the fields above say."""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        accel_local.prepare()

    @classmethod
    def class_name(cls) -> str:
        return "AccelLLM"

    @property
    def engine_config(self) -> EngineConfig[LLMEngine]:
        return self.engine or VLLMConfig(
            model=self.model,
            dtype=self.dtype,
            max_model_len=self.max_model_len,
            max_num_seqs=self.max_num_seqs,
            kv_cache_gib=self.kv_cache_gib,
            gpu_memory_utilization=self.gpu_memory_utilization,
        )

    @property
    def metadata(self) -> LLMMetadata:
        """Starts the engine only if its config does not say how long prompts may be."""
        window = getattr(self.engine_config, "max_model_len", None)
        if window is None:
            window = accel_local.engine(self.engine_config).max_prompt_tokens + 1
        return LLMMetadata(
            context_window=window, num_output=self.max_tokens, is_chat_model=True, model_name=self._model_name
        )

    @property
    def _model_name(self) -> str:
        config = self.engine_config
        return str(getattr(config, "model", config.label))

    # Calls

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._whole(self._request(messages, kwargs), self._chat_response)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return await self._awhole(self._request(messages, kwargs), self._chat_response)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        return self._streamed(self._request(messages, kwargs), self._chat_response)

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        return self._astreamed(self._request(messages, kwargs), self._chat_response)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return self._whole(self._request(prompt, kwargs, formatted), self._completion_response)

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return await self._awhole(self._request(prompt, kwargs, formatted), self._completion_response)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        return self._streamed(self._request(prompt, kwargs, formatted), self._completion_response)

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseAsyncGen:
        return self._astreamed(self._request(prompt, kwargs, formatted), self._completion_response)

    # Partial prefill

    def accel_prefill(self, prompt: str | Sequence[ChatMessage], formatted: bool = False, **kwargs: Any) -> int:
        """Warm the prefix cache for a call with this prompt or these messages, the last text known only up to here.

        `kwargs` of that call change nothing: they act on decoding. Returns the number of prompt tokens the call will
        find in the cache; 0 if less than one cache block is certain, or if the prompt does not go through the model's
        chat template.
        """
        known = self._prompt(prompt, formatted)
        if isinstance(known, str):
            return 0
        engine = accel_local.engine(self.engine_config)
        prefix = engine.encode_prefix(known)
        if len(prefix) < max(1, engine.cache_block_tokens):
            return 0
        return accel_local.run(engine.prefill(prefix, priority=priority.get()))

    async def accel_aprefill(self, prompt: str | Sequence[ChatMessage], formatted: bool = False, **kwargs: Any) -> int:
        known = self._prompt(prompt, formatted)
        if isinstance(known, str):
            return 0
        engine = await accel_local.aengine(self.engine_config)
        prefix = engine.encode_prefix(known)
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

    # Structured output

    @_spans_in_super
    def structured_predict(
        self,
        output_cls: type[Model],
        prompt: PromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Model:
        forced = _forced(output_cls, llm_kwargs)
        found: Model = super().structured_predict(output_cls, prompt, forced, **prompt_args)
        return found

    @_spans_in_super
    async def astructured_predict(
        self,
        output_cls: type[Model],
        prompt: PromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Model:
        forced = _forced(output_cls, llm_kwargs)
        found: Model = await super().astructured_predict(output_cls, prompt, forced, **prompt_args)
        return found

    def _structured_stream_call(
        self,
        output_cls: type[Model],
        prompt: PromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Any:
        return super()._structured_stream_call(output_cls, prompt, _forced(output_cls, llm_kwargs), **prompt_args)

    async def _structured_astream_call(
        self,
        output_cls: type[Model],
        prompt: PromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Any:
        forced = _forced(output_cls, llm_kwargs)
        return await super()._structured_astream_call(output_cls, prompt, forced, **prompt_args)

    # Between LlamaIndex and the engine

    def _request(
        self, prompt: str | Sequence[ChatMessage], kwargs: Mapping[str, Any], formatted: bool = False
    ) -> _Request:
        """Made when the method is called, so that streams, too, are refused there."""
        unknown = set(kwargs) - set(_KEYWORDS)
        if unknown:
            raise ConfigurationError(
                f"AccelLLM does not know {', '.join(sorted(unknown))}.", f"known per call: {', '.join(_KEYWORDS)}"
            )
        given = {name: value for name, value in kwargs.items() if value is not None}
        chosen = {name: given.get(name, getattr(self, name)) for name in _SAMPLING_KEYWORDS}
        stop = given.get("stop", self.stop) or ()
        stops = (stop,) if isinstance(stop, str) else tuple(stop)
        sampling = Sampling(**chosen, stop=stops, constraint=_constraint(given))
        return _Request(self._prompt(prompt, formatted), sampling)

    def _prompt(self, prompt: str | Sequence[ChatMessage], formatted: bool) -> str | list[dict[str, str]]:
        """The messages for the model's chat template, or the text of a prompt that goes without it."""
        if not isinstance(prompt, str):
            own = self.messages_to_prompt
            return own(prompt) if own not in (None, generic_messages_to_prompt) else _chat_messages(prompt)
        if formatted:
            return prompt
        wrap = self.completion_to_prompt
        if wrap not in (None, default_completion_to_prompt):
            return wrap(prompt)
        return [{"role": "user", "content": prompt}]

    def _whole(self, request: _Request, shape: Callable[[_Answer], Response]) -> Response:
        engine = accel_local.engine(self.engine_config)
        return shape(accel_local.run(_collect(_deltas(engine, request))))

    async def _awhole(self, request: _Request, shape: Callable[[_Answer], Response]) -> Response:
        engine = await accel_local.aengine(self.engine_config)
        return shape(await accel_local.arun(_collect(_deltas(engine, request))))

    def _streamed(self, request: _Request, shape: Callable[[_Answer], Response]) -> Generator[Response, None, None]:
        engine = accel_local.engine(self.engine_config)
        text = ""
        with contextlib.closing(accel_local.stream(_deltas(engine, request))) as deltas:
            for delta in deltas:
                text += _text(delta)
                yield shape(_Answer(text, delta.text, delta))

    async def _astreamed(
        self, request: _Request, shape: Callable[[_Answer], Response]
    ) -> AsyncGenerator[Response, None]:
        engine = await accel_local.aengine(self.engine_config)
        text = ""
        async with contextlib.aclosing(accel_local.astream(_deltas(engine, request))) as deltas:
            async for delta in deltas:
                text += _text(delta)
                yield shape(_Answer(text, delta.text, delta))

    def _chat_response(self, answer: _Answer) -> ChatResponse:
        message = ChatMessage(role=MessageRole.ASSISTANT, content=answer.text)
        return ChatResponse(message=message, delta=answer.delta, **self._figures(answer.last))

    def _completion_response(self, answer: _Answer) -> CompletionResponse:
        return CompletionResponse(text=answer.text, delta=answer.delta, **self._figures(answer.last))

    def _figures(self, last: Delta) -> dict[str, Any]:
        """What token counters read, in OpenAI's form; nothing before the answer is over."""
        if last.finish_reason is None:
            return {}
        raw: dict[str, Any] = {"model": self._model_name, "finish_reason": last.finish_reason}
        if last.usage is None:
            return {"raw": raw}
        counts = {
            "prompt_tokens": last.usage.prompt_tokens,
            "completion_tokens": last.usage.completion_tokens,
            "total_tokens": last.usage.prompt_tokens + last.usage.completion_tokens,
        }
        raw["usage"] = {**counts, "prompt_tokens_details": {"cached_tokens": last.usage.cached_tokens}}
        return {"raw": raw, "additional_kwargs": counts}


def _deltas(engine: LLMEngine, request: _Request) -> AsyncGenerator[Delta, None]:
    """Encoded here, in the caller's thread: the host's loop stays free."""
    return engine.generate(engine.encode(request.prompt), request.sampling, priority=priority.get())


async def _collect(deltas: AsyncGenerator[Delta, None]) -> _Answer:
    text: list[str] = []
    async with contextlib.aclosing(deltas):
        async for delta in deltas:
            text.append(_text(delta))
            if delta.finish_reason is not None:
                return _Answer("".join(text), None, delta)
    raise EngineClosed("The engine ended an answer without its last part.")


def _text(delta: Delta) -> str:
    if delta.error is not None:
        raise delta.error
    return delta.text


def _chat_messages(messages: Sequence[ChatMessage]) -> list[dict[str, str]]:
    return [
        {"role": _ROLES.get(message.role, message.role.value), "content": _content(message)} for message in messages
    ]


def _content(message: ChatMessage) -> str:
    for block in message.blocks:
        if not isinstance(block, TextBlock):
            raise InvalidRequest(f"AccelLLM takes text only, not a {type(block).__name__}.")
    return message.content or ""


def _forced(output_cls: type[BaseModel], llm_kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """What makes the answer an instance of the class; a limit that the caller set himself stays."""
    given = llm_kwargs or {}
    if any(given.get(name) is not None for name in _CONSTRAINT_KEYWORDS):
        return given
    schema = {"name": output_cls.__name__, "schema": output_cls.model_json_schema()}
    return {**given, "response_format": {"type": "json_schema", "json_schema": schema}}


def _constraint(given: Mapping[str, Any]) -> Constraint | None:
    names = [name for name in _CONSTRAINT_KEYWORDS if name in given]
    if not names:
        return None
    if len(names) > 1:
        raise ConfigurationError(f"{' and '.join(names)} exclude each other.", "give one of them")
    value = given[names[0]]
    if names[0] == "regex":
        return Constraint("regex", str(value))
    if names[0] == "choice":
        return Constraint("choice", tuple(value))
    try:
        return Constraint("json_schema", json.dumps(value["json_schema"]["schema"]))
    except (KeyError, TypeError) as error:
        raise ConfigurationError(
            "response_format is not understood.",
            "{'type': 'json_schema', 'json_schema': {'name': ..., 'schema': {...}}}",
        ) from error
