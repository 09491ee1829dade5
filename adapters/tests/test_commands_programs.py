"""Programs by the names that shells give them, their inputs and options; and `accel check` itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accel.commands.programs import opened, options, program_of
from accel.errors import ConfigurationError
from accel.run.settings import Budget, Cap

APP = """
import os
import signal
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace

from adapters.tests.checked_programs import awaited, builder, graph, restless, wrong

NAME = os.environ.get("CHECKED_NAME", "nobody")
nested = SimpleNamespace(deep=SimpleNamespace(graph=graph))
log = []

def make():
    return graph

def make_named(name="x", *more, **rest):
    return graph

def needs(model):
    return graph

def talks():
    print("a word of the program's own")
    return graph

@contextmanager
def entered():
    log.append("entered")
    yield graph
    log.append("left")

@asynccontextmanager
async def aentered():
    log.append("entered")
    yield graph
    log.append("left")
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The path of a user's file, in the folder where the user is."""
    name = f"checked_app_{abs(hash(tmp_path)):x}"
    (tmp_path / f"{name}.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield f"{name}.py"
    sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "named", ["graph", "nested.deep.graph", "make", "make_named", "builder", "entered", "aentered"]
)
def test_a_program_is_found_by_its_name(app: str, named: str) -> None:
    with opened(f"{app}:{named}") as program:
        assert not program.awaited
        result = program.run(program.obj, {"question": "x"})
        assert result["three"] == "<Join <One: x>, <Two: x>>"
        assert program.run(program.accelerated(), {"question": "x"}) == result
    if "entered" in named:
        assert sys.modules[app.removesuffix(".py")].log == ["entered", "left"]  # type: ignore[attr-defined]


def test_modules_are_found_by_their_names_too(app: str) -> None:
    with opened(f"{app.removesuffix('.py')}:graph") as by_module, opened(f"./{app}:graph") as by_file:
        assert by_module.obj is by_file.obj


def test_a_file_of_a_package_may_import_from_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "checked_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("from adapters.tests.checked_programs import graph\n")
    (package / "main.py").write_text("from .parts import graph\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    with opened(f"{package}/main.py:graph") as program:
        assert program.ways == ("invoke", "stream")


def test_a_file_may_have_the_name_of_a_module_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("from adapters.tests.checked_programs import graph\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    with opened(f"{tmp_path}/json.py:graph"):
        assert sys.modules["json"] is json


def test_coroutines_of_a_program_are_awaited_on_one_loop(app: str) -> None:
    with opened(f"{app}:awaited") as program:
        assert program.awaited
        assert program.run(program.obj, {"question": "x"})["one"].startswith("<One: x>")


def test_an_env_file_is_read_before_the_program(app: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "CHECKED_NAME", "")
    monkeypatch.delitem(os.environ, "CHECKED_NAME")
    (tmp_path / ".env").write_text('CHECKED_NAME="ada"\n')
    with opened(f"{app}:graph", env_file=".env"):
        assert sys.modules[app.removesuffix(".py")].NAME == "ada"  # type: ignore[attr-defined]
    with pytest.raises(ConfigurationError, match=r"no file other\.env"), opened(f"{app}:graph", env_file="other.env"):
        pass


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nowhere.py:graph", "There is no file nowhere.py"),
        ("no.such.module:graph", "There is no module"),
        ("APP", "names no object.*APP:graph"),
        ("APP:grph", "no 'grph'.*APP:graph"),
        ("APP:NAME", "an object of str.*compiled LangGraph graph"),
        ("APP:needs", "takes model.*without required arguments"),
        ("broken.py:graph", r"can't be imported \(broken.py, line 2\): ZeroDivisionError"),
        ("lacking.py:graph", "No module named 'not_installed_here'"),
        ("ends.py:graph", r"ends the process while it is imported \(ends.py, line 2\): bye.*__main__"),
        ("related.py:graph", "relative import.*by its package"),
        ("failing.py:make", r"failing.py:make raised an error \(failing.py, line 2\): KeyError: 'NO_SUCH'.*--env-file"),
        ("failing.py:amake", r"failing.py:amake raised an error \(failing.py, line 4\): KeyError"),
        ("failing.py:nothing", "What failing.py:nothing gives is an object of NoneType"),
        (".:graph", "is no module"),
        ("keyless.py:graph", r"can't be imported \(keyless.py, line 3\): JSONDecodeError"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(app: str, named: str, said: str) -> None:
    Path("broken.py").write_text("x = 1\nx / 0\n")
    Path("lacking.py").write_text("import not_installed_here\n")
    Path("ends.py").write_text("import sys\nsys.exit('bye')\n")
    Path("related.py").write_text("from .app import graph\n")
    fails = "    return {}['NO_SUCH']\n"
    Path("failing.py").write_text(f"def make():\n{fails}async def amake():\n{fails}def nothing():\n    pass\n")
    Path("keyless.py").write_text("import json\n\njson.loads('')\n")
    with pytest.raises(ConfigurationError) as raised, opened(named.replace("APP", app)):
        pass
    pattern = said.replace("APP", app)
    import re

    assert re.search(pattern, str(raised.value), re.DOTALL), str(raised.value)


def test_inputs_come_from_files_and_from_the_shell(app: str, tmp_path: Path) -> None:
    (tmp_path / "inputs.jsonl").write_text('{"question": "a"}\n\n{"question": "b"}\n')
    with opened(f"{app}:graph") as program:
        found = program.inputs("inputs.jsonl", ['{"question": "c"}', "plain text", '"quoted"', "3"])
        assert found == [*({"question": name} for name in "abc"), "plain text", "quoted", 3]
        (tmp_path / "inputs.jsonl").write_text('{"question": "a"}\n\n{"question": b}\n')
        with pytest.raises(ConfigurationError, match="inputs.jsonl, line 3 is not JSON: .*column 14"):
            program.inputs("inputs.jsonl")
        with pytest.raises(ConfigurationError, match="--input {x is not JSON"):
            program.inputs(None, ["{x"])
        with pytest.raises(ConfigurationError, match="can't be read"):
            program.inputs("nowhere.jsonl")
        with pytest.raises(ConfigurationError, match="There are no inputs"):
            program.inputs()


def test_options_come_from_a_file_and_chosen_ones_go_before(tmp_path: Path) -> None:
    file = tmp_path / "accel.toml"
    file.write_text('speculate = "likely"\negress = "inputs"\n[budget]\nwaste = 0.1\n[run]\ntags = ["x"]\n')
    found = options(file, speculate="certain", plan=None)
    assert found == {"speculate": "certain", "egress": "inputs", "budget": Budget(waste=0.1)}
    file.write_text('[[budget.caps]]\ntokens = 20_000\n[[budget.caps]]\ncalls = 5\nper = "metadata.org"\n')
    assert options(file) == {"budget": Budget(caps=[Cap(tokens=20_000), Cap(calls=5, per="metadata.org")])}
    file.write_text("[[budget.caps]]\ntoken = 20_000\n")
    with pytest.raises(ConfigurationError, match="no option 'token'"):
        options(file)
    file.write_text('speculat = "likely"\n')
    with pytest.raises(ConfigurationError, match="'speculat' is not known"):
        options(file)
    project = tmp_path / "pyproject.toml"
    project.write_text('[tool.accel]\negress = "inputs"\n')
    assert options(project) == {"egress": "inputs"}
    file.write_text("speculate = likely\n")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        options(file)


def test_a_program_that_is_accelerated_already_is_checked_as_it_was() -> None:
    import accel
    from adapters.tests.checked_programs import graph

    with program_of(accel.accelerate(graph)) as program:
        assert type(program.obj) is type(graph)


# --- the command


def told(*arguments: str) -> tuple[int, str, str]:
    from accel.cli import app as command

    result = CliRunner().invoke(command, ["check", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_commands_read_the_projects_options_and_say_so(app: str) -> None:
    asked = (f"{app}:graph", "--input", '{"question": "a"}', "--rounds", "1")
    project = Path("pyproject.toml")
    project.write_text('[tool.other]\nspeculat = "likely"\n')
    assert told(*asked)[0] == 0 and "pyproject.toml" not in told(*asked)[2]
    project.write_text('[tool.accel]\nspeculate = "likely"\n')
    code, _, err = told(*asked)
    assert code == 0 and "With the options of [tool.accel] in pyproject.toml." in err
    project.write_text('[tool.accel]\nspeculat = "likely"\n')
    code, out, err = told(*asked)
    assert (code, out) == (2, "") and "'speculat' is not known" in err
    Path("none.toml").write_text("")
    assert told(*asked, "--config", "none.toml")[0] == 0
    for wrong, says in (("tool.accel = 3", "no table"), ("tool accel", "is not TOML")):
        project.write_text(f"{wrong}\n")
        code, out, err = told(*asked)
        assert (code, out) == (2, "") and says in err and "Traceback" not in err


def test_the_command_says_equal_and_ends_with_0(app: str) -> None:
    code, out, _ = told(f"{app}:graph", "--input", '{"question": "a"}', "--input", '{"question": "b c"}')
    assert code == 0 and out.startswith(f"{app}:graph: equal in 8 runs")
    assert "\x1b" not in out


def test_it_ends_with_1_where_something_differs(app: str) -> None:
    asked = [part for text in ("a", "b c", "d") for part in ("--input", json.dumps({"question": text}))]
    code, out, _ = told(f"{app}:wrong", *asked)
    assert code == 1 and "result.two" in out and "0 notes" in out and "1 notes" in out
    assert told(f"{app}:restless", "--input", "{}", "--rounds", "1")[0] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["APP:graph"],
        ["APP:nothing", "--input", "{}"],
        ["APP:graph", "--input", "{}", "--speculate", "wildly"],
        ["APP:graph", "--input", "{}", "--no-such-option"],
        ["APP:graph", "--input", '{"question": "fragile"}'],
    ],
)
def test_it_ends_with_2_where_it_is_used_wrongly(app: str, arguments: list[str]) -> None:
    code, _, error = told(*(argument.replace("APP", app) for argument in arguments))
    assert code == 2
    assert "Traceback" not in error


def test_as_json_nothing_but_json_goes_to_standard_output(app: str) -> None:
    code, out, error = told(f"{app}:talks", "--input", '{"question": "a"}', "--rounds", "1", "--json")
    found: dict[str, Any] = json.loads(out)
    assert code == 0 and found["verdict"] == "equal" and found["program"] == f"{app}:talks"
    assert "a word of the program's own" in error


def test_a_file_of_tests_has_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "from adapters.tests.checked_programs import INPUTS, graph, wrong\n"
        "def test_good(accel_check):\n    assert accel_check(graph, INPUTS).counts['retired']\n"
        "def test_bad(accel_check):\n    accel_check(wrong, INPUTS)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "result.two" in ran.stdout and "0 notes" in ran.stdout


WAITS = """
import sys
from threading import Event

from langchain_core.runnables import RunnableLambda

def waits(question):
    print("it waits", file=sys.stderr, flush=True)
    Event().wait(60)

chain = RunnableLambda(waits) | RunnableLambda(str)
"""


@pytest.mark.parametrize("command", ["check", "bench"])
def test_ctrl_c_ends_it_with_130_and_says_nothing(command: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(WAITS)
    shell = [sys.executable, "-c", "from accel.cli import main; main()", command, "app.py:chain", "--input", "a"]
    ran = subprocess.Popen(
        ["env", "--default-signal=INT", *shell], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert ran.stderr is not None
    try:
        lines = list(iter(ran.stderr.readline, "it waits\n"))
        ran.send_signal(signal.SIGINT)
        out, error = ran.communicate(timeout=60)
    finally:
        ran.kill()
    assert ran.returncode == 130, error
    assert out == "" and "Traceback" not in "".join(lines) + error
