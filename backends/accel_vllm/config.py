"""What a vLLM engine is made from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel.errors import MissingExtra
from accel_local.models import DEFAULT_LLM

if TYPE_CHECKING:
    from accel_vllm.engine import VLLMEngine


@dataclass(frozen=True, slots=True)
class VLLMConfig:
    """Equal configs share one engine. None means: what suits the device.

    model: a folder in Hugging Face format, a prepared model's name, or a hub name. dtype: "auto" takes the model's own;
    "float32" makes answers at temperature 0 independent of what runs beside them. kv_cache_gib: memory for the KV
    cache; on CUDA None leaves it to gpu_memory_utilization, on CPU it is 1.
    """

    model: str = DEFAULT_LLM
    dtype: str = "auto"
    max_model_len: int = 4096
    max_num_seqs: int = 32
    kv_cache_gib: float | None = None
    gpu_memory_utilization: float = 0.9
    block_tokens: int | None = None
    max_num_batched_tokens: int | None = None

    @property
    def label(self) -> str:
        return f"vLLM with {self.model} ({self.dtype})"

    def create(self) -> "VLLMEngine":
        try:
            from accel_vllm.engine import VLLMEngine
        except ImportError as error:
            raise MissingExtra("The vLLM engine", "vllm", error.name or "") from error
        return VLLMEngine(self)
