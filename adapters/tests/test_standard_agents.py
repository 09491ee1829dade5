"""Graphs whose models call tools, plain and accelerated: the same messages, and calls with bound tools made early."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel

import accel
from accel.engine.profile import Profile, ProfileFile
from accel_langgraph.chat_model import AccelChatModel
from accel_sim import SimLLMConfig
from adapters.tests.catching_up import catch_up

QUESTIONS = ("how do tides work", "who built the harbour", "why is the sea salt", "what is a zeppelin")


@tool
def look_up(topic: str) -> str:
    """Look something up."""
    return f"What is known of {topic}: it is old."


@tool
def take_note(title: str, important: bool) -> str:
    """Write something down."""
    return f"{title} was noted{' as important' if important else ''}."


@tool
def ask_person(question: str) -> str:
    """Ask a person."""
    return f"Nobody knows {question}."


class Plan(BaseModel):
    goal: str
    steps: list[str]


class State(TypedDict, total=False):
    question: str
    messages: Annotated[list[AnyMessage], add_messages]
    notes: AIMessage
    talk: AIMessage
    plan: Plan
    final: AIMessage


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> AccelChatModel:
    path = tmp_path_factory.mktemp("profile") / "steps.json"
    steps = Profile(
        "llm", prefill=((10, 1e-4), (1000, 1e-3)), decode=((1, 4e-4), (16, 4e-4)), batch_tokens=2048, block_tokens=16
    )
    ProfileFile({"llm": steps}).save(path)
    return AccelChatModel(engine=SimLLMConfig(str(path), name="with tools"))


def program(model: AccelChatModel) -> Any:
    """One agent's step written out, and three calls that need nothing of it."""

    def research(state: State) -> State:
        asked = HumanMessage(state["question"])
        answer = model.bind_tools([look_up], tool_choice="look_up").invoke([SystemMessage("Be short."), asked])
        return {"messages": [asked, answer]}

    def notes(state: State) -> State:
        catch_up()
        noting = model.bind_tools([take_note], tool_choice="any", parallel_tool_calls=True)
        return {"notes": noting.invoke(f"Note the points of: {state['question']}")}

    def talk(state: State) -> State:
        catch_up()
        return {"talk": model.bind_tools([ask_person]).invoke(f"Say something about: {state['question']}")}

    def plan(state: State) -> State:
        catch_up()
        planning = model.with_structured_output(Plan, method="function_calling")
        found = planning.invoke(f"Make a plan for: {state['question']}")
        assert isinstance(found, Plan)
        return {"plan": found}

    def answer(state: State) -> State:
        return {"final": model.bind_tools([look_up]).invoke([*state["messages"], HumanMessage("Sum that up.")])}

    steps: dict[str, Any] = {
        "research": research,
        "tools": ToolNode([look_up]),
        "notes": notes,
        "talk": talk,
        "plan": plan,
        "answer": answer,
    }
    builder = StateGraph(State)
    for name, step in steps.items():
        builder.add_node(name, step)
    for before, after in zip((START, *steps), (*steps, END), strict=True):
        builder.add_edge(before, after)
    return builder.compile()


def plain(value: Any) -> Any:
    """Without what the framework makes up, and what depends on what else the engine has seen."""
    if isinstance(value, BaseMessage):
        skipped = {"id", "usage_metadata"}
        return {name: item for name, item in value.model_dump().items() if name not in skipped}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("run", ["invoke", "stream"])
def test_calls_with_bound_tools_are_made_early_and_answered_equally(model: AccelChatModel, run: str) -> None:
    graph = program(model)
    fast = accel.accelerate(graph)

    def ask(which: Any, question: str) -> Any:
        if run == "invoke":
            return plain(which.invoke({"question": question}))
        return [plain(part) for part in which.stream({"question": question}, stream_mode="values")]

    for question in QUESTIONS:
        assert ask(fast, question) == ask(graph, question)
        accel.settle()
    report = fast.report()
    assert report.demanded == 5 * len(QUESTIONS)
    assert report.retired >= 3, f"notes, talk and plan need only the question\n{report}"
    assert report.counts.missed == 0, str(report)


async def test_asynchronous_calls_too(model: AccelChatModel) -> None:
    async def notes(state: State) -> State:
        noting = model.bind_tools([take_note], tool_choice="any")
        return {"notes": await noting.ainvoke(f"Note the points of: {state['question']}")}

    async def talk(state: State) -> State:
        talking = model.bind_tools([ask_person], tool_choice="ask_person", strict=True)
        await asyncio.to_thread(accel.settle)  # what may be early has begun
        return {"talk": await talking.ainvoke(f"Ask somebody about: {state['question']}")}

    builder = StateGraph(State)
    builder.add_node("notes", notes)
    builder.add_node("talk", talk)
    builder.add_edge(START, "notes")
    builder.add_edge("notes", "talk")
    graph = builder.compile()
    fast = accel.accelerate(graph)
    for question in QUESTIONS:
        assert plain(await fast.ainvoke({"question": question})) == plain(await graph.ainvoke({"question": question}))
        accel.settle()
    assert fast.report().retired > 0, str(fast.report())


def test_other_tools_are_another_call(model: AccelChatModel) -> None:
    """What was made early with some tools never answers a call with others, or with another choice."""
    offered: list[Callable[[], Any]] = [lambda: model.bind_tools([look_up], tool_choice="any")]

    def step(state: State) -> State:
        model.invoke(f"Think about: {state['question']}")
        catch_up()
        return {"talk": offered[0]().invoke(f"Say something about: {state['question']}")}

    builder = StateGraph(State)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    graph = builder.compile()
    fast = accel.accelerate(graph)
    for question in QUESTIONS[:3]:
        assert plain(fast.invoke({"question": question})) == plain(graph.invoke({"question": question}))
        accel.settle()
    assert fast.report().retired > 0
    for other in (
        lambda: model.bind_tools([ask_person], tool_choice="any"),
        lambda: model.bind_tools([look_up, ask_person], tool_choice="any"),
        lambda: model.bind_tools([look_up]),
        lambda: model.bind_tools([look_up], tool_choice="any", parallel_tool_calls=True),
    ):
        offered[0] = other
        assert plain(fast.invoke({"question": QUESTIONS[3]})) == plain(graph.invoke({"question": QUESTIONS[3]}))


def test_an_agent_of_langchain(model: AccelChatModel) -> None:
    """The agent's own loop: the simulated model calls tools or not, and answers what they return."""
    graph = create_agent(model, [look_up, take_note], system_prompt="You help people.")
    fast = accel.accelerate(graph)
    answers: list[Any] = []
    for question in QUESTIONS:
        asked = {"messages": [HumanMessage(f"{question}?")]}
        answers.append(fast.invoke(asked))
        assert plain(answers[-1]) == plain(graph.invoke(asked))
        accel.settle()
    called = [message for answer in answers for message in answer["messages"] if isinstance(message, ToolMessage)]
    assert called and all(message.status == "success" for message in called)


def test_an_agent_with_a_form_for_its_answer(model: AccelChatModel) -> None:
    graph = create_agent(model, [look_up], response_format=Plan)
    fast = accel.accelerate(graph)
    for question in QUESTIONS[:2]:
        asked = {"messages": [HumanMessage(f"{question}?")]}
        found = fast.invoke(asked, {"recursion_limit": 40})
        assert isinstance(found["structured_response"], Plan)
        assert plain(found) == plain(graph.invoke(asked, {"recursion_limit": 40}))
