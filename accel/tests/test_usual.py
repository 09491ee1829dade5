"""A flag that has always been the same: where it is another one, what always followed is in doubt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accel import register, settle
from accel.parts.methods.patches import install
from accel.run.plans.plan import Plan
from accel.run.plans.saved import save
from accel.run.settings import Settings
from accel.tests.fake_host import ASK, Model, Refers, opened, patched, think
from accel.tests.test_core_learn import Script, learnt
from accel.text.values import Tree

PLACES = ("volcanoes of Iceland", "glaciers of Norway", "deserts of Chile", "rivers of Peru", "lakes of Kenya")


@pytest.fixture(autouse=True)
def classes(nobody_loses_hope: None) -> Any:
    with patched():
        install(Judge, ASK)
        register(Judge, pure=True, local=True, concurrency=8)
        yield


class Judge(Model):
    """Says whether more is to be asked, and what; that also where it is not."""

    enough = False

    def fake_ask(self, text: str) -> str:
        told = super().fake_ask(text)
        more = [f"the {word} of {told}" for word in ("history", "future")]
        return json.dumps({"enough": Judge.enough, "more": more}) if "enough" in text else told


def researched(model: Model, topic: str, run: Any = None) -> None:
    said = json.loads(model.fake_ask(f"Is this enough on {topic}?"))
    if run is not None:
        think(run)
    for question in () if said["enough"] else said["more"]:
        model.fake_ask(f"Find {question}")


@pytest.mark.parametrize("speculate", ["auto", "certain"])
def test_what_a_new_flag_may_call_off_is_not_early(speculate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, plan, early = Judge(), Plan(), []
    for topic in PLACES:
        monkeypatch.setattr(Judge, "enough", topic == PLACES[-1])
        with opened(plan, {"topic": topic}, Settings(speculate=speculate), references=Refers(model)) as run:
            researched(model, topic, run)
            early.append(run.counts.issued)
        assert settle(30.0)
        assert not run.counts.wasted
    assert early[3] == 2 and early[4] == 0


def flags(output: Any) -> list[str]:
    """Those with which a program asks what an answer of a model names."""

    def program(script: Script, topic: str) -> None:
        said = output(topic)
        script.call("j", f"Is this enough on {topic}?", json.dumps(said))
        for question in said["more"]:
            script.call("f", f"Find {question}", "found")

    return [str(when) for when in learnt(program, ["boats", "salt"]).nodes[-1].evidence.usual]


def more_on(topic: str) -> Tree:
    return [f"history of the {topic}", f"future of the {topic}"]


def test_flags_beside_what_is_asked_that_two_runs_agree_on() -> None:
    kept = flags(lambda topic: {"enough": False, "sure": topic == "salt", "topic": topic, "more": more_on(topic)})
    assert kept == ["{main.decode.content|json.enough|verdict} is False"]


class Quoting(Model):
    """Has somebody's words as a key."""

    def fake_ask(self, text: str) -> str:
        more = [f"the {word} of what is known on {text}" for word in ("history", "future")]
        said = {"enough": False, "alice has diabetes": True, "more": more}
        return json.dumps(said) if "enough" in text else super().fake_ask(text)


def test_they_are_in_no_saved_plan(tmp_path: Any) -> None:
    """The program names none of them."""
    install(Quoting, ASK)
    register(Quoting, pure=True, local=True, concurrency=8)
    model, plan = Quoting(), Plan()
    for topic in PLACES[:3]:
        with opened(plan, {"topic": topic}, references=Refers(model)):
            researched(model, topic)
        assert settle(30.0)
    assert any(node.evidence.usual for node in plan.learnt.nodes)
    save(plan, str(tmp_path / "plan.json"))
    assert "diabetes" not in (tmp_path / "plan.json").read_text(encoding="utf-8")
