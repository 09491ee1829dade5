"""Decisions by short answers: once two runs have shown what an answer leads to, that is called early, and no more."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, RemoteChat, State, World, forked

TOPICS = ("volcanoes, hot", "glaciers, cold", "geysers, hot", "fjords, cold", "deserts, hot", "icebergs, cold")


def said(text: str) -> str:
    """The router's word is part of the question."""
    return text.rsplit(", ", 1)[1] if text.startswith("Route") else f"answer to <{text}>"


def router(world: World, model: Any, guard: str = "", **options: Any) -> Any:
    """A routing call, another one, then one of two nodes."""

    def route(state: State) -> State:
        world.node("route")
        return {"a": model.invoke(f"Route: {state['q']}").content}

    def look(state: State) -> State:
        world.node("look")
        return {"b": model.invoke(f"Look at {state['q']}").content}

    def hot(state: State) -> State:
        world.node("hot")
        return {"c": model.invoke(f"Fire and {state['q']}").content}

    def cold(state: State) -> State:
        world.node("cold")
        return {"c": model.invoke(f"Ice and {state['q']}").content}

    return forked(route, look, hot, cold, guard=guard, **options)


def trained(world: World, graph: Any, topics: tuple[str, ...] = TOPICS, **options: Any) -> Any:
    fast = accelerate(graph, **options)
    for topic in topics:
        fast.invoke({"q": topic})
        assert accel.settle()
    world.forget()
    return fast


@pytest.mark.parametrize(("topic", "taken"), [("beaches, hot", "Fire"), ("tundra, cold", "Ice")])
def test_the_branch_that_was_decided_is_called_before_its_node_is_reached(topic: str, taken: str) -> None:
    world = World(answer=said)
    fast = trained(world, router(world, Chat(world)))
    world.hooks["look"] = lambda: world.wait_early(f"{taken} and")
    assert fast.invoke({"q": topic})["c"] == f"answer to <{taken} and {topic}>"
    assert sorted(world.texts()) == sorted([f"Route: {topic}", f"Look at {topic}", f"{taken} and {topic}"])


@pytest.mark.parametrize(("speculate", "early"), [("likely", 1), ("certain", 0)])
def test_a_branch_that_a_node_decides_by_itself_goes_by_its_chance_until_then(speculate: Any, early: int) -> None:
    """That a run went the other way shows what decides, and not that guessing is in vain."""
    world, moods = World(), dict.fromkeys(TOPICS, "hot") | {TOPICS[3]: "cold"}
    model = Chat(world)

    def look(state: State) -> State:
        return {"b": model.invoke(f"Look at {state['q']}").content}

    def judge(state: State) -> State:
        world.node("judge")
        return {"a": moods[state["q"]]}

    def hot(state: State) -> State:
        return {"c": model.invoke(f"Fire and {state['q']}").content}

    def cold(state: State) -> State:
        return {"c": "ice"}

    fast = trained(world, forked(look, judge, hot, cold), TOPICS[:-1], speculate=speculate)
    if early:
        world.hooks["judge"] = lambda: world.wait_early("Fire and")
    assert fast.invoke({"q": TOPICS[-1]})["c"] == f"answer to <Fire and {TOPICS[-1]}>"
    assert accel.settle()
    assert len(world.texts("Fire and", early=True)) == early and len(world.texts()) == 2


def test_what_a_decided_call_leads_to_in_its_node_is_called_before_that_is_reached() -> None:
    world = World(answer=said)
    model = Chat(world)

    def route(state: State) -> State:
        return {"a": model.invoke(f"Route: {state['q']}").content}

    def look(state: State) -> State:
        world.node("look")
        return {"b": model.invoke(f"Look at {state['q']}").content}

    def hot(state: State) -> State:
        fire = model.invoke(f"Fire and {state['q']}").content
        return {"c": model.invoke(f"More on {fire}").content}

    def cold(state: State) -> State:
        return {"c": model.invoke(f"Ice and {state['q']}").content}

    fast = trained(world, forked(route, look, hot, cold))
    world.hooks["look"] = lambda: world.wait_early("More on")
    assert fast.invoke({"q": "beaches, hot"})["c"] == "answer to <More on answer to <Fire and beaches, hot>>"
    assert len(world.texts("More on")) == 1


def test_an_answer_that_nobody_gave_before_decides_nothing() -> None:
    world = World(answer=lambda text: "Hot!" if text.startswith("Route: odd") else said(text))
    graph = router(world, Chat(world))
    fast = trained(world, graph, TOPICS[:3], speculate="certain")  # cold was seen once
    assert fast.invoke({"q": "tundra, cold"})["c"] == "answer to <Ice and tundra, cold>"
    assert world.texts("Ice", early=True) == [] and world.texts("Fire") == []


def test_nothing_that_was_decided_is_called_past_a_pause() -> None:
    world = World(answer=said)
    fast = trained(world, router(world, Chat(world)))
    for _ in fast.stream({"q": "beaches, hot"}, interrupt_before=["hot"]):
        pass
    assert accel.settle() and world.texts("Fire") == []


def test_nothing_that_was_decided_is_called_past_a_guard() -> None:
    world = World(answer=said)
    fast = trained(world, router(world, Chat(world), guard="look"))
    seen: list[list[str]] = []
    world.hooks["look"] = lambda: seen.append(world.texts("Fire"))
    world.hooks["hot"] = lambda: seen.append(world.texts("Fire"))
    assert fast.invoke({"q": "beaches, hot"})["c"] == "answer to <Fire and beaches, hot>"
    assert seen[0] == [] and "guard" in str(fast.report())


def test_a_remote_endpoint_gets_no_more_than_before() -> None:
    world = World(answer=said)
    here, remote = Chat(world, label="here"), RemoteChat(world, label="remote")

    def route(state: State) -> State:
        world.node("route")
        return {"a": here.invoke(f"Route: {state['q']}").content}

    def think(state: State) -> State:
        world.node("think")
        return {}

    def ask(state: State) -> State:
        world.node("ask")
        return {"b": remote.invoke(f"Fire and {state['q']}").content if state["a"] == "hot" else "nothing"}

    builder = StateGraph(State)
    builder.add_sequence([route, think, ask])
    builder.add_edge(START, "route")
    builder.add_edge("ask", END)
    fast = trained(world, builder.compile())
    assert fast.invoke({"q": "beaches, hot"})["b"] == "answer to <Fire and beaches, hot>"
    assert world.texts("Fire", early=True) == []
    assert accel.settle() and 'egress="inputs"' in str(fast.report())


MOSTLY_HOT = tuple(f"{thing}, {kind}" for thing, kind in zip("abcdefg", ["hot"] * 5 + ["cold"] * 2, strict=True))


def test_what_is_likely_is_called_before_it_is_decided_and_dropped_when_it_loses() -> None:
    world = World(answer=said)
    fast = trained(world, router(world, Chat(world)), MOSTLY_HOT, speculate="likely")
    world.gates["Route"] = gate = threading.Event()  # nothing is decided before
    world.hooks["route"] = lambda: (world.wait_early("Fire and"), gate.set())[-1]
    assert fast.invoke({"q": "beaches, hot"})["c"] == "answer to <Fire and beaches, hot>"
    assert accel.settle()
    world.forget()
    gate.clear()
    before = fast.report().wasted
    assert fast.invoke({"q": "tundra, cold"}) == {
        "q": "tundra, cold", "a": "cold", "b": "answer to <Look at tundra, cold>",
        "c": "answer to <Ice and tundra, cold>",
    }  # fmt: skip
    assert accel.settle() and fast.report().wasted == before + 1


LOOK_S = 0.3
"""How long the program looks at something, in which a call may be made for it."""


@pytest.mark.parametrize(
    ("options", "early"),
    [({"budget": accel.Budget(waste=1)}, 1), ({"budget": accel.Budget(waste=0)}, 0), ({"speculate": "certain"}, 0)],
    ids=["all may be in vain", "nothing may", "certain"],
)
def test_the_branch_that_every_run_took_is_called_before_it_is_decided(options: dict[str, Any], early: int) -> None:
    """Nobody knows what decides: it never was otherwise. Which way the next run goes may be another one."""
    world = World(answer=said)
    seen: list[int] = []
    awaited = 0

    def look() -> None:
        threading.Event().wait(LOOK_S)
        world.wait(lambda: len(world.texts("Fire", early=True)) >= awaited)
        seen.append(len(world.texts("Fire", early=True)))

    world.hooks["look"] = look
    fast = trained(world, router(world, Chat(world)), tuple(f"{thing}, hot" for thing in "abcdefg"), **options)
    awaited = early
    for topic in ("beaches, hot", "tundra, cold"):
        word = "Ice" if "cold" in topic else "Fire"
        assert fast.invoke({"q": topic})["c"] == f"answer to <{word} and {topic}>"
        assert accel.settle() and seen[-1] == early, topic
        world.forget()


def test_what_only_a_conditional_edge_refers_to_is_called_early() -> None:
    """The program refers to it as it does to what its nodes name."""
    world = World()
    writer, judge = Chat(world), Chat(world, name_in_log="judge")

    def write(state: State) -> State:
        world.node("write")
        return {"a": writer.invoke(f"Write on {state['q']}").content}

    def choose(state: State) -> str:
        return END if "fit" in judge.invoke(f"Judge whether {state['q']} is fit to print").content else "write"

    builder = StateGraph(State)
    builder.add_node("write", write)
    builder.add_edge(START, "write")
    builder.add_conditional_edges("write", choose, ["write", END])
    fast = trained(world, builder.compile(), TOPICS[:3])
    world.hooks["write"] = lambda: world.wait_early("Judge")
    assert fast.invoke({"q": "deserts, hot"})["a"] == "answer to <Write on deserts, hot>"


def test_what_is_less_likely_waits_for_its_decision() -> None:
    world = World(answer=said)
    fast = trained(world, router(world, Chat(world)), MOSTLY_HOT, speculate="likely")
    world.gates["Route"] = gate = threading.Event()
    world.hooks["route"] = lambda: (world.wait_early("Fire and"), gate.set())[-1]
    world.hooks["look"] = lambda: world.wait_early("Ice and")
    assert fast.invoke({"q": "tundra, cold"})["c"] == "answer to <Ice and tundra, cold>"
    at = [call.text[:4] for call in world.calls]
    assert at.index("Ice ") > at.index("Rout")


def test_a_changed_prompt_is_learnt_again_within_two_runs() -> None:
    world = World()
    model, words = Chat(world), {"ask": "Beta asks"}

    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": model.invoke(f"{words['ask']}: {state['q']}").content}

    builder = StateGraph(State)
    builder.add_sequence([a, b])
    builder.add_edge(START, "a")
    builder.add_edge("b", END)
    fast = trained(world, builder.compile(), tuple(f"topic number {n}" for n in range(4)))
    words["ask"] = "Somebody else wants to know"
    for topic in ("seas of sand", "seas of ice"):
        fast.invoke({"q": topic})
        assert accel.settle()
    world.forget()
    world.hooks["a"] = lambda: world.wait_early("Somebody else")
    assert fast.invoke({"q": "seas of grass"})["b"] == "answer to <Somebody else wants to know: seas of grass>"
    assert world.texts("Beta") == []


def test_a_program_that_goes_one_way_or_the_other_stays_known_both_ways() -> None:
    """No value tells which: after a few runs nothing is called in vain."""
    world = World()
    model, ways = Chat(world), iter("AABBABBABABBBAAB")

    def ask(state: State) -> State:
        world.node("ask")
        return {"b": model.invoke(f"Way {next(ways)} to ask: {state['q']}").content}

    def think(state: State) -> State:
        world.node("think")
        return {}

    builder = StateGraph(State)
    builder.add_sequence([think, ask])
    builder.add_edge(START, "think")
    builder.add_edge("ask", END)
    fast = trained(world, builder.compile(), tuple(f"topic number {n}" for n in range(16)))
    assert fast.report().wasted <= 2


def test_the_first_round_of_a_loop_is_called_before_the_loop_is_reached() -> None:
    """Every round asks about the state's text, which is the input at first and an answer later."""
    world = World()
    model = Chat(world)

    def think(state: State) -> State:
        world.node("think")
        return {"a": 0}

    def ask(state: State) -> State:
        world.node("ask")
        return {"q": model.invoke(f"Beta asks: {state['q']}").content, "a": state["a"] + 1}

    builder = StateGraph(State)
    builder.add_sequence([think, ask])
    builder.add_edge(START, "think")
    builder.add_conditional_edges("ask", lambda state: "ask" if state["a"] < 2 else END, ["ask", END])
    fast = trained(world, builder.compile(), ("volcanoes of Iceland", "glaciers of Norway"))
    world.hooks["think"] = lambda: world.wait_early("Beta asks: seas of sand")
    said = "answer to <Beta asks: seas of sand>"
    assert fast.invoke({"q": "seas of sand"}) == {"q": f"answer to <Beta asks: {said}>", "a": 2}
    assert world.texts("Beta") == ["Beta asks: seas of sand", f"Beta asks: {said}"]


def test_explain_says_since_when_a_call_is_predicted_and_how_often_it_was_made() -> None:
    world = World(answer=said)
    text = trained(world, router(world, Chat(world))).explain(graph=True)
    sites = dict(line.strip().split(": ", 1) for line in text.split("call sites:\n")[1].splitlines())
    assert sites["route.decode"].startswith("predicted since run 2, made in 6 of 6 runs"), text
    assert sites["hot.decode"].startswith("predicted since run 3, made in 3 of 6 runs"), text
    assert "(test_decisions.py:router.<locals>.hot:" in sites["hot.decode"]
