"""Keys, redaction and differences: what the commands' parts do without any framework."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from accel.commands.codec import (
    REDACTED,
    Names,
    Unwritable,
    alike_of,
    decoded,
    encoded,
    key_of,
    secrets_of,
    without,
)
from accel.commands.compare import difference, plain


@pytest.mark.parametrize(
    "value", ["text", 3, 2.5, None, True, [1, [2]], {"a": {"b": ["c"]}}, (1, "two"), [0.5] * 20, {"$tuple": 1}, []]
)
def test_values_come_back_as_they_were(value: Any) -> None:
    import json

    found = decoded(json.loads(json.dumps(encoded(value, ()))))
    assert found == value and type(found) is type(value)


def test_what_has_no_exact_copy_is_not_written() -> None:
    with pytest.raises(Unwritable):
        encoded({"client": object()}, ())


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234567890",
        "sk_live_abcdefghijklmnop12345",
        "ghp_abcdefghijklmnopqrstuvwxyz0123",
        "AKIAABCDEFGHIJKLMNOP",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "tvly-dev-abcdefghijklmnop",
        "Bearer abcdefghijkl",
    ],
)
def test_what_looks_like_a_key_is_taken_out(secret: str) -> None:
    found = without(f"the header was {secret}, and more", ())
    assert secret not in found and REDACTED in found and found.endswith("more")


def test_words_are_no_keys() -> None:
    said = "The task-based approach asks-for-more; a risk-free pick-me-up. Key: value, token, sk-short."
    assert without(said, ()) == said


def test_secrets_are_those_that_components_and_the_environment_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_TOKEN", "environment-secret")
    held = SimpleNamespace(api_key="component-secret", model="m", client=SimpleNamespace(api_key="client-secret"))
    assert {"environment-secret", "component-secret", "client-secret"} <= secrets_of(held)
    answer = {"said": "component-secret and client-secret", "headers": {"Authorization": "x", "kind": "y"}}
    assert encoded(answer, secrets_of(held)) == {
        "said": f"{REDACTED} and {REDACTED}", "headers": {"Authorization": REDACTED, "kind": "y"},
    }  # fmt: skip


def test_a_component_is_named_by_its_settings_and_not_by_its_key_or_its_count() -> None:
    class Model:
        def __init__(self, model: str, api_key: str) -> None:
            self.model, self.api_key, self.calls = model, api_key, 0

    names = Names()
    one, other, third = Model("small", "key one"), Model("small", "key two"), Model("large", "key one")
    before = names.of(one)
    one.calls += 1
    assert before == names.of(one) == names.of(other) != names.of(third)


def test_inputs_that_differ_in_times_alone_are_alike() -> None:
    one, other = ({"text": f"Now: {now.isoformat()}, {uuid4()}"} for now in (datetime.now(UTC), datetime(2020, 1, 1)))
    assert key_of(one) != key_of(other) and alike_of(one) == alike_of(other)
    assert alike_of({"text": "2020-01-01"}) != alike_of({"text": "2020-01-02"}), "a date may be what is asked about"


def test_the_first_difference_is_shown_with_its_path() -> None:
    @dataclasses.dataclass
    class Note:
        text: str
        tags: list[str]

    def of(value: Any) -> Any:
        return plain(value, lambda each: each)

    one, other = {"notes": [Note("a", ["x", "y"])]}, {"notes": [Note("a", ["x", "z"])]}
    found = difference(of(one), of(other))
    assert found is not None
    assert (found.path, found.unmodified, found.accelerated) == ("notes[0].tags[1]", "'y'", "'z'")
    assert difference(of(one), of(one)) is None
    long = "word " * 100
    found = difference({"text": long + "one"}, {"text": long + "two"})
    assert found is not None and found.unmodified.endswith("one'") and len(found.unmodified) < 130
    found = difference({"a b": [1]}, {"a b": [1, 2]})
    assert found is not None and (found.path, found.unmodified) == ("['a b'][1]", "nothing")
    assert difference(of((1, 2)), of([1, 2])) is not None, "a program can tell a tuple from a list"
    assert difference(of(True), of(1)) is not None


def test_ids_of_providers_are_set_aside_and_words_are_not() -> None:
    for text in ("chatcmpl-9aBcD1234xyz", "call_a1b2c3d4e5", "msg_01AbCdEfGh", "toolu_01XyZ12345"):
        assert plain(text, lambda each: each) == "…"
    for text in ("call_forwarding_rules", "msg_queue", "call_1", "a gen-erous offer"):
        assert plain(text, lambda each: each) == text


def test_ids_and_times_are_set_aside() -> None:
    def made() -> Any:
        return {"id": str(uuid4()), "at": datetime.now(UTC).isoformat(), "of": repr(object())}

    one, other = (plain(made(), lambda each: each) for _ in range(2))
    assert difference(one, other) is None
