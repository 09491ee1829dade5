"""Models of a program's own that count, or remember, what they are asked: each call changes what they hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
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

    @property
    def _llm_type(self) -> str:
        return "counting"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        prompt = str(messages[-1].content)
        answer = self._remembered(prompt)
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
