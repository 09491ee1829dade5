"""Every fenced block of the pages for users: what it is, what it is given, and how it is run.

`python -m adapters.tests.documents PAGE` runs the blocks of a page in order, in the folder that it is started in; with
--engines those that need engines, too. `--write FOLDER` writes the Python of every page as a module, which `make lint`
has mypy and pyright read.

A block of Python runs in its page's namespace. Of a shell's, `accel` runs as it stands, and of what takes long the
names and options must exist (`adapters.tests.document_shell`). An HTML comment in the line before a block,
`<!-- engines: why -->`, says that it needs engines. No block is left out: one in an unknown language is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
USUAL = ("fast", "graph", "inputs")
GIVEN: Mapping[str, tuple[str, ...]] = {
    "README.md": ("graph", "index"),
    "docs/batch.md": ("MyChatModel", "fast", "index", "inputs"),
    "docs/deployment.md": ("graph", "inputs", "tenant"),
    "docs/engines.md": ("key", "search"),
    "docs/how.md": ("llm", "store"),
    "docs/langgraph.md": ("graph", "llm"),
    "docs/llamaindex.md": ("embed_model", "index", "nodes"),
    "docs/services.md": ("MyChatModel", "MyClient", "graph", "llm", "slow_score", "store", "tenant"),
}
"""By page, the names of `document_parts` and `document_index` that its reader has; of other pages, the usual ones."""
OF_INDEX = ("embed_model", "index", "nodes")
INPUTS = ({"question": "Why do tides differ?"}, {"question": "Who depends on glaciers?"})
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<said>.*)$")
_MARK = re.compile(r"<!-- engines: .+ -->")


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    line: int
    """Of its first line of text."""
    language: str
    text: str
    engines: bool = False

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


class Wrong(Exception):
    """A block that can't be what it says."""


def pages() -> list[str]:
    """Those for users, by their paths; figures in bench/ are written by commands, as they stand there."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")))


def blocks(page: str) -> list[Block]:
    """In their order. Raises Wrong for a block without an end."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    found: list[Block] = []
    opened: re.Match[str] | None = None
    begin = 0
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if opened is None and fence is not None:
            opened, begin = fence, number
        elif opened is not None and line.strip() == opened["fence"]:
            before = lines[begin - 2] if begin > 1 else ""
            inside = [each.removeprefix(opened["indent"]) for each in lines[begin : number - 1]]
            text, marked = "\n".join(inside) + "\n", _MARK.fullmatch(before.strip()) is not None
            found.append(Block(page, begin + 1, opened["said"].strip(), text, marked))
            opened = None
    if opened is not None:
        raise Wrong(f"{page}:{begin}: this block has no end")
    return found


# --- modules, for type checkers


def module_of(page: str) -> str:
    """A page's Python, each block on the lines that it has in the page."""
    code = [block for block in blocks(page) if block.language == "python"]
    lines = ["; ".join(f"from {home_of(name)} import {name}" for name in GIVEN.get(page, USUAL))]
    for block in code:
        lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n" if code else ""


def write(folder: Path) -> list[Path]:
    """The modules of all pages that have Python."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.py"):
        old.unlink()
    made = []
    for page in pages():
        if text := module_of(page):
            path = folder / (re.sub(r"\W", "_", page.removesuffix(".md").lower()) + ".py")
            path.write_text(text, encoding="utf-8")
            made.append(path)
    return made


# --- running them


def run(page: str, engines: bool = False) -> None:
    """All blocks of a page, in the folder of the process. Raises whatever a block does, and Wrong."""
    module = sys.modules["page"] = ModuleType("page")
    namespace = vars(module)
    found = blocks(page)
    if any(block.language == "python" for block in found):
        given = GIVEN.get(page, USUAL)
        namespace.update({name: getattr(import_module(home_of(name)), name) for name in given})
    lay_out("index" if "index" in namespace else "graph")
    for block in found:
        if block.language not in RUN:
            raise Wrong(f"{block.where}: {block.language!r} is none of {', '.join(RUN)}; output is text")
        try:
            if block.engines and not engines:
                compile(block.text, block.where, "exec", dont_inherit=True)
            else:
                RUN[block.language](block, namespace)
        except Exception as error:
            error.add_note(f"in {block.where}")
            raise


def home_of(name: str) -> str:
    return f"adapters.tests.document_{'index' if name in OF_INDEX else 'parts'}"


def lay_out(program: str) -> None:
    """What pages name: a user's app.py with this program, its inputs and its tests."""
    Path("app.py").write_text(f"from {home_of(program)} import {program} as {program}\n")
    Path("inputs.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in INPUTS))
    Path("docs/pictures").mkdir(parents=True)
    for name in ("examples", "setup", "pyproject.toml"):
        Path(name).symlink_to(ROOT / name)
    Path("your_tests").mkdir()
    Path("your_tests/test_mine.py").write_text(
        f"from {home_of('graph')} import graph\n\n\ndef test_it() -> None:\n"
        "    assert graph.builder.compile().invoke({'question': 'Why do tides differ?'})['answer']\n"
    )


def _python(block: Block, namespace: dict[str, Any]) -> None:
    had = set(namespace)
    text = "\n" * (block.line - 1) + block.text
    exec(compile(text, str(ROOT / block.page), "exec", dont_inherit=True), namespace)
    for name in namespace.keys() - had:
        if name.startswith("test_"):
            import accel

            namespace[name](accel.check)  # which the fixture of that name is, and raises where it is not equal


def _shell(block: Block, namespace: dict[str, Any]) -> None:
    from adapters.tests.document_shell import commands, obey

    for line, words in commands(block.text):
        try:
            obey(words)
        except Exception as error:
            error.add_note(line)
            raise


def _toml(block: Block, namespace: dict[str, Any]) -> None:
    """Options, as `--config` takes them."""
    from accel.commands.config import accelerate_options

    tomllib.loads(block.text)
    Path("accel.toml").write_text(block.text, encoding="utf-8")
    accelerate_options("accel.toml", {})


def _yaml(block: Block, namespace: dict[str, Any]) -> None:
    """A backend, or what else somebody reads."""
    import yaml

    content = yaml.safe_load(block.text)
    if isinstance(content, dict) and "engines" in content:
        from accel_ray.config import read

        read(content)


def _json(block: Block, namespace: dict[str, Any]) -> None:
    json.loads(block.text)


def _drawing(block: Block, namespace: dict[str, Any]) -> None:
    """As far as a drawing by hand can be looked at: every line is an arrow."""
    first, *lines = block.text.strip().splitlines()
    if not first.startswith("flowchart") or not all("-->" in line for line in lines):
        raise Wrong(f"{block.where}: this is no flowchart")


RUN: Mapping[str, Callable[[Block, dict[str, Any]], None]] = {
    "python": _python,
    "sh": _shell,
    "toml": _toml,
    "yaml": _yaml,
    "json": _json,
    "mermaid": _drawing,
    "text": lambda block, namespace: None,
}
"""By language. "text" is output, and what else nobody runs."""


@contextmanager
def backend() -> Iterator[None]:
    """A Ray that runs."""
    import ray

    from accel_ray.cluster import start_own
    from accel_ray.config import LocalRay

    guard = start_own(LocalRay(num_cpus=4, object_store_mib=80))
    try:
        yield
    finally:
        ray.shutdown()
        guard.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("page", nargs="?", choices=pages(), metavar="PAGE")
    parser.add_argument("--engines", action="store_true", help="also the blocks that need them")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the pages' Python as modules")
    options = parser.parse_args()
    if options.write is not None:
        write(options.write)
    if options.page is not None:
        sys.path.insert(0, os.getcwd())
        with backend() if options.engines else nullcontext():
            run(options.page, options.engines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
