from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.documents import Document

from bench.tests.fakes import Calls, FakeStore, Style, fake_parts
from corpus.papers import APPS, SMALL
from corpus.papers.bm25 import BM25Retriever
from corpus.papers.data import sample

DATA_SETS = sample()
SIZES = replace(SMALL, chunk_words=30, overlap_words=5)
MOST_AT_ONCE = {"naive_rag": 3, "advanced_rag": 1, "factool": SIZES.claims, "crag": 4, "reflect": 1, "chat": 1}
STYLES: tuple[Style, ...] = ("obedient", "denying", "silent")


@pytest.fixture
def keyword_searches(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found: Counter[str] = Counter()
    best = BM25Retriever._best

    def counted(self: BM25Retriever, query: str) -> list[Document]:
        found["keyword_search"] += 1
        return best(self, query)

    monkeypatch.setattr(BM25Retriever, "_best", counted)
    return found


async def _run(
    name: str, request: dict[str, Any], *, by_hand: bool = False, style: Style = "obedient"
) -> tuple[dict[str, Any], Calls, FakeStore]:
    parts, calls, store = fake_parts(DATA_SETS, SIZES, style)
    app = APPS[name]
    await app.prepare(parts, DATA_SETS)
    calls.count.clear()
    graph = app.build_by_hand(parts) if by_hand else app.build(parts)
    return await graph.ainvoke(request), calls, store


def _expected_calls(name: str, state: dict[str, Any]) -> dict[str, int]:
    """What the module's docstring says."""
    rounds, claims = state.get("rounds", 0), len(state.get("claims", []))
    return {
        "naive_rag": {"llm": 4, "add": 1, "search": 1},
        "advanced_rag": {"llm": 4, "add": 1, "search": 3, "rerank": 1},
        "factool": {"llm": 2 + 2 * claims, "keyword_search": 2 * claims, "rerank": claims},
        "crag": {"llm": 1, "light_llm": 5 * rounds - 1, "search": rounds},
        "reflect": {"llm": 3},
        "chat": {"llm": 1},
    }[name]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", APPS)
async def test_by_hand_ends_in_the_same_state(name: str, style: Style) -> None:
    for request in APPS[name].inputs(DATA_SETS, 3, seed=7):
        plain, plain_calls, plain_store = await _run(name, request, style=style)
        by_hand, by_hand_calls, by_hand_store = await _run(name, request, by_hand=True, style=style)
        assert by_hand == plain
        assert by_hand_store.rows == plain_store.rows
        assert by_hand_calls.count == plain_calls.count


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("style", ["obedient", "denying"])
@pytest.mark.parametrize("name", APPS)
async def test_the_calls_are_those_of_the_docstring(
    name: str, style: Style, by_hand: bool, keyword_searches: Counter[str]
) -> None:
    for request in APPS[name].inputs(DATA_SETS, 3, seed=3):
        keyword_searches.clear()
        state, calls, _ = await _run(name, request, by_hand=by_hand, style=style)
        assert dict(calls.count + keyword_searches) == _expected_calls(name, state)
        assert all(isinstance(cap, int) for cap in calls.caps)


@pytest.mark.parametrize("name", APPS)
async def test_only_the_program_by_hand_calls_at_once(name: str) -> None:
    [request] = APPS[name].inputs(DATA_SETS, 1, seed=5)
    _, plain, _ = await _run(name, request)
    _, by_hand, _ = await _run(name, request, by_hand=True)
    assert (plain.peak, by_hand.peak) == (1, MOST_AT_ONCE[name])


@pytest.mark.parametrize("name", APPS)
def test_inputs_are_different_and_depend_on_the_seed_only(name: str) -> None:
    inputs = APPS[name].inputs
    first = inputs(DATA_SETS, 3, 1)
    assert first == inputs(DATA_SETS, 3, 1)
    assert any(first != inputs(DATA_SETS, 3, seed) for seed in range(2, 8))
    assert len({str(request) for request in first}) == 3
    with pytest.raises(ValueError, match="1000 different inputs"):
        inputs(DATA_SETS, 1000, 1)


@pytest.mark.parametrize("name", ["naive_rag", "advanced_rag"])
async def test_a_request_finds_its_own_document_only_also_when_it_comes_again(name: str) -> None:
    parts, _, store = fake_parts(DATA_SETS, SIZES)
    graph = APPS[name].build(parts)
    requests = APPS[name].inputs(DATA_SETS, 3, seed=1)
    before = [await graph.ainvoke(request) for request in requests]
    rows = dict(store.rows)
    assert [await graph.ainvoke(request) for request in requests] == before
    assert store.rows == rows
    assert len({request["id"] for request in requests}) == 3
    for request, state in zip(requests, before, strict=True):
        own = {document.page_content for document, _ in rows.values() if document.metadata == {"doc": request["id"]}}
        for passage in state["passages"]:
            assert getattr(passage, "page_content", passage) in own


async def test_a_document_is_cut_off_after_its_chunks() -> None:
    parts, _, store = fake_parts(DATA_SETS, replace(SIZES, chunks=4))
    [request] = APPS["naive_rag"].inputs(DATA_SETS, 1, seed=1)
    state = await APPS["naive_rag"].build(parts).ainvoke(request)
    assert state["chunk_ids"] == [f"{request['id']}/{position}" for position in range(4)] == list(store.rows)


async def test_the_corrective_loop_ends_after_two_rounds() -> None:
    requests = APPS["crag"].inputs(DATA_SETS, 8, seed=1)
    rounds = {(await _run("crag", request))[0]["rounds"] for request in requests}
    assert rounds == {1, 2}
    state, _, _ = await _run("crag", requests[0], style="denying")
    assert state["rounds"] == 2 and not state["relevant"] and state["answer"]


async def test_claims_keep_their_order() -> None:
    [request] = APPS["factool"].inputs(DATA_SETS, 1, seed=1)
    state, _, _ = await _run("factool", request, by_hand=True)
    assert len(set(state["claims"])) == SIZES.claims
    assert [len(state[key]) for key in ("queries", "found", "evidence", "verdicts")] == [SIZES.claims] * 4
    assert all(len(evidence) <= SIZES.evidence for evidence in state["evidence"])


def test_factool_says_that_it_needs_passages() -> None:
    parts, _, _ = fake_parts(DATA_SETS, SIZES)
    with pytest.raises(ValueError, match=r"Parts\.passages"):
        APPS["factool"].build(replace(parts, passages=()))


def test_every_application_says_what_it_is_and_what_to_compare_it_with() -> None:
    for name, app in APPS.items():
        assert app.__doc__ and "Calls per request" in app.__doc__, name
        assert app.PAPER and "\n" not in app.PAPER, name
