"""A model from its folder onto the device, and how much memory its KV cache takes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from accel.errors import ConfigurationError, EngineStartError, MissingExtra, ModelNotFound, NotEnoughMemory
from accel_local.models import model_path
from accel_transformers.config import TransformersConfig

GIB = 2**30
DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2}
CPU_KV_CACHE_GIB = 1.0


@dataclass(frozen=True)
class Loaded:
    model: Any
    tokenizer: Any
    ends: tuple[int, ...]
    """Ids that end an answer."""
    vocabulary: int
    """Ids from 0 to below this can be in a prompt."""
    outputs: int
    """How many tokens its scores are of."""
    max_model_len: int
    kv_tokens: tuple[int, ...]
    """How many tokens the KV cache may hold, best first."""


def load(config: TransformersConfig) -> Loaded:
    """Seconds. Raises ModelNotFound, MissingExtra, ConfigurationError, NotEnoughMemory or EngineStartError."""
    folder = model_path(config.model)
    local = Path(folder).is_dir()
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise MissingExtra("The transformers engine", "transformers", error.name or "") from error
    device = config.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if config.dtype != "auto" and config.dtype not in DTYPES:
        raise ConfigurationError(f"There is no dtype {config.dtype!r}.", f"one of auto, {', '.join(DTYPES)}")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise EngineStartError("torch finds no CUDA device.", "leave device out, or install torch for CUDA")
    if local and device == "cpu":
        _check_weights(Path(folder), config.dtype)
    dtype = "auto" if config.dtype == "auto" else getattr(torch, config.dtype)
    try:
        with _without_progress_bars():
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=local)
            tokenizer.encode("")  # the first use turns off truncation, which must not happen while another decodes
            model = AutoModelForCausalLM.from_pretrained(
                folder, dtype=dtype, attn_implementation=config.attention, local_files_only=local
            )
        model = model.to(device).eval()
    except torch.OutOfMemoryError as error:
        raise NotEnoughMemory(
            f"{config.model!r} does not fit on {device}: {error}", "take a smaller model or dtype, or free memory"
        ) from error
    except OSError as error:
        if local:
            raise EngineStartError(f"transformers could not load {config.model!r}: {error}") from error
        raise ModelNotFound(
            f"Model {config.model!r} is not on this machine, and no model hub is reachable.",
            "give the folder of a model in Hugging Face format, or prepare one: python -m accel_local.models",
        ) from error
    except (ImportError, RuntimeError, ValueError, KeyError) as error:
        raise EngineStartError(
            f"transformers could not load {config.model!r}: {error}",
            "give the folder of a causal language model in Hugging Face format, and an attention that is installed",
        ) from error
    longest = min(config.max_model_len, getattr(model.config.get_text_config(), "max_position_embeddings", 2**31))
    return Loaded(
        model,
        tokenizer,
        _ends(model, tokenizer),
        int(model.get_input_embeddings().weight.shape[0]),
        int(model.get_output_embeddings().weight.shape[0]),
        longest,
        _kv_tokens(config, model, device, longest),
    )


@contextlib.contextmanager
def _without_progress_bars() -> Iterator[None]:
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _check_weights(folder: Path, dtype: str) -> None:
    """Before they are read: a machine without memory kills the program instead of raising."""
    try:
        content = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return  # transformers says what is wrong with the model
    stored = DTYPES.get(str(content.get("dtype") or content.get("torch_dtype")), 2)
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    needed, free = size * DTYPES.get(dtype, stored) // stored, psutil.virtual_memory().available
    if needed > free:
        raise NotEnoughMemory(
            f"The weights need {needed / GIB:.1f} GiB of memory; {free / GIB:.1f} GiB are free.",
            "take a smaller model or dtype, or free memory",
        )


def _ends(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """All that the model, its generation settings or its tokenizer call an end."""
    found: set[int] = set()
    for source in (model.generation_config, model.config.get_text_config(), tokenizer):
        ids = getattr(source, "eos_token_id", None)
        found.update([] if ids is None else [ids] if isinstance(ids, int) else ids)
    return tuple(sorted(found))


def _kv_tokens(config: TransformersConfig, model: Any, device: str, longest: int) -> tuple[int, ...]:
    text = model.config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    token_bytes = 2 * text.num_hidden_layers * heads * size * model.dtype.itemsize
    gib = config.kv_cache_gib
    if gib is None and device == "cpu":
        gib = CPU_KV_CACHE_GIB
    if gib is None:
        wanted = config.max_num_seqs * longest
        return tuple(sorted({wanted, max(longest, wanted // 4), longest}, reverse=True))
    tokens = int(gib * GIB) // token_bytes
    if tokens < longest:
        raise NotEnoughMemory(
            f"A KV cache of {gib:g} GiB holds {tokens} tokens, but one request may have max_model_len={longest}.",
            f"set kv_cache_gib to at least {longest * token_bytes / GIB:.2f}, or max_model_len lower",
        )
    return (tokens,)
