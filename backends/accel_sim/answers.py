"""What a simulated model answers: a deterministic follower of instructions.

The answer obeys the form that the prompt asks for, or the constraint, and is made of the prompt's own words, so that a
search with it finds related text. It is a pure function of the prompt's text, of the constraint and, unless greedy, of
the sampling's seed.
"""

from __future__ import annotations

import functools
import hashlib
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from accel.engine import Constraint, Sampling
from accel.errors import InvalidRequest

from . import instructions
from .filling import instance
from .instructions import Field, Kind
from .matching import matching
from .prose import Writer, content_words

_TOOL_USE = 0.75
"""Share of requests with tools on offer that are answered by a call of one."""
_PARAGRAPH_WORDS = 90


def answer(prompt: str, sampling: Sampling) -> str:
    """The answer to a prompt, a chat's whole text or plain text. Never cut to `max_tokens` or stop strings. Raises
    InvalidRequest for a constraint that can't be kept."""
    constraint = sampling.constraint
    dice = random.Random(_digest(prompt, sampling.seed if sampling.temperature > 0 else None, constraint))
    chat = _chat(prompt)
    writer = Writer(dice, content_words(f"{chat.asked}\n{chat.found}"))
    if constraint is not None:
        return _constrained(constraint, writer)
    offered = _tools(chat.system)
    if offered and not chat.found and dice.random() < _TOOL_USE:
        return _tool_call(*dice.choice(offered), writer)
    # Tools come with instructions of their own, which are not for the answer.
    text, kind = _instruction(chat.asked, "" if offered else chat.system)
    return _BY_KIND["prose" if chat.found else kind](text, writer)


def _digest(prompt: str, seed: int | None, constraint: Constraint | None) -> int:
    key = f"{seed}\0{constraint and (constraint.kind, constraint.value)}\0{prompt}"
    return int.from_bytes(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest(), "big")


# --- the prompt

# Of our own rendering, of ChatML and of Llama 3.
_TURN = re.compile(
    r"<\|(?:im_start\|>|start_header_id\|>)?(system|user|assistant|tool|ipython)(?:<\|end_header_id)?(?:\|>)?\s*\n"
)
_TURN_END = re.compile(r"\s*<\|(?:end|im_end|eot_id)\|>\s*$")


@dataclass(frozen=True, slots=True)
class _Chat:
    system: str
    asked: str  # by the last message of the user
    found: str  # by tools, since then


def _chat(prompt: str) -> _Chat:
    marks = list(_TURN.finditer(prompt))
    if not marks:
        return _Chat("", prompt, "")
    system, asked, found, last = [], "", [], ""
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        content = _TURN_END.sub("", prompt[mark.end() : following.start() if following else len(prompt)])
        role = mark.group(1)
        if role == "system":
            system.append(content)
        elif role in ("tool", "ipython") or (role == "user" and content.startswith("<tool_response>")):
            found.append(content)
        elif role == "user":
            asked, found = content, []
        last = content or last
    return _Chat("\n".join(system), asked or last, "\n".join(found))


def _instruction(asked: str, system: str) -> tuple[str, Kind]:
    """The part of the prompt that says what the answer is to be, and that."""
    for text in (*instructions.regions(asked), *instructions.regions(system)):
        if kind := instructions.read(text):
            return text, kind
    return "", "prose"


# --- constraints and tools


def _constrained(constraint: Constraint, writer: Writer) -> str:
    value = constraint.value
    if constraint.kind == "choice":
        if not value or isinstance(value, str):
            raise InvalidRequest("A choice is made from a tuple of answers.", "give at least one")
        return writer.dice.choice(value)
    if not isinstance(value, str):
        raise InvalidRequest(f"A constraint of kind {constraint.kind!r} is given as text.")
    if constraint.kind == "regex":
        return matching(value, writer.dice)
    return json.dumps(instance(value, writer), ensure_ascii=False)


@functools.lru_cache(maxsize=64)
def _tools(system: str) -> tuple[tuple[str, str], ...]:
    """Name and JSON schema of the arguments of every tool that a system message offers."""
    if '"parameters"' not in system:
        return ()
    decoder, found, at = json.JSONDecoder(), [], system.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(system, at)
        except ValueError:
            end, value = at + 1, None
        tool = value.get("function", value) if isinstance(value, dict) else None
        if isinstance(tool, dict) and isinstance(tool.get("name"), str) and "parameters" in tool:
            found.append((tool["name"], json.dumps(tool["parameters"] or {"type": "object"})))
        at = system.find("{", end)
    return tuple(found)


def _tool_call(name: str, parameters: str, writer: Writer) -> str:
    call = {"name": name, "arguments": instance(parameters, writer)}
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


# --- kinds of answers


def _yes_or_no(text: str, writer: Writer) -> str:
    return _and_why("yes" if writer.dice.random() < 0.7 else "no", instructions.after_yes_no(text), writer)


def _and_why(short: str, said: str, writer: Writer) -> str:
    return f"{short}. {writer.sentence()}" if instructions.wants_reason(said) else short


def _choice(text: str, writer: Writer) -> str:
    return writer.dice.choice(instructions.options(text))


def _score(text: str, writer: Writer) -> str:
    return _and_why(str(_score_number(text, writer)), text, writer)


def _score_number(text: str, writer: Writer) -> int | float:
    low, high = instructions.score_range(text) or ("0", "10")
    least, most = sorted((float(low), float(high)))
    if "." in low + high or (least, most) == (0, 1):
        return min(most, max(least, round(least + (most - least) * writer.dice.random(), 2)))
    return writer.dice.randint(int(least), int(most))


def _list(text: str, writer: Writer) -> str:
    items, marker = _items(text, writer), instructions.marker(text)
    if marker == "commas":
        return ", ".join(items)
    if marker == "numbers":
        return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
    return "\n".join(f"- {item}" if marker == "bullets" else item for item in items)


def _items(text: str, writer: Writer) -> list[str]:
    count = writer.dice.randint(*(instructions.count(text) or (3, 6)))
    length = instructions.length(text)
    most = min(14, length.most) if length and length.unit == "words" else 14
    least = min(5, most)
    if instructions.marker(text) == "commas":
        least, most = min(1, most), min(3, most)
    return [writer.phrase(least, most) for _ in range(count)]


def _json(text: str, writer: Writer) -> str:
    fields = instructions.fields(text)
    value: object
    if instructions.json_list(text):
        value = [_json_object(fields, "", writer) if fields else item for item in _items(text, writer)]
    else:
        value = _json_object(fields or [Field("answer", "")], text, writer)
    if instructions.fenced(text):
        return f"```json\n{json.dumps(value, ensure_ascii=False, indent=2)}\n```"
    return json.dumps(value, ensure_ascii=False)


def _json_object(fields: list[Field], text: str, writer: Writer) -> dict[str, object]:
    """`text`: what says more about the values."""
    verdict = fields[0].name if instructions.yes_no(text) else ""
    return {
        field.name: ("yes" if writer.dice.random() < 0.7 else "no")
        if field.name == verdict
        else _json_value(field, text, writer)
        for field in fields
    }


_NUMBER_NAMES = ("score", "rating", "grade", "rank", "confidence", "count", "number", "year", "age", "price")
_PLURAL = re.compile(r".*[a-z](?<!s)(?<!i)(?<!u)s")  # no class, basis or status


def _json_value(field: Field, text: str, writer: Writer) -> object:
    name, hint = field.name.lower(), field.hint
    if re.search(r"\b(?:list|array)\b", hint) or (not hint and _PLURAL.fullmatch(name)):
        return [writer.phrase(2, 6) for _ in range(writer.dice.randint(2, 4))]
    if re.search(r"\bbool|\btrue\b", hint) or name.startswith(("is_", "has_", "needs_", "should_")):
        return writer.dice.random() < 0.5
    if re.search(r"\b(?:number|int|integer|float)\b", hint) or (not hint and name.endswith(_NUMBER_NAMES)):
        said = hint if instructions.score_range(hint) else text
        return _score_number(said, writer)
    return writer.phrase()


def _prose(text: str, writer: Writer) -> str:
    length = instructions.length(text)
    if length is None:
        return writer.prose(writer.dice.randint(40, 120))
    count = writer.dice.randint(length.least, length.most)
    if length.unit == "words":
        return writer.prose(count)
    if length.unit == "sentences":
        return writer.sentences(count)
    return "\n\n".join(writer.prose(_PARAGRAPH_WORDS + writer.dice.randint(-10, 10)) for _ in range(count))


_BY_KIND: dict[Kind, Callable[[str, Writer], str]] = {
    "json": _json,
    "yes_no": _yes_or_no,
    "score": _score,
    "choice": _choice,
    "list": _list,
    "prose": _prose,
}
