"""Answers of a chat model as objects of a schema."""

from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser, PydanticToolsParser
from langchain_core.runnables import Runnable, RunnableLambda, RunnableMap, RunnablePassthrough
from langchain_core.utils.function_calling import convert_to_json_schema
from langchain_core.utils.pydantic import is_basemodel_subclass

from accel.errors import ConfigurationError

from .tools import openai_tools

METHODS = ("json_schema", "function_calling", "json_mode")


def structured(
    model: BaseChatModel,
    schema: dict[str, Any] | type | None,
    method: str,
    *,
    include_raw: bool,
    strict: bool | None,
) -> Runnable[LanguageModelInput, Any]:
    """The model, its answer forced into the schema while it is decoded, and a parser of the answer.

    schema: a pydantic class, of version 2 or 1, gives its instances; a TypedDict or a JSON schema gives dicts; none,
    for "json_mode", allows any JSON object. strict: OpenAI's reading of a schema, by which every property is required.
    """
    if method not in METHODS:
        raise ConfigurationError(f"with_structured_output does not know the method {method!r}.", f"known: {METHODS}")
    if schema is None and method != "json_mode":
        raise ConfigurationError(f"The method {method!r} needs a schema.", "give one, or method='json_mode'")
    asked = {} if strict is None else {"strict": strict}
    shown = {"kwargs": {"method": method, **asked}, "schema": convert_to_json_schema(schema) if schema else None}
    if method == "function_calling":
        assert schema is not None
        answering, parser = _by_tool(model, schema, strict, shown)
    else:
        answering, parser = _by_json(model, schema, strict, shown)
    if not include_raw:
        return answering | parser
    parsed = RunnablePassthrough.assign(
        parsed=RunnableLambda(lambda found: found["raw"]) | parser, parsing_error=lambda _: None
    )
    failed = RunnablePassthrough.assign(parsed=lambda _: None)
    return RunnableMap(raw=answering) | parsed.with_fallbacks([failed], exception_key="parsing_error")


def _by_json(
    model: BaseChatModel, schema: dict[str, Any] | type | None, strict: bool | None, shown: dict[str, Any]
) -> tuple[Runnable[LanguageModelInput, AIMessage], Runnable[Any, Any]]:
    """Text in JSON; streamed, it is parsed as far as it has come. Mode "json_mode" is the same: what is asked for in
    the prompt then also describes the schema."""
    form: dict[str, Any] = {"type": "json_object"}
    if schema is not None:
        json_schema = convert_to_json_schema(schema, strict=strict)
        named = {"name": json_schema.get("title", "answer"), "schema": json_schema}
        form = {"type": "json_schema", "json_schema": named}
    parser: Runnable[Any, Any] = JsonOutputParser()
    if _is_model(schema):
        parsed_into: Any = schema
        parser = PydanticOutputParser(pydantic_object=parsed_into)
    return model.bind(response_format=form, ls_structured_output_format=shown), parser


def _by_tool(
    model: BaseChatModel, schema: dict[str, Any] | type, strict: bool | None, shown: dict[str, Any]
) -> tuple[Runnable[LanguageModelInput, AIMessage], Runnable[Any, Any]]:
    """One call of a tool that takes the schema."""
    name = openai_tools([schema])[0]["function"]["name"]
    answering = model.bind_tools([schema], tool_choice=name, strict=strict, ls_structured_output_format=shown)
    parser: Runnable[Any, Any] = JsonOutputKeyToolsParser(key_name=name, first_tool_only=True)
    if _is_model(schema):
        assert isinstance(schema, type)
        parser = PydanticToolsParser(tools=[schema], first_tool_only=True)
    return answering, RunnableLambda(_complete) | parser


def _complete(message: AIMessage) -> AIMessage:
    """LangChain's parsers take an answer without a valid call for one without a result."""
    if message.invalid_tool_calls:
        cut = message.response_metadata.get("finish_reason") == "length"
        text = str(message.invalid_tool_calls[0]["args"])
        why = "was cut off: raise max_tokens" if cut else "is not valid"
        raise OutputParserException(f"The call {why}. It was {text}", llm_output=text)
    return message


def _is_model(schema: Any) -> bool:
    return isinstance(schema, type) and is_basemodel_subclass(schema)
