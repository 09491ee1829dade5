"""docs/tour.md: its commands are those that write it, and do what it says."""

from __future__ import annotations

import asyncio
import gc
import re
import shlex
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("typer")

from typer.testing import CliRunner

from accel.cli import app
from compat_tests.server.serving import serving
from compat_tests.server.tour_page import HEAD, HERE, PAGE, PARTS, Part

pytestmark = pytest.mark.filterwarnings("ignore")  # of packages about themselves


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(scale=0.02) as (address, _):
        yield f"{address}/v1"
    with warnings.catch_warnings():  # what the frameworks leave open says so when it is collected
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture
def loop() -> Iterator[None]:
    """That of this thread: LlamaIndex would make one, and never close it."""
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    yield
    asyncio.set_event_loop(None)
    made.close()


@pytest.fixture
def folder(server: str, loop: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader is, with two inputs for each program, and the models elsewhere than local.env says."""
    here = Path(shutil.copytree(HERE, tmp_path / "tour"))
    for inputs in here.glob("*.jsonl"):
        inputs.write_text("".join(inputs.read_text(encoding="utf-8").splitlines(keepends=True)[:2]), encoding="utf-8")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(name, server)
    monkeypatch.setenv("OPENAI_API_KEY", "local")
    return here


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_command_of_the_page_ends_well(part: Part, folder: Path) -> None:
    said = {}
    for name, command in part.commands().items():
        result = CliRunner().invoke(app, [*shlex.split(command)[1:], "--rounds", "1" if name == "bench" else "2"])
        assert result.exit_code == 0, f"{command}\n{result.output}\n{result.exception}"
        said[name] = result.output
    assert ": equal in " in said["check"]
    assert "What waits for what" in said["explain"]
    assert (folder / f"{part.name}.svg").stat().st_size > 0


def test_the_page_is_what_the_command_writes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(HEAD), "see: python -m compat_tests.server.tour_page"
    shown = re.findall(r"^\$ (.+)$", page, re.MULTILINE)
    assert shown == [command for part in PARTS for command in part.commands().values()]


def test_the_page_names_no_machine() -> None:
    assert re.findall(r"/tmp/|/home/|/root/|site-packages|127\.0\.0\.1", PAGE.read_text(encoding="utf-8")) == []


def test_lines_that_the_page_names_are_calls() -> None:
    for name in ("rag", "agent"):
        lines = (HERE / f"{name}.py").read_text(encoding="utf-8").splitlines()
        for number in set(re.findall(rf"\b{name}\.py:(\d+)", PAGE.read_text(encoding="utf-8"))):
            assert re.search(r"\.(invoke|similarity_search)\(", lines[int(number) - 1]), f"{name}.py:{number}"
