"""Recorded answers, and where an answer stops."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from accel.errors import ConfigurationError


def until_stop(pieces: Sequence[str], stops: Sequence[str]) -> list[str] | None:
    """The pieces of an answer that a stop string ends; the tokens that may be its beginning are held back, and then one
    last piece. None: none of them comes."""
    text = ""
    for end, piece in enumerate(pieces) if stops else ():
        text += piece
        cut = min((text.find(stop) for stop in stops if stop in text), default=-1)
        if cut >= 0:
            kept: list[str] = []
            for early in pieces:
                if sum(map(len, kept)) + len(early) > cut:
                    break
                kept.append(early)
            return [*kept, *[""] * (end - len(kept)), text[sum(map(len, kept)) : cut]]
    return None


def save_answers(path: str | Path, answers: dict[tuple[int, ...], str]) -> None:
    """Write answers by prompt tokens, for `SimLLMConfig.answers`."""
    with Path(path).open("w", encoding="utf-8") as file:
        for ids, text in answers.items():
            file.write(json.dumps({"prompt": ids, "answer": text}) + "\n")


def load_answers(path: str | Path) -> dict[tuple[int, ...], str]:
    try:
        lines = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
        return {tuple(line["prompt"]): line["answer"] for line in lines}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{path} is no file of recorded answers: {error}") from error
