"""What is learnt of agents: rounds of calls and results, however many a run has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from accel.graph.ir import Graph, Node
from accel.tests.test_core_learn import TOPICS, Script, learnt

OFFERED = [{"name": "look"}, {"name": "count"}]
More = dict[str, Any]


def agent(script: Script, topic: str, rounds: Sequence[Sequence[str]], name: str = "agent", tail: Any = ()) -> str:
    """It calls these tools round by round, and gives what it says at last."""
    messages: list[Any] = [{"class": "human", "content": f"As {name}: what of {topic}?"}]
    for number in range(len(rounds) + 1):
        script.call(name, {"messages": [*messages, *tail], "tools": OFFERED})
        asked = [
            {"name": tool, "args": {"text": f"{tool} {number}{i} {topic}"}, "id": f"{name}{number}{i} {topic}"}
            for i, tool in enumerate(rounds[number] if number < len(rounds) else ())
        ]
        said: More = {"content": f"I, {name}, said {number} on {topic}", **({"tool_calls": asked} if asked else {})}
        script.trace.calls[-1].output = said
        if not asked:
            return str(said["content"])
        messages.append({**said, "class": "ai"})
        for call in asked:
            text = call["args"]["text"]
            found = [text.upper(), len(text)] if call["name"] == "count" else f"found for {text}"
            script.call(f"{name}.tools", {"args": [], "kwargs": call["args"]}, found, op="tool")
            shown = str(found) if call["name"] == "count" else found
            messages.append({"class": "tool", "content": shown, "tool_call_id": call["id"], "name": call["name"]})
    raise AssertionError("an agent ends")


def called(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.site]


ROUNDS = {
    TOPICS[0]: [["look", "look", "count"], ["look"]],
    TOPICS[1]: [["count"]],
    "geysers of Kamchatka": [["look"], ["look", "count"], ["look"]],
    "caves of Slovenia": [],
}


@pytest.mark.parametrize("tail", [(), ({"class": "human", "content": "Be brief."},)])
def test_rounds_of_any_length_are_one_rule(tail: Any) -> None:
    def program(script: Script, topic: str) -> None:
        agent(script, topic, ROUNDS[topic], tail=tail)

    graph = learnt(program, ROUNDS)
    rounds = [node for node in called(graph) if node.op.streams]
    assert len(rounds) == 4, "the first call, and one for each round that any run has had"
    assert all(node.evidence.confidence == "verified" and node.evidence.always for node in called(graph)), str(graph)
    assert str(rounds[2]).split("\n")[1:2] == [
        "    messages: what {main.decode} was asked, then {main.decode} and {main.tool[*]}, {main.tool.2[*]}, "
        "then {main.decode.2} and {main.tool.3[*]}, {main.tool.4[*]}"
    ]


def test_a_round_that_one_run_has_shown_is_verified_by_the_others() -> None:
    def program(script: Script, topic: str) -> None:
        agent(script, topic, [["look"]] * (3 if topic == TOPICS[0] else 1))

    assert [node.evidence.confidence for node in called(learnt(program))] == ["verified"] * 7


def test_one_run_alone_proves_nothing() -> None:
    def program(script: Script, topic: str) -> None:
        agent(script, topic, [["look"]])

    assert all(node.evidence.confidence != "verified" for node in called(learnt(program, TOPICS[:1])))


def test_what_an_agent_says_at_its_end_is_not_what_it_says_on_its_way() -> None:
    def program(script: Script, topic: str) -> None:
        said = agent(script, topic, [["look"]] * (2 if topic == "geysers of Kamchatka" else 1))
        script.call("boss", f"Decide on: {said}", "fine")

    graph = learnt(program, (*TOPICS, "geysers of Kamchatka"))
    boss = next(node for node in graph.nodes if node.site == "boss" and node.predictable)
    assert [str(when) for when in boss.when] == ["{main.decode.2|called} is none"]


def test_a_program_that_forgets_messages_is_no_rule() -> None:
    def program(script: Script, topic: str) -> None:
        first = {"content": "one", "tool_calls": [{"name": "look", "args": {"text": topic}, "id": f"1{topic}"}]}
        script.call("agent", {"messages": [{"content": f"What of {topic}?"}], "tools": OFFERED})
        script.trace.calls[-1].output = first
        found = script.call("tools", {"args": [], "kwargs": {"text": topic}}, f"found for {topic}", op="tool")
        script.call("agent", {"messages": [{"content": found, "tool_call_id": f"1{topic}"}], "tools": OFFERED}, "done")

    after = [node for node in called(learnt(program)) if node.op.streams][1]
    assert "was asked" not in str(after)


def test_names_of_tools_are_the_programs_words() -> None:
    """An answer only chose them: a prompt that names them does not wait for it."""

    def program(script: Script, topic: str) -> None:
        agent(script, topic, [["look"]])
        script.call("next", f"You have the tools look and count. What of {topic}?", "fine")

    last = called(learnt(program))[-1]
    assert {ref.node for ref in last.refs()} == {"input"}


STEPS = 7


def test_the_name_of_a_tool_that_answers_repeat_is_the_program_s_in_every_round() -> None:
    """The tools are nobody's whom we see: what the model is told next is what enters its framework node."""

    def program(script: Script, topic: str) -> None:
        messages: list[Any] = [{"class": "human", "content": f"What of {topic}?"}]
        for step in range(STEPS):
            visit = script.trace.enter("agent", {"messages": list(messages)})
            script.call("agent", {"messages": list(messages), "tools": ["look"]}, within="agent")
            said = {
                "content": f"Step {step} on {topic}",
                "tool_calls": [{"name": "look", "args": {"n": f"{step}{topic}"}}],
            }
            script.trace.calls[-1].output = said
            script.trace.leave(visit, {"messages": [{**said, "class": "ai"}]})
            told = {"class": "tool", "name": "look", "content": f"{len(topic) * step} seen"}
            messages += [{**said, "class": "ai"}, told]

    calls = called(learnt(program))
    assert {node.input["tools"][0] for node in calls} == {"look"}
    assert len(calls) == 2, "the first call, and one for all that come after it"


def test_a_text_that_a_run_was_given_is_no_program_s_although_all_runs_were_given_it() -> None:
    def program(script: Script, topic: str) -> None:
        script.trace.input["style"] = "formal"
        for part in ("history", "future"):
            script.call("a", {"prompt": f"The {part} of {topic}", "style": "formal"}, f"{part} of {topic} is long")

    calls = called(learnt(program))
    assert calls and all(str(node.input["style"]) == "{input.style}" for node in calls)
