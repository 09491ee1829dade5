"""Clients: many requests at once, a tenth of them cancelled in the middle; and what is wrong with what came back."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from examples.serving.kinds import questions
from examples.serving.load import client
from examples.serving.model_replies import STALLS
from examples.serving.processes import GRACE_S, Process

ENDPOINTS = ("awaited", "threaded", "streamed")
CANCELLED = "cancelled"
NEVER_ENDED = "never ended"
LEAST_BOUND_S = 30.0
"""Long enough for everything that is only slow: requests take about two seconds."""


@dataclass(frozen=True)
class Request:
    endpoint: str
    question: str
    number: int
    leaves_after_s: float | None = None
    """When the client goes away, if it does."""

    @property
    def body(self) -> dict[str, str]:
        return {"question": self.question, "thread": f"thread-{self.number % 7}", "request": f"request-{self.number}"}


def requests(n: int, seed: str) -> list[Request]:
    """The same for both arms. No question is asked twice."""
    rng = random.Random(seed)
    made = []
    for number, question in enumerate(questions(n, seed)):
        leaves = rng.uniform(0.05, 1.5) if rng.random() < 0.1 else None
        made.append(Request(ENDPOINTS[number % len(ENDPOINTS)], question, number, leaves))
    return made


@dataclass
class Outcome:
    """What an arm did with one load."""

    arm: str
    at_once: int
    took_s: float
    answers: list[Any]
    """By request: what the program worked out, or `CANCELLED`, `NEVER_ENDED` or an error in words."""
    served: dict[str, Any] = field(default_factory=dict)

    @property
    def answered(self) -> int:
        return sum(isinstance(answer, dict) for answer in self.answers)

    @property
    def per_second(self) -> float:
        return self.answered / self.took_s


async def put_under(
    application: str, model: str, arm: str, asked: list[Request], at_once: int, bound_s: float = LEAST_BOUND_S
) -> Outcome:
    """`bound_s`: after which a request counts as one that never ends."""
    places = asyncio.Semaphore(at_once)
    async with client(application) as to_application, client(model) as to_model:
        await to_model.get("/served")

        async def one(request: Request) -> Any:
            async with places:
                return await _ask(to_application, arm, request, bound_s)

        started = time.monotonic()
        answers = await asyncio.gather(*(one(request) for request in asked))
        took_s = time.monotonic() - started
        return Outcome(arm, at_once, took_s, answers, (await to_model.get("/served")).json())


async def _ask(http: httpx.AsyncClient, arm: str, request: Request, bound_s: float) -> Any:
    url = f"/{arm}/{request.endpoint}"
    try:
        limit_s = min(bound_s, request.leaves_after_s or bound_s)
        response = await asyncio.wait_for(http.post(url, json=request.body), limit_s)
    except TimeoutError:
        return NEVER_ENDED if request.leaves_after_s is None else CANCELLED
    except httpx.HTTPError as error:
        return f"{type(error).__name__}: {error}"
    if response.status_code != 200:
        return f"status {response.status_code}: {response.text[:200]}"
    return json.loads(response.text.splitlines()[-1])


def wrong(asked: list[Request], plain: Outcome, fast: Outcome) -> list[str]:
    """A line for every request that was not answered as the plain graph answers it."""
    return list(_wrong(asked, plain, fast))


def _wrong(asked: list[Request], plain: Outcome, fast: Outcome) -> Iterator[str]:
    for request, expected, got in zip(asked, plain.answers, fast.answers, strict=True):
        name = f"{fast.at_once} at once: {request.endpoint} {request.question!r}"
        both_ended = isinstance(expected, dict) and isinstance(got, dict)
        if request.leaves_after_s is not None and not both_ended:
            # One arm may have been done before the client went; neither may have failed.
            for arm, answer in (("plain", expected), ("accelerated", got)):
                if answer != CANCELLED and not isinstance(answer, dict):
                    yield f"{name}: its client was to go; {arm}: {answer}"
        elif not isinstance(expected, dict):
            yield f"{name}: plain: {expected}"
        elif got != expected:
            yield f"{name}: {got if isinstance(got, str) else f'answered {got}, plain {expected}'}"


async def abandon(application: str, arm: str, n: int) -> None:
    """Leaves an application server with requests that are running, abandoned, and waiting for a model that never
    answers. The last ones are let go by the caller, who ends the server at once."""
    async with client(application) as http:
        running = []
        for request in requests(n, f"abandoned by {arm}"):
            body = request.body
            if request.number % 5 == 4 and request.endpoint != "threaded":  # a thread can't be cancelled, plain or not
                body["question"] += f" ({STALLS})"
            running.append(asyncio.create_task(http.post(f"/{arm}/{request.endpoint}", json=body)))
        await asyncio.wait(running, timeout=1.0)
        for task in running[::2]:
            task.cancel()
        await asyncio.wait(running, timeout=0.5)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def end_under_load(application: Process, arm: str, n: int = 24) -> float | None:
    """SIGTERM while requests are running, in seconds; None if the server had to be killed."""

    async def load_and_end() -> float | None:
        load = asyncio.create_task(abandon(application.url, arm, n))
        await asyncio.sleep(1.2)  # in the middle: some have gone, some run
        ending = asyncio.to_thread(application.terminate, 3 * GRACE_S)
        took_s, _ = await asyncio.gather(ending, load)
        return took_s

    return asyncio.run(load_and_end())
