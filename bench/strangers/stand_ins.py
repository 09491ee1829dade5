"""Modules that public programs import and that are no more, or not here: by name, what stands in for them.

Where a module of LangChain's has moved, its new place answers to the old name. Prompts of LangChain's hub can't be
downloaded here: ours have the same variables and ask for the same.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from typing import Any

MOVED = {
    "langchain.": "langchain_classic.",
    "langchain_core.pydantic_v1": "pydantic",
    "langgraph.pregel.retry": "langgraph.types",
}
"""Beginnings of names, and what they are now."""
PROMPTS = {
    "rlm/rag-prompt": (
        "You are an assistant for question-answering tasks. Use the following pieces of retrieved context to answer. "
        "Use three sentences at most.\nQuestion: {question}\nContext: {context}\nAnswer:"
    ),
    "hwchase17/self-discovery-select": (
        "Select several reasoning modules that are crucial to solve the task below.\n{reasoning_modules}\n\n"
        "Task: {task_description}\n\nWhich modules are crucial?"
    ),
    "hwchase17/self-discovery-adapt": (
        "Rephrase each reasoning module so that it better helps to solve the task.\nSelected modules:\n"
        "{selected_modules}\n\nTask: {task_description}\n\nAdapt each module."
    ),
    "hwchase17/self-discovery-structure": (
        "Turn the reasoning modules into a step-by-step reasoning plan.\nAdapted modules:\n{adapted_modules}\n\n"
        "Task: {task_description}\n\nWrite the plan."
    ),
    "hwchase17/self-discovery-reasoning": (
        "Follow the plan step by step to arrive at the answer.\nReasoning structure:\n{reasoning_structure}\n\n"
        "Task: {task_description}"
    ),
}


def install() -> None:
    sys.modules["langchain.hub"] = _hub()
    import langchain

    langchain.hub = sys.modules["langchain.hub"]  # type: ignore[attr-defined]
    sys.meta_path.append(_Elsewhere())
    _question_generator()
    _mcp()


def _mcp() -> None:
    """Names that programs import for servers of tools, of which none is used."""

    class MultiServerMCPClient: ...

    class McpError(Exception): ...

    outer, client = types.ModuleType("langchain_mcp_adapters"), types.ModuleType("langchain_mcp_adapters.client")
    client.MultiServerMCPClient = MultiServerMCPClient  # type: ignore[attr-defined]
    sys.modules |= {"langchain_mcp_adapters": outer, "langchain_mcp_adapters.client": client}
    try:
        import mcp
    except ImportError:
        mcp = sys.modules["mcp"] = types.ModuleType("mcp")
    if not hasattr(mcp, "McpError"):
        mcp.McpError = McpError  # type: ignore[attr-defined]


def _question_generator() -> None:
    """LlamaIndex's package of this name needs parts of its core that are no more."""
    try:
        from llama_index.core.question_gen import LLMQuestionGenerator
    except ImportError:
        return

    class OpenAIQuestionGenerator(LLMQuestionGenerator): ...

    module = types.ModuleType("llama_index.question_gen.openai")
    module.OpenAIQuestionGenerator = OpenAIQuestionGenerator  # type: ignore[attr-defined]
    sys.modules["llama_index.question_gen.openai"] = module


def _hub() -> types.ModuleType:
    from langchain_core.prompts import ChatPromptTemplate

    hub = types.ModuleType("langchain.hub")

    def pull(name: str, **options: Any) -> Any:
        return ChatPromptTemplate.from_messages([("human", PROMPTS[name.partition(":")[0]])])

    hub.pull = pull  # type: ignore[attr-defined]
    return hub


class _Elsewhere(MetaPathFinder, Loader):
    """Asked last: what nobody else has found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if self._place(fullname) else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return import_module(self._place(spec.name) or spec.name)

    def exec_module(self, module: types.ModuleType) -> None: ...

    @staticmethod
    def _place(name: str) -> str | None:
        for before, now in MOVED.items():
            if name.startswith(before):
                return now + name.removeprefix(before)
        return None
