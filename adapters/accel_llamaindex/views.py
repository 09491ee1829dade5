"""How LlamaIndex's values are seen as trees, and built again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    QueryBundle,
    RelatedNodeInfo,
)
from llama_index.core.vector_stores.types import MetadataFilters, VectorStoreQuery, VectorStoreQueryMode

from accel.text.values import Tree, add_view, class_name, class_named

T = TypeVar("T")


def _all_fields(tag: str, value: Any, **changed: Any) -> dict[str, Any]:
    """The class under `tag`, and every field of a pydantic model."""
    found = {tag: class_name(value)}
    cls: Any = type(value)
    for name in _names_of(cls):
        found[name] = getattr(value, name)
    return found | changed


@lru_cache(256)
def _names_of(cls: Any) -> tuple[str, ...]:
    return tuple(cls.model_fields)


def _build_from(tag: str, base: type[T], tree: Mapping[str, Any], **changed: Any) -> T:
    given = {name: value for name, value in tree.items() if name != tag}
    return class_named(tree[tag], base)(**{**given, **changed})


def view_message(message: ChatMessage) -> Tree:
    return _all_fields("chat_message", message, role=message.role.value)


def build_message(tree: Tree) -> ChatMessage:
    return _build_from("chat_message", ChatMessage, tree, role=MessageRole(tree["role"]))


def view_node(node: BaseNode) -> Tree:
    relationships = {kind.value: related for kind, related in node.relationships.items()}
    return _all_fields("node", node, relationships=relationships, **_said(node))


def _said(node: BaseNode) -> dict[str, str]:
    """What prompts and models of embeddings are given of a node with metadata: LlamaIndex's own text of both. Of a
    user's class, only the program asks for it."""
    if not node.metadata or type(node).__module__ != BaseNode.__module__:
        return {}
    to_llm, to_embed = (node.get_content(metadata_mode=mode) for mode in (MetadataMode.LLM, MetadataMode.EMBED))
    return {"for_llm": to_llm} if to_llm == to_embed else {"for_llm": to_llm, "for_embedding": to_embed}


def build_node(tree: Tree) -> BaseNode:
    tree = {name: value for name, value in tree.items() if name not in ("for_llm", "for_embedding")}
    relationships = {NodeRelationship(kind): related for kind, related in tree["relationships"].items()}
    # The class that is named has no abstract methods.
    return _build_from("node", BaseNode, tree, relationships=relationships)  # type: ignore[type-abstract]


def view_related(related: RelatedNodeInfo) -> Tree:
    kind = related.node_type
    return _all_fields("related_node", related, node_type=kind.value if isinstance(kind, ObjectType) else kind)


def build_related(tree: Tree) -> RelatedNodeInfo:
    kind = tree["node_type"]
    known = {member.value for member in ObjectType}
    return _build_from("related_node", RelatedNodeInfo, tree, node_type=ObjectType(kind) if kind in known else kind)


def view_scored(scored: NodeWithScore) -> Tree:
    return {"scored_node": scored.node, "score": scored.score}


def build_scored(tree: Tree) -> NodeWithScore:
    return NodeWithScore(node=tree["scored_node"], score=tree["score"])


_QUERY_FIELDS = ("query_str", "image_path", "custom_embedding_strs", "embedding")


def view_query(query: QueryBundle) -> Tree:
    return {"query_bundle": class_name(query), **{name: getattr(query, name) for name in _QUERY_FIELDS}}


def build_query(tree: Tree) -> QueryBundle:
    return _build_from("query_bundle", QueryBundle, tree)


def view_store_query(query: VectorStoreQuery) -> Tree:
    fields = {name: getattr(query, name) for name in VectorStoreQuery.__dataclass_fields__}
    return {"vector_store_query": class_name(query), **fields, "mode": VectorStoreQueryMode(query.mode).value}


def build_store_query(tree: Tree) -> VectorStoreQuery:
    return _build_from("vector_store_query", VectorStoreQuery, tree, mode=VectorStoreQueryMode(tree["mode"]))


def view_filters(filters: MetadataFilters) -> Tree:
    return {"metadata_filters": filters.model_dump(mode="json")}


def build_filters(tree: Tree) -> MetadataFilters:
    return MetadataFilters.model_validate(tree["metadata_filters"])


def view_text_block(block: TextBlock) -> Tree:
    return _all_fields("text_block", block)


def build_text_block(tree: Tree) -> TextBlock:
    return _build_from("text_block", TextBlock, tree)


add_view(ChatMessage, view_message, "chat_message", build_message)
add_view(TextBlock, view_text_block, "text_block", build_text_block)
add_view(BaseNode, view_node, "node", build_node)
add_view(RelatedNodeInfo, view_related, "related_node", build_related)
add_view(NodeWithScore, view_scored, "scored_node", build_scored)
add_view(QueryBundle, view_query, "query_bundle", build_query)
add_view(VectorStoreQuery, view_store_query, "vector_store_query", build_store_query)
add_view(MetadataFilters, view_filters, "metadata_filters", build_filters)
