"""What operators read: each thing at its level, once, with its remedy, and never a value of a program."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

import accel
from accel import accelerate
from accel.process.threads import learner
from accel.run import switch
from accel.run.gains import pace
from accel.run.gains.pace import FEW_RUNS, MANY
from accel.run.plans.plan import ENOUGH, LONG, Plan
from adapters.tests.core_fakes import Chat, Embed, State, Store, World, chain, three, train
from adapters.tests.llamaindex_programs import QUESTIONS, Program

TOPIC = "beaches of Portugal"


@pytest.fixture(autouse=True)
def _everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "accel")


@pytest.fixture
def world() -> World:
    return World()


def said(caplog: pytest.LogCaptureFixture, level: int, of: str = "accel.program") -> list[str]:
    return [record.getMessage() for record in caplog.records if (record.levelno, record.name) == (level, of)]


def remedied(caplog: pytest.LogCaptureFixture, of: str = "accel.program") -> list[str]:
    """The warnings, of which each has a remedy."""
    warnings = said(caplog, logging.WARNING, of)
    assert all(re.search(r"\. Remedy: \S+ ", warning) for warning in warnings), warnings
    return [warning.partition(". Remedy: ")[0] for warning in warnings]


def test_what_was_learnt_and_when_it_gains(world: World, caplog: pytest.LogCaptureFixture) -> None:
    fast = accelerate(three(world, Chat(world)))
    train(fast)
    name = "CompiledStateGraph (a, b, c)"
    assert said(caplog, logging.INFO)[-1] == (
        f"{name}: learnt 3 call sites from 2 runs, 3 of them surely; 100 % of the calls are explained"
    )
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    for _ in range(3):
        fast.invoke({"q": TOPIC})
        assert accel.settle()
    assert said(caplog, logging.INFO)[-1] == f"{name}: active; the first calls were early", "once"
    details = said(caplog, logging.DEBUG)
    assert any(re.search(r"run \S+ issues \S+ of Chat at b\|", line) for line in details)
    assert any(
        re.search(r"run \S+ took [\d.]+ s: 3 calls demanded, \d issued early, \d retired", line) for line in details
    )
    assert remedied(caplog) == []


def test_whoever_accelerates_for_each_request_is_told_once(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace.load, "enabled", True)
    model = Chat(world)

    def served(runs: int = 1, **options: Any) -> Any:
        fast = accelerate(chain(("a", lambda state: {"a": model.invoke(state["q"]).content})), **options)
        for number in range(runs):
            fast.invoke({"q": f"{TOPIC}, {number}"})
        return fast

    for number in range(MANY + 8):
        accelerate(chain(("a", lambda state: {})))
        served(plan_scope=f"tenant {number}")
    fast = served(runs=FEW_RUNS * MANY)
    for _ in range(MANY):
        fast = served()
    assert remedied(caplog, "accel") == [] and fast.plan.pace.passed == 0, "one of them serves somebody for long"
    for _ in range(2 * MANY):
        fast = served()
    assert len(remedied(caplog, "accel")) == 1 and fast.plan.pace.passed == 1
    assert served(plan_scope="another").plan.pace.passed == 0


def test_a_first_lesson_that_waits_is_said_once(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Chat(world)
    fast = accelerate(chain(("a", lambda state: {"a": model.invoke(state["q"]).content})))
    monkeypatch.setattr(learner, "post", lambda *what, **how: None)
    for _ in range(ENOUGH + LONG):
        fast.invoke({"q": TOPIC})
    assert remedied(caplog) == []
    for _ in range(3):
        fast.invoke({"q": TOPIC})
    told = "its first lesson waits for its turn, as lessons take a hundredth of the process's time at most"
    assert remedied(caplog) == [f"CompiledStateGraph (a): {told}"]


def test_a_budget_that_is_used_up_is_said_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    fast = accelerate(three(world, Chat(world)), budget=accel.Budget(max_issued=1))
    train(fast)
    world.hooks["b"] = lambda: world.wait_early("")
    for _ in range(3):
        fast.invoke({"q": TOPIC})
        assert accel.settle()
    assert remedied(caplog) == [
        "CompiledStateGraph (a, b, c): the budget of 1 early calls in a run is used up; its other calls go on without"
    ]


def test_a_program_that_gains_nothing_says_that_it_rests(world: World, caplog: pytest.LogCaptureFixture) -> None:
    model = Chat(world)
    fast = accelerate(chain(("a", lambda state: {"a": model.invoke(f"Alpha asks: {state['q']}").content})))
    for number in range(60):
        fast.invoke({"q": f"topic {number}"})
        assert accel.settle()  # a lesson that came late would wake it
    assert fast.plan.pace.every > 1
    assert remedied(caplog) == [
        "CompiledStateGraph (a): rests, as early calls have gained nothing; one run in 2 is followed"
    ]


def test_a_node_that_raised_or_paused_is_told_by_the_class_of_what_it_raised(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(state: State) -> State:
        raise ValueError(state["q"])

    def pauses(state: State) -> State:
        return {"a": interrupt(state["q"])}

    for node, error in ((fails, "ValueError"), (pauses, "GraphInterrupt")):
        fast, config = (
            accelerate(chain(("a", node), checkpointer=InMemorySaver())),
            {"configurable": {"thread_id": "1"}},
        )
        for _ in range(2):
            with suppress(ValueError):
                fast.invoke({"q": TOPIC}, config)
            assert accel.settle()
        shown = f"CompiledStateGraph (a): nothing is issued past a from now on; it has ended with {error}"
        assert said(caplog, logging.INFO).count(shown) == 1


def test_a_component_that_is_not_fit_says_why(caplog: pytest.LogCaptureFixture) -> None:
    plan = Plan()
    for component in (Embed(World()), Embed(World()), accel.pure(said)):
        plan.says.unfit(component, "it hands back what it was given", "give back something new")
    assert all(each.endswith(" Remedy: give back something new") for each in said(caplog, logging.WARNING))
    assert remedied(caplog) == [
        "a program: Embed is not called early any more: it hands back what it was given",
        "a program: said is not called early any more: it hands back what it was given",
    ]


def test_a_busy_process_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    load = pace.Load()
    load.count(+4)
    for _ in range(3):
        for _ in range(40):
            load.tick(1.0)
        load.adjust()
    assert remedied(caplog, "accel.process") == [
        "the process has no time to spare: runs are followed 2 at a time, others go on as without Accel"
    ]
    assert load.window == 1


def test_a_change_of_mode_is_told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_process", "off", "_was_set"):
        monkeypatch.setattr(switch, name, getattr(switch, name))
    for mode in ("watch", "watch", "off"):
        accel.set_mode(mode)  # type: ignore[arg-type]
    assert said(caplog, logging.INFO, "accel") == [
        "the mode of this process is watch now, it was on", "the mode of this process is off now, it was watch"
    ]  # fmt: skip


# --- secrets --------------------------------------------------------------------------------------------------------

SECRET = "sesame-4711"
CONFIG: RunnableConfig = {
    "metadata": {"customer": f"{SECRET} metadata"}, "configurable": {"thread_id": f"{SECRET} thread"},
    "tags": [f"tenant:{SECRET}"],
}  # fmt: skip


def everything(caplog: pytest.LogCaptureFixture) -> str:
    """All that any logger of Accel has said, as a file would have it."""
    formatter = logging.Formatter("%(name)s %(levelname)s %(message)s %(pathname)s %(funcName)s")
    return "\n".join(formatter.format(record) for record in caplog.records if record.name.startswith("accel"))


def test_nothing_of_a_programs_data_is_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Prompts, answers, documents, keys, metadata, tenants, messages of errors."""
    model, store = Chat(world, secret=f"{SECRET} key"), Store(world, {"1": f"{SECRET} row"})
    world.answer = lambda text: f"{SECRET} answer to {text}"

    def a(state: State) -> State:
        world.node("a")
        found = " ".join(document.page_content for document in store.similarity_search(f"{SECRET} {state['q']}"))
        return {"a": model.invoke(f"{SECRET} prompt about {state['q']}, {found}").content}

    def b(state: State) -> State:
        world.node("b")
        return {
            "b": [model.invoke(f"Part {n} of {state['q']}").content for n in range(4)],
            "c": model.invoke(state["a"]),
        }

    fast = accelerate(chain(("a", a), ("b", b)), budget=accel.Budget(max_issued=3))
    for number in range(4):
        fast.invoke({"q": f"{SECRET} number {number}"}, CONFIG)
        assert accel.settle()
    assert fast.report().issued > 0
    world.errors["Part 2"] = RuntimeError(f"{SECRET} was refused")
    with pytest.raises(RuntimeError, match=SECRET):
        fast.invoke({"q": f"{SECRET} once more"}, CONFIG)
    assert accel.settle()
    logged = everything(caplog)
    assert "issues" in logged and "learnt" in logged and "budget" in logged and "RuntimeError" in logged
    assert SECRET not in logged


async def test_nor_of_a_query_engines(caplog: pytest.LogCaptureFixture) -> None:
    program = Program("tree_summarize")
    fast = accelerate(program.engine)
    for question in QUESTIONS[:3]:
        fast.query(f"{question} {SECRET}")
        await fast.aquery(f"{question} {SECRET}")
        assert accel.settle()
    logged = everything(caplog)
    assert "issues" in logged and SECRET not in logged


def test_a_defect_is_told_without_what_it_stumbled_over(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumbles(plan: Any, run: Any) -> None:
        raise KeyError(f"{SECRET} {run.trace.input}")

    monkeypatch.setattr("accel.run.plans.learning._note_facts", stumbles)
    before = learner.faults
    fast = accelerate(three(world, Chat(world)))
    assert fast.invoke({"q": SECRET})["b"] == f"answer to <Beta asks: {SECRET}>"
    assert accel.settle() and learner.faults == before + 1
    (defect,) = said(caplog, logging.ERROR, "accel")
    assert defect.startswith(
        "accel-learner: a defect in Accel, KeyError; the program is not affected. Remedy: report it"
    )
    assert "in stumbles" in defect and SECRET not in everything(caplog)
