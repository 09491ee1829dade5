"""`python -m bench fidelity` as far as it goes without engines."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from accel.engine import Delta, Priority, Prompt, Sampling, TokenIds, Usage
from accel.errors import RequestError
from bench import fidelity
from bench.__main__ import main
from bench.fidelity import ARMS, Arm, Call, Recorder, Request


class FakeEngine:
    """Says `words`, a token each; fails where the prompt is empty."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.priorities: list[int] = []

    def encode(self, prompt: Prompt) -> list[int]:
        return [len(str(item)) for item in prompt]

    async def generate(
        self, prompt: TokenIds, sampling: Sampling, *, priority: Priority
    ) -> AsyncGenerator[Delta, None]:
        self.priorities.append(priority.value)
        if not prompt:
            yield Delta("", 0, "error", error=RequestError("empty"))
            return
        for word in self.words[:-1]:
            yield Delta(word, 1)
        yield Delta(self.words[-1], 1, "stop", Usage(len(prompt), 1, len(self.words)))

    async def prefill(self, token_ids: TokenIds, *, priority: Priority) -> int:
        return len(token_ids) // 2


async def ask(engine: Any, prompt: Prompt, most: int = 100) -> str:
    text = ""
    deltas = engine.generate(prompt, Sampling(), priority=Priority(3))
    async for delta in deltas:
        text += delta.text
        most -= 1
        if not most:
            break
    await deltas.aclose()
    return text


async def test_the_recorder_keeps_whole_answers_by_prompt_tokens() -> None:
    engine, recorder = FakeEngine("one ", "two ", "three"), Recorder()
    recorder.watch(engine)  # type: ignore[arg-type]
    assert await ask(engine, ["a", "bb"]) == "one two three"
    assert await ask(engine, ["ccc"], most=2) == "one two "
    await ask(engine, [])
    assert recorder.answers == {(1, 2): "one two three"} and engine.priorities == [3, 3, 3]
    whole, broken, failed = recorder.calls
    assert (whole.prompt_tokens, whole.cached_tokens, whole.output_tokens, whole.priority) == (2, 1, 3, 3)
    assert whole.first_s is not None and whole.ended_s is not None
    assert whole.began_s <= whole.first_s <= whole.ended_s
    assert broken.output_tokens == 2 and broken.ended_s is None
    assert failed.first_s is None and failed.ended_s is None


async def test_the_recorder_counts_prompts_that_are_answered_in_two_ways() -> None:
    engine, recorder = FakeEngine("yes"), Recorder()
    recorder.watch(engine)  # type: ignore[arg-type]
    for words in (("yes",), ("yes",), ("no",)):
        engine.words = words
        await ask(engine, ["a"])
    assert recorder.unstable == 1 and recorder.answers == {(1,): "yes"}


async def test_the_recorder_sees_prefills_and_unknown_prompts() -> None:
    engine, recorder = FakeEngine("yes"), Recorder(known={(1,): "yes"})
    recorder.watch(engine)  # type: ignore[arg-type]
    assert await engine.prefill([1, 2, 3, 4], priority=Priority(1)) == 2
    await ask(engine, ["a"])
    await ask(engine, ["bb"])
    assert [(call.kind, call.prompt_tokens, call.known) for call in recorder.calls] == [
        ("prefill", 4, True),
        ("answer", 1, True),
        ("answer", 1, False),
    ]


def request(real: tuple[float, float], simulated: tuple[float, float], outputs: str = "aaaa") -> Request:
    """Seconds of the unmodified and the accelerated arm, and the four answers in that order."""
    arms = [
        Arm(s, {"answer": output, "question": "q"}, [Call("answer", 0.0, 0, 2000, True, 500, 11, 0.1 * s, 0.9 * s)])
        for s, output in zip((*real, *simulated), outputs, strict=True)
    ]
    return Request("q", dict(zip(ARMS, arms[:2], strict=True)), dict(zip(ARMS, arms[2:], strict=True)))


LEARNING = [request((10, 10), (90, 1))] * fidelity.LEARNT_FROM


def test_the_verdict_is_about_the_requests_after_learning() -> None:
    found = [*LEARNING, request((10, 4), (11, 4)), request((10, 5), (9.5, 6)), request((20, 5), (20, 5))]
    said = fidelity.verdict(found)
    assert said["median off"] == pytest.approx({"unmodified": 0.05, "accelerated": 0.0})
    assert said["worst off"] == pytest.approx({"unmodified": 0.1, "accelerated": 0.2})
    assert said["speedup"] == pytest.approx({"real": 2.5, "simulated": 2.75})
    assert said["equal"] == 5 and said["ok"]


@pytest.mark.parametrize(
    ("late", "ok"),
    [
        (request((10, 5), (11.4, 4.3)), True),
        (request((10, 5), (11.6, 5)), False),
        (request((10, 5), (10, 4.2)), False),
        (request((10, 5), (10, 5), "aaab"), False),
        (request((10, 5), (10, 5), "abaa"), False),
        (request((10, 5), (10, 5), "abbb"), False),
    ],
)
def test_either_arm_too_far_off_or_any_other_output_is_too_much(late: Request, ok: bool) -> None:
    assert fidelity.verdict([*LEARNING, late])["ok"] is ok


def test_an_output_while_learning_counts_too() -> None:
    good = request((10, 5), (10, 5))
    said = fidelity.verdict([request((10, 5), (10, 5), "aaba"), good, good])
    assert said["equal"] == 2 and not said["ok"]


def test_remarks_name_what_was_extrapolated_and_what_was_real() -> None:
    found = [*LEARNING, request((10, 5), (12, 5))]
    lines = fidelity.remarks(found, fidelity.verdict(found), 1024, 2)
    text = "\n".join(lines)
    assert "unmodified 20.0% (worst 20.0%), accelerated 0.0%" in text
    assert "2000 tokens" in text and "up to 1024" in text and "2 prompts got another answer" in text
    assert "store: 10.0%" in text
    assert lines[-1] == "verdict: NOT good enough"
    assert "extrapolated" not in "\n".join(fidelity.remarks(found, fidelity.verdict(found), 2048, 0))


def test_the_parts_are_of_answers_that_ended() -> None:
    ended = Call("answer", 1.0, 0, 100, True, 32, 11, 1.2, 2.2)
    broken = Call("answer", 1.0, 0, 50, False, 0, 3, 1.1)
    found = fidelity.work([Arm(5.0, {}, [ended, broken]), Arm(5.0, {}, [Call("prefill", 0.0, 1, 64, ended_s=0.5)])])
    assert (found["answers"], found["broken off"], found["prefills"], found["unknown prompts"]) == (1, 1, 1, 1)
    assert (found["prompt tokens"], found["of them cached"], found["output tokens"]) == (100, 32, 11)
    assert found["ms to first token"] == pytest.approx(200) and found["ms per later token"] == pytest.approx(100)


def test_the_tables_show_every_request_and_the_late_ones() -> None:
    found = [*LEARNING, request((10, 4), (11, 4), "aaab"), request((30, 10), (33, 10))]
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(fidelity.times_table(found), fidelity.parts_table(found))
    text = console.export_text()
    assert "…" not in text
    rows = {tuple(cell.strip() for cell in line.strip("│ ").split("│")) for line in text.splitlines()}
    assert ("3", "10.00", "11.00", "1.100", "4.00", "4.00", "1.000", "2.50x", "2.75x", "answer differ") in rows
    assert ("late", "20.00", "22.00", "1.100", "7.00", "7.00", "1.000", "2.75x", "3.02x", "answer differ") in rows


@pytest.mark.parametrize("requests", ["2", "0", "-1", "1000"])
def test_too_few_or_too_many_requests_are_refused(requests: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fidelity", "--profile", "p.json", "--requests", requests])
    assert ended.value.code == 2 and "more than two" in capsys.readouterr().err


def test_a_missing_profile_is_named_before_anything_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["fidelity", "--profile", str(tmp_path / "none.json"), "--out", str(out)]) == 2
    assert "none.json" in capsys.readouterr().out.replace("\n", "")
    assert not out.exists()


def test_an_interruption_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(*arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(fidelity, "run", run)
    assert main(["fidelity", "--profile", "p.json", "--out", str(tmp_path)]) == fidelity.INTERRUPTED
    assert list(tmp_path.iterdir()) == []
