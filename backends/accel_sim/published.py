"""Profiles of model sizes from the literature, for simulations that stand beside published results.

What is published, as published:

* Prefill of Llama-2-7B on one RTX 3090: Ayo (ASPLOS'25), table 3, single prefills of 200 to 3,000 tokens.
* Embedding with bge-large on one RTX 3090: Ayo, figure 4a: 48 chunks in batches of 4 take 1.8 s, of 16 take 1.35 s.

What is extrapolated, because the papers don't give it:

* Decoding: a step reads all weights and every request's KV cache (512 tokens of context) at 70 % of the GPU's memory
  bandwidth and computes at half its peak. 7B on one RTX 3090 (936 GB/s, 71 TFLOP/s); 13B on two with 90 % of their
  joint bandwidth; 30B on two A800 (2,039 GB/s, 312 TFLOP/s), as Ayo deploys them.
* Prefill of 13B and 30B: the 7B curve times parameters over joint TFLOP/s at 80 % parallel efficiency.
* Reranking with bge-reranker-large: as embedding with bge-large, which has the same layers.
* Searching: pgvector's exact scan over 384 dimensions, measured on two CPU cores.
"""

from __future__ import annotations

from pathlib import Path

from accel.engine import profile
from accel.engine.profile import Profile
from accel.errors import ConfigurationError

_PREFILL_7B = ((200, 0.07603), (850, 0.21767), (1000, 0.26036), (1700, 0.41409), (2500, 0.58295), (3000, 0.72015))
_BATCHES = (1, 2, 4, 8, 16, 32, 64)
_CONTEXT_TOKENS = 512
_BANDWIDTH_SHARE, _COMPUTE_SHARE = 0.7, 0.5
_STEP_TOKENS = 2048  # vLLM's default for chunked prefill


def _llm(
    name: str, billions: float, kv_bytes: float, gpus: int, bandwidth: float, flops: float, prefill: float
) -> Profile:
    joint = 1.0 if gpus == 1 else 0.9
    read = gpus * bandwidth * joint * _BANDWIDTH_SHARE
    compute = gpus * flops * joint * _COMPUTE_SHARE

    def step_s(requests: int) -> float:
        read_s = (2e9 * billions + requests * kv_bytes * _CONTEXT_TOKENS) / read
        return round(read_s + requests * 2e9 * billions / compute, 6)

    return Profile(
        "llm",
        prefill=tuple((tokens, round(s * prefill, 6)) for tokens, s in _PREFILL_7B),
        decode=tuple((n, step_s(n)) for n in _BATCHES),
        batch_tokens=_STEP_TOKENS,
        block_tokens=16,
        slots=64,
        source=f"{name}: published prefill (Ayo, table 3){'' if prefill == 1 else ', scaled'}; decoding extrapolated",
    )


_A800_PREFILL = (32.5 / 6.74) * (71 / (2 * 312 * 0.8))
LLMS = {
    "7b": _llm("Llama-2-7B on an RTX 3090", 6.74, 524_288, 1, 936e9, 71e12, 1.0),
    "13b": _llm("Llama-2-13B on two RTX 3090", 13.0, 819_200, 2, 936e9, 71e12, (13.0 / 6.74) / (2 * 0.8)),
    "30b": _llm("Llama-30B on two A800", 32.5, 1_597_440, 2, 2039e9, 312e12, _A800_PREFILL),
}
_BGE = ((4, 256, 0.15), (16, 256, 0.45))
OTHERS = {
    "embedding": Profile(
        "embedding", batches=_BGE, batch_tokens=4096, source="bge-large on an RTX 3090: published (Ayo, figure 4a)"
    ),
    "reranking": Profile(
        "reranking", batches=_BGE, batch_tokens=4096, source="bge-reranker-large: extrapolated from bge-large"
    ),
    "searching": Profile("searching", search=((100, 0.0012), (20_000, 0.018)), source="pgvector on two CPU cores"),
}


def profile_of(name: str, kind: str) -> Profile:
    """A published profile by model size ("7b"), or the one of this kind in a file. Raises ConfigurationError."""
    if name in LLMS:
        return LLMS[name] if kind == "llm" else OTHERS[kind]
    if not Path(name).is_file():
        raise ConfigurationError(
            f"There is no profile {name!r}.", f"one of {', '.join(LLMS)}, or a file: python -m bench profile"
        )
    held = profile.load(name).profiles
    if kind not in held:
        raise ConfigurationError(
            f"{name} has no profile of an {kind} engine.", f"python -m bench profile --only {kind} --out {name}"
        )
    return held[kind]
