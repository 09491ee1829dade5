"""What is learnt of conversations: rounds that go over several call sites, and messages that are handed on."""

from __future__ import annotations

from typing import Any

import pytest

from accel.tests.test_core_learn import TOPICS, Script, learnt, shown
from accel.trace.record import Visit


def message(content: str, tokens: int) -> dict[str, Any]:
    """An answer as a message that says what it cost."""
    return {"content": content, "usage_metadata": {"input_tokens": tokens, "output_tokens": tokens + 3}}


def say(script: Script, site: str, history: list[Any], content: str, tokens: int) -> dict[str, Any]:
    script.call(site, {"messages": history}, content)
    script.trace.calls[-1].output = said = message(content, tokens)
    return said


def test_a_conversation_of_two_sites_is_seen_through_round_by_round() -> None:
    def program(script: Script, topic: str) -> None:
        history: list[Any] = [{"content": f"So you write on {topic}?"}]
        for turn in range(3):
            history.append(say(script, "ask", history[:], f"question {turn}{turn} about {topic}", turn + len(topic)))
            history.append(say(script, "answer", history[:], f"answer {turn}{turn} on {topic}", turn + 2 * len(topic)))

    graph = learnt(program, (*TOPICS, "geysers of Kamchatka"))
    assert [node.site for node in graph.nodes if node.site] == ["ask", "answer"] * 3
    assert all(node.evidence.confidence == "verified" and node.evidence.always for node in graph.nodes if node.site), (
        str(graph)
    )
    assert shown(graph)[-6:] == [
        "messages[0].content: So you write on {input.q}?",
        "messages[1]: {main.decode}",
        *(f"messages[{turn}]: {{main.decode.{turn}}}" for turn in range(2, 6)),
    ]


def test_what_no_template_explains_does_not_keep_the_others_waiting() -> None:
    def program(script: Script, topic: str) -> None:
        for turn in range(2):
            odd = script.call("odd", f"{topic[::-1]} {turn}", f"an answer of its own, {turn}, on {topic}")
            script.call("next", f"Go on from: {odd}", f"went on from {odd}")

    heads = [line for line in shown(learnt(program)) if " = " in line]
    assert heads == [
        "main.decode[*] = decode  # opaque, sometimes",
        "main.decode.2[*] = decode  # verified; for {main.decode[*].content} up to 2",
    ]


def test_a_dict_with_numbers_that_is_always_the_same_is_part_of_the_program() -> None:
    def program(script: Script, topic: str) -> None:
        first = say(script, "a", [{"content": topic}], f"All about {topic}", 5)
        script.call("b", [f"Check {first['content']}", first["usage_metadata"]], "fine")

    same = {"input_tokens": 5, "output_tokens": 8}
    assert [line for line in shown(learnt(program)) if "tokens" in line] == [
        f"[1].{name}: {count}" for name, count in same.items()
    ]


def talk(script: Script, topic: str, opening: str) -> None:
    """A call, then one from a framework node that the opening has entered."""
    script.call("a", f"Describe {topic}", f"All about {topic}")
    script.trace.visits.append(Visit("talk", script.trace.tick(), {"opening": opening}, 0.0))
    script.call("b", f"Be polite.\n\n{opening}", "fine", within="talk")
    script.trace.visits[-1].end = script.trace.tick()


def test_a_text_of_a_framework_node_s_is_taken_apart_where_that_is_known_sooner() -> None:
    seen = learnt(lambda script, topic: talk(script, topic, f"So you write on {topic}?"))
    assert shown(seen)[-1] == ": Be polite.\\n\\nSo you write on {input.q}?"


def test_a_text_of_a_framework_node_s_that_nothing_else_explains_stays_whole() -> None:
    seen = learnt(lambda script, topic: talk(script, topic, f"So you write on {topic[::-1]}?"))
    assert shown(seen)[-1] == ": Be polite.\\n\\n{talk.in.opening}"


@pytest.mark.parametrize(
    ("before_s", "other", "at_once"), [(0.0, False, True), (1.0, False, False), (0.0, True, False)]
)
def test_a_call_that_follows_at_once_on_what_it_needs_is_not_worth_making_early(
    before_s: float, other: bool, at_once: bool
) -> None:
    def program(script: Script, topic: str) -> None:
        script.call("a", f"Describe {topic}", f"All about {topic}")
        visit = Visit("talk", script.trace.tick(), {"opening": f"Words on {topic[::-1]}"}, 0.0)
        script.trace.visits.append(visit)
        if other:
            script.call("c", f"Be silent on {topic}", "nothing")
        script.call("b", f"Be polite.\n\n{visit.entered['opening']}", "fine", within="talk")
        script.trace.calls[-1].started_s = before_s
        visit.end = script.trace.tick()

    assert [node.evidence.at_once for node in learnt(program).nodes if node.within == "talk"] == [at_once]


@pytest.mark.parametrize(("op", "decides"), [("searching", False), ("decode", True)])
def test_what_a_search_found_decides_nothing_wherever_the_program_keeps_it(op: str, decides: bool) -> None:
    """Two runs may find one user's text."""

    def program(script: Script, topic: str) -> None:
        said = "amber" if topic in TOPICS[:2] else "slate"
        script.call("a", f"look for {topic}", said if op == "decode" else [{"text": said}], op=op)
        script.trace.visits.append(Visit("look", script.trace.tick(), {}, 0.0))
        script.trace.visits[-1].end, script.trace.visits[-1].left = script.trace.tick(), {"kept": said}
        if said == "amber":
            script.call("b", f"More on {topic}", "fine")

    assert ("is amber" in str(learnt(program, [*TOPICS[:2], "tea", "salt"]))) == decides
