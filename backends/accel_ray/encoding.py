"""A language model's tokenizer on the program's side, so that prompts are encoded without asking an actor."""

import logging
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from accel.engine import ChatMessage, EngineConfig, Prompt
from accel.errors import ModelNotFound, RequestError
from accel_local.models import model_path

log = logging.getLogger("accel.ray")

PROBES: tuple[Prompt, ...] = (
    "The sea is 12,345.67 km\u00b2 wide\n\n\t\u2014 na\u00efve \u6771\u4eac \U0001f642 <|im_end|></s>",
    ({"role": "user", "content": "  Why?\nBecause. "},),
    ({"role": "system", "content": "Be short."}, {"role": "user", "content": "1) a\n2) b"}),
)
"""Prompts that different tokenizers and chat templates encode differently. A tokenizer that agrees on them is the
engine's own."""


class Encoder(Protocol):
    def encode(self, prompt: Prompt) -> list[int]: ...

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]: ...


def probe(encoder: Encoder) -> tuple[tuple[int, ...], ...]:
    """The token ids of the probes; none for one that the chat template rejects."""
    found: list[tuple[int, ...]] = []
    for prompt in PROBES:
        try:
            found.append(tuple(encoder.encode(prompt)))
        except RequestError:
            found.append(())
    return tuple(found)


class LocalEncoder:
    """One thread at a time: tokenizers of transformers may be entered by one only."""

    def __init__(self, tokenizer: Any) -> None:
        from accel_vllm.chat import PromptEncoder

        self._encoder = PromptEncoder(tokenizer)
        self._lock = threading.Lock()

    def encode(self, prompt: Prompt) -> list[int]:
        with self._lock:
            return self._encoder.encode(prompt)

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]:
        with self._lock:
            return self._encoder.encode_prefix(messages)


def local_encoder(config: EngineConfig[Any], probes: Sequence[tuple[int, ...]]) -> Encoder | None:
    """The tokenizer of the config's model on this machine, if it encodes the probes as the engine does. Blocks for
    seconds."""
    model = getattr(config, "model", None)
    if not isinstance(model, str):
        return None
    try:
        from transformers import AutoTokenizer

        # Nothing is downloaded for this.
        encoder = LocalEncoder(AutoTokenizer.from_pretrained(model_path(model), local_files_only=True))
    except (ImportError, OSError, ValueError, ModelNotFound) as error:
        log.info("%s: prompts are encoded by the backend (%s)", config.label, error)
        return None
    if probe(encoder) != tuple(probes):
        log.info("%s: prompts are encoded by the backend; its tokenizer is another one", config.label)
        return None
    return encoder
