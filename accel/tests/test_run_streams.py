"""Streams of the program's own calls: when their component is asked, what fails then, and what has been sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from accel.parts.components import register
from accel.parts.methods import METHODS
from accel.parts.patches import enable, install
from accel.run.egress import recipient
from accel.tests.fake_host import ASK, as_stream, opened


class Speaker:
    """Says a text word by word; one of its methods asks somebody as soon as it is called."""

    def __init__(self) -> None:
        self.asked: list[str] = []

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
        to = recipient(run.plan.keys, speaker, run.trace.calls[0].input)
        assert run.ledger.knows(to, ["a question of another"]) and not run.ledger.knows(to, ["a secret of one"])
        del unread
