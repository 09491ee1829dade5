"""What an engine on transformers is made from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel.errors import MissingExtra
from accel_local.models import DEFAULT_LLM

if TYPE_CHECKING:
    from accel_transformers.engine import TransformersEngine


@dataclass(frozen=True, slots=True)
class TransformersConfig:
    """Equal configs share one engine. None means: what suits the device."""

    model: str = DEFAULT_LLM
    """A folder in Hugging Face format, a prepared model's name, or a hub name."""
    dtype: str = "auto"
    """"auto" takes the model's own; "float32" makes answers at temperature 0 independent of what runs beside them."""
    device: str | None = None
    """"cpu" or "cuda". Left out: what there is."""
    attention: str = "sdpa"
    """"sdpa" and "eager" work everywhere, "flash_attention_2" needs its package and a GPU."""
    max_model_len: int = 4096
    """Longest prompt and answer together, in tokens; at most what the model was made for."""
    max_num_seqs: int = 32
    """Most requests at a time."""
    kv_cache_gib: float | None = None
    """Memory for the KV cache. Left out: 1 on CPU, on CUDA enough for max_num_seqs requests of max_model_len tokens, or
    for fewer."""
    block_tokens: int | None = None
    """Granularity of the prefix cache."""
    max_num_batched_tokens: int | None = None
    """Most tokens of one step."""

    @property
    def label(self) -> str:
        return f"transformers with {self.model} ({self.dtype}{f', {self.device}' if self.device else ''})"

    def create(self) -> "TransformersEngine":
        try:
            from accel_transformers.engine import TransformersEngine
        except ImportError as error:
            raise MissingExtra("The transformers engine", "transformers", error.name or "") from error
        return TransformersEngine(self)
