"""What a program computes from answers is known as early as these are, and goes only where they may go."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

from adapters.tests.core_fakes import Chat, RemoteChat, State, World, chain
from adapters.tests.test_decisions import trained

SCORES = {
    "volcanoes": 0.9, "glaciers": 0.6, "geysers": 0.4, "fjords": 0.2, "deserts": 0.1, "beaches": 0.8, "tundra": 0.7,
    "moors": 0.3, "islands": 0.75, "canyons": 0.15,
}  # fmt: skip
THINKING = re.compile(r"<think>.*?</think>", re.DOTALL)


def voted(text: str) -> str:
    if text.startswith("Grade "):
        return json.dumps({"score": SCORES[text[6:]]})
    return f"<think>of {text}</think> \nso much for {text[::-1]}"


def cleaned(world: World, model: Any) -> Any:
    """An answer without its thoughts goes on, after another call."""

    def think(state: State) -> State:
        world.node("think")
        return {"a": model.invoke(f"Think of {state['q']}").content}

    def look(state: State) -> State:
        world.node("look")
        return {"b": model.invoke(f"Look at {state['q']}").content}

    def go_on(state: State) -> State:
        world.node("go on")
        thought = THINKING.sub("", state["a"]).split("so much")[-1].strip()
        return {"c": model.invoke(f"Go on: {thought}").content}

    return chain(("think", think), ("look", look), ("go on", go_on))


def test_an_answer_without_its_thoughts_is_asked_about_before_its_node_is_reached() -> None:
    world = World(answer=voted)
    graph = cleaned(world, Chat(world))
    fast = trained(world, graph, ("volcanoes", "glaciers", "geysers", "fjords"))
    world.hooks["look"] = lambda: world.wait_early("Go on: for")
    assert fast.invoke({"q": "beaches"})["c"] == graph.invoke({"q": "beaches"})["c"]
    (node,) = fast.plan.graph.by_site[fast.plan.last.calls[-1].site]
    assert node.evidence.confidence == "verified" and fast.plan.last.calls[-1].retired


def test_two_runs_teach_no_function() -> None:
    world = World(answer=voted)
    fast = trained(world, cleaned(world, Chat(world)), ("volcanoes", "glaciers"))
    fast.invoke({"q": "beaches"})
    assert not fast.plan.last.calls[-1].retired


def test_another_function_from_some_run_on_gives_the_programs_own_answers() -> None:
    world = World(answer=voted)
    model = Chat(world)
    ends: list[int] = [-1]

    def think(state: State) -> State:
        return {"a": model.invoke(f"Think of {state['q']}").content}

    def go_on(state: State) -> State:
        return {"c": model.invoke(f"Go on: {state['a'].split('so much')[ends[0]].strip()}").content}

    graph = chain(("think", think), ("go on", go_on))
    fast = trained(world, graph, ("volcanoes", "glaciers", "geysers", "fjords"))
    ends[0] = 0
    for topic in ("deserts", "beaches", "tundra"):
        assert fast.invoke({"q": topic}) == graph.invoke({"q": topic})


def test_what_is_computed_is_sent_to_no_endpoint_that_has_not_seen_it() -> None:
    """A text without a part of it stands nowhere as it is: the endpoint of another model has seen neither."""
    world = World(answer=voted)
    local, remote = Chat(world), RemoteChat(world)

    def think(state: State) -> State:
        world.node("think")
        return {"a": local.invoke(f"Think of {state['q']}").content}

    def look(state: State) -> State:
        world.node("look")
        return {"b": remote.invoke(f"Look at {state['q']}").content}

    def go_on(state: State) -> State:
        world.node("go on")
        thought = THINKING.sub("", state["a"]).split("so much")[-1].strip()
        return {"c": remote.invoke(f"Go on: {thought}").content}

    graph = chain(("think", think), ("look", look), ("go on", go_on))
    fast = trained(world, graph, ("volcanoes", "glaciers", "geysers", "fjords"))
    fast.invoke({"q": "beaches"})
    assert not fast.plan.last.calls[-1].retired and fast.plan.last.calls[-1].site
    assert world.texts().count(f"Go on: {voted('Think of beaches').split('so much')[-1].strip()}") == 1
    assert world.texts("Go on:", early=True) == []


def test_a_score_beside_a_number_of_the_program_decides_on_a_branch() -> None:
    world = World(answer=voted)
    model = Chat(world)

    def grade(state: State) -> State:
        world.node("grade")
        return {"a": model.invoke(f"Grade {state['q']}").content}

    def look(state: State) -> State:
        world.node("look")
        return {"b": model.invoke(f"Look at {state['q']}").content}

    def praise(state: State) -> State:
        return {"c": model.invoke(f"Praise {state['q']}").content}

    def mend(state: State) -> State:
        return {"c": model.invoke(f"Mend {state['q']}").content}

    graph = StateGraph(State)
    for name, node in (("grade", grade), ("look", look), ("praise", praise), ("mend", mend)):
        graph.add_node(name, node)
    graph.add_edge(START, "grade")
    graph.add_edge("grade", "look")
    graph.add_conditional_edges(
        "look", lambda state: "praise" if json.loads(state["a"])["score"] > 0.5 else "mend", ["praise", "mend"]
    )
    graph.add_edge("praise", END)
    graph.add_edge("mend", END)
    fast = trained(
        world,
        graph.compile(),
        ("volcanoes", "glaciers", "geysers", "fjords", "deserts", "tundra", "islands", "canyons"),
    )
    for topic, said in (("beaches", "Praise beaches"), ("moors", "Mend moors")):
        world.hooks["look"] = lambda said=said: world.wait_early(said)
        fast.invoke({"q": topic})
        assert not any(text.startswith(("Praise", "Mend")) and text != said for text in world.texts())
        world.forget()


TONES = {"hot": "as dry as the desert", "cold": "as cold as ice can be", "wet": "in words that drip"}
KINDS = ("Hot.", "cold", "Wet", " HOT", "cold.")


def toned(world: World, model: Any, in_a_loop: bool) -> Any:
    """What a dict of the program has for an answer, or for each word of it, stands in a call two nodes later."""

    def judge(state: State) -> State:
        return {"a": model.invoke(f"Judge {state['q']}").content}

    def look(state: State) -> State:
        world.node("look")
        return {"b": model.invoke(f"Look at {state['q']}").content}

    def tell(state: State) -> State:
        said = state["a"].split(", ") if in_a_loop else [state["a"]]
        tones = [TONES[word.strip(" .").lower()] for word in said]
        return {"c": [model.invoke(f"Tell of {state['q']} {tone}").content for tone in tones]}

    return chain(("judge", judge), ("look", look), ("tell", tell))


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_what_a_dict_has_for_an_answer_is_asked_for_before_its_node_is_reached(in_a_loop: bool) -> None:
    def answer(text: str) -> str:
        if not text.startswith("Judge"):
            return f"so much for {text[::-1]}"
        at = [*SCORES].index(text[6:])
        return ", ".join(KINDS[(at + n) % 5] for n in range(2 + at % 2)) if in_a_loop else KINDS[at % 5]

    world = World(answer=answer)
    graph = toned(world, Chat(world), in_a_loop)
    fast = trained(world, graph, tuple(SCORES)[:5])
    for topic in ("beaches", "tundra", "moors"):
        said = [TONES[word.strip(" .").lower()] for word in answer(f"Judge {topic}").split(", ")]
        world.hooks["look"] = lambda said=said: world.wait(lambda: len(world.texts("Tell", early=True)) == len(said))
        assert fast.invoke({"q": topic})["c"] == [answer(f"Tell of {topic} {tone}") for tone in said]
        world.forget()
