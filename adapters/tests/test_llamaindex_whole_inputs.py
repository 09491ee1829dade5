"""LlamaIndex's queries, filters, nodes and messages matter as a whole: a component may read whatever a program puts
into a subclass, or beside the fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from pydantic import PrivateAttr

import accel
import accel_llamaindex.components  # noqa: F401  how its values are seen
from accel.text.values import Opaque, freeze, leaves, snapshot, thaw

from .llamaindex_programs import QUESTIONS, Scribe


@dataclasses.dataclass
class OwnedQuery(QueryBundle):
    tenant: str = "public"


@dataclasses.dataclass
class OwnedStoreQuery(VectorStoreQuery):
    tenant: str = "public"


class OwnedFilters(MetadataFilters):
    tenant: str = "public"


class OwnedFilter(MetadataFilter):
    tenant: str = "public"


class OwnedNode(TextNode):
    tenant: str = "public"


class OwnedScored(NodeWithScore):
    tenant: str = "public"


class OwnedMessage(ChatMessage):
    tenant: str = "public"


class SecretMessage(ChatMessage):
    _tenant: str = PrivateAttr("public")


class SecretNode(TextNode):
    _tenant: str = PrivateAttr("public")


def beside(value: Any, tenant: str) -> Any:
    """With an attribute that is no field."""
    object.__setattr__(value, "tenant", tenant)
    return value


def secretly(value: Any, tenant: str) -> Any:
    value._tenant = tenant
    return value


KEY = MetadataFilter(key="kind", value="odd")
MADE: dict[str, Callable[[str], Any]] = {
    "query": lambda tenant: OwnedQuery("stones", tenant=tenant),
    "query with an attribute": lambda tenant: beside(QueryBundle("stones"), tenant),
    "store query": lambda tenant: OwnedStoreQuery(query_str="stones", tenant=tenant),
    "store query with an attribute": lambda tenant: beside(VectorStoreQuery(query_str="stones"), tenant),
    "filters": lambda tenant: OwnedFilters(filters=[KEY], tenant=tenant),
    "filter": lambda tenant: OwnedFilter(key="kind", value="odd", tenant=tenant),
    "filter of a store query": lambda tenant: VectorStoreQuery(
        filters=MetadataFilters(filters=[OwnedFilter(key="kind", value="odd", tenant=tenant)])
    ),
    "node": lambda tenant: OwnedNode(text="stones", id_="1", tenant=tenant),
    "node with a private attribute": lambda tenant: secretly(SecretNode(text="stones", id_="1"), tenant),
    "scored node": lambda tenant: OwnedScored(node=TextNode(text="stones", id_="1"), score=1.0, tenant=tenant),
    "scored node with an attribute": lambda tenant: beside(
        NodeWithScore(node=TextNode(text="stones", id_="1"), score=1.0), tenant
    ),
    "message": lambda tenant: OwnedMessage(role="user", content="stones", tenant=tenant),
    "message with a private attribute": lambda tenant: secretly(SecretMessage(role="user", content="stones"), tenant),
}
WHOLE = [
    QueryBundle("stones", custom_embedding_strs=["a"]),
    VectorStoreQuery([0.5] * 9, 3, mode=VectorStoreQueryMode.HYBRID, filters=MetadataFilters(filters=[KEY])),
    MetadataFilters(filters=[KEY, MetadataFilters(filters=[KEY], condition=FilterCondition.OR)]),
    RelatedNodeInfo(node_id="1"),
    NodeWithScore(node=TextNode(text="stones", id_="1"), score=1.0),
]


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_what_differs_anywhere_is_not_the_same(make: Callable[[str], Any]) -> None:
    ours, theirs = (snapshot([make(tenant)], exact=True) for tenant in ("ours", "theirs"))
    assert freeze(ours) != freeze(theirs)


@pytest.mark.parametrize("value", [*WHOLE, *(make("ours") for make in MADE.values())])
def test_what_is_not_opaque_is_built_again_with_all_it_holds(value: Any) -> None:
    tree = snapshot([value], exact=True)
    [again] = thaw(tree)
    assert type(again) is type(value) and again == value
    assert again is value or vars(again) == vars(value)


@pytest.mark.parametrize("value", WHOLE)
def test_what_holds_its_fields_only_is_looked_into(value: Any) -> None:
    assert not any(isinstance(leaf, Opaque) for _, leaf in leaves(snapshot([value], exact=True)))


class Shelf(BaseRetriever):
    """What it finds is the tenant's whom a query names."""

    def _retrieve(self, query: Any) -> list[NodeWithScore]:
        text = f"{getattr(query, 'tenant', 'nobody')}'s {query.query_str}"
        return [NodeWithScore(node=TextNode(text=text, id_=text), score=1.0)]


accel.register(Shelf, readonly=True, local=True, concurrency=8)


class Desk(CustomQueryEngine):
    shelf: Any
    model: Any
    make: Any
    tenant: str = ""

    def custom_query(self, query_str: str) -> str:
        found = [str(self.model.complete(f"Think of: {query_str}"))]
        for part in "abc":
            found.append(self.shelf.retrieve(self.make(f"{query_str} {part}", self.tenant))[0].text)
        return " / ".join(found)


@pytest.mark.parametrize(
    "make",
    [lambda text, tenant: OwnedQuery(text, tenant=tenant), lambda text, tenant: beside(QueryBundle(text), tenant)],
)
def test_a_search_is_made_for_the_tenant_whom_its_query_names(make: Any) -> None:
    fast = accel.accelerate(Desk(shelf=Shelf(), model=Scribe(), make=make))
    for question, tenant in zip(QUESTIONS, "ABABAB", strict=True):
        fast.tenant = tenant
        wanted = [f"{tenant}'s {question} {part}" for part in "abc"]
        assert str(fast.query(question)).split(" / ")[1:] == wanted
        assert accel.settle()
