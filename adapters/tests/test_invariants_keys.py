"""Invariant 3, keys: an early call takes no key that this run has not used, unless nobody ever changed it."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import SecretStr

import accel
from accel import accelerate
from accel.parts.identities.credentials import Keys, credentials_of
from adapters.tests.core_fakes import TENANT, Chat, State, World, chain
from adapters.tests.test_invariants import asked_by

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "rivers of Siberia", "deserts of Chile")


class KeyChat(Chat):
    """Says which key it was called with."""

    api_key: Any = None
    default_headers: Any = None

    def _result(self, messages: list[Any], kwargs: dict[str, Any]) -> ChatResult:
        key = self.api_key.get_secret_value() if isinstance(self.api_key, SecretStr) else self.api_key
        key = key() if callable(key) else key or next(iter((self.default_headers or {}).values()), None)
        with self._world.cond:
            self._world.visits.append(f"key {key}")
        return super()._result(messages, kwargs)


accel.register(KeyChat, pure=True, local=True, concurrency=8)


def program(world: World, model: Any, assign: Callable[[Any], None]) -> Any:
    """b sets the key of the tenant and asks, with nothing in the prompt that depends on a."""

    def a(state: State) -> State:
        world.node("a")
        return {"a": "ready"}

    def b(state: State) -> State:
        world.node("b")
        assign(model)
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    return chain(("a", a), ("b", b))


def as_secret(model: Any) -> None:
    model.api_key = SecretStr(f"key of {TENANT.get()}")


def as_text(model: Any) -> None:
    model.api_key = f"key of {TENANT.get()}"


def as_header(model: Any) -> None:
    model.default_headers = {"Authorization": f"key of {TENANT.get()}"}


def in_the_header(model: Any) -> None:
    model.default_headers = model.default_headers or {}
    model.default_headers["Authorization"] = f"key of {TENANT.get()}"


def in_a_header_with_hyphens(model: Any) -> None:
    model.default_headers = model.default_headers or {}
    model.default_headers["x-api-key"] = f"key of {TENANT.get()}"


GIVEN: dict[str, str] = {}


def by_what_a_provider_reads(model: Any) -> None:
    model.api_key = model.api_key or (lambda: GIVEN["key"])
    GIVEN["key"] = f"key of {TENANT.get()}"


ASSIGNS = [as_secret, as_text, as_header, in_the_header, in_a_header_with_hyphens, by_what_a_provider_reads]


@pytest.mark.parametrize("assign", ASSIGNS)
@pytest.mark.parametrize("tenants", [("ann", "ann", "ann", "ben"), ("ann", "ben", "ann", "ben")])
def test_no_tenant_s_question_leaves_under_another_s_key(assign: Any, tenants: tuple[str, ...]) -> None:
    world = World()
    fast = accelerate(program(world, KeyChat(world), assign))
    for tenant, topic in zip(tenants, TOPICS, strict=True):
        world.forget()
        asked_by(tenant, fast, topic)
        assert [visit for visit in world.visits if visit.startswith("key")] == [f"key key of {tenant}"]


def test_a_key_that_was_assigned_anew_is_not_trusted_although_it_is_equal() -> None:
    world = World()
    model = KeyChat(world, api_key=SecretStr("the key"))

    def assign(model: Any) -> None:
        model.api_key = SecretStr("the key")

    fast = accelerate(program(world, model, assign))
    for topic in TOPICS:
        world.forget()
        fast.invoke({"q": topic})
        assert accel.settle()
    assert world.texts("Beta", early=True) == []


def asked_early_at_last(world: World, fast: Any) -> None:
    for topic in TOPICS[:3]:
        fast.invoke({"q": topic})
        assert accel.settle()
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    world.forget()
    fast.invoke({"q": TOPICS[3]})
    assert len(world.texts("Beta", early=True)) == 1


def test_a_key_that_nobody_changes_is_trusted() -> None:
    world = World()
    model = KeyChat(world, api_key=SecretStr("the key"))
    fast = accelerate(program(world, model, lambda model: None))
    asked_early_at_last(world, fast)


AZURE = """
class Credential:
    def token(self):
        return "the key"

class Policy:
    def __init__(self, credential):
        self._credential, self._scopes = credential, ("all",)

def get_bearer_token_provider(credential):
    policy = Policy(credential)

    def wrapper():
        return policy._credential.token()

    return wrapper
"""
"""As functions of `azure.identity` are made, which gives a token of the same principal to whoever asks."""


class OfTenant:
    def token(self) -> str:
        return f"key of {TENANT.get()}"


def azure() -> ModuleType:
    module = ModuleType("azure.identity._for_tests")
    exec(AZURE, vars(module))
    return module


def test_a_key_that_a_library_gives_for_one_principal_is_trusted() -> None:
    world, identity = World(), azure()
    model = KeyChat(world, api_key=identity.get_bearer_token_provider(identity.Credential()))
    fast = accelerate(program(world, model, lambda model: None))
    asked_early_at_last(world, fast)
    assert {visit for visit in world.visits if visit.startswith("key")} == {"key the key"}


@pytest.mark.parametrize("given", ["a function", "a method", "a library's, of a credential of the program's"])
def test_a_key_that_the_program_s_code_gives_is_left_to_the_program(given: str) -> None:
    world, credential = World(), OfTenant()
    gives: dict[str, Any] = {
        "a function": lambda: credential.token(),
        "a method": credential.token,
        "a library's, of a credential of the program's": azure().get_bearer_token_provider(credential),
    }
    fast = accelerate(program(world, KeyChat(world, api_key=gives[given]), lambda model: None))
    for tenant, topic in zip(("ann", "ben", "ann", "ben"), TOPICS, strict=True):
        world.forget()
        asked_by(tenant, fast, topic)
        assert {visit for visit in world.visits if visit.startswith("key")} == {f"key key of {tenant}"}
        assert world.texts("Beta", early=True) == []


class Unvouched(BaseChatModel):
    api_key: Any = None

    @property
    def _llm_type(self) -> str:
        return "unvouched"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"Answer to {messages[-1].text}"))])


@pytest.mark.parametrize(("key", "advised"), [(SecretStr("k"), ["Unvouched"]), (lambda: "k", [])])
def test_nobody_is_told_to_declare_what_would_go_no_sooner(key: Any, advised: list[str]) -> None:
    fast = accelerate(program(World(), Unvouched(api_key=key), lambda model: None))
    for topic in TOPICS:
        fast.invoke({"q": topic})
        assert accel.settle()
    assert [one.component for one in accel.report(fast).undeclared] == advised


def test_another_function_of_the_library_is_another_key() -> None:
    world, identity = World(), azure()

    def assign(model: Any) -> None:
        model.api_key = identity.get_bearer_token_provider(identity.Credential())

    fast = accelerate(program(world, KeyChat(world, api_key=None), assign))
    for topic in TOPICS:
        world.forget()
        fast.invoke({"q": topic})
        assert accel.settle()
    assert world.texts("Beta", early=True) == []


def test_a_key_that_this_run_has_used_may_be_used_again() -> None:
    world = World()
    model = KeyChat(world)

    def a(state: State) -> State:
        world.node("a")
        as_secret(model)
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    fast = accelerate(chain(("a", a), ("b", b)))
    for tenant, topic in zip(("ann", "ben", "ann"), TOPICS, strict=False):
        asked_by(tenant, fast, topic)
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    world.forget()
    asked_by("ben", fast, TOPICS[3])
    assert {visit for visit in world.visits if visit.startswith("key")} == {"key key of ben"}
    assert len(world.texts("Beta", early=True)) == 1


def test_the_key_of_the_environment_is_everybody_s_until_somebody_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_INVARIANTS_KEYS_API_KEY", "the process's key")
    model, keys = KeyChat(World(), api_key=SecretStr("another")), Keys()
    keys.look(model, lambda: [model])
    model.api_key = SecretStr("the process's key")
    assert keys.trusts(model)
    os.environ["TEST_INVARIANTS_KEYS_API_KEY"] = "a tenant's key"
    assert not keys.trusts(model)


def test_keys_in_clients_are_found() -> None:
    openai = pytest.importorskip("langchain_openai")
    model = openai.ChatOpenAI(api_key="sk-abc", model="x")
    assert {".".join(path) for path in credentials_of(model)} >= {"openai_api_key", "client._client.api_key"}
    keys = Keys()
    keys.look(model, lambda: [model])
    assert keys.trusts(model)
    model.client._client.api_key = "sk-other"
    assert not keys.trusts(model)


def test_a_component_that_was_first_seen_while_the_program_ran_is_not_trusted() -> None:
    model, keys = KeyChat(World(), api_key=SecretStr("k")), Keys()
    keys.note(model)
    assert not keys.trusts(model) and keys.trusts(Chat(World()))


def test_a_key_that_comes_with_a_field_of_its_own_is_seen() -> None:
    model, keys = Chat(World()), Keys()
    before = keys.note(model)
    assert keys.note(model) == before == ()
    model.__dict__["api_key"] = "a tenant's key"
    assert keys.note(model) == ("a tenant's key",)
    model.__dict__["api_key"] = "another tenant's key"
    assert keys.note(model) == ("another tenant's key",)
    assert not keys.trusts(model)


def test_the_settings_of_a_module_that_stands_in_for_a_client_are_keys_and_its_functions_are_not() -> None:
    module = ModuleType("settings_and_functions")
    vars(module).update(api_key=None, get_api_key=lambda: "k", token_counter=len)

    class Client:
        def __init__(self) -> None:
            self.client = module

    keys, component = Keys(), Client()
    assert keys.note(component) == keys.note(component) == ()
    assert keys.of_everybody(component)
    module.api_key = "a tenant's"  # type: ignore[attr-defined]
    assert keys.note(component) == ("a tenant's",)
    assert not keys.of_everybody(component) and not keys.trusts(component)
