"""A call that a program makes again, in other words, as the answer was of no use: it is one more, and no other call."""

from __future__ import annotations

from typing import Any

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, State, World, chain, train

ASPECTS = ("accuracy", "clarity", "safety")


def answer(text: str) -> str:
    """Of no use where the question says so, the first time."""
    aspect = text.split()[2].strip(".")
    return "no verdict" if f"bad {aspect}" in text and "Attempt" not in text else f"verdict on <{text}>"


def judged(world: World) -> Any:
    model = Chat(world)

    def ask(aspect: str, question: str) -> str:
        hint, found = "", ""
        for attempt in range(3):
            world.node("ask")
            found = str(model.invoke(f"Judge of {aspect}.{hint} Question: {question}").content)
            if found != "no verdict":
                break
            hint = f" Attempt {attempt + 2}: be exact."
        return found

    def a(state: State) -> State:
        world.node("a")
        return {"a": "ready"}

    def b(state: State) -> State:
        world.node("b")
        return {"b": [ask(aspect, state["q"]) for aspect in ASPECTS]}

    return chain(("a", a), ("b", b))


def test_first_attempts_are_early_whatever_is_asked_again() -> None:
    world = World(answer=answer)
    fast = accelerate(judged(world))
    train(fast)
    for question in (
        "rivers, bad accuracy",
        "fjords",
        "geysers, bad clarity",
        "deserts, bad accuracy",
        "lakes, bad safety",
    ):
        world.forget()
        world.hooks["b"] = lambda: [world.wait_early(f"Judge of {aspect}. Question") for aspect in ASPECTS]
        assert fast.invoke({"q": question}) == judged(World(answer=answer)).invoke({"q": question})
        assert accel.settle()
        first = [text for text in world.texts() if "Attempt" not in text]
        assert len(first) == len(ASPECTS) == len(set(first)), "none was given up, and made again"
