"""Language models on the continuous batching of transformers: in this process, on CPU or CUDA, without vLLM."""

from accel_transformers.config import TransformersConfig

__all__ = ["TransformersConfig"]
