"""LlamaIndex's metadata filters as alternatives of contained metadata."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from accel.errors import InvalidRequest
from accel_llamaindex.filters import MOST_ALTERNATIVES, alternatives, passes


def where(*parts: Any, condition: str = "and") -> MetadataFilters:
    """Filters out of (key, operator, value) and of filters."""
    made = [
        part if isinstance(part, MetadataFilters) else MetadataFilter(key=part[0], operator=part[1], value=part[2])
        for part in parts
    ]
    return MetadataFilters(filters=made, condition=FilterCondition(condition))


def test_too_many_alternatives_are_refused() -> None:
    many = list(range(MOST_ALTERNATIVES))
    assert len(alternatives(where(("page", "in", many)))) == MOST_ALTERNATIVES
    assert len(alternatives(where(*[("page", "in", many)] * 6))) == MOST_ALTERNATIVES
    with pytest.raises(InvalidRequest, match="fewer"):
        alternatives(where(("page", "in", many), ("topic", "in", ["a", "b"])))
    with pytest.raises(InvalidRequest, match="fewer"):
        alternatives(where(("page", "in", many), ("topic", "==", "a"), condition="or"))


_keys = st.sampled_from("pq")
_scalars = st.sampled_from(["x", "y", 1, 2])
_words = st.sampled_from(["x", "y"])
_single = st.one_of(
    st.tuples(_keys, st.just("=="), _scalars),
    st.tuples(_keys, st.just("in"), st.lists(_words, max_size=2)),
    st.tuples(st.just("tags"), st.just("contains"), _words),
    st.tuples(st.just("tags"), st.sampled_from(["any", "all"]), st.lists(_words, min_size=1, max_size=2)),
)
_flat = st.builds(
    lambda parts, condition: where(*parts, condition=condition),
    st.lists(_single, max_size=3),
    st.sampled_from(["and", "or"]),
)
_metadata = st.fixed_dictionaries({}, optional={"p": _scalars, "q": _scalars, "tags": st.lists(_words, max_size=2)})


@settings(deadline=None)
@given(_flat, _metadata)
def test_filters_mean_what_llamaindex_means(filters: MetadataFilters, metadata: dict[str, Any]) -> None:
    wanted = build_metadata_filter_fn(lambda _: metadata, filters)("id")
    assert any(passes(metadata, one) for one in alternatives(filters)) == wanted


@settings(deadline=None)
@given(st.lists(_flat, max_size=3), st.sampled_from(["and", "or"]), _metadata)
def test_nested_filters_combine(parts: list[MetadataFilters], condition: str, metadata: dict[str, Any]) -> None:
    passing = [any(passes(metadata, one) for one in alternatives(part)) for part in parts]
    wanted = not parts or (all(passing) if condition == "and" else any(passing))
    assert any(passes(metadata, one) for one in alternatives(where(*parts, condition=condition))) == wanted
