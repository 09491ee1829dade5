"""Equal elements of a list: until a run has shown what the program does with them, one of their calls is early."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

import accel
from accel import accelerate
from adapters.tests.catching_up import catch_up
from adapters.tests.core_fakes import Chat, World

WITHOUT_ANY = ("oak ash elm", "fir yew box")
"""Equal elements; questions whose words the model lists."""


class Wood(TypedDict, total=False):
    q: str
    trees: list[str]
    notes: list[str]


def said(text: str) -> str:
    verb, _, rest = text.partition(" ")
    return rest.replace(" ", "\n") if verb == "List" else f"noted {rest}"


def program(world: World, keeps: bool) -> Any:
    """Lists trees, then writes a note on each; on each of those that differ unless it `keeps` equal ones."""
    model = Chat(world)

    def name(state: Wood) -> Wood:
        return {"trees": model.invoke(f"List {state['q']}").text.splitlines()}

    def note(state: Wood) -> Wood:
        catch_up()
        trees = state["trees"] if keeps else dict.fromkeys(state["trees"])
        return {"notes": [model.invoke(f"Note {tree}").text for tree in trees]}

    builder = StateGraph(Wood)
    builder.add_node("name", name)
    builder.add_node("note", note)
    builder.add_edge(START, "name")
    builder.add_edge("name", "note")
    builder.add_edge("note", END)
    return builder.compile()


def asked(world: World, fast: Any, q: str) -> tuple[list[str], list[str]]:
    """The notes that a request asked for early, and those that the program asked for itself."""
    world.forget()
    fast.invoke({"q": q})
    assert accel.settle()
    return sorted(world.texts("Note", early=True)), sorted(world.texts("Note", early=False))


@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "dropped"])
def test_until_a_run_has_shown_it_one_of_two_equal_calls_is_early(keeps: bool) -> None:
    world = World(answer=said)
    fast = accelerate(program(world, keeps))
    for q in WITHOUT_ANY:
        asked(world, fast, q)
    assert asked(world, fast, "may sun may") == (["Note may", "Note sun"], ["Note may"] if keeps else [])
    again = ["Note bay", "Note bay", "Note fig"] if keeps else ["Note bay", "Note fig"]
    assert asked(world, fast, "bay fig bay") == (again, [])
    assert fast.plan.total.wasted == 0


def test_the_report_says_why_the_other_one_was_not() -> None:
    world = World(answer=said)
    fast = accelerate(program(world, keeps=True))
    for q in (*WITHOUT_ANY, "may sun may"):
        asked(world, fast, q)
    assert "no run has made such a call twice" in str(accel.report(fast))
