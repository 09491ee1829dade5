"""LangChain's messages and tools as the messages of an engine's prompt.

Where the model's chat template knows tools, it renders them: the first message then carries them as `tools`, the others
`tool_calls` and `tool_call_id`, all in the form that Hugging Face's templates take. Where it doesn't, they become plain
text in the form many models were taught: `<tools>`, `<tool_call>` and `<tool_response>`.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from accel import engine as engines
from accel.errors import InvalidRequest

from .tool_calls import BEGIN, END
from .tools import Offer, Tool

_RESPONSE_END = "\n</tool_response>"
_NOT_SENT = frozenset(
    ("tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "thinking", "redacted_thinking", "reasoning")
)
"""Blocks of an answer's content that say again what `tool_calls` says, or are not for the next prompt."""


def needs_tools(messages: Sequence[BaseMessage], offer: Offer | None) -> bool:
    """Whether it makes a difference that a chat template knows tools."""
    return offer is not None or any(
        isinstance(message, ToolMessage) or (isinstance(message, AIMessage) and message.tool_calls)
        for message in messages
    )


def knows_tools(encode: Callable[[Sequence[engines.ChatMessage]], Sequence[int]]) -> bool:
    """Whether an engine's chat template renders tools and calls: whether they make a difference to the prompt."""
    call = {"id": "abcdefgh1", "type": "function", "function": {"name": "look_up", "arguments": {"word": "sea"}}}
    parameters = {"type": "object", "properties": {"word": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "look_up", "description": "Look up.", "parameters": parameters}}
    asked = {"role": "user", "content": "Look it up."}
    said = {"role": "assistant", "content": ""}
    found = {"role": "tool", "content": "A lot of water.", "name": "look_up", "tool_call_id": "abcdefgh1"}
    try:
        if list(encode([{**asked, "tools": [tool]}])) == list(encode([asked])):
            return False
        with_call = list(encode([{**asked, "tools": [tool]}, {**said, "tool_calls": [call]}, found]))
        return with_call != list(encode([{**asked, "tools": [tool]}, said, found]))
    except InvalidRequest:
        return False


def native(messages: Sequence[BaseMessage], offer: Offer | None) -> list[engines.ChatMessage]:
    """For a chat template that knows tools."""
    turns: list[engines.ChatMessage] = []
    for message in messages:
        turn: dict[str, Any] = {"role": _role(message), "content": _text(message)}
        if isinstance(message, AIMessage) and message.tool_calls:
            turn["tool_calls"] = [_function_call(call) for call in message.tool_calls]
        if isinstance(message, ToolMessage):
            turn["tool_call_id"] = message.tool_call_id
            if message.name:
                turn["name"] = message.name
        turns.append(turn)
    if offer is not None and turns:
        turns[0] = {**turns[0], "tools": [_shown(tool) for tool in offer.tools]}
    return turns


def plain(messages: Sequence[BaseMessage], offer: Offer | None, *, cut: bool = False) -> list[engines.ChatMessage]:
    """For any chat template. Results of several calls are one turn of the user: templates may want turns to alternate.

    cut: the last content is known only up to here, so nothing is put behind it. What tools are on offer is put before
    everything else, so that it also begins other prompts.
    """
    turns: list[dict[str, Any]] = []
    last_was_result = False
    for message in messages:
        text = _text(message)
        is_result = isinstance(message, ToolMessage)
        if isinstance(message, AIMessage):
            calls = [*map(_written, message.tool_calls), *map(_written_invalid, message.invalid_tool_calls)]
            text = "\n".join([*([text] if text else []), *calls])
        if is_result:
            text = f"<tool_response>\n{text}" + ("" if cut and message is messages[-1] else _RESPONSE_END)
        if is_result and last_was_result:
            turns[-1]["content"] += f"\n{text}"
        else:
            turns.append({"role": "user" if is_result else _role(message), "content": text})
        last_was_result = is_result
    if offer is not None:
        said = _instructions(offer)
        if turns and turns[0]["role"] == "system":
            turns[0]["content"] = f"{said}\n\n{turns[0]['content']}"
        else:
            turns.insert(0, {"role": "system", "content": said})
    return list(turns)


def _instructions(offer: Offer) -> str:
    tools = "\n".join(json.dumps(_shown(tool), ensure_ascii=False) for tool in offer.tools)
    return (
        "These tools can be called, each given with the JSON schema of its arguments:\n"
        f"<tools>\n{tools}\n</tools>\n"
        "To call one, answer with its name and arguments as JSON in this form, once per call:\n"
        f'{BEGIN}\n{{"name": <name of the tool>, "arguments": <object with its arguments>}}\n{END}\n'
        "The result is given to you in <tool_response>. If no tool is needed, just answer."
    )


def _shown(tool: Tool) -> dict[str, Any]:
    """A tool without what is not for the model to read."""
    function = tool["function"]
    shown = {key: function[key] for key in ("name", "description") if key in function}
    return {
        "type": "function",
        "function": {**shown, "parameters": function.get("parameters") or {"type": "object", "properties": {}}},
    }


def _function_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["args"]}}


def _written(call: ToolCall) -> str:
    said = json.dumps({"name": call["name"], "arguments": call["args"]}, ensure_ascii=False)
    return f"{BEGIN}\n{said}\n{END}"


def _written_invalid(call: InvalidToolCall) -> str:
    return call["args"] or ""


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
        elif not (isinstance(message, AIMessage) and block.get("type") in _NOT_SENT):
            raise InvalidRequest(f"AccelChatModel takes text only, not {block.get('type')!r}.")
    return "".join(parts)
