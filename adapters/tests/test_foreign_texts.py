"""What a program's variables hold is its own text only if it was there before the program ran (invariant 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from langchain_core.messages import SystemMessage
from langchain_core.runnables import RunnableLambda

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, World, after_thinking

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "rivers of Siberia", "deserts of Chile", "forests of Gabon")
TENANTS = ("ann", "ben", "ann", "ben", "eve")
SECRET = "customers of acme corporation owe four million dollars"
NOTES = {"ann": SECRET, "ben": SECRET, "eve": "nothing at all was found in the archives"}


class Session:
    note = "no note so far"


class Odd:
    """Answers no question about itself."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Evil(RuntimeError):
    pass


class Raising(property):
    @property
    def fget(self) -> Any:  # type: ignore[override]
        raise Evil


class Holder:
    odd, raising = Odd(), Raising(lambda self: "unused")


STATE: dict[str, str] = {}
LIST: list[str] = []
NOTE = NUMBERED_NOTE = "no note"
NUMBERED: dict[int, str] = {}
SESS, HOLDER = Session(), Holder()
MESSAGE: Any = None
tenant = ["nobody"]
PROMPT, PROMPTS = "Write kindly about this topic: ", {"brief": "Say it as briefly as you can: "}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    for held in (STATE, LIST, NUMBERED):
        held.clear()
    vars(SESS).clear()
    globals().update(NOTE="no note", MESSAGE=None)


def stored_by_the_node() -> str:
    STATE["note"] = NOTES[tenant[0]]
    return STATE["note"]


def global_set_by_a_handler() -> str:
    return NOTE


def listed_by_position() -> str:
    return LIST[("ann", "ben", "eve").index(tenant[0])] + LIST[0][:0] + LIST[1][:0]


def numbered() -> str:
    return NUMBERED[0 if tenant[0] != "eve" else 1]


def attribute_set_from_outside() -> str:
    return SESS.note


def message_set_from_outside() -> str:
    return str(MESSAGE.content)


def handler() -> None:
    """Not reached from the graph."""
    vars(SESS)["note"] = NOTES[tenant[0]]
    LIST[:] = [NOTES[name] for name in ("ann", "ben", "eve")]
    NUMBERED.update({0: NOTES["ann"], 1: NOTES["eve"]})
    globals().update(NOTE=NOTES[tenant[0]], MESSAGE=SystemMessage(NOTES[tenant[0]]))


WAYS = (
    stored_by_the_node, global_set_by_a_handler, listed_by_position, numbered, attribute_set_from_outside,
    message_set_from_outside,
)  # fmt: skip


def asked(fast: Any, number: int) -> None:
    config = {"configurable": {"tenant": TENANTS[number], "request": str(number)}}
    fast.invoke({"q": TOPICS[number]}, config)
    assert accel.settle()


def run_all(fast: Any, world: World) -> None:
    for number, name in enumerate(TENANTS):
        tenant[0] = name
        handler()
        if number == 4:
            world.forget()
        asked(fast, number)


def about(world: World, note: Callable[[], str]) -> Any:
    model = Chat(world)

    def b(state: Any) -> Any:
        return model.invoke(f"About {state['q']}: {note().upper()}").content

    return after_thinking(world, b)


@pytest.mark.parametrize("note", WAYS)
def test_data_that_the_program_holds_is_used_in_no_other_tenant_s_run(note: Callable[[], str], tmp_path: Any) -> None:
    world, path = World(), tmp_path / "plan.json"
    fast = accelerate(about(world, note))
    run_all(fast, world)
    assert not any(SECRET.upper() in text for text in world.texts())
    fast.save_plan(str(path))
    assert SECRET.upper() not in path.read_text().upper()


def test_a_list_filled_before_counts_by_no_position() -> None:
    world = World()
    handler()
    run_all(accelerate(about(world, listed_by_position)), world)
    assert not any(SECRET.upper() in text for text in world.texts())


def test_what_the_node_stores_is_data_also_if_it_was_there_before() -> None:
    """An earlier program has run."""
    world = World()
    STATE["note"] = SECRET
    run_all(accelerate(about(world, stored_by_the_node)), world)
    assert not any(SECRET.upper() in text for text in world.texts())


def test_what_came_in_with_runs_is_data_also_for_another_program_with_the_same_plan() -> None:
    world = World()
    graph = about(world, global_set_by_a_handler)
    fast = accelerate(graph)
    run_all(fast, world)
    globals()["NOTE"] = SECRET
    accelerate(about(world, global_set_by_a_handler), plan=fast.plan)
    assert not fast.plan.program.own(SECRET)


@pytest.mark.parametrize("kind", ["a graph", "a chain"])
def test_what_it_held_before_is_its_own_text(kind: str) -> None:
    """And a class that answers no question ends no lesson."""
    world = World()
    model = Chat(world)

    def b(state: Any) -> Any:
        if kind == "a chain":
            world.node("b")
        return HOLDER and model.invoke(PROMPT + PROMPTS["brief"] + state["q"]).content

    def a(state: Any) -> Any:
        world.node("a")
        return state

    plain: Any = after_thinking(world, b) if kind == "a graph" else RunnableLambda(a) | RunnableLambda(b)
    fast = accelerate(plain)
    for number in range(4):
        asked(fast, number)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("Write kindly")
    asked(fast, 4)
    assert len(world.texts("Write kindly", early=True)) == 1


def test_a_short_text_of_the_input_is_each_run_s_own_though_all_have_had_the_same() -> None:
    """And the day on which the program runs is nobody's data."""
    world = World()
    model = Chat(world)
    day = f"{datetime.now():%B %d, %Y}"

    def prompt(language: str, topic: str) -> str:
        return f"Today is {day}. Say in {language} what there is to say of {topic}"

    def b(state: Any) -> Any:
        return model.invoke(prompt(state["c"], state["q"])).content

    fast = accelerate(after_thinking(world, b))
    for number, language in enumerate(("Norsk", "Norsk", "Norsk", "Suomi")):
        world.forget()
        if number == 3:
            world.hooks["b"] = lambda: world.wait_early(f"Today is {day}. Say in Suomi")
        fast.invoke({"q": TOPICS[number], "c": language}, {"configurable": {"tenant": TENANTS[number]}})
        assert accel.settle()
        assert world.texts("Today is") == [prompt(language, TOPICS[number])]
    assert len(world.texts("Today is", early=True)) == 1


ROLES = {"ann": "\nthe thrifty economist of the old school\n", "ben": "\nthe loud activist who likes no bank\n"}


@pytest.mark.parametrize(
    "form", [str, str.strip, str.upper, lambda text: text[:20]], ids=["as it is", "stripped", "upper", "cut"]
)
def test_of_a_table_that_runs_have_used_as_a_whole_each_keeps_his_own(form: Callable[[str], str]) -> None:
    """Two runs ask for all, as an overview does; then each asks for his. Who asks stands in the input."""
    world = World()
    model = Chat(world)

    def b(state: Any) -> Any:
        wanted = ROLES if state["q"].startswith("all") else [state["c"]]
        return "; ".join([model.invoke(f"You are {form(ROLES[name])}. On {state['q']}").text for name in wanted])

    fast = accelerate(after_thinking(world, b))
    questions = ("all volcanoes", "all glaciers", "rivers", "deserts", "forests", "caves")
    for name, question in zip(("ann", "ann", "ann", "ann", "ann", "ben"), questions, strict=True):
        world.forget()
        fast.invoke({"q": question, "c": name})
        assert accel.settle()
        if not question.startswith("all"):
            assert world.texts("You are") == [f"You are {form(ROLES[name])}. On {question}"]
