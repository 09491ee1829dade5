"""What LlamaIndex computes between two calls, as steps: the mean of embeddings, results of several searches in one
order, and what postprocessors leave out or put elsewhere.

The searches are what stores and document stores gave, in the order in which a retriever asked them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from math import isclose
from typing import Any

from llama_index.core.base.embeddings.base import mean_agg
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import QueryFusionRetriever

from accel.text.constants import Constants
from accel.text.functions import Function, Given
from accel.text.values import Tree, Vector, freeze, snapshot, thaw

Scored = tuple[Tree, float | None]
"""A node and its score."""
MOST_QUERIES = 64
MOST_RETRIEVERS = 4
K = 60.0
"""Of LlamaIndex's reciprocal ranks."""


# --- embeddings -----------------------------------------------------------------------------------------------------


def _mean(items: Sequence[Tree]) -> Tree:
    return snapshot(mean_agg([thaw(item) for item in items]))


def _vectors(items: Any, constants: Constants) -> Iterable[tuple[Given, ...]]:
    return ((),) if isinstance(items, list) and all(isinstance(item, Vector) for item in items) else ()


# --- searches -------------------------------------------------------------------------------------------------------


def _rankings(value: Tree) -> list[list[Scored]]:
    """What searches found, each in its order. Raises LookupError where that is anything else."""
    items = [value] if isinstance(value, dict) or _is_ranking(value) else value
    found: list[list[Scored]] = []
    waiting: list[float | None] | None = None
    for item in items if isinstance(items, list) and len(items) <= 2 * MOST_QUERIES else ():
        if waiting is None and isinstance(item, dict) and "similarities" in item and "ids" in item:
            nodes, ids = item.get("nodes") or [], item["ids"] or []
            scores = item["similarities"] or [None] * max(len(nodes), len(ids))
            if nodes or not ids:
                found.append(list(zip(nodes, scores, strict=True)))
            else:
                waiting = scores
        elif isinstance(item, list) and waiting is not None:
            found.append(list(zip(item, waiting, strict=True)))
            waiting = None
        elif _is_ranking(item):
            found.append([(each["scored_node"], each["score"]) for each in item])
        else:
            raise LookupError("no results of a search")
    if waiting is not None or not found:
        raise LookupError("not all results of a search")
    return found


def _is_ranking(value: Tree) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) and "scored_node" in item for item in value)


def _ranking(value: Tree) -> list[Scored]:
    """Of one search."""
    (found,) = _rankings(value)
    return found


def _shown(scored: Iterable[Scored]) -> Tree:
    return [{"scored_node": node, "score": score} for node, score in scored]


def _key(node: Tree) -> Hashable:
    """By what a node's hash is made of. Raises LookupError for one without text."""
    return node["text"], freeze(node["metadata"])


def _in_order(nodes: Mapping[Hashable, Tree], scores: Mapping[Hashable, float | None]) -> Tree:
    order = sorted(scores.items(), key=lambda item: item[1] or 0.0, reverse=True)
    return _shown((nodes[key], score) for key, score in order)


def _reciprocal(value: Tree) -> Tree:
    nodes: dict[Hashable, Tree] = {}
    scores: dict[Hashable, float] = {}
    for found in _rankings(value):
        for rank, (node, _) in enumerate(sorted(found, key=_score, reverse=True)):
            key = _key(node)
            nodes[key] = node
            scores[key] = scores.get(key, 0.0) + 1.0 / (rank + K)
    return _in_order(nodes, scores)


def _simple(value: Tree) -> Tree:
    nodes: dict[Hashable, Tree] = {}
    scores: dict[Hashable, float | None] = {}
    for found in _rankings(value):
        for node, score in found:
            key = _key(node)
            nodes.setdefault(key, node)
            scores[key] = max(score or 0.0, scores[key] or 0.0) if key in scores else score
    return _in_order(nodes, scores)


def _relative(value: Tree, *weights: float, by_distance: bool) -> Tree:
    """`weights`: of the retrievers, which are asked in turn; or how many there are, which all have the same."""
    nodes: dict[Hashable, Tree] = {}
    scores: dict[Hashable, float] = {}
    rankings = _rankings(value)
    weights = weights if len(weights) > 1 else (1.0,) * int(weights[0])
    shares = [weight / sum(weights) for weight in weights]
    queries = len(rankings) / len(shares)
    for number, found in enumerate(rankings):
        least, most = _range([score or 0.0 for _, score in found], by_distance) if found else (0.0, 0.0)
        for node, score in found:
            if score is None:
                raise LookupError("no score")
            scaled = (1.0 if most > 0 else 0.0) if most == least else (score - least) / (most - least)
            key = _key(node)
            nodes.setdefault(key, node)
            scores[key] = scores.get(key, 0.0) + scaled * shares[number % len(shares)] / queries
    return _in_order(nodes, scores)


def _range(scores: Sequence[float], by_distance: bool) -> tuple[float, float]:
    if not by_distance:
        return min(scores), max(scores)
    mean = sum(scores) / len(scores)
    deviation = (sum((score - mean) ** 2 for score in scores) / len(scores)) ** 0.5
    return mean - 3 * deviation, mean + 3 * deviation


def _score(scored: Scored) -> float:
    return scored[1] or 0.0


def _several(value: Any, constants: Constants) -> Iterable[tuple[Given, ...]]:
    return ((),) if _may_be_searches(value) else ()


def _weighted(value: Any, constants: Constants) -> Iterator[tuple[Given, ...]]:
    if _may_be_searches(value):
        yield from ((retrievers,) for retrievers in range(1, MOST_RETRIEVERS + 1))
        shares = [n for n in constants.numbers if 0 < n < 1]
        yield from (pair for pair in product(shares, repeat=2) if pair[0] != pair[1] and isclose(sum(pair), 1))


def _may_be_searches(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else value
    return (isinstance(first, dict) and ("similarities" in first or "scored_node" in first)) or _is_ranking(first)


# --- postprocessors -------------------------------------------------------------------------------------------------


def _cut_off(value: Tree, least: float) -> Tree:
    return _shown((node, score) for node, score in _ranking(value) if score is not None and not score < least)


def _cut_offs(value: Any, constants: Constants) -> Iterable[tuple[Given, ...]]:
    return ((n,) for n in constants.numbers if 0 < n <= 1) if _may_be_searches(value) else ()


def _reordered(value: Tree) -> Tree:
    placed: list[Scored] = []
    for number, scored in enumerate(sorted(_ranking(value), key=lambda each: each[1] if each[1] is not None else 0)):
        placed.insert(0 if number % 2 == 0 else len(placed), scored)
    return _shown(placed)


_NUMBERS: dict[type, str] = {QueryFusionRetriever: "_retriever_weights", SimilarityPostprocessor: "similarity_cutoff"}
"""By class, the field with what such a step is told."""


def set_to(value: Any) -> tuple[float, ...] | None:
    """The numbers that a part computes with, which are the program's."""
    name = _NUMBERS.get(type(value))
    held = getattr(value, name, None) if name is not None else None
    return tuple(held) if isinstance(held, list) else (held,) if isinstance(held, float) else None


COMPUTES: dict[str, Function] = {
    "mean_agg": Function(_mean, "the mean of embeddings", _vectors),
    "fusion.simple": Function(_simple, "results of several searches, the best ones first", _several),
    "fusion.reciprocal_rerank": Function(_reciprocal, "the same by their ranks", _several),
    "fusion.relative_score": Function(
        partial(_relative, by_distance=False), "the same by their scores within each search", _weighted
    ),
    "fusion.dist_based_score": Function(
        partial(_relative, by_distance=True), "the same by how far scores lie from their mean", _weighted
    ),
    "SimilarityPostprocessor": Function(_cut_off, "results that are near enough", _cut_offs),
    "LongContextReorder": Function(_reordered, "the best results at both ends", _several),
}
"""By LlamaIndex's own names; of fusion, by its modes."""
