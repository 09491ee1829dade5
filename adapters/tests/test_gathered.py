"""What a program computes of the answers of several calls is known with the last of them, and no sooner."""

from __future__ import annotations

import re
import threading
from collections import Counter
from typing import Any

import pytest

from adapters.tests.core_fakes import Chat, State, World, chain
from adapters.tests.test_decisions import trained

WHO = {
    "poet": "a poet who pities everybody", "clerk": "a clerk who has read all laws",
    "cook": "a cook who wants to go home",
}  # fmt: skip
VOTES = {
    "volcanoes": "fine good good", "glaciers": "bad fine bad", "geysers": "good good fine", "fjords": "fine bad fine",
    "deserts": "good bad bad", "beaches": "bad good good", "tundra": "fine fine bad", "moors": "bad bad good",
}  # fmt: skip
TAUGHT = ("volcanoes", "glaciers", "geysers", "fjords", "deserts")


def voted(text: str) -> str:
    juror = next((n for n, who in enumerate(WHO.values()) if who in text), None)
    if juror is None:
        return f"so much for {text[::-1]}"
    vote = VOTES[text.split()[-1]].split()[juror]
    return f"I give it {len(vote)} of 9 points." if "Score" in text else vote


def most(votes: list[str]) -> str:
    return Counter(votes).most_common(1)[0][0]


def in_a_loop(world: World, model: Any) -> list[Any]:
    """One line, which asks with every text of a dict."""

    def vote(state: State) -> State:
        votes = [model.invoke(f"You are {who}. Judge {state['q']}").content for who in WHO.values()]
        return {"a": votes}

    return [("vote", vote)]


def node_by_node(world: World, model: Any) -> list[Any]:
    """A node of the graph for each of them."""

    def voting(number: int) -> Any:
        def vote(state: State) -> State:
            world.node(f"vote {number}")
            said = model.invoke(f"You are {[*WHO.values()][number]}. Judge {state['q']}").content
            return {"a": [*state.get("a", []), said]}

        return vote

    return [(f"vote_{number}", voting(number)) for number in range(3)]


def court(world: World, model: Any, jury: Any = in_a_loop, other: Any = None) -> Any:
    """Votes, a look at something else, and a report of what most have voted."""

    def look(state: State) -> State:
        world.node("look")
        return {"b": model.invoke(f"Look at {state['q']}").content}

    def report(state: State) -> State:
        world.node("report")
        return {"c": (other or model).invoke(f"Most call it {most(state['a'])}: why?").content}

    return chain(*jury(world, model), ("look", look), ("report", report))


@pytest.mark.parametrize("jury", [in_a_loop, node_by_node])
def test_what_most_say_is_asked_about_before_its_node_is_reached(jury: Any) -> None:
    world = World(answer=voted)
    graph = court(world, Chat(world), jury)
    fast = trained(world, graph, TAUGHT)
    for topic, said in (("beaches", "good"), ("tundra", "fine"), ("moors", "bad")):
        world.hooks["look"] = lambda said=said: world.wait_early(f"Most call it {said}")
        assert fast.invoke({"q": topic})["c"] == voted(f"Most call it {said}: why?")
        assert len(world.texts("Most")) == 1 and fast.plan.last.calls[-1].retired
        world.forget()


def test_nothing_is_asked_before_the_last_answer_is_there() -> None:
    """Two of three have voted the same: most say so, whatever the third one says; but the program doesn't know yet."""
    world = World(answer=voted)
    graph = court(world, Chat(world), node_by_node)
    fast = trained(world, graph, TAUGHT)
    waits = world.gates[WHO["cook"]] = threading.Event()

    def go_on() -> None:
        world.wait_early("You are a clerk")
        world.wait_early("You are a cook", over=False)
        assert not world.texts("Most")
        waits.set()

    world.hooks["vote 2"] = go_on
    world.hooks["look"] = lambda: world.wait_early("Most call it bad")
    assert fast.invoke({"q": "moors"})["c"] == voted("Most call it bad: why?")


@pytest.mark.parametrize("count", [1, 2, 4])
def test_more_or_fewer_answers_than_ever_give_what_the_program_computes(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(answer=voted)
    graph = court(world, Chat(world))
    fast = trained(world, graph, TAUGHT)
    jury = dict([*WHO.items(), ("boy", "the boy behind a cook who wants to go home")][:count])
    monkeypatch.setattr("adapters.tests.test_gathered.WHO", jury)
    for topic in ("beaches", "tundra", "moors", "beaches"):
        assert fast.invoke({"q": topic}) == graph.invoke({"q": topic})


SIGHTS = ("gate", "harbour", "market", "tower")


def scored(text: str) -> str:
    kind, *_, last = text.split()
    if kind == "List":
        return "\n".join(f"- the {sight} near {last}" for sight in SIGHTS[: 2 + len(last) % 3])
    return f"I say {sum(map(ord, text)) % 7 + 1} of 9" if kind in ("Score", "Rate") else f"so much for {text[::-1]}"


def points(answer: str) -> int:
    found = re.search(r"\d+", answer)
    assert found is not None
    return int(found.group())


def sights(world: World, model: Any) -> Any:
    """Two judges for each item of a list, of which runs have more or fewer; then a call for each with both scores."""

    def judge(state: State) -> State:
        names = [line[2:] for line in model.invoke(f"List sights near {state['q']}").content.splitlines()]
        both = [[model.invoke(f"{what} {name}").content for what in ("Score", "Rate")] for name in names]
        return {"a": names, "b": both}

    def look(state: State) -> State:
        world.node("look")
        return {"c": model.invoke(f"Look at {state['q']}").content}

    def tell(state: State) -> State:
        rows = [(name, sum(map(points, both))) for name, both in zip(state["a"], state["b"], strict=True)]
        return {"c": [model.invoke(f"Tell of {name}, which has {both} points in all.").content for name, both in rows]}

    return chain(("judge", judge), ("look", look), ("tell", tell))


def test_what_two_judges_say_of_each_item_is_known_with_both() -> None:
    world = World(answer=scored)
    graph = sights(world, Chat(world))
    fast = trained(world, graph, TAUGHT)
    for topic in ("beaches", "moors", "tundra"):
        count = len(scored(f"List sights near {topic}").splitlines())
        world.hooks["look"] = lambda count=count: world.wait(lambda: len(world.texts("Tell", early=True)) == count)
        assert len(fast.invoke({"q": topic})["c"]) == count == len(world.texts("Tell"))
        world.forget()
