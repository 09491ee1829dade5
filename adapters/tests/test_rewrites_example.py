"""`examples/rewrites.py`: each of the five rewrites alone makes its program faster, and answers stay equal.

In virtual time, so nothing of this machine is measured: the figures are the same everywhere.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).resolve().parents[2] / "examples" / "rewrites.py"


@pytest.fixture(scope="module")
def rewrites() -> Any:
    spec = importlib.util.spec_from_file_location("rewrites_example", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


NAMES = ("prune", "prefill", "decode", "stage", "pmap")
MADE_OF_IT = {
    "prune": "prune: 2 of 3 program-order edges fall; kept: 1 by data",
    "prefill": "  write.decode: +2 partial prefills",
    "decode": "  plan.decode: +partial decodes",
    "stage": "  index.ingestion: -begins with embedding of args[0]; +takes in index.ingestion.embedding as it comes",
    "pmap": "pmap: 2 levels, 1 of them nested, whose elements run side by side\n",
}
"""A line of `explain()` that says what the rewrite did."""


def test_there_is_a_program_for_each_of_the_five(rewrites: Any) -> None:
    assert tuple(example.rewrite for example in rewrites.EXAMPLES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_rewrite_alone_pays_on_its_program(rewrites: Any, name: str) -> None:
    example = next(example for example in rewrites.EXAMPLES if example.rewrite == name)
    row = rewrites.measure(example)
    assert row.equal
    assert row.own_ratio > 1.02
    assert row.off_s == pytest.approx(row.unmodified_s, rel=0.01), "with all of them off nothing is gained"
    assert row.all_s <= row.alone_s * 1.02, "the others don't get into its way"
    assert 0.9 < row.share < 1.01
    assert MADE_OF_IT[name] in row.explained
    others = ", ".join(other for other in (step.__name__ for step in rewrites.PASSES) if other != name)
    assert f"\noff: {others}\n" in row.explained


def test_the_figures_repeat(rewrites: Any) -> None:
    first, again = (rewrites.measure(rewrites.EXAMPLES[0]) for _ in range(2))
    assert first == again
