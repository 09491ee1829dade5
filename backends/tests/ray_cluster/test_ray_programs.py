"""An accelerated program whose engine is killed in the middle of its runs: it gives what it gives without."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

import accel
from accel.backend import Backend
from accel_langgraph import AccelChatModel
from backends.tests.ray_cluster.conftest import sim_llm
from backends.tests.ray_cluster.test_ray_losses import described, kill

pytestmark = [pytest.mark.engines, pytest.mark.timeout(240)]

KILLS = 20
TOPICS = [f"the {animal} of the {place}" for place in ("hills", "coast", "woods", "river") for animal in (
    "birds", "foxes", "bears", "toads", "moths", "hares",
)]  # fmt: skip


class State(TypedDict, total=False):
    topic: str
    facts: str
    names: str
    report: str


@pytest.fixture
def model(namespace: str, slow_profile: str) -> Iterator[AccelChatModel]:
    config = sim_llm(slow_profile)
    engines = {"llm": {"kind": "sim_llm", "model": slow_profile, "options": {"max_model_len": 2048}}}
    with Backend.ray(config={"namespace": namespace, "engines": engines}):
        yield AccelChatModel(engine=config, max_tokens=60)


def program(model: AccelChatModel) -> Any:
    graph = StateGraph(State)
    graph.add_node("facts", lambda s: {"facts": model.invoke(f"Write 30 words about {s['topic']}.").content})
    graph.add_node("names", lambda s: {"names": model.invoke(f"Write 30 words on names of {s['topic']}.").content})
    graph.add_node("report", lambda s: {"report": model.invoke(f"Summarize: {s['facts']} {s['names']}").content})
    graph.add_edge(START, "facts")
    graph.add_edge("facts", "names")
    graph.add_edge("names", "report")
    return graph.compile()


def test_twenty_kills_in_the_middle_of_runs(model: AccelChatModel, namespace: str) -> None:
    """Greedy answers go on where they were; early ones vanish, and the program's own calls take their place."""
    plain = program(model)
    expected = [plain.invoke({"topic": topic}) for topic in TOPICS]
    fast = accel.accelerate(plain)
    fast.warmup({"topic": topic} for topic in TOPICS[KILLS:])
    killed = set()
    with ThreadPoolExecutor(1) as pool:
        for topic, wanted in zip(TOPICS[:KILLS], expected, strict=False):
            running = pool.submit(fast.invoke, {"topic": topic})
            while not described("llm:0", namespace)["requests"]:
                assert not running.done(), "it was over before it could be killed"
            killed.add(kill("llm:0", namespace))
            assert running.result(60) == wanted
    assert len(killed) == KILLS and fast.report().retired > 0


def test_an_engine_that_is_killed_in_the_middle_of_a_batch(
    model: AccelChatModel, namespace: str, tmp_path: Path
) -> None:
    """Sixteen runs ask for one summary and then each for its own: first while one makes it and fifteen wait, then while
    each makes its own."""
    graph = StateGraph(State)
    graph.add_node("facts", lambda s: {"facts": model.invoke("Write 30 words about the sea.").content})
    graph.add_node(
        "report", lambda s: {"report": model.invoke(f"Write 30 words on {s['topic']}: {s['facts']}").content}
    )
    graph.add_edge(START, "facts")
    graph.add_edge("facts", "report")
    plain = graph.compile()
    given: list[Any] = [{"topic": topic} for topic in TOPICS[:16]]
    expected = plain.batch(given)
    fast = accel.accelerate(plain)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(fast.batch, given, {"max_concurrency": 16}, resume=tmp_path / "journal")
        for requests in (1, 16):
            while described("llm:0", namespace)["requests"] < requests:
                assert not running.done(), running.result()
            kill("llm:0", namespace)
        assert running.result(120) == expected
    assert accel.report(fast).to_dict()["batch"]["calls_not_made"] == 15
    assert fast.batch(given, resume=tmp_path / "journal") == expected and fast.plan.batch.resumed == 16
