"""Which blocks go first, of those that no request of a simulated model holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from accel_sim.idle import Idle


def emptied(idle: Idle) -> list[int]:
    return [idle.pop() for _ in range(len(idle))]


def test_of_those_of_which_nobody_knows_the_least_recently_used_goes_first() -> None:
    idle = Idle(100, by_next_use=True)
    for block in (3, 1, 2):
        idle.add(block)
    idle.remove(1)
    idle.add(1)
    assert emptied(idle) == [3, 2, 1] and len(idle) == 0


def test_what_is_used_again_last_goes_first_and_what_waits_is_kept() -> None:
    idle = Idle(100, by_next_use=True)
    for block, steps in ((1, 1), (2, 5), (3, 0), (4, 2), (5, 3)):
        idle.expect([block], "run", steps)
        idle.add(block)
    idle.want([5, 6], 1)
    idle.add(6)
    assert emptied(idle) == [3, 2, 4, 1, 5, 6]


def test_of_those_that_share_a_block_the_nearest_counts_until_it_needs_it_no_more() -> None:
    idle = Idle(100, by_next_use=True)
    idle.expect([1], "one", 4)
    idle.expect([1], "two", 1)
    idle.expect([2], "one", 2)
    for block in (1, 2):
        idle.add(block)
    assert emptied(idle) == [2, 1]
    idle.expect([1], "one", 4)
    idle.expect([1], "two", 1)
    idle.expect([1], "two", 0)
    idle.expect([2], "one", 2)
    for block in (1, 2):
        idle.add(block)
    assert emptied(idle) == [1, 2]


def test_what_nobody_wants_any_more_goes_as_before() -> None:
    idle = Idle(100, by_next_use=True)
    idle.add(1)
    idle.add(2)
    idle.want([1], 2)
    idle.want([1], -1)
    assert idle.pop() == 2
    idle.add(3)
    idle.want([1], -1)
    assert emptied(idle) == [3, 1], "it has been idle since then"


def test_what_was_to_be_used_again_and_was_not_is_kept_no_longer_than_the_cache_turns_over() -> None:
    idle = Idle(3, by_next_use=True)
    idle.expect([0], "gone", 1)
    idle.add(0)
    gone = []
    for block in range(1, 8):
        idle.add(block)
        gone.append(idle.pop())
    assert gone == [1, 2, 3, 4, 0, 5, 6]


def test_without_the_policy_the_least_recently_used_goes_first_whatever_is_known() -> None:
    idle = Idle(100, by_next_use=False)
    idle.expect([1], "run", 1)
    for block in (1, 2, 3):
        idle.add(block)
    idle.want([2], 1)
    assert emptied(idle) == [1, 2, 3]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "remove", "pop", "expect", "want", "clear"]), st.integers(0, 9), st.integers(0, 4)
        ),
        max_size=60,
    )
)
def test_every_block_that_is_idle_goes_once(done: list[tuple[str, int, int]]) -> None:
    idle, there, wanted = Idle(4, by_next_use=True), set[int](), [0] * 10
    for what, block, steps in done:
        if what == "add" and block not in there:
            idle.add(block)
            there.add(block)
        elif what == "remove":
            idle.remove(block)
            there.discard(block)
        elif what == "pop" and there:
            there.remove(idle.pop())
        elif what == "expect":
            idle.expect([block], f"run {steps % 2}", steps)
        elif what == "want":
            change = -1 if steps % 2 and wanted[block] else 1
            wanted[block] += change
            idle.want([block], change)
        elif what == "clear":
            idle.clear()
            there.clear()
        assert len(idle) == len(there) and all(one in idle for one in there)
    assert sorted(emptied(idle)) == sorted(there)
