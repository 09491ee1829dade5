"""`accel init`, `up --check`, `status` and `down`, as far as they need no Ray."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("ray", reason="the extra ray is not installed")
pytest.importorskip("yaml", reason="the extra ray is not installed")
pytest.importorskip("pydantic", reason="the extra ray is not installed")
pytest.importorskip("typer", reason="the extra cli is not installed")

from typer.testing import CliRunner

from accel.cli import app
from accel_ray.config import read
from accel_ray.document import DOCUMENT, document
from accel_ray.keeper import Kept, all_kept
from accel_ray.kinds import KINDS, Kind
from accel_ray.samples import sample


def accel(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACCEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return tmp_path


def uncommented(text: str) -> str:
    """What a sample says once the "#" before each field is removed."""
    return re.sub(r"^( *)#( *[\w-]+:)", r"\1\2", text, flags=re.MULTILINE)


# --- a file to begin with


def test_what_init_writes_is_right(folder: Path) -> None:
    for number, names in enumerate([[], ["vllm", "pgvector"], list(KINDS)]):
        file = f"{number}.yaml"
        written = accel("init", file, *(part for name in names for part in ("--kind", name)))
        assert written.exit_code == 0, written.output
        checked = accel("up", file, "--check", "--json")
        assert checked.exit_code == 0 and json.loads(checked.stdout)["right"], checked.stdout
        kinds = names or [name for name, kind in KINDS.items() if kind.installed and not kind.simulated]
        models = [name for name in kinds if name in ("vllm", "transformers")]
        live = [name for name in kinds if names or name not in models[1:]]
        assert list(json.loads(checked.stdout)["engines"]) == [KINDS[name].engine for name in live]


@pytest.mark.parametrize("name", KINDS)
def test_a_sample_shows_the_defaults(folder: Path, name: str) -> None:
    text = sample([KINDS[name]])
    (folder / "as_is.yaml").write_text(text)
    (folder / "with_all.yaml").write_text(uncommented(text))
    as_is, with_all = read("as_is.yaml"), read("with_all.yaml")
    assert uncommented(text) != text and with_all.address == "auto"
    assert with_all.engines == as_is.engines and with_all.local == as_is.local


def test_a_second_language_model_is_only_shown(folder: Path) -> None:
    text = sample([KINDS["vllm"], KINDS["transformers"]], named=False)
    (folder / "backend.yaml").write_text(text)
    assert [spec.name for spec in read("backend.yaml").engines] == ["llm"]
    (folder / "backend.yaml").write_text(re.sub(r"^  #(?=\S|  )", "  ", text, flags=re.MULTILINE))
    assert [spec.name for spec in read("backend.yaml").engines] == ["llm", "llm-transformers"]


def test_language_models_get_a_gpu_where_there_are_some(folder: Path) -> None:
    (folder / "backend.yaml").write_text(sample([KINDS["vllm"], KINDS["sentence_transformers"]], gpus=2))
    assert [spec.num_gpus for spec in read("backend.yaml").engines] == [1, 0]


def test_init_never_overwrites_unasked(folder: Path) -> None:
    (folder / "backend.yaml").write_text("mine")
    refused = accel("init", "--kind", "rerank")
    assert refused.exit_code == 2 and "backend.yaml is there already." in refused.stderr and "--force" in refused.stderr
    assert (folder / "backend.yaml").read_text() == "mine"
    assert accel("init", "--kind", "rerank", "--force").exit_code == 0
    assert [spec.name for spec in read("backend.yaml").engines] == ["rerank"]


def test_init_says_what_it_can_not_write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = accel("init", "--kind", "vlm")
    assert unknown.exit_code == 2 and "There is no kind 'vlm' of engines." in unknown.stderr
    assert "Did you mean 'vllm'?" in unknown.stderr
    assert "can't be written" in accel("init", "nowhere/backend.yaml", "--kind", "vllm").stderr
    monkeypatch.setattr(Kind, "installed", property(lambda self: False))
    nothing = accel("init")
    assert nothing.exit_code == 2 and "No engine is installed here." in nothing.stderr
    assert "pip install 'accelgraph[" in nothing.stderr and not list(folder.glob("*.yaml"))


# --- is it right?


def test_a_wrong_file_is_told_as_data(folder: Path) -> None:
    (folder / "backend.yaml").write_text("engines:\n  a:\n    kind: vlm\n")
    done = accel("up", "--check", "--json")
    assert done.exit_code == 2
    (mistake,) = json.loads(done.stdout)["mistakes"]
    assert (mistake["field"], mistake["line"], mistake["what"]) == ("engines.a.kind", 3, "engines.a.kind is 'vlm'.")
    assert mistake["remedy"].startswith("Did you mean 'vllm'?")
    (folder / "backend.yaml").write_text("engines: {}")
    for arguments in (("up", "--check"), ("up",)):
        done = accel(*arguments)
        assert done.exit_code == 2 and "has no engines" in done.stderr and "Remedy: " in done.stderr


def test_a_check_says_what_is_not_installed_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert accel("init", "--kind", "vllm").exit_code == 0
    monkeypatch.setattr(Kind, "installed", property(lambda self: False))
    done = accel("up", "--check")
    assert done.exit_code == 0 and "llm: vllm is not installed here" in done.stdout


# --- several backends: keepers whose Rays can't be reached, so that only the keepers count

HOLDS = "import sys; sys.stdout.write('up\\n'); sys.stdout.flush(); sys.stdin.read()"


@pytest.fixture
def keepers(folder: Path) -> Iterator[dict[str, "subprocess.Popen[str]"]]:
    started = {}
    (folder / "cache" / "ray").mkdir(parents=True)
    with ExitStack() as stack:
        for number, name in enumerate(("a", "b c"), start=1):
            command = [sys.executable, "-c", HOLDS]
            process = stack.enter_context(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None and process.stdout.readline() == "up\n"
            created = psutil.Process(process.pid).create_time()
            kept = Kept(name, process.pid, created, f"127.0.0.1:{number}", str(folder / f"ray-{number}"))
            (folder / "cache" / "ray" / f"{name.replace(' ', '%20')}.json").write_text(json.dumps(asdict(kept)))
            started[name] = process
        yield started


def running(keepers: dict[str, "subprocess.Popen[str]"]) -> list[str]:
    return [name for name, process in keepers.items() if process.poll() is None]


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, which is connected to no Ray."""
    return subprocess.run([sys.executable, "-m", "accel.cli", *arguments], capture_output=True, text=True, timeout=100)


@pytest.mark.timeout(240)
def test_every_namespace_is_seen_and_none_ended_by_chance(keepers: dict[str, "subprocess.Popen[str]"]) -> None:
    status = command("status", "--json")
    assert status.returncode == 1 and [one["namespace"] for one in json.loads(status.stdout)] == ["a", "b c"]
    assert all("127.0.0.1" in one["problem"] and not one["well"] for one in json.loads(status.stdout))
    one = command("status", "--namespace", "b c")
    assert one.returncode == 1 and "unreachable" in one.stdout
    assert "b c: Ray at 127.0.0.1:2, which ends with it. No Ray can be reached at 127.0.0.1:2" in one.stdout
    assert "127.0.0.1:1" not in one.stdout and not re.search("[│┃\x1b]", one.stdout)

    refused = command("down")
    assert refused.returncode == 2 and refused.stdout == ""
    assert "2 backends are up: 'a' (Ray at 127.0.0.1:1), 'b c' (Ray at 127.0.0.1:2)." in refused.stderr
    assert "accel down --namespace a" in refused.stderr and "--all" in refused.stderr
    wrong = command("down", "--namespace", "d")
    assert wrong.returncode == 0 and wrong.stdout == "nothing was up in namespace 'd'; up are 'a', 'b c'\n"
    assert running(keepers) == ["a", "b c"]

    ended = command("down", "--namespace", "a")
    assert ended.returncode == 0 and ended.stdout.startswith("a: ended no engine") and "1 process)" in ended.stdout
    assert running(keepers) == ["b c"] and [kept.namespace for kept in all_kept()] == ["b c"]
    last = command("down", "--json")
    assert last.returncode == 0 and running(keepers) == [], "the one there is"
    assert [(one["namespace"], one["ray_processes"], one["left"]) for one in json.loads(last.stdout)] == [
        ("b c", 1, [])
    ]
    assert command("down").stdout == "nothing was up\n" and command("status").stdout == "nothing is up\n"


def test_all_of_them_end_if_that_is_asked_for(keepers: dict[str, "subprocess.Popen[str]"]) -> None:
    assert command("down", "--all").returncode == 0 and running(keepers) == []


@pytest.mark.parametrize(("answer", "left", "code"), [("n", ["a", "b c"], 2), ("y", [], 0)])
def test_a_terminal_is_asked(
    keepers: dict[str, "subprocess.Popen[str]"], answer: str, left: list[str], code: int
) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "accel.cli", "down"]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "COLUMNS": "200"}
    )
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    said = b""
    while chunk := _read(ours):
        said += chunk
    os.close(ours)
    assert process.wait(60) == code and "End all 2 backends?" in said.decode(), said.decode()
    assert running(keepers) == left


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other side is closed
        return b""


def test_a_program_is_told_which_backends_there_are(keepers: dict[str, "subprocess.Popen[str]"]) -> None:
    """As far as their Rays can be reached: these can't."""
    code = "from accel.backend import Backend\nBackend.ray('auto').use()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "BackendError: No Ray can be reached at 127.0.0.1:2" in done.stderr


# --- the shell, the page


@pytest.mark.parametrize(("words", "found"), [("accel st", ["status"]), ("accel init --kind sim_e", ["sim_embedding"])])
def test_a_shell_completes(words: str, found: list[str]) -> None:
    code = "import sys; sys.argv = ['accel']; from accel.cli import main; main()"
    asked = {"_ACCEL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == found, done.stderr


def test_the_page_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "write it anew: python -m accel_ray.document"
