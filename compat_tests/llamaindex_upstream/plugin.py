"""A pytest plugin: whatever a test calls of LlamaIndex that can be accelerated is, from its first call on.

    pytest -p compat_tests.llamaindex_upstream.plugin --accel-llamaindex path/to/tests

An object stays the test's own: its accelerated copy, which gets the calls, has the same attributes, not a copy of them.
Models and embeddings count as pure, also a test's own.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.base import BaseLLM

import accel
from accel.insight import Insight
from accel.run.gains.pace import load
from accel.run.scope import scope
from accel_llamaindex.kinds import MAIN

COUNTED = ("demanded", "issued", "retired")
fast: dict[int, tuple[Any, Any]] = {}
"""By the identity of an object of the test that runs: the object, and its accelerated copy."""
counts = dict.fromkeys(("objects", *COUNTED), 0)


def kinds(base: type) -> Iterator[type]:
    """A class and all that are made of it so far."""
    yield base
    for sub in base.__subclasses__():
        yield from kinds(sub)


def accelerated(obj: Any) -> Any:
    if id(obj) not in fast:
        copy = accel.accelerate(obj)
        object.__setattr__(copy, "__dict__", vars(obj))
        fast[id(obj)] = (obj, copy)
    return fast[id(obj)][1]


def entering(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A method that opens runs: outside of them, the accelerated copy's."""

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if scope.get() is None and not isinstance(self, Insight):
            return getattr(accelerated(self), name)(*args, **kwargs)
        return original(self, *args, **kwargs)

    return method


def adopt() -> None:
    """Tests define classes of their own: look again before each."""
    for base in (BaseLLM, BaseEmbedding):
        for cls in kinds(base):
            accel.register(cls, pure=True, local=True, concurrency=8)
    for base, methods in MAIN:
        names = [name for pair in methods for name in pair] or ["run"]
        for cls in kinds(base):
            for name in names if not issubclass(cls, Insight) else ():
                found = vars(cls).get(name)
                if inspect.isfunction(found) and not hasattr(found, "accel_enters"):
                    entry: Any = entering(name, found)
                    entry.accel_enters = True
                    type.__setattr__(cls, name, entry)


# --- pytest's hooks


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accel-llamaindex", action="store_true", help="accelerate what tests call")
    parser.addoption("--accel-results", metavar="FILE", help="a line of JSON for each test")


def pytest_configure(config: pytest.Config) -> None:
    load.enabled = False  # all runs are followed, also on a busy machine


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if item.config.getoption("--accel-llamaindex"):
        adopt()
    try:
        return (yield)
    finally:
        accel.settle()
        counts["objects"] += len(fast)
        for _, copy in fast.values():
            for name in COUNTED:
                counts[name] += getattr(copy._accel.plan.total, name)
        fast.clear()


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    path = item.config.getoption("--accel-results")
    if path and (call.when == "call" or call.excinfo is not None):
        _write(path, {"test": item.nodeid, "passed": call.excinfo is None})


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--accel-results")
    if path:
        _write(path, {"counts": counts})


def _write(path: str, line: dict[str, Any]) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
