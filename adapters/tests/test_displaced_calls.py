"""Early calls of a loop that goes through more than was expected: they are made once, and answered in their place."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, StateGraph
from pydantic import PrivateAttr

import accel
from accel import accelerate
from adapters.tests.catching_up import catch_up


class Grader(BaseChatModel):
    _asked: list[str] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "grader"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        prompt = str(messages[-1].content)
        with self._lock:
            self._asked.append(prompt)
        lines = "\n".join(f"{prompt[6:]}, part {n}" for n in range(4))
        answer = lines if prompt.startswith("Split") else f"{len(prompt)} points for {prompt.lower()}"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


MANY = 6
"""So many notes stand for all parts."""
accel.register(Grader, pure=True, local=True, concurrency=8)


class State(TypedDict, total=False):
    topic: str
    before: list[str]
    parts: list[str]
    grades: list[str]


def grading(model: Grader) -> Any:
    def split(state: State) -> State:
        return {"parts": str(model.invoke(f"Split {state['topic']}").content).split("\n")}

    def grade(state: State) -> State:
        grades = []
        notes = state.get("before", [])
        for part in notes if len(notes) == MANY else [*notes, *state["parts"]]:
            catch_up()
            grades.append(str(model.invoke(f"Grade {part} with care").content))
        return {"grades": grades}

    graph = StateGraph(State)
    graph.add_node("split", split)
    graph.add_node("grade", grade)
    graph.add_edge(START, "split")
    graph.add_edge("split", "grade")
    return graph.compile()


def learnt(model: Grader) -> Any:
    """Accelerated, after three runs that go through all parts."""
    fast = accelerate(grading(model))
    for topic in ("bees and hives", "iron in Sweden", "bread of long ago"):
        assert fast.invoke({"topic": topic}) == grading(Grader()).invoke({"topic": topic})
        assert accel.settle(10)
    return fast


def asked_with(fast: Any, model: Grader, notes: int) -> Counter[str]:
    """The prompts of a run with so many notes before the parts."""
    before = len(model._asked)
    asked: Any = {"topic": "the far moon", "before": [f"a note that is number {n}" for n in range(notes)]}
    assert fast.invoke(asked) == grading(Grader()).invoke(asked)
    assert accel.settle(10)
    return Counter(model._asked[before:])


@pytest.mark.parametrize("more", [1, 2, 4])
def test_what_stands_before_a_list_displaces_its_early_calls_and_repeats_none(more: int) -> None:
    model = Grader()
    fast = learnt(model)
    retired = fast.report().retired
    counts = asked_with(fast, model, more)
    assert set(counts.values()) == {1} and len(counts) == 1 + more + 4
    assert fast.report().retired - retired >= 4, "all four parts were early"


def test_what_is_not_made_any_more_is_given_up() -> None:
    """The program goes through other things than expected: each early call is in vain, once."""
    model = Grader()
    fast = learnt(model)
    wasted = fast.report().wasted
    counts = asked_with(fast, model, MANY)
    assert set(counts.values()) == {1}
    assert fast.report().wasted - wasted == len(counts) - 1 - MANY > 0
