"""A RAG server under load, plain and accelerated: nothing hangs, every answer is the plain one, SIGTERM ends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("langchain_openai")

from compat_tests.server.__main__ import end, reported, run_load
from compat_tests.server.processes import both
from examples.serving.processes import Process


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Process, Process]]:
    with both() as processes:
        yield processes


# Of those at once the most last: what one load leaves behind is felt by the next.
LOADS = [
    (1, 4),
    (20, 40),
    (60, 120),
    *(pytest.param(at_once, 240, marks=pytest.mark.long) for at_once in (20, 60, 60, 60, 200)),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("at_once", "n"), LOADS)
def test_every_request_is_answered_as_by_the_plain_graph(
    servers: tuple[Process, Process], request: pytest.FixtureRequest, at_once: int, n: int
) -> None:
    model, application = servers
    assert run_load(model, application, at_once, n, seed=request.node.name) == []
    for counts in reported(application)["counts"].values():
        assert counts["retired"] > 0, "nothing was early: this has shown nothing"


@pytest.mark.timeout(300)
def test_a_server_with_running_and_abandoned_requests_ends_when_it_is_told_to() -> None:
    with both() as (model, application):
        assert run_load(model, application, 20, 20, seed="before the end") == []
        assert end(application, "fast") == []
