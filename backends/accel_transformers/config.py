"""What an engine on transformers is made from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel.errors import MissingExtra
from accel_local.models import DEFAULT_LLM

if TYPE_CHECKING:
    from accel_transformers.engine import TransformersEngine


@dataclass(frozen=True, slots=True)
class TransformersConfig:
    """Equal configs share one engine. None means: what suits the device.

    model: a folder in Hugging Face format, a prepared model's name, or a hub name. dtype: "auto" takes the model's own;
    "float32" makes answers at temperature 0 independent of what runs beside them. device: "cpu" or "cuda", None for
    what there is. attention: "sdpa" and "eager" work everywhere, "flash_attention_2" needs its package and a GPU.
    max_model_len: longest prompt and answer, at most what the model was made for. kv_cache_gib: memory for the KV
    cache; 1 on CPU, on CUDA enough for max_num_seqs requests of max_model_len tokens, or for fewer. block_tokens:
    granularity of the prefix cache. max_num_batched_tokens: most tokens of one step.
    """

    model: str = DEFAULT_LLM
    dtype: str = "auto"
    device: str | None = None
    attention: str = "sdpa"
    max_model_len: int = 4096
    max_num_seqs: int = 32
    kv_cache_gib: float | None = None
    block_tokens: int | None = None
    max_num_batched_tokens: int | None = None

    @property
    def label(self) -> str:
        return f"transformers with {self.model} ({self.dtype}{f', {self.device}' if self.device else ''})"

    def create(self) -> "TransformersEngine":
        try:
            from accel_transformers.engine import TransformersEngine
        except ImportError as error:
            raise MissingExtra("The transformers engine", "transformers", error.name or "") from error
        return TransformersEngine(self)
