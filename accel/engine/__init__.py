"""Engines: what they promise, what is known of their speed, and in which order they serve what waits for them."""

from .protocols import DEMAND as DEMAND
from .protocols import CancelToken as CancelToken
from .protocols import ChatMessage as ChatMessage
from .protocols import Constraint as Constraint
from .protocols import Delta as Delta
from .protocols import EmbeddingEngine as EmbeddingEngine
from .protocols import Engine as Engine
from .protocols import EngineConfig as EngineConfig
from .protocols import FinishReason as FinishReason
from .protocols import Hit as Hit
from .protocols import LLMEngine as LLMEngine
from .protocols import Metadata as Metadata
from .protocols import Priority as Priority
from .protocols import Prompt as Prompt
from .protocols import Record as Record
from .protocols import RerankEngine as RerankEngine
from .protocols import Sampling as Sampling
from .protocols import Session as Session
from .protocols import StagedVectorStore as StagedVectorStore
from .protocols import TokenIds as TokenIds
from .protocols import Usage as Usage
from .protocols import Vector as Vector
from .protocols import VectorStore as VectorStore
from .protocols import cancel_token as cancel_token
from .protocols import priority as priority
from .protocols import unwrap as unwrap
