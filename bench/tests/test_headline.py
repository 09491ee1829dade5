"""The table of the README is that of the pages of figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import headline


def test_the_readme_has_the_figures_of_the_pages() -> None:
    text = headline.README.read_text(encoding="utf-8")
    assert text == headline.readme(text), "run: python -m bench headline --write"


def test_programs_are_counted_by_section(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    head = "| program | steady | limit | advised |\n| --- | --- | --- | --- |\n"
    page = (
        f"# Programs\n\n## LangGraph\n\n{head}| one | 0.97x (0.9 to 1.1) | 1.00x | nothing |\n"
        f"| two | 1.05x (1.0 to 1.2) | 1.40x | 1.30x (1.2 to 1.4) |\n\n## LlamaIndex\n\n"
        f"{head}| three | 1.20x | 1.20x | - |\n\n"
        "## What holds each back\n\n| why | calls |\n| --- | --- |\n| egress | 4 |\n"
    )
    (tmp_path / "PAGE.md").write_text(page, encoding="utf-8")
    monkeypatch.setattr(headline, "BENCH", tmp_path)
    one, two = headline.programs("PAGE.md", "LangGraph")
    assert (one.steady, one.advised, two.steady, two.advised, two.limit) == (0.97, 0.97, 1.05, 1.30, 1.40)
    assert len(headline.programs("PAGE.md")) == 3
    with pytest.raises(AssertionError, match="no table"):
        headline.programs("PAGE.md", "Elsewhere")
    assert headline.line("x", [1.0, 1.1, 2.0], [1.5]) == ("x", "1.10x", "1.00x to 2.00x", "1.50x", "2 of 3")
