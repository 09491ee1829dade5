"""A model that every node asks before it does its own work: programs without components have calls to predict, too.

What a node asks names the node and the first text in its input, so the answers tell whether a call was answered for
another. They change nothing in the graph's results.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import random
import time
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.constants import START

from accel.run.ongoing import followed
from accel.run.scope import scope
from accel.text.values import leaves, snapshot

SETTLE_S = 10.0
delays: random.Random | None = None
"""Where nodes that run side by side shall take turns in any order: tiny delays before they ask."""


class Witness(BaseChatModel):
    """Answers with a digest of the prompt."""

    __accel__ = {"pure": True, "concurrency": 8, "local": True}

    @property
    def _llm_type(self) -> str:
        return "witness"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer(str(messages[0].content))))])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


WITNESS = Witness()


class WrongAnswer(AssertionError):
    """A call was answered with what belongs to another."""


def answer(prompt: str) -> str:
    return hashlib.sha256(prompt.encode(errors="replace")).hexdigest()[:12]


def watch(graph: Any) -> None:
    """Have every node of a compiled graph ask, in place."""
    for name, node in list(graph.nodes.items()):
        runnable = node.node
        if runnable is not None and name != START:
            seen = copy.copy(node)
            shadow: Any = object.__new__(_asking(type(runnable)))
            shadow.__dict__.update(runnable.__dict__)
            shadow.asking_node = name
            seen.__dict__["node"] = shadow
            graph.nodes[name] = seen


_asking_classes: dict[type, type] = {}


def _asking(cls: type) -> type:
    if cls in _asking_classes:
        return _asking_classes[cls]
    base: Any = cls

    def invoke(self: Any, input: Any, config: Any = None, **kwargs: Any) -> Any:
        prompt = _prompt(self.asking_node, input)
        _let_others_start()
        if delays is not None:
            time.sleep(delay_s())
        _check(prompt, WITNESS._generate([HumanMessage(prompt)]))
        return base.invoke(self, input, config, **kwargs)

    async def ainvoke(self: Any, input: Any, config: Any = None, **kwargs: Any) -> Any:
        prompt = _prompt(self.asking_node, input)
        _let_others_start()
        if delays is not None:
            await asyncio.sleep(delay_s())
        _check(prompt, await WITNESS._agenerate([HumanMessage(prompt)]))
        return await base.ainvoke(self, input, config, **kwargs)

    members = {"invoke": invoke, "ainvoke": ainvoke, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    _asking_classes[cls] = type(cls.__name__, (cls,), members)
    return _asking_classes[cls]


def delay_s() -> float:
    return delays.uniform(0.0, 0.002) if delays is not None else 0.0


def _let_others_start() -> None:
    """A call of a real model takes time: what can be issued meanwhile, is."""
    if scope.get() is not None:
        followed(SETTLE_S)


def _prompt(node: str, given: Any) -> str:
    texts = [leaf for _, leaf in leaves(snapshot(given)) if isinstance(leaf, str) and leaf]
    return f"Node {node} was given {texts[0]}" if texts else f"Node {node} was given no text"


def _check(prompt: str, result: ChatResult) -> None:
    if result.generations[0].text != answer(prompt):
        raise WrongAnswer(f"{result.generations[0].text!r} isn't the answer to {prompt!r}")
