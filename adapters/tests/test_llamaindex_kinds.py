"""Every kind of LlamaIndex object, unmodified and accelerated: what it answers, its sources and its memory are the
same, and what may be early is."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from llama_index.core import Settings

import accel

from .llamaindex_kinds import KINDS, Clerk, Kind, Letters
from .llamaindex_programs import QUESTIONS

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's own calls of what it deprecates


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What programs that name no model take."""
    monkeypatch.setattr(Settings, "_llm", Clerk())
    monkeypatch.setattr(Settings, "_embed_model", Letters())


def ask(obj: Any, kind: Kind, question: str) -> Any:
    found = kind.ask(obj, question)
    return asyncio.run(found) if inspect.iscoroutine(found) else found


@pytest.mark.parametrize("name", KINDS)
def test_whole(name: str) -> None:
    kind = KINDS[name]
    plain, fast = kind.make(), accel.accelerate(kind.make())
    for question in QUESTIONS[:4]:
        assert ask(fast, kind, question) == ask(plain, kind, question)
        assert accel.settle()
    told = fast._accel.plan.total
    assert told.demanded > 0
    assert told.retired > 0 or not kind.early


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.aask is not None])
async def test_on_a_loop(name: str) -> None:
    kind = KINDS[name]
    assert kind.aask is not None
    plain, fast = kind.make(), accel.accelerate(kind.make())
    for question in QUESTIONS[:4]:
        assert await kind.aask(fast, question) == await kind.aask(plain, question)
        assert await asyncio.to_thread(accel.settle)
    assert fast._accel.plan.total.demanded > 0
