"""What must hold of the calls that reach components: whom data is told, whose components are used, how often."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from compat_tests.answers import MARK
from compat_tests.fakes import FIRST_KEY
from compat_tests.programs import Program, Request
from compat_tests.surroundings import Surroundings
from compat_tests.watch import Turn, Watch

ENDPOINTS = {"remote": "remote", "abroad": "abroad", "gated": "gated", "own-a": "tenants", "own-b": "tenants"}
"""By component, the address it talks to."""
UNCOUNTED = "hasty"
"""How often this one is reached is a matter of time."""
SHARED = frozenset({"embed"})
"""One answer may serve several equal demands."""


def marks_of(text: str) -> set[str]:
    """The requests and tenants whose data is in a text."""
    return {mark.lower() for mark in MARK.findall(text)}


def marks_in(request: Request) -> set[str]:
    return marks_of("\n".join([request.question, *request.items])) | {f"zq{request.tenant}0"}


class Egress:
    """What each remote endpoint was told. By default it learns nothing that plain doesn't tell it in this run.

    Words are compared, not prompts: a wrong guess may be sent if all in it is known there, or is the program's own
    text. What two earlier runs of the same plan sent counts as the program's own.
    """

    def __init__(self, program: Program, *, relaxed: bool) -> None:
        self.program = program
        self.relaxed = relaxed
        self.own_text = program.source.lower()
        self.known: dict[tuple[str, Turn | None], str] = {}

    def disclosures(self, fast: Watch, slow: Watch) -> list[str]:
        sent, known = self._plainly(fast, slow)
        earlier = dict(self.known)
        for key, text in known.items():  # a call that started as a run ended may arrive in the next one
            self.known[key] = f"{self.known.get(key, '')}\n{text}"
        found = []
        for turn, call in list(fast.reached):
            endpoint = ENDPOINTS.get(call.component)
            if endpoint is None or call.text in sent[endpoint, turn] or call.text in sent[endpoint, None]:
                continue
            if endpoint == "gated" and self._refused(turn):
                found.append(f"sent past a declared guard in {turn}: {call.text!r}")
            if self.relaxed:
                continue
            before = [
                text for (where, whose), text in earlier.items() if where == endpoint and self._one_plan(whose, turn)
            ]
            haystack = "\n".join([self.own_text, self.known.get((endpoint, turn), ""), known.get((endpoint, None), "")])
            for word in re.findall(r"[\w@.]+\w", call.text.lower()):
                if word not in haystack and sum(word in text for text in before) < 2:
                    plainly = sorted(sent[endpoint, turn])
                    found.append(f"{endpoint} learnt {word!r} in {turn} from {call.text!r}; plain sends {plainly}")
        return found

    def _plainly(
        self, fast: Watch, slow: Watch
    ) -> tuple[dict[tuple[str, Turn | None], set[str]], dict[tuple[str, Turn | None], str]]:
        """What plain sends each endpoint in each turn; that and what the endpoint answered, in lower case."""
        sent: defaultdict[tuple[str, Turn | None], set[str]] = defaultdict(set)
        answered: defaultdict[tuple[str, Turn | None], list[str]] = defaultdict(list)
        for watch in (slow, fast):
            for turn, call in list(watch.reached):
                endpoint = ENDPOINTS.get(call.component)
                if endpoint is not None:
                    answered[endpoint, turn].append(call.answer or "")
                    if watch is slow:
                        sent[endpoint, turn].add(call.text)
        keys = sent.keys() | answered.keys()
        return sent, {key: "\n".join([*sent[key], *answered[key]]).lower() for key in keys}

    def _one_plan(self, one: Turn | None, other: Turn | None) -> bool:
        return one is None or other is None or not self.program.setting.scoped or one.tenant == other.tenant

    def _refused(self, turn: Turn | None) -> bool:
        """Whether a declared guard stopped this turn: then the program itself sends nothing behind it."""
        return turn is not None and turn.number == 0 and "STOP" in self.program.requests[turn.position].question


def strangers(program: Program, fast: Watch, slow: Watch, held: str) -> list[str]:
    """Data of one request, or of one tenant, in calls made for another; components of one tenant called for another.

    `held`: what stores and caches held, which the program itself may hand to anybody.
    """
    plainly = {(call.component, call.text) for _, call in slow.reached}
    open_to_all = marks_of("\n".join([held, *(call.text for _, call in slow.reached)]))
    found = []
    for turn, call in list(fast.reached):
        if turn is None or (call.component, call.text) in plainly:
            continue
        owner = re.fullmatch(r"(?:own|vault)-(\w)", call.component)
        if owner is not None and owner.group(1) != turn.tenant:
            found.append(f"{call.component} was called for tenant {turn.tenant} in {turn}: {call.text!r}")
        foreign = marks_of(call.text) - marks_in(program.requests[turn.position]) - open_to_all
        if foreign:
            found.append(f"{call.component} got data of {sorted(foreign)} in {turn}: {call.text!r}")
    return found


def other_keys(fast: Watch, slow: Watch, changed: set[str], before: set[str]) -> list[str]:
    """An early call goes with a key that plain uses for its component in the same turn, or with the one that the
    component had from the beginning and that no node had ever changed by then (`changed`: components of which one did,
    `before`: did before these turns)."""
    return [
        f"{call.component} was called with {call.key} in {turn}: {call.text!r}"
        for turn, call in list(fast.reached)
        if call.early and call.component in changed and (turn, call.component, call.key) not in slow.keys
        if call.component in before or call.key != FIRST_KEY
    ]


def calls_differ(fast: Watch, slow: Watch, turns: Iterable[Turn], around: Surroundings) -> list[str]:
    """Every demand of plain is a call of the accelerated program, early or not; what is not early is a demand of plain.
    Where a cache may answer, nothing is asked early that was asked before."""
    here = {*turns, None}
    plainly, reached, demanded = (Counter[tuple[str, str]]() for _ in range(3))
    for turn, call in list(slow.reached):
        plainly[call.component, call.text] += turn in here
    for turn, call in list(fast.reached):
        reached[call.component, call.text] += turn in here
        demanded[call.component, call.text] += turn in here and not call.early
    often = ((name, text) for name, text in demanded - plainly if name != UNCOUNTED)
    found = [f"{name} was asked more often than by plain: {text!r}" for name, text in often]
    missing = ((name, text) for name, text in plainly - reached if name not in {*SHARED, UNCOUNTED})
    found += [f"{name} was never asked, or less often than by plain: {text!r}" for name, text in missing]
    for name, text in reached - plainly:
        if around.caches(name, text) and (around.setting.cache != "nodes" or (name, text) not in plainly):
            found.append(f"{name} was asked early what a cache knows: {text!r}")
    for watch in (fast, slow):
        found += [f"{name}: permissions that no call used" for name, unused in watch.limits.items() if unused]
    return found


def foreign_in_plans(graphs: dict[str, Any], saved: Callable[[Any], str], held: str) -> list[str]:
    """No plan is saved with data; that of a tenant's scope holds nothing at all of other tenants but what
    the program itself hands from one to the other, in stores (`held`)."""
    found = []
    open_to_all = marks_of(held)
    for tenant, graph in graphs.items():
        text = saved(graph)
        if marks_of(text):
            found.append(f"the saved plan of {tenant or 'all'} holds data of {sorted(marks_of(text))}: {text}")
        if tenant:
            for text in texts_in(graph.plan):
                foreign = {mark for mark in marks_of(text) if mark[2] != tenant} - open_to_all
                if foreign:
                    found.append(f"the plan of tenant {tenant} holds data of {sorted(foreign)}: {text!r}")
    return found


def texts_in(plan: Any) -> Iterator[str]:
    """Every text that a plan reaches through containers and the accelerator's own objects."""
    met: set[int] = set()
    waiting = [plan]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
            continue
        if id(value) in met:
            continue
        met.add(id(value))
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        elif type(value).__module__.startswith("accel."):
            slots = (name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ()))
            waiting += [getattr(value, name) for name in slots if hasattr(value, name)]
            waiting += vars(value).values() if hasattr(value, "__dict__") else []
