"""What a declared pure function gives is data, which copies may stand for, or only what its own call gives."""

from __future__ import annotations

import collections
import dataclasses
import enum
import gc
import struct
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel, PrivateAttr

import accel
from accel import accelerate
from accel.text.copies import Rows, Uncopied, copy_data, shares

from .core_fakes import Chat, State, World

TOPICS = ("bees and their hives", "iron smelting in Sweden", "the far side of the moon", "bread of long ago")


class Colour(enum.Enum):
    RED = "red"


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Card:
    name: str
    held: Any = None


@dataclasses.dataclass(slots=True)
class Slotted:
    held: Any


@dataclasses.dataclass(frozen=True)
class Nothing:
    """Told by its identity alone."""


class Model(BaseModel, arbitrary_types_allowed=True):
    held: Any = None
    _beside: Any = PrivateAttr(None)


class Handle:
    def __init__(self) -> None:
        self.lock = threading.Lock()


class Refused(BaseModel):
    def __deepcopy__(self, memo: Any = None) -> Any:
        raise RuntimeError("there is only one")


def secretly(held: Any) -> Model:
    model = Model()
    model._beside = held
    return model


atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.sampled_from(Colour)
    | st.decimals(allow_nan=False)
)
WRAPPERS: tuple[Callable[[Any], Any], ...] = (
    lambda held: [held], lambda held: (held,), lambda held: {"a": held}, lambda held: Pair(held, 1),
    lambda held: Card("ace", held), Slotted, lambda held: Model(held=held), secretly,
    lambda held: Document(page_content="a", metadata={"held": held}),
    lambda held: AIMessage("a", additional_kwargs={"held": held}), lambda held: collections.deque([held]),
    lambda held: Command(update={"held": held}),
    lambda held: NodeWithScore(node=TextNode(text="a", metadata={"held": held})),
)  # fmt: skip
data = st.recursive(atoms, lambda inner: st.builds(lambda wrap, held: wrap(held), st.sampled_from(WRAPPERS), inner))
MARK = object()
NO_DATA: tuple[Any, ...] = (
    MARK, Handle(), threading.Lock(), (each for each in "abc"), lambda: MARK, Nothing(), Refused(), Colour, str,
    np.array([MARK]),
)  # fmt: skip


@given(data)
def test_copies_of_data_are_equal_and_share_nothing(value: Any) -> None:
    again = copy_data(value)
    assert again == value and type(again) is type(value) and not shares(again, [value])


@given(st.lists(st.sampled_from(WRAPPERS), max_size=4), st.sampled_from(NO_DATA))
def test_nothing_that_holds_anything_else_is_copied(wrappers: list[Any], value: Any) -> None:
    for wrap in wrappers:
        value = wrap(value)
    with pytest.raises(Uncopied):
        copy_data(value)


def test_arrays_of_numbers_are_copied() -> None:
    numbers = np.arange(4.0)
    again = copy_data({"rows": [numbers, np.float32(1)]})["rows"]
    assert (again[0] == numbers).all() and again[0] is not numbers and type(again[1]) is np.float32


def test_what_holds_itself_is_copied() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert copy_data(loop) is not loop


# --- in programs


def handle(text: str) -> Any:
    return Handle()


def letters(text: str) -> Any:
    return (letter for letter in text)


def found(text: str) -> Any:
    return MARK


def counter(text: str) -> Any:
    count = [0]

    def number() -> int:
        count[0] += 1
        return count[0]

    return number


USED: dict[Callable[[str], Any], Callable[[Any], Any]] = {
    handle: lambda given: type(given).__name__,
    letters: lambda given: "".join(given),
    found: lambda given: given is MARK,
    counter: lambda given: (given(), given()),
}


@pytest.mark.parametrize("function", USED, ids=lambda function: function.__name__)
@pytest.mark.parametrize("whole", [True, False], ids=["node", "function"])
def test_the_program_gets_what_its_own_call_gives(function: Any, whole: bool) -> None:
    model, use = Chat(World()), USED[function]
    called = function if whole else accel.pure(function)

    def first(state: State) -> State:
        return {"a": str(model.invoke(state["q"]).content)}

    def work(state: State) -> State:
        return {"b": called(state["q"])}

    def last(state: State) -> State:
        return {"c": [use(state["b"]), *(use(called(state["q"])) for _ in range(2))]}

    graph = StateGraph(State).add_sequence([first, work, last]).add_edge(START, "first").compile()
    fast = accelerate(graph, pure_nodes=("work",) if whole else ())
    for topic in TOPICS:
        assert fast.invoke({"q": topic})["c"] == graph.invoke({"q": topic})["c"]
        assert accel.settle(10)


@pytest.mark.parametrize("back", [lambda items: items, lambda items: {"items": items}], ids=["it", "in a dict"])
def test_what_a_function_hands_back_is_what_it_was_given(back: Any) -> None:
    model, handed = Chat(World()), accel.pure(back)

    def work(state: State) -> State:
        items: list[Any] = str(model.invoke(state["q"]).content).split()
        for _ in range(2):
            got = handed(items)
            (got if got is items else got["items"]).append("more")
        return {"a": items}

    graph = StateGraph(State).add_node("work", work).add_edge(START, "work").compile()
    fast = accelerate(graph)
    for topic in TOPICS:
        assert fast.invoke({"q": topic})["a"] == graph.invoke({"q": topic})["a"]
        assert accel.settle(10)


def test_messages_that_a_function_picks_are_the_programs() -> None:
    picked = accel.pure(lambda messages: messages[-1:])

    def work(state: State) -> State:
        messages: list[BaseMessage] = [AIMessage(state["q"])]
        for _ in range(2):
            picked(messages)[0].content += "!"
            messages[0].content = str(messages[0].content).removesuffix("!")
        picked(messages)[0].content += "?"
        return {"a": messages[0].content}

    fast = accelerate(StateGraph(State).add_node("work", work).add_edge(START, "work").compile())
    for topic in TOPICS:
        assert fast.invoke({"q": topic})["a"] == f"{topic}?"
        assert accel.settle(10)


@given(st.lists(st.lists(st.floats(width=64), min_size=1, max_size=12), min_size=1, max_size=5))
def test_embeddings_that_are_kept_are_handed_out_bit_by_bit_and_to_each_as_lists_of_its_own(rows: Any) -> None:
    for result in (rows, rows[0]):  # of documents, of one query
        kept = Rows.of(result)
        assert kept is not None
        handed = [result, kept.lists(), kept.lists()]
        assert bits(handed[0]) == bits(handed[1]) == bits(handed[2])
        assert len(set(map(id, handed))) == 3
        assert result is not rows or len({id(row) for each in handed for row in each}) == 3 * len(rows)


def bits(value: Any) -> Any:
    return struct.pack("<d", value) if type(value) is float else [bits(each) for each in value]


@pytest.mark.parametrize("result", [[], [[]], [1, 2], [[1.0], [2]], (1.0, 2.0), [(1.0,)], [[1.0], None], 1.0])
def test_nothing_but_lists_of_floats_is_kept_as_rows(result: Any) -> None:
    assert Rows.of(result) is None


@pytest.mark.parametrize("speculate", ["off", "auto"])
def test_a_run_that_only_records_keeps_no_result_for_others(speculate: Any) -> None:
    alive: list[int] = []

    @accel.pure
    def card(text: str) -> Card:
        return Card(text)

    def work(state: State) -> State:
        for number in range(5):
            card(f"{state['q']} {number}")
            alive.append(sum(type(each) is Card for each in gc.get_objects()))
        return {"a": "done"}

    graph = StateGraph(State).add_node("work", work).add_edge(START, "work").compile()
    gc.collect()
    fast = accelerate(graph, speculate=speculate)
    fast.invoke({"q": TOPICS[0]})
    assert fast.report().counts.demanded == 5
    assert alive == ([0] * 5 if speculate == "off" else [1, 2, 3, 4, 5])
