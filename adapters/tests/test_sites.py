"""What counts as the program's own code, wherever libraries were installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from accel.parts.program.code import is_users_module
from accel.trace.sites import is_frameworks, name_of

LAYER = "/opt/layer"
"""A folder beside the program, as `pip install --target` makes it."""
LIBRARIES = ("langchain_core.runnables.base", "langgraph.pregel.main", "langchain_openai.chat_models.base",
             "langchain.agents.factory", "llama_index.core.query_engine", "llama_index.llms.openai.base")  # fmt: skip
PROGRAMS = ("langgraph_app.nodes", "langchain_of_ours", "workflows_of_ours.flow", "service.main")


def module_at(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The file of a module of this name, which stands there."""
    module = ModuleType(name)
    module.__file__ = f"{LAYER}/{name.replace('.', '/')}.py"
    monkeypatch.setitem(sys.modules, name, module)
    is_frameworks.cache_clear()
    is_users_module.cache_clear()
    return module.__file__


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What was asked of modules that stood elsewhere."""
    yield
    is_frameworks.cache_clear()
    is_users_module.cache_clear()


@pytest.mark.parametrize("name", LIBRARIES)
def test_frameworks_and_their_integrations_are_none_of_the_program_s(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = compile("pass", module_at(name, monkeypatch), "exec")
    assert not is_users_module(name) and name_of(code, name) == ""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_may_be_called_like_a_framework(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = module_at(name, monkeypatch)
    code = compile("pass", file, "exec")
    assert is_users_module(name) and name_of(code, name) == f"{file.rsplit('/', 1)[-1]}:<module>"
