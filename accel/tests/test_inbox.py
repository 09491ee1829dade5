"""What is posted to a run is looked at in order, one at a time, whoever posts and wherever."""

from __future__ import annotations

import asyncio
import threading

from accel.process.threads import issuer
from accel.run.waits.inbox import Inbox


def test_on_a_loop_nothing_is_handed_to_another_thread() -> None:
    seen: list[tuple[int, int]] = []
    afters: list[int] = []

    async def program() -> None:
        inbox = Inbox(asyncio.get_running_loop(), lambda: afters.append(len(seen)))
        for number in range(5):
            inbox.post(lambda number=number: seen.append((number, threading.get_ident())))  # type: ignore[misc]
        assert not seen, "the program goes first"
        await asyncio.sleep(0)

    asyncio.run(program())
    assert seen == [(number, threading.get_ident()) for number in range(5)]
    assert afters == [5]


def test_a_loop_that_stands_still_is_not_waited_for() -> None:
    async def program() -> None:
        inbox = Inbox(asyncio.get_running_loop(), lambda: None)
        looked = threading.Event()
        inbox.post(looked.set)
        inbox.elsewhere()
        assert looked.wait(60.0)  # noqa: ASYNC251 - it stands still

    asyncio.run(program())


def test_what_other_threads_post_does_not_wait_for_the_loop() -> None:
    async def program() -> None:
        inbox = Inbox(asyncio.get_running_loop(), lambda: None)
        inbox.post(lambda: None)  # the loop is about to look
        looked = threading.Event()
        threading.Thread(target=lambda: inbox.post(looked.set)).start()
        assert looked.wait(60.0)  # noqa: ASYNC251 - it stands still

    asyncio.run(program())


def test_posts_of_many_threads_are_looked_at_one_at_a_time_and_none_is_lost() -> None:
    inside = most = count = 0

    def work() -> None:
        nonlocal inside, most, count
        inside += 1
        most = max(most, inside)
        count += 1
        inside -= 1

    async def program() -> None:
        inbox = Inbox(asyncio.get_running_loop(), lambda: None)

        def post() -> None:
            for _ in range(500):
                inbox.post(work)

        threads = [threading.Thread(target=post) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            inbox.post(work)
            await asyncio.sleep(0)
        for thread in threads:
            await asyncio.to_thread(thread.join)
        await asyncio.sleep(0)

    asyncio.run(program())
    assert issuer.settle(30.0)
    assert (most, count) == (1, 2_200)


def test_what_work_posts_is_looked_at_after_it_and_settled_with_it() -> None:
    inbox, seen = Inbox(None, lambda: None), []

    def first() -> None:
        inbox.post(lambda: seen.append("second"))
        seen.append("first")

    inbox.post(first)
    assert inbox.settle(30.0)
    assert seen == ["first", "second"]
    inbox.post(lambda: seen.append("third"))
    assert issuer.settle(30.0)
    assert seen[-1] == "third"


def test_nothing_comes_after_the_end() -> None:
    afters: list[int] = []
    inbox = Inbox(None, lambda: afters.append(1))
    inbox.close()
    inbox.post(lambda: None)
    assert inbox.settle(30.0)
    assert not afters


def test_who_settles_from_within_goes_on_at_once() -> None:
    inbox, seen = Inbox(None, lambda: None), []

    def work() -> None:
        inbox.post(lambda: seen.append("after"))
        assert inbox.settle(30.0)
        seen.append("within")

    inbox.post(work)
    assert inbox.settle(30.0)
    assert issuer.settle(30.0)
    assert seen == ["within", "after"]
