"""What happens to a run from outside, made from a seed; and which run a call of a component belongs to.

Every question has a token of its own, which the fake models repeat in their answers: so a component knows by its input
whose call it serves, however late.
"""

from __future__ import annotations

import hashlib
import random
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage

TOKEN = re.compile(r"\bq\d+z\d+\b")
WORDS = "amber basin cedar delta ember fjord grove heron island jetty kelp lagoon meadow nectar orchid prairie".split()


class Broken(ValueError):
    """What a component raises that can't serve."""


def fraction(*parts: object) -> float:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=6).digest(), "big") / 2**48


@dataclass(frozen=True)
class Case:
    """One run of a program: its input, and what is done to it."""

    program: str
    seed: str
    token: str
    question: str
    fate: str
    """"whole" · "error": components fail for some prompts · "stall": the first early call of a model ends when it is
    demanded, or never, and the run is cut off · streams: "close", "abandon" · coroutines: "timeout", "cancel"."""
    rough: bool
    """Whether it goes to an accelerated object whose runs also fail: nothing is early past a node that ever raised."""
    at: int
    """After how many chunks, or calls, it is cut off."""
    within_s: float
    """The timeout."""


def case(program: str, program_number: int, number: int, seed: str, fates: Sequence[str]) -> Case:
    name = f"{seed}:{program}:{number}"
    rng = random.Random(name)
    token = f"q{number}z{program_number}"
    question = f"{' '.join(rng.sample(WORDS, 3))} {token}"
    fate = rng.choice(fates) if rng.random() < 0.55 else "whole"
    rough = fate == "error" or (fate == "whole" and rng.random() < 0.3)
    return Case(program, name, token, question, fate, rough, rng.randint(1, 4), rng.uniform(0.0, 0.08))


class Stalls:
    """Calls that don't end. Each costs a thread if it is in one: so there are only so many."""

    def __init__(self, most: int) -> None:
        self.left = most
        self.begun = 0
        self._lock = threading.Lock()
        self._held: set[Future[None]] = set()
        self._in_threads: set[Future[None]] = set()

    def begin(self, in_thread: bool) -> Future[None] | None:
        """What to wait for; None if there have been enough."""
        with self._lock:
            if self.left == 0:
                return None
            self.left -= 1
            self.begun += 1
            held: Future[None] = Future()
            self._held.add(held)
            if in_thread:
                self._in_threads.add(held)
            return held

    def end(self, held: Future[None]) -> None:
        with self._lock:
            if held not in self._held:
                return
            self._held.discard(held)
            self._in_threads.discard(held)
        if held.set_running_or_notify_cancel():  # else its coroutine was cancelled
            held.set_result(None)

    @property
    def threads(self) -> int:
        """Threads that stand still now."""
        return len(self._in_threads)

    def end_all(self) -> None:
        for held in list(self._held):
            self.end(held)


@dataclass(eq=False)
class Live:
    """A run that is under way."""

    case: Case
    stalls: Stalls
    give_up: Callable[[], None] = lambda: None
    """Cancels the run; does nothing for one that can't be cancelled."""
    calls: int = 0
    given_up: bool = False
    """An early call stalls. A run that can't be cancelled is left at its next chunk."""
    demanded: set[str] = field(default_factory=set)
    stalled: dict[str, Future[None]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, text: str, *, model: bool, in_thread: bool) -> Future[None] | None:
        """A component is called: raises if it can't serve; gives what it waits for if it is to stall."""
        fate = self.case.fate
        with self.lock:
            self.calls += 1
            cut = fate == "cancel" and self.calls == self.case.at
            early = fate == "stall" and model and text not in self.demanded
            if early and not self.stalled:
                held = self.stalls.begin(in_thread)
                if held is not None:
                    self.stalled[text] = held
                    self.given_up = cut = True
            else:
                held = None
        if cut:
            self.give_up()
        if held is not None:
            return held
        if fate == "error" and fraction(self.case.seed, text) < 0.2:
            raise Broken(f"not served: {fraction(text)}")
        return None

    def demand(self, text: str) -> None:
        """The program makes a call of a model. If it stalled early, it was only slow."""
        with self.lock:
            self.demanded.add(text)
            held = self.stalled.get(text)
            if held is not None:
                self.given_up = False
        if held is not None:
            self.stalls.end(held)


class Demands(BaseCallbackHandler):
    """Tells a run of its demands, before the model is called."""

    run_inline = True

    def __init__(self, live: Live) -> None:
        self._live = live

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        for prompt in messages:
            self._live.demand(as_text(prompt))


def as_text(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(f"{message.type}: {message.content}" for message in messages)


lives: dict[str, Live] = {}
"""By token. An early call of a run that is over finds none, and is served at once."""


def enter(text: str, *, model: bool = False, in_thread: bool = True) -> Future[None] | None:
    token = TOKEN.search(text)
    live = lives.get(token.group()) if token else None
    return live.enter(text, model=model, in_thread=in_thread) if live else None
