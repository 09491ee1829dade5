"""Every block of the README and of docs/ does what a reader would have it do; see `adapters.tests.documents`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import accel
from accel.graph.rules import NOT_WORTH, WASTE, Rule
from adapters.tests import document_shell, documents

TIME_S = 170
PAGES = documents.pages()
BLOCKS = [block for page in PAGES for block in documents.blocks(page)]
WITH_BLOCKS = sorted({block.page for block in BLOCKS if block.language != "text"})
WITH_ENGINES = sorted({block.page for block in BLOCKS if block.engines})


def run(page: str, folder: Path, *options: str) -> None:
    """In a process of its own: pages declare classes and switch modes."""
    roots = os.pathsep.join(str(documents.ROOT / name) for name in ("", "adapters", "backends"))
    done = subprocess.run(
        [sys.executable, "-m", "adapters.tests.documents", page, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": roots},
        capture_output=True,
        text=True,
        timeout=TIME_S,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.timeout(TIME_S + 10)
@pytest.mark.parametrize("page", WITH_BLOCKS)
def test_the_blocks_of_a_page_run_in_their_order(page: str, tmp_path: Path) -> None:
    run(page, tmp_path)


@pytest.mark.engines
@pytest.mark.timeout(TIME_S + 10)
@pytest.mark.parametrize("page", WITH_ENGINES)
def test_so_do_those_that_need_engines(page: str, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    run(page, tmp_path, "--engines")


@pytest.mark.parametrize("block", [pytest.param(block, id=block.where) for block in BLOCKS])
def test_every_block_says_what_it_is_in(block: documents.Block) -> None:
    assert block.language in documents.RUN, f"one of {', '.join(documents.RUN)}; output is text"
    assert not (block.engines and block.language != "python"), "of a shell's lines the command says whether it runs"


def test_the_reference_has_every_public_name() -> None:
    page = (documents.ROOT / "docs/api.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^::: accel\.(\w+)$", page, re.MULTILINE)) == set(accel.__all__)


def test_the_readme_leads_to_what_is_there() -> None:
    """Of all other pages `make docs` checks the links."""
    text = (documents.ROOT / "README.md").read_text(encoding="utf-8")
    links = set(re.findall(r"\]\(([^():#]+)\)", text))
    assert len(links) > 20
    assert [link for link in links if not (documents.ROOT / link).exists()] == []


@pytest.mark.parametrize("rule", [NOT_WORTH, WASTE], ids=lambda rule: rule.name)
def test_what_to_do_about_a_rule_is_found_by_its_words(rule: Rule) -> None:
    page = (documents.ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    assert f'| "{re.sub(r"{.*?}", "...", rule.sentence)}" |' in page


@pytest.mark.parametrize("shown", ["docs/how.md", "docs/pictures/research.svg"])
def test_what_is_shown_of_the_example_is_of_its_lines(shown: str) -> None:
    shown = (documents.ROOT / shown).read_text(encoding="utf-8")
    lines = (documents.ROOT / "examples/research.py").read_text(encoding="utf-8").splitlines()
    called = {int(number) for number in re.findall(r"research\.py:(\d+)", shown)}
    calls = [number for number, line in enumerate(lines, 1) if re.search(r"await (llm|store)\.", line)]
    assert called == set(calls[:4]), "see: accel explain, and accel timeline, examples/research.py:graph"


def test_what_pages_are_given_is_for_pages_that_are_there() -> None:
    assert documents.GIVEN.keys() <= set(WITH_BLOCKS)


@pytest.mark.parametrize(
    "line, why",
    [
        ("accel chekc app.py:graph", "chekc"),
        ("accel check app.py:graph --inputt x", "--inputt"),
        ("python -m bench run --engins cpu", "no option --engins"),
        ("python -m bench prophecy", "prophecy"),
        ("python -m nothing.at.all", "nothing"),
        ("python examples/nothing.py", "no program"),
        ("make nothing", "no target nothing"),
        ("pip install 'accelgraph[lamgraph]'", "no extra lamgraph"),
        ("ACCEL_NOTHING=1 make test", "nothing reads"),
        ("curl example.org", "nobody here knows"),
    ],
)
def test_a_line_that_would_not_work_is_found(line: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    ((_, words),) = document_shell.commands(line)
    with pytest.raises((Exception, SystemExit)) as caught:
        document_shell.obey(words)
    assert why in f"{caught.value}{capsys.readouterr().err}"
