"""Many runs at once are followed where that makes them shorter, and not where it makes them longer."""

from __future__ import annotations

import heapq
import os
import random

import pytest

from accel.run.gains.crowd import AT_ONCE, FEW, LEAST, Crowd, Member


class Server:
    """As many clients as given ask one after the other. A run takes as long as it is told by whether it, and how many
    others, are followed; no two take the same time."""

    def __init__(self, clients: int, alone_s: float, delays_s: float) -> None:
        """`alone_s`: a followed run, others take 1 s; `delays_s`: what each followed run costs every run beside it."""
        self.now_s = 0.0
        self.crowd = Crowd(lambda: self.now_s)
        self.crowd.gained = True
        self.clients, self.alone_s, self.delays_s = clients, alone_s, delays_s
        self._random = random.Random(7)
        self._under_way: list[tuple[float, int, bool, Member]] = []
        self._number = 0
        self.has_plenty = 0
        """The process has plenty of time as long as fewer are followed."""

    def _ask(self) -> bool:
        beside = sum(other for _, _, other, _ in self._under_way)
        followed = self.crowd.follows(plenty=beside < self.has_plenty)
        took_s = (self.alone_s if followed else 1.0) + self.delays_s * beside
        self._number += 1
        end_s = self.now_s + took_s * self._random.uniform(0.8, 1.2)
        heapq.heappush(self._under_way, (end_s, self._number, followed, self.crowd.join(followed)))
        return followed

    def followed(self, runs: int) -> float:
        """Of so many runs more, the share that is followed."""
        count = 0
        for _ in range(runs):
            if len(self._under_way) == self.clients:
                self.now_s, _, _, member = heapq.heappop(self._under_way)
                member.returned()
            count += self._ask()
        return count / runs


@pytest.mark.parametrize("clients", [FEW + 2, 16, 64])
def test_runs_that_get_shorter_are_followed(clients: int) -> None:
    server = Server(clients, alone_s=0.7, delays_s=0.0)
    server.followed(40 * clients)
    assert server.followed(200 * clients) > 0.95


@pytest.mark.parametrize("clients", [FEW + 2, 16, 64])
def test_runs_whose_neighbours_get_longer_are_not(clients: int) -> None:
    server = Server(clients, alone_s=0.9, delays_s=0.5 / clients)
    assert server.followed(max(LEAST, 2 * clients)) == 1.0
    server.followed(40 * clients)
    assert server.followed(200 * clients) < 0.05


def test_to_be_as_long_as_others_is_no_gain() -> None:
    server = Server(16, alone_s=1.0, delays_s=0.0)
    server.followed(600)
    assert server.followed(2_000) < 0.3


def test_what_has_changed_is_found_out() -> None:
    server = Server(16, alone_s=0.7, delays_s=0.0)
    server.followed(1_000)
    server.alone_s = 1.5
    server.followed(4_000)
    assert server.followed(1_000) < 0.05
    server.alone_s = 0.7
    server.crowd.news()
    server.followed(200)
    assert server.followed(1_000) > 0.9


@pytest.mark.parametrize("clients", [1, FEW])
def test_where_few_are_under_way_all_are_followed(clients: int) -> None:
    assert Server(clients, alone_s=2.0, delays_s=0.0).followed(1_000) == 1.0


def test_few_are_followed_until_one_has_gained() -> None:
    server = Server(16, alone_s=0.7, delays_s=0.0)
    server.crowd.gained = False
    server.followed(16)
    assert server.followed(400) < 0.25
    server.crowd.gained = True
    server.followed(400)
    assert server.followed(400) > 0.75


def test_with_plenty_of_time_all_are_followed_at_once() -> None:
    server = Server(16, alone_s=0.7, delays_s=0.0)
    server.has_plenty = 16
    assert server.followed(1_000) == 1.0
    server.crowd.gained = False
    assert server.followed(400) < 0.25


def test_of_many_that_begin_at_once_some_are_followed_until_it_is_known_what_they_take() -> None:
    server = Server(64, alone_s=0.9, delays_s=0.5 / 64)
    server.followed(4_000)  # following all does not pay
    server.has_plenty = 64
    assert AT_ONCE / 64 - 0.05 < server.followed(2_000) < 2 * AT_ONCE / 64, "and now and then all, on trial"


def test_as_many_are_followed_as_leave_plenty_of_time() -> None:
    """Although following all does not pay."""
    server = Server(16, alone_s=0.9, delays_s=0.03)
    server.has_plenty = 4
    server.followed(2_000)
    assert 0.2 < server.followed(1_000) < 0.3


def test_a_run_leaves_once() -> None:
    server = Server(16, alone_s=2.0, delays_s=0.0)
    server.followed(1_000)
    assert not server.crowd.follows()
    for _, _, _, member in server._under_way[FEW:]:
        member.returned()
        member.returned()
    assert not server.crowd.follows()  # four are under way still
    server._under_way[0][3].returned()
    assert server.crowd.follows()


def test_a_forked_child_has_no_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(16, alone_s=2.0, delays_s=0.0)
    server.followed(1_000)
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    server.crowd.join(followed=False)
    for *_, member in server._under_way:
        member.returned()
    assert server.crowd.follows()
    for _ in range(FEW):
        server.crowd.join(followed=False)
    assert not server.crowd.follows()  # what was learnt stays


@pytest.mark.parametrize(("others", "crowded"), [(0, False), (FEW - 1, False), (FEW, True)])
def test_a_run_is_in_a_crowd_by_how_many_it_meets(others: int, crowded: bool) -> None:
    """Whether they began before it or after, and are still there or not; not by those that had gone."""
    crowd = Crowd(lambda: 0.0)
    for _ in range(20):
        crowd.join(followed=False).returned()
    before = [crowd.join(followed=False) for _ in range(others // 2)]
    run = crowd.join(followed=True)
    for member in (*before, *(crowd.join(followed=False) for _ in range(others - others // 2))):
        member.returned()
    assert run.returned() is crowded
    assert run.returned() is crowded, "also if it is told once more"
