"""The GPU check itself, on the CPU and with the smallest of models: it finds, says and keeps what is wrong."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from accel_local.models import DEFAULT_EMBEDDING, ensure_model
from accel_sentence_transformers import SentenceTransformersConfig
from bench import gpu_check, random_models

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]


def test_without_a_gpu_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if gpu_check.no_gpu() is None:
        pytest.skip("this machine has a CUDA GPU")
    out = tmp_path / "gpu-check.json"
    assert gpu_check.main(["--out", str(out)]) == gpu_check.NO_GPU
    said = capsys.readouterr()
    assert "nothing written" in said.err and not said.out and not out.exists()


def test_a_check_that_fails_is_no_exception() -> None:
    pytest.importorskip("sentence_transformers", reason="the extra st is not installed")

    async def holds(engine: Any) -> None:
        assert engine.dimension == 384

    async def does_not_hold(engine: Any) -> None:
        raise AssertionError("the moon is no cheese")

    async def not_asked(engine: Any) -> None:
        raise AssertionError

    ensure_model(DEFAULT_EMBEDDING)
    config = SentenceTransformersConfig()  # as other tests of the session have it
    assert gpu_check.conformance(config, [holds, does_not_hold, not_asked], {"not_asked": "why"}) == {
        "holds": "passed",
        "does_not_hold": "failed: AssertionError: the moon is no cheese",
        "not_asked": "left out: why",
    }


def test_the_whole_check_with_random_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for package in ("transformers", "sentence_transformers"):
        pytest.importorskip(package, reason="the engines are not installed")
    monkeypatch.setitem(random_models.LANGUAGE_MODELS, "tiny", (64, 128, 2, 2, 1))
    monkeypatch.setattr(random_models, "EMBEDDING_MODEL", (64, 128, 2, 2))
    monkeypatch.syspath_prepend(str(gpu_check.ROOT / "examples"))
    monkeypatch.setattr(gpu_check, "POSTGRES", ("no_such_package",))
    models = gpu_check._models(gpu_check._options(["--random", "tiny"]), tmp_path)
    result = json.loads(json.dumps(gpu_check.check(models, "transformers", "float32", "cpu", 1)))
    for module in ("advanced_rag", "demo"):
        sys.modules.pop(module, None)  # others have modules of these names
    assert result["passed"], result["checks"]
    assert result["checks"]["llm"]["greedy_repeats"] == "passed"
    assert result["checks"]["embedding"]["embeds_by_meaning"].startswith("left out")
    (request,) = result["demo"]["requests"]
    assert request["calls_equal"] and all(request["outputs_equal"].values())
    assert request["counts"]["demanded"] > 5, "an answer of several lines gives several calls"
    assert result["demo"]["store"] == "InMemoryVectorStore"
    assert len(result["profile"]["decode"]) == 5
