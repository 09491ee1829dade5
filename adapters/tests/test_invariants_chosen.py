"""Invariants 6 and 10: what a program looks up by a field of its input is nobody else's, nor is what a prompt says no
longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, RemoteChat, State, World, chain

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "rivers of Siberia", "deserts of Chile", "reefs of Fiji")
TENANTS = ("acme", "bolt")
SECRETS = {tenant: f"You serve the {tenant} company under a secret contract." for tenant in TENANTS}
PERSONAS = {"acme": "You are the voice of acme, be short.", "bolt": "You are the voice of bolt, be short."}
BASE = ChatPromptTemplate.from_messages([("system", "{contract}"), ("human", "Beta asks: {q}")])
PARTIAL = {tenant: BASE.partial(contract=SECRETS[tenant]) for tenant in TENANTS}
WHOLE = {
    tenant: ChatPromptTemplate.from_messages([("system", SECRETS[tenant]), ("human", "Beta asks: {q}")])
    for tenant in TENANTS
}
STAGES = {
    "ask": ChatPromptTemplate.from_messages([("system", "You ask the experts at once."), ("human", "Beta asks: {q}")]),
    "tell": ChatPromptTemplate.from_messages([("system", "You tell what they said."), ("human", "Beta asks: {q}")]),
}

Asks = Callable[[Any, State], Any]


def with_a_default(model: Any, state: State) -> Any:
    persona = PERSONAS.get(state["c"], PERSONAS["acme"])
    return model.invoke(f"{persona} Beta asks: {state['q']}")


def with_a_name(model: Any, state: State) -> Any:
    if state["c"] == "acme":
        state = {**state}
    return model.invoke(f"{PERSONAS[state['c']]} Beta asks: {state['q']}")


def by_partial_prompts(model: Any, state: State) -> Any:
    return (PARTIAL[state["c"]] | model).invoke({"q": state["q"]})


def by_whole_prompts(model: Any, state: State) -> Any:
    return (WHOLE[state["c"]] | model).invoke({"q": state["q"]})


def by_bound_arguments(model: Any, state: State) -> Any:
    bound = {tenant: model.bind(stop=[SECRETS[tenant]]) for tenant in TENANTS}
    return bound[state["c"]].invoke(f"Beta asks: {state['q']} {SECRETS[state['c']]}")


def by_a_constant(model: Any, state: State) -> Any:
    return (STAGES["ask"] | model).invoke({"q": state["q"]})


def program(world: World, model: Any, asks: Asks) -> Any:
    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"Alpha thinks about {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": asks(model, state).content}

    return chain(("a", a), ("b", b))


def asked(fast: Any, number: int, tenant: str) -> None:
    fast.invoke({"q": f"{TOPICS[number % 5]} in {1900 + number}", "c": tenant})
    assert accel.settle()


def asked_early(fast: Any, world: World, number: int, tenant: str) -> None:
    """Its second call is early, or this fails."""
    world.forget()
    world.hooks["b"] = lambda: world.wait(lambda: any(call.early and "Beta asks" in call.text for call in world.calls))
    asked(fast, number, tenant)
    del world.hooks["b"]


CHOSEN = (with_a_default, with_a_name, by_partial_prompts, by_whole_prompts, by_bound_arguments)
MODELS = {"local": (Chat, {}), "remote": (RemoteChat, {"egress": "inputs"})}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("asks", CHOSEN)
def test_a_text_that_is_looked_up_by_a_field_stays_with_its_value(asks: Asks, model: str) -> None:
    """Though only one value was there so far, and code has a name for it."""
    world = World()
    kind, options = MODELS[model]
    fast = accelerate(program(world, kind(world), asks), **options)
    for number in range(3):
        asked(fast, number, "acme")
    asked_early(fast, world, 3, "acme")
    for number in range(4, 8):
        world.forget()
        asked(fast, number, "bolt")
        assert len(world.texts()) >= 2 and not any("acme" in text for text in world.texts())


def test_a_prompt_that_code_takes_by_a_constant_is_everybody_s() -> None:
    world = World()
    fast = accelerate(program(world, Chat(world), by_a_constant))
    for number in range(3):
        asked(fast, number, "acme")
    asked_early(fast, world, 3, "bolt")


def template() -> tuple[Any, Callable[[], None]]:
    prompt = PromptTemplate.from_template("The old rule holds. Beta asks: {q}")

    def change() -> None:
        prompt.template = "The new rule holds. Beta asks: {q}"

    return prompt, change


def message() -> tuple[Any, Callable[[], None]]:
    prompt: Any = ChatPromptTemplate.from_messages([("system", "The old rule holds."), ("human", "Beta asks: {q}")])

    def change() -> None:
        prompt.messages[0].prompt.template = "The new rule holds."

    return prompt, change


def messages() -> tuple[Any, Callable[[], None]]:
    prompt: Any = ChatPromptTemplate.from_messages([("system", "The old rule holds."), ("human", "Beta asks: {q}")])

    def change() -> None:
        prompt.messages[0] = ChatPromptTemplate.from_messages([("system", "The new rule holds.")]).messages[0]

    return prompt, change


@pytest.mark.parametrize("made", [template, message, messages])
def test_what_a_prompt_says_no_longer_is_not_sent(made: Callable[[], tuple[Any, Callable[[], None]]]) -> None:
    """Though LangChain keeps what it was written as."""
    world, (prompt, change) = World(), made()
    fast = accelerate(
        program(world, RemoteChat(world), lambda model, state: (prompt | model).invoke({"q": state["q"]}))
    )
    for number in range(3):
        asked(fast, number, "acme")
    asked_early(fast, world, 3, "acme")
    change()
    for number in range(4, 7):
        world.forget()
        asked(fast, number, "acme")
        assert len(world.texts()) >= 2 and not any("old rule" in text for text in world.texts())
