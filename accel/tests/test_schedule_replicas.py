"""Which of several equal engines serves a request."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.engine.replicas import Prefixes, choose, may_take


@pytest.mark.parametrize(
    ("loads", "held", "expected"),
    [
        ([3, 1, 2], (), 1),  # least loaded
        ([1, 1, 1], (), 0),  # the first of equals
        ([2, 0], (64, 0), 0),  # where the prefix lies, though busier
        ([4, 0], (64, 0), 0),  # up to the slack
        ([5, 0], (64, 0), 1),  # but no further
        ([2, 0, 1], (32, 0, 64), 2),  # the longest prefix
        ([3, 0, 1], (64, 0, 64), 2),  # of equally long ones the least loaded
        ([2, 1, 0], (0, 0, 0), 2),
        ([math.inf, 7], (640, 0), 1),  # what can't serve now is not waited for
        ([math.inf, math.inf], (0, 16), 1),  # unless nothing else can
    ],
)
def test_the_prefix_decides_among_those_that_are_not_too_busy(
    loads: list[float], held: tuple[int, ...], expected: int
) -> None:
    assert choose(loads, held) == expected


@pytest.mark.parametrize(
    ("load", "held", "others", "may"),
    [
        (9, 0, (), True),  # alone
        (4, 0, ((0, 0), (1, 0)), True),  # not much busier than others
        (5, 0, ((0, 0),), False),
        (0, 0, ((3, 640),), False),  # another one has it and has room
        (0, 0, ((5, 640),), True),  # but is much busier: it is taken over
        (9, 640, ((0, 0),), True),  # it has it itself
        (5, 640, ((0, 640),), False),  # and so has an idle one
    ],
)
def test_an_engine_that_has_room_takes_what_no_other_should_rather_have(
    load: float, held: int, others: tuple[tuple[float, int], ...], may: bool
) -> None:
    assert may_take(load, held, others) is may


@given(st.lists(st.tuples(st.integers(0, 70), st.sampled_from([0, 16, 640])), min_size=1, max_size=6))
def test_whatever_waits_there_is_an_engine_that_may_take_it(engines: list[tuple[int, int]]) -> None:
    assert any(
        may_take(load, held, [other for at, other in enumerate(engines) if at != number])
        for number, (load, held) in enumerate(engines)
    )


def test_no_engine_gets_ahead_by_more_than_the_slack() -> None:
    """A thousand requests that all begin alike, none of which ends."""
    loads, prefixes = [0, 0, 0], [Prefixes(4) for _ in range(3)]
    prompt = list(range(16))
    for _ in range(1000):
        index = choose(loads, [held.held(prompt) for held in prefixes], slack=4)
        prefixes[index].add(prompt)
        loads[index] += 1
        assert max(loads) - min(loads) <= 4 + 1
    assert min(loads) > 300


def test_a_session_stays_where_it_is() -> None:
    prefixes = [Prefixes(4), Prefixes(4)]
    sessions: dict[str, list[int]] = {"a": [1] * 8, "b": [2] * 8}
    homes: dict[str, set[int]] = {"a": set(), "b": set()}
    loads = [0, 0]
    for turn in range(10):
        for name, prompt in sessions.items():
            index = choose(loads, [held.held(prompt) for held in prefixes])
            homes[name].add(index)
            prefixes[index].add(prompt)
            loads[index] += turn == 0  # both are busy from the first turn on
            prompt += [turn] * 4
    assert homes == {"a": {0}, "b": {1}}


def test_prefixes_are_whole_blocks_from_the_beginning() -> None:
    prefixes = Prefixes(4)
    prefixes.add([1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert prefixes.held([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) == 8
    assert prefixes.held([1, 2, 3, 4, 0, 6, 7, 8]) == 4
    assert prefixes.held([5, 6, 7, 8]) == 0, "the same block after another beginning is another block"
    assert prefixes.held([1, 2, 3]) == 0
    prefixes.forget()
    assert prefixes.held([1, 2, 3, 4]) == 0


def test_prefixes_are_forgotten_by_use() -> None:
    prefixes = Prefixes(1, kept_blocks=2)
    prefixes.add([1])
    prefixes.add([2])
    prefixes.add([1])
    prefixes.add([3])
    assert [prefixes.held([n]) for n in (1, 2, 3)] == [1, 0, 1]


def test_an_engine_without_a_prefix_cache_holds_nothing() -> None:
    prefixes = Prefixes(0)
    prefixes.add([1, 2, 3])
    assert prefixes.held([1, 2, 3]) == 0


def test_there_must_be_an_engine() -> None:
    with pytest.raises(ValueError, match="empty"):
        choose([])
