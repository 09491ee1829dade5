"""Sees what reaches the components of one arm, and whether it was early; gives tiny delays, and samples."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet


@dataclass(eq=False)
class Call:
    """One call that reached a component's leaf method."""

    component: str
    text: str
    early: bool
    answer: str | None = None
    key: str = ""
    """The credential that it went with."""


early_threads: WeakSet[threading.Thread] = WeakSet()
"""Threads of the accelerator that started an early call: filled by the hook `accel.process.threads.before_call`."""


def is_early() -> bool:
    if threading.current_thread() in early_threads:
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    code = getattr(task.get_coro(), "cr_code", None) if task else None
    return code is not None and ("/accel/" in code.co_filename or "/accel_langgraph/" in code.co_filename)


@dataclass(eq=False)
class Probe:
    """What reached the components of one arm, in order; and their source of tiny delays and of samples."""

    seed: int
    delay_share: float = 0.2
    calls: list[Call] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)
    replay: dict[str, list[int]] | None = None

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self.random = random.Random(self.seed)
        self.inside: dict[str, list[Call]] = {}

    def delay_s(self) -> float:
        with self.lock:
            return self.random.uniform(0.0, 0.001) if self.random.random() < self.delay_share else 0.0

    def enter(
        self,
        component: str,
        text: str,
        *,
        exclusive: bool = True,
        orderly: bool = False,
        vouched: bool = True,
        key: str = "",
    ) -> Call:
        """`exclusive`: early calls are one at a time. `orderly`: answers depend on the order of calls. `vouched`: the
        component's class was declared; else no call may be early."""
        call = Call(component, text, is_early(), key=key)
        with self.lock:
            self.calls.append(call)
            inside = self.inside.setdefault(component, [])
            if exclusive and inside and (call.early or any(other.early for other in inside)):
                self.violations.append(f"{component} entered twice at once: {[c.text for c in [*inside, call]]}")
            if orderly and call.early:
                self.violations.append(f"{component}, whose answers depend on call order, was called early: {text}")
            if not vouched and call.early:
                self.violations.append(f"{component}, which nobody vouches for, was called early: {text}")
            inside.append(call)
        return call

    def leave(self, call: Call, answer: str | None) -> None:
        with self.lock:
            call.answer = answer
            self.inside[call.component].remove(call)

    @contextmanager
    def within(self, component: str, text: str, **kind: Any) -> Generator[None, None, None]:
        """Around a leaf method that has no answer to tell of, and may be cancelled in the middle."""
        call = self.enter(component, text, **kind)
        try:
            yield
        finally:
            self.leave(call, None)

    def sample(self, text: str, variants: int) -> tuple[int, str]:
        """A variant nobody can predict (in the plain arm: the one the accelerated program was given), and its id."""
        with self.lock:
            chosen = self.random.randrange(variants)
            if self.replay is not None:
                waiting = self.replay.get(text)
                if waiting:
                    chosen = waiting.pop(0)
                else:
                    self.violations.append(f"the plain program samples more often than the accelerated one: {text}")
            sample_id = f"sample-{len(self.samples)}"
            self.samples.append(text)
        return chosen, sample_id
