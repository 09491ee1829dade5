"""Sections of RESULTS.md: figures are recomputed from raw times."""

from __future__ import annotations

from typing import Any

from bench.sections import SECTIONS, first_token, llamaindex, topology


def asked(number: int, plain_s: float, fast_s: float, equal: bool = True, limit_s: float | None = None) -> Any:
    return {
        "program": "fusion", "number": number, "limit_s": limit_s, "counts": {"retired": 3, "wasted": 1},
        "seconds": {"unmodified": plain_s, "accelerated": fast_s},
        "output": {"unmodified": "a", "accelerated": "a" if equal else "b"},
    }  # fmt: skip


def test_llamaindex_programs() -> None:
    requests = [asked(0, 9.0, 9.0, equal=False), asked(1, 4.0, 2.0, limit_s=1.0), asked(2, 3.0, 2.0, limit_s=1.5)]
    raw = {"machine": "m", "profile": "7b", "warm": 1, "gains": {"fusion": "lists"}, "requests": requests}
    row = llamaindex(raw).splitlines()[-1]
    assert row == "| fusion | lists | 3.50 s | 1.75x (1.50 to 2.00) | 3.00x | 0.62 | 2 of 3 | 6 / 2 |"


def test_requests_without_a_limit() -> None:
    raw = {"machine": "m", "profile": "7b", "warm": 0, "gains": {"fusion": "lists"}, "requests": [asked(0, 4.0, 2.0)]}
    assert "| 2.00x (2.00 to 2.00) | - | - | 1 of 1 |" in llamaindex(raw)


def load(rate: float | None, seconds: float, waited_s: float) -> Any:
    return {
        "rate": rate, "requests": [{"began_s": 1.0, "ended_s": 1.0 + seconds}], "engines": {"m": {"waited_s": waited_s}}
    }  # fmt: skip


def test_batching() -> None:
    arms = [
        {"batching": batching, "program": "as written", "alone": [{"began_s": 0.0, "ended_s": alone_s}], "loads": loads}
        for batching, alone_s, loads in (
            ("blind", 2.0, [load(0.5, 4.0, 1.0), load(None, 10.0, 8.0)]),
            ("topology-aware", 1.5, [load(0.5, 3.0, 0.0), load(None, 5.0, 3.0)]),
        )
    ]
    said = topology({"machine": "m", "profile": "7b", "models": 2, "mixes": [{"mix": ["a", "b"], "arms": arms}]})
    assert "### a and b" in said and "|  | 0.50 requests/s | all at once |" in said
    assert "| as written: in line | 25% | 80% |" in said
    assert "| as written, topology-aware | 3.0 s, -25.0% | 5.0 s, -50.0% |" in said
    assert "takes at most 0.750 of" in said


def test_first_tokens() -> None:
    def call(number: int, before_s: float | None, after_s: float | None, equal: bool = True) -> Any:
        return {"request": number, "equal": equal, "first_s": {"unmodified": before_s, "accelerated": after_s}}

    calls = [call(0, 9.0, 9.5, False), call(1, 0.1, 0.0), call(1, 0.2, 0.25), call(2, 0.3, 0.1), call(2, None, None)]
    said = first_token({"machine": "m", "profile": "7b", "warm": 1, "apps": {"rag": calls}})
    assert said.splitlines()[-1] == "| rag | 3 | 200.0 ms | 100.0 ms | +50.00 ms | 1 | 4 of 5 |"


def test_every_section_is_a_command() -> None:
    from bench.__main__ import COMMANDS

    assert SECTIONS.keys() <= COMMANDS.keys()
