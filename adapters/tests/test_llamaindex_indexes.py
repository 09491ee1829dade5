"""What an accelerated index gives to ask it with: accelerated as the index is, and otherwise what the index gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import PromptTemplate, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.memory import ChatMemoryBuffer

import accel
from accel.errors import ConfigurationError

from .llamaindex_clerk import NODES, Clerk, Letters, index
from .llamaindex_kinds import chat
from .llamaindex_programs import QUESTIONS

ENGINE: dict[str, Any] = {"llm": Clerk(), "response_mode": "accumulate", "similarity_top_k": 4}


@pytest.mark.usefixtures("loop_at_hand")
def test_its_query_engine_is_accelerated_and_answers_the_same() -> None:
    plain, fast = index().as_query_engine(**ENGINE), accel.accelerate(index()).as_query_engine(**ENGINE)
    assert isinstance(fast, type(plain)) and isinstance(fast, accel.Accelerated)
    for question in QUESTIONS[:4]:
        assert str(fast.query(question)) == str(plain.query(question))
        assert accel.settle()
    assert fast.report().runs == 4 and fast.plan.total.retired > 0


@pytest.mark.usefixtures("loop_at_hand")
def test_its_chat_engine_and_retriever_are_accelerated_as_a_whole() -> None:
    fast: Any = accel.accelerate(index())
    plain, engine = (
        each.as_chat_engine(chat_mode="condense_question", llm=Clerk(), memory=ChatMemoryBuffer.from_defaults())
        for each in (index(), fast)
    )
    assert isinstance(engine, type(plain)) and isinstance(engine, accel.Accelerated)
    assert not isinstance(engine._query_engine, accel.Accelerated)
    assert chat(engine, QUESTIONS[0]) == chat(plain, QUESTIONS[0])
    retriever = fast.as_retriever(similarity_top_k=3)
    assert isinstance(retriever, accel.Accelerated)
    assert retriever.retrieve(QUESTIONS[0]) == index().as_retriever(similarity_top_k=3).retrieve(QUESTIONS[0])
    assert not isinstance(fast.as_query_engine(llm=Clerk()).retriever, accel.Accelerated)


def test_it_heeds_the_options_of_the_index() -> None:
    options: dict[str, Any] = {"speculate": "certain", "egress": "inputs", "budget": accel.Budget(max_issued=7)}
    fast: Any = accel.accelerate(index(), **options)
    engine = fast.as_query_engine(llm=Clerk())
    assert engine._accel.settings == fast._accel.settings
    assert accel.accelerate(engine, **options) is engine
    with pytest.raises(ConfigurationError, match="accelerated already"):
        accel.accelerate(engine, speculate="likely")


def test_what_is_made_at_one_line_learns_together() -> None:
    alone: Any = accel.accelerate(index())
    at_one_line = [alone.as_retriever(similarity_top_k=most).plan for most in (3, 5)]
    assert at_one_line[0] is at_one_line[1] is not alone.as_retriever().plan
    assert accel.accelerate(index()).as_retriever().plan not in at_one_line
    scoped: Any = accel.accelerate(index(), plan_scope="indexes of a tenant")
    other: Any = accel.accelerate(index(), plan_scope="indexes of another tenant")
    assert scoped.as_retriever().plan is scoped.as_retriever(similarity_top_k=5).plan
    assert scoped.as_retriever().plan is not other.as_retriever().plan
    assert scoped.as_retriever().plan not in (scoped.plan, scoped.as_query_engine(llm=Clerk()).plan)


class Told(Clerk):
    """Of a tenant."""

    desk: str = ""

    def _answer(self, prompt: str) -> str:
        ASKED.append((self.desk, prompt))
        return super()._answer(prompt)


ASKED: list[tuple[str, str]] = []
accel.register(Told, local=False, concurrency=16, streams_equal=True, twins=True)
ACME = "As the lawyer of Acme and Sons, who is to be believed, answer.\n{context_str}\nQuestion: {query_str}\nAnswer: "
BOREAL = "Our house is called Borealis Shipping Limited; be brief.\n{context_str}\nQuestion: {query_str}\nAnswer: "
OF_TENANTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "nothing": lambda tenant: {"llm": Told()},
    "templates": lambda tenant: {"llm": Told(), "text_qa_template": PromptTemplate(ACME if tenant == "a" else BOREAL)},
    "models": lambda tenant: {"llm": Told(desk=tenant)},
    "words of models": lambda tenant: {"llm": Told(system_prompt=f"The house of {tenant} keeps quiet.")},
    "numbers": lambda tenant: {"llm": Told(), "similarity_top_k": 3 if tenant == "a" else 2},
}


@pytest.mark.usefixtures("loop_at_hand")
@pytest.mark.parametrize("differ", OF_TENANTS)
def test_an_engine_for_each_request_asks_nothing_of_another_tenant(differ: str) -> None:
    asked: list[list[list[tuple[str, str]]]] = []
    answers: list[list[str]] = []
    for made in (index(), accel.accelerate(index(), egress="inputs")):
        asked.append([])
        answers.append([])
        for number, tenant in enumerate("aaaabaabbb"):
            ASKED.clear()
            options = ENGINE | OF_TENANTS[differ](tenant)
            engine = made.as_query_engine(**options)
            answers[-1].append(str(engine.query(QUESTIONS[number % len(QUESTIONS)])))
            assert accel.settle()
            asked[-1].append(sorted(ASKED))
    assert answers[0] == answers[1] and asked[0] == asked[1]
    assert engine.plan.total.retired > 0, "an engine that is made anew learns from those before"


def test_indexes_of_an_accelerated_class_and_of_its_subclasses() -> None:
    Fast = accel.accelerate(VectorStoreIndex)
    assert isinstance(Fast(NODES, embed_model=Letters()).as_retriever(), accel.Accelerated)

    class Own(Fast):  # type: ignore[misc, valid-type]
        def as_retriever(self, **kwargs: Any) -> BaseRetriever:
            self.asked = kwargs
            return super().as_retriever(similarity_top_k=1)  # type: ignore[no-any-return]

    own = Own(NODES, embed_model=Letters())
    engine = own.as_query_engine(llm=Clerk(), similarity_top_k=9)
    assert own.asked == {"similarity_top_k": 9} and engine.retriever.similarity_top_k == 1
    assert isinstance(engine, accel.Accelerated) and isinstance(own.as_retriever(), accel.Accelerated)


def test_what_cannot_be_accelerated_is_given_as_it_is() -> None:
    answers = object()

    class Odd(VectorStoreIndex):
        def as_query_engine(self, llm: Any = None, **kwargs: Any) -> Any:
            return answers

        def as_retriever(self, **kwargs: Any) -> Any:
            return accel.accelerate(super().as_retriever(**kwargs), speculate="likely")

    fast: Any = accel.accelerate(Odd(NODES, embed_model=Letters()))
    assert fast.as_query_engine() is answers
    assert fast.as_retriever()._accel.settings.speculate == "likely"
    with pytest.raises(ValueError, match="deprecated"):
        accel.accelerate(index()).as_chat_engine(chat_mode="react", llm=Clerk())  # type: ignore[arg-type]
    assert isinstance(accel.accelerate(index()).as_retriever(), accel.Accelerated)  # after a failure as well


def test_after_uninstall_it_gives_what_it_gave_without() -> None:
    fast = accel.accelerate(index())
    accel.uninstall()
    assert not isinstance(fast.as_query_engine(llm=Clerk()), accel.Accelerated)
    assert not isinstance(fast.as_retriever(), accel.Accelerated)
