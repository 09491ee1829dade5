"""Tool calls in the text of a model's answer, found while it is being decoded.

A model that is free to call writes `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, as our own form of a
prompt asks it to and as many models were taught, or the JSON alone. One that must call is held to the JSON.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import ToolCallChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk

from .tools import Offer

BEGIN, END = "<tool_call>", "</tool_call>"
_LIST = "[TOOL_CALLS]"  # what Mistral's models put before a list of calls
_NAME = re.compile(r'"name"\s*:\s*"([^"\\]+)"')
_ID_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID_LENGTH = 9  # and letters or digits only: some chat templates take no other


@dataclass(slots=True)
class Piece:
    """What became certain: text of the answer, and whole calls."""

    text: str = ""
    calls: list[ToolCallChunk] = field(default_factory=list)


def call_id(prompt: str, position: int) -> str:
    """A pure function of the prompt, so that a call has the same id however and how often it is answered."""
    number = int.from_bytes(hashlib.blake2b(f"{position} {prompt}".encode("utf-8", "surrogatepass")).digest(), "big")
    letters = []
    for _ in range(_ID_LENGTH):
        number, letter = divmod(number, len(_ID_LETTERS))
        letters.append(_ID_LETTERS[letter])
    return "".join(letters)


class CallReader:
    """Reads one answer. However it is cut into pieces, together they are the same.

    Calls are told as a whole: one that the answer's end cuts off must not look like a call with fewer arguments. It
    becomes an invalid call, whose arguments are its text from `<tool_call>` on.
    """

    def __init__(self, offer: Offer, prompt: str) -> None:
        self._offer = offer
        self._prompt = prompt
        self._held = ""
        self._inside = False  # of a call's markup; `_held` is what follows its beginning
        self._begun = False  # something was told already
        self._calls = 0

    def add(self, text: str) -> Piece:
        self._held += text
        piece = Piece()
        if not self._offer.forced and (self._begun or self._inside or not _may_be_bare(self._held)):
            self._read(piece)
        return piece

    def close(self) -> Piece:
        """The rest, once the answer is over."""
        piece = Piece()
        if self._offer.forced:
            self._read_forced(piece)
        elif not self._begun and not self._inside and _may_be_bare(self._held):
            bare = _bare_calls(self._held, self._offer.names)
            if bare is None:
                self._read(piece, last=True)
            for name, arguments in bare or ():
                self._tell(piece, name, arguments)
        else:
            self._read(piece, last=True)
        return piece

    def _read(self, piece: Piece, *, last: bool = False) -> None:
        while self._held or (self._inside and last):
            if self._inside:
                if not self._read_call(piece, last):
                    return
                continue
            at = self._held.find(BEGIN)
            if at >= 0:
                self._tell_text(piece, self._held[:at].rstrip())
                self._held, self._inside = self._held[at + len(BEGIN) :], True
                continue
            if last:
                # White space behind calls was only there to separate them.
                self._tell_text(piece, self._held.rstrip() if self._calls else self._held)
                self._held = ""
                return
            certain = len(self._held[: len(self._held) - _overlap(self._held, BEGIN)].rstrip())
            self._tell_text(piece, self._held[:certain])
            self._held = self._held[certain:]
            return

    def _read_call(self, piece: Piece, last: bool) -> bool:
        """Tell the call whose text `_held` begins with, if all of it is there: the markup's end may also be part of an
        argument."""
        ends = [match.start() for match in re.finditer(re.escape(END), self._held)]
        for end in ends:
            found = _call(_json(self._held[:end]))
            if found is not None:
                self._tell(piece, *found)
                self._held, self._inside = self._held[end + len(END) :], False
                return True
        if not last:
            return False
        end = ends[0] if ends else len(self._held)
        whole = None if ends else _call(_json(self._held))  # a stop string may have been the markup's end
        if whole is not None:
            self._tell(piece, *whole)
        else:
            self._tell_invalid(piece, self._held[:end])
        self._held, self._inside = self._held[end + len(END) :], False
        return True

    def _read_forced(self, piece: Piece) -> None:
        decoder, text = json.JSONDecoder(), self._held.strip()
        if self._offer.several:
            text = text.removeprefix("[").lstrip()
        while text and text != "]":
            try:
                value, end = decoder.raw_decode(text)
            except ValueError:
                value, end = None, len(text)
            found = _call(value)
            if found is not None:
                self._tell(piece, *found)
            else:
                self._tell_invalid(piece, text[:end])
            text = text[end:].lstrip().removeprefix(",").lstrip()
        self._held = ""

    def _tell_text(self, piece: Piece, text: str) -> None:
        piece.text += text
        self._begun = self._begun or bool(text)

    def _tell(self, piece: Piece, name: str, arguments: Mapping[str, Any]) -> None:
        self._tell_chunk(piece, name, json.dumps(arguments, ensure_ascii=False))

    def _tell_invalid(self, piece: Piece, text: str) -> None:
        named = _NAME.search(text)
        forced = self._offer.choice if self._offer.choice in self._offer.names else None
        # The markup before it keeps LangChain from completing the JSON and taking that for a call.
        self._tell_chunk(piece, named.group(1) if named else forced, BEGIN + text)

    def _tell_chunk(self, piece: Piece, name: str | None, args: str) -> None:
        identity = call_id(self._prompt, self._calls)
        piece.calls.append(tool_call_chunk(name=name, args=args, id=identity, index=self._calls))
        self._calls += 1
        self._begun = True


def _may_be_bare(text: str) -> bool:
    """Whether an answer that begins so may be nothing but calls as JSON; also while there is nothing to see."""
    return text.lstrip()[:1] in ("", "{", "[")


def _bare_calls(text: str, names: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]] | None:
    """The calls of an answer that is nothing else; None: it is something else, perhaps JSON that was asked for."""
    value = _json(text.strip().removeprefix(_LIST))
    calls = [_call(item) for item in (value if isinstance(value, list) else [value])]
    found = [call for call in calls if call is not None and call[0] in names]
    return found if found and len(found) == len(calls) else None


def _call(value: Any) -> tuple[str, Mapping[str, Any]] | None:
    """Name and arguments, if it is a call."""
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        arguments = _json(arguments)
    return (value["name"], arguments) if isinstance(arguments, dict) else None


def _json(text: str) -> Any:
    """None for what is no JSON, as for null."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _overlap(text: str, mark: str) -> int:
    """The length of the longest end of the text that begins the mark."""
    return next((n for n in range(min(len(text), len(mark) - 1), 0, -1) if text.endswith(mark[:n])), 0)


def closed_calls(chunks: list[ChatGenerationChunk]) -> list[dict[str, Any]]:
    """The first calls of tools that are there to their end: another one has begun, or their JSON is closed."""
    found: list[dict[str, Any]] = []
    for chunk in chunks:
        for part in getattr(chunk.message, "tool_call_chunks", ()):
            if part.get("index") == len(found):
                found.append({"name": "", "args": "", "id": None})
            elif not found or part.get("index") != len(found) - 1:
                return []  # who counts in another way may also go on in another way
            call = found[-1]
            call["name"] += part["name"] or ""
            call["args"] += part["args"] or ""
            call["id"] = part["id"] or call["id"]
    closed: list[dict[str, Any]] = []
    for position, call in enumerate(found):
        try:
            args = json.loads(call["args"] or ("{}" if position + 1 < len(found) else ""))
        except ValueError:
            break
        if not isinstance(args, dict) or not call["name"]:
            break
        closed.append({"name": call["name"], "args": args, "id": call["id"], "type": "tool_call"})
    return closed
