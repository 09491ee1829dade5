"""A LangChain chat model served by a language model in this process (`accel_local` with `accel_vllm`)."""

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda, RunnableMap, RunnablePassthrough
from langchain_core.utils.function_calling import convert_to_json_schema
from pydantic import BaseModel, ConfigDict

import accel_local
from accel.engine import Constraint, Delta, EngineConfig, LLMEngine, Sampling, priority
from accel.errors import ConfigurationError, EngineClosed, InvalidRequest
from accel.profile import Profile
from accel_local.models import DEFAULT_LLM
from accel_vllm import VLLMConfig

_SAMPLING_KEYWORDS = ("temperature", "top_p", "max_tokens", "seed")
_CONSTRAINT_KEYWORDS = ("response_format", "regex", "choice")


class AccelChatModel(BaseChatModel):
    """Models with equal engine settings share one engine. All methods may be called from any threads and loops at once.

    Sampling settings can be overridden per call, as can the limit on the output: `response_format` (OpenAI's form, with
    a JSON schema), `regex` or `choice` (a list of strings).
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
    engine: Any = None
    """The config of another engine (`accel.engine.EngineConfig`); None: vLLM, as the fields above say."""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        accel_local.prepare()

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
    def _llm_type(self) -> str:
        return "accel"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        fields = self.model_dump(include={"model", "dtype", "stop", *_SAMPLING_KEYWORDS})
        return {**fields, "engine": repr(self.engine_config)}  # LangChain's caches tell models apart by this

    # Calls

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        engine = accel_local.engine(self.engine_config)
        return accel_local.run(self._answer(self._deltas(engine, messages, stop, kwargs)))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        engine = await accel_local.aengine(self.engine_config)
        return await accel_local.arun(self._answer(self._deltas(engine, messages, stop, kwargs)))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        engine = accel_local.engine(self.engine_config)
        with contextlib.closing(accel_local.stream(self._deltas(engine, messages, stop, kwargs))) as deltas:
            for delta in deltas:
                chunk = self._chunk(delta)
                if run_manager is not None:
                    run_manager.on_llm_new_token(delta.text, chunk=chunk)
                yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        engine = await accel_local.aengine(self.engine_config)
        async with contextlib.aclosing(accel_local.astream(self._deltas(engine, messages, stop, kwargs))) as deltas:
            async for delta in deltas:
                chunk = self._chunk(delta)
                if run_manager is not None:
                    await run_manager.on_llm_new_token(delta.text, chunk=chunk)
                yield chunk

    # Partial prefill

    def accel_prefill(self, messages: list[BaseMessage], **kwargs: Any) -> int:
        """Warm the prefix cache for a call whose messages are these, the last content known only up to here.

        `kwargs` of that call change nothing: they act on decoding. Returns the number of prompt tokens the call will
        find in the cache; 0 if less than one cache block is certain.
        """
        engine = accel_local.engine(self.engine_config)
        prefix = engine.encode_prefix(_chat_messages(messages))
        if len(prefix) < max(1, engine.cache_block_tokens):
            return 0
        return accel_local.run(engine.prefill(prefix, priority=priority.get()))

    async def accel_aprefill(self, messages: list[BaseMessage], **kwargs: Any) -> int:
        engine = await accel_local.aengine(self.engine_config)
        prefix = engine.encode_prefix(_chat_messages(messages))
        if len(prefix) < max(1, engine.cache_block_tokens):
            return 0
        return await accel_local.arun(engine.prefill(prefix, priority=priority.get()))

    def accel_profiles(self) -> list[Profile]:
        """What is known about the speed of its engine."""
        found = accel_local.known_profile(self.engine_config)
        return [found] if found is not None else []

    # Structured output

    def with_structured_output(
        self, schema: dict[str, Any] | type, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """The answer is forced into the JSON schema while it is decoded, and parsed."""
        if kwargs:
            raise ConfigurationError(f"with_structured_output does not know {sorted(kwargs)}.", "leave it out")
        json_schema = convert_to_json_schema(schema)
        wrapped = {"name": json_schema.get("title", "answer"), "schema": json_schema}
        model = self.bind(
            response_format={"type": "json_schema", "json_schema": wrapped},
            ls_structured_output_format={"kwargs": {"method": "json_schema"}, "schema": json_schema},
        )
        parser: Any = JsonOutputParser()
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            parser = PydanticOutputParser(pydantic_object=schema)
        chain: Runnable[LanguageModelInput, dict[str, Any] | BaseModel] = model | parser
        if not include_raw:
            return chain
        parsed = RunnablePassthrough.assign(
            parsed=RunnableLambda(lambda found: found["raw"]) | parser, parsing_error=lambda _: None
        )
        failed = RunnablePassthrough.assign(parsed=lambda _: None)
        return RunnableMap(raw=model) | parsed.with_fallbacks([failed], exception_key="parsing_error")

    # Between LangChain and the engine

    def _deltas(
        self, engine: LLMEngine, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> AsyncGenerator[Delta, None]:
        """Encoded here, in the caller's thread: the host's loop stays free."""
        prompt = engine.encode(_chat_messages(messages))
        return engine.generate(prompt, self._sampling(stop, kwargs), priority=priority.get())

    def _sampling(self, stop: list[str] | None, kwargs: dict[str, Any]) -> Sampling:
        unknown = set(kwargs) - {*_SAMPLING_KEYWORDS, *_CONSTRAINT_KEYWORDS}
        if unknown:
            raise ConfigurationError(
                f"AccelChatModel does not know {', '.join(sorted(unknown))}.",
                f"known per call: stop, {', '.join((*_SAMPLING_KEYWORDS, *_CONSTRAINT_KEYWORDS))}",
            )
        chosen = {name: kwargs.get(name, getattr(self, name)) for name in _SAMPLING_KEYWORDS}
        stops = stop if stop is not None else self.stop
        return Sampling(**chosen, stop=tuple(stops or ()), constraint=_constraint(kwargs))

    async def _answer(self, deltas: AsyncGenerator[Delta, None]) -> ChatResult:
        text: list[str] = []
        async with contextlib.aclosing(deltas):
            async for delta in deltas:
                if delta.error is not None:
                    raise delta.error
                text.append(delta.text)
                if delta.finish_reason is not None:
                    message = AIMessage(
                        content="".join(text),
                        usage_metadata=_usage(delta),
                        response_metadata=self._response_metadata(delta),
                    )
                    return ChatResult(generations=[ChatGeneration(message=message)])
        raise EngineClosed("The engine ended an answer without its last part.")

    def _chunk(self, delta: Delta) -> ChatGenerationChunk:
        if delta.error is not None:
            raise delta.error
        if delta.finish_reason is None:
            return ChatGenerationChunk(message=AIMessageChunk(content=delta.text))
        message = AIMessageChunk(
            content=delta.text,
            usage_metadata=_usage(delta),
            response_metadata=self._response_metadata(delta),
            chunk_position="last",
        )
        return ChatGenerationChunk(message=message)

    def _response_metadata(self, last: Delta) -> dict[str, Any]:
        return {"model_name": self.model, "model_provider": "accel", "finish_reason": last.finish_reason}


def _usage(last: Delta) -> UsageMetadata | None:
    if last.usage is None:
        return None
    return UsageMetadata(
        input_tokens=last.usage.prompt_tokens,
        output_tokens=last.usage.completion_tokens,
        total_tokens=last.usage.prompt_tokens + last.usage.completion_tokens,
        input_token_details={"cache_read": last.usage.cached_tokens},
    )


def _chat_messages(messages: Sequence[BaseMessage]) -> list[dict[str, str]]:
    return [{"role": _role(message), "content": _text(message)} for message in messages]


def _role(message: BaseMessage) -> str:
    match message:
        case ChatMessage():
            return message.role
        case SystemMessage():
            return "system"
        case HumanMessage():
            return "user"
        case AIMessage():
            return "assistant"
        case ToolMessage():
            return "tool"
    raise InvalidRequest(f"AccelChatModel cannot send a {type(message).__name__}.")


def _text(message: BaseMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    parts = []
    for block in message.content:
        if isinstance(block, str):
            parts.append(block)
        elif block.get("type") == "text":
            parts.append(str(block["text"]))
        else:
            raise InvalidRequest(f"AccelChatModel takes text only, not {block.get('type')!r}.")
    return "".join(parts)


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
    try:
        schema = value["json_schema"]["schema"]
    except (KeyError, TypeError) as error:
        raise ConfigurationError(
            "response_format is not understood.",
            "{'type': 'json_schema', 'json_schema': {'name': ..., 'schema': {...}}}",
        ) from error
    return Constraint("json_schema", json.dumps(schema))
