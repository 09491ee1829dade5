"""For tests of the LlamaIndex classes: a language model whose answers a test writes, and ways to ask it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.llms import ChatMessage

import accel_local
from accel.engine import DEMAND, Delta, Priority, Prompt, Sampling, Usage
from accel.engine import ChatMessage as PromptMessage
from accel.engine.profile import Profile
from accel.errors import RequestError
from accel_llamaindex import AccelLLM

MESSAGES = [ChatMessage(role="system", content="Be short."), ChatMessage(role="user", content="List three colours.")]
RENDERED = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "List three colours."}]


@dataclass(frozen=True)
class Scripted:
    """The config of an engine that gives these parts, and after them its error or nothing for ever."""

    parts: tuple[str, ...] = ("Red", ", green", ", blue")
    error: str = ""
    endless: bool = False
    name: str = "scripted"

    @property
    def label(self) -> str:
        return self.name

    def create(self) -> ScriptedLLM:
        return ScriptedLLM(self)


class ScriptedLLM:
    """`asked`: what it was asked, in order; `open`: the answers it is giving now."""

    known_profile: Profile | None = None
    max_prompt_tokens = 99
    cache_block_tokens = 2

    def __init__(self, config: Scripted) -> None:
        self._config = config
        self.asked: list[tuple[Prompt, Sampling, int]] = []
        self.prefilled: list[tuple[list[int], int]] = []
        self._rendered: dict[int, Prompt] = {}
        self.open = 0
        self.idle = threading.Event()

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def profile(self) -> Profile:
        raise NotImplementedError

    def encode(self, prompt: Prompt) -> list[int]:
        self._rendered[len(self._rendered)] = prompt
        return [len(self._rendered) - 1]

    def encode_prefix(self, messages: Sequence[PromptMessage]) -> list[int]:
        return [ord(letter) for letter in str(messages[-1]["content"])]

    async def generate(
        self, prompt: Prompt, sampling: Sampling, *, priority: Priority = DEMAND
    ) -> AsyncGenerator[Delta, None]:
        assert isinstance(prompt, list) and isinstance(prompt[0], int)
        self.asked.append((self._rendered[prompt[0]], sampling, priority.value))
        self.open += 1
        self.idle.clear()
        try:
            for part in self._config.parts:
                yield Delta(part, 1)
            if self._config.endless:
                await asyncio.Event().wait()
            if self._config.error:
                yield Delta("", 0, "error", error=RequestError(self._config.error))
            else:
                yield Delta(".", 1, "stop", Usage(7, 2, len(self._config.parts) + 1))
        finally:
            self.open -= 1
            if not self.open:
                self.idle.set()

    async def prefill(self, token_ids: Sequence[int], *, priority: Priority = DEMAND) -> int:
        self.prefilled.append((list(token_ids), priority.value))
        return len(token_ids)


_names = iter(range(10_000))


def scripted(*parts: str, **settings: Any) -> tuple[AccelLLM, ScriptedLLM]:
    """A model on an engine of its own."""
    of_engine = {key: settings.pop(key) for key in ("error", "endless") if key in settings}
    config = Scripted(**({"parts": parts} if parts else {}), name=f"scripted {next(_names)}", **of_engine)
    return AccelLLM(engine=config, **settings), accel_local.engine(config)  # type: ignore[arg-type]


async def everything(llm: AccelLLM, *, chat: bool = True, **options: Any) -> list[list[Any]]:
    """The responses of the four ways to ask: whole, awaited, streamed, streamed asynchronously."""
    if chat:
        return [
            [llm.chat(MESSAGES, **options)],
            [await llm.achat(MESSAGES, **options)],
            list(llm.stream_chat(MESSAGES, **options)),
            [part async for part in await llm.astream_chat(MESSAGES, **options)],
        ]
    return [
        [llm.complete("List three colours.", **options)],
        [await llm.acomplete("List three colours.", **options)],
        list(llm.stream_complete("List three colours.", **options)),
        [part async for part in await llm.astream_complete("List three colours.", **options)],
    ]


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Runs `work` in a thread; the list gets its result or exception."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:  # noqa: BLE001  handed to the test
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome
