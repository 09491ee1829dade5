"""A language model's engine, simulated step by step: continuous batching over a profile's times, on any event loop.

Each step decodes one token of every running request and prefills prompts beside them, chunk by chunk, up to the
profile's tokens per step; requests wait for one of its slots and for room in the KV cache, where whole blocks of
prompts are found again (`accel_sim.kv_cache`). A step takes the profile's time for the requests that decode in it plus
the prompt tokens' own: the model of `accel.reports.limit`, served online. Answers are a function of the prompt
(`accel_sim.answers`), or recorded ones.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from accel.engine import DEMAND, ChatMessage, Delta, Priority, Prompt, Sampling, TokenIds, Usage
from accel.engine.admission import Admission, Need
from accel.engine.batching import Waiting, policy_named
from accel.engine.profile import Profile
from accel.errors import ConfigurationError, EngineClosed, InvalidRequest, RequestError
from accel.reports.costs import Costs

from .answers import answer
from .kv_cache import LEAST_RECENT, KVCache, Place
from .published import profile_of
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
    eviction: str = LEAST_RECENT
    """What the KV cache gives up first: least recently used, or at once."""
    tokenizer: str = ""
    """A model's folder whose tokens are counted; "" counts pieces of words."""
    answers: str = ""
    """A file of recorded ones (`save_answers`), for prompts that are in it."""
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


@dataclass(eq=False, slots=True)
class _Request:
    ids: list[int]
    pieces: list[str]
    finish: str
    priority: Priority
    blocks: list[int]
    """Of the prompt, as the KV cache names them."""
    deltas: asyncio.Queue[Delta] = field(default_factory=asyncio.Queue)
    place: Place | None = None
    """In the KV cache, while it runs."""
    done: int = 0
    """Tokens in the KV cache."""
    produced: int = 0
    gone: bool = False

    @property
    def cached(self) -> int:
        return self.place.found_tokens if self.place is not None else 0


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

    def __init__(self, config: SimLLMConfig, tokenizer: Tokenizer | None = None) -> None:
        """tokenizer: one that other engines use, too, so that token ids mean the same to all of them."""
        self._config = config
        self._profile: Profile = profile_of(config.profile, "llm")
        self._costs = Costs(self._profile)
        self._tokenizer: Tokenizer = tokenizer or tokenizer_of(config.tokenizer)
        self.portable_ids = tokenizer is not None
        self._recorded = load_answers(config.answers) if config.answers else {}
        self._dice = Random(config.seed)
        self._running: list[_Request] = []
        self.kv_cache = KVCache(config.kv_tokens, self._costs.block_tokens, config.eviction)
        self._waiting: Waiting[_Request] = Waiting(
            policy_named(config.batching), reuse=lambda request: self.kv_cache.reuse(request.blocks)
        )
        if self.kv_cache.most_tokens is not None:
            self._waiting.admit(Admission(self.kv_cache.most_tokens // self._costs.block_tokens, self._need))
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.served = Served()

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
        gone = RequestError(f"The {self._config.label} was closed.")
        for request in (*self._running, *self._waiting):
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
        request = _Request(ids, [""], "length", priority, self.kv_cache.blocks(ids))
        self._submit(request)
        try:
            await request.deltas.get()
        finally:
            self._abandon(request)
        return len(ids)

    def _request(self, ids: list[int], sampling: Sampling, priority: Priority) -> _Request:
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
        stopped = _until_stop(pieces, sampling.stop)
        if stopped is not None:
            pieces, finish = stopped, "stop"
        return _Request(ids, pieces or [""], finish, priority, self.kv_cache.blocks(ids))

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

    def _need(self, request: _Request) -> Need:
        blocks = -(-(len(request.ids) + len(request.pieces)) // self.cache_block_tokens)
        return Need(request.blocks, blocks - len(request.blocks))

    def _submit(self, request: _Request) -> None:
        self._waiting.add([request], request.priority)
        self._wake.set()

    def _abandon(self, request: _Request) -> None:
        """Idempotent; a request that has ended is in neither place."""
        request.gone = True
        if request.place is not None:
            self._leave(request, request.place)

    def _leave(self, request: _Request, place: Place) -> None:
        request.place = None
        self._running.remove(request)
        self.kv_cache.end(place)
        self._waiting.ended(request)

    # Steps

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        free_s = loop.time()
        while True:
            decoding, chunks = self._next_step()
            if not decoding and not chunks:
                self._wake.clear()
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
            for request, tokens in chunks:
                self.served.prompt_tokens += tokens
                self._advance(request, tokens)

    def _next_step(self) -> tuple[list[_Request], list[tuple[_Request, int]]]:
        """Who decodes in the next step, and how much is prefilled beside that for whom."""
        decoding = [request for request in self._running if request.done >= len(request.ids)]
        left = self._costs.batch_tokens - len(decoding)
        chunks: list[tuple[_Request, int]] = []
        policy = self._waiting.policy

        def prefill(request: _Request) -> None:
            nonlocal left
            if left > 0:
                chunks.append((request, min(left, len(request.ids) - request.done)))
                left -= chunks[-1][1]

        def begin(request: _Request) -> bool:
            places = policy.places(self._costs.slots, request.priority)
            if left <= 0 or len(self._running) >= places:
                return False
            if not policy.may_begin(request.priority, len(chunks) + len(begun)):
                return False
            request.place = self.kv_cache.begin(request.blocks, len(request.ids), len(request.pieces))
            if request.place is None:
                return False
            self._running.append(request)
            request.done = request.cached
            self.served.cached_tokens += request.cached
            prefill(request)
            return True

        begun = [request for request in self._running if request.done < len(request.ids)]
        for request in begun:
            if request.priority.value <= 0:
                prefill(request)
        self._waiting.drop(lambda request: request.gone)
        if left > 0 and len(self._running) < self._costs.slots:
            self._waiting.take(begin)
        for request in begun:
            if request.priority.value > 0 and policy.may_begin(request.priority, len(chunks)):
                prefill(request)
        return decoding, chunks

    def _advance(self, request: _Request, tokens: int) -> None:
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


def _until_stop(pieces: Sequence[str], stops: Sequence[str]) -> list[str] | None:
    """The pieces of an answer that a stop string ends; the tokens that may be its beginning are held back, and then one
    last piece. None: none of them comes."""
    text = ""
    for end, piece in enumerate(pieces) if stops else ():
        text += piece
        cut = min((text.find(stop) for stop in stops if stop in text), default=-1)
        if cut >= 0:
            kept: list[str] = []
            for early in pieces:
                if sum(map(len, kept)) + len(early) > cut:
                    break
                kept.append(early)
            return [*kept, *[""] * (end - len(kept)), text[sum(map(len, kept)) : cut]]
    return None


# --- recorded answers


def save_answers(path: str | Path, answers: dict[tuple[int, ...], str]) -> None:
    """Write answers by prompt tokens, for `SimLLMConfig.answers`."""
    with Path(path).open("w", encoding="utf-8") as file:
        for ids, text in answers.items():
            file.write(json.dumps({"prompt": ids, "answer": text}) + "\n")


def load_answers(path: str | Path) -> dict[tuple[int, ...], str]:
    try:
        lines = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
        return {tuple(line["prompt"]): line["answer"] for line in lines}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{path} is no file of recorded answers: {error}") from error
