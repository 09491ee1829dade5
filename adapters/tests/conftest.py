"""For the tests of the adapters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest


@pytest.fixture
def loop_at_hand() -> Iterator[None]:
    """For LlamaIndex, which takes the thread's loop from wherever there is none, and leaves one that it made open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()
