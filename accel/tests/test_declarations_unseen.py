"""Tools that nobody declared: what a declaration of theirs may gain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from accel.parts.components import TOOL
from accel.parts.methods.methods import METHODS
from accel.reports.declarations import unseen
from accel.trace.record import CallRecord, Outgoing, Trace, Use


def gains(*uses: Use, answer: Any = None) -> list[float]:
    asked = CallRecord("model", "", "ask", "ask", "decode", None, None, None, None, 1, 100.0, output=answer)
    asked.end, asked.ended_s = 2, 101.0
    trace = Trace({"q": "all about bees"}, calls=[asked], uses=list(uses), started_s=100.0)
    return [round(each.gain_s, 3) for each in unseen(trace, 0.05, nodes=False, program="graph")]


def used(start_s: float, took_s: float = 0.5, texts: frozenset[str] = frozenset()) -> Use:
    return Use(SimpleNamespace(), "look_up", "|Tool|app.py:ask:30", "", None, start_s, start_s + took_s, texts)


CALLS = {"content": "", "tool_calls": [{"name": "look_up", "args": {}}]}


@pytest.mark.parametrize(
    ("answer", "starts", "gain"),
    [
        (None, [101.0], [0.5]),
        (CALLS, [101.0], []),
        (CALLS, [101.0, 101.5], [0.5]),
        ({"content": "", "tool_calls": [{"name": "other"}]}, [101.0], [0.5]),
        (None, [100.2], [0.2]),
        (None, [100.01], []),
    ],
    ids=["unknown", "called by the answer", "one after the other", "another one", "soon after the begin", "at once"],
)
def test_a_tool_can_begin_no_sooner_than_the_run_and_the_answer_that_calls_it(
    answer: Any, starts: list[float], gain: list[float]
) -> None:
    assert gains(*map(used, starts), answer=answer) == gain


@pytest.mark.parametrize(
    ("texts", "starts", "gain"),
    [
        ({"ants"}, [101.0], []),
        ({"ants"}, [101.0, 101.5], [0.5]),
        ({"bees"}, [101.0], [0.5]),
        ({"bees", "ants"}, [101.2], [0.2]),
        ({"wasps"}, [101.0, 101.5], []),
    ],
    ids=["said by the answer", "one after the other", "given to the run", "both", "said by nobody"],
)
def test_a_tool_can_begin_no_sooner_than_what_it_is_given_was_said(
    texts: set[str], starts: list[float], gain: list[float]
) -> None:
    answer = {"content": "Look up ants."}
    assert gains(*(used(start_s, texts=frozenset(texts)) for start_s in starts), answer=answer) == gain


def sent(start_s: float, took_s: float = 0.5, texts: frozenset[str] = frozenset()) -> Outgoing:
    of_client = {"owner": "Client", "method": "find", "host": "https://example.org", "verb": "GET"}
    tool, site = SimpleNamespace(), "|Client|app.py:ask:30"
    return Outgoing(tool, "Client.find", site, "", None, start_s, start_s + took_s, texts, **of_client)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("starts", "texts", "gain"),
    [
        ([101.0], {"all about ants"}, []),
        ([101.2], {"all about ants", "https://example.org"}, [0.2]),
        ([101.0], {"bees", "https://example.org"}, [0.5]),
        ([100.01, 100.51, 101.01], {"bees"}, []),
        ([101.0, 101.5], {"bees"}, [1.0]),
        ([101.0, 101.2], {"bees"}, [1.0]),
    ],
    ids=["said by the answer", "soon after it", "given to the run", "one call at once", "one call", "side by side"],
)
def test_a_client_can_be_called_no_sooner_than_the_words_that_somebody_says(
    starts: list[float], texts: set[str], gain: list[float]
) -> None:
    """Addresses and settings nobody says but the program. What one call sends begins with its first request."""
    answer = {"content": "Look up ants."}
    assert gains(*(sent(start_s, texts=frozenset(texts)) for start_s in starts), answer=answer) == gain


class Lookup:
    def _run(self, query: str) -> str:
        return query


@pytest.mark.parametrize(
    ("times", "line"),
    [(1, "accel.register(Lookup, readonly=True)"), (2, "accel.register(Lookup, readonly=True, concurrency=8)")],
)
def test_what_is_used_several_times_is_declared_for_several_at_a_time(
    times: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, (TOOL, "_run"), SimpleNamespace(family=TOOL, name="_run"))
    uses = [Use(Lookup(), "look_up", "|Tool|app.py:ask:30", "", None, 101.0 + n, 101.5 + n) for n in range(times)]
    (found,) = unseen(Trace({}, uses=uses, started_s=100.0), 0.05, nodes=False, program="graph")
    assert found.line == line
