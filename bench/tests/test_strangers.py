"""`python -m bench strangers` on tiny programs written here: no checkout, and nothing is said of times."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import main
from bench.measure import ACCELERATED, UNMODIFIED
from bench.strangers import command, strangers
from bench.strangers.command import document, measure
from bench.strangers.one import ADVISED, DEFAULT, REQUESTS, WARM, difference, plain
from bench.strangers.programs import FOLDER, Loader, Stranger, cells
from bench.strangers.services import Asked, Manner, Services

SCHEMA = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}}, "note": {"type": "string"}},
    "required": ["names"],
}


def chat(**more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Name three rivers, one per line."}], **more}


def ask(
    services: Services, sent: dict[str, Any], host: str = "api.openai.com", path: str = "v1/chat/completions"
) -> Any:
    reply = services.reply("POST", f"https://{host}/{path}", json.dumps(sent).encode())
    return json.loads(reply.body)


def said(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = answer["choices"][0]["message"]
    return found


# --- services


def test_answers_are_a_function_of_what_is_asked_but_not_of_the_time() -> None:
    def at(time: str) -> Any:
        services = Services()
        messages = [{"role": "system", "content": f"It is {time}."}, {"role": "user", "content": "Why?"}]
        return ask(services, {"messages": messages})

    assert at("2025-01-02T03:04:05") == at("2026-11-12 13:14:15.123456+00:00")
    assert ask(Services(), chat()) == ask(Services(), chat())
    other = {"messages": [{"role": "user", "content": "Name three lakes, one per line."}]}
    assert said(ask(Services(), chat())) != said(ask(Services(), other))


def test_longer_answers_take_longer_and_nothing_waits_while_a_program_is_loaded() -> None:
    services = Services(Manner(says={"short": "Yes.", "long": "Yes. " * 200}))

    def seconds(text: str) -> float:
        sent = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
        return services.reply("POST", "https://api.openai.com/v1/chat/completions", sent).seconds

    assert seconds("long") > seconds("short") > 0
    services.waits = False
    assert seconds("long") == 0


def test_schemas_are_filled_and_fields_can_be_given() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "Names", "schema": SCHEMA}}
    value = json.loads(said(ask(Services(), chat(response_format=form)))["content"])
    assert isinstance(value["names"], list)
    given = Services(Manner(fields={"names": ["Rhine"]}))
    assert json.loads(said(ask(given, chat(response_format=form)))["content"])["names"] == ["Rhine"]


def test_tools_are_called_so_many_rounds_and_when_they_must_be() -> None:
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": SCHEMA}}]
    services = Services(Manner(rounds=1))
    first = said(ask(services, chat(tools=tools)))
    assert [call["function"]["name"] for call in first["tool_calls"]] == ["look_up"]
    assert set(json.loads(first["tool_calls"][0]["function"]["arguments"])) == {"names"}  # what need not be said isn't
    result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "Elbe"}
    then = chat(tools=tools)
    then["messages"] += [first, result]
    assert said(ask(services, then))["content"] and "tool_calls" not in said(ask(services, then))
    then["tool_choice"] = {"type": "function", "function": {"name": "look_up"}}
    assert said(ask(services, then))["tool_calls"]


@pytest.mark.parametrize(
    ("host", "path", "shape"),
    [
        ("api.anthropic.com", "v1/messages", ("content", 0, "text")),
        ("localhost", "api/chat", ("message", "content")),
        ("api.openai.com", "v1/chat/completions", ("choices", 0, "message", "content")),
    ],
)
def test_a_stream_says_what_the_whole_answer_says(host: str, path: str, shape: tuple[Any, ...]) -> None:
    services = Services()
    whole: Any = ask(services, chat(stream=False), host, path)
    for step in shape:
        whole = whole[step]
    reply = services.reply("POST", f"https://{host}/{path}", json.dumps(chat(stream=True)).encode())
    lines = b"".join(piece for _, piece in reply.pieces).decode().splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.removeprefix("data: ").startswith("{")]
    pieces = [
        event.get("delta", {}).get("text")
        or event.get("message", {}).get("content")
        or "".join(choice["delta"].get("content") or "" for choice in event.get("choices", ()))
        for event in events
    ]
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == whole


@pytest.mark.parametrize(
    ("whole", "streamed"),
    [
        ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1/chat/completions"),
        ("https://g.com/v1/models/m:generateContent", "https://g.com/v1/models/m:streamGenerateContent?alt=sse"),
    ],
)
def test_what_is_asked_to_stream_is_asked_for_all_the_same(whole: str, streamed: str) -> None:
    services = Services()
    more = {"stream": True, "stream_options": {"include_usage": True}} if whole == streamed else {}

    def taken(url: str, **more: Any) -> Any:
        services.reply("POST", url, json.dumps({**chat(), "contents": [], **more}).encode())
        return services.taken()

    assert taken(whole) == taken(streamed, **more) != taken(whole, temperature=1)


def test_a_rule_may_look_at_the_prompt() -> None:
    services = Services(Manner(says={"rivers": lambda asked: f"{asked.rounds} rounds"}))
    assert said(ask(services, chat()))["content"] == "0 rounds"
    assert Asked("a").dice("x") == Asked("a").dice("x") != Asked("a").dice("y")


# --- programs

NOTEBOOK = {
    "graph": [
        "%pip install nothing\n!ls",
        "from typing import TypedDict\nfrom langchain_openai import ChatOpenAI\n"
        "from langgraph.graph import END, START, StateGraph\nllm = ChatOpenAI(model='gpt-4o')",
        "class State(TypedDict):\n    topics: list[str]\n    notes: list[str]",
        "def write(state):\n    return {'notes': [llm.invoke(f'Say a word on {t}.').content for t in state['topics']]}",
        "builder = StateGraph(State)\nbuilder.add_node(write)\nbuilder.add_edge(START, 'write')\n"
        "raise ValueError('odd')",
        "graph = builder.compile()\ngraph.invoke({'topics': ['never asked']})",
    ]
}


def notebook(folder: Path, sources: list[str]) -> Path:
    file = folder / "program.ipynb"
    made = [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]
    file.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ["# Text"]}, *made]}), encoding="utf-8")
    return file


def tiny(name: str = "tiny", **more: Any) -> Stranger:
    about: dict[str, Any] = {
        "about": "a note on each topic",
        "repository": "nobody/nothing",
        "commit": "0" * 40,
        "licence": "MIT",
        "path": "program.ipynb",
        "load": lambda loader: loader.notebook().graph,
        "value": lambda subject: {"topics": [f"{subject} in {place}" for place in ("Oslo", "Lima", "Rome", "Kyiv")]},
    }
    return Stranger(name=name, **{**about, **more})


def test_a_notebook_runs_without_commands_and_trials_and_says_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    file = notebook(tmp_path, NOTEBOOK["graph"])
    assert cells(file)[0] == "\n"
    fake = "class Fake:\n    def invoke(self, x):\n        seen.append(x)\nseen = []"
    sources = [*NOTEBOOK["graph"], fake, "Fake().invoke(1)"]
    notebook(tmp_path, sources)
    with asyncio.Runner() as runner:
        loader = Loader(tiny(), tmp_path, runner)
        module = loader.notebook()
    assert module.seen == []
    assert type(module.graph).__name__ == "CompiledStateGraph"
    assert loader.failed == ["program[4]:4: ValueError: odd"]


def test_a_program_of_another_flavour_of_annotations_keeps_its_own(tmp_path: Path) -> None:
    notebook(tmp_path, ["def f(x: int) -> str: ...\nnotes = f.__annotations__"])
    with asyncio.Runner() as runner:
        assert Loader(tiny(), tmp_path, runner).notebook().notes == {"x": int, "return": str}


# --- the whole way, in a process of its own

WHOLE = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from bench.tests.test_strangers import tiny
from bench.strangers.one import measured
Path(sys.argv[2]).write_text(json.dumps(measured(tiny(), Path(sys.argv[1])), default=str))
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("checkout")
    notebook(folder, NOTEBOOK["graph"])
    target = folder / "record.json"
    root = str(Path(command.__file__).parents[2])
    subprocess.run([sys.executable, "-c", WHOLE, str(folder), str(target), root], check=True, timeout=100)
    found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return found


@pytest.mark.timeout(120)
def test_both_arms_answer_alike_and_what_holds_calls_back_is_told(record: dict[str, Any]) -> None:
    assert [len(record[phase]) for phase in (DEFAULT, ADVISED)] == [REQUESTS, REQUESTS]
    assert all(one["equal"] and one["asked_all"] for phase in (DEFAULT, ADVISED) for one in record[phase])
    assert record["advice"] == ['accel.accelerate(graph, egress="inputs")']
    late = record[DEFAULT][WARM:]
    assert all(one["calls"] == 4 and one["predictable"] and one["early"] == 0 for one in late)
    assert {held["rule"] for one in late for held in one["held"]} == {"egress"}
    assert all(one["limit_s"] > 0 for one in late)
    assert any(one["early"] for one in record[ADVISED][WARM:])
    assert any("odd" in line for line in record["left_out"])


@pytest.mark.timeout(120)
def test_the_document_has_a_row_a_reason_and_a_source(record: dict[str, Any]) -> None:
    shown = document([{**record, "machine": "a machine"}], {"tiny": tiny()})
    assert "| tiny | a note on each topic | 4 |" in shown
    assert "egress" in shown.partition("## What holds each back")[2]
    assert '- `tiny`: `accel.accelerate(graph, egress="inputs")`' in shown
    assert "nobody/nothing at 000000000000" in shown


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("said_s", "together_s", "gained_s", "row"),
    [
        (0.3, 0.3, 0.25, "| tiny | 0.90 s | 300 ms | 250 ms | 0.83 | 0 ms | yes |"),
        (0.3, 0.3, 0.1, "| tiny | 0.90 s | 300 ms | 100 ms | 0.33 | 0 ms | no |"),
        (0.3, 0.1, 0.1, "| tiny | 0.90 s | 100 ms | 100 ms | 1.00 | 0 ms | yes |"),
        (0.01, 0.01, 0.01, ""),
    ],
    ids=["kept", "not kept", "the lines share it", "too little"],
)
def test_promises_are_compared_with_what_came_of_them(
    record: dict[str, Any], said_s: float, together_s: float, gained_s: float, row: str
) -> None:
    (line,) = record["followed"]
    assert all(one["said"].get(line, 0.0) > 0.0 for one in record[DEFAULT][WARM:]), "the report promised something"
    told = {"said": {line: said_s, "accel.register(Other, pure=True)": 9.0}, "said_together_s": together_s}
    saved = {DEFAULT: 0.1, ADVISED: 0.1 + gained_s}
    changed = {
        phase: [{**one, **told, "seconds": {UNMODIFIED: 1.0, ACCELERATED: 1.0 - saved[phase]}} for one in record[phase]]
        for phase in (DEFAULT, ADVISED)
    }
    shown = document([{**record, **changed, "machine": "a machine"}], {"tiny": tiny()})
    assert (row in shown) if row else ("## What following them gained" not in shown)
    if row:
        assert f"{int('| yes |' in row)} of 1 gained what they said within a third" in shown


# --- the command


def test_what_is_not_there_is_said_and_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert main(["strangers", "--programs", "react-agent", "--out", str(tmp_path / "out")]) == 0
    assert "skipped: no checkout langchain-ai+react-agent" in capsys.readouterr().out
    assert not list((tmp_path / "out").iterdir())


def test_a_program_that_raises_or_differs_is_said(tmp_path: Path) -> None:
    failed = {"name": "tiny", "failed": "not loaded: ImportError: no such thing", "machine": "a machine"}
    assert "`tiny`: failed: not loaded: ImportError" in document([failed], {"tiny": tiny()})
    assert measure(tiny(), "", tmp_path)["skipped"]


def test_unknown_programs_are_an_error() -> None:
    with pytest.raises(SystemExit):
        main(["strangers", "--programs", "nobody"])


def test_every_program_says_where_it_is_from() -> None:
    known = strangers()
    assert len({program.name for program in known}) == len(known)
    for program in known:
        assert len(program.commit) == 40 and program.repository.count("/") == 1 and program.licence
        assert json.dumps(plain(program.value("tea")))


def test_plain_values_leave_out_what_no_two_runs_share() -> None:
    from langchain_core.messages import AIMessage

    one, two = (AIMessage(f"at 0x{n}abcdef at 12:0{n}:00", id=f"id {n}") for n in (1, 2))
    assert plain({"messages": [one]}) == plain({"messages": [two]})
    assert difference(plain({"a": [1, 2]}), plain({"a": [1, 3]})) == ".a[1]: '2' / '3'"
