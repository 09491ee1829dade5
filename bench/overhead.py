"""What Accel costs: a call outside runs, inside a run, learning per trace, import, and a program it can't help.

`python bench/overhead.py [--json FILE]`. Every figure is measured against the same thing without Accel, interleaved.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, StateGraph
from rich.console import Console
from rich.table import Table

import accel
from accel.learn.learner import learn

CALL_S = 0.02
CHAIN = 10


class Instant(BaseChatModel):
    """Answers after `seconds` with a text that depends on the whole prompt."""

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 64, "pure": True}
    seconds: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "instant"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        if self.seconds:
            time.sleep(self.seconds)
        text = f"answer {abs(hash(str(messages[-1].content))):x}"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])


class Constant(Instant):
    """Nearly free, so that what is added shows."""

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return CONSTANT


CONSTANT = ChatResult(generations=[])


class State(TypedDict, total=False):
    question: str
    answer: str


def chain(llm: BaseChatModel, calls: int, prompt: Callable[[str], str]) -> Any:
    """One node that asks again and again; every prompt is made of the answer before it."""

    def work(state: State) -> dict[str, str]:
        text = state["question"]
        for _ in range(calls):
            text = llm.invoke(prompt(text)).text
        return {"answer": text}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile()


def seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def outside_us(rounds: int = 40, calls: int = 2_000) -> dict[str, float]:
    """Microseconds a patched leaf adds to a call that belongs to no run."""
    message: list[BaseMessage] = [HumanMessage("hello")]
    added = []
    for number in range(rounds):
        times = {}
        for patched in (False, True) if number % 2 else (True, False):
            if patched:
                accel.accelerate(chain(Constant(), 1, str))
            else:
                accel.uninstall()
            leaf = Constant()._generate
            times[patched] = min(seconds(lambda: [leaf(message) for _ in range(calls)]) for _ in range(3)) / calls  # noqa: B023
        added.append((times[True] - times[False]) * 1e6)
    return spread(added)


def inside_ms(rounds: int = 25, calls: int = 50) -> dict[str, float]:
    """Milliseconds a call inside an accelerated run takes longer, where nothing can be issued early."""
    graph = chain(Instant(), calls, lambda text: f"{text[:40]} {time.perf_counter_ns()}")
    fast = accel.accelerate(graph)
    added = []
    for number in range(rounds):
        question = {"question": f"question {number}"}
        plain = seconds(lambda: graph.invoke(question))  # noqa: B023
        ours = seconds(lambda: fast.invoke(question))  # noqa: B023
        accel.settle()
        added.append((ours - plain) / calls * 1e3)
    return spread(added)


def learning_ms(rounds: int = 8, calls: int = 12) -> dict[str, float]:
    """Milliseconds on the learner's thread for two traces of a loop of `calls` calls."""
    graph = chain(Instant(), calls, lambda text: f"Go on from here and say more about it: {text}")
    taken = []
    for number in range(rounds):
        traces = []
        for part in range(2):
            fast = accel.accelerate(graph, speculate="off")
            fast.invoke({"question": f"question {number} {part} about something long enough to be found again"})
            accel.settle()
            traces.append(fast.plan.last)
        taken.append(seconds(lambda: learn(traces)) * 1e3)  # noqa: B023
    return spread(taken)


def import_ms(statement: str, rounds: int = 7) -> dict[str, float]:
    """Milliseconds of a statement in a new interpreter."""
    code = f"import time; began = time.perf_counter(); {statement}; print(time.perf_counter() - began)"
    command = [sys.executable, "-c", code]
    return spread([float(subprocess.check_output(command, text=True)) * 1e3 for _ in range(rounds)])


def nothing_to_gain(rounds: int = 30) -> dict[str, float]:
    """Seconds accelerated over seconds plain, for a chain of dependent calls; 1 means no difference."""
    graph = chain(Instant(seconds=CALL_S), CHAIN, lambda text: f"What follows from this: {text}?")
    fast = accel.accelerate(graph)
    ratios = []
    for number in range(rounds):
        question = {"question": f"question {number}"}
        times = {}
        for arm in (graph, fast) if number % 2 else (fast, graph):
            times[arm is fast] = seconds(lambda: arm.invoke(question))  # noqa: B023
            accel.settle()
        ratios.append(times[True] / times[False])
    return spread(ratios)


def spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "min": min(values), "max": max(values)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    rows: list[tuple[str, str, str, dict[str, float]]] = [
        ("a component call outside runs adds", "us", "< 1", outside_us()),
        ("a call inside an accelerated run adds", "ms", "< 0.3", inside_ms()),
        ("learning two traces of 12 calls (not on the program's path)", "ms", "", learning_ms()),
        ("import accel", "ms", "< 100", import_ms("import accel")),
        ("from accel import accelerate", "ms", "< 100", import_ms("from accel import accelerate")),
        (f"{CHAIN} dependent calls of 20 ms, accelerated / plain", "", "within 2 %", nothing_to_gain()),
    ]
    table = Table(title="What Accel costs", title_justify="left")
    for column in ("", "median", "min to max", "unit", "goal"):
        table.add_column(column, justify="right" if column in ("median", "min to max") else "left")
    for name, unit, goal, found in rows:
        table.add_row(name, f"{found['median']:.3f}", f"{found['min']:.3f} to {found['max']:.3f}", unit, goal)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    if options.json:
        figures = [{"what": name, "unit": unit, "goal": goal, **found} for name, unit, goal, found in rows]
        options.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
