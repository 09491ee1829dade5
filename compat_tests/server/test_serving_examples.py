"""The servers of `examples/serving`: answers are the unmodified server's, calls were early, and SIGTERM ends them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("langchain_openai")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel import Pregel

import accel
from examples.serving import load
from examples.serving.kinds import KINDS, questions
from examples.serving.processes import GRACE_S, Process, model_server, uvicorn_command
from examples.serving.rag_program import Parts, async_graph, own_connections

NEEDS = {"prefork": ["gunicorn", "uvicorn_worker"], "chat": ["llama_index.llms.openai"], "langgraph": ["langgraph_api"]}
FASTAPI = "examples.serving.fastapi_app:create_app"
FOLDER = Path(load.__file__).parent


def installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def missing(kind: str) -> list[str]:
    return [module for module in NEEDS.get(kind, []) if not installed(module)]


def known(kind: str) -> Any:
    absent = missing(kind)
    return pytest.param(kind, marks=pytest.mark.skipif(absent != [], reason=f"{', '.join(absent)} is not installed"))


@pytest.fixture(scope="module")
def model() -> Iterator[Process]:
    server = model_server()
    yield server
    server.kill()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [known(kind) for kind in KINDS])
def test_all_answers_are_equal_under_load(kind: str, model: Process, capfd: pytest.CaptureFixture[str]) -> None:
    with load.arms(KINDS[kind], model) as both:
        pair = both.pair(0, 8, 4, kind)
        assert list(load.wrong(pair)) == []
        assert len(pair[load.ACCELERATED].answers) == 8
        assert both.reported()["retired"] > 0, "nothing was early: this has shown nothing"
        for server in both.servers.values():
            assert server.terminate(3 * GRACE_S) is not None, "SIGTERM did not end it"
    said = capfd.readouterr().err
    assert "Traceback" not in said and "accel" not in said, said


def test_a_server_that_answers_otherwise_is_found_out() -> None:
    fine, other, fault = {"answer": "a"}, {"answer": "b"}, load.Fault("status 500: no")
    plain = load.Block(load.UNMODIFIED, [fine, fine, fault])
    fast = load.Block(load.ACCELERATED, [fine, other, fault])
    assert len(list(load.wrong({load.UNMODIFIED: plain, load.ACCELERATED: fast}))) == 2


@pytest.mark.timeout(300)
def test_workers_share_the_plan_file_that_the_first_one_writes(model: Process, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    environment = {"MODEL_URL": f"{model.url}/v1", "PLAN_FILE": str(plan)}
    first = Process(uvicorn_command(FASTAPI), environment, "/healthz")
    try:
        learnt = json.loads(plan.read_text(encoding="utf-8"))
        assert [node for node in learnt["nodes"] if node["evidence"]["verified"]], "it was warm before it answered"
    finally:
        first.terminate(3 * GRACE_S)
    written = plan.stat().st_mtime_ns
    workers = Process(uvicorn_command(FASTAPI, 2), environment, "/healthz")
    try:
        # The first request of a process, whichever of the two.
        answer = httpx.post(f"{workers.url}/ask", json={"question": questions(1, "shared")[0]}, timeout=60)
        assert answer.status_code == 200
        assert plan.stat().st_mtime_ns == written, "who finds a plan does not warm up again"
    finally:
        workers.terminate(3 * GRACE_S)


@pytest.mark.timeout(300)
@pytest.mark.skipif(missing("prefork") != [], reason="gunicorn or uvicorn_worker is not installed")
def test_what_is_learnt_before_a_fork_is_kept(model: Process) -> None:
    server = KINDS["prefork"].start(load.Start(model.url, True))
    try:
        # The only request that this process has had: what it expects, it has from before the fork.
        answer = httpx.post(f"{server.url}/ask", json={"question": questions(1, "first")[0]}, timeout=60)
        report = httpx.get(f"{server.url}/report", timeout=60).json()
    finally:
        server.terminate(3 * GRACE_S)
    assert answer.status_code == 200
    assert report["retired"] > 5, "more than its own loops could have shown"


def test_langgraph_json_names_a_graph_that_its_server_takes(model: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server does with a graph: imports it, asks what it is, gives it a checkpointer of its own, runs it."""
    monkeypatch.setenv("MODEL_URL", f"{model.url}/v1")
    config = json.loads((FOLDER / "langgraph.json").read_text(encoding="utf-8"))
    assert (FOLDER / config["dependencies"][0] / "examples").is_dir()
    module, _, name = config["graphs"]["rag"].partition(":")
    graph = getattr(import_module(module), name)
    try:
        assert isinstance(graph, Pregel) and not callable(graph) and isinstance(graph, accel.Accelerated)
        given = graph.copy(update={"checkpointer": InMemorySaver(), "name": "rag"})
        assert isinstance(given, accel.Accelerated)
    finally:
        sys.modules.pop(module, None)


async def test_a_graph_with_the_servers_checkpointer_answers_and_remembers(model: Process) -> None:
    async with own_connections() as connections:
        parts = Parts(f"{model.url}/v1", **connections)
        parts.fill()
        graph: Any = accel.accelerate(async_graph(parts)).copy(update={"checkpointer": InMemorySaver()})
        for number, question in enumerate(questions(3, "threads")):
            config: Any = {"configurable": {"thread_id": str(number), "run_id": f"run {number}"}}
            answered = await graph.ainvoke({"question": question}, config)
            assert answered == (await graph.aget_state(config)).values
            await asyncio.to_thread(accel.settle)
        assert graph.report().retired > 0
