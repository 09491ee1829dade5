"""Refuses a start that would run out of memory, before anything is started."""

import json
from pathlib import Path

import psutil

from accel.errors import NotEnoughMemory

GIB = 2**30
# Resident beside weights and KV cache, measured: this process, the engine core and the worker with their libraries.
OVERHEAD_BYTES = int(2.0 * GIB)
BYTES_PER_NUMBER = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}


def check_memory(model_folder: Path, dtype: str, kv_cache_gib: float, max_model_len: int) -> None:
    """Raise NotEnoughMemory if the KV cache cannot hold one longest request, or the machine cannot hold the engine."""
    try:
        config = json.loads((model_folder / "config.json").read_text())
    except (OSError, ValueError):
        return  # the engine itself says what is wrong with the model
    stored = str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
    number = BYTES_PER_NUMBER.get(stored if dtype == "auto" else dtype, 4)
    kv_cache = int(kv_cache_gib * GIB)

    per_token = _kv_bytes_per_token(config, number)
    if per_token is not None and kv_cache < max_model_len * per_token:
        raise NotEnoughMemory(
            f"A KV cache of {kv_cache_gib:g} GiB holds {kv_cache // per_token} tokens, "
            f"but one request may have max_model_len={max_model_len}.",
            f"set kv_cache_gib to at least {max_model_len * per_token / GIB:.2f}, or max_model_len lower",
        )
    on_disk = sum(file.stat().st_size for file in model_folder.glob("*.safetensors"))
    weights = on_disk * number // BYTES_PER_NUMBER.get(stored, 2)
    needed, available = weights + kv_cache + OVERHEAD_BYTES, psutil.virtual_memory().available
    if needed > available:
        raise NotEnoughMemory(
            f"vLLM needs about {needed / GIB:.1f} GiB of memory ({weights / GIB:.1f} weights, {kv_cache_gib:g} cache, "
            f"{OVERHEAD_BYTES / GIB:.1f} libraries); {available / GIB:.1f} GiB are free.",
            "set kv_cache_gib lower, take a smaller model or dtype, or free memory",
        )


def _kv_bytes_per_token(config: dict[str, object], number: int) -> int | None:
    """Keys and values of all layers; None for architectures that describe themselves otherwise."""
    layers, heads = config.get("num_hidden_layers"), config.get("num_attention_heads")
    hidden, kv_heads, head_dim = config.get("hidden_size"), config.get("num_key_value_heads"), config.get("head_dim")
    if not (isinstance(layers, int) and isinstance(heads, int) and isinstance(hidden, int)):
        return None
    kv_heads = kv_heads if isinstance(kv_heads, int) else heads
    head_dim = head_dim if isinstance(head_dim, int) else hidden // heads
    return 2 * layers * kv_heads * head_dim * number
