"""What a call costs as runs get long, and learning as traces do: time per call by size, and the exponent it grows by.

`python -m bench scale`. An exponent of 1 is a cost in proportion to the size. Every figure is taken in a process of
its own, so that peaks of memory are its own, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, StateGraph
from rich.console import Console

import accel
from accel.graph.ir import Node
from accel.learn.lessons import learn
from accel.run.plans.learning import MAX_CALLS
from bench.machine import machine_name
from bench.pictures import ACCELERATED, UNMODIFIED, by_size, exponent
from bench.sections import scale

DOCUMENT = Path(__file__).parent / "SCALE.md"
RUNNING, LONG = (1_000, 3_000, 10_000), (1_000, 3_000, 10_000, 30_000, 100_000)
LEARNING = (100, 300, 1_000, 3_000, 10_000)
LEARNT_FROM = 20
"""Items of the runs before the one that is measured."""
LEARNT = "learning"
LONG_RUNS = "## `--long`"
CALL_S = 0.001
"""What a call takes: with calls of no length, threads of one interpreter would do little but wait for each other."""


class Quick(BaseChatModel):
    """Answers after `seconds`, with a text that depends on the whole prompt."""

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 64, "pure": True}
    seconds: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "quick"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        if self.seconds:
            time.sleep(self.seconds)
        return _answer(messages)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        await asyncio.sleep(self.seconds)
        return _answer(messages)


def _answer(messages: list[BaseMessage]) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=AIMessage(f"answer {hash(messages[-1].text) % 10**12:012}"))])


class State(TypedDict, total=False):
    items: list[str]
    count: int
    at: int


def _one_node(work: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile()


def loop(llm: BaseChatModel) -> Any:
    """A call for every item of the run's input."""

    def work(state: State) -> State:
        return {"at": len([llm.invoke(f"Write a note on {item}.") for item in state["items"]])}

    return _one_node(work)


def unpredictable(llm: BaseChatModel) -> Any:
    """The same with a number in each prompt that the program draws."""

    def work(state: State) -> State:
        return {"at": len([llm.invoke(f"Write note {random.random()} on {item}.") for item in state["items"]])}  # noqa: S311

    return _one_node(work)


def two_steps(llm: BaseChatModel) -> Any:
    """Half of the calls are about the answers of the other half."""

    def work(state: State) -> State:
        notes = [llm.invoke(f"Write a note on {item}.").text for item in state["items"]]
        return {"at": len([llm.invoke(f"Is this note any good? {note}") for note in notes])}

    return _one_node(work)


def gather(llm: BaseChatModel) -> Any:
    """All calls at once."""

    async def work(state: State) -> State:
        return {"at": len(await asyncio.gather(*(llm.ainvoke(f"Write a note on {item}.") for item in state["items"])))}

    return _one_node(work)


def visits(llm: BaseChatModel) -> Any:
    """A framework node that runs once per call. Its state is small: what a program takes from node to node is recorded
    with every visit, so that a list of n items through n visits is a trace of n times n."""

    def work(state: State) -> State:
        llm.invoke(f"Write a note on number {state['at']}.")
        return {"at": state["at"] + 1}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda state: "work" if state["at"] < state["count"] else END)
    return builder.compile()


PROGRAMS = {found.__name__.replace("_", " "): found for found in (loop, unpredictable, two_steps, gather, visits)}


def _run(graph: Any, program: str, size: int, number: int) -> None:
    config = {"recursion_limit": size + 10}
    if program == "visits":
        graph.invoke({"at": number * size, "count": (number + 1) * size}, config)
        return
    items = size // 2 if program == "two steps" else size
    value = {"items": [f"item {at:06} of run {number}" for at in range(items)]}
    if program == "gather":
        asyncio.run(graph.ainvoke(value, config))
    else:
        graph.invoke(value, config)


def running(program: str, size: int, arm: str) -> dict[str, float]:
    """Seconds of a run with `size` calls, seconds that all its threads worked, and by how many MB the process grew."""
    graph = PROGRAMS[program](Quick(seconds=CALL_S))
    if arm == ACCELERATED:
        graph = accel.accelerate(graph)
    for number in range(2):
        _run(graph, program, LEARNT_FROM, number)
        accel.settle()
    if arm == ACCELERATED:
        # Runs this long are not learnt from, so the plan cannot know that a run may have so many elements.
        graph.plan.follow(graph.plan.learnt.map(_unbounded))
        graph.plan.learn_within = lambda run, site: None  # that would bring the bounds back
    before = _peak_mb()
    figures = _cost(lambda: _run(graph, program, size, 2))
    figures["grown_mb"] = _peak_mb() - before
    accel.settle()
    if arm == ACCELERATED:
        figures["retired"] = graph.plan.history[-1].retired
    return figures


def _unbounded(node: Node) -> Node:
    return node if node.level is None else replace(node, level=replace(node.level, seen=None))


def learning(program: str, size: int, _: str = LEARNT) -> dict[str, float]:
    """Seconds to learn from two traces of `size` calls each, alone."""
    traces = []
    for number in range(2):
        graph = accel.accelerate(PROGRAMS[program](Quick()), speculate="off")
        _run(graph, program, size, number)
        accel.settle(60 + size / 100)
        traces.append(graph.plan.last)
    before = _peak_mb()
    return {**_cost(lambda: learn(traces)), "grown_mb": _peak_mb() - before}


def _cost(work: Callable[[], Any]) -> dict[str, float]:
    began, worked = time.perf_counter(), time.process_time()
    work()
    return {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - worked}


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(
    what: Callable[[str, int, str], dict[str, float]], program: str, sizes: Sequence[int], arm: str, limit_s: float
) -> list[dict[str, Any]]:
    """A record for each size, as long as the next one is likely to take no longer than `limit_s`."""
    found: list[dict[str, Any]] = []
    for size in sizes:
        if len(found) > 1:
            last = found[-1]
            slope = exponent({one["size"]: one["seconds"] for one in found[-2:]})
            if last["seconds"] * (size / last["size"]) ** slope > limit_s:
                break
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
            found.append(
                {"program": program, "arm": arm, "size": size, **fresh.submit(what, program, size, arm).result()}
            )
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench scale", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--long", action="store_true", help="runs of up to 100,000 calls; minutes")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="of these, with commas between")
    parser.add_argument("--arms", default=f"{UNMODIFIED},{ACCELERATED},{LEARNT}", help="of these, with commas between")
    parser.add_argument(
        "--limit-s", type=float, default=300.0, help="sizes that are likely to take longer are left out"
    )
    parser.add_argument("--out", type=Path, default=Path("bench-out/scale"), help="folder for the raw records")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name} and its picture")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    found = []
    for program in options.programs.split(","):
        for arm in options.arms.split(","):
            what, sizes = (learning, LEARNING) if arm == LEARNT else (running, LONG if options.long else RUNNING)
            with console.status(f"{program}, {arm}"):
                found += measured(what, program, sizes, arm, options.limit_s)
    record = {
        "machine": machine_name(),
        "most_learnt": MAX_CALLS,
        "most_issued": accel.Budget().max_issued,
        "call_s": CALL_S,
        "figures": found,
    }
    shown = scale(record)
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "scale.json").write_text(json.dumps(record), encoding="utf-8")
    in_document = options.write and not options.long
    by_size(found, (Path("bench") if in_document else options.out) / "pictures" / "scale.png")
    if options.write:
        DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8"), shown, options.long), encoding="utf-8")
    return 0


def document(before: str, shown: str, long: bool) -> str:
    """The document with this as its part on long runs, or as the one before that."""
    usual, _, of_long_runs = before.partition(LONG_RUNS)
    if long:
        of_long_runs = f"\n\n{shown.rsplit('```', 1)[-1].strip()}\n"
    else:
        picture = "![Work per call by size](pictures/scale.png)"
        usual = f"{shown.replace('## ', '# ', 1)}\n\n{picture}\n\n"
    return f"{usual.rstrip()}\n\n{LONG_RUNS}{of_long_runs}"
