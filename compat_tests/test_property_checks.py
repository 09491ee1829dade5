"""The checks of random programs can fail: wrong on purpose, accelerators and single calls are noticed."""

from __future__ import annotations

import asyncio
import os
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import accel
from accel.parts.components import facts_of
from accel_langgraph.components import install_all
from compat_tests import differential, forked
from compat_tests.answers import ModelError
from compat_tests.arms import Arm
from compat_tests.checks import Egress, calls_differ, foreign_in_plans, other_keys, strangers
from compat_tests.fakes import FIRST_KEY, Parts, register_fakes
from compat_tests.probe import Call, early_threads
from compat_tests.programs import Program, generate
from compat_tests.surroundings import Counted, Setting, Surroundings
from compat_tests.watch import TURN, Reached, Turn, Watch

SEEDS = range(60)


def problems(program: Program, accelerator: differential.Accelerator) -> list[str]:
    verdict = differential.check(program, accelerator)
    return verdict.differences + verdict.disclosures


def test_programs_are_deterministic() -> None:
    """Plain against plain: else the property would compare accidents."""
    for seed in SEEDS:
        assert problems(generate(seed), differential.Plain()) == []


def test_every_setting_is_generated() -> None:
    programs = [generate(seed) for seed in range(300)]
    settings = [program.setting for program in programs]
    assert {setting.tenancy for setting in settings} == {"one", "context", "scopes", "fresh"}
    assert {setting.cache for setting in settings} == {"none", "model", "global", "nodes"}
    assert {setting.limited.partition(" ")[2] for setting in settings} == {"", "counted", "timed"}
    sources = "\n".join(program.source.partition("def asked_of")[2] for program in programs)
    for wanted in (
        "interrupt(",
        "= interrupt(",
        "'guard': True",
        "gated.",
        "scrub",
        "pseudonyms(",
        "model_of(",
        "vaults[",
        "vault.",
        "CALLER.get()",
        "runtime.context",
        "get_runtime(",
        "SESSION.user",
        "bound_chat()",
        "api_key =",
        "wait_for(",
    ):
        assert wanted in sources, wanted
    assert {request.cut.partition(" ")[0] for program in programs for request in program.requests} == {
        *("", "close", "keep", "cancel", "timeout", "fork")
    }
    assert {setting.callers for setting in settings} == {"none", "variable", "runtime"}


def test_components_may_be_early() -> None:
    """A fake that Accel takes for impure would show nothing."""
    register_fakes(accel.register)
    install_all()
    parts = Parts(Watch(0))
    models = [
        parts.remote,
        parts.abroad,
        parts.gated,
        parts.local,
        parts.tenant,
        *parts.models.values(),
    ]
    assert all(facts_of(model).pure for model in models)
    assert not any(facts_of(model).local for model in (parts.remote, parts.abroad, parts.gated, *parts.models.values()))
    assert all(facts_of(vault).readonly for vault in parts.vaults.values())
    assert facts_of(parts.retriever).pure and not facts_of(parts.retriever).readonly
    for left_alone in (parts.scripted, parts.follower, parts.rewriter, parts.session, parts.bound_chat()):
        assert not facts_of(left_alone).pure


class RunsTwice(differential.Plain):
    """Wrong on purpose: runs the program once more, ahead of time."""

    def accelerate(self, graph: Any, **options: Any) -> Any:
        invoke = graph.invoke
        graph.invoke = lambda given, config: (
            invoke({**given, "items": [*given["items"]]}, config),
            invoke(given, config),
        )[1]
        return graph


class MixesTenants(differential.Plain):
    """Wrong on purpose: serves all tenants with what was made for the first."""

    def __init__(self) -> None:
        self.first: Any = None

    def accelerate(self, graph: Any, **options: Any) -> Any:
        self.first = self.first or graph
        return self.first


class GoesOn(differential.Plain):
    """Wrong on purpose: what is cancelled, or no longer read, runs on."""

    def accelerate(self, graph: Any, **options: Any) -> Any:
        ainvoke, stream = graph.ainvoke, graph.stream
        graph.ainvoke = lambda *args: asyncio.shield(ainvoke(*args))
        graph.stream = lambda *args, **kwargs: (chunk for chunk in list(stream(*args, **kwargs)))
        return graph


def test_programs_that_run_twice_are_noticed() -> None:
    programs = [generate(seed) for seed in SEEDS]
    found = [bool(problems(p, RunsTwice())) for p in programs if not p.is_async and not p.setting.pauses]
    assert sum(found) > len(found) // 2


def test_tenants_that_are_mixed_up_are_noticed() -> None:
    programs = [p for p in map(generate, SEEDS) if p.setting.tenancy == "scopes" and "own." in p.source]
    found = ["was called for tenant" in "".join(problems(p, MixesTenants())) for p in programs]
    assert programs and any(found)


@pytest.mark.parametrize("cut", ["close", "cancel"])
def test_runs_that_go_on_after_they_were_cut_off_are_noticed(cut: str) -> None:
    programs = [generate(seed) for seed in range(200)]
    chosen = [p for p in programs if any(cut in r.cut and (cut == "close") != p.is_async for r in p.requests)][:20]
    found = [bool(problems(p, GoesOn())) for p in chosen]
    assert len(found) > 5 and any(found)


class LeaksCancellations(differential.Plain):
    """Wrong on purpose: a run that is timed out raises what it was stopped with."""

    def accelerate(self, graph: Any, **options: Any) -> Any:
        ainvoke = graph.ainvoke

        async def leaking(*args: Any, **kwargs: Any) -> Any:
            try:
                return await ainvoke(*args, **kwargs)
            except asyncio.CancelledError:
                raise AttributeError("what was cancelled has no answer") from None

        graph.ainvoke = leaking
        return graph


def test_timeouts_that_become_other_errors_are_noticed() -> None:
    programs = [generate(seed) for seed in range(600)]
    chosen = [p for p in programs if any(r.cut in ("timeout 1", "timeout 2") for r in p.requests)][:20]
    found = "".join("".join(problems(p, LeaksCancellations())) for p in chosen)
    assert "what was cancelled has no answer" in found


class LostInChildren(differential.Plain):
    """Wrong on purpose: in another process than it was made in, it does nothing."""

    def accelerate(self, graph: Any, **options: Any) -> Any:
        invoke, here = graph.invoke, os.getpid()
        graph.invoke = lambda *args, **kwargs: invoke(*args, **kwargs) if os.getpid() == here else None
        return graph


def test_forked_children_that_differ_are_noticed() -> None:
    programs = [generate(seed) for seed in range(200)]
    chosen = [p for p in programs if any(r.cut == "fork" and r.mode == "invoke" for r in p.requests)][:10]
    found = "".join("".join(problems(p, LostInChildren())) for p in chosen)
    assert "in_child" in found


def test_a_child_that_hangs_is_told_from_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = threading.Lock()
    with monkeypatch.context() as impatient:
        impatient.setattr(forked, "FORKED_S", 0.1)
        assert forked.in_child(lambda: str(threading.Event().wait()), lock) == forked.HANGS
    assert "ModelError" in forked.in_child(raise_error, lock)
    assert forked.in_child(lambda: "x" * 200_000, lock) == "x" * 200_000


def raise_error() -> str:
    raise ModelError("in the child")


# --- single calls


def reached(
    watch: Watch, program: Program, component: str, text: str, *, position: int = 0, early: bool = True
) -> None:
    turn = Turn(program.requests[position].tenant, position, 0)
    watch.reached.append(Reached(turn, Call(component, text, early, answer="willow")))


@pytest.fixture
def fast() -> Watch:
    return Watch(0)


@pytest.fixture
def slow() -> Watch:
    return Watch(0)


def test_what_an_endpoint_learns_is_noticed(fast: Watch, slow: Watch) -> None:
    program = generate(0)
    egress = Egress(program, relaxed=False)
    reached(fast, program, "remote", "human: secret77")
    reached(slow, program, "abroad", "human: tell me, secret77", early=False)
    assert "secret77" in "".join(egress.disclosures(fast, slow)), "another endpoint knows it"
    reached(slow, program, "remote", "human: tell me, secret77", early=False)
    assert egress.disclosures(fast, slow) == []
    reached(fast, program, "remote", "human: secret77", position=1)
    assert "secret77" in "".join(egress.disclosures(fast, slow)), "it was told in another run"


def test_what_is_sent_past_a_declared_guard_is_noticed(fast: Watch, slow: Watch) -> None:
    program = next(p for p in map(generate, range(999)) if any("STOP" in r.question for r in p.requests))
    stopped = next(i for i, request in enumerate(program.requests) if "STOP" in request.question)
    reached(fast, program, "gated", "human: meadow", position=stopped)
    for relaxed in (False, True):
        assert "past a declared guard" in "".join(Egress(program, relaxed=relaxed).disclosures(fast, slow))
    reached(slow, program, "gated", "human: meadow", position=stopped, early=False)
    assert Egress(program, relaxed=False).disclosures(fast, slow) == []


def test_data_and_components_of_strangers_are_noticed(fast: Watch, slow: Watch) -> None:
    program = next(p for p in map(generate, range(999)) if {r.tenant for r in p.requests} == {*"ab"})
    position = next(i for i, request in enumerate(program.requests) if request.tenant == "a")
    reached(fast, program, "local", "human: note on zqb99q", position=position)
    reached(fast, program, "vault-b", "amber", position=position)
    first, second = strangers(program, fast, slow, "")
    assert "data of ['zqb99']" in first and "vault-b was called for tenant a" in second
    assert strangers(program, fast, slow, "a store holds zqb99a") == [second]


def test_calls_with_a_key_of_another_run_are_noticed(fast: Watch, slow: Watch) -> None:
    turns = [Turn("a", position, 0) for position in range(2)]
    for watch, turn, key, early in [(slow, turns[0], "sk-ann", False), (fast, turns[0], "sk-ann", True)]:
        watch.reached.append(Reached(turn, Call("remote", "human: amber", early, key=key)))
        watch.keys.add((turn, "remote", key))
    assert other_keys(fast, slow, {"remote"}, {"remote"}) == []
    fast.reached.append(Reached(turns[1], Call("remote", "human: amber", True, key="sk-ann")))
    assert "with sk-ann in Turn(tenant='a', position=1" in other_keys(fast, slow, {"remote"}, set())[0]
    assert other_keys(fast, slow, set(), set()) == [], "nobody has changed it"
    fast.reached[-1:] = [Reached(turns[1], Call("remote", "human: amber", True, key=FIRST_KEY))]
    assert other_keys(fast, slow, {"remote"}, set()) == [], "somebody has, in this very turn: perhaps later"
    assert other_keys(fast, slow, {"remote"}, {"remote"})


def test_early_calls_of_what_nobody_vouches_for_are_noticed(fast: Watch) -> None:
    parts = Parts(fast)
    thread = threading.Thread(target=parts.follower.invoke, args=["amber"])
    early_threads.add(thread)
    thread.start()
    thread.join()
    assert "nobody vouches for" in fast.violations[0]
    bound = parts.bound_chat()
    thread = threading.Thread(target=bound.invoke, args=["amber"])
    thread.start()
    thread.join()
    assert "doesn't belong to" in fast.violations[1]


def around(slow: Watch, cache: str = "none") -> Surroundings:
    return Surroundings(Setting(cache=cache), Parts(slow), slow)


def test_calls_that_are_too_many_or_too_few_are_noticed(fast: Watch, slow: Watch) -> None:
    program = generate(0)
    turn = Turn(program.requests[0].tenant, 0, 0)
    reached(slow, program, "local", "human: once", early=False)
    assert "never asked" in "".join(calls_differ(fast, slow, [turn], around(slow)))
    reached(fast, program, "local", "human: once")
    reached(fast, program, "local", "human: a wrong guess")
    assert calls_differ(fast, slow, [turn], around(slow)) == []
    reached(fast, program, "local", "human: a demand of its own", early=False)
    assert "more often than by plain" in "".join(calls_differ(fast, slow, [turn], around(slow)))


def test_early_calls_that_a_cache_knows_are_noticed(fast: Watch, slow: Watch) -> None:
    program = generate(0)
    turn = Turn(program.requests[0].tenant, 0, 0)
    here = around(slow, "model")
    here.parts.local.invoke("amber")
    slow.forget()
    reached(fast, program, "local", "human: amber")
    assert "what a cache knows" in "".join(calls_differ(fast, slow, [turn], here))
    assert calls_differ(fast, slow, [turn], around(slow)) == []
    nodes = around(slow, "nodes")
    nodes.asked = {("local", "human: zqa1a")}
    reached(fast, program, "local", "human: zqa1a")
    assert calls_differ(fast, slow, [turn], nodes) == []  # of no cached node
    nodes.node_cache.set({(("node_a",), "zqa1a"): ({}, None)})
    assert "what a cache knows" in "".join(calls_differ(fast, slow, [turn], nodes))


def test_calls_past_a_rate_limiter_are_noticed(fast: Watch, slow: Watch) -> None:
    model = Parts(fast).local
    unused = fast.limits["local"] = []
    model.rate_limiter = Counted(unused)
    model.invoke("amber")
    assert fast.violations == []
    model._generate([])
    assert "without its rate limiter's permission" in fast.violations[0]
    model.rate_limiter.acquire()
    assert "permissions that no call used" in "".join(calls_differ(fast, slow, [], around(slow)))


def test_data_in_plans_is_noticed() -> None:
    graphs = {"a": SimpleNamespace(plan=["input", {"a node": ("Note on zqb3a",)}])}
    assert "holds data of ['zqb3']" in "".join(foreign_in_plans(graphs, lambda graph: "{}", ""))
    assert foreign_in_plans(graphs, lambda graph: "{}", "zqb3a in a store") == []
    assert "saved plan" in "".join(foreign_in_plans({"": None}, lambda graph: "zqa1q", ""))


def test_late_calls_are_counted_to_their_own_run() -> None:
    arm = Arm(generate(0), Watch(0), lambda graph, tenant: graph)
    turn = Turn("a", 3, 0)
    token = TURN.set(turn)
    arm.parts.local.invoke("amber")
    TURN.reset(token)
    assert [one.turn for one in arm.probe.reached] == [turn]
