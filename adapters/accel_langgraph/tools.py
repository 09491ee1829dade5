"""Tools of a chat model: what a call offers, and what may then be decoded."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool

from accel.engine import Constraint
from accel.errors import ConfigurationError

TOOL_KEYWORDS = ("tools", "tool_choice", "parallel_tool_calls")

MAX_CALLS = 8
"""Of one forced answer: a weak model goes on with the same call for as long as it may."""

Tool = Mapping[str, Any]
"""In OpenAI's form: {"type": "function", "function": {"name": ..., "description": ..., "parameters": JSON schema}}."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of one call. choice: "auto", "required", or the name of the tool that must be called. several: whether
    a forced answer may be more than one call."""

    tools: tuple[Tool, ...]
    choice: str = "auto"
    several: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tool["function"]["name"] for tool in self.tools)

    @property
    def forced(self) -> bool:
        return self.choice != "auto"

    def constraint(self) -> Constraint | None:
        """A call, {"name": ..., "arguments": {...}}, of one of the tools, or a list of calls; None: any answer."""
        if not self.forced:
            return None
        functions = [tool["function"] for tool in self.tools]
        allowed = [function for function in functions if self.choice in ("required", function["name"])]
        if not self.several and not any(map(_arguments, allowed)):
            # Nothing is left to decide but which: no grammar, in which a weak model might lose itself in white space.
            return Constraint("choice", tuple(dict.fromkeys(_bare(function["name"]) for function in allowed)))
        shared: dict[str, Any] = {}
        calls = [_call_schema(function, str(number), shared) for number, function in enumerate(allowed)]
        schema = calls[0] if len(calls) == 1 else {"anyOf": calls}
        if self.several:
            schema = {"type": "array", "items": schema, "minItems": 1, "maxItems": MAX_CALLS}
        return Constraint("json_schema", json.dumps({**schema, "$defs": shared} if shared else schema))


def openai_tools(tools: Sequence[Any], *, strict: bool | None = None) -> list[dict[str, Any]]:
    """Functions, pydantic classes, TypedDicts, LangChain's tools and schemas in any of its forms, in OpenAI's form."""
    return [convert_to_openai_tool(tool, strict=strict) for tool in tools]


def chosen(choice: Any, names: Sequence[str]) -> str:
    """A tool choice in any of the forms in use as "auto", "required", "none" or a tool's name."""
    if isinstance(choice, Mapping):
        choice = choice.get("function", choice).get("name", choice.get("type"))
    if choice is None or choice is False:
        return "auto"
    if choice is True or choice == "any":
        return "required"
    if choice in names or choice in ("auto", "required", "none"):
        return str(choice)
    known = ", ".join(map(repr, ("auto", "any", "none", *names)))
    raise ConfigurationError(f"tool_choice={choice!r} names none of the tools.", f"give one of {known}")


def offer(kwargs: Mapping[str, Any]) -> Offer | None:
    """What a call's keywords offer; None: no tools."""
    if kwargs.get("tools") is None:
        left = [name for name in TOOL_KEYWORDS if kwargs.get(name) is not None]
        if left:
            raise ConfigurationError(f"{' and '.join(left)} came without tools.", "give tools, or use bind_tools")
        return None
    tools = kwargs["tools"]
    if not isinstance(tools, Sequence) or not tools:
        raise ConfigurationError("tools must be a list of at least one tool.", "leave tools out where there are none")
    found = tuple(openai_tools(tools))
    for tool in found:
        if "name" not in tool.get("function", {}):
            raise ConfigurationError(
                f"The tool {json.dumps(tool, default=repr)[:200]} is no function.", "offer functions only"
            )
    names = [tool["function"]["name"] for tool in found]
    choice = chosen(kwargs.get("tool_choice"), names)
    return None if choice == "none" else Offer(found, choice, bool(kwargs.get("parallel_tool_calls")))


def _arguments(function: Mapping[str, Any]) -> bool:
    """Whether a function takes any."""
    parameters = function.get("parameters") or {}
    silent = {"type", "properties", "required", "title", "description", "additionalProperties"}
    return bool(set(parameters) - silent or parameters.get("properties") or parameters.get("additionalProperties"))


def _bare(name: str) -> str:
    return json.dumps({"name": name, "arguments": {}}, ensure_ascii=False)


def _call_schema(function: Mapping[str, Any], number: str, shared: dict[str, Any]) -> dict[str, Any]:
    """The schema of a call. What the schema of its arguments defines for itself moves to `shared`, under names that no
    other tool has."""
    parameters = dict(function.get("parameters") or {"type": "object", "properties": {}})
    for place in ("$defs", "definitions"):
        for name, definition in parameters.pop(place, {}).items():
            shared[f"{number}.{name}"] = _moved(definition, number)
    parameters.setdefault("type", "object")
    parameters.setdefault("additionalProperties", False)
    arguments = _moved(parameters, number)
    if f'"#/$defs/{number}"' in json.dumps([arguments, shared]):
        shared[number] = arguments
    return {
        "type": "object",
        "properties": {"name": {"type": "string", "enum": [function["name"]]}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _moved(schema: Any, number: str) -> Any:
    """With references to where `_call_schema` puts what they name."""
    if isinstance(schema, list):
        return [_moved(item, number) for item in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {key: _moved(value, number) for key, value in schema.items()}
    reference = moved.get("$ref")
    if isinstance(reference, str):
        for place in ("#/$defs/", "#/definitions/"):
            if reference.startswith(place):
                moved["$ref"] = f"#/$defs/{number}.{reference.removeprefix(place)}"
        if reference == "#":
            moved["$ref"] = f"#/$defs/{number}"
    return moved
