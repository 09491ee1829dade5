"""Tokens of simulated models: pieces of words, or a real model's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from accel.engine import ChatMessage, Prompt
from accel.errors import ConfigurationError, MissingExtra
from accel.process import forks

_PIECE = re.compile(r"<\|\w+\|>| ?\w{1,6}|\s|[^\w\s]")


class Tokenizer(Protocol):
    def encode(self, prompt: Prompt) -> list[int]: ...

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def pieces(self, text: str) -> list[str]:
        """The texts of an answer's tokens."""


class PieceTokenizer:
    """A token is up to six letters of a word with the space before it, or one other character. Reversible: ids are
    given out as pieces are first seen. Thread-safe."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._pieces: list[str] = []
        self._lock = forks.lock()

    def encode(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            return self._encode(prompt)
        if all(isinstance(item, int) for item in prompt):
            return [item for item in prompt if isinstance(item, int)]
        return self._encode(_render([m for m in prompt if not isinstance(m, int)]) + "<|assistant|>\n")

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]:
        if not messages or not isinstance(messages[-1].get("content"), str):
            return []
        # Whatever comes next can only lengthen the last piece.
        return self._encode(_render(messages).removesuffix("<|end|>\n"))[:-1]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self._pieces[i] if 0 <= i < len(self._pieces) else f" w{i}" for i in ids)

    def pieces(self, text: str) -> list[str]:
        return _PIECE.findall(text)

    def _encode(self, text: str) -> list[int]:
        known = self._ids
        return [known[piece] if piece in known else self._new(piece) for piece in _PIECE.findall(text)]

    def _new(self, piece: str) -> int:
        with self._lock:
            if piece not in self._ids:
                self._pieces.append(piece)
                self._ids[piece] = len(self._pieces) - 1
            return self._ids[piece]


def _render(messages: Sequence[ChatMessage]) -> str:
    return "".join(f"<|{message['role']}|>\n{message['content']}<|end|>\n" for message in messages)


class ModelTokenizer:
    """The tokens of a model in Hugging Face format."""

    def __init__(self, folder: str) -> None:
        try:
            from transformers import AutoTokenizer

            from accel_vllm.chat import PromptEncoder
        except ImportError as error:
            raise MissingExtra("A simulated engine with a model's tokens", "vllm", error.name or "") from error
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{folder!r} has no tokenizer: {error}", "give a model's folder") from error
        self._encoder = PromptEncoder(self._tokenizer)

    def encode(self, prompt: Prompt) -> list[int]:
        return self._encoder.encode(prompt)

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]:
        return self._encoder.encode_prefix(messages)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids)))

    def pieces(self, text: str) -> list[str]:
        ids = self._tokenizer.encode(text, add_special_tokens=False)
        texts = [str(self._tokenizer.decode(ids[:end])) for end in range(len(ids) + 1)]
        return [after.removeprefix(before) for before, after in zip(texts, texts[1:], strict=False)]


def tokenizer_of(folder: str) -> Tokenizer:
    return ModelTokenizer(folder) if folder else PieceTokenizer()
