"""The command `accel`: on a Ray that runs, and with one that it starts and keeps itself."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import pytest

from backends.tests.leftovers import Program, marked, stay
from backends.tests.ray_cluster.conftest import end_actors, profile_file

for package in ("yaml", "rich"):
    pytest.importorskip(package, reason="the extra ray is not installed")
typer_testing = pytest.importorskip("typer.testing", reason="the extra ray is not installed")
app = import_module("accel.cli").app
runner = typer_testing.CliRunner()


def accel(*arguments: str) -> Any:
    return runner.invoke(app, list(arguments))


def backend_file(folder: Path, engines: str) -> str:
    file = folder / "backend.yaml"
    file.write_text(f"engines:\n{engines}", encoding="utf-8")
    return str(file)


@pytest.fixture
def sims(tmp_path: Path, fast_profile: str) -> str:
    return backend_file(
        tmp_path,
        f"  llm: {{kind: sim_llm, model: {fast_profile}, replicas: 2, num_gpus: 0.5}}\n"
        f"  records: {{kind: sim_store, model: {fast_profile}}}\n",
    )


# --- on a Ray that runs


@pytest.mark.engines
def test_up_status_and_down_on_a_ray_that_runs(namespace: str, sims: str) -> None:
    from accel_ray.wire import version

    release, protocol = version()
    place = ("--address", "auto", "--namespace", namespace)
    up = accel("up", sims, *place)
    assert up.exit_code == 0, up.output
    assert f"Backend.ray('auto', namespace='{namespace}').use()" in " ".join(up.output.split())
    for word in ("llm:0", "llm:1", "records:0", "ALIVE", f"{release} ({protocol})"):
        assert word in up.output
    again = accel("up", sims, *place)
    assert again.exit_code == 1 and "it has llm:0, llm:1, records:0" in again.stderr and "accel down" in again.stderr
    status = accel("status", *place, "--json")
    assert status.exit_code == 0
    (backend,) = json.loads(status.stdout)
    assert (backend["namespace"], backend["well"], backend["ends_its_ray"]) == (namespace, True, False)
    found = {f"{one['engine']}:{one['replica']}": one for one in backend["actors"]}
    assert sorted(found) == ["llm:0", "llm:1", "records:0"]
    assert all(one["restarts"] == 0 and one["requests"] == 0 and one["clients"] == 0 for one in found.values())
    actors = [psutil.Process(one["pid"]) for one in found.values()]
    down = accel("down", *place)
    assert down.exit_code == 0, down.output
    assert down.stdout == f"{namespace}: ended 2 engines (llm, records), 3 actors with 3 processes\n"
    assert not stay(actors, within_s=0), "it waits for them"
    status, down = accel("status", *place), accel("down", *place)
    assert (status.exit_code, down.exit_code) == (1, 0)
    assert f"nothing is up in namespace '{namespace}'" in status.stdout and "nothing was up" in down.stdout


@pytest.mark.engines
def test_several_namespaces_on_one_ray(namespace: str, sims: str) -> None:
    from accel.backend import Backend, BackendError

    names = [f"{namespace}-a", f"{namespace}-b"]
    try:
        for name in names:
            assert accel("up", sims, "--address", "auto", "--namespace", name).exit_code == 0
        seen = {one["namespace"] for one in json.loads(accel("status", "--json").stdout)}
        assert seen >= set(names)
        down = accel("down", "--json")
        assert down.exit_code == 2 and all(repr(name) in down.stderr for name in names) and down.stdout == ""
        with pytest.raises(BackendError) as caught, Backend.ray("auto"):
            pass
        assert all(repr(name) in caught.value.what for name in names)
        assert "Backend.ray('auto', namespace='" in caught.value.remedy
        (ended,) = json.loads(accel("down", "--namespace", names[0], "--json").stdout)
        assert (ended["namespace"], ended["engines"], ended["left"]) == (names[0], ["llm", "records"], [])
        assert names[0] not in accel("status").stdout and names[1] in accel("status").stdout
    finally:
        for name in names:
            end_actors(name)


@pytest.mark.engines
def test_an_engine_that_does_not_start_takes_the_others_with_it(
    namespace: str, tmp_path: Path, fast_profile: str
) -> None:
    bad = "{kind: sentence_transformers, model: no-such-model}"
    file = backend_file(tmp_path, f"  good: {{kind: sim_llm, model: {fast_profile}}}\n  bad: {bad}\n")
    up = accel("up", file, "--address", "auto", "--namespace", namespace)
    assert (
        up.exit_code == 1
        and up.stdout == ""
        and "Engine 'bad' did not start. Model 'no-such-model' is neither" in up.stderr
    )
    assert "Remedy: give the folder" in up.stderr
    assert "nothing is up" in accel("status", "--address", "auto", "--namespace", namespace).output


@pytest.mark.engines
def test_what_does_not_fit_is_not_started(namespace: str, tmp_path: Path, fast_profile: str) -> None:
    file = backend_file(tmp_path, f"  big: {{kind: sim_llm, model: {fast_profile}, num_gpus: 1, replicas: 3}}\n")
    up = accel("up", file, "--address", "auto", "--namespace", namespace)
    assert up.exit_code == 1
    assert "Engine 'big' doesn't fit: each of its 3 replicas wants 1 GPU and 0 CPU; 2 of 2 GPUs" in up.stderr


@pytest.mark.engines
def test_the_conformance_table(ray_up: None) -> None:
    engines = ("--engine", "sim_embedding", "--engine", "sim_store")
    done = accel("conformance", *engines)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "engine         local   ray",
        "sim_embedding  5 of 5  5 of 5",
        "sim_store      7 of 7  7 of 7",
    ]
    cells = json.loads(accel("conformance", *engines, "--host", "local", "--json").stdout)
    assert [(cell["engine"], cell["host"], cell["passed"], cell["failures"]) for cell in cells] == [
        ("sim_embedding", "local", 5, []),
        ("sim_store", "local", 7, []),
    ]


# --- messages, without a Ray


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("up", "nowhere.yaml"), "There is no file nowhere.yaml."),
        (("conformance", "--engine", "sim_lm"), "There is no engine 'sim_lm'."),
        (("conformance", "--host", "rai"), "There is no host 'rai'."),
    ],
)
def test_messages(arguments: tuple[str, ...], message: str) -> None:
    done = accel(*arguments)
    assert done.exit_code == 2 and message in done.stderr and "Remedy: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_field_names_the_nearest(tmp_path: Path) -> None:
    done = accel("up", backend_file(tmp_path, "  llm: {kind: vllm, num_gpu: 1}\n"))
    assert done.exit_code == 2 and "backend.yaml:2: engines.llm.num_gpu is no field." in done.stderr
    assert "Did you mean 'num_gpus'?" in done.stderr


# --- with a Ray of its own

ATTACHES = """
import sys
import accel_local
from accel.backend import Backend
from accel.engine import Sampling
from accel.errors import EngineClosed
from backends.tests.ray_cluster.conftest import sim_llm

with Backend.ray("auto", namespace=sys.argv[2] if len(sys.argv) > 2 else None):
    llm = accel_local.engine(sim_llm(sys.argv[1]))
    while sys.stdin.readline():
        try:
            deltas = accel_local.stream(llm.generate("The sea is", Sampling(max_tokens=8, ignore_end=True)))
            print(repr("".join(delta.text for delta in deltas)), flush=True)
        except EngineClosed as error:
            print(error.what, flush=True)
"""


def ask(program: Program) -> str:
    """One answer of a program that attaches."""
    assert program.process.stdin is not None and program.process.stdout is not None
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    return program.process.stdout.readline()


class Shell:
    """Commands and programs of one user, each a process of its own, as they are in real life."""

    def __init__(self, stack: ExitStack, cache: Path) -> None:
        self._stack = stack
        self._environment = {"ACCEL_CACHE": str(cache)}
        self._first: Program | None = None

    def accel(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = self.start("-m", "accel.cli", *arguments)
        out, _ = program.process.communicate(timeout=120)
        return subprocess.CompletedProcess(arguments, program.process.returncode, out)

    def start(self, *command: str) -> Program:
        environment = dict(self._environment)
        program = self._stack.enter_context(marked([sys.executable, *command], environment))
        if self._first is None:
            self._first = program
        return program

    def nothing_left(self) -> None:
        assert self._first is not None
        self._first.gone()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with ExitStack() as stack:
        yield Shell(stack, tmp_path / "cache")


def actors_up(shell: Shell) -> list[Any]:
    """Of the one backend there is."""
    (backend,) = json.loads(shell.accel("status", "--json").stdout)
    return list(backend["actors"])


@contextmanager
def backend_up(shell: Shell, folder: Path) -> Iterator[tuple[str, str]]:
    """Its namespace, and its model's profile."""
    profile = profile_file(folder / "profile.json", token_s=2e-4)
    file = folder / "backend.yaml"
    model = f"{{kind: sim_llm, model: {profile}, options: {{max_model_len: 2048}}}}"
    file.write_text(f"namespace: kept\nlocal: {{num_cpus: 1, object_store_mib: 80}}\nengines: {{llm: {model}}}\n")
    up = shell.accel("up", str(file))
    assert up.returncode == 0 and "Backend.ray('auto', namespace='kept')" in " ".join(up.stdout.split())
    try:
        yield "kept", profile
    finally:
        shell.accel("down", "--namespace", "kept")


@pytest.mark.engines
@pytest.mark.timeout(360)
def test_a_backend_outlives_the_command_and_ends_with_down(shell: Shell, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    with backend_up(shell, tmp_path) as (namespace, profile):
        program = shell.start("-c", ATTACHES, profile)  # which says no namespace: it is the one there is
        text = ask(program)
        assert len(text) > 4
        (actor,) = actors_up(shell)
        assert (actor["engine"], actor["state"], actor["restarts"], actor["clients"]) == ("llm", "ALIVE", 0, 1)
        os.kill(actor["pid"], signal.SIGKILL)
        assert ask(program) == text, "it came back"
        (actor,) = actors_up(shell)
        assert (actor["state"], actor["restarts"]) == ("ALIVE", 1)
        program.process.communicate(timeout=60)
        assert program.process.returncode == 0
        (ended,) = json.loads(shell.accel("down", "--json").stdout)
        assert (ended["namespace"], ended["actors"], ended["left"]) == (namespace, ["llm:0"], [])
        assert ended["engine_processes"] >= 1 and ended["ray_processes"] >= 3, "keeper, raylet and gcs, at least"
        shell.nothing_left()
        assert list((tmp_path / "cache" / "ray").glob("*.json")) == []
        assert "ALIVE" not in shell.accel("status", "--namespace", namespace).stdout


@pytest.mark.engines
@pytest.mark.timeout(360)
def test_a_keeper_that_is_killed_takes_everything_with_it(shell: Shell, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    with backend_up(shell, tmp_path) as (namespace, profile):
        (file,) = (tmp_path / "cache" / "ray").glob("*.json")
        kept = json.loads(file.read_text())
        program = shell.start("-c", ATTACHES, profile, namespace)
        assert len(ask(program)) > 4
        os.kill(kept["pid"], signal.SIGKILL)
        shell.nothing_left()
        gone = f"The Ray at {kept['address']} is gone, and the backend in namespace 'kept' with it.\n"
        assert [ask(program), ask(program)] == [gone, gone], "an attached program gets an error, and lives on"
        program.process.communicate(timeout=60)
        assert program.process.returncode == 0
        assert "ALIVE" not in shell.accel("status", "--namespace", namespace).stdout
        assert not file.exists() and not Path(kept["folder"]).exists()
