"""How well the simulator predicts reality: the demo's program on real engines, then on a simulated language model.

The real part runs the program unmodified and accelerated on vLLM and records every answer at the engine's boundary. The
simulated part runs the same program, questions and arms on `accel_sim` with a measured profile, the model's tokenizer
and the recorded answers; embeddings and the store stay real. Both parts take real time, because the program is
synchronous. Exit code 1 if the predicted times are too far off, or if an output differs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

import accel
import accel_local
from accel.engine import DEMAND, Delta, LLMEngine, Priority, Prompt, Sampling, TokenIds
from accel.errors import AccelError
from accel_langgraph import AccelChatModel, AccelEmbeddings, AccelVectorStore
from accel_local.models import DEFAULT_LLM, model_path
from accel_sim import SimLLMConfig, profile_of
from accel_sim.recorded import save_answers
from bench.machine import machine_name
from bench.measure import plain
from bench.profile import INTERRUPTED, versions

EXAMPLES = Path(__file__).parent.parent / "examples"
KINDS = ("real", "simulated")
ARMS = ("unmodified", "accelerated")
LEARNT_FROM = 2  # the verdict is about the later requests
TOLERANCE = 0.15
Deltas = AsyncGenerator[Delta, None]
Ids = tuple[int, ...]
Arms = dict[str, "Arm"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench fidelity", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--profile", type=Path, required=True, metavar="FILE", help="of python -m bench profile")
    parser.add_argument("--requests", type=int, default=4, help="questions; learnt from the first two (default 4)")
    parser.add_argument("--out", type=Path, default=Path("bench-out/fidelity"), help="folder for the raw record")
    options = parser.parse_args(arguments)
    lines = (EXAMPLES / "questions.txt").read_text(encoding="utf-8").splitlines()
    questions = [line.strip() for line in lines if line.strip()][: options.requests]
    if not LEARNT_FROM < options.requests == len(questions):
        parser.error("--requests: more than two, and at most as many as examples/questions.txt has")
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        return run(options.profile, questions, options.out, console)
    except KeyboardInterrupt:
        console.print("stopped; no record was written")
        return INTERRUPTED
    except (AccelError, OSError) as error:
        console.print(str(error), style="red", markup=False)
        return 2
    finally:
        with contextlib.suppress(KeyboardInterrupt):
            accel_local.shutdown()


def run(profile_file: Path, questions: Sequence[str], out: Path, console: Console) -> int:
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    profile = profile_of(str(profile_file), "llm")
    out.mkdir(parents=True, exist_ok=True)
    answers = str(out / "answers.jsonl")
    load = {"before": os.getloadavg()[0]}
    with console.status("") as status:
        llm = AccelChatModel(dtype="float32", temperature=0.0)
        recorder = Recorder()
        real = part(llm, questions, recorder, lambda text: status.update(f"real part: {text}"))
        load["after the real part"] = os.getloadavg()[0]
        accel_local.shutdown()  # the real model takes no more processor time
        save_answers(answers, recorder.answers)
        sim = SimLLMConfig(str(profile_file), llm.max_model_len, tokenizer=model_path(DEFAULT_LLM), answers=answers)
        llm, known = AccelChatModel(engine=sim, temperature=0.0), Recorder(recorder.answers)
        simulated = part(llm, questions, known, lambda text: status.update(f"simulated part: {text}"))
        load["after the simulated part"] = os.getloadavg()[0]
    found = [Request(*one) for one in zip(questions, real, simulated, strict=True)]
    said = verdict(found)
    notes = remarks(found, said, profile.prefill[-1][0], recorder.unstable)
    console.print(times_table(found), parts_table(found), *notes, sep="\n", highlight=False, markup=False)
    record: dict[str, Any] = {"machine": machine_name(), "versions": versions(), "load_average": load}
    record |= {"profile": asdict(profile), "tolerance": TOLERANCE, "verdict": said, "notes": notes}
    record["requests"] = [asdict(one) for one in found]
    (out / "fidelity.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    console.print(f"Raw record: {out / 'fidelity.json'}", markup=False)
    return 0 if said["ok"] else 1


@dataclass
class Call:
    """Of the engine, "answer" or "prefill". Seconds since the program's request began. `known`: it was recorded."""

    kind: str
    began_s: float
    priority: int
    prompt_tokens: int
    known: bool = True
    cached_tokens: int = 0
    output_tokens: int = 0
    first_s: float | None = None
    ended_s: float | None = None


@dataclass
class Recorder:
    """Watches an engine: what it answers to which prompt, and when. Answers that were broken off are not kept."""

    known: dict[Ids, str] | None = None
    answers: dict[Ids, str] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    unstable: int = 0
    """Prompts that were answered anew, and differently."""
    began_s: float = 0.0

    def now_s(self) -> float:
        return time.perf_counter() - self.began_s

    def watch(self, engine: LLMEngine) -> None:
        generate, prefill = engine.generate, engine.prefill

        async def watched(prompt: Prompt, sampling: Sampling, *, priority: Priority = DEMAND) -> Deltas:
            ids = tuple(engine.encode(prompt))
            call = Call("answer", self.now_s(), priority.value, len(ids), self.known is None or ids in self.known)
            self.calls.append(call)
            text = ""
            async with contextlib.aclosing(generate(ids, sampling, priority=priority)) as deltas:
                async for delta in deltas:
                    text += delta.text
                    call.output_tokens += delta.tokens
                    if call.first_s is None and delta.tokens:
                        call.first_s = self.now_s()
                    if delta.finish_reason in ("stop", "length"):
                        call.ended_s = self.now_s()
                        call.cached_tokens = delta.usage.cached_tokens if delta.usage else 0
                        self.unstable += self.answers.setdefault(ids, text) != text
                    yield delta

        async def watched_prefill(token_ids: TokenIds, *, priority: Priority = DEMAND) -> int:
            call = Call("prefill", self.now_s(), priority.value, len(token_ids))
            self.calls.append(call)
            done = await prefill(token_ids, priority=priority)
            call.ended_s = self.now_s()
            return done

        engine.generate = watched  # type: ignore[method-assign]
        engine.prefill = watched_prefill  # type: ignore[method-assign]


@dataclass
class Arm:
    seconds: float
    output: Any
    calls: list[Call] = field(default_factory=list)


def part(llm: AccelChatModel, questions: Sequence[str], recorder: Recorder, say: Callable[[str], None]) -> list[Arms]:
    """All questions in both arms, interleaved and in alternating order, as examples/demo.py does."""
    sys.path.insert(0, str(EXAMPLES))
    program = import_module("advanced_rag")
    say("starting")
    store = AccelVectorStore(AccelEmbeddings(), "fidelity", temporary=True)
    engine: Any = accel_local.engine(llm.engine_config)
    program.ingest(store)
    recorder.watch(engine)
    graph = program.build_graph(llm, store)
    graphs = dict(zip(ARMS, (graph, accel.accelerate(graph)), strict=True))
    say("one run that warms the engines")
    graph.invoke({"question": questions[-1]})
    found: list[Arms] = []
    for number, question in enumerate(questions):
        arms: Arms = {}
        for arm in ARMS if number % 2 == 0 else ARMS[::-1]:
            say(f"request {number + 1} of {len(questions)}, {arm}: {question}")
            accel_local.run(engine.reset_prefix_cache())
            recorder.calls, recorder.began_s = [], time.perf_counter()
            output = graphs[arm].invoke({"question": question})
            arms[arm] = Arm(recorder.now_s(), plain(output), recorder.calls)
            accel.settle()
        found.append(arms)
    return found


@dataclass
class Request:
    question: str
    real: Arms
    simulated: Arms

    def ratio(self, arm: str) -> float:
        return self.simulated[arm].seconds / self.real[arm].seconds

    def speedup(self, kind: str) -> float:
        before, after = (getattr(self, kind)[arm].seconds for arm in ARMS)
        return float(before / after)

    @property
    def unequal(self) -> list[str]:
        """Fields of the outputs that are not the same in both arms and both parts."""
        outputs = [arms[arm].output for arms in (self.real, self.simulated) for arm in ARMS]
        names = sorted({name for output in outputs for name in output})
        return [name for name in names if any(output.get(name) != outputs[0].get(name) for output in outputs)]


def verdict(found: Sequence[Request]) -> dict[str, Any]:
    """Of the requests after the ones learnt from: by arm the median of |simulated / real - 1| and the largest; median
    speed-ups. `ok`: near enough, and all outputs equal."""
    late = found[LEARNT_FROM:]
    off = {arm: [abs(one.ratio(arm) - 1) for one in late] for arm in ARMS}
    error = {arm: median(values) for arm, values in off.items()}
    equal = sum(not one.unequal for one in found)
    return {
        "median off": error,
        "worst off": {arm: max(values) for arm, values in off.items()},
        "speedup": {kind: median(one.speedup(kind) for one in late) for kind in KINDS},
        "equal": equal,
        "ok": equal == len(found) and all(value <= TOLERANCE for value in error.values()),
    }


def remarks(found: Sequence[Request], said: Mapping[str, Any], profiled: int, unstable: int) -> list[str]:
    """`profiled`: prompt tokens up to which the profile goes."""
    off = [f"{arm} {said['median off'][arm]:.1%} (worst {said['worst off'][arm]:.1%})" for arm in ARMS]
    plain_arms = [one.real[ARMS[0]] for one in found[LEARNT_FROM:]]  # one call after another
    busy = sum(call.ended_s - call.began_s for arm in plain_arms for call in arm.calls if call.ended_s is not None)
    rest = 1 - busy / sum(arm.seconds for arm in plain_arms)
    longest = max((call.prompt_tokens for one in found for arm in one.real.values() for call in arm.calls), default=0)
    lines = [
        f"off by, median from request {LEARNT_FROM + 1} on: {', '.join(off)}; allowed: {TOLERANCE:.0%}",
        "speed-up: " + ", ".join(f"{kind} {value:.2f}x" for kind, value in said["speedup"].items()),
        f"outputs equal in both arms and both parts: {said['equal']} of {len(found)}",
        f"real in both parts, as embeddings and store: {rest:.1%} of the unmodified program's time",
    ]
    if longest > profiled:
        lines.append(f"prompts have up to {longest} tokens; prefill is profiled up to {profiled} and extrapolated")
    if unstable:
        lines.append(f"{unstable} prompts got another answer when they came again; the first one is recorded")
    return [*lines, "verdict: " + ("good enough" if said["ok"] else "NOT good enough")]


def times_table(found: Sequence[Request]) -> Table:
    shown = Table(title="Seconds, real and simulated; the last line: medians after learning", title_justify="left")
    columns = [column for arm in ARMS for column in (f"{arm}\nreal", "\nsim", "\nsim/real")]
    for name in ("", *columns, "speed-up\nreal", "\nsim", "\noutputs"):
        shown.add_column(name, justify="right" if name else "left")
    rows = [(f"{number}", [one]) for number, one in enumerate(found, 1)]
    for name, group in (*rows, ("late", list(found[LEARNT_FROM:]))):
        cells = []
        for arm in ARMS:
            times = [median(getattr(one, kind)[arm].seconds for one in group) for kind in KINDS]
            cells += [*(f"{s:.2f}" for s in times), f"{median(one.ratio(arm) for one in group):.3f}"]
        cells += [f"{median(one.speedup(kind) for one in group):.2f}x" for kind in KINDS]
        unequal = sorted({field for one in group for field in one.unequal})
        shown.add_row(name, *cells, ", ".join(unequal) + " differ" if unequal else "equal")
    return shown


def work(arms: Sequence[Arm]) -> dict[str, float]:
    """What the engine's times are made of; tokens and times of the answers that came to their end."""
    calls = [call for arm in arms for call in arm.calls]
    ends = [(c, c.first_s, c.ended_s) for c in calls if c.first_s is not None and c.ended_s is not None]
    later = sum(call.output_tokens - 1 for call, *_ in ends)
    return {
        "answers": len(ends),
        "prefills": sum(call.kind == "prefill" for call in calls),
        "broken off": sum(call.ended_s is None for call in calls),
        "unknown prompts": sum(not call.known for call in calls),
        "prompt tokens": sum(call.prompt_tokens for call, *_ in ends),
        "of them cached": sum(call.cached_tokens for call, *_ in ends),
        "output tokens": sum(call.output_tokens for call, *_ in ends),
        "ms to first token": 1000 * sum(first - call.began_s for call, first, _ in ends) / max(1, len(ends)),
        "ms per later token": 1000 * sum(end - first for _, first, end in ends) / max(1, later),
    }


def parts_table(found: Sequence[Request]) -> Table:
    """Where a difference comes from, if there is one."""
    shown = Table(title="The language model's work after learning", title_justify="left")
    late = found[LEARNT_FROM:]
    columns = {f"{arm} {kind}": [getattr(one, kind)[arm] for one in late] for arm in ARMS for kind in KINDS}
    for name in ("", *columns):
        shown.add_column(name, justify="right" if name else "left")
    values = [work(arms) for arms in columns.values()]
    for name in values[0]:
        shown.add_row(name, *(f"{value[name]:,.1f}" if "ms" in name else f"{value[name]:,.0f}" for value in values))
    return shown
