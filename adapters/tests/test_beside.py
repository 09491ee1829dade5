"""Values that come in beside the input: prompts may hold them, as they may hold what the input says."""

from __future__ import annotations

import contextvars
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.runtime import get_runtime

import accel
from accel import accelerate, settle
from adapters.tests.catching_up import catch_up

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who")
TOPICS = ("tides", "granite", "lichen", "ferries", "basalt", "kelp", "heather", "slate", "dunes", "gulls")


class Recorder(BaseChatModel):
    """Says back what it is asked, and keeps that."""

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 8}
    asked: ClassVar[list[str]] = []

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        text = "\n".join(str(message.content) for message in messages)
        self.asked.append(text)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"<{text}>"))])


class Remote(Recorder):
    __accel__: ClassVar[dict[str, Any]] = {"local": False, "concurrency": 8}


class State(TypedDict, total=False):
    topics: list[str]
    notes: list[str]


WAYS: dict[str, tuple[Callable[[RunnableConfig], str], Callable[[Any, State, str], Any]]] = {
    "context": (
        lambda config: get_runtime().context["user"],  # type: ignore[index]
        lambda app, state, user: app.invoke(state, context={"user": user}),
    ),
    "configurable": (
        lambda config: str(config["configurable"]["user"]),
        lambda app, state, user: app.invoke(state, {"configurable": {"user": user}}),
    ),
    "metadata": (
        lambda config: str(config["metadata"]["user"]),
        lambda app, state, user: app.invoke(state, {"metadata": {"user": user}}),
    ),
    "ContextVar": (
        lambda config: WHO.get(),
        lambda app, state, user: contextvars.copy_context().run(_with_user, app, state, user),
    ),
}


def _with_user(app: Any, state: State, user: str) -> Any:
    WHO.set(user)
    return app.invoke(state)


def program(who: Callable[[RunnableConfig], str], model: type[Recorder] = Recorder) -> Any:
    llm = model()

    def notes(state: State, config: RunnableConfig) -> Any:
        user = who(config)
        found = []
        for topic in state["topics"]:
            found.append(llm.invoke([("system", f"You work for {user}."), ("user", f"A note on {topic}.")]).text)
            catch_up()
        return {"notes": found}

    graph = StateGraph(State, context_schema=dict)
    graph.add_node("notes", notes)
    graph.add_edge(START, "notes")
    return graph.compile()


def state(number: int) -> State:
    return {"topics": [f"{TOPICS[(number + n) % len(TOPICS)]} {number}" for n in range(3)]}


def asked_by(app: Any, invoke: Callable[[Any, State, str], Any], number: int, user: str) -> tuple[Any, Counter[str]]:
    Recorder.asked.clear()
    notes = invoke(app, state(number), user)["notes"]
    assert settle()
    return notes, Counter(Recorder.asked)


@pytest.mark.parametrize("way", WAYS)
def test_the_users_name_is_a_value_like_any_other(way: str) -> None:
    who, invoke = WAYS[way]
    plain, fast = program(who), accelerate(program(who))
    users = ("Alice of Leeds", "Bob of Ghent", "Alice of Leeds", "Bob of Ghent", "Carla of Turin", "Dora of Brest")
    early = [0]
    for number, user in enumerate(users):
        assert asked_by(fast, invoke, number, user) == asked_by(plain, invoke, number, user), "no call more, no other"
        early.append(fast.plan.total.retired)
    of_runs = [after - before for before, after in pairwise(early)]
    assert min(of_runs[-2:]) >= 2, "of users that none was before: all calls but the first"
    assert fast.plan.total.wasted == 0


@pytest.mark.parametrize("way", WAYS)
def test_it_goes_early_to_no_endpoint_that_has_not_had_it(way: str) -> None:
    who, invoke = WAYS[way]
    fast = accelerate(program(who, Remote), egress="known")
    for number, user in enumerate(("Alice of Leeds", "Bob of Ghent") * 3):
        Recorder.asked.clear()
        invoke(fast, state(number), user)
        assert settle()
        first = Recorder.asked[0]
        assert first == f"You work for {user}.\nA note on {state(number)['topics'][0]}."
        assert all(user in text for text in Recorder.asked)


def test_a_word_of_the_program_that_a_run_is_called_by_is_not_taken_for_its_name() -> None:
    def notes(state: State) -> Any:
        found = []
        for topic in state["topics"]:
            found.append(llm.invoke(f"A small test on {topic}.").text)
            catch_up()
        return {"notes": found}

    llm = Recorder()
    graph = StateGraph(State)
    graph.add_node("notes", notes)
    graph.add_edge(START, "notes")
    fast = accelerate(graph.compile())
    for number, thread in enumerate(("small test", "small test", "small test", "another", "a third", "small test")):
        Recorder.asked.clear()
        fast.invoke(state(number), {"configurable": {"user": thread}})
        assert settle()
        assert Counter(Recorder.asked) == Counter(f"A small test on {topic}." for topic in state(number)["topics"])


@pytest.mark.parametrize("users", ["Alice Bob Bob Alice Alice Bob Bob Alice", "Alice Alice Alice"], ids=["two", "one"])
@pytest.mark.parametrize("way", WAYS)
def test_a_plan_holds_nobodys_name(way: str, users: str, tmp_path: Path) -> None:
    def sometimes(state: State, config: RunnableConfig) -> Any:
        user = who(config)
        llm.invoke(f"Hello, {user}!")
        return {"notes": [llm.invoke(f"A note on {state['topics'][0]}.").text] if len(user) == 5 else []}

    who, invoke = WAYS[way]
    llm = Recorder()
    graph = StateGraph(State, context_schema=dict)
    graph.add_node("sometimes", sometimes)
    graph.add_edge(START, "sometimes")
    fast = accelerate(graph.compile())
    for number, user in enumerate(users.split()):
        invoke(fast, state(number), user)
        assert settle()
    accel.save_plan(fast, tmp_path / "plan.json")
    saved = (tmp_path / "plan.json").read_text(encoding="utf-8")
    assert "Hello, " in saved and "Alice" not in saved and "Bob" not in saved


def test_credentials_and_threads_are_no_values_of_prompts() -> None:
    fast = accelerate(program(lambda config: "nobody"))
    for number in range(2):
        fast.invoke(state(number), {"configurable": {"api_key": "sk-12345678", "thread_id": "a", "user": "Alice"}})
        assert settle()
    assert fast.plan.last.beside == {"configurable": {"user": "Alice"}}


class Asked:
    """Works when it is looked at."""

    def __init__(self) -> None:
        self.user = "Alice"

    def __bool__(self) -> bool:
        raise RuntimeError("asked")

    __len__ = __iter__ = __hash__ = __bool__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("asked")


def test_a_context_is_not_asked_what_it_is() -> None:
    fast = accelerate(program(lambda config: "nobody"))
    for number in range(2):
        fast.invoke(state(number), {"configurable": {"user": Asked()}})
        assert settle()
    assert fast.plan.last.beside is None
