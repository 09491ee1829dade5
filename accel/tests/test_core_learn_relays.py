"""What is learnt of loops whose rounds are known by the one before: one node for each call of a round, however many
rounds there are, and whatever their number depends on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from accel.graph.ir import Graph, Node
from accel.graph.ops import OPS
from accel.graph.passes import PASSES, rewrite
from accel.graph.verify import GraphError, verify
from accel.learn.check import judge
from accel.learn.lessons import learn
from accel.tests.interpret import Recorded, interpret
from accel.tests.random_programs import Host, words
from accel.text.evaluate import Env
from accel.text.extract import Open, Partial
from accel.text.paths import DROPPED, UNKNOWN
from accel.text.relay import Relay, relayed
from accel.text.steps import STAR
from accel.text.templates import Ref
from accel.text.values import Tree
from accel.trace.record import Trace

Loop = Callable[[Host, int], None]


def revised(host: Host, rounds: int) -> None:
    """A draft is criticised and checked by what is found for it, and revised by both; nothing tells when it ends."""
    topic = host.trace.input["q"]
    draft = host.ask("draft", f"Write on {topic}.")
    for _ in range(rounds):
        (fact,) = host.find("facts", draft, [words(("fact", draft), 6)])
        critique = host.ask("critic", f"Criticise for {topic}: {draft}")
        check = host.ask("check", f"Check {draft}\nby {fact}")
        draft = host.ask("revise", f"Improve {draft}\nby {critique}\nand {check}")


def at_one_line(host: Host, rounds: int) -> None:
    """First draft and revisions are written at one call site."""
    draft = host.ask("write", f"Write on {host.trace.input['q']}.")
    for _ in range(rounds):
        tone = host.ask("tone", f"Tone of {draft}?")
        check = host.ask("check", f"Check: {draft}")
        draft = host.ask("write", f"Improve {draft}\nby {tone}\nand {check}")


def numbered(host: Host, rounds: int) -> None:
    """The program counts its rounds, and the first one begins with something else."""
    feedback = "none so far"
    for number in range(rounds):
        draft = host.ask("write", f"Draft {number}. Write on {host.trace.input['q']}. Feedback: {feedback}")
        check = host.ask("check", f"Round {number + 1}. Check: {draft}")
        feedback = host.ask("critic", f"Round {number + 1} of many. Criticise {draft} after {check}")


def gathered(host: Host, rounds: int) -> None:
    """All feedback so far goes into each revision."""
    draft, feedback = host.ask("draft", f"Write on {host.trace.input['q']}."), []
    for _ in range(rounds):
        check = host.ask("check", f"Check: {draft}")
        feedback.append(host.ask("critic", f"Criticise: {draft}"))
        points = "\n".join(f"- {each}" for each in feedback)
        draft = host.ask("revise", f"Improve {draft} after {check}. Heed:\n{points}")


def two_of_one(host: Host, rounds: int) -> None:
    """Two fields of one answer are handed on, and something else beside them."""
    topic = host.trace.input["q"]
    memory = host.ask("remember", f"Begin a memory of {topic}")
    said = {"text": words(("text", topic), 6), "notes": words(("notes", topic), 6)}
    host.ask("draft", f"Write on {topic}.", json.dumps(said))
    for _ in range(rounds):
        check = host.ask("check", f"Check {said['text']} for {memory}")
        tone = host.ask("tone", f"Tone of {said['notes']}")
        memory = host.ask("memory", f"Add {check} to {memory}")
        said = {"text": words(("text", check), 6), "notes": words(("notes", check), 6)}
        host.ask("revise", f"Improve by {check}\nand {tone}", json.dumps(said))


def rewritten(host: Host, rounds: int) -> None:
    """The run's own question goes into the first round, and what became of it into the others."""
    question = host.trace.input["q"]
    for _ in range(rounds):
        (found,) = host.find("search", question, [words(("found", question), 6)])
        grade = host.ask("grade", f"Is {found} about {question}?")
        gist = host.ask("gist", f"Sum up {found}")
        question = host.ask("rewrite", f"Rewrite {question} after {grade} and {gist}")


def refined(host: Host, rounds: int) -> None:
    """An answer is refined by chunk after chunk, of which each is looked at by itself, too."""
    first, *others = host.trace.input["items"]
    answer = host.ask("answer", f"Answer {host.trace.input['q']} by {first}")
    for chunk in others:
        points = host.ask("points", f"Points of {chunk}")
        answer = host.ask("refine", f"Refine {answer}\nby {points}\nand {chunk}")


def accepted(host: Host, rounds: int) -> None:
    """It ends when a judge is content."""
    draft = host.ask("draft", f"Write on {host.trace.input['q']}.")
    for number in range(rounds + 1):
        tone = host.ask("tone", f"Tone of {draft}?")
        said = {"ok": number == rounds, "why": words(("why", draft), 6)}
        if json.loads(host.ask("judge", f"Judge {draft}", json.dumps(said)))["ok"]:
            break
        draft = host.ask("revise", f"Improve {draft}\nby {said['why']}\nand {tone}")


def run_of(loop: Loop, number: int, rounds: int, told: int | None = None) -> Trace:
    """`told`: a number of the input's."""
    host = Host({"q": words(("q", number), 5), "items": [words(("i", number, i), 5) for i in range(rounds + 1)]})
    host.trace.input |= {"n": told} if told is not None else {}
    loop(host, rounds)
    return host.done()


def lesson(loop: Loop, *rounds: int) -> Graph:
    return learn([run_of(loop, number, each) for number, each in enumerate(rounds)])


LOOPS = (revised, at_one_line, numbered, gathered, two_of_one, rewritten, refined, accepted)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_plan_does_not_grow_with_the_rounds(loop: Loop) -> None:
    sizes = {len(lesson(loop, *rounds).nodes) for rounds in ((3, 3), (7, 7), (3, 4, 5), (6, 3, 5))}
    assert len(sizes) == 1
    assert any(node.relay is not None for node in lesson(loop, 3, 3).nodes)


@pytest.mark.parametrize("loop", [loop for loop in LOOPS if loop is not numbered])
def test_two_rounds_of_two_runs_are_enough(loop: Loop) -> None:
    assert lesson(loop, 2, 2).by_name.keys() == lesson(loop, 5, 5).by_name.keys()


@pytest.mark.parametrize("loop", [accepted, refined])
@pytest.mark.parametrize("learnt", [(3, 3), (2, 3, 4)])
@pytest.mark.parametrize("rounds", [1, 3, 8])
def test_where_values_tell_how_many_rounds_there_are_all_of_any_number_are_known(
    loop: Loop, learnt: tuple[int, ...], rounds: int
) -> None:
    run = run_of(loop, 9, rounds)
    graph = lesson(loop, *learnt)
    made = interpret(graph, run).calls
    assert Counter(one.asked for one in made) == Counter(Recorded(run).asked()), str(graph)
    assert all(one.sure for one in made)
    assert judge(graph, run).complete


@pytest.mark.parametrize("loop", [revised, at_one_line, two_of_one, rewritten])
@pytest.mark.parametrize("rounds", [2, 5])
def test_where_nothing_tells_no_more_rounds_are_foretold_than_every_run_had(loop: Loop, rounds: int) -> None:
    run = run_of(loop, 9, rounds)
    made = interpret(lesson(loop, 2, 3, 4), run).calls
    assert not any(one.is_guess for one in made)
    assert Counter(one.asked for one in made) == Counter(Recorded(run_of(loop, 9, 2)).asked())


def test_rounds_that_the_program_begins_are_known_to_their_end() -> None:
    """A call that begins a round is nobody's to foresee; those after it are there for each that was made."""
    judged = judge(lesson(revised, 2, 3, 4), run_of(revised, 9, 7))
    assert sorted(judged.made.values()) == [1, 7, 7, 7, 7]


@pytest.mark.parametrize("loop", [revised, at_one_line, numbered, gathered, two_of_one, rewritten])
@pytest.mark.parametrize("beside", [-1, 0, 1])
@pytest.mark.parametrize("rounds", [1, 3, 9])
def test_a_number_of_the_input_says_how_many_rounds_there_are(loop: Loop, beside: int, rounds: int) -> None:
    graph = learn([run_of(loop, number, each, each + beside) for number, each in enumerate((2, 3, 4))])
    run = run_of(loop, 9, rounds, rounds + beside)
    made = interpret(graph, run).calls
    assert Counter(one.asked for one in made) == Counter(Recorded(run).asked()), str(graph)
    assert judge(graph, run).complete


def test_a_number_that_is_the_rounds_by_chance_says_nothing() -> None:
    for told in ((2, 3, 5), (4, 4, 4), (5, 6, 7)):
        graph = learn([run_of(revised, n, rounds, told[n]) for n, rounds in enumerate((2, 3, 4))])
        assert "input.n" not in str(graph)


def test_what_the_last_round_made_is_known_after_any_number_of_them() -> None:
    def translated(host: Host, rounds: int) -> None:
        revised(host, rounds)
        host.ask("end", f"Translate {host.trace.calls[-1].output['content']}")

    graph = learn([run_of(translated, number, each, each) for number, each in enumerate((2, 3, 4))])
    assert judge(graph, run_of(translated, 9, 6, 6)).complete


def test_one_round_of_one_run_shows_no_loop() -> None:
    for rounds in ((1, 1), (3,), (1, 3)):
        assert all(node.relay is None for node in lesson(revised, *rounds).nodes)


@pytest.mark.parametrize("inside", [True, False])
def test_a_loop_that_writes_in_between_is_none_of_these(inside: bool) -> None:
    """What it reads in one round, it may have written in the round before."""

    def noted(host: Host, rounds: int) -> None:
        topic = host.trace.input["q"]
        host.add("store", [topic])
        draft = host.ask("draft", f"Write on {topic}.")
        for _ in range(rounds):
            tone = host.ask("tone", f"Tone of {draft}?")
            check = host.ask("check", f"Check: {draft}")
            if inside:
                host.add("store", [check])
            draft = host.ask("revise", f"Improve {draft}\nby {tone}\nand {check}")
        host.add("store", [draft])

    assert any(node.relay is not None for node in lesson(noted, 3, 3).nodes) != inside


def test_calls_that_are_no_one_node_s_are_the_rounds_of_no_loop() -> None:
    """Whoever revises says something else each time."""

    def odd(host: Host, rounds: int) -> None:
        draft = host.ask("draft", f"Write on {host.trace.input['q']}.")
        for number in range(rounds):
            tone = host.ask("tone", f"Tone of {draft}?")
            how = ("Shorten", "Translate", "Extend")[number]
            draft = host.ask("revise", f"{how} what was written: {draft}\nas its tone is {tone}")

    graph = lesson(odd, 3, 3)
    assert all(node.relay is None for node in graph.nodes)
    assert judge(graph, run_of(odd, 9, 3)).complete


# --- loops made up ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A loop's calls: what each is made of, by name, and what a call's answer is from the next round on."""

    calls: tuple[tuple[str, ...], ...]
    becomes: tuple[tuple[int, str], ...]

    def run(self, host: Host, rounds: int) -> None:
        known = {"topic": host.trace.input["q"]}
        known |= {name: host.ask(f"begin {name}", f"Begin {name} of {known['topic']}") for _, name in self.becomes}
        for _ in range(rounds):
            here = dict(known)
            for number, uses in enumerate(self.calls):
                said = "\n".join(f"{name}: {here[name]}" for name in uses)
                here[f"call {number}"] = host.ask(f"site {number}", f"Step {number} goes by\n{said}")
            known |= {name: here[f"call {number}"] for number, name in self.becomes}


@st.composite
def made_up(draw: st.DrawFn) -> Made:
    """Every call goes by something of its round, and one of those that are handed on by another call than itself."""
    count = draw(st.integers(2, 5))
    handed = ["draft", "notes"][: draw(st.integers(1, 2))]
    by = draw(st.permutations(range(count)))[: len(handed)]
    calls = []
    for number in range(count):
        of_round = [*handed, *(f"call {earlier}" for earlier in range(number))]
        uses = draw(st.sets(st.sampled_from(of_round), min_size=1, max_size=3))
        calls.append((*sorted(uses), *draw(st.sampled_from([(), ("topic",)]))))
    return Made(tuple(calls), tuple(zip(by, handed, strict=True)))


@settings(phases=set(Phase) - {Phase.explain}, deadline=None)
@given(made_up(), st.permutations((2, 3, 4)), st.integers(1, 6))
def test_a_loop_is_foretold_whatever_its_rounds_are_made_of(made: Made, learnt: list[int], rounds: int) -> None:
    runs = [run_of(made.run, number, each, each) for number, each in enumerate(learnt)]
    run = run_of(made.run, 9, rounds, rounds)
    graph = learn(runs)
    calls = interpret(graph, run).calls
    assert Counter(one.asked for one in calls if one.sure) == Counter(Recorded(run).asked()), str(graph)


# --- what is handed on ------------------------------------------------------------------------------------------------


class Values(dict[str, Tree], Env):
    """What is known."""

    def value(self, node: str) -> Tree:
        return self.get(node, UNKNOWN)


LATER = Relay(Ref("draft"), Ref("revise", (STAR, "text")))


@pytest.mark.parametrize(
    ("rounds", "handed", "closed"),
    [
        (UNKNOWN, ["first"], False),
        (Open([{"text": "second"}]), ["first", "second"], False),
        ([{"text": "second"}], ["first", "second"], True),
        ([{"text": "second"}, DROPPED], ["first", "second"], True),
        (Open([{"text": Partial("sec")}, UNKNOWN]), ["first", "sec"], False),
        ([{"text": "second"}, UNKNOWN, {"text": "fourth"}], ["first", "second"], False),
    ],
)
def test_what_is_handed_on_ends_where_the_next_round_has_made_nothing_yet(
    rounds: object, handed: list[str], closed: bool
) -> None:
    values = relayed(LATER, rounds, Values({"draft": "first"}))
    assert (list(values), not isinstance(values, Open)) == (handed, closed)


def test_nothing_is_handed_on_before_the_beginning() -> None:
    assert relayed(LATER, [{"text": "second"}], Values({})) == []
    assert relayed(Relay(Ref("draft"), LATER.later, first=1), Open(), Values({"draft": "first"})) == [UNKNOWN, "first"]


def test_a_relay_alone_refers_to_what_comes_later_in_the_graph() -> None:
    later = Node("revise", OPS["decode"], site="revise", many=True)
    draft = Node("draft", OPS["decode"], site="draft")
    verify(Graph((draft, Node("relay", OPS["relay"], LATER, many=True), later)))
    with pytest.raises(GraphError, match="^relay refers to revise"):
        verify(Graph((draft, Node("relay", OPS["relay"], LATER, many=True))))


def test_passes_leave_relays_as_they_are() -> None:
    graph = lesson(revised, 3, 3)
    rewritten = rewrite(graph, PASSES, {})
    assert [node.relay for node in rewritten.nodes] == [node.relay for node in graph.nodes]
    depths = {node.name: node.schedule.depth for node in rewritten.nodes}
    assert depths["relay"] > depths["main.decode.3"] > depths["main.decode.4"]
