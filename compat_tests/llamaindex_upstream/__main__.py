"""LlamaIndex core's own tests on accelerated objects.

    ACCEL_LLAMAINDEX=FOLDER python -m compat_tests.llamaindex_upstream

No package has these tests: FOLDER is a checkout of its repository, best of about the installed version. They are run
unmodified, then on accelerated objects (`plugin`). `--write` puts the table into `compat_tests/README.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from compat_tests.upstream import README, ROOT, TIMEOUT_S, console

BEGIN, END = "<!-- llamaindex: begin -->", "<!-- llamaindex: end -->"
PLUGIN = "compat_tests.llamaindex_upstream.plugin"


def run(tests: Path, folder: Path, wanted: list[str], accelerated: bool) -> tuple[dict[str, bool], dict[str, int]]:
    """By test, whether it passed; and what was counted."""
    name = f"llamaindex-{'accelerated' if accelerated else 'unmodified'}"
    lines = folder / f"{name}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    lines.unlink(missing_ok=True)
    console.print(name)
    command = [sys.executable, "-m", "pytest", *(wanted or ["tests"]), "-q", "--no-header", "--tb", "native"]
    command += ["-p", PLUGIN, "--accel-results", str(lines), *(["--accel-llamaindex"] if accelerated else [])]
    command += ["-p", "no:cacheprovider", "--timeout", str(TIMEOUT_S), "-W", "ignore"]
    command += ["--continue-on-collection-errors"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{tests.parent}"}
    with (folder / f"{name}.log").open("w") as log:
        subprocess.run(command, cwd=tests.parent, env=environment, stdout=log, stderr=log, check=False)
    passed: dict[str, bool] = {}
    counts: dict[str, int] = {}
    for line in map(json.loads, lines.read_text(encoding="utf-8").splitlines()):
        if "test" in line:
            passed[line["test"]] = passed.get(line["test"], True) and line["passed"]
        counts = line.get("counts", counts)
    return passed, counts


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m compat_tests.llamaindex_upstream", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "bench-out" / "upstream", help="of records")
    parser.add_argument("--write", action="store_true", help="put the table into compat_tests/README.md")
    options, wanted = parser.parse_known_args()
    checkout = os.environ.get("ACCEL_LLAMAINDEX", "")
    tests = Path(checkout).resolve() / "llama-index-core" / "tests"
    if not checkout or not tests.is_dir():
        console.print("ACCEL_LLAMAINDEX has to name a checkout with llama-index-core/tests.", style="red")
        return 2
    (plain, _), (fast, counts) = (run(tests, options.folder.resolve(), wanted, on) for on in (False, True))
    lost = sorted(test for test, passed in plain.items() if passed and not fast.get(test))
    row: tuple[Any, ...] = (
        f"llama-index-core {version('llama-index-core')}", len(plain), sum(plain.values()),
        sum(plain.values()) - len(lost), *counts.values(),
    )  # fmt: skip
    shown = "\n".join([
        "| suite | tests | pass unmodified | of these accelerated | objects | their calls | early | retired |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else cell for cell in row)} |",
        *(f"\n- not as unmodified: `{test}`" for test in lost),
    ])  # fmt: skip
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    if options.write:
        before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        README.write_text(f"{before}{BEGIN}\n{shown}\n{END}{after}", encoding="utf-8")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
