"""`python -m bench first-token`: how long after its demand a model's first token comes, unmodified and accelerated.

The applications are streamed (`stream_mode="messages"`) on simulated engines in virtual time, one request at a time,
arms in turns. A call's seconds are those between LangChain's reports of its start and of its first token, so that they
are what any listener sees. Calls are matched by what they ask.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from rich.console import Console

import accel
import accel_local
from accel.process import clock
from bench.engines import Engines, simulated
from bench.machine import machine_name
from bench.measure import ACCELERATED, UNMODIFIED, WARM, Arm, arms_of
from bench.sections import first_token
from corpus.papers import APPS, App, data

ARMS = (UNMODIFIED, ACCELERATED)


@dataclass
class Call:
    asked: str
    began_s: float
    first_s: float | None = None
    said: str = ""


class Listener(BaseCallbackHandler):
    """What comes when, as LangChain reports it to anyone."""

    run_inline = True

    def __init__(self) -> None:
        self.calls: dict[UUID, Call] = {}

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        self.calls[run_id] = Call(str([message.text for batch in messages for message in batch]), clock.now_s())

    def on_llm_new_token(self, token: str | list[str | dict[str, Any]], *, run_id: UUID, **kwargs: Any) -> None:
        call = self.calls[run_id]
        call.said += str(token)
        if call.first_s is None and token:
            call.first_s = clock.now_s() - call.began_s


async def streamed(arm: Arm, value: Any) -> dict[str, list[Call]]:
    """One request; its calls that streamed, by what they asked."""
    listener = Listener()
    async for _ in arm.graph.astream(value, {"callbacks": [listener]}, stream_mode="messages"):
        pass
    found: dict[str, list[Call]] = defaultdict(list)
    for call in listener.calls.values():
        found[call.asked].append(call)
    return found


async def measured(app: App, engines: Engines, data_sets: Any, count: int, seed: int) -> list[dict[str, Any]]:
    """A record for each call of each request."""
    arms = await arms_of(app, engines, data_sets, list(ARMS))
    calls = []
    for number, value in enumerate(app.inputs(data_sets, WARM + count, seed)):
        found = {}
        for arm in arms if number % 2 else reversed(arms):
            await engines.forget_prefixes()
            found[arm.name] = await streamed(arm, value)
            accel.settle()
        for asked in dict.fromkeys((*found[UNMODIFIED], *found[ACCELERATED])):
            pairs = zip(*(found[arm].get(asked, []) for arm in ARMS), strict=True)
            calls += [
                {
                    "request": number,
                    "equal": before.said == after.said,
                    "first_s": {UNMODIFIED: before.first_s, ACCELERATED: after.first_s},
                }
                for before, after in pairs
            ]
    return calls


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench first-token", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--profile", default="7b", help="7b, 13b or 30b")
    parser.add_argument("--requests", type=int, default=10, help="per application, after those learnt from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("bench-out/first-token"), help="folder for the raw records")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        data_sets = data.load()
    except ValueError as error:
        console.print(str(error), style="red", markup=False)
        return 2
    engines = simulated(options.profile, "virtual", options.seed)
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        for name, app in APPS.items():
            with console.status(name):
                found[name] = engines.run(partial(measured, app, engines, data_sets, options.requests, options.seed))
    finally:
        accel_local.shutdown()
    record = {"machine": machine_name(), "profile": options.profile, "warm": WARM, "apps": found}
    console.print(first_token(record), markup=False, highlight=False, soft_wrap=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "first-token.json").write_text(json.dumps(record), encoding="utf-8")
    return 0 if all(call["equal"] for calls in found.values() for call in calls) else 1
