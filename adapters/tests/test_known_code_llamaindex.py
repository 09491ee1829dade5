"""What LlamaIndex computes between two calls: each step gives what LlamaIndex's own class gives, and a call that uses
such a result begins while another one, which comes before it, is being answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.embeddings.base import mean_agg
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import VectorStoreQueryResult

import accel
from accel.run.plans.written import decode_step, encode_step
from accel.text.functions import Computed
from accel.text.paths import UNKNOWN, step_into
from accel.text.values import snapshot
from accel_llamaindex.components import COMPUTES

from .llamaindex_clerk import NODES, Clerk, index
from .llamaindex_engines import hyde
from .llamaindex_programs import QUESTIONS

# --- the table ------------------------------------------------------------------------------------------------------

_SCORES = st.floats(-1, 1, allow_nan=False).map(lambda score: round(score, 3))
_FOUND = st.dictionaries(st.sampled_from("abcdefgh"), _SCORES, min_size=1, max_size=5)


def step(name: str, *given: Any) -> Computed:
    assert name in COMPUTES
    made = Computed(name, given)
    assert decode_step(encode_step(made)) == made, "plans keep it by its name"
    return made


def node(text: str) -> TextNode:
    return TextNode(text=text * 3, id_=text, metadata={"n": ord(text)})


def kept_apart(found: dict[str, float]) -> list[Any]:
    """As a store without texts and a document store give it."""
    result = VectorStoreQueryResult(similarities=list(found.values()), ids=list(found))
    return [snapshot(result), snapshot([node(text) for text in found])]


def kept_together(found: dict[str, float]) -> list[Any]:
    """As a store with texts gives it."""
    nodes = [node(text) for text in found]
    return [snapshot(VectorStoreQueryResult(nodes=nodes, similarities=list(found.values()), ids=list(found)))]


def scored(found: dict[str, float]) -> list[NodeWithScore]:
    return [NodeWithScore(node=node(text), score=score) for text, score in found.items()]


class Given(BaseRetriever):
    """Finds what it is told, search by search."""

    def __init__(self, found: Sequence[dict[str, float]]) -> None:
        self.found = list(found)
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return scored(self.found.pop(0))


class Writer(MockLLM):
    """Writes so many other queries."""

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text="\n".join(f"query {number}" for number in range(9)))


@given(
    st.lists(st.tuples(_FOUND, _FOUND), min_size=1, max_size=4), st.sampled_from(list(FUSION_MODES)),
    st.sampled_from([None, [0.6, 0.4], [0.2, 0.8]]), st.sampled_from([kept_apart, kept_together]),
)  # fmt: skip
def test_results_of_several_searches_in_one_order(
    searches: list[tuple[dict[str, float], dict[str, float]]], mode: FUSION_MODES, weights: Any, kept: Any
) -> None:
    retrievers: list[BaseRetriever] = [Given([search[number] for search in searches]) for number in range(2)]
    own = QueryFusionRetriever(
        retrievers, llm=Writer(), mode=mode, num_queries=len(searches), similarity_top_k=99, use_async=False,
        retriever_weights=weights,
    )  # fmt: skip
    value = [part for search in searches for found in search for part in kept(found)]
    weighted = mode in (FUSION_MODES.RELATIVE_SCORE, FUSION_MODES.DIST_BASED_SCORE)
    given_to = tuple(weights) if weights else (2,)
    made = step(f"fusion.{mode.value}", *(given_to if weighted else ()))
    assert step_into(value, made) == snapshot(own.retrieve("anything"))


@given(_FOUND, st.sampled_from([0.1, 0.5]), st.sampled_from([kept_apart, kept_together]))
def test_results_that_are_near_enough(found: dict[str, float], least: float, kept: Any) -> None:
    own = SimilarityPostprocessor(similarity_cutoff=least).postprocess_nodes(scored(found))
    for value in (kept(found), snapshot(scored(found)), *(part for part in kept(found)[:1] if part["nodes"])):
        assert step_into(value, step("SimilarityPostprocessor", least)) == snapshot(own)


@given(_FOUND)
def test_the_best_results_at_both_ends(found: dict[str, float]) -> None:
    own = LongContextReorder().postprocess_nodes(scored(found))
    assert step_into(kept_apart(found), step("LongContextReorder")) == snapshot(own)


@given(st.lists(st.lists(_SCORES, min_size=9, max_size=9), min_size=1, max_size=4))
def test_the_mean_of_embeddings(vectors: list[list[float]]) -> None:
    assert step_into(snapshot(vectors), step("mean_agg")) == snapshot(mean_agg(vectors))


@pytest.mark.parametrize(
    "value", [[{"ids": ["a"], "similarities": [1.0], "nodes": None}], ["a", "b"], {"ids": 3}, [[], []]], ids=str
)
@pytest.mark.parametrize("name", [name for name in COMPUTES if name != "mean_agg"])
def test_of_what_is_no_whole_search_nothing_is_known(name: str, value: Any) -> None:
    given_to = {"SimilarityPostprocessor": (0.5,), "fusion.relative_score": (1,), "fusion.dist_based_score": (1,)}
    if not (value == [[], []] and name.startswith("fusion")):  # two searches that found nothing
        assert step_into(value, Computed(name, given_to.get(name, ()))) is UNKNOWN


# --- programs -------------------------------------------------------------------------------------------------------


class After(CustomQueryEngine):
    """Asks something first that the rest does not wait for, and nobody foresees."""

    engine: Any
    model: Any

    def custom_query(self, query_str: str) -> str:
        self.model.complete(f"Is this polite: {query_str} ({uuid4().hex})")
        return str(self.engine.query(query_str))


def over(retriever: BaseRetriever) -> RetrieverQueryEngine:
    return RetrieverQueryEngine.from_args(retriever, llm=Clerk(), response_mode="compact")


def fused(mode: FUSION_MODES) -> Any:
    retrievers = [index(NODES[:12]).as_retriever(similarity_top_k=3), index(NODES[8:]).as_retriever(similarity_top_k=3)]
    return over(
        QueryFusionRetriever(
            retrievers, llm=Clerk(), mode=mode, num_queries=1, similarity_top_k=4, use_async=False,
            retriever_weights=[0.6, 0.4],
        )
    )  # fmt: skip


def searched(*postprocessors: Any, **options: Any) -> Any:
    return index().as_query_engine(llm=Clerk(), similarity_top_k=6, node_postprocessors=list(postprocessors), **options)


PROGRAMS: dict[str, tuple[Callable[[], Any], str]] = {
    "hyde": (hyde, "mean_agg"),
    **{f"fusion, {mode.value}": (lambda mode=mode: fused(mode), f"fusion.{mode.value}") for mode in FUSION_MODES},
    "near enough": (lambda: searched(SimilarityPostprocessor(similarity_cutoff=0.54)), "SimilarityPostprocessor(0.54)"),
    "near enough, reordered": (
        lambda: searched(SimilarityPostprocessor(similarity_cutoff=0.54), LongContextReorder()), "LongContextReorder"
    ),
    "reordered": (lambda: searched(LongContextReorder()), ""),
    "compact": (lambda: searched(), ""),
    "accumulate": (lambda: searched(response_mode="accumulate"), ""),
    "tree_summarize": (lambda: searched(response_mode="tree_summarize"), ""),
}  # fmt: skip
"""With what its graph says; empty where no step of its own is needed."""


TAUGHT = {
    name: [QUESTIONS[2], *QUESTIONS[:2], *QUESTIONS[3:]] if name.startswith("fusion") else QUESTIONS
    for name in PROGRAMS
}
"""Of the third one all searches find the same, which tells ways to fuse them from ways to join them."""


@pytest.mark.usefixtures("loop_at_hand")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_call_with_such_a_result_is_made_before_its_turn(name: str) -> None:
    make, says = PROGRAMS[name]
    plain, fast = (After(engine=make(), model=Clerk()) for _ in range(2))
    fast = accel.accelerate(fast, speculate="likely")
    for question in (*TAUGHT[name], *TAUGHT[name][:2]):
        assert str(fast.query(question)) == str(plain.query(question))
        assert accel.settle()
    answers = [call for call in fast._accel.plan.last.calls if call.within.endswith("response_synthesizer")]
    assert answers and all(call.retired for call in answers)
    assert (f"|{says}" in str(fast._accel.plan.graph)) is bool(says)
