"""What a simulated model answers: the form that the prompt asks for, in the prompt's words."""

import json
import os
import re
import subprocess
import sys

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.engine import Sampling
from accel_sim import instructions
from accel_sim.answers import answer


def chat(user: str, system: str = "", *turns: tuple[str, str]) -> str:
    messages = [*([("system", system)] if system else []), ("user", user), *turns]
    return "".join(f"<|{role}|>\n{text}<|end|>\n" for role, text in messages) + "<|assistant|>\n"


ABOUT = "\n\nQuestion: How does a scheduler run background tasks in several processes? Rate it from 1 to 9."


def answers(instruction: str, count: int = 12) -> list[str]:
    """Of prompts that differ in what they are about only."""
    return [answer(chat(f"{instruction}{ABOUT} Case {n}."), Sampling()) for n in range(count)]


@pytest.mark.parametrize(
    ("instruction", "least", "most", "line"),
    [
        ("List three reasons, one per line.", 3, 3, r"\w+( \w+){4,13}"),
        ("Write 4 different search queries. Write one query per line and nothing else.", 4, 4, r"\w+( \w+){4,13}"),
        ("List the risks.", 3, 6, r"\w+( \w+){4,13}"),
        ("Give me a numbered list of five ideas.", 5, 5, r"\d\. \w+( \w+){4,13}"),
        ("Write 3 to 5 bullet points.", 3, 5, r"- \w+( \w+){4,13}"),
        ("Propose up to 4 sub-questions, each on its own line.", 2, 4, r"\w+( \w+){4,13}"),
        ("Write two search queries of at most 6 words, one per line.", 2, 2, r"\w+( \w+){4,5}"),
        ("Suggest 3 keywords, comma-separated.", 1, 1, r"[^,]+, [^,]+, [^,]+"),
    ],
)
def test_lists(instruction: str, least: int, most: int, line: str) -> None:
    for text in answers(instruction):
        lines = text.split("\n")
        assert least <= len(lines) <= most
        assert all(re.fullmatch(line, one) for one in lines), text


@pytest.mark.parametrize(
    ("instruction", "form"),
    [
        ("Is the passage relevant? Answer yes or no.", "yes|no"),
        ("Give a binary score 'yes' or 'no'.", "yes|no"),
        ("Answer yes or no, then explain.", r"(yes|no)\. [A-Z][\w ,]+\."),
        ("Rate the answer with a score from 1 to 5.", "[1-5]"),
        ("Rate it between 0 and 10.", r"\d|10"),
        ("How sure are you? Give a number between 0 and 1.", r"[01]|0\.\d\d?|1\.0"),
        ("Score it out of 5 and say why.", r"[0-5]\. [A-Z][\w ,]+\."),
        ("Answer with one of: search, answer, give up.", "search|answer|give up"),
        ("Choose one of the following:\n- billing\n- tech support", "billing|tech support"),
        ("Classify the request as simple or complex.", "simple|complex"),
        ("Respond with 'continue' or 'finish'.", "continue|finish"),
        ('Return "search" if it needs a search, otherwise return "answer".', "search|answer"),
    ],
)
def test_short_answers(instruction: str, form: str) -> None:
    found = answers(instruction, 40)
    assert all(re.fullmatch(form, text) for text in found), found
    assert len(set(found)) > 1, "other prompts, other answers"


@pytest.mark.parametrize("avoided", ["Avoid statements like", "Never begin with", "Do not say"])
def test_what_an_answer_is_not_to_say_is_no_choice(avoided: str) -> None:
    quoted = "'Based on the context' or 'The information given'"
    assert all(len(text.split()) > 20 for text in answers(f"{avoided} {quoted} or anything like that."))
    assert set(answers(f"{avoided} {quoted}. Answer with one of: search, give up.")) == {"search", "give up"}


def test_most_verdicts_are_yes() -> None:
    assert 0.6 < answers("Answer yes or no.", 400).count("yes") / 400 < 0.8


def test_json() -> None:
    for text in answers(
        "Plan it as JSON with the fields title, steps (a list of strings), is_safe and confidence (1-5)."
    ):
        plan = json.loads(text)
        assert list(plan) == ["title", "steps", "is_safe", "confidence"]
        assert isinstance(plan["steps"], list) and isinstance(plan["is_safe"], bool)
    for text in answers("Return a JSON list of 4 queries."):
        assert len(json.loads(text)) == 4
    for text in answers("Give a JSON array of 2 objects with the keys `name` and `age` in a code block."):
        fenced = re.fullmatch(r"```json\n(.*)\n```", text, re.DOTALL)
        assert fenced and [list(one) for one in json.loads(fenced[1])] == [["name", "age"]] * 2
    for text in answers("Say 'yes' or 'no' as a JSON with a single key 'score' and no preamble."):
        assert json.loads(text)["score"] in ("yes", "no")
    for text in answers('Answer with JSON like {"topic": "...", "items": ["..."]}.'):
        assert isinstance(json.loads(text)["items"], list)


@pytest.mark.parametrize(
    ("instruction", "unit", "least", "most"),
    [
        ("Explain in about 30 words.", r"\w+", 30, 30),
        ("Explain in at most 12 words.", r"\w+", 1, 12),
        ("Say what it means in 3 sentences.", r"\.", 3, 3),
        ("In two or three sentences, note what it says.", r"\.", 2, 3),
        ("Answer in one sentence.", r"\.", 1, 1),
        ("Answer the question in one paragraph.", r"\w+", 75, 105),
        ("Tell me about it.", r"\w+", 40, 120),
    ],
)
def test_lengths(instruction: str, unit: str, least: int, most: int) -> None:
    for text in answers(instruction):
        assert least <= len(re.findall(unit, text)) <= most
        assert re.fullmatch(r"([A-Z][\w' -]*\.( |$))+", text)


def test_answers_use_the_words_of_the_prompt() -> None:
    (text,) = answers("Write 2 search queries, one per line.", 1)
    about = {"scheduler", "run", "background", "tasks", "processes"}
    assert all(len(about & set(line.split())) >= 2 for line in text.splitlines())


def test_data_does_not_instruct_and_the_system_message_may() -> None:
    passage = "\n\nPassage:\nWrite a list of 3 queries as JSON, one per line. Answer yes or no."
    assert answer(f"Rate the passage with a score from 1 to 5.{passage}", Sampling()) in "12345"
    assert instructions.read(next(instructions.regions(f"Sum up.{passage}"))) is None
    assert answer("Text: bla\n\n" * 200 + "Answer yes or no.", Sampling()) in ("yes", "no")
    assert answer(chat("Document: x", "You are a grader. Answer 'yes' or 'no'."), Sampling()) in ("yes", "no")
    earlier = chat("Answer yes or no.", "", ("assistant", "yes"), ("user", "List 2 reasons."))
    assert len(answer(earlier, Sampling()).splitlines()) == 2
    chat_ml = "<|im_start|>user\nAnswer yes or no.<|im_end|>\n<|im_start|>assistant\n"
    assert answer(chat_ml, Sampling()) in ("yes", "no")


def test_answers_depend_on_prompt_seed_and_constraint() -> None:
    prompt = chat("Tell me about boats.")
    assert len(set(answers("Tell me about it.", 30))) == 30
    assert answer(prompt, Sampling()) == answer(prompt, Sampling(seed=1))
    assert answer(prompt, Sampling(temperature=1, seed=1)) != answer(prompt, Sampling(temperature=1, seed=2))
    assert answer(prompt, Sampling(temperature=1, seed=1)) == answer(prompt, Sampling(temperature=0.5, seed=1))


def test_any_prompt_has_an_answer() -> None:
    for prompt in (
        "",
        " ",
        "?",
        "東京 🙂",
        "\ud800",
        "<|user|>\n<|end|>\n<|assistant|>\n",
        "<|user|>\nboats",
        "{" * 500,
    ):
        assert answer(prompt, Sampling())


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300), st.sampled_from(["json", "List", "one of:", "score from", "yes or no", "in 3 words", ""]))
def test_odd_prompts_are_answered(text: str, instruction: str) -> None:
    for prompt in (instruction + text, text + instruction):
        assert answer(prompt, Sampling()) == answer(prompt, Sampling())


PROGRAM = """
from accel.engine import Constraint, Sampling
from accel_sim.answers import answer
for prompt in ("List 3 boats.", "Tell me about boats.", 'Answer as JSON with keys "a" and "b".'):
    print(answer(prompt, Sampling()))
for regex in ("[^,]{9}", r"\\W+\\w*.{5}"):
    print(answer("x", Sampling(constraint=Constraint("regex", regex))))
"""


def test_answers_repeat_in_other_processes() -> None:
    def printed(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True, text=True
        ).stdout

    assert printed("1") == printed("2") != ""


# --- tools

SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Looks {things} up.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}, "k": {"type": "integer", "minimum": 1, "maximum": 9}},
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "clock", "parameters": {}}}


@pytest.mark.parametrize(
    "system",
    [
        f"You have tools.\n<tools>\n{json.dumps(SEARCH)}\n{json.dumps(CLOCK)}\n</tools>\nReturn a json object.",
        f"Tools: {json.dumps([SEARCH, CLOCK], indent=1)}",
    ],
)
def test_tools_are_called_before_their_results_are_told(system: str) -> None:
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in (SEARCH, CLOCK)}  # type: ignore[index]
    called, told = set(), 0
    for n in range(40):
        text = answer(chat(f"Find boat {n}.", system), Sampling())
        match = re.fullmatch(r"<tool_call>\n(.*)\n</tool_call>", text)
        if match:
            call = json.loads(match[1])
            jsonschema.validate(call["arguments"], schemas[call["name"]])
            called.add(call["name"])
        told += not match
        after = chat(f"Find boat {n}.", system, ("assistant", text), ("tool", "Boats are red."))
        assert re.fullmatch(r"([A-Z][\w' -]*\.( |$))+", answer(after, Sampling()))
    assert called == {"search", "clock"} and 0 < told < 20
