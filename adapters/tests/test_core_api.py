"""What `accelerate` gives back, refuses and restores."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import (
    FakeListChatModel,
    FakeMessagesListChatModel,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel

import accel
from accel import accelerate, api
from accel.errors import ConfigurationError
from accel.parts.components import facts_of
from accel.parts.methods.patches import is_installed
from accel.process.threads import learner
from accel.text.values import snapshot
from adapters.tests.core_fakes import Chat, State, UnknownChat, World, chain, three, train

TOPIC = "beaches of Portugal"


def test_other_things_are_refused_with_what_is_accepted() -> None:
    with pytest.raises(TypeError) as caught:
        accelerate(42)
    assert str(caught.value) == (
        "accelerate() takes a compiled LangGraph graph (StateGraph(...).compile()), a LangChain chain, or one of "
        "LlamaIndex's query and chat engines, retrievers, synthesizers, postprocessors, evaluators, transformations, "
        "pipelines, indexes, workflows and agents, not int.\n"
        "  Remedy: Give it the object that your program calls: a compiled graph, a chain, or a query engine, say."
    )
    with pytest.raises(TypeError, match="not StateGraph"):
        accelerate(three(World(), Chat(World())).builder)


class Inherits(FakeMessagesListChatModel):
    """Has no code of its own."""


@pytest.mark.parametrize("cls", [FakeMessagesListChatModel, Inherits, FakeListChatModel, GenericFakeChatModel])
def test_models_that_answer_from_a_script_are_not_pure(cls: Any) -> None:
    """Also where their code is LangChain's own: an early call would take the answer of another."""
    accelerate(three(World(), Chat(World())))  # patches what it finds
    facts = facts_of(cls.model_construct())
    assert facts.pure is False and facts.reason == "nobody vouches for it"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"speculate": "wild"}, "speculate='wild' is not known"),
        ({"egress": "all"}, "egress='all' is not known"),
        ({"pure_nodes": ["nope"]}, "pure_nodes names 'nope'"),
        ({"plan": "/nowhere/plan.json"}, "There is no plan at"),
    ],
)
def test_unknown_options_are_refused(options: dict[str, Any], error: str) -> None:
    world = World()
    with pytest.raises(ConfigurationError, match=error):
        accelerate(three(world, Chat(world)), **options)


def test_accelerating_twice_changes_nothing() -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    assert accelerate(fast) is fast


def test_the_graph_given_is_not_changed() -> None:
    world = World()
    graph = three(world, Chat(world))
    before = (dict(vars(graph)), dict(graph.nodes), {name: dict(vars(node)) for name, node in graph.nodes.items()})
    fast = accelerate(graph)
    train(fast)
    assert (dict(vars(graph)), dict(graph.nodes)) == before[:2]
    for name, node in graph.nodes.items():
        assert {key: vars(node)[key] for key in before[2][name]} == before[2][name]
    assert type(graph) is CompiledStateGraph


def test_it_looks_like_the_graph_it_was_made_from() -> None:
    world = World()
    graph = three(world, Chat(world))
    fast = accelerate(graph)
    assert isinstance(fast, CompiledStateGraph) and isinstance(fast, Pregel)
    assert type(fast).__name__ == type(graph).__name__ and type(fast).__module__ == type(graph).__module__
    assert fast.get_graph().draw_mermaid() == graph.get_graph().draw_mermaid()
    assert fast.get_input_jsonschema() == graph.get_input_jsonschema()
    assert fast.get_output_jsonschema() == graph.get_output_jsonschema()
    assert list(fast.nodes) == list(graph.nodes)
    assert all(fast.nodes[name].bound is graph.nodes[name].bound for name in graph.nodes)


@pytest.mark.parametrize("derive", [lambda g: g.with_config(recursion_limit=50), lambda g: g.copy()])
def test_copies_are_accelerated_with_the_same_plan(derive: Any) -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    train(fast)
    copy = derive(fast)
    assert copy is not fast and copy.plan is fast.plan
    world.hooks["b"] = lambda: world.wait_early("Beta asks: beaches")
    assert copy.invoke({"q": TOPIC})["b"] == f"answer to <Beta asks: {TOPIC}>"


def test_uninstall_restores_the_classes_and_the_graph_goes_on() -> None:
    class Own(Chat):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            return self._result(messages, kwargs)

    original = Own.__dict__["_generate"]
    world = World()
    fast = accelerate(three(world, Own(world)))
    assert is_installed(Own, "_generate") and Own.__dict__["_generate"] is not original
    accel.uninstall()
    assert Own.__dict__["_generate"] is original and not is_installed(Own, "_generate")
    assert fast.invoke({"q": TOPIC})["b"] == f"answer to <Beta asks: {TOPIC}>"
    accel.uninstall()


def test_framework_base_classes_are_never_patched() -> None:
    world = World()
    accelerate(three(world, UnknownChat(world)))
    assert not any(is_installed(BaseChatModel, name) for name in dir(BaseChatModel))


def test_outside_runs_a_component_is_as_without_accel() -> None:
    world = World()
    model = Chat(world)
    fast = accelerate(three(world, model))
    train(fast)
    world.forget()
    assert model.invoke("Beta asks: something").content == "answer to <Beta asks: something>"
    assert fast.report().runs == 2


def test_off_only_records() -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)), speculate="off")
    train(fast, ("one topic", "two topics", "three topics"))
    assert world.texts(early=True) == []
    assert fast.report().demanded == 9
    assert "Alpha asks: {input.q}" in fast.explain(graph=True)


def test_the_first_request_gains_inside_a_loop() -> None:
    world = World()
    model = Chat(world)
    world.answer = lambda text: "\n".join(f"part {i} of the list" for i in range(6)) if "List" in text else text
    seen = threading.Event()

    def a(state: State) -> State:
        return {"a": model.invoke(f"List parts of {state['q']}").content}

    def b(state: State) -> State:
        answers = []
        for number, line in enumerate(state["a"].split("\n")):
            if number >= 2:
                assert accel.settle()
            if number == 5:
                world.wait_early("Explain part 5", over=False)
                seen.set()
            answers.append(model.invoke(f"Explain {line}").content)
        return {"b": answers}

    fast = accelerate(chain(("a", a), ("b", b)))
    assert fast.invoke({"q": TOPIC})["b"] == [f"Explain part {i} of the list" for i in range(6)]
    assert seen.is_set() and len(world.texts("Explain")) == 6


def test_what_a_message_gives_as_its_text_is_a_text() -> None:
    """LangChain has a class of its own for it, also for what `StrOutputParser` returns."""
    tree = snapshot(AIMessage("volcanoes").text, exact=True)
    assert tree == "volcanoes" and type(tree) is str


def test_folders_on_the_path_without_an_installation_are_told_from_a_wrong_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    graph = three(world, Chat(world))
    monkeypatch.setattr(api, "frameworks", lambda: ())
    with pytest.raises(ConfigurationError, match="isn't installed") as caught:
        accelerate(graph)
    assert "pip install" in caught.value.remedy


def test_settle_tells_whether_a_report_would_wait() -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    train(fast)
    going_on, over = threading.Event(), threading.Event()
    learner.post(going_on.set)
    learner.post(lambda: None if over.wait() else None)
    assert going_on.wait(10) and not accel.settle(0.1)
    over.set()
    assert accel.settle()
    assert accel.report(fast).runs == 2
