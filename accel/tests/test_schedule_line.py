"""The line of what waits for an engine: in the order of sorting all of it, with no more work the more there is."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from accel.engine import Priority
from accel.engine.batching import AGING_S, Policy, Waiting, blind, demands_first, topology_aware
from accel.engine.line import Order, Place
from accel.engine.tickets import Ticket


def sorted_by_topology(waiting: list[Ticket[Any]], now_s: float) -> list[Ticket[Any]]:
    """Algorithm 2 as it is written, for all that waits."""
    depths: defaultdict[Any, set[int]] = defaultdict(set)
    for ticket in waiting:
        depths[_rank(ticket, now_s), ticket.bucket].add(ticket.priority.depth)

    def place(ticket: Ticket[Any]) -> Any:
        rank = _rank(ticket, now_s)
        if rank < 0:
            return rank, 0, 0.0, "", ticket.number
        deeper = sum(depth > ticket.priority.depth for depth in depths[rank, ticket.bucket])
        return rank, deeper, ticket.arrived_s, ticket.priority.run, ticket.number

    return sorted(waiting, key=place)


def _rank(ticket: Ticket[Any], now_s: float) -> int:
    return -1 if ticket.priority.value == 0 and now_s - ticket.since_s >= AGING_S else ticket.priority.value


SORTED: list[tuple[Order, Callable[[list[Ticket[Any]], float], list[Ticket[Any]]]]] = [
    (topology_aware, sorted_by_topology),
    (demands_first, lambda waiting, _: sorted(waiting, key=lambda ticket: (ticket.priority.value, ticket.number))),
    (blind, lambda waiting, _: sorted(waiting, key=lambda ticket: ticket.number)),
]


class Model:
    """The tickets in a list, sorted whenever some are taken."""

    def __init__(self, order: Callable[[list[Ticket[Any]], float], list[Ticket[Any]]]) -> None:
        self.order = order
        self.tickets: list[Ticket[Any]] = []

    def take(self, count: int, now_s: float) -> list[Any]:
        for ticket in self.tickets:
            if ticket.priority.value > 0 and now_s - ticket.since_s >= AGING_S:
                ticket.priority.raise_to_demand()
                ticket.since_s = now_s
        taken: list[Any] = []
        for ticket in self.order(self.tickets, now_s):
            while ticket.entries and len(taken) < count:
                taken.append(ticket.entries.popleft())
        self.keep(lambda _: True)
        return taken

    def keep(self, wanted: Callable[[Any], bool]) -> None:
        for ticket in self.tickets:
            ticket.entries = deque(filter(wanted, ticket.entries))
        self.tickets = [ticket for ticket in self.tickets if ticket.entries]


class Once:
    """Gives so many places."""

    def __init__(self, count: int) -> None:
        self.left = count

    def __call__(self, entry: object) -> bool:
        self.left -= 1
        return self.left >= 0


calls = st.tuples(
    st.sampled_from([0, 0, 0, 1, 1, 7]),
    st.sampled_from(["", "a", "b", "c", "d"]),
    st.sampled_from([1.0, 2.0, 3.0]),
    st.integers(0, 3),
    st.integers(1, 3),
)
adds = st.tuples(st.just("add"), calls)
steps = st.lists(
    st.one_of(
        adds,
        adds,
        st.tuples(st.just("take"), st.integers(0, 6)),
        st.tuples(st.just("raise"), st.integers(0, 20)),
        st.tuples(st.just("leave"), st.integers(0, 20)),
        st.tuples(st.just("drop"), st.integers(2, 5)),
        st.tuples(st.just("later"), st.sampled_from([1.0, AGING_S / 2, AGING_S])),
    ),
    min_size=10,
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([*SORTED[:1] * 3, *SORTED]), st.lists(adds, min_size=4, max_size=24), steps)
def test_the_line_is_in_the_order_of_sorting_all_of_it(orders: Any, first: Any, steps: Any) -> None:
    order, sorting = orders
    now_s = 1000.0
    waiting: Waiting[tuple[int, int]] = Waiting(Policy(order, reuses=False), lambda: now_s)
    model = Model(sorting)
    added: list[tuple[Ticket[Any], Ticket[Any]]] = []
    for step, value in [*first, *steps, ("take", 10_000)]:
        if step == "add":
            *priority, count = value
            number = len(added)
            entries = [(number, n) for n in range(count)]
            ticket = Ticket(deque(entries), Priority(*priority), number, now_s)
            added.append((waiting.add(entries, Priority(*priority)), ticket))
            model.tickets.append(ticket)
        elif step == "take":
            assert waiting.take(Once(value)) == model.take(value, now_s)
        elif step == "later":
            now_s += value
        elif step == "drop":
            waiting.drop(lambda entry, n=value: sum(entry) % n == 0)  # type: ignore[misc]
            model.keep(lambda entry, n=value: sum(entry) % n != 0)  # type: ignore[misc]
        elif value < len(added) and step == "raise":
            for ticket in added[value]:
                ticket.priority.raise_to_demand()
        elif value < len(added):
            waiting.leave(added[value][0])
            model.keep(lambda entry, n=value: entry[0] != n)  # type: ignore[misc]
        assert list(waiting) == [entry for ticket in model.tickets for entry in ticket.entries]
        assert len(waiting) == len(list(waiting))
    assert len(waiting) == 0


def test_to_take_one_looks_at_no_other() -> None:
    looked: list[int] = []

    def order(ticket: Ticket[int], now_s: float) -> Place:
        looked.append(ticket.number)
        return topology_aware(ticket, now_s)

    waiting: Waiting[int] = Waiting(Policy(order), lambda: 1.0)
    for number in range(1_000):
        waiting.add([number], Priority(number % 2, f"run {number % 100}", number % 100, number % 7))
    looked.clear()
    assert len(waiting.take(Once(10))) == 10 and looked == []


def test_who_has_been_served_is_forgotten() -> None:
    waiting: Waiting[int] = Waiting(now_s=lambda: 1.0)
    priorities = [Priority(1, f"run {number}", 1.0) for number in range(4)]
    tickets = [waiting.add([number], priority) for number, priority in enumerate(priorities)]
    waiting.take(Once(2))
    waiting.leave(tickets[2])
    waiting.leave(tickets[2])
    waiting.drop(lambda number: number == 3)
    assert len(waiting) == 0 and not any(priority._callbacks for priority in priorities)
    line = waiting._line
    assert not line._places and not line._aging and not line._ranks
