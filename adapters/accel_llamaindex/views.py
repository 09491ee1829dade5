"""How LlamaIndex's values are seen as trees, and built again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
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
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from accel.text.objects import field_names
from accel.text.values import Opaque, Tree, View, add_view, class_name, class_named, whole

T = TypeVar("T")


def _all_fields(tag: str, value: Any, **changed: Any) -> dict[str, Any]:
    """The class under `tag`, and every field of a dataclass or pydantic model."""
    found = {tag: class_name(value)}
    cls: Any = type(value)
    for name in field_names(cls) or ():
        found[name] = getattr(value, name)
    return found | (getattr(value, "model_extra", None) or {}) | changed


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


def view_only_scored(scored: NodeWithScore) -> Tree:
    return view_scored(scored) if type(scored) is NodeWithScore else Opaque(scored)


def build_scored(tree: Tree) -> NodeWithScore:
    return NodeWithScore(node=tree["scored_node"], score=tree["score"])


def view_query(query: QueryBundle) -> Tree:
    return _all_fields("query_bundle", query)


def build_query(tree: Tree) -> QueryBundle:
    return _build_from("query_bundle", QueryBundle, tree)


def view_store_query(query: VectorStoreQuery) -> Tree:
    return _all_fields("vector_store_query", query, mode=_plain(query.mode))


def build_store_query(tree: Tree) -> VectorStoreQuery:
    return _build_from("vector_store_query", VectorStoreQuery, tree, mode=VectorStoreQueryMode(tree["mode"]))


def _plain(value: Any) -> Any:
    """A member of an enumeration as its value, of which LlamaIndex makes it again."""
    return value.value if isinstance(value, Enum) else value


def view_filters(filters: MetadataFilters) -> Tree:
    return _all_fields("metadata_filters", filters, condition=_plain(filters.condition))


def build_filters(tree: Tree) -> MetadataFilters:
    return _build_from("metadata_filters", MetadataFilters, tree)


def view_filter(each: MetadataFilter) -> Tree:
    return _all_fields("metadata_filter", each, operator=_plain(each.operator))


def build_filter(tree: Tree) -> MetadataFilter:
    return _build_from("metadata_filter", MetadataFilter, tree)


def view_text_block(block: TextBlock) -> Tree:
    return _all_fields("text_block", block)


def build_text_block(tree: Tree) -> TextBlock:
    return _build_from("text_block", TextBlock, tree)


def _add(cls: type, view: View, tag: str, build: Callable[[Tree], Any]) -> None:
    add_view(cls, view, tag, build, exact=whole(view))


_add(ChatMessage, view_message, "chat_message", build_message)
_add(TextBlock, view_text_block, "text_block", build_text_block)
_add(BaseNode, view_node, "node", build_node)
_add(RelatedNodeInfo, view_related, "related_node", build_related)
_add(QueryBundle, view_query, "query_bundle", build_query)
_add(VectorStoreQuery, view_store_query, "vector_store_query", build_store_query)
_add(MetadataFilters, view_filters, "metadata_filters", build_filters)
_add(MetadataFilter, view_filter, "metadata_filter", build_filter)
add_view(NodeWithScore, view_scored, "scored_node", build_scored, exact=whole(view_only_scored))
