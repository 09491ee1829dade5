"""Listed read-only tools and retrievers: they retire early where their query may leave early, and all else is as
without Accel. Stand-ins with the names and modules of the real classes, which make the same calls of a wrapper."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, tool
from langgraph.prebuilt import ToolNode

import accel
from accel import accelerate
from accel.parts.components import facts_of
from accel.parts.methods.patches import is_installed
from adapters.tests.core_fakes import Chat, State, World, after_thinking, train

TOPIC = "beaches of Portugal"


class ArxivQueryRun(BaseTool):
    name: str = "arxiv"
    description: str = "An encyclopedia."
    api_wrapper: Any

    def _run(self, query: str, run_manager: Any = None) -> str:
        return str(self.api_wrapper.serve("arxiv", query))


class ArxivRetriever(BaseRetriever):
    world: Any
    top_k_results: int = 3

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        said = self.world.serve("arxiv", query)
        return [Document(f"{said} {n}") for n in range(self.top_k_results)]


ArxivQueryRun.__module__ = "langchain_community.tools.arxiv.tool"
ArxivRetriever.__module__ = "langchain_community.retrievers.arxiv"


class Posting(ArxivQueryRun):
    """A user's own: it tells somebody of every question."""

    def _run(self, query: str, run_manager: Any = None) -> str:
        self.api_wrapper.serve("post", f"posted: {query}")
        return super()._run(query, run_manager=run_manager)


class Glossary(BaseTool):
    """Nobody listed it, and LangChain gives it no callbacks."""

    name: str = "glossary"
    description: str = "What words mean."
    world: Any

    def _run(self, query: str) -> str:
        return str(self.world.serve("glossary", query))


def read_after_thinking(world: World, read: Any) -> Any:
    """A model answers; then the question, which was known all along, is looked up."""
    return after_thinking(world, lambda state: read(state["q"]))


def looked_up(world: World, found: Any) -> Any:
    return found.invoke if isinstance(found, BaseTool) else lambda q: [d.page_content for d in found.invoke(q)]


READS = [lambda world: ArxivQueryRun(api_wrapper=world), lambda world: ArxivRetriever(world=world)]


@pytest.mark.parametrize("make", READS, ids=["tool", "retriever"])
def test_it_is_retired_early_where_its_query_may_leave_early(make: Any) -> None:
    world = World()
    graph = read_after_thinking(world, looked_up(world, make(world)))
    expected = graph.invoke({"q": TOPIC})
    fast = accelerate(graph, egress="inputs")
    train(fast)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early(TOPIC)
    assert fast.invoke({"q": TOPIC}) == expected
    assert [(c.early, c.text) for c in world.calls if c.component == "arxiv"] == [(True, TOPIC)]
    assert fast.report().retired >= 1


@pytest.mark.parametrize("make", READS, ids=["tool", "retriever"])
def test_a_remote_service_gets_nothing_early_by_default(make: Any) -> None:
    world = World()
    fast = accelerate(read_after_thinking(world, looked_up(world, make(world))))
    train(fast, ("one topic", "two topics", "three topics"))
    assert [c.early for c in world.calls if c.component == "arxiv"] == [False] * 3


def test_a_subclass_of_a_listed_tool_is_never_run_early() -> None:
    world = World()
    posting = Posting(api_wrapper=world)
    fast = accelerate(read_after_thinking(world, posting.invoke), egress="inputs")
    train(fast, ("one topic", "two topics", "three topics"))
    assert not any(c.early for c in world.calls if c.component != "chat")
    assert len(world.texts("posted")) == 3
    assert facts_of(posting).pure is False


def test_a_tool_nobody_declared_is_not_touched() -> None:
    world = World()
    glossary = Glossary(world=world)
    fast = accelerate(read_after_thinking(world, glossary.invoke), egress="inputs")
    train(fast)
    assert not is_installed(Glossary, "_run")
    assert fast.report().demanded == 2, "the model's calls alone"


def test_a_tool_may_be_declared_later() -> None:
    class Lexicon(Glossary):
        def _run(self, query: str) -> str:
            return str(self.world.serve("lexicon", query))

    world = World()
    lexicon = Lexicon(world=world)
    fast = accelerate(read_after_thinking(world, lexicon.invoke))
    train(fast)
    accel.register(Lexicon, readonly=True, local=True)
    train(fast)
    world.hooks["b"] = lambda: world.wait_early(TOPIC)
    assert fast.invoke({"q": TOPIC})["b"] == f"answer to <{TOPIC}>"


def test_a_retriever_that_was_changed_meanwhile_reads_again() -> None:
    world = World()
    retriever = ArxivRetriever(world=world)
    fast = accelerate(read_after_thinking(world, looked_up(world, retriever)), egress="inputs")
    train(fast)

    def fewer() -> None:
        world.wait_early(TOPIC)
        retriever.top_k_results = 1

    world.hooks["b"] = fewer
    assert len(fast.invoke({"q": TOPIC})["b"]) == 1


def test_a_tool_message_is_the_same_through_a_tool_node() -> None:
    world = World()
    node = ToolNode([ArxivQueryRun(api_wrapper=world)])

    def read(state: State) -> Any:
        call = {"name": "arxiv", "args": {"query": state["q"]}, "id": "1", "type": "tool_call"}
        return node.invoke([AIMessage("", tool_calls=[call])])

    graph = after_thinking(world, read)
    expected = graph.invoke({"q": TOPIC})
    assert expected["b"] == [ToolMessage(f"answer to <{TOPIC}>", name="arxiv", tool_call_id="1")]
    fast = accelerate(graph, egress="inputs")
    train(fast)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early(TOPIC)
    assert fast.invoke({"q": TOPIC}) == expected
    assert len(world.texts(TOPIC)) == 1


class Asking(Chat):
    """Looks two things up, then answers."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        said = self._world.serve("chat", str(messages[-1].content))
        calls: list[Any] = []
        if len(messages) == 1:
            topic = messages[0].content
            calls = [{"name": "arxiv", "args": {"query": f"{part} of {topic}"}, "id": part} for part in ("n", "s")]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said, tool_calls=calls))])


def test_an_agent_with_a_listed_tool_says_the_same() -> None:
    world = World()

    @tool
    def shout(text: str) -> str:
        """Say it louder."""
        return text.upper()

    graph = create_agent(Asking(world), [ArxivQueryRun(api_wrapper=world), shout])

    def said(agent: Any, topic: str) -> list[tuple[str, Any]]:
        found = agent.invoke({"messages": [{"role": "user", "content": topic}]})
        return [(m.type, m.content) for m in found["messages"]]

    fast = accelerate(graph, egress="inputs")
    for topic in ("Iceland", "Norway", "Portugal", "Greece"):
        assert said(fast, topic) == said(graph, topic)
        assert accel.settle()
        assert len(world.texts(f"n of {topic}")) == 2, "once in each program"
