"""What holds an early call back, and which component it goes to, in runs of a host without a framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from accel import settle
from accel.graph import rules
from accel.graph.ir import Node, When
from accel.graph.topology import END, START, Topology
from accel.parts.components import register
from accel.parts.network.recipients import recipient
from accel.process import threads
from accel.run.bindings import Moment
from accel.run.calls.call import Call
from accel.run.foresight import permits
from accel.run.gains import reliance
from accel.run.issued import early
from accel.run.plans.plan import Plan
from accel.run.run import Run
from accel.run.settings import Budget, Settings
from accel.tests.fake_host import (
    ASK,
    EMBED,
    FIND,
    Embedder,
    Model,
    OtherModel,
    Refers,
    Store,
    node,
    opened,
    patched,
    think,
)
from accel.tests.fake_host import early as early_call
from accel.text.steps import Verdict
from accel.text.templates import Ref
from accel.trace.record import CallRecord


@pytest.fixture(scope="module", autouse=True)
def _patched() -> Iterator[None]:
    with patched():
        yield


# --- rules ------------------------------------------------------------------------------------------------------------

Change = Callable[[Run], Any]
PAUSES = Topology({START: frozenset({"a"}), "a": frozenset({END})}, pauses_before=frozenset({"a"}))
GUARD = Topology({START: frozenset({"a"}), "a": frozenset({"b"}), "b": frozenset({END})}, guards=frozenset({"a"}))
DECIDED = When(Ref("input", ("kind", Verdict())), frozenset({"this"}))


def nothing(run: Run) -> None:
    pass


def silence(run: Run) -> None:
    run.quiet = True


def makes_calls(run: Run) -> None:
    run.plan.note_composite("here")


def gave_up(run: Run) -> None:
    run.plan.disqualified[Model] = "it told on itself"


def in_the_way(run: Run) -> None:
    run.plan.note_delay(Store)


def shown_here(run: Run) -> None:
    run.learnt_here = True


def shown_to_the_end(run: Run) -> None:
    run.learnt_here = True
    run.ended["here"] += 1


def inside_a(run: Run) -> None:
    run.enter("a", None)


def answered_in_a(run: Run) -> None:
    run.trace.resumed = True
    run.enter("a", None, answers=["yes"])


def beyond_a(run: Run) -> None:
    run.leave(run.enter("a", None), None)


def inside_b(run: Run) -> None:
    beyond_a(run)
    run.enter("b", None)


def failed_in_a(run: Run) -> None:
    run.plan.note_barrier("a", {})


def one_was_issued(run: Run) -> None:
    run.counts.issued += 1


def one_is_running(run: Run) -> None:
    run.calls.hold(early_call(ASK, USED["model"], "input"))


def sent_before(run: Run) -> None:
    run.ledger.add(recipient(USED["remote"], run.plan.keys.note(USED["remote"]), None), "all about the secret")


USED = {"model": Model(), "other": OtherModel(), "store": Store(Embedder()), "remote": Model("remote")}
"""What the run has used at this call site."""
LIKELY = Settings(speculate="likely")
ONE, ONE_AT_A_TIME = Settings(budget=Budget(max_issued=1)), Settings(budget=Budget(max_outstanding=1))


def why(change: Change = nothing, used: str = "model", values: Any = (), decided: bool = True, settings: Any = None,
        asks: Node | None = None, used_at: str = "here", **host: Any) -> str:  # fmt: skip
    """Why nothing may be issued for a node; empty if it may."""
    asks = asks if asks is not None else node()
    component, method = USED[used], FIND if used == "store" else ASK
    with opened(settings=settings, **host) as run:
        run.bindings.note(used_at, component, method, run.identities.of(component, method.by_object))
        change(run)
        return permits.refuses(run, asks, list(values), decided)


@pytest.fixture(autouse=True)
def _remote() -> None:
    register(USED["remote"], local=False)


def test_what_is_sure_and_used_here_may_go() -> None:
    assert why() is None


AFTER = "a|chat|Model|a 1|here"
"""A call site after a question that was answered."""
UNSURE, SEEN, LOOPED = node().proven(always=False), node().proven(confidence="seen"), node().proven(confidence="looped")
WHEN = node(when=(DECIDED,))


@pytest.mark.parametrize(("held", "free"), [
    ({"change": silence}, {}),
    ({"asks": SEEN}, {"asks": node()}),
    ({"asks": LOOPED}, {"asks": LOOPED, "change": shown_to_the_end}),
    ({"asks": LOOPED, "change": shown_here}, {"asks": LOOPED, "change": shown_to_the_end}),
    ({"asks": UNSURE}, {"asks": UNSURE, "settings": LIKELY}),
    ({"asks": WHEN, "decided": False}, {"asks": WHEN}),
    ({"asks": WHEN, "decided": False}, {"asks": WHEN, "decided": False, "settings": LIKELY}),
    ({"change": makes_calls}, {}),
    ({"asks": node(within="b")}, {"asks": node(within="b"), "settings": LIKELY}),
    ({"asks": node(within="b")}, {"asks": node(within="b"), "change": inside_b}),
    ({"asks": node(within="b")}, {"asks": node(within="b", when=(DECIDED,))}),
    ({"asks": node(within="a"), "topology": PAUSES}, {"asks": node(within="a")}),
    ({"asks": node(within="a", site=AFTER), "used_at": AFTER}, {"asks": node(within="a")}),
    ({"asks": node(within="a"), "change": answered_in_a},
     {"asks": node(within="a", site=AFTER), "used_at": AFTER, "change": answered_in_a}),
    ({"asks": node(within="b"), "topology": GUARD}, {"asks": node(within="b"), "topology": GUARD, "change": beyond_a}),
    ({"asks": node(within="elsewhere"), "settings": LIKELY}, {"asks": node(within="b"), "settings": LIKELY}),
    ({"asks": node(site="unused")}, {}),
    ({"used": "other"}, {}),
    ({"change": gave_up}, {}),
    ({"asks": node("searching"), "used": "store", "change": in_the_way}, {"asks": node("searching"), "used": "store"}),
    ({"holds": lambda component: "a cache may answer it"}, {"holds": lambda component: ""}),
    ({"used": "remote", "values": ["the secret"]}, {"values": ["the secret"]}),
    ({"used": "remote", "values": ["the secret"]},
     {"used": "remote", "values": ["the secret"], "settings": Settings(egress="inputs")}),
    ({"used": "remote", "values": ["the secret"]}, {"used": "remote", "values": ["the secret"], "change": sent_before}),
    ({"settings": ONE, "change": one_was_issued}, {"settings": ONE}),
    ({"settings": ONE_AT_A_TIME, "change": one_is_running}, {"settings": ONE_AT_A_TIME, "change": one_was_issued}),
    ({"max_concurrency": 0}, {"max_concurrency": 1}),
])  # fmt: skip
def test_each_rule_holds_a_call_that_may_go_without_it(held: dict[str, Any], free: dict[str, Any]) -> None:
    assert why(**held) and not why(**free)


def test_a_node_that_ever_raised_stands_in_the_way_of_all_beyond() -> None:
    plan = Plan()
    with opened(plan) as run:
        run.fail(run.enter("a", None), ValueError())
    with opened(plan, settings=LIKELY) as run:
        run.bindings.note("here", USED["model"], ASK, run.identities.of(USED["model"], False))
        assert permits.refuses(run, node(within="b"), [])
        beyond_a(run)
        assert not permits.refuses(run, node(within="b"), [])


# --- components -------------------------------------------------------------------------------------------------------


def bound(plan: Plan, *used: tuple[str, Any], asks: Node | None = None, references: Any = ()) -> Any:
    """What calls of a node go to in a run that has used some components at call sites."""
    with opened(plan, references=Refers(*references)) as run:
        for site, component in used:
            run.bindings.note(site, component, ASK, run.identities.of(component, False))
        found = run.bindings.of(asks if asks is not None else node())
        return found.component if found is not None else None


def seen(*calls: tuple[str, Any]) -> Plan:
    """A plan after a run that called components at sites."""
    plan = Plan()
    for site, component in calls:
        plan.used.at[site] = (component, ASK)
    plan.contexts.bindings.note({site for site, _ in calls}, {})
    return plan


def test_what_the_run_has_used_here_is_called() -> None:
    one, other = Model("one"), Model("other")
    assert bound(Plan(), ("here", one)) is one
    assert bound(seen(("here", other)), ("here", one)) is one
    assert bound(Plan(), ("there", one)) is None


def test_what_an_earlier_run_used_is_called_only_if_the_program_refers_to_it() -> None:
    one = Model("one")
    assert bound(seen(("here", one))) is None
    assert bound(seen(("here", one)), references=[Model("one")]) is None
    assert bound(seen(("here", one)), references=[one]) is one


def test_what_equals_a_component_that_this_run_has_used_is_called() -> None:
    one, equal = Model("one"), Model("one")
    assert bound(seen(("here", one)), ("there", equal)) is equal
    assert bound(seen(("here", one)), ("there", Model("two"))) is None


def test_a_key_that_somebody_has_changed_is_not_used_before_the_program_uses_it() -> None:
    one = Model("one", key="sk-of-ann")
    plan = seen(("here", one))
    assert bound(plan, references=[one]) is None, "nobody has seen it when the program was accelerated"
    assert bound(plan, ("there", one), references=[one]) is one
    one.api_key = "sk-of-ben"
    assert bound(plan, references=[one]) is None
    assert bound(plan, ("there", one), references=[one]) is one


def test_a_key_that_changes_within_a_turn_is_not_used_either() -> None:
    """Of several calls that are issued together, each looks at it again."""
    one = Model("one", key="sk-of-ann")
    with opened(Plan()) as run:
        run.bindings.note("here", one, ASK, run.identities.of(one, False))
        turn: Moment = {}
        assert run.bindings.now(node(), turn) is not None
        one.api_key = "sk-of-ben"
        assert run.bindings.now(node(), turn) is None


def test_a_key_that_changes_between_issue_and_entrance_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Model("one", key="sk-of-ann")
    ends: list[str] = []
    began: list[Callable[[], None]] = []
    monkeypatch.setattr(threads, "spawn", lambda work: began.append(work) is None)
    with opened(Plan()) as run:
        run.bindings.note("here", one, ASK, run.identities.of(one, False))
        for text in ("first", "second"):
            bound = run.bindings.of(node())
            assert bound is not None
            tree = ASK.read(one, (text,), {})
            call = early.issue(run, node(), bound, tree, bound.key(tree))
            assert isinstance(call, Call)
            if text == "second":
                one.api_key = "sk-of-ben"
            began.pop()()
            ends.append(call.state)
    assert ends == ["done", "dropped"]


# --- components that a program makes for each call


def made_anew(model: Model) -> Plan:
    """A plan after runs that each made a model like this one for its call."""
    plan = seen(("here", model))
    plan.used.anew.add("here")
    return plan


def test_one_that_an_earlier_run_made_is_called_if_everybody_may_use_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "sk-of-all")
    for key, may in ((None, True), ("sk-of-all", True), ("sk-of-ann", False)):
        one = Model("one", key)
        plan = made_anew(one)
        plan.keys.look(object, lambda: ())
        assert (bound(plan) is one) is may
        assert bound(seen(("here", one))) is None, "it is the same one, run by run, and nobody refers to it"


def test_after_its_key_has_changed_everywhere_it_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "sk-of-all")
    plan = made_anew(Model("one", "sk-of-all"))
    plan.keys.look(object, lambda: ())
    monkeypatch.setenv("MODEL_API_KEY", "sk-of-all-others")
    assert bound(plan) is None


def test_one_that_an_earlier_run_made_is_sent_only_what_its_endpoint_has_seen() -> None:
    """Also if it is local: each tenant may have an endpoint of its own, and the next run another tenant."""
    model = Model("one")
    for settings in (Settings(), Settings(egress="inputs")):
        with opened(made_anew(model), settings=settings) as run:
            assert permits.refuses(run, node(), []) is None
            reason = permits.refuses(run, node(), ["the secret"])
            assert reason is not None and reason.rule is rules.UNMET, "egress is not what holds it"
            run.ledger.add(recipient(model, run.plan.keys.note(model), None), "all about the secret")
            assert permits.refuses(run, node(), ["the secret"]) is None


def test_what_an_earlier_object_fails_with_is_not_the_program_s_failure() -> None:
    """A closed connection of its own, say: the program's object is asked, which is open."""
    closed = Model("one")
    with opened() as run:
        for demanded, is_failure in ((Model("one"), False), (closed, True)):
            call = early_call(component=closed, state="running")
            call.record = CallRecord("here", "", "fake_ask", "fake_ask", "decode", demanded, None, None, None, 0, 0.0)
            assert run.failed(call, ValueError("closed")) is is_failure
            assert call.record.failed is is_failure


def test_at_a_site_that_calls_several_each_node_has_its_own() -> None:
    one, other = Model("one"), Model("other")
    with opened(Plan()) as run:
        of = {model.name: run.identities.of(model, False) for model in (one, other)}
    plan = seen(("here", one))
    plan.used.mixed.add("here")
    plan.used.at_mixed = {("here", of["one"]): (one, ASK), ("here", of["other"]): (other, ASK)}
    plan.used.whose = {"node": of["other"]}
    assert bound(plan, ("there", other)) is other
    assert bound(plan, ("here", one), ("here", other)) is other


def test_of_a_site_whose_component_varies_the_only_one_of_sites_that_called_the_same_is_called() -> None:
    plan = seen(("here", Model("before")))
    plan.used.varying.add("here")
    plan.used.alike["here"] = {"here", "there", "elsewhere"}
    one = Model("one")
    assert bound(plan) is None
    assert bound(plan, ("there", one)) is one
    assert bound(plan, ("there", one), ("elsewhere", Model("two"))) is None
    assert bound(plan, ("shared", one)) is None


def test_a_stage_goes_to_what_the_component_holds_now() -> None:
    store = Store(Embedder("before"))
    with opened(Plan()) as run:
        run.bindings.note("here", store, FIND, run.identities.of(store, True))
        store.embedder = Embedder("now")
        found = run.bindings.of(node("embedding").scheduled(stage_of="find"))
        assert found is not None and found.component is store.embedder and found.method is EMBED


# --- all together -----------------------------------------------------------------------------------------------------


def test_runs_of_a_program_without_a_framework() -> None:
    """The program's results are those of its components; after two runs its calls are made early, and retire."""
    model, store = Model(), Store(Embedder())

    def program(value: Any, think: Callable[[], object]) -> Any:
        think()
        said = model.fake_ask(f"the {value['topic']} in short")
        think()
        told = [model.fake_ask(f"more on {line}, please") for line in said.split("\n")]
        (found,) = store.fake_find(f"texts on {value['topic']}")
        think()
        return model.fake_ask("Sum up: " + "; ".join(told) + f" with {found}")

    plan, retired = Plan(), []
    for topic in ("volcanoes of Iceland", "glaciers of Norway", "deserts of Chile", "rivers of Peru"):
        value = {"topic": topic}
        with opened(plan, value, references=Refers(model, store)) as run:
            result = program(value, partial(think, run))
        assert settle(30.0)
        assert result == program(value, lambda: None)
        assert (run.counts.demanded, run.counts.wasted) == (6, 0)
        retired.append((run.counts.retired, run.counts.fed))
    assert retired == [(0, 0), (0, 0), (5, 1), (5, 1)], "nobody vouches for what the search reads: it only feeds"
    assert [item.evidence.confidence for item in plan.learnt.nodes if item.site] == ["verified"] * 4


def test_what_follows_a_call_that_is_in_doubt_is_in_doubt() -> None:
    """It was made in every run that had made that call, and is no more certain than that."""
    model, plan = Model(), Plan()
    places = ("volcanoes of Iceland", "glaciers of Norway", "deserts of Chile", "rivers of Peru", "lakes of Kenya")
    for topic, asks in zip(places, (True, False, True, True, False), strict=True):
        with opened(plan, {"topic": topic}, LIKELY, references=Refers(model)) as run:
            model.fake_ask(f"{topic} by name")
            think(run)
            if asks:
                told = model.fake_ask(f"the {topic} in short")
                assert all(model.fake_ask(f"more on {line}, please") for line in told.split("\n"))
            in_vain = [call.asked is reliance.UNSURE for call in run.calls.all() if not call.demanded]
        assert settle(30.0)
    assert in_vain and all(in_vain)


def test_a_loop_is_followed_in_each_of_the_first_requests() -> None:
    """What the first one has learnt of itself is not yet proven in the second, which shows it again."""
    model, plan, retired = Model(), Plan(), []
    for topic in ("volcanoes", "glaciers", "deserts"):
        value = {
            "places": [f"{topic} of {place}" for place in ("Iceland", "Norway", "Chile", "Peru", "Nepal", "Malta")]
        }
        with opened(plan, value, references=Refers(model)) as run:
            for place in value["places"]:
                model.fake_ask(f"the history of {place} in short")
                assert settle(30.0)
                think(run)
        assert settle(30.0)
        retired.append(run.counts.retired)
    assert retired == [4, 4, 5]


def test_values_of_a_run_are_not_sent_to_what_an_earlier_one_made() -> None:
    """Also not to a local model: before this run has used one like it, nobody knows that it is this run's."""
    plan, issued = Plan(), []
    for topic in ("volcanoes of Iceland", "glaciers of Norway", "deserts of Chile", "rivers of Peru"):
        with opened(plan, {"topic": topic}) as run:
            think(run)
            Model("one").fake_ask(f"the {topic} in short")
            think(run)
            before = run.counts.issued
            Model("one").fake_ask(f"the {topic} at length")
        assert settle(30.0)
        issued.append((before, run.counts.retired))
    assert issued == [(0, 0), (0, 0), (1, 1), (1, 1)], "the second call alone, once the first one was made"
