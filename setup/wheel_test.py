"""Build what is published, check it as an index would, install the wheel alone into an empty environment, and check
what a user would meet first."""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TWINE = "twine==7.0.0"

CHECK = """
import sys, time
began = time.perf_counter()
import accel
took_ms = (time.perf_counter() - began) * 1000
print(f"import accel: {took_ms:.0f} ms (goal: under 100 ms)")
heavy = {"langgraph", "langchain_core", "torch", "vllm", "transformers", "psycopg"} & set(sys.modules)
assert not heavy, f"import accel imports {heavy}"
try:
    accel.accelerate(42)
except TypeError as error:
    print(f"accelerate(42): TypeError: {error}")
else:
    raise AssertionError("accelerate(42) must raise TypeError")
import accel_local, accel_langgraph, accel_vllm, accel_transformers, accel_sentence_transformers, accel_pgvector
from accel.errors import AccelError
try:
    accel_local.engine(accel_vllm.VLLMConfig())
except AccelError as error:
    assert "pip install 'accelgraph[vllm]'" in str(error), error
    print(f"without its extra, vLLM: {error}")
else:
    raise AssertionError("vLLM cannot be here")
import pathlib, subprocess
command = subprocess.run([pathlib.Path(sys.executable).with_name("accel"), "--help"], capture_output=True, text=True)
assert command.returncode == 2 and "pip install 'accelgraph[cli]'" in command.stderr, command
print(f"without its extra, the command: {command.stderr.strip()}")
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # The wheel is built from what the source distribution holds.
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
        (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
        check_contents(wheel)
        check_source(source)
        # An environment of its own: it brings twenty packages that nothing else needs.
        run(environment(folder / "twine", TWINE), "-m", "twine", "check", "--strict", str(wheel), str(source))
        run(environment(folder / "venv", str(wheel)), "-c", CHECK, cwd=folder)
    print("wheel-test passed")
    return 0


def environment(folder: Path, *packages: str) -> str:
    """The Python of a new environment with these packages."""
    venv.EnvBuilder(with_pip=True).create(folder)
    python = str(folder / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def check_source(source: Path) -> None:
    names = {name.partition("/")[2] for name in tarfile.open(source).getnames()}
    missing = sorted({"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "accel/__init__.py"} - names)
    assert not missing, f"the source distribution lacks {missing}"


def check_contents(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    strange = sorted(top for top in tops if not top.startswith("accel"))
    tests = [name for name in names if "/tests/" in name or "conftest" in name]
    assert not strange, f"the wheel contains {strange}"
    assert not tests, f"the wheel contains tests: {tests}"
    missing = sorted({"accel", "accel_langgraph", "accel_local", "accel_vllm"} - tops)
    assert not missing, f"the wheel lacks {missing}"
    untyped = sorted(top for top in tops if "." not in top and f"{top}/py.typed" not in names)
    assert not untyped, f"type checkers would ignore {untyped}: py.typed is missing"
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names), "the wheel lacks its license"
    print(f"{wheel.name}: {len(names)} files in {', '.join(sorted(tops))}")


def run(*command: str, cwd: Path = ROOT) -> None:
    # Only the package index: what this machine has lying about must not be what makes the wheel installable.
    subprocess.run(command, check=True, cwd=cwd, env={**os.environ, "PIP_FIND_LINKS": ""})


if __name__ == "__main__":
    sys.exit(main())
