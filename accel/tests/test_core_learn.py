"""Traces in, graphs out: what is learnt from hand-made traces, as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from accel.graph.ir import Graph
from accel.learn.lessons import extend, learn, lesson
from accel.parts.program.wording import Texts
from accel.text.values import Vector, freeze
from accel.trace.record import CallRecord, Trace, Visit

TOPICS = ("volcanoes of Iceland", "glaciers of Norway")
ITEMS = {
    TOPICS[0]: ["the fires of Hekla", "the ashes of Katla", "the craters of Askja"],
    TOPICS[1]: ["the fields of Jostedal", "the tongues of Svartisen", "the ice caves of Folgefonna"],
}


class Words(Texts):
    """What a program says by itself: these texts."""

    own = Texts.cover

    def __init__(self, texts: Iterable[str] = (), *dicts: dict[str, str]) -> None:
        self._said = list(texts)
        self._dicts = dicts
        super().__init__(self._said)

    def constants(self) -> list[str]:
        return self._said

    def tables(self) -> list[Any]:
        return [tuple(table.items()) for table in self._dicts]


class Script:
    """A trace written call by call."""

    def __init__(self, value: Any) -> None:
        self.trace = Trace(value)
        self.trace.tick()

    def call(self, site: str, tree: Any, output: Any = None, op: str = "decode", **fields: Any) -> Any:
        start = self.trace.tick()
        record = CallRecord(
            site,
            fields.pop("within", ""),
            op,
            op,
            op,
            None,
            "component",
            tree,
            freeze(tree),
            start,
            0.0,
            end=self.trace.tick(),
            **fields,
        )
        record.output = {"content": output} if op == "decode" else output
        self.trace.calls.append(record)
        return output

    def done(self) -> Trace:
        self.trace.completed = True
        return self.trace


def learnt(program: Any, topics: Any = TOPICS) -> Graph:
    traces = []
    for topic in topics:
        script = Script({"q": topic})
        program(script, topic)
        traces.append(script.done())
    return learn(traces)


def shown(graph: Graph) -> list[str]:
    """Heads and inputs of what was called."""
    return [line.strip() for node in graph.nodes if node.site for line in str(node).split("\n")]


def listing(script: Script, topic: str, count: int = 3) -> list[str]:
    items = ITEMS[topic][:count]
    script.call("list", f"Name parts of {topic}", "\n".join(f"{i}. {item}" for i, item in enumerate(items, 1)))
    return items


def test_a_template_over_the_input_and_an_earlier_answer() -> None:
    def program(script: Script, topic: str) -> None:
        first = script.call("a", f"Describe {topic} in short.", f"All about {topic}, at length")
        script.call("b", [f"Check: {first}", {"stop": None}], "fine")

    assert shown(learnt(program)) == [
        "main.decode = decode  # verified",
        ": Describe {input.q} in short.",
        "main.decode.2 = decode  # verified",
        "[0]: Check: {main.decode.content}",
    ]


def test_an_embedding_is_handed_on_to_a_search() -> None:
    def program(script: Script, topic: str) -> None:
        vector = Vector.of([float(len(topic)), 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
        script.call("embed", {"args": [topic]}, vector, op="embedding")
        script.call("search", {"vector": vector, "k": 4}, ["a hit"], op="searching")

    assert "vector: {main.embedding}" in shown(learnt(program))


FILES = {
    TOPICS[0]: {"hekla.txt": 'smoke over the "old" farm', "katla.txt": "ice above,\nfire below"},
    TOPICS[1]: {"jostedal.txt": 'a tongue of "blue" ice', "svartisen.txt": "black moraines,\nwhite water"},
}


def test_a_loop_over_the_items_of_a_dict() -> None:
    traces = []
    for topic in TOPICS:
        script = Script({"q": topic, "files": FILES[topic]})
        for name, text in FILES[topic].items():
            script.call("read", f"File {name} says: {text}", f"read {name}")
        traces.append(script.done())
    assert shown(learn(traces)) == [
        "main.decode[*] = decode  # verified; for {input.files|items[*].key} up to 2",
        ": File {input.files|items[*].key} says: {input.files|items[*].value}",
    ]


@pytest.mark.parametrize("first", [0, 1])
def test_the_number_of_a_call_in_its_loop(first: int) -> None:
    def program(script: Script, topic: str) -> None:
        for number, item in enumerate(listing(script, topic), first):
            script.call("each", f"Part {number}: write on {item}.", f"{item} it is")

    assert (
        shown(learnt(program))[-1]
        == f": Part {{#{'+1' if first else ''}}}: write on {{main.decode.content|numbered[*]}}."
    )


def test_a_number_that_does_not_count_the_calls_is_none_of_their_loop() -> None:
    def program(script: Script, topic: str) -> None:
        for number, item in zip((4, 9, 2), listing(script, topic), strict=True):
            script.call("each", f"Part {number}: write on {item}.", f"{item} it is")

    assert not any("{#" in line for line in shown(learnt(program)))


def test_the_fields_of_a_record_are_no_items() -> None:
    def program(script: Script, topic: str) -> None:
        script.call("a", f"Describe {topic} now.", f"All about {topic}, at length")

    assert shown(learnt(program))[1] == ": Describe {input.q} now."


@pytest.mark.parametrize(
    ("show", "said"),
    [
        (lambda text: json.dumps({"found": text}), 'Found {\\"found\\": \\"{main.decode.content|as json}\\"} here'),
        (lambda text: str([text]), "Found [{main.decode.content|as quoted}] here"),
    ],
    ids=["json", "repr"],
)
def test_texts_that_are_shown_as_code(show: Any, said: str) -> None:
    def program(script: Script, topic: str) -> None:
        found = script.call("a", f"Describe {topic} now.", f'All about "{topic}",\nat length')
        script.call("b", f"Found {show(found)} here", "fine")

    assert shown(learnt(program))[-1] == f": {said}"


@pytest.mark.parametrize(
    ("edit", "plans"), [("upper", ("free", "team")), ("capitalize", ("free", "team")), ("title", ("my way", "a box")),
    ("lower", ("Free", "TEAM"))],
)  # fmt: skip
def test_a_short_value_is_known_where_texts_differ_as_programs_write_it(edit: str, plans: tuple[str, str]) -> None:
    def program(script: Script, topic: str) -> None:
        plan = script.trace.input["plan"] = plans[TOPICS.index(topic)]
        script.call("tell", f"Tell of {topic} on the {getattr(plan, edit)()} plan, in short.", "so")

    assert shown(learnt(program))[-1] == f": Tell of {{input.q}} on the {{input.plan|{edit}}} plan, in short."


def test_rows_of_several_values() -> None:
    """Each value has a list of its own, one of them of other calls' outputs."""

    def program(script: Script, topic: str) -> None:
        items = listing(script, topic)
        told = [script.call("each", f"Tell about {item}.", f"long ago {item} were seen") for item in items]
        rows = "\n".join(f"{n}. {item} -> {text}!" for n, (item, text) in enumerate(zip(items, told, strict=True), 1))
        script.call("sum", f"Sum up:\n{rows}\nBe brief.", "fine")

    assert shown(learnt(program))[-1] == (
        ": Sum up:\\n{join {main.decode.content|lines[*]} -> {main.decode.2[*].content} by '!\\n'}!\\nBe brief."
    )


def test_a_single_row_goes_with_several() -> None:
    traces = []
    for topic, count in zip(TOPICS, (1, 3), strict=True):
        script = Script({"q": topic, "items": ITEMS[topic][:count]})
        told = [
            script.call("each", f"Tell about {item}.", f"long ago {item} were seen") for item in ITEMS[topic][:count]
        ]
        rows = [f"* {item}: {text}" for item, text in zip(ITEMS[topic], told, strict=False)]
        script.call("sum", "Sum up:\n" + "\n".join(rows), "fine")
        traces.append(script.done())
    assert shown(learn(traces))[-1] == (": Sum up:\\n* {join {input.items[*]}: {main.decode[*].content} by '\\n* '}")


ROUTES = ("billing", "technical", "Billing.", "technical", "billing")


def routed(routes: Any = ROUTES, **noise: Any) -> Graph:
    """A router, and a call that is made for one of its answers only."""
    traces = []
    for number, route in enumerate(routes):
        script = Script({"q": f"question number {number} of somebody", **{k: v[number] for k, v in noise.items()}})
        script.call("route", f"Route this: {script.trace.input['q']}", route)
        if "billing" in route.lower():
            script.call("bill", f"You do bills. Answer {script.trace.input['q']}", "a long answer")
        traces.append(script.done())
    return learn(traces)


def test_a_short_answer_decides_which_call_is_made() -> None:
    assert shown(routed())[2] == "main.decode.2 = decode  # verified; when {main.decode.content|verdict} is billing"


def test_a_decision_needs_two_witnesses() -> None:
    assert (
        shown(routed(("billing", "refund, billing", "technical")))[2] == "main.decode.2 = decode  # verified, sometimes"
    )


def test_values_that_tell_equally_well_must_agree() -> None:
    noise = ["red", "blue", "red", "blue", "red"]
    told = "main.decode.2 = decode  # verified; when "
    known = "{main.decode.content|verdict} is billing"
    assert shown(routed(color=noise))[2] == told + "{input.color|verdict} is red and " + known
    assert shown(routed((*ROUTES, "technical"), color=[*noise, "red"]))[2] == told + known


def test_what_is_known_later_decides_nothing() -> None:
    traces = []
    for number, made in enumerate((True, False, True, False)):
        script = Script({"q": f"question number {number} of somebody"})
        if made:
            script.call("may", f"Look at {script.trace.input['q']}", "a long answer")
        script.call("end", f"End with {script.trace.input['q']}", "yes" if made else "no")
        traces.append(script.done())
    assert "main.decode = decode  # verified, sometimes" in shown(learn(traces))


def test_a_grade_decides_which_elements_are_used() -> None:
    traces = []
    for topic, grades in zip(TOPICS, (("yes", "no", "yes"), ("no", "yes", "yes")), strict=True):
        script = Script({"q": topic, "items": ITEMS[topic]})
        for item, grade in zip(ITEMS[topic], grades, strict=True):
            script.call("grade", f"Is {item} worth it?", grade)
        for item, grade in zip(ITEMS[topic], grades, strict=True):
            if grade == "yes":
                script.call("each", f"Tell about {item}.", f"long ago {item} were seen")
        traces.append(script.done())
    assert shown(learn(traces))[2] == (
        "main.decode.2[*] = decode  # verified; for {input.items[*]} up to 2; "
        "when {main.decode[*].content|verdict} is yes"
    )


def test_one_trace_is_no_proof() -> None:
    graph = learnt(lambda script, topic: script.call("a", f"Describe {topic}", "x"), TOPICS[:1])
    assert shown(graph) == ["main.decode = decode  # opaque, sometimes", "? seen with one input only"]


def test_two_traces_with_one_input_are_no_proof() -> None:
    graph = learnt(lambda script, topic: script.call("a", f"Describe {topic}", "x"), (TOPICS[0], TOPICS[0]))
    assert shown(graph) == ["main.decode = decode  # opaque, sometimes", "? seen with one input only"]


def test_a_loop_over_the_items_of_an_answer() -> None:
    def program(script: Script, topic: str) -> None:
        for item in listing(script, topic):
            script.call("each", f"Explain {item} briefly", f"{item} is big")

    assert shown(learnt(program))[2:] == [
        "main.decode.2[*] = decode  # verified; for {main.decode.content|numbered[*]} up to 3",
        ": Explain {main.decode.content|numbered[*]} briefly",
    ]


def test_two_iterations_in_one_trace_are_a_loop() -> None:
    def program(script: Script, topic: str) -> None:
        for item in listing(script, topic):
            script.call("each", f"Explain {item} briefly", f"{item} is big")

    graph = learnt(program, TOPICS[:1])
    assert [node.evidence.confidence for node in graph.nodes if node.site == "each"] == ["looped"]


def test_a_loop_that_stops_early_is_capped() -> None:
    def program(script: Script, topic: str) -> None:
        for item in listing(script, topic)[:2]:
            script.call("each", f"Explain {item} briefly", f"{item} is big")

    assert "for {main.decode.content|numbered[*]} first 2" in shown(learnt(program))[2]


def test_a_loop_that_stops_anywhere_is_capped_at_the_least() -> None:
    def program(script: Script, topic: str) -> None:
        for item in listing(script, topic)[: 1 if topic == TOPICS[0] else 2]:
            script.call("each", f"Explain {item} briefly", f"{item} is big")

    assert "first 1 at most" in shown(learnt(program))[2]


@pytest.mark.parametrize(
    ("paste", "text"),
    [
        (lambda items: "; ".join(items), "{join main.decode.content|numbered[*] by '; '}"),
        (
            lambda items: "\n".join(f"[{i}] {item}" for i, item in enumerate(items, 1)),
            r"[1] {join main.decode.content|numbered[*] by '\n[{#+1}] '}",
        ),
    ],
)
def test_joins(paste: Any, text: str) -> None:
    def program(script: Script, topic: str) -> None:
        script.call("sum", f"Sum up: {paste(listing(script, topic))}.", "done")

    assert shown(learnt(program))[2:] == ["main.decode.2 = decode  # verified", f": Sum up: {text}."]


def test_a_join_is_as_long_as_the_list() -> None:
    def program(script: Script, topic: str) -> None:
        script.call("sum", f"Sum up: {', '.join(listing(script, topic, 3 if topic == TOPICS[0] else 2))}.", "done")

    assert ": Sum up: {join main.decode.content|numbered[*] by ', '}." in shown(learnt(program))


def test_joins_of_lists_that_share_elements() -> None:
    def program(script: Script, topic: str) -> None:
        items = listing(script, topic)
        one, two, three = (f"a passage on {item}" for item in items)
        found = [[one, two], [two, three], [one, three, two]]
        for item, texts in zip(items, found, strict=True):
            script.call("find", f"find {item}", [{"text": text} for text in texts], op="searching")
        for item, texts in zip(items, found, strict=True):
            script.call("sum", f"Sum up on {item}:\n" + "\n".join(texts), "done")

    graph = learnt(program)
    assert [node.evidence.confidence for node in graph.nodes if node.site == "sum"] == ["verified"], str(graph)
    assert "{join main.searching[*][*].text by" in str(graph)


def test_each_inner_list_of_a_nested_loop_is_joined() -> None:
    def program(script: Script, topic: str) -> None:
        items = listing(script, topic)
        parts = [
            script.call("parts", f"Parts of {item}", f"- upper {item}\n- lower {item}").split("\n") for item in items
        ]
        notes = [[script.call("note", f"Note {part[2:]}", f"it is {part[2:]} here") for part in two] for two in parts]
        for two in notes:
            script.call("sum", "Sum up: " + "; ".join(two), "done")

    graph = learnt(program)
    assert [node.evidence.confidence for node in graph.nodes if node.site == "sum"] == ["verified"], str(graph)
    assert "join main.decode.3[*][*].content by '; '" in str(graph)


def test_the_list_of_arguments_is_no_value_of_the_program() -> None:
    def program(script: Script, topic: str) -> None:
        written = script.call("write", f"A query on {topic}", f"1. where to see {topic}")
        script.call("find", {"args": [written.removeprefix("1. ")], "kwargs": {}}, [{"text": topic}], op="searching")

    found = [node for node in learnt(program).nodes if node.site == "find"]
    assert [str(node.input["args"][0]) for node in found] == ["{main.decode.content|numbered[0]}"]


def test_a_list_that_is_always_the_same_is_a_literal() -> None:
    ids = [f"n{number}" for number in range(9)]

    def program(script: Script, topic: str) -> None:
        found = ids[:2] if topic == TOPICS[0] else ids[4:7]
        script.call("find", {"query": f"find {topic}", "among": ids}, [{"id": one} for one in found], op="searching")
        for item in ITEMS[topic]:
            script.call("find", {"query": f"find {item}", "among": ids}, [], op="searching")

    def listed(script: Script, topic: str) -> None:
        listing(script, topic)
        program(script, topic)

    found = [node for node in learnt(listed).nodes if node.site == "find"]
    assert [node.evidence.confidence for node in found] == ["verified", "verified"]


def test_a_nested_loop() -> None:
    def program(script: Script, topic: str) -> None:
        for item in listing(script, topic, 2):
            parts = script.call("parts", f"Parts of {item}", f"- upper half of {item}\n- lower half of {item}")
            for part in parts.split("\n"):
                script.call("leaf", f"Weigh {part[2:]} now", "heavy")

    graph = learnt(program)
    assert shown(graph)[4].startswith(
        "main.decode.3[*] = decode  # verified; for {main.decode.2[*].content|bullets[*]}"
    )
    assert shown(graph)[5] == ": Weigh {main.decode.2[*].content|bullets[*]} now"


def test_the_same_call_several_times_is_a_repeat() -> None:
    def program(script: Script, topic: str) -> None:
        for _ in range(3):
            script.call("vote", f"Judge {topic}", "yes")

    assert shown(learnt(program))[0] == "main.decode[*] = decode  # verified; for 3 times"


def test_a_loop_over_distinct_items() -> None:
    def program(script: Script, topic: str) -> None:
        one, two, three = ITEMS[topic]
        script.call("list", f"Name parts of {topic}", "\n".join([one, two, one, three]))
        for item in (one, two, three):
            script.call("each", f"Explain {item} briefly", f"{item} is big")

    assert "distinct" in shown(learnt(program))[2]


def test_a_clipped_value() -> None:
    def program(script: Script, topic: str) -> None:
        answer = f"What is known since {len(topic)} centuries of old and what has been added to it only recently: a lot"
        script.call("a", f"Describe {topic}", answer)
        script.call("b", f"Continue: {answer[:80]} ...", "x")

    assert ": Continue: {main.decode.content[:80]} ..." in shown(learnt(program))


def test_a_clipped_value_that_holds_a_known_one() -> None:
    def program(script: Script, topic: str) -> None:
        answer = f"On {topic}: what is known of old, since always, and what was added to it only recently, a lot"
        script.call("a", f"Describe {topic}", answer)
        script.call("b", f"Continue: {answer[:80]} ...", "x")

    assert ": Continue: {main.decode.content[:80]} ..." in shown(learnt(program))


def test_a_short_value_is_told_from_a_literal_by_a_second_trace() -> None:
    def program(script: Script, topic: str) -> None:
        script.call("a", f"In 7 words: {topic[:2]}", "x")

    topics = ("ab", "cd")
    assert ": In 7 words: {input.q}" in shown(learnt(program, topics))


def test_text_from_nowhere_is_opaque() -> None:
    def program(script: Script, topic: str) -> None:
        script.call("a", f"Hash: {sum(map(ord, topic)) * 7919}", "x")

    lines = shown(learnt(program))
    assert lines[0].startswith("main.decode = decode  # opaque")
    assert lines[1] == "? its input holds text that no known value explains"


def found_by_both_runs(edit: Any, places: dict[str, int]) -> Graph:
    """Runs with different inputs that are given the same record of somebody's, and paste it edited."""

    def program(script: Script, topic: str) -> None:
        found = ["the record of Mr Smith", f"notes on {topic}"][:: places[topic]]
        script.call("search", {"args": [topic]}, [{"page_content": text} for text in found], op="searching")
        script.call("sum", f"Summarise: {edit('the record of Mr Smith')}", "fine")

    return learnt(program)


@pytest.mark.parametrize(("edit", "step"), [(str.upper, "upper"), (str.title, "title")], ids=["upper", "title"])
def test_an_edited_value_that_is_equal_in_two_runs_is_not_part_of_the_program(edit: Any, step: str) -> None:
    graph = found_by_both_runs(edit, dict.fromkeys(TOPICS, 1))
    assert f": Summarise: {{main.searching[0].page_content|{step}}}" in shown(graph)


def test_an_edited_value_of_which_no_reading_holds_in_every_run_is_nowhere_in_the_graph() -> None:
    graph = found_by_both_runs(str.upper, dict(zip(TOPICS, (1, -1), strict=True)))
    assert "SMITH" not in str(graph)
    assert [node.evidence.reason for node in graph.nodes if node.site == "sum"] == [
        "its input holds text that no known value explains"
    ]


SMITH = "the record of Mr Smith"


def edited(program: Any, **fields: Any) -> Graph:
    """Two runs with different inputs, in which a search finds the same record at different places."""
    traces = []
    for number, topic in enumerate(TOPICS):
        script = Script({"q": topic, **fields})
        found = [SMITH, f"notes on {topic}"][:: 1 - 2 * number]
        script.call("search", {"args": [topic]}, [{"page_content": text} for text in found], op="searching")
        program(script, topic)
        traces.append(script.done())
    return learn(traces)


def test_an_edited_value_is_somebody_s_although_a_node_puts_it_out_later() -> None:
    def program(script: Script, topic: str) -> None:
        visit = Visit("sum", script.trace.tick(), {"q": topic}, 0.0)
        script.trace.visits.append(visit)
        script.call("sum", f"Summarise: {SMITH.upper()}", "fine", within="sum", visit=visit)
        visit.left, visit.end = {"title": SMITH.upper()}, script.trace.tick()

    assert "SMITH" not in str(edited(program))


def test_an_edited_value_between_joined_items_is_somebody_s() -> None:
    def program(script: Script, topic: str) -> None:
        script.call("sum", f"\n[{SMITH.upper()}] ".join(["All", *ITEMS[topic]]), "fine")

    assert "SMITH" not in str(edited(program, items=ITEMS))


def test_what_looks_like_an_edited_value_keeps_nothing_from_being_predicted() -> None:
    def program(script: Script, topic: str) -> None:
        notes = script.call("note", f"Take notes on {topic}.", f"Notes, made in a hurry, on all of {topic}")
        text = f"Weather Report on {topic}: {notes[:36]}"
        script.call("ask", {"text": text, "kinds": ["Weather Report", "Letter"]}, "fine")

    graph = edited(program, kind="weather report")
    assert [node.evidence.confidence for node in graph.nodes if node.site == "ask"] == ["verified"], graph
    assert 'kinds[0]: "Weather Report"' in str(graph)


def test_names_of_fields_before_what_is_in_them_are_the_program_s() -> None:
    def program(script: Script, topic: str) -> None:
        editor = {"affiliation": f"University of {topic}", "description": f"Writes on {topic}"}
        visit = Visit("plan", script.trace.tick(), {"q": topic}, 0.0)
        script.trace.visits.append(visit)
        script.call("plan", f"Who writes on {topic}?", json.dumps(editor), within="plan", visit=visit)
        visit.left, visit.end = {"editor": editor}, script.trace.tick()
        lines = "\n".join(f"{name.capitalize()}: {text}" for name, text in editor.items())
        script.call("ask", f"You are an editor.\n{lines}", "fine")

    asked = next(node for node in edited(program).nodes if node.site == "ask")
    assert asked.evidence.confidence == "verified"
    assert {ref.node for ref in asked.refs()} == {"plan.decode"}, "it is known before the framework node is over"


def test_inside_a_first_run_edited_values_are_its_own() -> None:
    script = Script({"q": TOPICS[0], "docs": [f"{item}, at length and in detail" for item in ITEMS[TOPICS[0]]]})
    for document in script.trace.input["docs"]:
        script.call("note", f"# {TOPICS[0].title()}\n{document[:24]}", "fine")
    graph = extend(Graph(), script.trace, "note")
    assert [node.evidence.confidence for node in graph.nodes if node.site] == ["looped"], graph


def test_what_is_called_in_some_runs_only_is_not_always() -> None:
    def program(script: Script, topic: str) -> None:
        script.call("a", f"Describe {topic}", "x")
        if topic == TOPICS[0]:
            script.call("b", f"Extra for {topic}", "y")

    graph = learnt(program)
    assert [node.evidence.always for node in graph.nodes if node.site] == [True, False]


def test_an_item_of_a_list_that_a_model_wrote_decides() -> None:
    """As selectors write it that may choose several."""

    def program(script: Script, topic: str) -> None:
        chosen = [{"choice": "volcanoes" in topic, "reason": f"It is about {topic}, at length and in detail"}]
        script.call("choose", f"Choose for {topic}", json.dumps(chosen))
        if chosen[0]["choice"]:
            script.call("b", f"Extra for {topic}", "y")

    graph = learnt(program, (*TOPICS, "volcanoes of Java", "glaciers of Peru"))
    assert [str(when) for node in graph.nodes for when in node.when] == [
        "{main.decode.content|json[0].choice|verdict} is True"
    ]


def test_what_all_searches_found_is_handed_on_and_no_literal() -> None:
    def program(script: Script, topic: str) -> None:
        found = script.call("search", {"query": f"About {topic}"}, {"ids": ["first-3f1", "other-77c"]}, op="searching")
        for _ in range(2):
            script.call("fetch", {"ids": found["ids"], "of": ["first-3f1", "third-0a9"]}, [], op="searching")

    lines = shown(learnt(program))
    assert "ids: {main.searching.ids}" in lines and 'of[1]: "third-0a9"' in lines


def test_writes_are_left_to_the_program_and_feed_nothing() -> None:
    def program(script: Script, topic: str) -> None:
        script.call("w", {"args": [[topic]]}, None, op="ingestion")
        script.call("r", {"args": [topic, 4]}, [{"page_content": f"On {topic}"}], op="searching")

    lines = shown(learnt(program))
    assert lines[0].startswith("main.ingestion = ingestion  # opaque")
    assert lines[1:] == [
        "? ingestion is left to the program",
        "main.searching = searching  # verified",
        "args[0]: {input.q}",
        "args[1]: 4",
    ]


def test_failed_calls_teach_nothing() -> None:
    assert shown(learnt(lambda script, topic: script.call("a", f"Describe {topic}", "x", failed=True))) == []


def test_only_what_was_known_before_the_call_explains_it() -> None:
    def program(script: Script, topic: str) -> None:
        script.call("a", f"Use the later {ITEMS[topic][0]}", "x")
        script.call("b", f"Describe {topic}", ITEMS[topic][0])

    assert shown(learnt(program))[0].startswith("main.decode = decode  # opaque")


def test_a_literal_that_differs_between_runs_stays_out_of_the_graph() -> None:
    def program(script: Script, topic: str) -> None:
        script.call("a", f"User {hash_of(topic)} asks about {topic}", "x")

    def hash_of(topic: str) -> str:
        return {TOPICS[0]: "alice@example.com", TOPICS[1]: "bob@example.com"}[topic]

    for node in learnt(program).nodes:
        assert node.evidence.confidence != "verified" or not node.site


def test_learning_is_deterministic() -> None:
    def program(script: Script, topic: str) -> None:
        items = listing(script, topic)
        for item in items:
            script.call("each", f"Explain {item} of {topic}", f"{item} is big")
        script.call("sum", f"Sum up: {'; '.join(items)}.", "done")

    assert len({str(learnt(program)) for _ in range(3)}) == 1


TALKS = {
    "volcanoes": ["Hello.", "Good day to you."],
    "glaciers": ["Hi there.", "What is it?", "I am cold.", "So are we all."],
    "geysers": [],
    "deserts": ["It is so dry here.", "Have a glass of water.", "Thank you so much."],
}


def chat(ask: Any) -> Graph:
    """A program that asks with the messages so far, of which each run has more or fewer."""
    traces = []
    for topic, said in TALKS.items():
        messages = [{"role": ("user", "model")[k % 2], "content": text} for k, text in enumerate(said)]
        messages.append({"role": "user", "content": f"Tell me of {topic}."})
        script = Script({"q": topic, "messages": messages})
        script.call("a", {"messages": ask(messages, topic), "stop": None}, f"so much of {topic}")
        traces.append(script.done())
    return lesson(traces, Words(("Be kind to", "Be brief.", "Say it again.", "2", "1"))).graph


def _system(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}


def test_messages_of_any_number_behind_what_a_program_says() -> None:
    graph = chat(lambda messages, topic: [_system("Be brief."), *messages])
    [node] = [node for node in graph.nodes if node.site]
    assert node.evidence.confidence == "verified" and node.evidence.always
    assert str(node).splitlines()[1:] == [
        '    messages[0].role: "system"',
        '    messages[0].content: "Be brief."',
        "    messages[1]: *{input.messages}",
    ]


def test_messages_between_prompts_with_values() -> None:
    graph = chat(
        lambda messages, topic: [_system(f"Be kind to {topic}."), *messages, _system("Say it again."), _system(topic)]
    )
    [node] = [node for node in graph.nodes if node.site]
    assert node.evidence.always
    assert [line.strip() for line in str(node).splitlines()[2:]] == [
        "messages[0].content: Be kind to {input.q}.",
        "messages[1]: *{input.messages}",
        'messages[2].role: "system"',
        'messages[2].content: "Say it again."',
        'messages[3].role: "system"',
        "messages[3].content: {input.q}",
    ]


@pytest.mark.parametrize(
    ("taken", "shown"),
    [(lambda messages: messages[-2:], "last ones(2)"), (lambda messages: messages[:-1], "but the last(1)")],
)
def test_some_of_the_messages(taken: Any, shown: str) -> None:
    """One run has none before its question: nothing is spread there."""
    graph = chat(lambda messages, topic: [_system("Be brief."), *taken(messages), {"role": "user", "content": topic}])
    [node] = [node for node in graph.nodes if node.site]
    assert node.evidence.always
    assert f"    messages[1]: *{{input.messages|{shown}}}" in str(node).splitlines()


def test_what_is_asked_instead_of_one_that_failed_is_not_foreseen() -> None:
    """A fallback: nothing tells before that it is needed, and it may be somebody else's."""

    def program(script: Script, topic: str) -> None:
        if topic in ("volcanoes", "deserts"):
            script.call("a", f"Tell of {topic}.", failed=True)
            script.call("a", f"Tell of {topic}.", f"it is about {topic}")
            record = script.trace.calls[-1]
            record.identity, record.key = "backup", ("backup", record.key)
        else:
            script.call("a", f"Tell of {topic}.", f"it is about {topic}")

    nodes = [node for node in learnt(program, TALKS).nodes if node.site]
    assert [(node.predictable, node.evidence.always) for node in nodes] == [(True, True), (False, False)]
