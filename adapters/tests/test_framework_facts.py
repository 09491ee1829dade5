"""What the adapters take from the frameworks beyond their public interfaces. One that changes fails here first."""

from __future__ import annotations

import subprocess
import sys
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers._streaming import _StreamingCallbackHandler
from langgraph._internal._constants import CONFIG_KEY_RESUMING
from langgraph._internal._runnable import RunnableCallable
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import _TaskFunction, entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.pregel import Pregel
from langgraph.pregel._read import PregelNode
from langgraph.types import Command, Send, interrupt
from langsmith._internal import _context
from typing_extensions import TypedDict

from accel_langgraph.views import view_answer
from accel_langgraph.visits import _answers


class State(TypedDict):
    topic: str


def compiled() -> Any:
    graph = StateGraph(State)
    graph.add_node("ask", lambda state: {"topic": "b"})
    graph.add_edge(START, "ask")
    return graph.compile()


def test_a_node_s_runnable_is_made_once_and_kept() -> None:
    """`_observed` puts its own in the place of it."""
    assert isinstance(vars(PregelNode)["node"], cached_property)
    node = compiled().nodes["ask"]
    assert node.node is node.node is vars(node)["node"]
    assert isinstance(node.node.steps[0], RunnableCallable)
    assert callable(node.node.steps[0].func) and not node.node.steps[0].func_accepts


def test_a_graph_tells_its_edges() -> None:
    """`topology_of` reads them."""
    builder = compiled().builder
    assert builder._all_edges == {(START, "ask"), ("ask", "__end__")} or builder._all_edges == {(START, "ask")}
    assert builder.branches == {} and builder.nodes["ask"].ends in ((), None)


def test_an_entrypoint_is_a_graph_of_one_node() -> None:
    @task
    def one(value: str) -> str:
        return value

    @entrypoint()
    def main(value: str) -> str:
        return one(value).result()

    assert isinstance(main, Pregel) and set(main.nodes) == {"main"}
    assert isinstance(one, _TaskFunction) and one.func("x") == "x"
    assert main.invoke("x") == "x"


def test_what_streams_and_traces_go_by_is_where_it_was() -> None:
    """`hosts` and `graph` take these from modules that promise nothing."""
    assert CONFIG_KEY_RESUMING.startswith("__pregel")
    assert isinstance(_context._PARENT_RUN_TREE_REF, ContextVar)
    assert hasattr(_StreamingCallbackHandler, "tap_output_iter")
    assert compiled().nodes["ask"].subgraphs == []


def test_what_a_node_finds_answered_is_in_its_configuration() -> None:
    """`visits` takes it from there, and leaves it to `interrupt()`."""
    found: list[list[Any]] = []

    def ask(state: State, config: RunnableConfig) -> State:
        found.append(list(_answers(config)))
        return {"topic": f"{interrupt('one?')} {interrupt('two?')}"}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    graph, thread = builder.compile(InMemorySaver()), {"configurable": {"thread_id": "1"}}
    for given in ({"topic": "a"}, Command(resume="yes"), Command(resume="no")):
        graph.invoke(given, thread)  # type: ignore[arg-type]
    assert found == [[], ["yes"], ["yes", "no"]] and graph.get_state(thread).values == {"topic": "yes no"}  # type: ignore[arg-type]
    assert _answers(None) == _answers({}) == ()


def test_the_configuration_of_a_run_is_in_a_variable() -> None:
    seen = []
    graph = StateGraph(State)
    graph.add_node("ask", lambda state: seen.append(var_child_runnable_config.get()))
    graph.add_edge(START, "ask")
    graph.compile().invoke({"topic": "a"}, {"configurable": {"tenant": "x"}})
    assert seen[0]["configurable"]["tenant"] == "x"


def test_a_node_s_configuration_says_where_it_runs() -> None:
    """`visits` goes by that: which graph a node belongs to, and which of several `Send`s it is for."""
    seen: list[tuple[str, Any]] = []

    def note(state: State, config: RunnableConfig) -> State:
        about = config["metadata"]
        assert isinstance(about["langgraph_step"], int)
        seen.append((about["langgraph_checkpoint_ns"], about["langgraph_path"]))
        return state

    inner = StateGraph(State)
    inner.add_sequence([("first", note), ("second", note)])
    inner.add_edge(START, "first")
    twice = inner.compile()

    def outer(state: State, config: RunnableConfig) -> None:
        note(state, config)
        twice.invoke(state)
        twice.invoke(state)

    graph = StateGraph(State)
    graph.add_node("outer", outer)
    graph.add_conditional_edges(START, lambda state: [Send("outer", {"topic": topic}) for topic in "ab"], ["outer"])
    graph.compile().invoke({"topic": "a"}, {"max_concurrency": 1})
    paths = [path for names, path in seen if "|" not in names]
    assert [[part for part in path if type(part) is int] for path in paths] == [[0], [1]]
    around = {names for names, _ in seen if "|" not in names}
    assert len(around) == 2
    for names in around:
        inside = [held.rpartition("|") for held, _ in seen if held.startswith(f"{names}|")]
        assert [own.partition(":")[0] for *_, own in inside] == ["first", "second"] * 2
        (one, other, *_), (again, last) = [graph for graph, *_ in inside[:2]], [graph for graph, *_ in inside[2:]]
        assert one == other != again == last, "the nodes of one run of a graph have the same names before their own"


TWICE = """
import pytest

ACCEL_DIFFERENTIAL = True
made = []

@pytest.fixture(scope="module")
def wide():
    made.append("module")

@pytest.fixture
def narrow(wide, accel_mode):
    made.append(accel_mode)

def test_it(narrow, compared):
    compared(1)

def test_after(wide):
    assert made == ["module", "plain", "accelerated", "forced"]

def test_unequal(compared, accel_mode):
    compared(accel_mode == "forced")

def test_fails_only_accelerated(accel_mode):
    assert accel_mode != "accelerated"
"""


def test_pytest_runs_a_test_again(tmp_path: Path) -> None:
    """In three modes (`accel_langgraph.testing.plugin`); fixtures of the module live on, those of the test do not."""
    (tmp_path / "test_twice.py").write_text(TWICE)
    (tmp_path / "pytest.ini").write_text("[pytest]")
    command = [sys.executable, "-m", "pytest", "-p", "accel_langgraph.testing.plugin", "-q", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "4 passed" in ran.stdout and "2 failed" in ran.stdout, ran.stdout
    assert "forced: not as the plain graph" in ran.stdout


COMPILED = """
import pytest
from langgraph.graph import START, StateGraph

def compiled():
    return StateGraph(dict).add_node("only", lambda state: state).add_edge(START, "only").compile()

on_import = compiled()

def test_a_graph_of_the_module():
    assert on_import.invoke({"a": 1}) == {"a": 1}

def test_none():
    compiled()

def test_its_own():
    assert compiled().invoke({"a": 1}) == {"a": 1}
"""


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--accel-differential"], 0, False),
        (["--accel-differential", "-k", "test_none or of_the_module"], 5, True),
        (["--accel-differential", "-k", "nowhere"], 5, False),
        (["--accel-differential", "--collect-only"], 0, False),
        (["-k", "test_none"], 0, False),
    ],
)
def test_where_nothing_was_compared_pytest_says_so(tmp_path: Path, words: list[str], code: int, says: bool) -> None:
    (tmp_path / "test_compiled.py").write_text(COMPILED)
    (tmp_path / "pytest.ini").write_text("[pytest]")
    command = [sys.executable, "-m", "pytest", "-p", "accel_langgraph.testing.plugin", "-q", str(tmp_path), *words]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ran.returncode, "nothing was compared" in ran.stdout) == (code, says), ran.stdout


def test_what_a_program_gets_of_an_answer_is_what_accel_saw_of_it() -> None:
    """`view_answer`: LangChain puts what a client says of the call among what the message says."""

    class Client(GenericFakeChatModel):
        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            made = ChatGeneration(
                message=AIMessage("yes", response_metadata={"by": "message", "of": 1}),
                generation_info={"by": "info", "n": 2},
            )
            seen.append(ChatResult(generations=[made], llm_output={"by": "output", "id": "a1", "n": 3}))
            views.append(view_answer(seen[-1]))
            return seen[-1]

    seen: list[ChatResult] = []
    views: list[Any] = []
    message = Client(messages=iter(())).invoke("Is it?")
    assert message.response_metadata == {"by": "message", "id": "a1", "n": 2, "of": 1}
    assert views[0]["response_metadata"] == message.response_metadata
    assert list(views[0]["response_metadata"]) == list(message.response_metadata), "as it would be printed"
