"""vLLM's AsyncLLM behind `accel.engine.LLMEngine`.

Prefix sharing is the stock prefix cache: `prefill` is a request of one output token whose blocks later requests find.
"""

import asyncio
import atexit
import contextlib
import functools
import logging
import multiprocessing.spawn
import os
import re
import shutil
import tempfile
import threading
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any

from accel.engine import DEMAND, ChatMessage, Constraint, Delta, Priority, Prompt, Sampling, TokenIds, Usage
from accel.engine.batching import request_priority
from accel.engine.profile import Profile
from accel.engine.slots import Room, Slots
from accel.errors import (
    AccelError,
    EngineClosed,
    EngineStartError,
    InvalidRequest,
    MissingExtra,
    ModelNotFound,
    RequestError,
)
from accel.process import clock
from accel_local.models import model_path
from accel_local.processes import ChildProcesses, sweep
from accel_local.profiles import recall, remember
from accel_local.threads import Worker
from accel_vllm.chat import PromptEncoder
from accel_vllm.config import VLLMConfig
from accel_vllm.memory import GIB, check_memory
from accel_vllm.profile import measure_profile

log = logging.getLogger("accel.vllm")

CPU_BLOCK_TOKENS = 32  # the smallest that starts on CPU; with its default of 128 short prefixes gain nothing
CPU_BATCHED_TOKENS = 256  # a long prefill stalls the requests that decode beside it for a step of this size
CPU_KV_CACHE_GIB = 1.0
FEW_CORES = 4
STARTING = 0.25  # share of the places for prompts not answered yet: vLLM's own queue keeps the order it was given


class VLLMEngine:
    def __init__(self, config: VLLMConfig) -> None:
        self._config = config
        self._llm: Any = None
        self._encoder: PromptEncoder | None = None
        self._children: ChildProcesses | None = None
        self._block_tokens = 0
        self._batch_tokens = 0
        self._profile: Profile | None = None
        self._profiling = asyncio.Lock()
        self._closed = False
        self._slots = Slots(config.max_num_seqs, starting=max(1, int(config.max_num_seqs * STARTING)))

    # Life

    async def start(self) -> None:
        folder = model_path(self._config.model)
        _set_environment(offline=os.path.isabs(folder))  # else it is a hub name
        sweep()
        self._children = ChildProcesses("VLLM::")
        abandoned = threading.Event()
        loader = Worker("accel-vllm-load")
        try:
            self._llm = await loader.do(lambda: self._load(folder, abandoned))
        except BaseException as error:
            abandoned.set()
            loader.stop()
            # Without its processes the load fails soon; until its thread is gone it may still start some.
            while not loader.ended(wait_s=0.2):
                self._children.end()
            self._children.end()
            if isinstance(error, AccelError) or not isinstance(error, Exception):
                raise
            raise _start_error(self._config, error) from error
        loader.stop()
        self._children.remember()
        self._encoder = PromptEncoder(self._llm.get_tokenizer())

    def _load(self, folder: str, abandoned: threading.Event) -> Any:
        try:
            from vllm import AsyncEngineArgs
            from vllm.platforms import current_platform
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as error:
            raise MissingExtra("The vLLM engine", "vllm", error.name or "") from error
        config = self._config
        options: dict[str, Any] = {
            "model": folder,
            "dtype": config.dtype,
            "max_model_len": config.max_model_len,
            "max_num_seqs": config.max_num_seqs,
            "scheduling_policy": "priority",
            "enable_prefix_caching": True,
            "disable_log_stats": True,
            "use_tqdm_on_load": False,
        }
        kv_cache_gib = config.kv_cache_gib
        if current_platform.is_cpu():
            kv_cache_gib = CPU_KV_CACHE_GIB if kv_cache_gib is None else kv_cache_gib
            check_memory(Path(folder), config.dtype, kv_cache_gib, config.max_model_len)
            options["enforce_eager"] = True
            options["block_size"] = config.block_tokens or CPU_BLOCK_TOKENS
            options["max_num_batched_tokens"] = config.max_num_batched_tokens or CPU_BATCHED_TOKENS
        else:
            options["gpu_memory_utilization"] = config.gpu_memory_utilization
            if config.block_tokens is not None:
                options["block_size"] = config.block_tokens
            if config.max_num_batched_tokens is not None:
                options["max_num_batched_tokens"] = config.max_num_batched_tokens
        if kv_cache_gib is not None:
            options["kv_cache_memory_bytes"] = int(kv_cache_gib * GIB)
        if abandoned.is_set():
            raise EngineClosed("The engine was closed while it started.")
        with _children_without_main():
            llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**options))
        if abandoned.is_set():
            llm.shutdown(timeout=5)
            raise EngineClosed("The engine was closed while it started.")
        self._block_tokens = int(llm.vllm_config.cache_config.block_size)
        self._batch_tokens = int(llm.vllm_config.scheduler_config.max_num_batched_tokens)
        self._slots.caches(self._block_tokens, llm.vllm_config.cache_config.num_gpu_blocks)
        return llm

    @property
    def stopped(self) -> bool:
        llm = self._llm
        return llm is not None and bool(llm.errored)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # Blocking, on purpose: at interpreter exit no thread can be started any more.
        if self._children is not None:
            self._children.remember()
        llm, self._llm = self._llm, None
        if llm is not None:
            if llm.output_handler is not None:
                llm.output_handler.cancel()  # or it reports the end of the processes as a failure
                await asyncio.wait([llm.output_handler])
            llm.shutdown(timeout=5)
            # Its finalizer shuts down again, possibly when modules are half gone.
            llm.shutdown = lambda timeout=None: None
        if self._children is not None:
            self._children.end()

    async def reset_prefix_cache(self) -> None:
        """Forget all cached prompts; benchmarks do this between arms."""
        self._slots.prefixes.forget()
        if self._llm is not None:
            await self._llm.reset_prefix_cache()

    @property
    def room(self) -> Room:
        return self._slots.room

    # Prompts

    @property
    def max_prompt_tokens(self) -> int:
        return self._config.max_model_len - 1

    @property
    def cache_block_tokens(self) -> int:
        return self._block_tokens

    def encode(self, prompt: Prompt) -> list[int]:
        return self._running_encoder().encode(prompt)

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]:
        return self._running_encoder().encode_prefix(messages)

    def _running_encoder(self) -> PromptEncoder:
        if self._encoder is None or self._closed:
            raise EngineClosed(f"{self._config.label} is not running.")
        return self._encoder

    # Requests

    async def generate(
        self, prompt: Prompt, sampling: Sampling, *, priority: Priority = DEMAND
    ) -> AsyncGenerator[Delta, None]:
        try:
            token_ids = self.encode(prompt)
            self._check_length(token_ids)
            async with (
                self._slots.place(priority, token_ids) as begun,
                contextlib.aclosing(self._deltas(token_ids, sampling, priority)) as deltas,
            ):
                async for delta in deltas:
                    begun()
                    yield delta
        except RequestError as error:
            yield Delta("", 0, "error", error=error)

    async def _deltas(
        self, token_ids: list[int], sampling: Sampling, priority: Priority
    ) -> AsyncGenerator[Delta, None]:
        from vllm import TokensPrompt
        from vllm.exceptions import VLLMValidationError
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        completion = 0
        try:
            parameters = self._parameters(sampling, len(token_ids))
            # A copy: vLLM appends the answer to the list it is given.
            request = TokensPrompt(prompt_token_ids=list(token_ids))
            rank = request_priority(priority, clock.now_s())
            outputs = self._llm.generate(request, parameters, uuid.uuid4().hex, priority=rank)
            async with contextlib.aclosing(outputs):
                async for output in outputs:
                    piece = output.outputs[0]
                    completion += len(piece.token_ids)
                    if piece.finish_reason is None:
                        yield Delta(piece.text, len(piece.token_ids))
                        continue
                    if piece.finish_reason not in ("stop", "length"):
                        raise RequestError(f"vLLM ended the request: {piece.finish_reason}.")
                    usage = Usage(len(token_ids), output.num_cached_tokens or 0, completion)
                    yield Delta(piece.text, len(piece.token_ids), piece.finish_reason, usage)
        except EngineDeadError as error:
            raise EngineClosed(f"{self._config.label} has stopped.") from error
        except EngineGenerateError as error:
            raise RequestError(f"vLLM could not serve the request: {error}") from error
        except (VLLMValidationError, ValueError, TypeError) as error:
            # How vLLM rejects parameters, among them JSON schemas it cannot compile.
            raise InvalidRequest(f"vLLM rejects the request: {error}") from error

    async def prefill(self, token_ids: TokenIds, *, priority: Priority = DEMAND) -> int:
        whole_blocks = len(token_ids) // self._block_tokens * self._block_tokens
        if whole_blocks == 0:
            return 0
        self._check_length(token_ids)
        async with self._slots.place(priority, token_ids[:whole_blocks]):
            async for _ in self._deltas(list(token_ids[:whole_blocks]), Sampling(max_tokens=1), priority):
                pass
        return whole_blocks

    def _check_length(self, token_ids: TokenIds) -> None:
        if self._closed or self._llm is None:
            raise EngineClosed(f"{self._config.label} is not running.")
        if not token_ids:
            raise InvalidRequest("The prompt is empty.")
        if len(token_ids) > self.max_prompt_tokens:
            raise InvalidRequest(
                f"The prompt has {len(token_ids)} tokens; the engine takes at most {self.max_prompt_tokens}.",
                "shorten the prompt, or raise max_model_len",
            )

    def _parameters(self, sampling: Sampling, prompt_tokens: int) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        return SamplingParams(
            max_tokens=min(sampling.max_tokens, self._config.max_model_len - prompt_tokens),
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=sampling.seed,
            ignore_eos=sampling.ignore_end,
            stop=list(sampling.stop),
            structured_outputs=_structured(sampling.constraint),
            output_kind=RequestOutputKind.DELTA,
        )

    @property
    def known_profile(self) -> Profile | None:
        return self._profile or recall(self._config.label)

    async def profile(self) -> Profile:
        async with self._profiling:
            if self._profile is None:
                self._profile = await measure_profile(self, self._batch_tokens, self._config.max_num_seqs)
                remember(self._config.label, self._profile)
            return self._profile


def _structured(constraint: Constraint | None) -> Any:
    if constraint is None:
        return None
    from vllm.sampling_params import StructuredOutputsParams

    match constraint.kind:
        case "json_schema":
            return StructuredOutputsParams(json=constraint.value)
        case "regex":
            return StructuredOutputsParams(regex=constraint.value)
        case "choice":
            return StructuredOutputsParams(choice=list(constraint.value))


def _set_environment(*, offline: bool) -> None:
    """vLLM reads these at import and passes them to its processes. What the user set stays."""
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_RPC_BASE_PATH", _socket_folder())
    if (os.cpu_count() or 1) <= FEW_CORES:
        # vLLM keeps a core free for its scheduler, which is half of a two-core machine: prefill 1.7 times slower.
        os.environ.setdefault("VLLM_CPU_NUM_OF_RESERVED_CPU", "0")
    if offline:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")


@functools.cache
def _socket_folder() -> str:
    """Where vLLM's processes meet: one folder for this process, gone with it. vLLM itself leaves its sockets behind."""
    for left in Path(tempfile.gettempdir()).glob("accel-vllm-*-*"):
        owner = left.name.split("-")[2]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(left, ignore_errors=True)  # its process was killed
    folder = tempfile.mkdtemp(prefix=f"accel-vllm-{os.getpid()}-")
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # and not a child that was forked from it
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _children_without_main() -> Iterator[None]:
    """Processes spawned by this thread do not import the user's main module.

    vLLM's processes need nothing of it, and a script without the `if __name__ == "__main__"` guard would run twice.
    """
    original = multiprocessing.spawn.get_preparation_data
    thread = threading.get_ident()

    def without_main(name: str) -> dict[str, Any]:
        data: dict[str, Any] = dict(original(name))
        if threading.get_ident() == thread:
            data.pop("init_main_from_name", None)
            data.pop("init_main_from_path", None)
        return data

    multiprocessing.spawn.get_preparation_data = without_main
    try:
        yield
    finally:
        multiprocessing.spawn.get_preparation_data = original


def _start_error(config: VLLMConfig, error: Exception) -> EngineStartError | ModelNotFound:
    text = str(error).strip()
    if re.search(r"address already in use", text, re.IGNORECASE):
        return EngineStartError("vLLM could not start: a port it was given is in use.", "unset VLLM_PORT, or free it")
    if re.search(r"(is not a local folder|find the requested files|couldn't connect|LocalEntryNotFound)", text):
        return ModelNotFound(
            f"Model {config.model!r} is not on this machine, and no model hub is reachable.",
            "give the folder of a model in Hugging Face format, or prepare one: python -m accel_local.models",
        )
    return EngineStartError(
        f"vLLM could not start: {text or type(error).__name__}", "its own log says more with VLLM_LOGGING_LEVEL=INFO"
    )
