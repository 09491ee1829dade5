"""Whatever can't be meant gets one clear error or warning, with the remedy; docs/wrong_inputs.md has them all."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import accel
from accel.errors import ConfigurationError, WrongObject
from accel.frameworks import frameworks
from accel.parts.components import facts_of
from adapters.tests.core_fakes import Chat, World, three
from adapters.tests.wrong_inputs import CASES, DOCUMENT, Client, document, said, score, world

LINES = [line for lines in CASES.values() for line in lines]


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, Any]]:
    with world() as names:
        yield names


@pytest.mark.parametrize("line", LINES)
def test_what_is_wrong_gets_the_message_that_people_can_read_of(line: str, names: dict[str, Any]) -> None:
    assert f">>> {line}\n{said(line, names)}\n" in DOCUMENT.read_text(encoding="utf-8")


def test_the_page_for_people_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "write it anew: python -m adapters.tests.wrong_inputs"


@pytest.mark.parametrize("line", LINES)
def test_messages_are_short_and_hold_no_address(line: str, names: dict[str, Any]) -> None:
    what, remedy = said(line, names).split("\n  Remedy: ")
    assert len(what) <= 300 and len(remedy) <= 200 and " at 0x" not in what + remedy


def test_a_wrong_object_is_a_type_error_and_a_wrong_option_is_none() -> None:
    with pytest.raises(TypeError):
        accel.accelerate(42)
    assert not issubclass(ConfigurationError, TypeError) and issubclass(WrongObject, accel.AccelError)


def test_what_is_right_is_not_refused(tmp_path: Path) -> None:
    """The bounds of what is allowed, and all forms in which it may be given."""
    made = World()
    graph = three(made, Chat(made))
    for budget in (accel.Budget(1, 1, 0), accel.Budget(waste=1), accel.Budget(waste=0.5)):
        accel.accelerate(graph, budget=budget)
    for nodes in (["a"], ("a", "b"), {"c"}, iter(["a"])):
        accel.accelerate(graph, pure_nodes=nodes)
    fast = accel.accelerate(graph, plan_scope="somebody")
    fast.warmup([{"q": "beaches of Portugal"}, {"q": "rivers of Spain"}])
    fast.warmup([{"q": "lakes"}])  # no more than one, but others were before
    fast.timeline(tmp_path / "run.html")
    fast.save_plan(tmp_path / "plan.json")
    for plan in (
        tmp_path / "plan.json",
        str(tmp_path / "plan.json"),
        accel.load_plan(tmp_path / "plan.json"),
        fast.plan,
    ):
        assert accel.accelerate(graph, plan=plan).plan.learnt.nodes


def test_a_plan_of_another_version_of_the_program_is_taken() -> None:
    """One of its nodes is new, one is gone."""
    made = World()
    fast = accel.accelerate(three(made, Chat(made)))
    changed = three(made, Chat(made)).builder
    changed.nodes["d"] = changed.nodes["a"]
    again = accel.accelerate(changed.add_edge("c", "d").compile(), plan=fast.plan)
    assert again.plan is fast.plan


def test_what_was_refused_declares_nothing() -> None:
    for facts in ({"pur": True}, {"readonly": "yes"}, {"concurrency": 0, "pure": True}):
        with pytest.raises(ConfigurationError):
            accel.register(Client, **facts)
    with pytest.raises(ConfigurationError):
        accel.register(Client, methods=["search", "serch"], readonly=True)
    assert facts_of(Client()).reason == "nobody vouches for it"
    assert score("text") == 4


def test_the_supported_versions_are_those_that_extras_install() -> None:
    extras = tomllib.loads((DOCUMENT.parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for framework in frameworks():
        for package, oldest, beyond in framework.supports:
            assert f"{package}>={oldest},<{beyond}" in extras[framework.extra]
        assert importlib.metadata.version(framework.supports[0][0]) and framework.is_installed


def test_refusals_name_the_extras_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those: where all are installed, installing helps nobody."""
    with pytest.raises(WrongObject) as caught:
        accel.accelerate(42)
    assert "pip install" not in str(caught.value)
    monkeypatch.setattr("accel.frameworks.installed", {"langgraph": "1.2"}.get)
    with pytest.raises(WrongObject) as caught:
        accel.accelerate(42)
    assert re.findall(r"accelgraph\[(\w+)\]", caught.value.remedy) == ["llamaindex"]
