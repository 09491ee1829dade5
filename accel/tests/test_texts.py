"""Which words are the program's own."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from accel.parts.program.places import Place
from accel.parts.program.texts import said_by_program, standing_texts, stands
from accel.parts.program.wording import Texts, today

PROMPT = "Summarise {text} in one line for a {reader}."
PROMPTS = {
    "brief": "Say it briefly, please",
    "long": "Say it at length, if you can",
}
OF_USERS = {
    "default": "Whoever you are, be welcome",
    "note of ann": "The diagnosis is bad",
    "letter": "Write a letter to {name}, kindly",
}
STYLES: dict[str, Any] = {
    "novel": {"ending": "They lived happily ever after"},
}
STYLES_OF_USERS: dict[str, Any] = {
    "novel": {"ending": "And none of them was seen again"},
    "ann": {"letter": "Your secret admirer writes"},
}
note = "nothing yet"
NOTES: list[Any] = [SimpleNamespace(text="The diagnosis is worse")]


def helper(text: str, style: str = "in plain words") -> str:
    """Write like Hemingway."""
    return PROMPT.format(text=text, reader="child") + style


class Node:
    greeting = "Dear reader of this"

    def __init__(self) -> None:
        self.sign = "Yours, the machine"
        self.seen = "nothing so far"

    def __call__(self, state: dict[str, str]) -> str:
        global note
        note = state["note"]
        self.seen = state["note"]
        text = f"Explain to {state['q']}: {note}" + PROMPTS["brief"] + PROMPTS.get("long")
        text += OF_USERS.get(state["q"], OF_USERS["default"]) + self.greeting
        text += STYLES["novel"]["ending"] + STYLES_OF_USERS[state["q"]]["letter"] + STYLES_OF_USERS["novel"]["ending"]
        return helper(text) + self.sign + self.seen + "".join(one.text for one in NOTES)


def says(value: Any, held: bool) -> Any:
    return None


def nothing(value: Any) -> bool:
    return False


def texts(*roots: Any) -> Texts:
    standing = standing_texts(roots, nothing, nothing, says)
    return Texts(said_by_program(roots, nothing, nothing, says, standing).texts)


@pytest.mark.parametrize(
    "text",
    [
        "Explain to ", ": ", "Summarise ", " in one line for a ", "in plain words", "Say it briefly, please",
        "SUMMARISE\n  child: explain to", "Dear reader of this", "Yours, the machine", "Write like Hemingway.", "7", "",
        "They lived happily ever after", "Say it at length, if you can",
        "Explain to : Say it briefly, please\n\nYours, the machine",
    ],
)  # fmt: skip
def test_constants_of_code_templates_and_what_code_names_are_the_program_s(text: str) -> None:
    assert texts(Node().__call__).cover(text)
    assert texts(functools.partial(Node())).cover(text)


@pytest.mark.parametrize(
    "text",
    [
        "The diagnosis is bad", "The diagnosis is worse", "bad", "Explain to ann: ", "nothing yet",
        "The prognosis is grim", "Explain to 4711", "words", "Summarise ann in one line",
        "Your secret admirer writes", "Whoever you are, be welcome", "And none of them was seen again",
    ],
)  # fmt: skip
def test_what_code_chooses_by_a_value_or_sets_while_it_runs_is_not(text: str) -> None:
    node = Node()
    node.seen = "The prognosis is grim"
    assert not texts(node.__call__).cover(text)


def test_a_piece_in_the_middle_of_a_word_covers_nothing() -> None:
    found = Texts(["ann", "a", "bad"])
    assert not found.cover("banner") and not found.cover("annabad") and found.cover("ann, bad")


def test_what_is_left_of_a_text_without_the_program_s_words() -> None:
    found = Texts(["Explain to {name} that ", " in two lines, please", "As you know"])
    assert found.beyond("Explain to Ann Miller that") == "Ann Miller"
    assert found.beyond("Explain to Ann that all is lost in two lines, please.") == "Ann that all is lost"
    assert found.beyond("All is lost, as you know") == "All is lost,"
    assert found.beyond("Explain to Ann that 2026-11-10, in two lines, please") == "Ann that 2026-11-10,"
    assert found.beyond("As you know 17 of 2026/explain to Ann") == "17 of 2026/explain to Ann"
    assert found.beyond("Explain to all that") == "all" and found.beyond("As you know,") == found.beyond("") == ""


def test_a_count_that_the_program_computes_names_nobody_and_a_longer_number_does() -> None:
    found = Texts(["Answer in about ", " words."])
    assert found.cover("Answer in about 150 words.") and not found.cover("Answer in about 4711 words.")


PERSONAL = ("417", "030 555 123 26", "192.168.12.7", "ben-112", "12-7", "A-1 34", "No. 417.")


@pytest.mark.parametrize("number", PERSONAL)
@pytest.mark.parametrize(
    "form", ["The file: {}. Answer at once.", " {} of ", "-{}", "{}", "of {}", "of\n{} of the file"]
)
def test_other_numbers_may_be_somebody_s(form: str, number: str) -> None:
    found = Texts(["The file: ", ". Answer at once.", " of ", "No.", " of the file"])
    assert not found.cover(form.format(number))


@pytest.mark.parametrize("text", ["\n2. ", "\n  - 12) ", "of the file [3]: ", "\n\n(1) of the file"])
def test_the_number_of_an_item_names_nobody(text: str) -> None:
    assert Texts(["of the file"]).cover(text)


FORMS = ("%Y", "%B %d, %Y", "%A, %d %B %Y", "%Y-%m-%d", "%m/%d/%Y", "%d.%m.%Y", "%a %b %d, %Y", "%d %B %Y")


@pytest.mark.parametrize("form", FORMS)
def test_the_day_names_nobody_and_another_one_does(form: str) -> None:
    found, now = Texts(["Today is ", ". Answer at once."]), datetime.now()
    assert found.cover(f"Today is {now.strftime(form)}. Answer at once.")
    assert not found.cover(f"Today is {(now - timedelta(days=400)).strftime(form)}. Answer at once.")
    other = (now - timedelta(days=3)).replace(year=now.year)
    assert form == "%Y" or not found.cover(f"Today is {other.strftime(form)}. Answer at once.")


@pytest.mark.parametrize(
    "form", ["%Y-417", "417-%Y", "%Y/417", "417 %Y", "%Y 417", "1.%Y", "%Yx", "x%Y", "32 %B %Y", "%Y-%m-%d-7"]
)
def test_a_number_beside_the_day_is_no_day(form: str) -> None:
    assert not Texts(["The file of ", " says"]).cover(datetime.now().strftime(f"The file of {form} says"))


def test_the_day_of_the_month_without_a_nought() -> None:
    may = datetime(2031, 5, 4, 1, 2, tzinfo=UTC)
    assert {"May 4, 2031", "4 May 2031", "4.5.2031", "May 04, 2031", "2031-05-04"} <= today(lambda zone: may)
    assert not {"May", "4", "Sunday"} & today(lambda zone: may)


def test_what_a_library_s_tool_takes_is_the_library_s() -> None:
    """Its choices, defaults and descriptions, but nothing of its code."""
    tavily = pytest.importorskip("langchain_tavily", reason="an integration with a schema")
    tool = SimpleNamespace(args_schema=tavily.tavily_search.TavilySearchInput)
    found = Texts(said_by_program([tool], lambda value: value is tool, nothing, says).texts)
    assert found.cover("basic") and found.cover("ultra-fast") and found.cover("finance")
    assert not found.cover("invoices")


def test_a_library_s_schema_that_a_program_holds_says_what_models_are_told_of_it() -> None:
    """Its name and those of its fields, as titles, too, its docstring, and the same of schemas within it; the class of
    an object is not told anybody."""
    module = pytest.importorskip("llama_index.core.postprocessor.structured_llm_rerank", reason="a schema of schemas")
    kind = module.DocumentRelevanceList
    held = Texts(said_by_program([{"output": kind}], nothing, nothing, says).texts)
    document = kind.model_json_schema()["$defs"]["DocumentWithRelevance"]
    assert held.cover("#/$defs/DocumentWithRelevance") and held.cover(document["description"])
    assert held.cover(document["properties"]["document_number"]["title"])
    used = Texts(said_by_program([{"output": kind(documents=[])}], nothing, lambda value: True, says).texts)
    assert not used.cover("DocumentWithRelevance") and not held.cover("invoices")


# --- whether a text still stands where it was found

TONE, TONES, ALL_TONES = "in a friendly tone", {"first": "in a formal tone"}, ("in a tone of doubt", "in no tone")
FORMATS = ["Write to {name} at once", "Write to {name} at leisure"]


@dataclass
class Made:
    tone: str = field(default_factory=lambda: TONE)


class Prompt:
    """As a framework's: all that it holds is said."""

    def __init__(self, *parts: Any) -> None:
        self.parts = list(parts)


PROMPT_OF_PARTS = Prompt("from the first part", {"named": "from a part by name"}, {"from a set"})


def toned(text: str, tone: str = "in the usual tone", *, other: str = "in another tone") -> Any:
    one = text + TONE + TONES["first"] + "".join(ALL_TONES) + FORMATS[len(text)]
    return one, tone, other, Made(), PROMPT_OF_PARTS


def said(value: Any, held: bool) -> Any:
    return vars(value) if isinstance(value, Prompt) else None


def changed(name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setitem(globals(), name, value)


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "in a friendly tone": changed("TONE", "in an unfriendly tone"),
    "in a formal tone": lambda patch: patch.setitem(TONES, "first", "in a lazy tone"),
    "in a tone of doubt": changed("ALL_TONES", ("in no tone", "in no tone at all")),
    "Write to {name} at leisure": changed("FORMATS", FORMATS[:1]),
    "in the usual tone": lambda patch: patch.setattr(toned, "__defaults__", ("in an unusual tone",)),
    "in another tone": lambda patch: patch.setattr(toned, "__kwdefaults__", {"other": "in the same tone"}),
    "from the first part": lambda patch: patch.setattr(PROMPT_OF_PARTS, "parts", ["from another"]),
    "from a part by name": lambda patch: patch.setitem(PROMPT_OF_PARTS.parts[1], "named", "from another"),
    "named": lambda patch: patch.delitem(PROMPT_OF_PARTS.parts[1], "named"),
    "from a set": lambda patch: patch.setattr(PROMPT_OF_PARTS, "parts", []),
}


@pytest.mark.parametrize("text", CHANGES)
def test_a_text_stands_as_long_as_it_is_at_its_place(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = placed(toned, text)
    CHANGES[text](monkeypatch)
    assert not stands([toned], text, place)


def placed(root: Any, text: str) -> Place:
    """Where it is found, and stands."""
    found = said_by_program([root], nothing, nothing, said, standing_texts([root], nothing, nothing, said)).texts
    place = found[text]
    assert place is not None and stands([root], text, place)
    return place


def test_what_a_function_was_given_stands_as_long_as_that_is_so() -> None:
    text = "a word of the caller's"
    place = placed(functools.partial(toned, text), text)
    assert not stands([functools.partial(toned, "a word of another's")], text, place)


def test_what_a_variable_gives_to_a_field_is_looked_for_in_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> Made:
        return Made()

    text, place = TONE, placed(made, TONE)
    monkeypatch.setitem(globals(), "TONE", "in an unfriendly tone")
    assert not stands([made], text, place)


def test_a_long_prompt_of_a_program_is_told_by_few_looks_at_it() -> None:
    """400 kB, in a variable: each look goes over all of it."""

    class Counted(Texts):
        looks = 0

        def _holds(self, part: str) -> bool:
            self.looks += 1
            return super()._holds(part)

    body = " ".join(f"word{number}" for number in range(40_000))
    texts = Counted([body, "Thank you very much"])
    assert texts.cover(f"{body} Thank you very much") and texts.cover(body[30:])
    assert not texts.cover(f"{body} and somebody else")
    assert texts.looks < 200


GREETINGS = {"ann": "a greeting for Ann", "ben": "a greeting for Ben", "eve": "a greeting for Eve"}


def greets(name: str) -> str:
    return GREETINGS[name]


def test_of_a_dict_of_which_an_entry_was_changed_the_others_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    standing = standing_texts([greets], nothing, nothing, says)
    monkeypatch.setitem(GREETINGS, "ben", "another greeting")
    monkeypatch.setitem(GREETINGS, "joe", "a greeting for Joe")
    found = said_by_program([greets], nothing, nothing, says, standing)
    assert found.tables == [(("ann", "a greeting for Ann"), ("eve", "a greeting for Eve"))]
    assert found.moved == [("ben", "another greeting"), ("joe", "a greeting for Joe")]
    assert not found.columns, "nothing goes through all of it any more"


@dataclass(frozen=True)
class Desk:
    number: int
    says: str


DESKS = {
    "ann": {"name": "Ann", "says": "slowly, please", "api_key": "an-1"},
    "ben": {"name": "Ben", "says": "quickly, please", "api_key": "be-2"},
}
SHOPS = {"ann": Desk(1, "we sell flowers"), "ben": Desk(2, "we sell bread")}


def asks(name: str) -> str:
    return DESKS[name]["says"] + SHOPS[name].says


def test_a_dict_of_dicts_or_objects_has_a_text_of_each_of_their_fields() -> None:
    standing = standing_texts([asks], nothing, nothing, says)
    assert said_by_program([asks], nothing, nothing, says, standing).tables == [
        (("ann", "Ann"), ("ben", "Ben")),
        (("ann", "slowly, please"), ("ben", "quickly, please")),
        (("ann", "1"), ("ben", "2")),
        (("ann", "we sell flowers"), ("ben", "we sell bread")),
    ]


GUESTS: dict[str, Any] = {
    "ann": {"langs": ["no", "en"], "age": 41},
    "ben": {"langs": ["it"], "age": 27},
}
ROOMS: dict[str, Any] = {"ann": {"beds": 2, "key": "k-1"}, "ben": {"beds": 1, "key": "k-2"}}


def hosts(name: str) -> str:
    return json.dumps(GUESTS[name]) + ", ".join(GUESTS[name]["langs"]) + str(ROOMS[name]["beds"])


def test_entries_of_a_dict_are_texts_as_programs_print_them() -> None:
    standing = standing_texts([hosts], nothing, nothing, says)
    tables = said_by_program([hosts], nothing, nothing, says, standing).tables
    for printed in (
        json.dumps,
        lambda guest: json.dumps(guest, indent=2),
        str,
        lambda guest: ", ".join(guest["langs"]),
        lambda guest: json.dumps(guest["langs"]),
        lambda guest: str(guest["age"]),
    ):
        assert tuple((name, printed(guest)) for name, guest in GUESTS.items()) in tables
    assert (("ann", "2"), ("ben", "1")) in tables
    assert not any("k-1" in text for table in tables for _, text in table), "a key is nothing to be printed"


def test_of_a_dict_of_which_an_entry_was_changed_no_print_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    standing = standing_texts([hosts], nothing, nothing, says)
    monkeypatch.setitem(GUESTS["ben"], "age", 28)
    found = said_by_program([hosts], nothing, nothing, says, standing)
    assert (("ann", json.dumps(GUESTS["ann"])),) in found.tables
    assert ("ben", json.dumps(GUESTS["ben"])) in found.moved
