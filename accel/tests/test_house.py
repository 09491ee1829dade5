"""The house: packages whose imports point down, files that a reader can hold, one picture that is true."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import accel

ROOT = Path(accel.__file__).parent
PICTURE = ROOT.parent / "ARCHITECTURE.md"
MOST_LINES = 400

FLOORS = "errors frameworks process text engine graph trace parts learn run reports insight api commands".split()
"""From the ground up; `cli` and `backend` stand beside."""

Imports = dict[str, set[str]]


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] != "tests":
            found[".".join(("accel", *parts)).removesuffix(".__init__")] = path
    return found


def imported(name: str, path: Path, known: set[str]) -> Iterator[str]:
    """The core's modules that a module imports, wherever it does: at its head, for types alone, or in a function."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        if not isinstance(node, ast.ImportFrom):
            continue
        above = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            if inner in known or base in known:
                yield inner if inner in known else base


def imports() -> Imports:
    known = modules()
    return {name: set(imported(name, path, set(known))) - {name} for name, path in known.items()}


def floor_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def between_floors() -> Imports:
    found: Imports = {}
    for name, targets in imports().items():
        here = floor_of(name)
        found.setdefault(here, set()).update(floor_of(target) for target in targets)
    return {name: targets - {name, "accel"} for name, targets in found.items() if name != "accel"}


def room_of(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:3] if len(parts) > 3 else parts)


def reached(graph: Imports, start: str) -> set[str]:
    seen, coming = set[str](), list(graph[start])
    while coming:
        at = coming.pop()
        if at not in seen:
            seen.add(at)
            coming += graph[at]
    return seen


def circles(graph: Imports) -> list[str]:
    """The modules that import themselves by way of others."""
    return sorted(name for name in graph if name in reached(graph, name))


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles(imports()) == []


def test_no_room_imports_itself_by_way_of_others() -> None:
    """Rooms are the packages of a floor; a module beside them stands for itself."""
    rooms: Imports = {}
    for name, targets in imports().items():
        rooms.setdefault(room_of(name), set()).update(map(room_of, targets))
    assert circles({room: targets - {room} for room, targets in rooms.items()}) == []


def test_a_circle_would_be_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == ["a", "b", "c"]


def test_arrows_point_down() -> None:
    up = [
        f"{here} imports {there}"
        for here, targets in between_floors().items()
        for there in targets
        if here in FLOORS and FLOORS.index(there) >= FLOORS.index(here)
    ]
    assert up == []


def test_the_picture_shows_the_imports() -> None:
    """Its arrows are those that no longer way makes needless."""
    graph = between_floors()
    needed = {
        (here, there)
        for here, targets in graph.items()
        for there in targets
        if not any(there in reached(graph, other) for other in targets - {there})
    }
    drawn = PICTURE.read_text(encoding="utf-8").split("```mermaid")[1].split("```")[0]
    chains = [re.findall(r"\w+", line) for line in drawn.splitlines() if "-->" in line]
    assert {arrow for chain in chains for arrow in pairwise(chain)} == needed


def test_the_core_names_no_framework() -> None:
    """Neither in an import nor in a text that runs; the table of listed classes is data about their packages."""
    named = []
    for name, path in modules().items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in said else None
            if isinstance(text, str) and re.search(r"lang(graph|chain)|llama_?index|LlamaIndex", text):
                named.append(f"{name}: {text!r}")
    assert [each for each in named if not each.startswith("accel.parts.listed.classes")] == []


def test_files_can_be_held() -> None:
    long = {name: count for name, path in modules().items() if (count := path.read_text().count("\n")) > MOST_LINES}
    assert long == {}


def test_every_module_says_what_it_is() -> None:
    silent = [
        name
        for name, path in modules().items()
        if (text := path.read_text(encoding="utf-8")) and not ast.get_docstring(ast.parse(text))
    ]
    assert silent == []


def code_lines(path: Path) -> int:
    """Without blank lines, comments, docstrings and imports."""
    source = path.read_text(encoding="utf-8")
    kept = {n for n, line in enumerate(source.splitlines(), 1) if line.strip() and not line.strip().startswith("#")}
    for node in ast.walk(ast.parse(source)):
        said = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if said or isinstance(node, ast.Import | ast.ImportFrom):
            kept -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(kept)


def test_the_page_says_how_large_the_floors_are() -> None:
    page = (ROOT.parent / "docs" / "inside.md").read_text(encoding="utf-8")
    told = {floor: int(code.replace(",", "")) for floor, code in re.findall(r"\| `(\w+)` \| \d+ \| ([\d,]+) \|", page)}
    found: dict[str, int] = {}
    for path in modules().values():
        parts = path.relative_to(ROOT).parts
        floor = parts[0] if len(parts) > 1 else "api"
        found[floor] = found.get(floor, 0) + code_lines(path)
    assert told.keys() == found.keys()
    assert {floor: code for floor, code in found.items() if abs(code - told[floor]) > max(100, code // 10)} == {}
