"""What agents do turn by turn: a message calls tools, and their results follow it as messages.

Adapters' views of messages use these names. A message says under `CALLS` what it calls: dicts with `NAME`, `ARGS` and
`ID`; the message with a result says under `ANSWERS` which call it belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .dumps import Dump
from .extract import Partial
from .values import Tree

MESSAGES, CONTENT = "messages", "content"
ROLES = frozenset(("user", "assistant", "system", "tool", "function", "developer", "human", "ai", "model"))
"""Whose a message is, as nearly everybody says it: nobody's name."""
CALLS, NAME, ARGS, ID = "tool_calls", "name", "args", "id"
ANSWERS = "tool_call_id"
SOME, NONE = "calls", "none"


@dataclass(frozen=True, slots=True)
class Called:
    """Of a call its name; of a message whether it calls anything, `SOME` or `NONE`."""

    def __str__(self) -> str:
        return "|called"

    def of(self, value: Tree) -> str | None:
        """None if the value is neither, or not yet known to its end."""
        if not isinstance(value, dict) or isinstance(value.get(CONTENT), Partial):
            return None
        if CONTENT in value:
            return SOME if value.get(CALLS) else NONE
        name = value.get(NAME)
        return str(name) if isinstance(name, str) else None


CALLED = Called()


@dataclass(frozen=True, slots=True)
class Turn:
    """How a program adds an answer and the results of its calls to its messages."""

    said: Mapping[str, Tree] = field(default_factory=dict)
    """What the answer's message has beside what was answered,"""
    told: Mapping[str, Tree] = field(default_factory=dict)
    """and what the messages of results have."""
    named: bool = False
    """Whether those say what was called."""
    style: Dump | None = None
    """How results are printed that are no texts."""

    def messages(self, answer: Mapping[str, Any], results: Sequence[Tree]) -> list[Tree]:
        """Results in the order of the calls; what is missing of them stays as it is."""
        added: list[Tree] = [{**answer, **self.said}]
        for call, result in zip(answer.get(CALLS, ()), results, strict=True):
            shown = self.style.shown(result) if isinstance(result, list | dict) and self.style is not None else result
            name = {NAME: call[NAME]} if self.named else {}
            added.append({**self.told, **name, CONTENT: shown, ANSWERS: call.get(ID)})
        return added

    def __str__(self) -> str:
        said, told = (
            json.dumps({k: v for k, v in frame.items() if isinstance(v, str)}) for frame in (self.said, self.told)
        )
        return f"{said}, {told}{' with names' if self.named else ''}{self.style or ''}"
