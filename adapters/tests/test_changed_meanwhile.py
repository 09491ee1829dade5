"""A model that is changed and put back while an early call is inside: what that call brings is another's."""

from __future__ import annotations

import threading
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import accel
from adapters.tests.core_fakes import Chat, World, as_text, chain


class Late(Chat):
    """Looks at its tenant only when it is about to answer, and takes some time from then on."""

    tenant: str = "ours"

    def _result(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> ChatResult:
        prompt = as_text(messages)
        self._world.serve(self.label, f"Comes: {prompt}")
        tenant = self.tenant
        self._world.serve(self.label, f"Leaves: {prompt}")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"{tenant}: {prompt}"))])


accel.register(Late, pure=True, local=True, concurrency=8)


def test_an_early_call_that_was_inside_meanwhile_answers_nothing() -> None:
    world = World()
    model = Late(world)

    def before(state: Any) -> Any:
        world.node("a")
        if not world.gates:
            return {"a": model.invoke(f"Before it: {state['q']}").content}
        after = f"After it: {state['q']}"
        world.wait_early(f"Comes: {after}", over=False)
        model.tenant = "theirs"
        told = model.invoke(f"Before it: {state['q']}").content
        world.gates[f"Comes: {after}"].set()
        world.wait_early(f"Leaves: {after}", over=False)
        model.tenant = "ours"
        world.gates[f"Leaves: {after}"].set()
        return {"a": told}

    def later(state: Any) -> Any:
        world.node("b")
        return {"b": model.invoke(f"After it: {state['q']}").content}

    fast = accel.accelerate(chain(("a", before), ("b", later)))
    for question in ("Why is the sky blue?", "How do bees find their hive?", "What is rust?"):
        fast.invoke({"q": question})
        assert accel.settle()
    assert world.texts("Comes: After", early=True), "it is early where nobody changes anything"
    question = "Who painted this?"
    world.gates = {f"{step}: After it: {question}": threading.Event() for step in ("Comes", "Leaves")}
    told = fast.invoke({"q": question})
    assert told["a"] == f"theirs: Before it: {question}" and told["b"] == f"ours: After it: {question}"
