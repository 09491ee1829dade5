"""Streams of the program's own calls: when their component is asked, what fails then, and what has been sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from accel.parts.components import facts_of, note_told, register
from accel.parts.methods.methods import METHODS
from accel.parts.methods.patches import enable, install
from accel.parts.network.recipients import recipient
from accel.process.threads import learner
from accel.run.calls.call import Call
from accel.run.issued import early
from accel.run.run import Run
from accel.run.settings import Bound
from accel.run.waits.waiting import until
from accel.tests.fake_host import ASK, as_stream, node, opened


class Speaker:
    """Says a text word by word; one of its methods asks somebody as soon as it is called."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.closed = 0

    def fake_open_stream(self, text: str) -> Iterator[str]:
        self.asked.append(text)
        if not text:
            raise ValueError("there is nothing to say")
        return iter(text.split())

    def fake_read_stream(self, text: str) -> Iterator[str]:
        self.asked.append(text)
        yield from text.split()


OPEN, READ = (replace(as_stream(ASK), name=name, family="say") for name in ("fake_open_stream", "fake_read_stream"))


@pytest.fixture
def speaker() -> Iterator[Speaker]:
    enable()
    for method in (OPEN, READ):
        install(Speaker, method)
    register(Speaker, pure=True, concurrency=8)
    yield Speaker()
    assert learner.settle(60.0)
    for method in (OPEN, READ):
        METHODS.pop((method.family, method.name), None)


def test_what_fails_where_a_stream_is_asked_for_fails_there(speaker: Speaker) -> None:
    with opened() as run:
        with pytest.raises(ValueError, match="nothing to say"):
            speaker.fake_open_stream("")
        (failed,) = run.trace.calls
        assert speaker.asked == [""] and failed.failed
        assert list(speaker.fake_open_stream("two words")) == ["two", "words"]
        assert speaker.asked == ["", "two words"]


def test_a_component_is_asked_when_it_would_have_been(speaker: Speaker) -> None:
    with opened() as run:
        at_once, later = speaker.fake_open_stream("at once"), speaker.fake_read_stream("when read")
        assert speaker.asked == ["at once"] and len(run.trace.calls) == 1
        assert [*later, *at_once] == ["when", "read", "at", "once"]
        assert speaker.asked == ["at once", "when read"] and len(run.trace.calls) == 2


def test_a_stream_that_nobody_reads_has_perhaps_sent_nothing(speaker: Speaker) -> None:
    with opened() as run:
        unread, read = speaker.fake_open_stream("a secret of one"), speaker.fake_open_stream("a question of another")
        assert list(read)
        to = recipient(speaker, run.plan.keys.note(speaker), run.trace.calls[0].input)
        assert run.ledger.knows(to, ["a question of another"]) and not run.ledger.knows(to, ["a secret of one"])
        del unread


class Sampled:
    """Says another thing each time, and after the first word waits until it may go on."""

    said: ClassVar[list[str]] = []
    goes_on: ClassVar = threading.Event()

    def fake_open_stream(self, text: str) -> Iterator[str]:
        self.said.append(text)
        return self.say(f"{len(self.said)} {text}")

    def say(self, text: str) -> Iterator[str]:
        first, *others = text.split()
        yield first
        assert self.goes_on.wait(30.0)
        yield from others


class Response(list[str]):
    """What a client gives: it is closed, or holds its connection."""

    def __init__(self, speaker: Speaker, text: str) -> None:
        super().__init__(text.split())
        self.speaker = speaker

    def close(self) -> None:
        self.speaker.closed += 1


class Client(Speaker):
    def fake_open_stream(self, text: str) -> Iterator[str]:
        return Response(self, text)  # type: ignore[return-value]


def issued(run: Run, speaker: Any, text: str) -> Call:
    bound = Bound(speaker, OPEN, facts_of(speaker), run.identities, run.plan.keys.note(speaker))
    tree = OPEN.read(speaker, (text,), {})
    call = early.issue(run, node(tree=tree, method=OPEN.name), bound, tree, bound.key(tree))
    assert isinstance(call, Call)
    return call


@pytest.mark.parametrize("silenced", [True, False])
def test_an_early_stream_that_is_dropped_before_anybody_reads_it_gives_nothing(
    speaker: Speaker, silenced: bool
) -> None:
    sampled = Sampled()
    Sampled.said.clear()
    Sampled.goes_on.clear()
    install(Sampled, OPEN)
    register(Sampled, pure=True, local=True, concurrency=8)
    note_told(sampled, OPEN.name, "")
    with opened() as run:
        begun = issued(run, sampled, "of many").chunks.beyond(0, lambda: False)
        if begun is not None:
            until(begun, 30.0)
        stream = sampled.fake_open_stream("of many")
        assert len(Sampled.said) == 1, "it was joined"
        if silenced:
            run.silence()
    Sampled.goes_on.set()
    assert list(stream) == ["2", "of", "many"]


def test_a_stream_that_is_closed_unread_closes_what_it_has_opened(speaker: Speaker) -> None:
    client = Client()
    install(Client, OPEN)
    with opened() as run:
        client.fake_open_stream("some words").close()  # type: ignore[attr-defined]
        assert client.closed == 1 and run.trace.calls[0].failed
        assert list(client.fake_open_stream("some words")) == ["some", "words"]
