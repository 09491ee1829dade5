"""transformers' continuous batching behind `accel.engine.LLMEngine`.

Prefix sharing is its own block cache: `prefill` is a request that is cancelled after its first token.
"""

import asyncio
import contextlib
import math
import statistics
import threading
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any

from accel.engine import DEMAND, ChatMessage, Delta, Priority, Prompt, Sampling, TokenIds, Usage
from accel.engine.profile import Profile
from accel.engine.slots import Room, Slots
from accel.errors import AccelError, EngineClosed, EngineStartError, InvalidRequest, RequestError
from accel_local.profiles import recall, remember
from accel_local.threads import Worker
from accel_transformers.config import TransformersConfig
from accel_transformers.constraints import Constraints
from accel_transformers.loading import Loaded, load
from accel_transformers.request import Request
from accel_transformers.text import Detokenizer, StopStrings
from accel_vllm.chat import PromptEncoder
from accel_vllm.profile import measure_profile

if TYPE_CHECKING:
    from accel_transformers.batching import Batching

BLOCK_TOKENS = 32
FLASH_BLOCK_TOKENS = 256  # what its kernels for paged caches take
CPU_BATCHED_TOKENS = 256  # a long prefill stalls the requests that decode beside it for a step of this size
CUDA_BATCHED_TOKENS = 2048
MEASUREMENTS = 3


class TransformersEngine:
    def __init__(self, config: TransformersConfig) -> None:
        self._config = config
        self._loaded: Loaded | None = None
        self._batching: Batching | None = None
        self._encoder: PromptEncoder | None = None
        self._encoding = threading.Lock()  # not every model's tokenizer may be entered twice
        self._constraints: Constraints | None = None
        self._helper: Worker | None = None
        self._block_tokens = 0
        self._batch_tokens = 0
        self._profile: Profile | None = None
        self._profiling = asyncio.Lock()
        self._closed = False
        self._slots = Slots(config.max_num_seqs)

    # Life

    async def start(self) -> None:
        loop, abandoned = asyncio.get_running_loop(), threading.Event()
        self._helper = Worker("accel-transformers")
        try:
            await self._helper.do(lambda: self._load(loop, abandoned))
        except BaseException as error:
            abandoned.set()
            self._helper.stop()
            if self._batching is not None:
                self._batching.stop()
            if isinstance(error, AccelError) or not isinstance(error, Exception):
                raise
            raise EngineStartError(f"{self._config.label} could not start: {error or type(error).__name__}") from error

    def _load(self, loop: asyncio.AbstractEventLoop, abandoned: threading.Event) -> None:
        loaded = load(self._config)
        from accel_transformers.batching import Batching

        config, cuda = self._config, loaded.model.device.type != "cpu"
        flash = config.attention.startswith("flash")
        block_tokens = config.block_tokens or (FLASH_BLOCK_TOKENS if flash else BLOCK_TOKENS)
        batch_tokens = config.max_num_batched_tokens or (CUDA_BATCHED_TOKENS if cuda else CPU_BATCHED_TOKENS)
        batch_tokens = max(batch_tokens, config.max_num_seqs)
        batching = Batching(
            loaded.model,
            loop,
            ends=loaded.ends,
            max_num_seqs=config.max_num_seqs,
            block_tokens=block_tokens,
            batch_tokens=batch_tokens,
            kv_tokens=loaded.kv_tokens,
        )
        batching.start()
        self._loaded, self._batching = loaded, batching
        self._encoder = PromptEncoder(loaded.tokenizer)
        self._constraints = Constraints(loaded.tokenizer, loaded.outputs, loaded.ends)
        self._block_tokens = block_tokens if batching.shares_prefixes else 0
        self._batch_tokens = batch_tokens
        self._slots.caches(self._block_tokens, max(1, batching.kv_tokens // block_tokens))
        if abandoned.is_set():
            batching.stop()

    @property
    def stopped(self) -> bool:
        batching = self._batching
        return batching is not None and batching.stopped

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # Blocking, on purpose: at interpreter exit no thread can be started any more.
        if self._helper is not None:
            self._helper.stop()
        if self._batching is not None:
            self._batching.stop()
        self._loaded = self._batching = self._constraints = None

    async def reset_prefix_cache(self) -> None:
        """Forget all cached prompts; benchmarks do this between arms."""
        self._slots.prefixes.forget()
        if self._batching is not None and self._helper is not None:
            await self._helper.do(self._batching.forget_prefixes)

    @property
    def room(self) -> Room:
        return self._slots.room

    # Prompts

    @property
    def max_prompt_tokens(self) -> int:
        return self._running()[0].max_model_len - 1

    @property
    def cache_block_tokens(self) -> int:
        return self._block_tokens

    def encode(self, prompt: Prompt) -> list[int]:
        with self._encoding:
            return self._running_encoder().encode(prompt)

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]:
        with self._encoding:
            return self._running_encoder().encode_prefix(messages)

    def _running_encoder(self) -> PromptEncoder:
        self._running()
        assert self._encoder is not None
        return self._encoder

    def _running(self) -> "tuple[Loaded, Batching]":
        if self._loaded is None or self._batching is None:
            raise EngineClosed(f"{self._config.label} is not running.")
        return self._loaded, self._batching

    # Requests

    async def generate(
        self, prompt: Prompt, sampling: Sampling, *, priority: Priority = DEMAND
    ) -> AsyncGenerator[Delta, None]:
        try:
            token_ids = self.encode(prompt)
            self._check(token_ids, sampling)
            matcher = await self._matcher(sampling)
            async with (
                self._slots.place(priority, token_ids) as begun,
                contextlib.aclosing(self._deltas(token_ids, sampling, priority, matcher)) as deltas,
            ):
                async for delta in deltas:
                    begun()
                    yield delta
        except RequestError as error:
            yield Delta("", 0, "error", error=error)

    async def _deltas(
        self, token_ids: list[int], sampling: Sampling, priority: Priority, matcher: Any
    ) -> AsyncGenerator[Delta, None]:
        loaded, batching = self._running()
        request = Request(len(token_ids), sampling, priority, matcher)
        most = min(sampling.max_tokens, loaded.max_model_len - len(token_ids))
        decoder, stops = Detokenizer(loaded.tokenizer, token_ids), StopStrings(sampling.stop)
        completion = 0
        pieces = batching.tokens(request, token_ids, most, ends=not sampling.ignore_end)
        async with contextlib.aclosing(pieces):
            async for new, last in pieces:
                completion += len(new)
                ended = last and not sampling.ignore_end and bool(new) and new[-1] in loaded.ends
                text = decoder.add(new[:-1] if ended else new, last=last)
                text, stopped = stops.add(text, last=last)
                if not (last or stopped):
                    yield Delta(text, len(new))
                    continue
                usage = Usage(len(token_ids), request.cached_tokens, completion)
                yield Delta(text, len(new), "stop" if stopped or ended else "length", usage)
                return

    async def prefill(self, token_ids: TokenIds, *, priority: Priority = DEMAND) -> int:
        block = self._block_tokens
        whole_blocks = len(token_ids) // block * block if block else 0
        if whole_blocks == 0:
            return 0
        ids = list(token_ids[:whole_blocks])
        self._check(ids, Sampling())
        _, batching = self._running()
        request = Request(whole_blocks, Sampling(), priority)
        async with self._slots.place(priority, ids):
            # Two tokens: the blocks of a request that ends with its first one are not kept for others.
            async with contextlib.aclosing(batching.tokens(request, ids, 2, ends=False)) as pieces:
                async for _ in pieces:
                    break
        return whole_blocks

    async def _matcher(self, sampling: Sampling) -> Any:
        if sampling.constraint is None:
            return None
        self._running()
        assert self._constraints is not None and self._helper is not None
        constraints, constraint = self._constraints, sampling.constraint
        return await self._helper.do(lambda: constraints.matcher(constraint))

    def _check(self, token_ids: TokenIds, sampling: Sampling) -> None:
        loaded, _ = self._running()
        if not token_ids:
            raise InvalidRequest("The prompt is empty.")
        if len(token_ids) > self.max_prompt_tokens:
            raise InvalidRequest(
                f"The prompt has {len(token_ids)} tokens; the engine takes at most {self.max_prompt_tokens}.",
                "shorten the prompt, or raise max_model_len",
            )
        if not 0 <= min(token_ids) <= max(token_ids) < loaded.vocabulary:
            raise InvalidRequest(f"The model knows token ids from 0 to {loaded.vocabulary - 1} only.")
        if not (math.isfinite(sampling.temperature) and sampling.temperature >= 0):
            raise InvalidRequest(f"The temperature is {sampling.temperature}.", "0 or more")
        if not 0 < sampling.top_p <= 1:
            raise InvalidRequest(f"top_p is {sampling.top_p}.", "above 0, at most 1")
        if sampling.max_tokens < 1:
            raise InvalidRequest(f"max_tokens is {sampling.max_tokens}.", "1 or more")
        if not all(sampling.stop):
            raise InvalidRequest("A stop string is empty.", "leave it out")
        if sampling.ignore_end and sampling.constraint is not None:
            raise InvalidRequest("With ignore_end, a constraint's end can't be kept.", "leave one of them out")

    # Speed

    @property
    def steps(self) -> int:
        """Forward passes since the start."""
        return self._running()[1].steps

    @property
    def known_profile(self) -> Profile | None:
        return self._profile or recall(self._config.label)

    async def profile(self) -> Profile:
        async with self._profiling:
            if self._profile is None:
                self._profile = await self._measure()
                remember(self._config.label, self._profile)
            return self._profile

    async def _measure(self) -> Profile:
        for _ in range(MEASUREMENTS):
            with contextlib.suppress(statistics.StatisticsError):
                return await measure_profile(self, self._batch_tokens, self._config.max_num_seqs)
        raise RequestError(
            "No step with all requests in it could be measured: this process was held up.",
            "measure while the machine has nothing else to do",
        )
