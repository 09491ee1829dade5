"""What the model server says, and how long it takes: functions of the text."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from typing import Any

DIMENSIONS = 64
STALLS = "never answered"
_WORDS = "tide harbour signal meadow copper lantern orbit granite velvet summit ember willow prism cargo".split()
_TOOLS, _QUESTION, _OUTPUT = "<Tools>\n```json\n", "<User Question>\n", "<Output>"
"""In LlamaIndex's request for sub-questions: the last tools are those of the question."""


def seconds(text: str) -> float:
    return 0.05 + 0.25 * _fraction("seconds", text)


def said(prompt: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """A chat message: a call of the next tool, until each was called once, if tools may be called; an answer that fits
    a schema; or words."""
    tools = [each["function"] for each in body.get("tools") or () if body.get("tool_choice") != "none"]
    called = sum(len(message.get("tool_calls") or ()) for message in body["messages"])
    if called < len(tools):
        tool, question = tools[called], _asked(body["messages"])
        arguments = json.dumps(fitting(tool["parameters"], question))
        call = {"id": f"call_{called}", "type": "function", "function": {"name": tool["name"], "arguments": arguments}}
        return {"content": "", "tool_calls": [call]}
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        return {"content": json.dumps(fitting(form["json_schema"]["schema"], prompt))}
    return {"content": reply(prompt)}


def reply(prompt: str) -> str:
    """Rewritings of a question, sub-questions for tools, a grade, or an answer."""
    if _TOOLS in prompt:
        return _sub_questions(prompt)
    if "search queries" in prompt:
        return "\n".join(f"{_words(f'{prompt} {n}', 3)} {n}" for n in range(1, 4))
    if "yes or no" in prompt:
        return "yes" if _fraction("grade", prompt) < 0.6 else "no"
    return f"It is {_words(prompt, 24)}."


def fitting(schema: Mapping[str, Any], text: str) -> Any:
    """A JSON value that fits a schema; texts are the text's own last words."""
    if "enum" in schema:
        return schema["enum"][int(_fraction("enum", text) * len(schema["enum"]))]
    kind = schema.get("type")
    if kind == "object":
        return {name: fitting(each, text) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        return [fitting(schema["items"], text)]
    if kind in ("integer", "number"):
        return int(_fraction("number", text) * 10)
    return _fraction("yes", text) < 0.6 if kind == "boolean" else " ".join(text.rstrip("?.!").split()[-2:])


def _asked(messages: list[dict[str, Any]]) -> str:
    return next((str(each["content"]) for each in reversed(messages) if each["role"] == "user"), "")


def _sub_questions(prompt: str) -> str:
    """One for each tool, in LlamaIndex's form."""
    tools = json.loads(prompt.rpartition(_TOOLS)[2].partition("```")[0])
    question = prompt.rpartition(_QUESTION)[2].partition(_OUTPUT)[0].strip()
    items = [{"sub_question": f"{question} ({what})", "tool_name": name} for name, what in tools.items()]
    return f"```json\n{json.dumps({'items': items}, indent=4)}\n```"


def vector(text: str) -> list[float]:
    """Near for texts that share words."""
    found = [1e-3] * DIMENSIONS
    for word in text.lower().split():
        digest = hashlib.sha256(word.encode()).digest()
        found[digest[0] % DIMENSIONS] += 1.0 + digest[1] / 512
    length = sum(x * x for x in found) ** 0.5
    return [x / length for x in found]


def _fraction(salt: str, text: str) -> float:
    return int.from_bytes(hashlib.sha256(f"{salt}:{text}".encode()).digest()[:6], "big") / 2**48


def _words(text: str, n: int) -> str:
    return " ".join(random.Random(text).choices(_WORDS, k=n))
