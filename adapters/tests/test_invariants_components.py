"""Invariant 10: a lesson stays with the components that it was learnt with, and what they add to a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from llama_index.core import PromptTemplate
from llama_index.core.query_engine import CustomQueryEngine
from pydantic import SecretStr

import accel
from accel import accelerate
from accel.parts.identities.fields import fields_of
from accel.parts.identities.identity import identity_of
from accel.run.scope import scope
from adapters.tests.catching_up import catch_up
from adapters.tests.llamaindex_programs import QUESTIONS, Scribe

SENT: list[tuple[str, str, bool]] = []
"""Whose model was asked what, and whether early."""


class Advisor(Scribe):
    """A model of one user, who has told it something."""

    user: str = "all"
    api_key: str = ""

    def _answer(self, prompt: str) -> str:
        here = scope.get()
        early = here is not None and here.early
        SENT.append((self.user, prompt, early))
        if not early:
            catch_up()
        return f"{len(prompt)} letters"


accel.register(Advisor, pure=True, local=True, concurrency=8, twins=True, streams_equal=True)


def advisor(user: str, **more: Any) -> Advisor:
    return Advisor(user=user, api_key=f"key of {user}", system_prompt=f"PRIVATE-{user}: speak of the case", **more)


class Twice(CustomQueryEngine):
    """Asks a model two things that do not depend on each other."""

    llm: Any
    ask: Any = PromptTemplate("Say what you think of this: {question}")
    check: Any = PromptTemplate("Now look for mistakes in this: {question}")

    def custom_query(self, query_str: str) -> str:
        first = self.llm.predict(self.ask, question=query_str)
        return f"{first} {self.llm.predict(self.check, question=query_str)}"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    SENT.clear()
    yield


def asked(fast: Any, number: int) -> list[tuple[str, str, bool]]:
    SENT.clear()
    fast.query(f"{QUESTIONS[number % 6]} In the year {1900 + number}?")
    assert accel.settle()
    return list(SENT)


def early(sent: list[tuple[str, str, bool]]) -> list[str]:
    return [text for _, text, was_early in sent if was_early]


def learnt(fast: Any, runs: int = 4) -> None:
    for number in range(runs):
        sent = asked(fast, number)
    assert early(sent), "nothing was learnt: the tests below must be able to fail"


def own_model(fast: Any, user: str) -> None:
    fast.llm = advisor(user)


def other_words(fast: Any, user: str) -> None:
    fast.llm.user, fast.llm.system_prompt = user, f"PRIVATE-{user}: speak of the case"


@pytest.mark.parametrize("change", [own_model, other_words])
def test_what_one_model_adds_to_prompts_goes_out_through_no_other(change: Callable[[Any, str], None]) -> None:
    fast = accelerate(Twice(llm=advisor("ann")))
    learnt(fast)
    for number, user in enumerate(("bob", "bob", "cyd", "cyd", "bob"), 4):
        change(fast, user)
        assert all(f"PRIVATE-{user}" in text for _, text, _ in asked(fast, number))


def test_models_that_add_the_same_teach_of_each_other() -> None:
    """Two users with keys of their own, and the same words: a third one's calls are early after its first."""
    fast = accelerate(Twice(llm=Advisor(user="ann", api_key="key of ann")))
    learnt(fast)
    for number, user in enumerate(("bob", "bob", "cyd"), 4):
        fast.llm = Advisor(user=user, api_key=f"key of {user}")
        sent = asked(fast, number)
        assert {who for who, _, _ in sent} == {user}
    assert early(sent)


def test_two_temperatures_prove_nothing_of_a_system_prompt() -> None:
    """Every field of a component is a dimension of its own."""
    fast = accelerate(Twice(llm=advisor("ann")))
    learnt(fast)
    for number in (4, 5):
        fast.llm.context_window = 4096 * number
        asked(fast, number)
    assert early(asked(fast, 6))
    fast.llm.user, fast.llm.system_prompt = "bob", "PRIVATE-bob: speak of the case"
    assert not early(asked(fast, 7))


def prompts_of(user: str) -> dict[str, PromptTemplate]:
    return {"check": PromptTemplate(f"PRIVATE-{user}: look for mistakes in this: {{question}}")}


class Prompted(Twice):
    """With prompts that may be updated."""

    def _get_prompts(self) -> Any:
        return {"ask": self.ask, "check": self.check}

    def _update_prompts(self, prompts: Any) -> None:
        self.check = prompts.get("check", self.check)


def by_update(fast: Any, user: str) -> None:
    fast.update_prompts(prompts_of(user))


def by_field(fast: Any, user: str) -> None:
    fast.check.template = prompts_of(user)["check"].template


@pytest.mark.parametrize("change", [by_update, by_field])
def test_what_stood_in_a_template_is_not_said_once_it_is_another(change: Callable[[Any, str], None]) -> None:
    fast = accelerate(Prompted(llm=Advisor()))
    change(fast, "ann")
    learnt(fast)
    for number, user in enumerate(("ann", "bob", "bob", "bob", "cyd", "ann"), 4):
        change(fast, user)  # also if it says the same: then calls stay early
        sent = asked(fast, number)
        assert not any("PRIVATE" in text and f"PRIVATE-{user}" not in text for _, text, _ in sent)
        if number == 4:
            assert early(sent)


def test_a_saved_plan_knows_what_its_components_said(tmp_path: Path) -> None:
    """But for keys, which it does not tell, nor compare."""
    path = str(tmp_path / "plan.json")
    fast = accelerate(Twice(llm=advisor("ann")))
    learnt(fast)
    fast.save_plan(path)
    same = accelerate(Twice(llm=advisor("ann").model_copy(update={"api_key": "another"})), plan=path)
    asked(same, 8)
    assert early(asked(same, 9))
    other = accelerate(Twice(llm=advisor("bob")), plan=path)
    for number in (8, 9):
        assert not any("PRIVATE-ann" in text for _, text, _ in asked(other, number))


def test_fields_tell_nothing_of_keys() -> None:
    fields = fields_of(identity_of(advisor("ann"), by_object=False))
    assert fields == fields_of(identity_of(advisor("ann"), by_object=False))
    other = fields_of(identity_of(advisor("bob"), by_object=False))
    assert {name.rpartition(" ")[2] for name in fields if fields[name] != other[name]} == {
        "api_key", "system_prompt", "user",
    }  # fmt: skip
    assert not any("ann" in told for told in fields.values())
    assert fields["its field api_key"].startswith("=secret ")
    assert not fields_of(identity_of(object(), by_object=True))


def test_connections_of_its_own_make_no_model_another() -> None:
    """A server learns with some that it closes before it forks, and serves with others."""
    to: dict[str, Any] = {"base_url": "http://127.0.0.1:9/v1", "api_key": SecretStr("k")}
    with httpx.Client() as connections:
        for cls in (ChatOpenAI, OpenAIEmbeddings):
            own = cls(model="m", http_client=connections, **to)
            assert _fields(own) == _fields(cls(model="m", **to)) != _fields(cls(model="n", **to))


def _fields(component: Any) -> Any:
    return fields_of(identity_of(component, by_object=False))
