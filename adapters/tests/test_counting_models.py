"""Models of a program's own that count, or remember, what they are asked: each call changes what they hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever
from pydantic import BaseModel, PrivateAttr

import accel
from adapters.tests.catching_up import catch_up
from adapters.tests.test_sdk_clients import last_run
from adapters.tests.three_calls import program


@dataclass
class Tally:
    calls: int = 0


class Record(BaseModel):
    letters: int = 0


class Counting(BaseChatModel):
    """Each field is changed by calls in another way, but for `tone`."""

    tone: str = "plain"
    calls: int = 0
    asked: list[str] = []
    memo: dict[str, str] = {}
    by_word: dict[str, int] = {}
    lengths: Counter[int] = Counter()
    tally: Tally = Tally()
    record: Record = Record()
    _last: str = PrivateAttr("")
    _now: str = PrivateAttr("")

    @property
    def _llm_type(self) -> str:
        return "counting"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self._now = str(messages[-1].content)
        answer = self._remembered(self._now)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=answer, id="one"))])

    def _remembered(self, prompt: str) -> str:
        catch_up()
        self._last = prompt
        self.calls += 1
        self.asked.append(prompt)
        self.by_word[prompt.split()[0]] = self.by_word.get(prompt.split()[0], 0) + 1
        self.lengths[len(prompt) // 10] += 1
        self.tally.calls += 1
        self.record.letters += len(prompt)
        self.memo[prompt[:200]] = f"In a {self.tone} tone: {prompt.lower()}"
        return self.memo[prompt[:200]]


accel.register(Counting, pure=True, local=True, concurrency=8)


@pytest.mark.parametrize("tone", ["plain", "gentle"])
def test_what_calls_count_and_remember_makes_no_other_model(tone: str) -> None:
    model = Counting(tone=tone)
    demanded, retired = last_run(program(lambda state, prompt: model.invoke(prompt).content))
    assert demanded == 3 and retired >= 1


class Tidying(Counting):
    """Its calls assign a setting, too."""

    def _remembered(self, prompt: str) -> str:
        self.tone = self.tone.strip()
        return super()._remembered(prompt)


@pytest.mark.parametrize("kind", [Counting, Tidying])
def test_what_a_program_sets_makes_another_one(kind: type[Counting]) -> None:
    model, tones = kind(), iter((" plain", " gentle", " stern") * 20)

    def ask(state: Any, prompt: str) -> Any:
        model.tone = next(tones)
        return model.invoke(prompt).content

    asked = program(ask)
    fast = accel.accelerate(asked)
    for topic in ("bees and their hives", "iron smelting in Sweden", "the far side of the moon"):
        told = fast.invoke({"topic": topic})
        assert [told[name].split()[2] for name in ("outline", "keywords", "both")] == ["plain", "gentle", "stern"]
        assert accel.settle(10)


class Desk:
    """A plain object that a component holds."""

    def __init__(self) -> None:
        self.tenant = ""


class AtDesk(Counting):
    desk: Any = None

    def _remembered(self, prompt: str) -> str:
        self.desk.tenant = self.desk.tenant.strip()
        return f"For {self.desk.tenant}: {prompt.lower()}"


class Finder(BaseRetriever):
    tenant: str = ""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        catch_up()
        if query:
            self.tenant = self.tenant.strip()
        return [Document(f"For {self.tenant}: {query.lower()}", id="one")]


accel.register(Finder, readonly=True, local=True, concurrency=8)


@pytest.mark.parametrize("held", [False, True])
def test_a_tenant_that_calls_tidy_up_is_still_a_tenant(held: bool) -> None:
    """In an object that a model holds, and in a retriever."""
    model, finder = AtDesk(desk=Desk()), Finder()

    def ask(state: Any, prompt: str) -> str:
        tenant = f" {prompt.split()[0]} "  # another one with each node
        if held:
            model.desk.tenant = tenant
            return str(model.invoke(prompt).content)
        finder.tenant = tenant
        return finder.invoke(prompt)[0].page_content

    fast = accel.accelerate(program(ask))
    for topic in ("bees and their hives", "iron smelting in Sweden", "the far side of the moon"):
        told = fast.invoke({"topic": topic})
        assert [told[name].split(":")[0] for name in ("outline", "keywords", "both")] == [
            "For Write", "For Give", "For Combine",
        ]  # fmt: skip
        assert accel.settle(10)
