"""Runs `fusion_rag.py` unmodified and accelerated, and compares answers, sources and times: `make demo-llamaindex`.

Both arms run in this process, on the same engines, question by question, in alternating order; the language model's
prefix cache is emptied before every request. Exit code 1 if any answer or source differs.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from fusion_rag import index_of, query_engine
from rich.console import Console

import accel
import accel_local
from accel_llamaindex import AccelEmbedding, AccelLLM, AccelVectorStore

HERE = Path(__file__).parent
LEARNT_FROM = 3  # from this request on: two runs with different inputs have been seen
console = Console(width=None if sys.stdout.isatty() else 120)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=Path, default=HERE / "questions.txt", help="a question per line")
    parser.add_argument("--limit", type=int, default=4, help="how many of the questions (default 4)")
    options = parser.parse_args()
    lines = options.questions.read_text(encoding="utf-8").splitlines()
    questions = [line.strip() for line in lines if line.strip()][: options.limit]
    if len(questions) < LEARNT_FROM:
        parser.error(f"at least {LEARNT_FROM} questions: the first two are learnt from")
    try:
        return run(questions)
    finally:
        with contextlib.suppress(KeyboardInterrupt):
            accel_local.shutdown()


def run(questions: Sequence[str]) -> int:
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    llm = AccelLLM(dtype="float32", temperature=0.0, max_tokens=96)
    index = index_of(AccelEmbedding(), AccelVectorStore(collection="fusion rag", temporary=True))
    plain = query_engine(llm, index)
    fast: Any = accel.accelerate(plain)
    with console.status("one run that warms the engines, not compared"):
        plain.query(questions[-1])
    ratios, differ = [], 0
    for number, question in enumerate(questions):
        arms: dict[str, tuple[float, str, list[Any]]] = {}
        for name in ("before", "after") if number % 2 == 0 else ("after", "before"):
            engine: Any = accel_local.engine(llm.engine_config)
            accel_local.run(engine.reset_prefix_cache())
            began = time.perf_counter()
            response = (plain if name == "before" else fast).query(question)
            took_s = time.perf_counter() - began
            sources = [(node.node_id, node.score, node.text, node.metadata) for node in response.source_nodes]
            arms[name] = (took_s, str(response), sources)
            accel.settle()  # learning is off the hot path; here it has time before the next request
        before, after = arms["before"], arms["after"]
        ratios.append(before[0] / after[0])
        differ += before[1:] != after[1:]
        console.print(
            f"{number + 1:3}  before {before[0]:6.2f} s   after {after[0]:6.2f} s   {ratios[-1]:.2f}x   "
            f"{'equal' if before[1:] == after[1:] else 'DIFFERENT'}   {question}",
            highlight=False,
        )
    late = ratios[LEARNT_FROM - 1 :]
    console.print(
        f"from request {LEARNT_FROM} on: median {median(late):.2f}x ({min(late):.2f} to {max(late):.2f}); "
        f"answers and sources equal on {len(questions) - differ} of {len(questions)}",
        highlight=False,
    )
    console.print(str(fast.report()), highlight=False)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
