"""What the calls of a recorded run ask of their engines: the work that schedules place (`limit`, `simulation`)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

from ...engine.profile import Profile
from ...graph.ops import OPS
from ...text.values import texts_of
from ...trace.flow import WHOLE
from ...trace.order import Event
from .costs import Costs

NO_MODEL = Profile("llm", prefill=((1, 0.0), (2, 0.0)), decode=((1, 0.0),))


class Workload:
    """The events of a run, and what their calls cost on engines of these profiles."""

    def __init__(
        self,
        events: Sequence[Event],
        profiles: Mapping[str, Profile],
        latency_s: Mapping[str, float],
        usual_s: Mapping[str, float],
    ) -> None:
        """`latency_s` goes before what a call took itself, `usual_s` stands in where the program didn't wait for it."""
        self.events = events
        self._latency_s, self._usual_s = latency_s, usual_s
        self.texts = {
            number: "\0".join(texts_of(event.call.input))
            for number, event in enumerate(events)
            if event.call is not None and self._decodes(event)
        }
        self.costs = Costs(profiles["llm"] if self.texts else profiles.get("llm", NO_MODEL))
        self.batch_profiles = {op: profiles[op] for op in ("embedding", "reranking") if op in profiles}
        self.batched = {n for n, e in enumerate(events) if e.call is not None and e.call.op in self.batch_profiles}
        self._shared: dict[tuple[int, int], int] = {}

    # --- one call

    @staticmethod
    def _decodes(event: Event) -> bool:
        """Whether the language model's profile applies: without token counts a latency is all that is known."""
        return event.call is not None and OPS[event.call.op].engine == "llm" and event.call.tokens[1] > 0

    def delay_s(self, event: Event) -> float:
        """What the call takes alone, if the language model's profile doesn't say."""
        call = event.call
        if call is None:
            return 0.0
        own = call.ended_s - call.started_s if call.ended_s is not None else 0.0
        if not OPS[call.op].issuable:
            return own
        return self._latency_s.get(call.op, self._usual_s.get(call.op, own) if call.retired else own)

    def batch_work_s(self, number: int, pass_s: float, room_s: float) -> float:
        """What the texts of a call take, without the passes they were served in: one for every full batch."""
        own_s = self.delay_s(self.events[number])
        passes = math.ceil(own_s / (pass_s + room_s) - 1e-9) if room_s else 1
        return max(0.0, own_s - max(1, passes) * pass_s)

    def cached(self, number: int, other: int) -> int:
        """How many tokens of one prompt another prompt begins with, too; whole blocks, and never all of them."""
        key = (number, other)
        if key not in self._shared:
            call = self.events[number].call
            text = self.texts[number]
            assert call is not None
            common = len(os.path.commonprefix((text, self.texts[other])))
            tokens = min(int(call.tokens[0] * common / max(1, len(text))), call.tokens[0] - 1)
            self._shared[key] = tokens // self.costs.block_tokens * self.costs.block_tokens
        return self._shared[key]

    def alone_s(self, number: int, fresh: int | None = None) -> float:
        """On an engine of its own; `fresh`: prompt tokens still to be prefilled then (None: all)."""
        event = self.events[number]
        if not self._decodes(event):
            return self.delay_s(event)
        assert event.call is not None
        prompt, output = event.call.tokens
        first = prompt - fresh if fresh is not None else 0
        return self.costs.pass_s + self.costs.prompt_s(first, prompt) + (output - 1) * self.costs.decode_s(1)

    def _fewest_fresh(self, number: int) -> int:
        """Prompt tokens that no cache and no early prefix can spare the engine, once the input is complete."""
        event = self.events[number]
        assert event.call is not None
        prompt = event.call.tokens[0]
        known = max((int(share * prompt) for share in event.prefix.values()), default=0)
        shared = max((self.cached(number, other) for other in self.texts if other != number), default=0)
        return prompt - min(max(known, shared), prompt - 1)

    # --- bounds

    def tails(self) -> list[float]:
        """Seconds of the longest path from the start of each event to the end of the run, every call alone."""
        tails = [0.0] * len(self.events)
        for number in range(len(self.events) - 1, -1, -1):
            tails[number] += self.alone_s(number)
            event = self.events[number]
            for before in event.after:
                waits_s = tails[number] if event.needs is None else 0.0
                tails[before] = max(tails[before], event.think_s + waits_s)
            for before in event.needs or ():
                tails[before] = max(tails[before], tails[number])
        return tails

    def work_s(self) -> float:
        """Every different prompt token once and every token in the best batch."""
        total = 0.0
        for number in self.texts:
            call = self.events[number].call
            assert call is not None
            cached = max((self.cached(number, other) for other in self.texts if other != number), default=0)
            total += self.costs.prompt_s(cached, call.tokens[0]) + (call.tokens[1] - 1) * self.costs.token_s()
        return total

    def unbounded_s(self) -> float:
        """The run on engines without bounds."""
        over: list[float] = []
        start: list[float] = []
        seen: list[float] = []
        for number, event in enumerate(self.events):
            asked = max((seen[before] for before in event.after), default=0.0) + event.think_s
            ready = asked
            if event.needs is not None and event.call is not None:
                ready = min(asked, max((self._known_s(n, s, start, over) for n, s in event.needs.items()), default=0.0))
            fresh = self._fewest_fresh(number) if self._decodes(event) else None
            start.append(ready)
            over.append(ready + self.alone_s(number, fresh))
            seen.append(max(asked, over[-1]))
        return seen[-1]

    def _known_s(self, number: int, share: float, start: Sequence[float], over: Sequence[float]) -> float:
        """When that share of an output is known."""
        event = self.events[number]
        if share >= WHOLE or not self._decodes(event) or event.call is None:
            return over[number]
        left = event.call.tokens[1] - math.ceil(share * event.call.tokens[1])
        return max(start[number], over[number] - left * self.costs.decode_s(1))


class Unbatched(Workload):
    """Every call takes what it took, and answers whole, however many there are: no profile is needed."""

    @staticmethod
    def _decodes(event: Event) -> bool:
        return False
