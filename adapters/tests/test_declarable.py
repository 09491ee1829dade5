"""What `register` refuses at once, and what reports say of what it can't know."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool, tool
from langgraph.func import task
from langgraph.graph import START, StateGraph
from llama_index.core import Settings, SummaryIndex, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from llama_index.core.tools import FunctionTool

import accel
from accel.errors import ConfigurationError
from accel.parts import declarable


class Shelf:
    """A client that nobody has a table of."""

    def find(self, text: str) -> str:
        return text.upper()

    @property
    def size(self) -> int:
        return 0


class Catalogue(Shelf):
    pass


class Model(FakeListChatModel):
    pass


class Tool(StructuredTool):
    pass


class Embedding(MockEmbedding):
    pass


def words(text: str) -> list[str]:
    return text.split()


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return word


def graph_of(node: Any) -> Any:
    return StateGraph(dict).add_node("only", node).add_edge(START, "only").compile()


NO_COMPONENTS: dict[str, Callable[[], Any]] = {
    "object": object,
    "dict": dict,
    "class dict": lambda: dict,
    "class int": lambda: int,
    "class type": lambda: type,
    "lock": threading.Lock,
    "generator": lambda: (each for each in ()),
    "property": lambda: Shelf.size,
    "graph": lambda: graph_of(words),
    "chain": lambda: FakeListChatModel(responses=["a"]) | words,
    "bound model": lambda: FakeListChatModel(responses=["a"]).bind(stop=["."]),
    "RunnableLambda": lambda: RunnableLambda(words),
    "task": lambda: task(words),
    "prompt": lambda: PromptTemplate.from_template("{q}"),
    "Document": lambda: Document(page_content="a"),
    "HumanMessage": lambda: HumanMessage("a"),
    "tool of LlamaIndex": lambda: FunctionTool.from_defaults(words),
    "class FunctionTool": lambda: FunctionTool,
    "index": lambda: SummaryIndex([]),
    "query engine": lambda: SummaryIndex([]).as_query_engine(llm=MockLLM()),
    "TextNode": lambda: TextNode(text="a"),
    "Settings": lambda: Settings,
}
"""Made by the tests: LlamaIndex leaves its mark in the context in which something of it is made."""


@pytest.mark.parametrize("make", NO_COMPONENTS.values(), ids=NO_COMPONENTS)
def test_what_can_be_no_component_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"register\(\) takes a component, not ") as caught:
        accel.register(make(), readonly=True)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (words, "words = accel.pure(words),"),
        (functools.partial(words, ""), "accel.pure(...) around it"),
        (lambda text: text, "accel.pure(...) around it"),
        (functools.lru_cache(words), "words = accel.pure(words),"),
        (Shelf.find, "accel.register(Shelf, methods=['find'], readonly=True)"),
        (Shelf().find, "accel.register(Shelf, methods=['find'], readonly=True)"),
        (FunctionTool.from_defaults(words), "FunctionTool.from_defaults(accel.pure(f))"),
    ],
    ids=["function", "partial", "lambda", "cached", "method of the class", "method", "tool of a function"],
)
def test_the_remedy_can_be_pasted(given: Any, remedy: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        accel.register(given, readonly=True)
    assert caught.value.remedy.startswith((remedy, f"Declare its function: {remedy}"))


@pytest.mark.parametrize("methods", [[], (), [Shelf.find], [7]], ids=str)
def test_methods_are_named(methods: Any) -> None:
    with pytest.raises(ConfigurationError, match="methods="):
        accel.register(Shelf, methods=methods, readonly=True)


def test_what_may_be_a_component_is_not() -> None:
    for given in (
        Shelf,
        Shelf(),
        Mock(),
        look_up,
        Tool,
        Model,
        Embedding,
        VectorStoreIndex([], embed_model=MockEmbedding(embed_dim=8)).as_retriever(),
    ):
        assert accel.register(given, readonly=True) is given


def test_a_report_names_what_was_declared_and_can_not_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declarable, "_given", {})  # what other tests declared is not spoken of
    shelf, model = Shelf(), accel.register(Model(responses=["a"]), concurrency=2)
    accel.register(Catalogue, readonly=True, methods=["find"])
    accel.register(look_up, readonly=True)
    fast = accel.accelerate(graph_of(lambda state: {"found": shelf.find(model.invoke("a").text)}))
    fast.invoke({})
    assert fast.report().unseen == []

    class Desk(Catalogue):
        """Declared with its base."""

    class Drawer:
        def find(self, text: str) -> str:
            return text

    accel.register(Desk(), concurrency=4)
    drawer = accel.register(Drawer(), readonly=True)
    assert fast.report().unseen == [], "it has not run since"
    fast.invoke({})
    report = fast.report()
    assert report.unseen == ["Drawer"] == report.to_dict()["declared_in_vain"]
    said = " ".join(str(report).split())
    assert "no call of it can be seen: " in said and "methods=[" in said and "Drawer" in said

    accel.register(drawer, methods=["find"], readonly=True)
    fast.invoke({})
    assert "Drawer" not in fast.report().unseen
