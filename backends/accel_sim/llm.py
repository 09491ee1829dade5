"""A language model's engine, simulated step by step: continuous batching over a profile's times, on any event loop.

Each step decodes one token of every running request and prefills prompts beside them, chunk by chunk, up to the
profile's tokens per step; requests wait for one of its slots and for room in the KV cache, where whole blocks of
prompts are found again (`accel_sim.kv_cache`). A step takes the profile's time for the requests that decode in it plus
the prompt tokens' own: the model of `accel.reports.limits.limit`, served online. Answers are a function of the prompt
(`accel_sim.answers`), or recorded ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from random import Random

from accel.engine import DEMAND, ChatMessage, Delta, Priority, Prompt, Sampling, TokenIds, Usage
from accel.engine.admission import Admission, Need
from accel.engine.batching import Waiting, policy_named
from accel.engine.profile import Profile
from accel.engine.slots import Room
from accel.errors import EngineClosed, InvalidRequest, RequestError
from accel.reports.limits.costs import Costs

from .answers import answer
from .devices import Device
from .kv_cache import NEXT_USE, KVCache, Place
from .line import Line, Request
from .published import profile_of
from .recorded import load_answers, until_stop
from .tokens import Tokenizer, tokenizer_of


@dataclass(frozen=True, slots=True)
class SimLLMConfig:
    """Equal configs share one engine."""

    profile: str = "7b"
    """7b, 13b, 30b (see `accel_sim.published`), or a file of profiles."""
    max_model_len: int = 16_384
    """Longest prompt and answer together, in tokens."""
    kv_tokens: int = 0
    """What fits into the KV cache; 0 for any number. No request is longer than that."""
    eviction: str = NEXT_USE
    """What the KV cache gives up first: what is used again last, the least recently used, or at once."""
    tokenizer: str = ""
    """A model's folder whose tokens are counted; "" counts pieces of words."""
    answers: str = ""
    """A file of recorded ones (`accel_sim.recorded`), for prompts that are in it."""
    jitter: float = 0.0
    """Standard deviation of a step's time, as a share of it, drawn from the seed."""
    seed: int = 0
    """Of what is drawn."""
    name: str = ""
    """Keeps apart engines that are otherwise equal."""
    batching: str = "topology-aware"
    """A policy of `accel.engine.batching`."""

    @property
    def label(self) -> str:
        return f"simulated {self.profile} model{' ' + self.name if self.name else ''}"

    def create(self) -> SimLLM:
        return SimLLM(self)


@dataclass(slots=True)
class Served:
    """What an engine has done since it started."""

    steps: int = 0
    busy_s: float = 0.0
    prompt_tokens: int = 0
    """Prefilled, without what came out of the prefix cache."""
    cached_tokens: int = 0
    output_tokens: int = 0


class SimLLM:
    """`served`: what it has done so far."""

    def __init__(
        self,
        config: SimLLMConfig,
        tokenizer: Tokenizer | None = None,
        line: Line | None = None,
    ) -> None:
        """tokenizer, line: those of other engines, too, so that token ids mean the same to all of them."""
        self._config = config
        self._profile: Profile = profile_of(config.profile, "llm")
        self._costs = Costs(self._profile)
        self._tokenizer: Tokenizer = tokenizer or tokenizer_of(config.tokenizer)
        self.portable_ids = tokenizer is not None
        self._recorded = load_answers(config.answers) if config.answers else {}
        self._dice = Random(config.seed)
        self._running: list[Request] = []
        self.kv_cache = KVCache(config.kv_tokens, self._costs.block_tokens, config.eviction)
        self._line = line or Line()
        self._line.engines.append(self)
        self._waiting: Waiting[Request] = Waiting(policy_named(config.batching), shared=self._line.waiting)
        self._waiting.caches(self.kv_cache, lambda request: request.blocks)
        if self.kv_cache.most_tokens is not None:
            self._waiting.admit(Admission(self.kv_cache.most_tokens // self._costs.block_tokens, self._need))
        self._device: Device | None = None
        self.is_full = False
        """It had no room for the last request that it looked at, or its device holds another model."""
        self._looked = -1
        """At what waits, when that was last changed."""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.served = Served()

    @property
    def label(self) -> str:
        return self._config.label

    @property
    def room(self) -> Room:
        most = self.kv_cache.most_tokens
        return Room(self._costs.slots, kv_blocks=None if most is None else most // self._costs.block_tokens)

    @property
    def load(self) -> int:
        """Requests that run."""
        return len(self._running)

    @property
    def has_own_work(self) -> bool:
        return bool(self._running or len(self._waiting))

    @property
    def has_work(self) -> bool:
        """Or might take some from the line."""
        return self.has_own_work or len(self._line.waiting) > 0

    def wake(self) -> None:
        self._wake.set()
        if self._device is not None:
            self._device.choose()

    def take_turns(self, device: Device) -> None:
        """On a device that holds other models at other times; before it is started."""
        self._device, self.is_full = device, True

    @property
    def waited_s(self) -> float:
        """Seconds that requests stood in line before their first step, together."""
        return self._waiting.waited_s

    # Life

    async def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve())

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait([task])
        if self._device is not None:
            self._device.leave(self)
        gone = RequestError(f"The {self._config.label} was closed.")
        for request in (*self._running, *self._waiting, *self._line.waiting):
            request.deltas.put_nowait(Delta("", 0, "error", error=gone))

    @property
    def known_profile(self) -> Profile:
        return self._profile

    async def profile(self) -> Profile:
        return self._profile

    async def reset_prefix_cache(self) -> None:
        self.kv_cache.forget()

    # Prompts

    @property
    def max_prompt_tokens(self) -> int:
        return self._most_tokens - 1

    @property
    def _most_tokens(self) -> int:
        """Of a prompt and its answer."""
        return min(self._config.max_model_len, self.kv_cache.most_tokens or self._config.max_model_len)

    @property
    def cache_block_tokens(self) -> int:
        return self._costs.block_tokens

    def encode(self, prompt: Prompt) -> list[int]:
        return self._tokenizer.encode(prompt)

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]:
        return self._tokenizer.encode_prefix(messages)

    # Requests

    async def generate(
        self, prompt: Prompt, sampling: Sampling, *, priority: Priority = DEMAND
    ) -> AsyncGenerator[Delta, None]:
        try:
            request = self._request(self.encode(prompt), sampling, priority)
        except RequestError as error:
            yield Delta("", 0, "error", error=error)
            return
        self._submit(request)
        try:
            while True:
                delta = await request.deltas.get()
                yield delta
                if delta.finish_reason is not None:
                    return
        finally:
            self._abandon(request)

    async def prefill(self, token_ids: TokenIds, *, priority: Priority = DEMAND) -> int:
        blocks = len(token_ids) // self.cache_block_tokens
        if blocks == 0:
            return 0
        ids = list(token_ids[: blocks * self.cache_block_tokens])
        self._check(ids)
        request = Request(ids, [""], "length", priority, self.kv_cache.blocks(ids))
        self._submit(request)
        try:
            await request.deltas.get()
        finally:
            self._abandon(request)
        return len(ids)

    def _request(self, ids: list[int], sampling: Sampling, priority: Priority) -> Request:
        self._check(ids)
        if sampling.temperature < 0 or sampling.max_tokens < 1:
            raise InvalidRequest("Temperature is at least 0 and max_tokens at least 1.")
        most = min(sampling.max_tokens, self._most_tokens - len(ids))
        text = self._recorded.get(tuple(ids))
        if text is None:
            text = answer(self._tokenizer.decode(ids), sampling)
        pieces, finish = self._tokenizer.pieces(text), "stop"
        while sampling.ignore_end and len(pieces) < most:
            pieces += self._tokenizer.pieces("\n" + text)
        if len(pieces) > most:
            pieces, finish = pieces[:most], "length"
        stopped = until_stop(pieces, sampling.stop)
        if stopped is not None:
            pieces, finish = stopped, "stop"
        return Request(ids, pieces or [""], finish, priority, self.kv_cache.blocks(ids))

    def _check(self, ids: list[int]) -> None:
        if self._task is None:
            raise EngineClosed(f"The {self._config.label} is not running.")
        if not ids:
            raise InvalidRequest("The prompt is empty.")
        if len(ids) > self.max_prompt_tokens:
            raise InvalidRequest(
                f"The prompt has {len(ids)} tokens; the engine takes at most {self.max_prompt_tokens}.",
                f"shorten the prompt, or raise {self._bound}",
            )

    @property
    def _bound(self) -> str:
        return "max_model_len" if self._most_tokens == self._config.max_model_len else "kv_tokens"

    def _need(self, request: Request) -> Need:
        blocks = -(-(len(request.ids) + len(request.pieces)) // self.cache_block_tokens)
        return Need(request.blocks, blocks - len(request.blocks))

    def _submit(self, request: Request) -> None:
        ordered = request.priority.batch and self._waiting.policy.reuses
        self._want(request, ordered)
        (self._line.waiting if ordered else self._waiting).add([request], request.priority)
        self._line.changes += 1
        if ordered and self._device is not None:
            self._device.group.expect(request.priority.outline)
        self.wake()
        if ordered:
            self._line.wake()

    def _want(self, request: Request, wants: bool) -> None:
        if request.wants != wants:
            request.wants = wants
            for engine in self._line.engines:
                engine.kv_cache.want(request.blocks, 1 if wants else -1)

    def _abandon(self, request: Request) -> None:
        """Idempotent; a request that has ended is in neither place."""
        request.gone = True
        self._want(request, False)
        if request.place is not None and request.engine is not None:
            request.engine._leave(request, request.place)

    def _leave(self, request: Request, place: Place) -> None:
        self._line.changes += 1
        request.place = None
        self._running.remove(request)
        self.kv_cache.end(place, request.priority.query, request.priority.next_use)
        self._waiting.ended(request)

    # Steps

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        free_s = loop.time()
        while True:
            if self._device is not None and await self._device.turn(self):
                free_s = loop.time()
            decoding, chunks = self._next_step()
            if not decoding and not chunks:
                self._wake.clear()
                if self._device is not None:
                    self._device.leave(self)
                await self._wake.wait()
                free_s = loop.time()
                continue
            prompt_s = sum(self._costs.prompt_s(request.done, request.done + tokens) for request, tokens in chunks)
            seconds = self._costs.step_s(len(decoding), prompt_s)
            if self._config.jitter:
                seconds *= max(0.1, self._dice.gauss(1.0, self._config.jitter))
            self.served.steps += 1
            self.served.busy_s += seconds
            free_s += seconds  # not from now: a late wake-up must not slow the engine down
            await asyncio.sleep(max(0.0, free_s - loop.time()))
            for request in decoding:
                self._advance(request, 1)
            self._line.changes += bool(chunks)
            for request, tokens in chunks:
                self.served.prompt_tokens += tokens
                self._advance(request, tokens)

    def _next_step(self) -> tuple[list[Request], list[tuple[Request, int]]]:
        """Who decodes in the next step, and how much is prefilled beside that for whom."""
        decoding = [request for request in self._running if request.done >= len(request.ids)]
        left = self._costs.batch_tokens - len(decoding)
        chunks: list[tuple[Request, int]] = []
        policy = self._waiting.policy

        def prefill(request: Request) -> None:
            nonlocal left
            if left > 0:
                chunks.append((request, min(left, len(request.ids) - request.done)))
                left -= chunks[-1][1]

        def begin(request: Request) -> bool | None:
            if request.wants and not self._is_next(request):
                return None
            places = policy.places(self._costs.slots, request.priority)
            if left <= 0 or len(self._running) >= places:
                return False
            if not policy.may_begin(request.priority, len(chunks) + len(begun)):
                return False
            request.place = self.kv_cache.begin(request.blocks, len(request.ids), len(request.pieces))
            if request.place is None:
                self._fill()
                return False
            self._want(request, False)
            request.engine = self
            self._line.changes += 1
            self._running.append(request)
            request.done = request.cached
            self.served.cached_tokens += request.cached
            prefill(request)
            return True

        begun = [request for request in self._running if request.done < len(request.ids)]
        for request in begun:
            if request.priority.value <= 0:
                prefill(request)
        for waiting in (self._waiting, self._line.waiting):
            waiting.drop(lambda request: request.gone)
        if left <= 0 or len(self._running) >= self._costs.slots:
            self._fill()
        elif not self.is_full or len(self._waiting) or self._looked != self._line.changes:
            self.is_full = False
            self._waiting.take(begin)
            self._looked = self._line.changes
        for request in begun:
            if request.priority.value > 0 and policy.may_begin(request.priority, len(chunks)):
                prefill(request)
        return decoding, chunks

    def _is_next(self, request: Request) -> bool:
        """Whether nothing that it begins with is being computed, and no other engine should rather serve it."""
        cache, blocks = self.kv_cache, request.blocks
        return cache.holds(blocks) <= cache.reuse(blocks).found and self._line.is_for(self, request)

    def _fill(self) -> None:
        """Others may take what it would be the best for."""
        if not self.is_full:
            self.is_full = True
            self._line.wake()

    def _advance(self, request: Request, tokens: int) -> None:
        place = request.place
        if place is None:  # it was given up
            return
        request.done += tokens
        # Answers are no prompts of others, but for conversations; those are found up to the last prompt.
        self.kv_cache.computed(place, request.done)
        if request.done < len(request.ids):
            return
        piece = request.pieces[request.produced]
        request.produced += 1
        self.served.output_tokens += 1
        if request.produced < len(request.pieces):
            request.deltas.put_nowait(Delta(piece, 1))
            return
        usage = Usage(len(request.ids), request.cached, request.produced)
        self._leave(request, place)
        request.deltas.put_nowait(Delta(piece, 1, "length" if request.finish == "length" else "stop", usage))
