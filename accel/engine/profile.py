"""How fast an engine is: measured on this machine or published, as curves of (size, seconds).

A profile decides what splitting, batching and waiting are worth, drives the simulated engines, and makes the limit
(`accel.reports.limits.limit`) computable. Files are JSON and hold one profile per kind of engine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError

KINDS = ("llm", "embedding", "reranking", "searching")
EFFICIENT = 0.9
"""A batch is efficient when it reaches this share of the best throughput."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The speed of one engine. Sizes are positive and ascending.

    `prefill`: (prompt tokens, s). `decode`: (requests decoding together, s for one token of each).
    `batches`: (texts, tokens of each, s for all of them as one batch), for embedding and reranking.
    `search`: (records in the collection, s). `batch_tokens`: most tokens of one step or batch. `block_tokens`: of a
    block of the prefix cache. `slots`: requests served at a time (0: any number).
    `source`: measured, or published where.
    """

    engine: str
    prefill: tuple[tuple[int, float], ...] = ()
    decode: tuple[tuple[int, float], ...] = ()
    batches: tuple[tuple[int, int, float], ...] = ()
    search: tuple[tuple[int, float], ...] = ()
    batch_tokens: int = 0
    block_tokens: int = 0
    slots: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        if self.engine not in KINDS:
            raise ConfigurationError(
                f"A profile is of an engine kind, not {self.engine!r}.", f"one of {', '.join(KINDS)}"
            )
        needed = {"llm": ("prefill", "decode"), "searching": ("search",)}.get(self.engine, ("batches",))
        for name in needed:
            if not getattr(self, name):
                raise ConfigurationError(f"The profile of an {self.engine} engine needs {name!r}.", "measure it again")

    @property
    def pass_s(self) -> float:
        """A step of a language model that carries next to nothing: what every separate prefill pays once more."""
        if len(self.prefill) < 2:
            return 0.0
        (n, at_n), (m, at_m) = self.prefill[0], self.prefill[1]
        return min(at_n, max(0.0, at_n - n * (at_m - at_n) / (m - n)))

    def prefill_s(self, first: int, last: int) -> float:
        """Prompt tokens from position `first` up to `last`, beside whatever else the step does."""
        curve = ((0, self.pass_s), *self.prefill)
        return at(curve, last) - at(curve, first)

    def batch_s(self, texts: int, tokens: int) -> float:
        """One batch of `texts` texts, the longest of `tokens` tokens."""
        return at(_by_total(self.batches), texts * tokens)

    @property
    def efficient_batch_tokens(self) -> int:
        """The smallest batch, in tokens, whose throughput is near the best: larger ones only add waiting."""
        curve = _by_total(self.batches)
        best = max(size / s for size, s in curve)
        return next(size for size, s in curve if size / s >= EFFICIENT * best)

    @property
    def split_tokens(self) -> int:
        """The shortest part of a prompt worth prefilling on its own: whole blocks of the prefix cache whose prefill
        takes longer than the extra step it needs."""
        block = max(1, self.block_tokens)
        tokens = block
        while tokens < self.prefill[-1][0] and self.prefill_s(0, tokens) < self.pass_s:
            tokens += block
        return tokens


def at(curve: tuple[tuple[int, float], ...] | list[tuple[int, float]], size: float) -> float:
    """Interpolated; beyond its ends along its last pieces."""
    if len(curve) == 1:
        return curve[0][1]
    right = next((i for i, (n, _) in enumerate(curve) if n >= size), len(curve) - 1)
    right = max(1, right)
    (n, at_n), (m, at_m) = curve[right - 1], curve[right]
    return max(0.0, at_n + (size - n) * (at_m - at_n) / (m - n))


def _by_total(batches: tuple[tuple[int, int, float], ...]) -> list[tuple[int, float]]:
    """A batch costs what its tokens cost: the measured table as one curve, made ascending."""
    held: dict[int, list[float]] = {}
    for texts, tokens, s in batches:
        held.setdefault(texts * tokens, []).append(s)
    curve: list[tuple[int, float]] = []
    for size in sorted(held):
        s = sum(held[size]) / len(held[size])
        curve.append((size, max(s, curve[-1][1]) if curve else s))
    return curve


# --- files


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """What a file of profiles says: by kind of engine, and where it was measured."""

    profiles: Mapping[str, Profile]
    machine: str = ""
    versions: Mapping[str, str] = ()  # type: ignore[assignment]

    def save(self, path: str | Path) -> None:
        content = {
            "machine": self.machine,
            "versions": dict(self.versions),
            "profiles": {kind: asdict(profile) for kind, profile in self.profiles.items()},
        }
        Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def load(path: str | Path) -> ProfileFile:
    """Read a file of profiles. Raises ConfigurationError if it is missing or isn't one."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        profiles = {kind: _profile(entry) for kind, entry in content["profiles"].items()}
    except OSError as error:
        raise ConfigurationError(
            f"The profile {path} can't be read: {error.strerror}.", "python -m bench profile"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"{path} is not a file of profiles: {error}.", "python -m bench profile") from error
    return ProfileFile(profiles, content.get("machine", ""), content.get("versions", {}))


def _profile(entry: dict[str, Any]) -> Profile:
    known = {field.name for field in fields(Profile)}
    unknown = set(entry) - known
    if unknown:
        raise ValueError(f"a profile has no {sorted(unknown)[0]!r}")
    curves = {
        name: tuple(tuple(point) for point in entry.get(name, ()))
        for name in ("prefill", "decode", "batches", "search")
    }
    return replace(Profile(**{**entry, **curves}))
