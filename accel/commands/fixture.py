"""A pytest plugin, there wherever Accel is installed: the fixture `accel_check`.

def test_my_graph_is_the_same_accelerated(accel_check):
    accel_check(graph, [{"question": "..."}, {"question": "..."}], cassette="answers.jsonl")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .findings import CheckResult


@pytest.fixture
def accel_check() -> Callable[..., CheckResult]:
    """`accel.check` that fails the test where something differs, with the first differences; gives its result."""

    def checked(program: Any, inputs: Iterable[Any], **options: Any) -> CheckResult:
        __tracebackhide__ = True
        from .check import check  # not before somebody asks: every pytest of the environment loads this module

        result = check(program, inputs, **options)
        if not result:
            pytest.fail(str(result), pytrace=False)
        return result

    return checked
