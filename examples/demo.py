"""Runs `advanced_rag.py` unmodified and accelerated, and compares calls, outputs and times: `make demo`.

Both arms run in this process, on the same engines, question by question, in alternating order. The language model's
prefix cache is emptied before every request, so that neither arm finds what the other has computed. Learning happens
between requests, off the timed path: a request never waits for it. Exit code 1 if any call or output differs.

`python examples/demo.py --backend ray --out demo-ray --against demo-out` has the same engines served by Ray actors, on
a Ray that starts and ends with the demo. Nothing else changes, the answers included: `--against` compares calls and
outputs with those of an earlier run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

from advanced_rag import build_graph, ingest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from rich.console import Console
from rich.table import Table

import accel
import accel_local
from accel.backend import Backend
from accel.engine.profile import Profile
from accel.reports.limits.limit import Limit, latencies, limit
from accel.reports.pictures.timeline import side_by_side
from accel.run.settings import Counts
from accel.trace.record import Trace
from accel_langgraph import AccelChatModel, AccelEmbeddings, AccelVectorStore

HERE = Path(__file__).parent
FIELDS = ("queries", "passages", "notes", "answer")
LEARNT_FROM = 3  # from this request on: two runs with different inputs have been seen
console = Console(width=None if sys.stdout.isatty() else 120)


class CallsSeen(BaseCallbackHandler):
    """What the program asked its components, as LangChain reports it to anyone: independent of Accel."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        asked = [[message.type, message.text] for batch in messages for message in batch]
        options = kwargs.get("invocation_params") or {}
        self.calls.append(("chat model", json.dumps([asked, options], sort_keys=True, default=str)))

    def on_retriever_start(self, serialized: dict[str, Any], query: str, *, run_id: UUID, **kwargs: Any) -> None:
        self.calls.append(("retriever", query))


@dataclass
class Arm:
    """One request of one arm."""

    seconds: float
    calls: list[tuple[str, str]]
    output: dict[str, Any]


@dataclass
class Request:
    question: str
    before: Arm
    after: Arm
    counts: Counts
    trace: Trace
    limit: Limit | None = None

    @property
    def ratio(self) -> float:
        return self.before.seconds / self.after.seconds

    @property
    def share(self) -> float:
        return self.limit.makespan_s / self.after.seconds if self.limit else 0.0

    @property
    def same_calls(self) -> bool:
        return Counter(self.before.calls) == Counter(self.after.calls)

    def same(self, name: str) -> bool:
        return bool(self.before.output[name] == self.after.output[name])


@dataclass
class Demo:
    """The engines, the program in both arms, and what has been measured."""

    llm: AccelChatModel
    graph: Any
    fast: Any
    requests: list[Request] = field(default_factory=list)

    def forget_prefixes(self) -> None:
        engine: Any = accel_local.engine(self.llm.engine_config)
        accel_local.run(engine.reset_prefix_cache())

    def ask(self, graph: Any, question: str) -> Arm:
        self.forget_prefixes()
        seen = CallsSeen()
        began = time.perf_counter()
        output = graph.invoke({"question": question}, {"callbacks": [seen]})
        return Arm(time.perf_counter() - began, seen.calls, output)

    def compare(self, question: str) -> Request:
        arms: dict[str, Arm] = {}
        for name in ("before", "after") if len(self.requests) % 2 == 0 else ("after", "before"):
            arms[name] = self.ask(self.graph if name == "before" else self.fast, question)
            accel.settle()  # learning is off the hot path; here it has time before the next request
        plan = self.fast.plan
        request = Request(question, arms["before"], arms["after"], plan.history[-1], plan.last)
        self.requests.append(request)
        return request


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=Path, default=HERE / "questions.txt", help="a question per line")
    parser.add_argument("--limit", type=int, default=6, help="how many of the questions (default 6)")
    parser.add_argument("--backend", choices=("local", "ray"), default="local", help="where the engines run")
    parser.add_argument("--against", type=Path, help="folder of an earlier run, to compare calls and outputs with")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder for raw outputs and reports")
    options = parser.parse_args()
    lines = options.questions.read_text(encoding="utf-8").splitlines()
    questions = [line.strip() for line in lines if line.strip()][: options.limit]
    if not questions:
        parser.error(f"{options.questions} has no questions.")
    if options.against is not None and not (options.against / "after.jsonl").exists():
        parser.error(f"{options.against} holds no outputs of an earlier run.")
    options.out.mkdir(parents=True, exist_ok=True)
    backend = Backend.ray() if options.backend == "ray" else Backend.local()
    try:
        with backend:
            equal = run(questions, options.out)
            if options.against is not None:
                equal &= same_as(options.against, options.out)
            return 0 if equal else 1
    except KeyboardInterrupt:
        console.print("stopped")
        return 130
    finally:
        with contextlib.suppress(KeyboardInterrupt):
            accel_local.shutdown()


def run(questions: Sequence[str], out: Path) -> bool:
    """Whether both arms made the same calls and gave the same outputs."""
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    llm = AccelChatModel(dtype="float32", temperature=0.0)
    store = AccelVectorStore(AccelEmbeddings(), "packages", temporary=True)
    engine: Any = accel_local.engine(llm.engine_config)
    with console.status("embedding the descriptions of the installed packages"):
        began = time.perf_counter()
        passages = ingest(store)
        console.print(f"{passages} passages ingested in {time.perf_counter() - began:.0f} s")
    with console.status("measuring what prefill and decoding cost on this machine"):
        profile = accel_local.run(engine.profile())
    graph = build_graph(llm, store)
    demo = Demo(llm, graph, accel.accelerate(graph))
    shown = min(len(questions), LEARNT_FROM + 1) - 1
    with console.status("one recorded run of the program as it is: warms the engines, is not compared"):
        recorder: Any = accel.accelerate(graph, speculate="off")
        demo.ask(recorder, questions[shown])
        accel.settle()
    for number, question in enumerate(questions, 1):
        with console.status(f"request {number} of {len(questions)}: {question}"):
            request = demo.compare(question)
        verdict = "equal" if request.same_calls and all(map(request.same, FIELDS)) else "[red]DIFFERENT[/red]"
        console.print(
            f"{number:3}  before {request.before.seconds:6.2f} s   after {request.after.seconds:6.2f} s"
            f"   {request.ratio:.2f}x   {verdict}   {question}",
            highlight=False,
        )
    measured = latencies([recorder.plan.last])
    for request in demo.requests:
        request.limit = limit(request.trace, {"llm": profile}, latency_s=measured)
    write(out, demo, profile, measured)
    side_by_side({"before": recorder.plan.last, "after": demo.requests[shown].trace}, str(out / "timeline.html"))
    show(demo, out)
    return all(r.same_calls and all(map(r.same, FIELDS)) for r in demo.requests)


def same_as(other: Path, out: Path) -> bool:
    """Compare calls and outputs with those of another run, question by question."""
    table = Table(title=f"Equal to the run in {other}", title_justify="left")
    for column in ("", "questions", "calls", "outputs"):
        table.add_column(column, justify="left" if not column else "right")
    equal = True
    for name in ("before", "after"):
        theirs, ours = (
            {line["question"]: line for line in map(json.loads, (folder / f"{name}.jsonl").open(encoding="utf-8"))}
            for folder in (other, out)
        )
        both = [(theirs[question], ours[question]) for question in ours if question in theirs]
        calls, outputs = (sum(a[part] == b[part] for a, b in both) for part in ("calls", "output"))
        table.add_row(name, f"{len(both)} of {len(ours)}", str(calls), str(outputs))
        equal &= calls == outputs == len(both) == len(ours)
    console.print(table)
    return equal


# --- results


def steady(requests: Sequence[Request]) -> list[Request]:
    return list(requests[LEARNT_FROM - 1 :]) or list(requests)


def show(demo: Demo, out: Path) -> None:
    requests = demo.requests
    times = Table(title="Latency in seconds", title_justify="left")
    for column in ("", "before", "after", "ratio", "limit", "share of limit"):
        times.add_column(column, justify="left" if not column else "right")
    for number, request in enumerate(requests[:LEARNT_FROM], 1):
        times.add_row(f"request {number}", *_row([request]))
    late = steady(requests)
    times.add_row(f"median from request {LEARNT_FROM} on", *_row(late), style="bold")
    console.print(times)
    ratios, shares = [r.ratio for r in late], [r.share for r in late]
    fits = [r.before.seconds / r.limit.in_order_s for r in requests if r.limit]
    bounds = [r.limit.lower_bound_s / r.limit.makespan_s for r in requests if r.limit]
    console.print(
        f"ratio from request {LEARNT_FROM} on: median {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); "
        f"share of limit: median {median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})\n"
        f"the limit's model: the program as it is took {median(fits):.2f} of what the model says "
        f"({min(fits):.2f} to {max(fits):.2f}); no schedule can be below {median(bounds):.2f} of the limit",
        highlight=False,
    )
    equal = Table(title=f"Equal in both arms, of {len(requests)} questions", title_justify="left")
    for column in ("calls", *FIELDS):
        equal.add_column(column, justify="right")
    equal.add_row(str(sum(r.same_calls for r in requests)), *(str(sum(r.same(f) for r in requests)) for f in FIELDS))
    console.print(equal)
    calls = Table(title="Component calls", title_justify="left")
    for column in ("", "demanded", "issued early", "retired", "wasted", "wasted tokens", "mispredicted"):
        calls.add_column(column, justify="left" if not column else "right")
    for label, part in (("all requests", requests), (f"from request {LEARNT_FROM} on", late)):
        c = sum((r.counts for r in part), Counts())
        tokens = sum(sum(call.tokens) for r in part for call in r.trace.calls)
        asked = f"{c.demanded} ({tokens} tokens)"
        calls.add_row(label, asked, *map(str, (c.issued, c.retired, c.wasted, c.wasted_tokens, c.missed)))
    console.print(calls)
    console.print(f"{machine()}. Raw outputs, reports, graphs and {out / 'timeline.html'} are in {out}/.")


def _row(requests: Sequence[Request]) -> list[str]:
    limits = [r.limit.makespan_s for r in requests if r.limit]
    return [
        f"{median(r.before.seconds for r in requests):.2f}",
        f"{median(r.after.seconds for r in requests):.2f}",
        f"{median(r.ratio for r in requests):.2f}x",
        f"{median(limits):.2f}",
        f"{median(r.share for r in requests):.2f}",
    ]


def write(out: Path, demo: Demo, profile: Profile, measured: dict[str, float]) -> None:
    """Everything the tables are made of, so that anyone can recompute them."""
    for name in ("before", "after"):
        with (out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for number, request in enumerate(demo.requests, 1):
                arm: Arm = getattr(request, name)
                line = {"request": number, "question": request.question, **asdict(arm)}
                file.write(json.dumps(line, default=_plain, ensure_ascii=False) + "\n")
    report = {
        "machine": machine(),
        "profile": asdict(profile),
        "latency_s": measured,
        "requests": [
            {
                "question": r.question,
                "first_arm": "before" if number % 2 == 0 else "after",
                "before_s": r.before.seconds,
                "after_s": r.after.seconds,
                "ratio": r.ratio,
                "calls_equal": r.same_calls,
                "outputs_equal": {name: r.same(name) for name in FIELDS},
                "counts": asdict(r.counts),
                "limit": _limit(r.limit),
            }
            for number, r in enumerate(demo.requests)
        ],
    }
    (out / "report.json").write_text(json.dumps(report, indent=2), encoding="utf-8")
    (out / "pgraph.txt").write_text(f"{demo.fast.plan.learnt}\n", encoding="utf-8")
    (out / "egraph.txt").write_text(f"{demo.fast.plan.graph}\n", encoding="utf-8")


def _limit(found: Limit | None) -> dict[str, Any]:
    if found is None:
        return {}
    start = min(placed.start_s for placed in found.schedule)
    return {
        "makespan_s": found.makespan_s,
        "critical_path_s": found.critical_path_s,
        "work_s": found.work_s,
        "lower_bound_s": found.lower_bound_s,
        "in_order_s": found.in_order_s,
        "rule": found.rule,
        "schedule": [
            {
                "primitive": placed.call.op,
                "in": placed.call.within,
                "start_s": placed.start_s - start,
                "end_s": placed.end_s - start,
                "tokens": placed.call.tokens,
            }
            for placed in found.schedule
        ],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Document):
        return {"id": value.id, "page_content": value.page_content, "metadata": value.metadata}
    raise TypeError(f"{type(value).__name__} is not JSON")


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
