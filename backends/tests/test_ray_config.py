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
from accel_ray.mistakes import WrongBackendFile
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


FIELDS = "There are kind, model, options, replicas, num_gpus, num_cpus."


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("engins: {}", "engins is no field.", "Did you mean 'engines'? There are address, namespace, local, engines."),
        (
            "engines: {l: {kind: vllm, replcas: 2}}",
            "engines.l.replcas is no field.",
            f"Did you mean 'replicas'? {FIELDS}",
        ),
        (
            "engines: {l: {kind: vllm, dtype: float32}}",
            "engines.l.dtype is no field.",
            "It is an option of vllm: write options: {dtype: ...}.",
        ),
        ("local: {gpus: 2}", "local.gpus is no field.", "Did you mean 'num_gpus'? There are num_cpus, num_gpus, "),
        ("local: 4", "local is 4.", "Give a mapping with num_cpus, num_gpus, object_store_mib."),
        ("local: {object_store_mib: 1}", "local.object_store_mib is 1.", "Give a whole number, at least 80."),
        (
            "engines: {l: {kind: vlm}}",
            "engines.l.kind is 'vlm'.",
            "Did you mean 'vllm'? There are vllm, transformers, ",
        ),
        (
            "engines: {l: {kind: vllm, options: {max_modellen: 1}}}",
            "engines.l.options.max_modellen is no option of vllm.",
            "Did you mean 'max_model_len'? It has model, dtype, max_model_len, ",
        ),
        (
            "engines: {l: {kind: vllm, options: {max_model_len: long}}}",
            "engines.l.options.max_model_len is 'long'.",
            "Give a whole number, at least 0.",
        ),
        (
            "engines: {l: {kind: vllm, options: {kv_cache_gib: [1]}}}",
            "engines.l.options.kv_cache_gib is a list.",
            "Give a number, at least 0, or null.",
        ),
        (
            "engines: {l: {kind: vllm, options: {max_model_len: -1}}}",
            "engines.l.options.max_model_len is -1.",
            "Give a whole number, at least 0.",
        ),
        (
            "engines: {l: {kind: vllm, options: {gpu_memory_utilization: 90}}}",
            "engines.l.options.gpu_memory_utilization is 90.",
            "Give a number from 0 to 1.",
        ),
        (
            "engines: {r: {kind: pgvector, options: {collection: mine}}}",
            "engines.r.options.collection is what each program says for itself.",
            "Leave it out: the engine serves any.",
        ),
        (
            "engines: {r: {kind: pgvector, model: x}}",
            "engines.r.model is not for pgvector, which has no model.",
            "Leave",
        ),
        (
            "engines: {l: {kind: vllm, model: x, options: {model: y}}}",
            "engines.l.options.model is there twice: it is the model.",
            "Say it once, as model.",
        ),
        ("engines: {l: {model: x}}", "engines.l.kind is missing.", "There are vllm, transformers, "),
        ("engines: {l: {kind: vllm, model: 7}}", "engines.l.model is 7.", "Give a text or null."),
        (
            "engines: {l: {kind: vllm, replicas: -1}}",
            "engines.l.replicas is -1.",
            "Give a whole number from 1 to 1024.",
        ),
        ("engines: {l: {kind: vllm, replicas: two}}", "engines.l.replicas is 'two'.", "Give a whole number from 1 to "),
        ("engines: {l: {kind: vllm, replicas: true}}", "engines.l.replicas is true.", "Give a whole number from 1 to "),
        (
            "engines: {l: {kind: vllm, num_gpus: 1.5}}",
            "engines.l.num_gpus is 1.5.",
            "Give whole GPUs, or a part of one.",
        ),
        (
            "engines: {l: {kind: vllm, num_gpus: 0.5}}",
            "engines.l.num_gpus is 0.5, and 0.9 of a GPU's memory doesn't fit into that.",
            "Write options: {gpu_memory_utilization: 0.45}, or a larger num_gpus.",
        ),
        ("engines: {r: {kind: pgvector, replicas: 2}}", "engines.r.replicas is 2 for a store.", "Write replicas: 1; "),
        ("engines: {'a:b': {kind: vllm}}", "engines.a:b is no name for an engine.", "Take letters, digits"),
        ("engines: {1: {kind: vllm}}", "engines.1 is no text.", "Put the name in quotes."),
        ("engines: {e: {kind: rerank}, e: {kind: vllm}}", "'e' is there twice.", "Give each a name of its own"),
        ("engines: {e: {kind: sim_rerank}}", "engines.e.model is missing.", "Give 7b, 13b or 30b, or a file: "),
        (
            "engines: {e: {kind: sim_store, model: 8b}}",
            "engines.e.model can't be taken: There is no profile '8b'.",
            "one of 7b, 13b, 30b, or a file",
        ),
        ("engines:", "engines is empty.", "Give a mapping."),
        ("engines: [", "This is no YAML: ", "Correct it there, or just before."),
        ("- 1", "the file is a list.", "Give a mapping with address, namespace, local, engines; "),
        ("address: somewhere", "address is 'somewhere'.", "Write 'auto' or host:port."),
        ("namespace: ''", "namespace is ''.", "Give a text that isn't empty."),
    ],
)
def test_what_it_may_not_say(parsed, text: str, message: str, remedy: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigurationError) as caught:
        parsed(text)
    place, _, said = caught.value.what.partition(": ")
    assert said.startswith(message) and caught.value.remedy.startswith(remedy)
    assert place.partition("backend.yaml")[2] in ("", ":1") and "\n" not in said


def test_every_mistake_is_named_with_its_line(parsed) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(WrongBackendFile) as caught:
        parsed("engines:\n  a:\n    kind: vlm\n  b:\n    kind: rerank\n    replicas: 0\n    options:\n      batch: 1\n")
    found = [(one.line, ".".join(one.field)) for one in caught.value.mistakes]
    assert found == [(3, "engines.a.kind"), (6, "engines.b.replicas"), (8, "engines.b.options.batch")]
    lines = caught.value.what.splitlines()
    assert lines[0].endswith("backend.yaml has 3 mistakes:")
    assert "backend.yaml:3: engines.a.kind is 'vlm'. Did you mean 'vllm'?" in lines[1]


def test_mistakes_in_a_dict_have_no_lines() -> None:
    with pytest.raises(WrongBackendFile) as caught:
        read({"engines": {"e": {"kind": "rerank", "replicas": -1}}})
    assert caught.value.what == "the backend's config: engines.e.replicas is -1."


def test_a_remedy_for_a_fraction_is_what_fits(parsed) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigurationError) as caught:
        parsed("engines: {llm: {kind: vllm, num_gpus: 0.5}}")
    assert "gpu_memory_utilization: 0.45" in caught.value.remedy
    assert parsed("engines: {llm: {kind: vllm, num_gpus: 0.5, options: {gpu_memory_utilization: 0.45}}}").engines


@pytest.mark.parametrize(
    "text",
    [
        "engines: {r: {kind: pgvector, options: {dsn: [postgresql://me:secret@h/d]}}}",
        "engines: {r: {kind: pgvector, options: {connections: postgresql://me:secret@h/d}}}",
        "engines: {r: {kind: pgvector, options: {dns: postgresql://me:secret@h/d}}}",
        "engines: {r: {kind: pgvector, options: {dsn: secret, connections: 'x}}}",
        "engines: {r: {kind: pgvector, options: postgresql://me:secret@h/d}}",
    ],
)
def test_a_password_in_a_bad_file_is_not_repeated(parsed, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AccelError) as caught:
        parsed(text)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="There is no file .*backend.yaml") as caught:
        read(tmp_path / "backend.yaml")
    assert "accel init" in caught.value.remedy
    with pytest.raises(ConfigurationError, match="can't be read: Is a directory"):
        read(tmp_path)


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
