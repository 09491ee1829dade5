"""`python -m bench profile` as far as it goes without engines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from accel.engine.profile import KINDS, Profile, ProfileFile, load
from bench import profile
from bench.__main__ import main

GIVEN = ProfileFile(
    {
        "llm": Profile(
            "llm", prefill=((64, 0.08), (128, 0.14), (256, 0.26)), decode=((1, 0.02), (4, 0.03)), block_tokens=32
        ),
        "embedding": Profile("embedding", batches=((1, 16, 0.01), (8, 64, 0.08)), batch_tokens=2048),
        "reranking": Profile("reranking", batches=((1, 16, 0.02), (4, 224, 0.17)), batch_tokens=2048),
        "searching": Profile("searching", search=((100, 0.002), (5000, 0.01)), source="measured"),
    },
    "2 cores, some CPU, no GPU",
    {"python": "3.11"},
)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What was asked to be measured; nothing is, and `GIVEN` is said to be the result."""
    asked: list[tuple[str, ...]] = []

    def measure(kinds: tuple[str, ...], model: str, dtype: str, console: Console) -> ProfileFile:
        asked.append(kinds)
        return GIVEN

    monkeypatch.setattr(profile, "measure", measure)
    return asked


def test_the_file_is_what_was_measured(
    measured: list[tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "p.json"
    assert main(["profile", "--out", str(out)]) == 0
    assert load(out) == GIVEN
    assert str(out) in capsys.readouterr().err.replace("\n", "")
    assert main(["profile", "--only", "searching, embedding", "--out", str(out)]) == 0
    assert measured == [KINDS, ("embedding", "searching")]


def test_the_table_shows_every_point_and_what_follows_from_them() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(profile.table(GIVEN))
    text = console.export_text()
    for shown in ("2 cores", "256 tokens", "4 together", "8 × 64 tokens", "5,000 records"):
        assert shown in text
    assert "…" not in text, "it must fit into eighty columns"
    rows = {tuple(line.split()) for line in text.splitlines()}
    assert ("llm", "prefill", "128", "tokens", "140.0", "ms", "914") in rows
    assert ("llm", "pass_s", "20.0", "ms") in rows
    assert ("llm", "split_tokens", str(GIVEN.profiles["llm"].split_tokens)) in rows
    assert ("embedding", "efficient_batch_tokens", "512") in rows
    assert ("searching", "search", "100", "records", "2.0", "ms", "500") in rows


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--only", "llm,embeddings"], "'embeddings' is none of llm, embedding, reranking, searching"),
        (["--only", ""], "'' is none of"),
        (["--out", "/nowhere/profile.json"], "there is no folder /nowhere"),
        (["--dtype", "int3"], "invalid choice: 'int3'"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(
    options: list[str], error: str, measured: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["profile", *options])
    assert ended.value.code == 2 and error in capsys.readouterr().err
    assert measured == []


def test_an_interrupted_measurement_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def measure(*arguments: object) -> ProfileFile:
        raise KeyboardInterrupt

    monkeypatch.setattr(profile, "measure", measure)
    assert main(["profile", "--out", str(tmp_path / "p.json")]) == profile.INTERRUPTED
    assert list(tmp_path.iterdir()) == []


def test_unknown_commands_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["profil"])
    assert "invalid choice: 'profil'" in capsys.readouterr().err
