"""Simulated engines: from published or measured profiles, in real or in virtual time. Never a default.

A simulated language model batches, caches and queues as a real one does and takes the profile's times; what it answers
is a function of the prompt. `virtual.run` runs a program of coroutines on a clock that jumps; `skipping.skipping` is
for programs of threads.
"""

from accel_sim.devices import Group
from accel_sim.engines import SimEmbeddingConfig, SimRerankConfig, SimStoreConfig
from accel_sim.llm import SimLLMConfig
from accel_sim.published import profile_of
from accel_sim.replicas import SimDevicesConfig, SimReplicasConfig

__all__ = [
    "Group",
    "SimDevicesConfig",
    "SimEmbeddingConfig",
    "SimLLMConfig",
    "SimReplicasConfig",
    "SimRerankConfig",
    "SimStoreConfig",
    "profile_of",
]
