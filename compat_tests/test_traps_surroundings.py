"""Named traps: what a component that nobody vouches for sees of its surroundings (its thread, task, context, the method
that is called) is what it sees without Accel; what a class was declared to be says nothing of one with its own leaf or
address; and the first report names the classes that nobody vouches for."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore

import accel
from compat_tests.traps import (
    REQUEST,
    TOPICS,
    Chat,
    Here,
    Visit,
    each_topic,
    eagerly,
    felt_by_nobody,
    program,
    program_async,
    result_of,
    text_of,
    watcher,
)

pytestmark = pytest.mark.timeout(60)


# --- components that say where they are, with twins that differ


class OneLeafChat(Chat):
    here: Any

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.here.visit("_generate", text_of(messages))
        return result_of(f"sync: {text_of(messages)}")


class TwinsChat(OneLeafChat):
    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.here.visit("_agenerate", text_of(messages))
        return result_of(f"async: {text_of(messages)}")


class OneLeafEmbeddings(Embeddings):
    def __init__(self, here: Here) -> None:
        self.here = here

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.here.visit("embed_documents", texts[0])
        return [[1.0, float(len(text))] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.here.visit("embed_query", text)
        return [2.0, float(len(text))]


class TwinsEmbeddings(OneLeafEmbeddings):
    async def aembed_query(self, text: str) -> list[float]:
        self.here.visit("aembed_query", text)
        return [3.0, float(len(text))]


class OneLeafRetriever(BaseRetriever):
    here: Any

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        self.here.visit("_get_relevant_documents", query)
        return [Document(f"sync: {query}")]


class TwinsRetriever(OneLeafRetriever):
    async def _aget_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        self.here.visit("_aget_relevant_documents", query)
        return [Document(f"async: {query}")]


class OneLeafStore(VectorStore):
    def __init__(self, here: Here) -> None:
        self.here = here

    @classmethod
    def from_texts(cls, texts: list[str], embedding: Embeddings, *args: Any, **kwargs: Any) -> OneLeafStore:
        raise NotImplementedError

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self.here.visit("similarity_search", query)
        return [Document(f"sync: {query}")]


class TwinsStore(OneLeafStore):
    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self.here.visit("asimilarity_search", query)
        return [Document(f"async: {query}")]


@dataclass(frozen=True)
class Kind:
    """How a kind of component is made around the place where it tells of itself, and asked."""

    make: Callable[[Here], Any]
    ask: str
    """The method; with an a before it, its asynchronous twin."""


KINDS = {
    "chat of one leaf": Kind(lambda here: OneLeafChat(here=here), "invoke"),
    "chat with twins": Kind(lambda here: TwinsChat(here=here), "invoke"),
    "embeddings of one leaf": Kind(OneLeafEmbeddings, "embed_query"),
    "embeddings with twins": Kind(TwinsEmbeddings, "embed_query"),
    "retriever of one leaf": Kind(lambda here: OneLeafRetriever(here=here), "invoke"),
    "retriever with twins": Kind(lambda here: TwinsRetriever(here=here), "invoke"),
    "store of one leaf": Kind(OneLeafStore, "similarity_search"),
    "store with twins": Kind(TwinsStore, "similarity_search"),
}


def content(answer: Any) -> Any:
    return getattr(answer, "content", answer)


def visits(kind: Kind, wrap: Callable[[Any], Any], *, asynchronous: bool) -> tuple[list[Any], list[Visit]]:
    here, watch = Here(), watcher()
    component = kind.make(here)

    def ask(text: str) -> Any:
        REQUEST.set(f"asks for {text}")
        return content(getattr(component, kind.ask)(text))

    async def ask_async(text: str) -> Any:
        REQUEST.set(f"asks for {text}")
        return content(await getattr(component, f"a{kind.ask}")(text))

    made = program_async(ask_async, watch, here) if asynchronous else program(ask, watch, here)
    return each_topic(wrap(made), watch, asynchronous=asynchronous), here.visits


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", KINDS)
def test_surroundings_are_as_without_accel(name: str, asynchronous: bool) -> None:
    want, plainly = visits(KINDS[name], lambda graph: graph, asynchronous=asynchronous)
    got, here = visits(KINDS[name], eagerly, asynchronous=asynchronous)
    assert got == want
    for visit, plain_visit in zip(here, plainly, strict=True):
        assert visit == plain_visit


def test_a_synchronous_method_never_answers_for_its_asynchronous_twin() -> None:
    """Learnt in synchronous runs, called in an asynchronous one, and the other way round."""
    for first in (False, True):
        arms = []
        for wrap in (lambda graph: graph, eagerly):
            here, watch = Here(), watcher()
            model = TwinsChat(here=here)
            graph = wrap(both_ways(model, watch))
            found = each_topic(graph, watch, asynchronous=first, topics=TOPICS[:2])
            found += each_topic(graph, watch, asynchronous=not first, topics=TOPICS[2:])
            arms.append((found, [(visit.method, visit.text) for visit in here.visits]))
        assert arms[0] == arms[1]


def both_ways(model: Any, watch: Any) -> Any:
    """The program whose nodes have a synchronous and an asynchronous form."""
    from langchain_core.runnables import RunnableLambda
    from langgraph.graph import START, StateGraph

    from compat_tests.traps import State

    graph = StateGraph(State)

    def node(name: str) -> Any:
        def run(state: State) -> State:
            return {"notes": [str(model.invoke(f"{name} on {state['topic']}").content)]}

        async def arun(state: State) -> State:
            return {"notes": [str((await model.ainvoke(f"{name} on {state['topic']}")).content)]}

        return RunnableLambda(run, arun)

    def opening(state: State) -> State:
        accel.settle()
        return {}

    graph.add_sequence([("opening", opening), *((name, node(name)) for name in ("first", "second", "third"))])
    graph.add_edge(START, "opening")
    return graph.compile()


def test_values_of_context_variables_are_those_of_the_call() -> None:
    class Asking(Chat):
        def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
            return result_of(f"{text_of(messages)} for {REQUEST.get()}")

    def ask(model: Asking) -> Any:
        def asked(text: str) -> Any:
            REQUEST.set(f"who asks {text}")
            return model.invoke(text).content

        return asked

    felt_by_nobody(Asking, ask)


# --- subclasses of what the user declared


class Declared(Chat):
    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return result_of(f"about {text_of(messages)}")


class DeclaredStore(VectorStore):
    """Nobody writes to it while programs run."""

    def __init__(self) -> None:
        self.rows = ["nothing"]

    @classmethod
    def from_texts(cls, texts: list[str], embedding: Embeddings, *args: Any, **kwargs: Any) -> DeclaredStore:
        raise NotImplementedError

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [Document(f"{query}: {self.rows[0]}")]


accel.register(Declared, pure=True, local=True, concurrency=8)
accel.register(DeclaredStore, readonly=True, local=True, concurrency=8)


class DeclaredDice(Declared):
    rng: Any = None

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return result_of(f"{text_of(messages)}: {self.rng.randint(0, 10**9)}")


def said(model: Any) -> Any:
    return lambda text: model.invoke(text).content


def test_a_subclass_of_a_declared_class_that_overrides_its_leaf() -> None:
    felt_by_nobody(lambda: DeclaredDice(rng=random.Random(7)), said)


SENT: deque[str] = deque()


class Abroad(Declared):
    """The declared class, at an address of its own, with the leaf it inherits."""

    base_url: str = "https://abroad.example.com/v1"

    def _call_api(self, text: str) -> str:
        SENT.append(text)
        return f"from abroad: {text}"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return result_of(self._call_api(text_of(messages)))


class Elsewhere(Chat):
    """Declared for an address in the house."""

    base_url: str = "http://127.0.0.1:8000/v1"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if "127.0.0.1" not in self.base_url:
            SENT.append(text_of(messages))
        return result_of(f"from {self.base_url}: {text_of(messages)}")


accel.register(Elsewhere, pure=True, local=True, concurrency=8)


class ElsewhereAbroad(Elsewhere):
    """Overrides no method, only the address."""

    base_url: str = "https://abroad.example.com/v1"


@pytest.mark.parametrize("cls", [Abroad, ElsewhereAbroad])
def test_a_subclass_of_a_declared_class_at_its_own_address(cls: type[Chat]) -> None:
    """`local` doesn't pass to it: what the program withholds is not sent."""

    def ask(model: Chat) -> Any:
        def asked(text: str) -> Any:
            return "withheld" if "skip" in text else model.invoke(text).content

        return asked

    arms = []
    for wrap in (lambda graph: graph, accel.accelerate):
        SENT.clear()
        watch = watcher()
        found = each_topic(wrap(program(ask(cls()), watch)), watch)
        arms.append((found, list(SENT)))
    assert arms[1] == arms[0]


class WrittenStore(DeclaredStore):
    """Reads what somebody writes behind its back."""

    live: list[str] = ["nothing"]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [Document(f"{query}: {self.live[0]}")]


def test_a_subclass_of_a_readonly_store_that_overrides_its_leaf() -> None:
    def ask(store: WrittenStore) -> Any:
        def asked(text: str) -> Any:
            WrittenStore.live[0] = f"written just before {text}"
            return [document.page_content for document in store.similarity_search(text, k=1)]

        return asked

    felt_by_nobody(WrittenStore, ask)


class Twins(Declared):
    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return result_of(f"asynchronously about {text_of(messages)}")


def test_a_subclass_of_a_declared_class_that_adds_a_twin() -> None:
    arms = []
    for wrap in (lambda graph: graph, eagerly):
        watch = watcher()
        model = Twins()

        async def ask(text: str, model: Twins = model) -> Any:
            return (await model.ainvoke(text)).content

        arms.append(each_topic(wrap(program_async(ask, watch)), watch, asynchronous=True))
    assert arms[0] == arms[1]


# --- the report


@pytest.mark.parametrize("name", KINDS)
def test_the_first_report_names_the_class_and_the_line_to_paste(name: str) -> None:
    here, watch = Here(), watcher()
    component = KINDS[name].make(here)
    graph = accel.accelerate(program(lambda text: content(getattr(component, KINDS[name].ask)(text)), watch))
    graph.invoke({"topic": TOPICS[0]})
    accel.settle()
    report = str(graph.report())
    assert f"accel.register({type(component).__name__}" in report, report
