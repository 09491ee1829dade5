"""Conversations: answers that are handed on as messages, with what providers say of them, round by round."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, State, World, as_text, chain

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "deserts of Chile")


class Provider(Chat):
    """Answers as the clients of providers do."""

    def _result(self, messages: list[Any], kwargs: dict[str, Any]) -> ChatResult:
        text = as_text(messages)
        said = self._world.serve(self.label, text)
        usage = {"input_tokens": len(text), "output_tokens": len(said), "total_tokens": len(text) + len(said)}
        told = {"token_usage": {"prompt_tokens": len(text)}, "model_name": "some-model", "id": f"chatcmpl-{hash(text)}"}
        message = AIMessage(said, id=f"chatcmpl-{hash(text)}", usage_metadata=usage, response_metadata=told)
        return ChatResult(generations=[ChatGeneration(message=message, generation_info={"finish_reason": "stop"})])


accel.register(Provider, pure=True, local=True, concurrency=8)


def interview(world: World, rounds: int, named: bool) -> Any:
    """A writer asks, an expert answers; each sees all that was said, and a last node sums it up after a pause."""
    asker, expert = Provider(world), Provider(world)

    def talk(state: State) -> State:
        world.node("talk")
        messages: list[Any] = [HumanMessage(f"You write on {state['q']}.")]
        for _ in range(rounds):
            messages.append(ask(messages))
            messages.append(answer(messages))
        return {"b": messages}

    def ask(messages: list[Any]) -> Any:
        return asker.invoke([SystemMessage("Ask a question."), *messages])

    def answer(messages: list[Any]) -> Any:
        said = expert.invoke([SystemMessage("Answer it."), *messages])
        if named:
            said.name = "expert"
        return said

    def think(state: State) -> State:
        world.node("think")
        return {}

    def conclude(state: State) -> State:
        world.node("conclude")
        return {"c": expert.invoke([SystemMessage("Sum up."), *state["b"]]).content}

    return chain(("talk", talk), ("think", think), ("conclude", conclude))


@pytest.mark.parametrize("named", [False, True])
def test_a_conversation_is_summed_up_before_its_node_is_reached(named: bool) -> None:
    world = World(answer=lambda text: f"{len(text)} words of {text[-12:]}")
    fast = accelerate(interview(world, 2, named))
    for topic in TOPICS[:2]:
        fast.invoke({"q": topic})
        assert accel.settle()
    assert all(node.evidence.confidence == "verified" for node in fast.plan.learnt.nodes if node.site), fast.explain()
    world.forget()
    world.hooks["think"] = lambda: world.wait_early("Sum up.")
    plain = interview(World(answer=world.answer), 2, named).invoke({"q": TOPICS[2]})
    assert fast.invoke({"q": TOPICS[2]})["c"] == plain["c"]
    assert world.texts("Sum up.", early=False) == []


def test_functions_can_be_declared_pure_after_an_adapter_was_loaded() -> None:
    importlib.import_module("accel_langgraph.graph")
    assert [accel.pure(len)("abc"), accel.pure(max)(1, 2)] == [3, 2]
