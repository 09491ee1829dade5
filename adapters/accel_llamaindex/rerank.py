"""A LlamaIndex postprocessor that keeps the most relevant nodes, by a model in this process."""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from pydantic import ConfigDict, Field

import accel_local
from accel.engine import EngineConfig, RerankEngine, priority, unwrap
from accel.engine.profile import Profile
from accel.errors import InvalidRequest, RequestError
from accel_local.models import DEFAULT_EMBEDDING
from accel_sentence_transformers import RerankConfig

from .engine_field import EngineField


class AccelRerank(BaseNodePostprocessor):
    """Instances with equal engine settings share one engine. May be called from any threads and loops at once.

    Gives copies of the `top_n` best nodes, best first, equally good ones in the order given, with the reranker's score
    in the place of the one they came with: higher is more relevant. A node is judged by what embeddings see of it.
    """

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 4096, "pure": True}
    model_config = ConfigDict(extra="forbid")

    model: str = DEFAULT_EMBEDDING
    device: str | None = None
    batch_tokens: int = 2048
    top_n: int = Field(default=3, ge=1)
    engine: EngineField = None
    """The config of another engine (`accel.engine.EngineConfig`); None: sentence-transformers by the fields above."""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        accel_local.prepare()

    @classmethod
    def class_name(cls) -> str:
        return "AccelRerank"

    @property
    def engine_config(self) -> EngineConfig[RerankEngine]:
        return self.engine or RerankConfig(model=self.model, device=self.device, batch_tokens=self.batch_tokens)

    def accel_profiles(self) -> list[Profile]:
        """What is known about the speed of its engine."""
        found = accel_local.known_profile(self.engine_config)
        return [found] if found is not None else []

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = _query(query_bundle)
        if not nodes:
            return []
        engine = accel_local.engine(self.engine_config)
        scores = accel_local.run(engine.rerank(query, _texts(nodes), priority=priority.get()))
        return self._best(nodes, scores)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = _query(query_bundle)
        if not nodes:
            return []
        engine = await accel_local.aengine(self.engine_config)
        scores = await accel_local.arun(engine.rerank(query, _texts(nodes), priority=priority.get()))
        return self._best(nodes, scores)

    def _best(self, nodes: Sequence[NodeWithScore], scores: Sequence[float | RequestError]) -> list[NodeWithScore]:
        scored = [(unwrap(score), node) for score, node in zip(scores, nodes, strict=True)]
        best = sorted(scored, key=lambda pair: -pair[0])  # stable: ties stay in order
        return [
            found.model_copy(update={"node": _copied(found.node), "score": score})
            for score, found in best[: self.top_n]
        ]


def _query(bundle: QueryBundle | None) -> str:
    if bundle is None:
        raise InvalidRequest("AccelRerank got no query.", "pass query_str or query_bundle beside the nodes")
    return bundle.query_str


def _texts(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [found.node.get_content(metadata_mode=MetadataMode.EMBED) for found in nodes]


def _copied(node: BaseNode) -> BaseNode:
    """Nothing in common with the original but the object that an index node stands for."""
    stands_for = getattr(node, "obj", None)
    return copy.deepcopy(node, {} if stands_for is None else {id(stands_for): stands_for})
