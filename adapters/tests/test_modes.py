"""ACCEL, `accel.set_mode`, `accel.mode` and the metadata of a request: off, watched and on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig, RunnableLambda
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

import accel
from accel import accelerate
from accel.errors import AccelWarning, ConfigurationError
from accel.run import switch
from adapters.tests.core_fakes import TOPICS, Chat, Embed, State, World, chain, three, train
from adapters.tests.llamaindex_programs import QUESTIONS, Program

TOPIC = "beaches of Portugal"
OFF: RunnableConfig = {"metadata": {"accel": "off"}}
WATCH: RunnableConfig = {"metadata": {"accel": "watch"}}
ON: RunnableConfig = {"metadata": {"accel": "on"}}


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_process", "off", "_was_set"):
        monkeypatch.setattr(switch, name, getattr(switch, name))


@pytest.fixture
def world() -> World:
    return World()


def gains(world: World, fast: Any, config: RunnableConfig | None = None) -> bool:
    """One more run, in which what b asks is early."""
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    return _run(world, fast, config) > 0


def goes_plainly(world: World, fast: Any, config: RunnableConfig | None = None) -> bool:
    """One more run, in which nothing is early."""
    world.hooks.clear()
    return _run(world, fast, config) == 0


def _run(world: World, fast: Any, config: RunnableConfig | None) -> int:
    """How many calls were early. The result is the plain program's."""
    world.forget()
    result = fast.invoke({"q": TOPIC}, config)
    assert accel.settle()
    assert result["b"] == f"answer to <Beta asks: {TOPIC}>" and len(world.texts()) == 3
    return len(world.texts(early=True))


def ready(world: World, **options: Any) -> Any:
    fast = accelerate(three(world, Chat(world)), **options)
    train(fast)
    assert gains(world, fast)
    return fast


# --- the process ----------------------------------------------------------------------------------------------------


def test_a_report_says_what_state_the_process_is_in_and_advises_nothing_where_it_is_off(world: World) -> None:
    fresh = accelerate(three(world, Chat(world)))
    for mode, says in (("off", "Accel is off"), ("watch", "Accel only watches")):
        accel.set_mode(mode)  # type: ignore[arg-type]
        fresh.invoke({"q": TOPIC})
        assert str(fresh.report()).startswith(says) and fresh.report().to_dict()["state"] == mode
    accel.set_mode("off")
    report = fresh.report()
    assert report.rows and not report.declarations and not report.undeclared
    assert "measured" not in str(accelerate(three(world, Chat(world))).report())


def test_after_uninstall_nothing_is_followed_and_nothing_advised(world: World) -> None:
    fast = accelerate(three(world, Chat(world)))
    accel.uninstall()
    assert [fast.invoke({"q": topic})["b"] for topic in ("iron", "salt")]
    report = fast.report()
    assert str(report).startswith("Accel is uninstalled") and report.to_dict()["state"] == "uninstalled"
    assert report.runs == 0 and not report.rows and not report.declarations
    train(fast)
    assert goes_plainly(world, fast)
    accelerate(three(world, Chat(world)))
    train(fast)
    assert fast.report().state == "on" and gains(world, fast)


def test_a_process_that_is_off_runs_programs_as_without_accel(world: World) -> None:
    fast = ready(world)
    before = str(fast.report().counts), fast.report().runs, fast.report().passed
    accel.set_mode("off")
    assert goes_plainly(world, fast) and goes_plainly(world, fast, ON)
    with accel.mode("on"):
        assert goes_plainly(world, fast)
    assert (str(fast.report().counts), fast.report().runs, fast.report().passed) == before
    accel.set_mode("on")
    assert gains(world, fast)


def test_a_process_that_watches_learns_and_does_nothing_early(world: World) -> None:
    accel.set_mode("watch")
    fast = accelerate(three(world, Chat(world)))
    train(fast)
    assert goes_plainly(world, fast)
    assert fast.report().runs == 3 and fast.report().issued == 0
    assert "Alpha asks: {input.q}" in fast.explain(graph=True)
    accel.set_mode("on")
    assert gains(world, fast), "what was learnt meanwhile is used at once"


def test_a_watched_run_shares_nothing_either(world: World) -> None:
    """Every call reaches its component: also an embedding of what was embedded before in this run."""
    model: Embeddings = Embed(world)
    fast = accelerate(chain(*((name, lambda state: {"a": model.embed_query(state["q"])}) for name in "ab")))
    for config, reached in ((ON, 1), (WATCH, 2), (OFF, 2), (ON, 1)):
        world.forget()
        fast.invoke({"q": TOPIC}, config)
        assert len(world.texts()) == reached


@pytest.mark.parametrize(
    ("given", "issued"), [("off", False), ("watch", False), ("on", True), (" ON ", True), ("", True)]
)
def test_the_environment_says_how_a_process_begins(
    given: str, issued: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCEL", given)
    fast = accelerate(three(world, Chat(world)))
    train(fast)
    assert gains(world, fast) if issued else goes_plainly(world, fast)
    assert fast.report().runs == (0 if given == "off" else 3)
    accel.set_mode("on")
    assert accelerate(fast) is fast and switch._process == "on", "what the program has said goes before it"


def test_a_wrong_environment_is_said_when_something_is_accelerated() -> None:
    code = (
        "import accel\n"
        "from langchain_core.runnables import RunnableLambda\n"
        "accel.accelerate(RunnableLambda(len) | RunnableLambda(str))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "ACCEL": "wach"}, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 1
    assert run.stderr.endswith("The environment variable ACCEL=wach is not known.\n  Remedy: Did you mean 'watch'?\n")


# --- a request ------------------------------------------------------------------------------------------------------


def test_metadata_of_a_request_say_how_it_runs(world: World) -> None:
    fast = ready(world)
    runs = fast.report().runs
    assert goes_plainly(world, fast, OFF) and fast.report().runs == runs
    assert goes_plainly(world, fast, WATCH) and fast.report().runs == runs + 1
    assert gains(world, fast, ON)
    accel.set_mode("watch")
    assert goes_plainly(world, fast) and gains(world, fast, ON), "some requests of a process that watches"


async def test_all_ways_to_run_a_program_heed_them(world: World) -> None:
    fast = ready(world)
    before, value = fast.report().runs, {"q": TOPIC}
    fast.batch([value, value], OFF)
    list(fast.stream(value, OFF))
    await fast.ainvoke(value, OFF)
    async for _ in fast.astream(value, OFF):
        pass
    fast.with_config(OFF).invoke(value)
    assert fast.report().runs == before
    fast.with_config(OFF).invoke(value, ON)
    assert accel.settle() and fast.report().runs == before + 1, "the later configuration goes first"


def test_the_program_sees_its_metadata_as_they_are(world: World) -> None:
    seen: list[Any] = []

    def look(state: State, config: RunnableConfig) -> State:
        seen.append({key: value for key, value in config["metadata"].items() if not key.startswith("langgraph_")})
        return {"a": "seen"}

    graph = chain(("a", look))
    fast = accelerate(graph)
    given: RunnableConfig = {"metadata": {"accel": "watch", "customer": "ann"}}
    for program in (graph, fast, fast):
        program.invoke({"q": TOPIC}, given)
    assert seen[0] == seen[1] == seen[2] and seen[0]["accel"] == "watch"
    assert given == {"metadata": {"accel": "watch", "customer": "ann"}}


def test_how_a_request_runs_is_no_dimension_of_its_context(world: World) -> None:
    """What watched runs have shown is used in others, though every run says something else."""
    fast = accelerate(three(world, Chat(world)))
    train(fast, config=WATCH)
    assert gains(world, fast)
    assert gains(world, fast, ON)
    with accel.mode("on"):
        assert gains(world, fast)
    assert fast.plan.last is not None and not [name for name in fast.plan.last.ambient if "accel" in name]


def test_a_graph_inside_one_that_is_off_is_off(world: World) -> None:
    inner = accelerate(three(world, Chat(world)))

    def ask(state: State) -> State:
        return {"a": inner.invoke({"q": state["q"]})["c"]}

    outer = accelerate(chain(("a", ask)))
    for config in (OFF, None):
        with accel.mode("off" if config is None else "on"):
            outer.invoke({"q": TOPIC}, config)
    assert accel.settle() and inner.report().runs == outer.report().runs == 0
    outer.invoke({"q": TOPIC})
    assert accel.settle() and outer.report().runs == 1


@pytest.mark.parametrize("wrong", ["of", "", None, False, 3, ["off"]])
async def test_wrong_metadata_are_said(wrong: Any, world: World) -> None:
    graph = three(world, Chat(world))
    fast, config = accelerate(graph), {"metadata": {"accel": wrong}}
    for run in (fast.invoke, fast.stream):
        with pytest.raises(ConfigurationError, match="The metadata accel=") as caught:
            run({"q": TOPIC}, config)
        assert caught.value.remedy
    with pytest.raises(ConfigurationError):
        await fast.ainvoke({"q": TOPIC}, config)
    assert world.texts() == []
    assert graph.invoke({"q": TOPIC}, config), "the plain program doesn't care"


# --- a context ------------------------------------------------------------------------------------------------------


def test_a_context_says_how_the_runs_in_it_go(world: World) -> None:
    fast = ready(world)
    with accel.mode("off"):
        assert goes_plainly(world, fast)
        with accel.mode("on"):
            assert gains(world, fast)
        assert goes_plainly(world, fast)
        assert gains(world, fast, ON), "the request itself goes before what is around it"
        stream = fast.stream({"q": TOPIC})
    runs = fast.report().runs
    list(stream)
    assert accel.settle() and fast.report().runs == runs, "it began inside"
    assert gains(world, fast)
    with pytest.raises(ValueError, match="mine"), accel.mode("off"):
        raise ValueError("mine")
    assert gains(world, fast)


async def test_tasks_have_modes_of_their_own(world: World) -> None:
    fast = ready(world)
    before, inside = fast.report().runs, asyncio.Barrier(2)

    async def ask(mode: switch.Mode) -> None:
        with accel.mode(mode):
            await inside.wait()
            await fast.ainvoke({"q": TOPIC})

    await asyncio.gather(ask("off"), ask("watch"))
    assert accel.settle() and fast.report().runs == before + 1


def test_wrong_modes_are_said_at_once() -> None:
    for wrong in ("of", "", None, True):
        with pytest.raises(ConfigurationError) as caught:
            accel.mode(wrong)  # type: ignore[arg-type]
        assert "off" in caught.value.remedy, wrong
        with pytest.raises(ConfigurationError):
            accel.set_mode(wrong)  # type: ignore[arg-type]
    assert switch._process == "on"


# --- other programs than graphs -------------------------------------------------------------------------------------


async def test_chains(world: World) -> None:
    model = Chat(world)
    fast = accelerate(RunnableLambda(lambda q: model.invoke(f"Alpha asks: {q}").content) | RunnableLambda(str.upper))
    with accel.mode("off"):
        fast.invoke("tides")
        await fast.ainvoke("tides")
        list(fast.stream("tides"))
        assert [part async for part in fast.astream("tides")]
    fast.invoke("tides", OFF)
    assert accel.settle() and fast.report().runs == 0
    fast.invoke("tides", WATCH)
    assert accel.settle() and fast.report().runs == 1
    with pytest.raises(ConfigurationError):
        fast.invoke("tides", {"metadata": {"accel": "of"}})


async def test_query_engines() -> None:
    program = Program("tree_summarize")
    fast = accelerate(program.engine)
    accel.set_mode("watch")
    for question in QUESTIONS[:3]:
        assert program.ask(fast, question) == program.ask(program.engine, question)
        assert accel.settle()
    assert fast.report().runs == 3 and fast.report().issued == 0
    with accel.mode("off"):
        fast.query(QUESTIONS[3])
        await fast.aquery(QUESTIONS[3])
    assert fast.report().runs == 3
    with accel.mode("on"):
        assert program.ask(fast, QUESTIONS[4]) == program.ask(program.engine, QUESTIONS[4])
    assert accel.settle() and fast.report().issued > 0


class Drafted(Event):
    text: str


class Essay(Workflow):
    """Its own names are those that Accel gives to what it accelerates."""

    def __init__(self) -> None:
        super().__init__()
        self.plan = ["outline"]

    @step
    async def explain(self, event: StartEvent) -> Drafted:
        return Drafted(text=event.q)

    @step
    async def report(self, event: Drafted) -> StopEvent:
        return StopEvent(result=[event.text, *self.plan, self.save_plan()])

    def save_plan(self) -> str:
        return "saved"


async def test_names_of_the_program_stay_its_own() -> None:
    plain = Essay()
    fast = accelerate(plain)
    assert await fast.run(q="tides") == await plain.run(q="tides") == ["tides", "outline", "saved"]
    fast.plan = ["other"]
    assert await fast.run(q="tides") == ["tides", "other", "saved"] and plain.plan == ["outline"]
    with accel.mode("off"):
        assert await fast.run(q="tides") == ["tides", "other", "saved"]
    assert isinstance(accel.report(fast), accel.Report) and "p-graph" in accel.explain(fast, graph=True)


def test_a_warm_up_that_teaches_nothing_says_so_and_runs_the_program(world: World) -> None:
    fast = accelerate(three(world, Chat(world)))
    inputs = [{"q": topic} for topic in TOPICS]
    accel.set_mode("off")
    with pytest.warns(AccelWarning, match=r"nothing is learnt: Accel is off\.(\s|.)*set_mode") as told:
        accel.warmup(fast, inputs)
    assert len(told) == 1 and told[0].filename == __file__ and world.calls
    accel.set_mode("on")
    with accel.mode("off"), pytest.warns(AccelWarning, match="off around this call"):
        asyncio.run(accel.awarmup(fast, inputs))
    assert fast.plan.runs == 0
    accel.set_mode("watch")
    accel.warmup(fast, inputs)
    assert fast.plan.runs == 2
    accel.uninstall()
    with pytest.warns(AccelWarning, match="uninstalled"):
        accel.warmup(fast, inputs)
    accelerate(three(world, Chat(world)))
    accel.warmup(fast, inputs)
    assert fast.plan.runs == 4
