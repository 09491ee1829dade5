"""Streams that a run ends with: of an answer, or of a chat whose engine reads it in a thread or task of its own."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Generator
from typing import Any, TypeVar

from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse

from accel.parts.methods import patches
from accel.run.demands.streams import astreamed, streamed
from accel.run.run import Run
from accel.run.scope import scope

from .parts import LlamaHost

S = TypeVar("S", Generator[Any, None, None], AsyncGenerator[Any, None])
_followed: weakref.WeakSet[Any] = weakref.WeakSet()
"""Streams of chats that end their runs."""


def kept(run: Run, stream: S) -> S:
    """A stream that is thrown away unread ends its run, too."""
    weakref.finalize(stream, lambda: run.finish(False)).atexit = False  # as it is then: it may be `Gone`
    return stream


def watch_chats() -> None:
    """A chat's answer is read from the moment that it is made. Idempotent."""
    patches.wrap(StreamingAgentChatResponse, "__init__", _made)


def is_followed(response: StreamingAgentChatResponse) -> bool:
    return response.chat_stream in _followed or response.achat_stream in _followed


def _is_chat(run: Run) -> bool:
    return isinstance(run.host, LlamaHost) and isinstance(run.host.main, BaseChatEngine)


def _made(wrapped: Any, response: StreamingAgentChatResponse, args: Any, kwargs: Any) -> None:
    wrapped(*args, **kwargs)
    here = scope.get()
    if here is None or here.early or here.visit is not None or here.call is not None or not _is_chat(here.run):
        return
    run, parts, aparts = here.run, response.chat_stream, response.achat_stream
    if isinstance(parts, Generator):
        response.chat_stream = kept(run, streamed(lambda: run, lambda: parts))
        _followed.add(response.chat_stream)
    elif isinstance(aparts, AsyncGenerator):
        response.achat_stream = kept(run, astreamed(lambda: run, lambda: aparts))
        _followed.add(response.achat_stream)
