"""An accelerated object that the program has dropped is freed, and the class that it was given with it: servers make an
engine for every conversation."""

from __future__ import annotations

import asyncio
import gc
import inspect
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document as Passage
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from langgraph.graph import END, START, StateGraph
from llama_index.core import Document, Settings
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import TypedDict

import accel
from accel.process.threads import learner
from accel.text.classes import of_class, of_classes

from .core_fakes import Chat, World
from .llamaindex_clerk import Clerk, Letters, index, scored
from .llamaindex_kinds import KINDS
from .llamaindex_programs import QUESTIONS

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's own calls of what it deprecates
Ask = Callable[[Any, str], Any]


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What programs that name no model take."""
    monkeypatch.setattr(Settings, "_llm", Clerk())
    monkeypatch.setattr(Settings, "_embed_model", Letters())


def run(ask: Ask, fast: Any, question: str) -> None:
    answer = ask(fast, question)
    if inspect.iscoroutine(answer):
        asyncio.run(answer)


def dropped(make: Callable[[], Any], ask: Ask, scope: str | None = None) -> list[weakref.ref[Any]]:
    """An object that has run three times, its class if that was made for it, and what it was made of."""
    plain = make()
    fast = accel.accelerate(plain, plan_scope=scope)
    for question in QUESTIONS[:3]:
        run(ask, fast, question)
    assert accel.settle()
    own = [] if isinstance(plain, type) else [plain]
    return [weakref.ref(one) for one in (fast, *own, *({type(fast)} - {type(plain), type}))]


def alive(dropped: list[weakref.ref[Any]]) -> list[Any]:
    gc.collect()
    return [kept for one in dropped if (kept := one()) is not None]


NAMES = (
    "sub-questions", "vector retriever", "fusion, gathered", "tree_summarize", "reranking", "splitting by meaning",
    "evaluator", "simple chat", "context chat", "condense chat", "workflow", "function agent",
    "extractors", "tree index",
)  # fmt: skip
"""One of each kind: they differ in what opens a run."""


@pytest.mark.usefixtures("loop_at_hand")
@pytest.mark.parametrize("name", NAMES)
def test_an_object_of_llamaindex_is_freed(name: str) -> None:
    kind = KINDS[name]
    assert alive(dropped(kind.make, kind.ask)) == []


@pytest.mark.usefixtures("loop_at_hand")
@pytest.mark.parametrize("name", ["sub-questions", "vector retriever", "condense chat"])
def test_an_object_of_llamaindex_that_was_awaited_is_freed(name: str) -> None:
    kind = KINDS[name]
    assert kind.aask is not None
    assert alive(dropped(kind.make, kind.aask)) == []


def test_an_index_is_freed() -> None:
    assert alive(dropped(index, lambda fast, question: fast.insert(Document(text=question)))) == []


class Planning(CustomQueryEngine):
    """Of any model, as programs declare it."""

    llm: Any

    def custom_query(self, query_str: str) -> str:
        return str(self.llm.complete(f"Sum up {self.llm.complete(f'Plan {query_str}')}"))


def query(engine: Any, question: str) -> None:
    engine.query(question)


def test_an_engine_of_a_class_of_the_programs_is_freed() -> None:
    assert alive(dropped(lambda: Planning(llm=Clerk()), query)) == []


def test_an_engine_of_a_class_made_for_it_is_freed() -> None:
    def make() -> Any:
        class Own(Planning):
            __slots__ = ("note",)

        return Own(llm=Clerk())

    assert alive(dropped(make, query)) == []


class Looking(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return scored(query_bundle.query_str)


def test_a_retriever_of_a_class_of_the_programs_is_freed() -> None:
    assert alive(dropped(Looking, lambda fast, question: fast.retrieve(question))) == []


def test_of_the_engines_of_one_scope_only_few_are_kept() -> None:
    """Those whose runs the plan was learnt from."""
    made = [dropped(lambda: Planning(llm=Clerk()), query, "one scope") for _ in range(12)]
    assert sum(bool(alive(each)) for each in made) <= 3


class State(TypedDict, total=False):
    question: str
    plan: str
    answer: str


def graph() -> Any:
    llm = Chat(World())
    builder = StateGraph(State)
    builder.add_node("plan", lambda state: {"plan": llm.invoke(f"Plan {state['question']}").text})
    builder.add_node("answer", lambda state: {"answer": llm.invoke(f"Answer by {state['plan']}").text})
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "answer")
    builder.add_edge("answer", END)
    return builder.compile()


def chain() -> Any:
    llm = Chat(World())
    first, second = (ChatPromptTemplate.from_template(f"{what} {{question}}") for what in ("Plan", "Answer by"))
    return first | llm | (lambda message: {"question": message.text}) | second | llm


def agent() -> Any:
    return create_agent(Chat(World()), [], system_prompt="You are curious.")


def given(question: str) -> dict[str, str]:
    return {"question": question}


def told(question: str) -> dict[str, Any]:
    return {"messages": [("user", question)]}


@pytest.mark.parametrize(("make", "shape"), [(graph, given), (chain, given), (agent, told)])
def test_an_object_of_langgraph_is_freed(make: Callable[[], Any], shape: Callable[[str], Any]) -> None:
    async def awaited(fast: Any, question: str) -> None:
        await fast.ainvoke(shape(question))

    assert alive(dropped(make, lambda fast, question: fast.invoke(shape(question)))) == []
    assert alive(dropped(make, awaited)) == []


def test_classes_that_nodes_make_are_freed() -> None:
    made = list[weakref.ref[Any]]()

    def answer(state: State) -> dict[str, str]:
        class Own(FakeListChatModel):
            def _call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
                return super()._call(messages, *args, **kwargs)

        class Library(LangChainRetriever):
            def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Passage]:
                return [Passage(query)]

        made.extend(map(weakref.ref, (Own, Library)))
        found = Library().invoke(state["question"])
        return {"answer": Own(responses=["so it is"]).invoke(found[0].page_content).text}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    fast = accel.accelerate(builder.compile())
    for number in range(20):
        assert fast.invoke(given(f"Question {number}?"))["answer"] == "so it is"
    del fast
    assert accel.settle()
    assert alive(made) == []


def test_what_waits_for_the_learner_keeps_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    posted: list[Any] = []
    monkeypatch.setattr(learner, "post", lambda work, first=False: posted.append(work))
    fast = accel.accelerate(Planning(llm=Clerk()))
    fast.query(QUESTIONS[0])
    plan = weakref.ref(fast._accel.plan)
    del fast
    assert alive([plan]) == []
    assert posted
    for work in posted:
        work()


# --- what is known of classes


class Odd(type):
    """Says that all of its classes are equal, and have no hash."""

    def __eq__(cls, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_what_is_known_of_a_class_is_known_of_it_alone() -> None:
    asked = []

    @of_class
    def name(cls: type) -> str:
        asked.append(cls.__name__)
        return cls.__name__

    one, other = Odd("one", (), {}), Odd("other", (), {})
    assert [name(one), name(other), name(one)] == ["one", "other", "one"]
    assert asked == ["one", "other"]


def test_what_is_known_of_two_classes_goes_by_what_is_given_beside() -> None:
    asked = []

    @of_classes
    def names(one: type, other: type, sizes: tuple[int, ...] = ()) -> str:
        asked.append(sizes)
        return f"{one.__name__} {other.__name__} {sizes}"

    one, other = Odd("one", (), {}), Odd("other", (), {})
    assert names(one, other) == names(one, other) == "one other ()"
    assert names(other, one, (1,)) == names(other, one, (1,)) == "other one (1,)"
    assert asked == [(), (1,)]


def test_classes_are_freed_of_which_something_is_known() -> None:
    @of_class
    def name(cls: type) -> str:
        return cls.__name__

    @of_classes
    def names(one: type, other: type) -> str:
        return one.__name__ + other.__name__

    one = type("one", (), {})
    assert name(one) + names(one, int) + names(int, one) == "oneoneintintone"
    kept = weakref.ref(one)
    del one
    assert alive([kept]) == []
