"""The one file that knows the inside of transformers' continuous batching, which is not a stable interface.

What is added to it: an order by priority, logits processing per request, counts of cached tokens, and results that
reach an event loop. Everything else is as transformers has it. Written for the versions in `SUPPORTED`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import torch
import transformers
from transformers import GenerationConfig, LogitsProcessorList
from transformers.generation.configuration_utils import ContinuousBatchingConfig
from transformers.generation.continuous_batching.cb_logits_processors import (
    ContinuousBatchingLogitsProcessor,
    ContinuousBatchingLogitsProcessorList,
)
from transformers.generation.continuous_batching.continuous_api import OutputRouter
from transformers.generation.continuous_batching.requests import RequestStatus
from transformers.generation.continuous_batching.scheduler import SCHEDULER_MAPPING, FIFOScheduler

from accel.engine.batching import request_priority
from accel.errors import EngineClosed, EngineStartError, NotEnoughMemory, RequestError
from accel_transformers.request import Request

log = logging.getLogger("accel.transformers")

SUPPORTED = ("5.19",)
SCHEDULER = "accel_by_priority"
NO_END = -1
JOIN_S = 30.0  # a step of a large model on a CPU may take seconds, and can't be interrupted


def check_version() -> None:
    version = ".".join(transformers.__version__.split(".")[:2])
    if version not in SUPPORTED:
        raise EngineStartError(
            f"transformers {transformers.__version__} is installed; its continuous batching is known to work here with "
            f"{', '.join(SUPPORTED)} only.",
            f"pip install 'transformers=={SUPPORTED[-1]}.*'",
        )


class ByPriority(FIFOScheduler):  # type: ignore[misc]
    """Requests that decode go first, as in its base; then prompts, best first, as urgent as they are at this step."""

    def _process_candidates(self, candidates: list[Any], *others: Any) -> Any:
        return super()._process_candidates(sorted(candidates, key=_urgency), *others)

    def _infer_request_tokens(self, state: Any, removed: set[str]) -> Any:
        before = state.position_offset
        tokens = super()._infer_request_tokens(state, removed)
        request = _request(state)
        # Not if it starts a second time, for want of memory: then its own answer is found in the cache, too.
        if state.position_offset > before and len(state.initial_tokens) == request.prompt_tokens:
            request.cached_tokens = state.position_offset
        return tokens


SCHEDULER_MAPPING[SCHEDULER] = ByPriority


def _request(state: Any) -> Request:
    request: Request = state.logit_processor_kwargs["request"]
    return request


def _urgency(state: Any) -> tuple[bool, int]:
    request = _request(state)
    return state.status != RequestStatus.DECODING, request_priority(request.priority, request.arrived_s)


class Results(OutputRouter):  # type: ignore[misc]
    """Hands results to the event loop, all of a step at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[str], None]) -> None:
        super().__init__()
        self._loop = loop
        self._cancel = cancel
        self.queues: dict[str, asyncio.Queue[Any]] = {}
        """By request id; touched on the loop only."""

    def deliver(self, output: Any) -> None:
        self.deliver_batch([output])

    def deliver_batch(self, outputs: list[Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._hand_over, outputs)

    def _hand_over(self, outputs: list[Any]) -> None:
        for output in outputs:
            queue = self.queues.get(output.request_id)
            if queue is not None:
                queue.put_nowait(output)
            elif not output.is_finished():
                # Nobody waits for it. The loop forgets a cancellation that it reads before the request itself.
                self._cancel(output.request_id)


class Chooser(ContinuousBatchingLogitsProcessor):  # type: ignore[misc]
    """Temperature, top-p, seed and constraints of every request on its own; the loop then takes the best token left.

    What depends on a request is prepared on the host before a step; the step itself is a few operations on the device.
    """

    supported_kwargs = {"request": Request}
    ignored_kwargs = ()

    def __init__(self, device: Any, rows: int, vocabulary: int) -> None:
        self._device = device
        self._bitmask = torch.full((rows, (vocabulary + 31) // 32), -1, dtype=torch.int32)
        self._masked: list[int] = []
        self._sampled: list[int] = []
        self._settings = torch.empty((0, 3))

    def fill_defaults(self, int32_tensor: Any) -> None:
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> Any:
        self._masked, self._sampled, settings = [], [], []
        for row, scheduled in enumerate(requests_with_new_token):
            request = _request(scheduled.state)
            if not (request.sampled or request.constrained):
                continue
            # A request that started a second time has a part of its answer in its prompt.
            answer = (scheduled.state.initial_tokens[request.prompt_tokens :]) + scheduled.state.generated_tokens
            if request.constrained:
                request.next_mask(answer, self._bitmask, row)
                self._masked.append(row)
            if request.sampled:
                settings.append((request.temperature, request.nucleus, request.next_draw(len(answer))))
                self._sampled.append(row)
        if settings:
            self._settings = torch.tensor(settings, dtype=torch.float32).to(self._device)
        return torch.zeros(len(requests_with_new_token), dtype=torch.int32)

    def __call__(self, scores: Any, tensor_arg: Any) -> Any:
        if self._masked:
            import xgrammar

            bitmask = self._bitmask[: max(self._masked) + 1].to(self._device)
            xgrammar.apply_token_bitmask_inplace(scores, bitmask, indices=self._masked)
        if self._sampled:
            rows = torch.tensor(self._sampled, device=scores.device)
            temperature, top_p, draw = self._settings.unbind(dim=1)
            chosen = draw_tokens(scores[rows], temperature, top_p, draw)
            scores[rows] = float("-inf")
            scores[rows, chosen] = 0.0
        return scores


def draw_tokens(scores: Any, temperature: Any, top_p: Any, draw: Any) -> Any:
    """One token per row of scores (rows, vocabulary), by inverse transform sampling: `draw`, in [0, 1), says where in
    the cumulated probability of the nucleus: the fewest best tokens with `top_p` together (Holtzman et al. 2020, 3.1).
    """
    ordered, tokens = scores.float().sort(dim=-1, descending=True)
    odds = torch.softmax(ordered / temperature.unsqueeze(-1), dim=-1)
    before = odds.cumsum(dim=-1) - odds
    odds = odds.masked_fill(before >= top_p.unsqueeze(-1), 0.0)
    reach = odds.cumsum(dim=-1)
    place = torch.searchsorted(reach, (draw.unsqueeze(-1) * reach[:, -1:]).contiguous(), right=True)
    last = (odds > 0).sum(dim=-1, keepdim=True) - 1
    return tokens.gather(-1, torch.minimum(place, last)).squeeze(-1)


def _manager(model: Any, config: Any, ends: list[int], rows: int) -> Any:
    """With its memory allocated, its loop not started."""
    generation = GenerationConfig(do_sample=False, eos_token_id=ends or NO_END)
    manager = model.init_continuous_batching(generation_config=generation, continuous_batching_config=config)
    vocabulary = int(model.get_output_embeddings().weight.shape[0])
    chooser = Chooser(model.device, rows, vocabulary)
    processors = ContinuousBatchingLogitsProcessorList(LogitsProcessorList([chooser]))
    processors.tensors_required = 1  # counted only for processors of its own
    manager.logit_processor = processors
    with torch.random.fork_rng([model.device] if model.device.type == "cuda" else []):  # it seeds torch's own generator
        manager.warmup()
    return manager


class Batching:
    """A loaded model and its loop.

    Started in a daemon thread: its own thread inherits that, and doesn't hold up the end of the interpreter. `tokens`
    runs on the event loop given.
    """

    def __init__(
        self,
        model: Any,
        loop: asyncio.AbstractEventLoop,
        *,
        ends: Sequence[int],
        max_num_seqs: int,
        block_tokens: int,
        batch_tokens: int,
        kv_tokens: Sequence[int],
    ) -> None:
        """`kv_tokens`: how many tokens the KV cache is to hold; the first number that there is memory for is taken.

        Raises NotEnoughMemory if there is none.
        """
        check_version()
        self._manager: Any = None
        for tokens in kv_tokens:
            config = ContinuousBatchingConfig(
                page_size=block_tokens,
                num_blocks=-(-tokens // block_tokens),
                max_batch_tokens=batch_tokens,
                max_requests_per_batch=max_num_seqs,
                scheduler_type=SCHEDULER,
                # A token must be known before the next one is chosen under a constraint, and choosing runs on the host.
                use_async_batching=False,
                use_cuda_graph=False,
                # Would fetch kernels from a hub, and knows no float32.
                auto_switch_to_flash=False,
            )
            try:
                self._manager = _manager(model, config, list(ends), max_num_seqs)
                break
            except (MemoryError, torch.OutOfMemoryError) as error:
                failure = error
        if self._manager is None:
            raise NotEnoughMemory(
                f"There is no memory for a KV cache of {kv_tokens[-1]} tokens beside the model: {failure}.",
                "set max_model_len, max_num_seqs or kv_cache_gib lower, take a smaller model or dtype, or free memory",
            ) from failure
        self._results = self._manager.output_router = Results(loop, self._manager.cancel_request)
        self._manager.batch_processor.output_router = self._results
        cache = self._manager.batch_processor.cache
        self.kv_tokens = int(cache.max_tokens_read)
        self.shares_prefixes = bool(cache.use_prefix_sharing)

    def start(self) -> None:
        self._manager.start()

    def stop(self) -> None:
        """Blocks until its thread has ended; what runs fails. A second call does nothing."""
        manager, self._manager = self._manager, None
        if manager is None:
            return
        if manager.is_running():
            manager.stop(block=True, timeout=JOIN_S, hard_stop=True)
        manager.batch_processor = None  # frees the KV cache
        for queue in self._results.queues.values():
            queue.put_nowait(None)

    @property
    def stopped(self) -> bool:
        """It has ended by itself."""
        manager = self._manager
        return manager is not None and manager.background_thread_status.can_accept_new_requests() is not None

    @property
    def steps(self) -> int:
        """How many forward passes it has made."""
        return int(getattr(self._running(), "current_batch", 0))

    async def tokens(
        self, request: Request, ids: Sequence[int], max_tokens: int, ends: bool = True
    ) -> AsyncGenerator[tuple[list[int], bool], None]:
        """The answer's tokens as they come, and whether these are the last. Closing it cancels the request.

        Raises RequestError if the request failed, EngineClosed if the loop did.
        """
        manager = self._running()
        queue: asyncio.Queue[Any] = asyncio.Queue()
        self._results.queues[request.id] = queue
        finished, told = False, 0
        try:
            manager.add_request(
                list(ids),
                request_id=request.id,
                max_new_tokens=max_tokens,
                streaming=True,
                eos_token_id=None if ends else NO_END,
                request=request,
            )
            # It drops requests once it is stopping; one that came just then may not even be reported as failed.
            self._running()
            while not finished:
                output = await queue.get()
                if output is None:
                    self._running()
                finished = output.is_finished()
                if request.error is not None:
                    raise request.error
                if output.status == RequestStatus.FAILED:
                    self._running()
                    raise RequestError(f"The request failed: {output.error}")
                new, told = output.generated_tokens[told:], len(output.generated_tokens)
                yield new, finished
        finally:
            del self._results.queues[request.id]
            if not finished:
                manager.cancel_request(request.id)

    def forget_prefixes(self) -> None:
        """Empty the prefix cache of all that no running request uses. Blocks for a step; not on the event loop."""
        manager = self._running()
        try:
            # Twice: requests cancelled before the first pause give their blocks back after it.
            for _ in range(2):
                with manager.pause():
                    manager.batch_processor.cache.evict_cached_blocks()
        except RuntimeError:
            self._running()
            raise

    def _running(self) -> Any:
        manager = self._manager
        if manager is None:
            raise EngineClosed("The engine has been closed.")
        status = manager.background_thread_status
        refusal = status.can_accept_new_requests()
        if refusal is not None:
            raise EngineClosed(f"The engine has stopped: {status.fatal_error or refusal}")
        return manager
