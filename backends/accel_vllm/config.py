"""What a vLLM engine is made from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel.errors import MissingExtra
from accel_local.models import DEFAULT_LLM

if TYPE_CHECKING:
    from accel_vllm.engine import VLLMEngine


@dataclass(frozen=True, slots=True)
class VLLMConfig:
    """Equal configs share one engine. None means: what suits the device."""

    model: str = DEFAULT_LLM
    """A folder in Hugging Face format, a prepared model's name, or a hub name."""
    dtype: str = "auto"
    """"auto" takes the model's own; "float32" makes answers at temperature 0 independent of what runs beside them."""
    max_model_len: int = 4096
    """Longest prompt and answer together, in tokens."""
    max_num_seqs: int = 32
    """Most requests at a time."""
    kv_cache_gib: float | None = None
    """Memory for the KV cache. Left out: on CUDA what gpu_memory_utilization leaves, on CPU 1."""
    gpu_memory_utilization: float = 0.9
    """The share of a GPU's memory that it takes."""
    block_tokens: int | None = None
    """Granularity of the prefix cache."""
    max_num_batched_tokens: int | None = None
    """Most tokens of one step."""

    @property
    def label(self) -> str:
        return f"vLLM with {self.model} ({self.dtype})"

    def create(self) -> "VLLMEngine":
        try:
            from accel_vllm.engine import VLLMEngine
        except ImportError as error:
            raise MissingExtra("The vLLM engine", "vllm", error.name or "") from error
        return VLLMEngine(self)
