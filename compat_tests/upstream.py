"""LangGraph's own tests on accelerated graphs: `python -m compat_tests.upstream`.

Takes the source distributions of the installed versions from the package index, runs their tests unmodified, then in
three modes (`accel_langgraph.testing.plugin`): every graph that a test compiles plain, accelerated, forced.
Checkpointers and stores in memory and in SQLite (NO_DOCKER). Writes the table of `compat_tests/README.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
README = Path(__file__).parent / "README.md"
SUITES = ("langgraph", "langgraph-prebuilt")
BEGIN, END = "<!-- upstream: begin -->", "<!-- upstream: end -->"
TIMEOUT_S = 120
MOST = 40
"""Tests that are listed by name."""
console = Console(width=None if sys.stdout.isatty() else 120)


@dataclass
class Result:
    """A suite's outcomes: by mode and test, with differences from plain and counts."""

    suite: str
    version: str
    outcomes: dict[str, dict[str, str]] = field(default_factory=dict)
    differences: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def passed(self, mode: str) -> set[str]:
        return {test for test, outcome in self.outcomes.get(mode, {}).items() if outcome == "passed"}

    def lost(self, mode: str) -> list[str]:
        """Tests that pass unmodified and with the plugin alone, and not so."""
        varying = {test for test, outcome in self.outcomes[mode].items() if outcome == "varying"}
        return sorted((self.passed("unmodified") & self.passed("plain")) - self.passed(mode) - varying)

    @property
    def unequal(self) -> list[tuple[str, str]]:
        """Test and mode of logs that differ, of tests that pass plain."""
        return sorted(key for key in self.differences if key[0] in self.passed("plain"))


def source(suite: str, folder: Path) -> Path:
    """The source distribution of the installed version, unpacked."""
    name = f"{suite}-{version(suite)}"
    unpacked = folder / name.replace("-prebuilt", "_prebuilt")
    if not unpacked.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*command, "--dest", str(folder), f"{suite}=={version(suite)}"], check=True)
        (archive,) = folder.glob(f"{unpacked.name}.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return unpacked


def run(suite: str, folder: Path, wanted: list[str], processes: int) -> Result:
    place = source(suite, folder)
    result = Result(suite, version(suite))
    for name, options in (("unmodified", []), ("modes", ["--accel-differential", "--accel-witness"])):
        lines = folder / f"{suite}-{name}.jsonl"
        for old in folder.glob(f"{lines.name}*"):
            old.unlink()
        console.print(f"{suite} {result.version}: {name}")
        command = [sys.executable, "-m", "pytest", "tests", "-p", "accel_langgraph.testing.plugin", "-q", "--no-header"]
        command += ["-p", "compat_tests.collecting", "-p", "no:cacheprovider", "--timeout", str(TIMEOUT_S)]
        command += ["-n", str(processes), "--accel-outcomes", str(lines), *options, *wanted]
        environment = {**os.environ, "NO_DOCKER": "true", "LANGSMITH_TRACING": "false", "PYTHONPATH": str(ROOT)}
        with (folder / f"{suite}-{name}.log").open("w") as log:
            subprocess.run(command, cwd=place, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
        read(result, sorted(folder.glob(f"{lines.name}*")))
    return result


def read(result: Result, files: list[Path]) -> None:
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            test, mode = entry["test"], entry["mode"]
            result.outcomes.setdefault(mode, {})[test] = entry["outcome"]
            result.counts.setdefault(mode, Counter()).update(entry["counts"])
            if entry["differences"]:
                result.differences[test, mode] = entry["differences"]


def table(results: list[Result]) -> str:
    lines = [
        "| suite | tests | pass unmodified | pass accelerated | pass forced | graph calls compared | unequal | "
        "component calls, issued early, retired: accelerated | forced |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for result in results:
        unmodified = result.passed("unmodified")
        cells = [f"{result.suite} {result.version}", f"{len(result.outcomes['unmodified']):,}", f"{len(unmodified):,}"]
        for mode in ("accelerated", "forced"):
            varying = sum(outcome == "varying" for outcome in result.outcomes[mode].values())
            cells.append(f"{len(unmodified & result.passed(mode)):,}" + (f" ({varying} vary)" if varying else ""))
        cells += [f"{result.counts['plain']['calls']:,} x 2", f"{len(result.unequal)}"]
        for mode in ("accelerated", "forced"):
            counts = result.counts[mode]
            cells.append(", ".join(f"{counts[name]:,}" for name in ("demanded", "issued", "retired")))
        lines.append(f"| {' | '.join(cells)} |")
    for result in results:
        alone = sorted(result.passed("unmodified") - result.passed("plain"))
        if alone:
            lines += ["", f"Not judged, {result.suite}: fails with the plugin alone:", "", *(f"- `{t}`" for t in alone)]
        odd = [f"{test} ({mode})" for mode in ("accelerated", "forced") for test in result.lost(mode)]
        odd += [f"{test} ({mode}): unequal" for test, mode in result.unequal if f"{test} ({mode})" not in odd]
        if odd:
            more = [f"- and {len(odd) - MOST} more"] if len(odd) > MOST else []
            lines += ["", f"Not as unmodified, {result.suite}:", "", *(f"- `{name}`" for name in odd[:MOST]), *more]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m compat_tests.upstream", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: both")
    parser.add_argument("--folder", type=Path, default=ROOT / "bench-out" / "upstream", help="of sources and records")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", action="store_true", help="put the table into compat_tests/README.md")
    options, wanted = parser.parse_known_args()
    if shutil.which("git") is None:
        console.print("some of LangGraph's tests need git", style="yellow")
    results = [run(suite, options.folder.resolve(), wanted, options.processes) for suite in options.suite or SUITES]
    shown = table(results)
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    for result in results:
        for test, mode in result.unequal[:MOST]:
            found = result.differences[test, mode]
            console.print(f"--- {test} ({mode})", *found[:3], sep="\n", markup=False, highlight=False)
    if options.write:
        before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        README.write_text(f"{before}{BEGIN}\n{shown}\n{END}{after}", encoding="utf-8")
    return int(any(result.unequal or result.lost("accelerated") or result.lost("forced") for result in results))


if __name__ == "__main__":
    sys.exit(main())
