"""`python -m bench strangers`: public programs as their authors wrote them, unmodified and accelerated.

Each runs in a process of its own (`bench.strangers.one`); its record is a file, which is kept, so that programs can be
measured one after the other. `--write` makes `bench/STRANGERS.md` of all records, or, of those at the usual pace of
services (`--pace 1`), `bench/STRANGERS_USUAL.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from bench.machine import machine_name
from bench.measure import ACCELERATED, UNMODIFIED
from bench.sections import table
from bench.strangers import strangers
from bench.strangers.one import ADVISED, DEFAULT, FOR_WAITS_S, FOR_WORK_S, STEADY, WARM
from bench.strangers.programs import FOLDER, Stranger
from bench.strangers.services import QUICK, USUAL, USUAL_S

PAGES = {QUICK: Path(__file__).parents[1] / "STRANGERS.md", USUAL: Path(__file__).parents[1] / "STRANGERS_USUAL.md"}
LONGER_S = 20
"""Than a program's process has patience for."""
KEPT, UNSURE = "yes", "varies by more"
LEAST_SAID_S = 0.02
"""Of promises that are compared: the same request takes some milliseconds more or less each time."""
Record = Mapping[str, Any]


def measure(program: Stranger, folder: str, out: Path, pace: float = QUICK) -> dict[str, Any]:
    """The record of one program, or why there is none. `pace`: of services, see `services.set_pace`."""
    record: dict[str, Any] = {"name": program.name}
    checkout = Path(folder) / program.folder
    if not folder or not (checkout / program.path).exists():
        return {**record, "skipped": f"no checkout {program.folder} with {program.path} in the folder of {FOLDER}"}
    target = out / f"{program.name}.new"
    target.unlink(missing_ok=True)
    command = [sys.executable, "-m", "bench.strangers.one", program.name, str(checkout), str(target), str(pace)]
    limit_s = FOR_WORK_S + FOR_WAITS_S * pace + LONGER_S
    # The program's process ends without cleaning up: what it wrote goes with this folder.
    with tempfile.TemporaryDirectory(prefix="strangers-", ignore_cleanup_errors=True) as scratch:
        environment = {**os.environ, "TMPDIR": scratch}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=limit_s, check=False, env=environment
            )
        except subprocess.TimeoutExpired:
            return {**record, "failed": f"not over after {limit_s:.0f} s"}
    if not target.exists():
        return {**record, "failed": (done.stderr.strip().splitlines() or ["no record"])[-1][:300]}
    found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    target.unlink()
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench strangers", description=(__doc__ or "").splitlines()[0])
    known = {program.name: program for program in strangers()}
    parser.add_argument("--programs", default=",".join(known), help="which, by name (default: all)")
    parser.add_argument("--out", type=Path, default=Path("bench-out/strangers"), help="folder for records")
    parser.add_argument(
        "--pace",
        type=float,
        default=QUICK,
        help="what services take, as a share of what usual ones take (default: 0.1)",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="programs at a time: at the usual pace they wait for most of it"
    )
    parser.add_argument("--write", action="store_true", help="write the page of all records in the folder")
    options = parser.parse_args(arguments)
    wanted = [name for name in options.programs.split(",") if name]
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"{unknown[0]!r} is no program; there are {', '.join(known)}")
    if options.write and options.pace not in PAGES:
        parser.error(f"there is no page for --pace {options.pace:g}; those for {QUICK:g} and {USUAL:g} are written")
    console = Console(width=None if sys.stdout.isatty() else 140)
    options.out.mkdir(parents=True, exist_ok=True)

    def one(name: str) -> dict[str, Any]:
        began = time.perf_counter()
        record = measure(known[name], os.environ.get(FOLDER, ""), options.out, options.pace)
        record |= {"machine": machine_name(), "pace": options.pace}
        if "skipped" not in record:
            (options.out / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
        console.print(f"{_line(record)}  ({time.perf_counter() - began:.0f} s)", highlight=False, markup=False)
        return record

    with ThreadPoolExecutor(options.jobs) as jobs:
        found = list(jobs.map(one, wanted))
    if options.write:
        files = {name: options.out / f"{name}.json" for name in known}
        records = [json.loads(file.read_text(encoding="utf-8")) for file in files.values() if file.exists()]
        of_pace = [record for record in records if record.get("pace", QUICK) == options.pace]
        PAGES[options.pace].write_text(document(of_pace, known, options.pace) + "\n", encoding="utf-8")
    return 0 if all(_equal(record) and "failed" not in record for record in found) else 1


def _line(record: Record) -> str:
    if why := _not_run(record):
        return f"{record['name']:28} {why}"
    phases = [(name, record[name]) for name in (DEFAULT, ADVISED) if name in record]
    said = "  ".join(f"{name} {median(_ratios(requests[WARM:])):.2f}x" for name, requests in phases)
    return f"{record['name']:28} {said}  limit {_limit(record[DEFAULT])}  {'equal' if _equal(record) else 'DIFFERENT'}"


def _not_run(record: Record) -> str:
    """Why there is nothing to compare."""
    if "skipped" in record:
        return f"skipped: {record['skipped']}"
    if "failed" in record:
        return f"failed: {record['failed']}"
    raised = [line for line in record["log"] if "the unmodified program raised" in line]
    return f"raises unmodified: {raised[0]}" if raised else ""


def _requests(record: Record) -> list[Any]:
    return [*record.get(DEFAULT, ()), *record.get(ADVISED, ())]


def _equal(record: Record) -> bool:
    return all(request["equal"] for request in _requests(record))


def _ratios(requests: Sequence[Any]) -> list[float]:
    return [request["seconds"][UNMODIFIED] / request["seconds"][ACCELERATED] for request in requests]


def _limit(requests: Sequence[Any], which: str = "limit_s") -> str:
    limits = [one["seconds"][UNMODIFIED] / one[which] for one in requests[WARM:] if one[which]]
    return f"{median(limits):.2f}x" if limits else "-"


def _share(requests: Sequence[Any]) -> str:
    shares = [one["limit_s"] / one["seconds"][ACCELERATED] for one in requests[WARM:] if one["limit_s"]]
    return f"{median(shares):.2f}" if shares else "-"


# --- the document


HEAD = [
    "program", "what it does", "calls", "seconds", "request 1", "2", "3", "steady", "limit", "share of limit",
    "limit, streamed", "early",
    "waste", "processor", "advised", "limit then", "share of limit then", "equal",
]  # fmt: skip


def _cells(record: Record, program: Stranger) -> list[str]:
    requests, advised = record[DEFAULT], record.get(ADVISED)
    late = requests[WARM:]
    every = _requests(record)
    early, could = sum(one["early"] for one in late), sum(one["predictable"] for one in late)
    wasted = sum(one["counts"].get("wasted_tokens", 0) for one in late)
    worked = [one["processor_s"][ACCELERATED] / max(1e-9, one["processor_s"][UNMODIFIED]) for one in late]
    return [
        program.name,
        program.about,
        f"{median(one['calls'] for one in late):.0f}",
        f"{median(one['seconds'][UNMODIFIED] for one in late):.2f} s",
        *(f"{ratio:.2f}x" for ratio in _ratios(requests[:WARM])),
        _middle(_ratios(late)),
        _limit(requests),
        _share(requests),
        _limit(requests, "streamed_s"),
        f"{early} of {could}",
        f"{wasted / max(1, sum(one['tokens'] for one in late)):.1%}",
        f"{median(worked):.2f}x",
        _middle(_ratios(advised[WARM:])) if advised else "nothing",
        _limit(advised) if advised else "-",
        _share(advised) if advised else "-",
        f"{sum(one['equal'] for one in every)} of {len(every)}",
    ]


def _middle(ratios: Sequence[float]) -> str:
    return f"{median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"


def document(records: Sequence[Record], known: Mapping[str, Stranger], pace: float = QUICK) -> str:
    records = [record for record in records if record["name"] in known]
    ran = [record for record in records if not _not_run(record)]
    machines = ", ".join(sorted({record.get("machine", "") for record in records}))
    waits = ", ".join(f"{what} {seconds * pace * 1e3:g} ms" for what, seconds in USUAL_S.items())
    usual = "what usual ones take" if pace == 1 else f"{pace:g} times what usual ones take"
    as_said = "" if pace == QUICK else f" --pace {pace:g} --jobs 6"
    weighs = f", so that a framework's own work weighs {1 / pace:g} times as much as usual" if pace < 1 else ""
    parts = [
        "# Public programs",
        "Applications and tutorials as their authors wrote them; `bench/strangers` says where they are from and "
        "holds none of their code. Only the network is replaced, below their clients: real `ChatOpenAI` and so "
        "on, with their own addresses, so that services count as remote. Services answer by a function of what "
        f"they are asked, in {usual} ({waits}), any number of requests at once{weighs}. {machines}.",
        "```\npip install --no-deps -r setup/strangers.txt && pip install --no-deps --no-build-isolation -e .\n"
        f"ACCEL_STRANGERS=FOLDER python -m bench strangers{as_said} --write\n"
        "```",
        f"*steady*: unmodified by accelerated, median and range of requests {WARM + 1} to {WARM + STEADY}, arms in"
        " turns. Nothing is declared, but for *advised*: there all lines are applied that `report()` names after "
        f"the first {WARM + STEADY} requests. *limit*: unmodified by the best schedule of the recorded run in "
        "which every call takes what it took, answers arrive whole, and no call begins before the one that decides "
        'whether it is made: early calls on a guess may beat it, most of all with `speculate="likely"`, and so may '
        "answers that are read as they come. Text that no recorded call gave counts as known from the start, which is "
        "kinder than it could be. *limit, streamed*: the same if every answer were read as it comes. *limit then*: "
        "that of a run recorded with the advice followed. *early*: of the calls that could have begun 10 ms sooner in "
        "that schedule, those that an early call answered. *waste*: tokens of early calls that nobody asked for, by "
        "all tokens. "
        "*processor*: time of the process without that of the services, accelerated by unmodified.",
    ]
    for framework in ("LangGraph", "LlamaIndex"):
        rows = [_cells(record, known[record["name"]]) for record in ran if known[record["name"]].framework == framework]
        if rows:
            parts += [f"## {framework}", table(HEAD, rows)]
    parts += ["## What holds each back", *_held(ran)]
    advice = [
        f"- `{record['name']}`: {', '.join(f'`{line}`' for line in record['advice'])}"
        for record in ran
        if record["advice"]
    ]
    if advice:
        parts += ["## What the reports advise", "\n".join(advice)]
    if promised := sorted(row for record in ran if (row := _promised(record))):
        kept, unsure = (sum(row[-1] == verdict for row in promised) for verdict in (KEPT, UNSURE))
        parts += [
            "## What following them gained",
            "Of programs whose lines, those that were followed, promise "
            f"{LEAST_SAID_S * 1e3:.0f} ms or more. *said*: for all of these lines together, of each of the requests "
            f"{WARM + 1} to {WARM + STEADY} that was followed; *gained*: how much more the same request saved, against "
            "the unmodified program in turns with it, once they were followed; medians. "
            f"{kept} of {len(promised)} gained what they said within a third; {unsure} more vary by more than that "
            "third unmodified, from one time to the next (*varies*, of the same request).",
            table(["program", "request", "said", "gained", "gained by said", "varies", "within a third?"], promised),
        ]
    odd = [f"- `{record['name']}`: {_not_run(record)}" for record in records if _not_run(record)]
    odd += [
        f"- `{record['name']}`, {phase}, request {one['number'] + 1}: {one['different']}"
        for record in ran for phase in (DEFAULT, ADVISED) for one in record.get(phase, ()) if not one["equal"]
    ]  # fmt: skip
    odd += [f"- `{record['name']}`: {line}" for record in ran for line in record["log"]]
    if odd:
        parts += ["## What did not run, or differs", "\n".join(odd)]
    sources = [
        f"- `{program.name}`: {program.repository} at {program.commit[:12]}, {program.path}; {program.licence}; "
        f"replaced: {program.replaced}"
        for program in known.values()
    ]
    return "\n\n".join([*parts, "## Where they are from", "\n".join(sources)])


def _promised(record: Record) -> list[str] | None:
    """What following the advice was said to gain, what it gained, and whether that is within a third; None where it is
    too little to tell, or nothing was followed."""
    followed = record.get("followed")
    # At rest, a report tells of a request before.
    pairs = [
        (a, b) for a, b in zip(record[DEFAULT][WARM:], record.get(ADVISED, ())[WARM:], strict=False) if a["counts"]
    ]
    if not followed or not pairs:
        return None
    said = [
        min(sum(gain_s for line, gain_s in one["said"].items() if line in followed), one["said_together_s"])
        for one, _ in pairs
    ]
    gained = [_saved_s(b) - _saved_s(a) for a, b in pairs]
    said_s, gained_s = median(said), median(gained)
    if said_s < LEAST_SAID_S:
        return None
    varies_s = median(abs(a["seconds"][UNMODIFIED] - b["seconds"][UNMODIFIED]) for a, b in pairs)
    within = abs(gained_s - said_s) <= said_s / 3
    verdict = KEPT if within else UNSURE if varies_s > said_s / 3 else "no"
    took = f"{median(one['seconds'][ACCELERATED] for one, _ in pairs):.2f} s"
    said_ms, gained_ms, varies_ms = (f"{seconds * 1e3:.0f} ms" for seconds in (said_s, gained_s, varies_s))
    return [record["name"], took, said_ms, gained_ms, f"{gained_s / said_s:.2f}", varies_ms, verdict]


def _saved_s(request: Any) -> float:
    """Against the unmodified program, which took its turn just before or after."""
    seconds: Mapping[str, float] = request["seconds"]
    return seconds[UNMODIFIED] - seconds[ACCELERATED]


def _held(ran: Sequence[Record]) -> list[str]:
    """By rule over all programs, then for each program what holds its calls."""
    totals: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    where: dict[str, set[str]] = defaultdict(set)
    lines, serial = [], []
    for record in ran:
        late = record[DEFAULT][WARM:]
        held = [one for request in late for one in request["held"]]
        for one in held:
            totals[one["rule"]][0] += 1
            totals[one["rule"]][1] += one["sooner_s"]
            where[one["rule"]].add(record["name"])
        if not sum(request["predictable"] for request in late):
            serial.append(record["name"])
            continue
        if not held:
            lines.append(f"- `{record['name']}`: nothing; every predictable call was early.")
            continue
        most = Counter[tuple[str, str, str]]()
        for one in held:
            most[one["component"], one["where"], one["said"]] += 1
        said = "; ".join(f"{count} of `{what}` in `{at}`: {why}" for (what, at, why), count in most.most_common(3))
        lines.append(f"- `{record['name']}`: {said}.")
    rows = [
        [rule, f"{count:.0f}", f"{seconds:.2f} s", str(len(where[rule])), ", ".join(sorted(where[rule]))]
        for rule, (count, seconds) in sorted(totals.items(), key=lambda item: -item[1][1])
    ]
    head = ["why", "calls", "sooner by, in all", "programs", ""]
    parts = [table(head, rows)] if rows else []
    if serial:
        names = ", ".join(f"`{name}`" for name in serial)
        parts.append(
            f"In {len(serial)} of {len(ran)} programs no call's input is complete earlier than the program makes it, "
            f"as far as values tell: each waits for the one before, or they begin together anyway: {names}."
        )
    return [*parts, "\n".join(lines)]
