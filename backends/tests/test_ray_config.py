"""`backend.yaml`: what it may say, and one clear message for what it may not."""

import subprocess
import sys
from pathlib import Path

import pytest

from accel.errors import AccelError, ConfigurationError
from accel_pgvector import PgVectorConfig
from accel_vllm import VLLMConfig

pytest.importorskip("yaml", reason="the extra ray is not installed")
pytest.importorskip("pydantic", reason="the extra ray is not installed")

from accel_ray.config import Deployment, read
from accel_ray.routes import in_process

FULL = """
address: 10.0.0.1:6379
namespace: shared
local: {num_gpus: 2}
engines:
  llm:
    kind: vllm
    model: owner/name
    options: {dtype: float32, max_model_len: 2048, gpu_memory_utilization: 0.4}
    replicas: 2
    num_gpus: 0.5
    num_cpus: 2
  records: {kind: pgvector, options: {folder: /data}}
"""


@pytest.fixture
def parsed(tmp_path: Path):  # type: ignore[no-untyped-def]
    def parse(text: str) -> Deployment:
        file = tmp_path / "backend.yaml"
        file.write_text(text, encoding="utf-8")
        return read(file)

    return parse


def test_everything_it_may_say(parsed) -> None:  # type: ignore[no-untyped-def]
    found = parsed(FULL)
    assert (found.address, found.namespace, found.local.num_gpus) == ("10.0.0.1:6379", "shared", 2)
    llm, records = found.engines
    assert llm.config == VLLMConfig("owner/name", "float32", 2048, gpu_memory_utilization=0.4)
    assert (llm.name, llm.replicas, llm.num_gpus, llm.num_cpus) == ("llm", 2, 0.5, 2)
    assert [actor.name for actor in llm.actors()] == ["llm:0", "llm:1"]
    assert isinstance(records.config, PgVectorConfig) and records.config.folder == "/data" and records.replicas == 1
    assert parsed("") == Deployment()


def test_a_dict_says_the_same() -> None:
    assert read({"engines": {"e": {"kind": "rerank"}}}).engines[0].name == "e"


def test_in_this_process_replicas_and_options_hold(parsed) -> None:  # type: ignore[no-untyped-def]
    deployed = in_process(parsed(FULL))
    declared = VLLMConfig("owner/name", "float32", 2048, gpu_memory_utilization=0.4)
    assert deployed(VLLMConfig("owner/name", "float32", 2048)) == (declared, 2)
    assert deployed(VLLMConfig("another")) == (VLLMConfig("another"), 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("engins: {}", "unknown key 'engins' (did you mean 'engines'?), known are address, namespace, local, engines"),
        (
            "engines: {llm: {kind: vllm, replcas: 2}}",
            "engines.llm: unknown key 'replcas' (did you mean 'replicas'?), known are kind, model, options, replicas, "
            "num_gpus, num_cpus",
        ),
        ("local: {gpus: 2}", "local: unknown key 'gpus' (did you mean 'num_gpus'?)"),
        ("engines: {llm: {kind: vlm}}", "engines.llm: there is no kind 'vlm' (did you mean 'vllm'?)"),
        (
            "engines: {llm: {kind: vllm, options: {max_modellen: 1}}}",
            "engines.llm.options: vllm has no option 'max_modellen' (did you mean 'max_model_len'?)",
        ),
        (
            "engines: {llm: {kind: vllm, options: {max_model_len: long}}}",
            "engines.llm.options: max_model_len: Input should be a valid integer",
        ),
        (
            "engines: {r: {kind: pgvector, options: {collection: mine}}}",
            "engines.r.options: pgvector has no option 'collection'",
        ),
        ("engines: {r: {kind: pgvector, model: x}}", "engines.r: pgvector takes no model."),
        (
            "engines: {l: {kind: vllm, model: x, options: {model: y}}}",
            "engines.l: vllm takes no model twice.",
        ),
        ("engines: {llm: {model: x}}", "engines.llm.kind: field required"),
        (
            "engines: {llm: {kind: vllm, replicas: 0}}",
            "engines.llm.replicas: input should be greater than",
        ),
        ("engines: {llm: {kind: vllm, num_gpus: 1.5}}", "engines.llm: num_gpus is 1.5."),
        (
            "engines: {llm: {kind: vllm, num_gpus: 0.5}}",
            "engines.llm doesn't fit into 0.5 of a GPU: it takes 0.9 of its memory.",
        ),
        (
            "engines: {r: {kind: pgvector, replicas: 2}}",
            "engines.r: 2 replicas of a store would each hold other records.",
        ),
        ("engines: {'a:b': {kind: vllm}}", "'a:b' is no name for an engine."),
        ("engines: {e: {kind: rerank}, e: {kind: vllm}}", "'e' is there twice"),
        ("engines: {e: {kind: sim_llm, model: 8b, options: {profile: x}}}", "engines.e: sim_llm takes no model twice."),
        ("engines: [", "is no YAML"),
        ("- 1", "the file: input should be a valid dictionary"),
        ("engines: {a: {kind: vllm, x: 1}, b: {y: 1}}", "; "),
    ],
)
def test_what_it_may_not_say(parsed, text: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigurationError) as caught:
        parsed(text)
    assert message in caught.value.what and caught.value.remedy
    assert "\n" not in caught.value.what


def test_a_remedy_for_a_fraction_is_what_fits(parsed) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigurationError) as caught:
        parsed("engines: {llm: {kind: vllm, num_gpus: 0.5}}")
    assert "gpu_memory_utilization: 0.45" in caught.value.remedy
    assert parsed("engines: {llm: {kind: vllm, num_gpus: 0.5, options: {gpu_memory_utilization: 0.45}}}").engines


def test_a_password_in_a_bad_file_is_not_repeated(parsed) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AccelError) as caught:
        parsed("engines: {r: {kind: pgvector, options: {dsn: [postgresql://me:secret@h/d]}}}")
    assert "secret" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read: No such file"):
        read(tmp_path / "backend.yaml")


WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None  # as if it were not installed
from accel.backend import Backend
from accel.errors import MissingExtra
Backend.local().use()
try:
    Backend.ray()
except MissingExtra as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize("package", ["ray", "pydantic", "yaml"])
def test_a_missing_extra_names_the_pip_command(package: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT, package], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.endswith("pip install 'accelgraph[ray]'\n"), done.stderr
    assert f"no module named {package!r}" in done.stderr


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_the_command_without_its_extra_says_what_to_install(package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; sys.argv = ['accel', '--help']; from accel.cli import main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        f"The command accel needs packages that are not installed (no module named {package!r}).\n"
        "  Remedy: pip install 'accelgraph[cli]'\n"
    )


def test_the_command_needs_nothing_but_its_extra() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('ray', 'pydantic', 'yaml', 'langgraph', 'llama_index')));"
        "sys.argv = ['accel', '--help']; from accel.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Usage" in done.stdout and done.stderr == ""
