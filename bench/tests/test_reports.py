"""Reports and explanations of programs of the corpus, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

import accel
import accel_local
from accel.tests.reported import check_mermaid, check_report
from bench import corpus
from bench.corpus import Arms
from bench.measure import ACCELERATED, UNMODIFIED
from corpus import programs

NAMES = (
    "book_outline", "code_review", "created_agent", "expert_panel", "guarded_answer", "hotel_reviews", "hyde_rerank",
    "multi_query", "parallel_tools", "storm", "travel_planner",
)  # fmt: skip
REQUESTS = 5
WITHIN = 0.25
"""How far what a request would have taken may be from what the unmodified program took: calls that run side by side on
one engine take longer there than one by one."""


@pytest.mark.parametrize("name", NAMES)
def test_programs(name: str) -> None:
    (program,) = programs([name])
    engines = corpus.engines_for(program)
    arms = Arms(program, engines)

    async def run() -> tuple[Any, float]:
        fast, slow = accel.accelerate(await arms.graph(ACCELERATED)), await arms.graph(UNMODIFIED)
        for number in range(REQUESTS):
            plain_s, _, _ = await arms.ask(slow, number)
            await arms.ask(fast, number)
        return fast, plain_s

    fast, plain_s = engines.run(run)
    accel_local.shutdown()
    report = fast.report()
    check_report(report, fast.plan)
    check_mermaid(fast.explain(format="mermaid"))
    assert report.last is not None and abs(report.last.alone_s / plain_s - 1.0) <= WITHIN
    for node in fast.plan.graph.nodes:
        standing = fast.plan.standing(node)
        assert standing.made <= standing.runs <= fast.plan.runs, node.name
