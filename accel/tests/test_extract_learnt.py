"""Extractors learnt from examples: a model writes a list, user code takes it apart in its own way and asks about every
item. After two runs with other inputs the items are asked about early, and whatever the program does with them, its
result is the one it would have had."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import accel
from accel import accelerate
from adapters.tests.core_fakes import Chat, State, StreamingChat, World, chain

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "deserts of Chile")
ITEMS = (
    "hidden {} near the coast of {}",
    "oldest {} and their names in {}",
    "maps of {} from the archives of {}",
    "what {} sound like at night in {}",
)
Write = Callable[[list[str], str], str]
Parse = Callable[[str], list[str]]


def items_of(topic: str) -> list[str]:
    what, _, where = topic.split()
    return [item.format(what, where) for item in ITEMS]


def asker(world: World, write: Write, parse: Parse, model: Any = None) -> Any:
    """One node asks for a list, the next one about every item of it."""
    model = model or Chat(world)
    world.answer = lambda text: (
        write(items_of(text[5:]), text[5:]) if text.startswith("List ") else f"answer to <{text}>"
    )

    def ask(state: State) -> State:
        world.node("ask")
        return {"a": model.invoke(f"List {state['q']}").content}

    def each(state: State) -> State:
        world.node("each")
        return {"b": [model.invoke(f"Tell me about {item}\nBe brief.").content for item in parse(state["a"])]}

    return chain(("ask", ask), ("each", each))


def trained(world: World, write: Write, parse: Parse, model: Any = None) -> Any:
    fast = accelerate(asker(world, write, parse, model))
    for topic in TOPICS[:2]:
        fast.invoke({"q": topic})
        assert accel.settle()
    world.forget()
    return fast


def expected(write: Write, parse: Parse) -> list[str]:
    return list(asker(World(), write, parse).invoke({"q": TOPICS[2]})["b"])


def each(form: str, sep: str = "\n", before: str = "", after: str = "", marks: str = "1 2 3 4") -> Write:
    """Every item in this form, with a mark `{i}`."""

    def write(items: list[str], topic: str) -> str:
        rows = (form.format(item, i=mark, topic=topic) for mark, item in zip(marks.split(), items, strict=False))
        return before + sep.join(rows) + after

    return write


def found(pattern: str, flags: int = re.MULTILINE) -> Parse:
    return lambda text: [item.strip() for item in re.findall(pattern, text, flags)]


def split(pattern: str, flags: int = re.MULTILINE) -> Parse:
    return lambda text: [item.strip() for item in re.split(pattern, text, flags=flags) if item.strip()]


def fields(text: str) -> list[str]:
    return [line.split(":", 1)[1].strip() for line in text.splitlines() if ":" in line]


def objects(text: str) -> list[str]:
    return [row["q"] for row in json.loads(text.strip("`\n").removeprefix("json"))["rows"]]


KINDS: dict[str, tuple[Write, Parse]] = {
    "lines": (each("{}"), str.splitlines),
    "lines, all of them with marks or without": (
        each("{i}. {}", before="I know of these:\n"),
        lambda text: [re.sub(r"^\d+\.\s*", "", line) for line in text.split("\n")],
    ),
    "1.": (each("{i}. {}", before="Sure:\n\n", after="\n\nAsk me for more."), found(r"^\d+\.\s*(.*)")),
    "1)": (each("{i}) {}"), found(r"^\d+\)\s*(.*)")),
    "(1)": (each("({i}) {}"), found(r"^\(\d+\)\s*(.*)")),
    "[1]": (each("[{i}] {}"), found(r"^\[\d+\]\s*(.*)")),
    "1:": (each("{i}: {}"), fields),
    "1 -": (each("{i} - {}"), found(r"^\d+ - (.*)")),
    "#1": (each("#{i} {}"), found(r"^#\d+ (.*)")),
    "**1.**": (each("**{i}.** {}"), found(r"^\*\*\d+\.\*\*\s*(.*)")),
    "1. in quotes": (each('{i}. "{}"'), lambda text: [s.lstrip("0123456789. ").strip('"') for s in text.split("\n")]),
    "1. title: text": (each("{i}. **{}**: one of {topic}"), found(r"\*\*(.*?)\*\*:")),
    "Step 1:": (each("Step {i}: {}"), found(r"^Step \d+: (.*)")),
    "## Chapter 1:": (each("## Chapter {i}: {}", sep="\n\n"), found(r"Chapter \d+: (.*)")),
    "a)": (each("{i}) {}", marks="a b c d"), found(r"^[a-z]\) (.*)")),
    "i.": (each("{i}. {}", marks="i ii iii iv"), split(r"^[iv]+\. ")),
    "1. wrapped, first lines": (each("{i}. {}\n   one of {topic}"), found(r"^\d+\.\s*(.*)")),
    "1. wrapped, whole": (each("{i}. {}\n   one of {topic}", after="\n\nEnjoy!"), split(r"^\d+\.\s")),
    "* wrapped, whole": (each("* {}\n  - one of {topic}"), split(r"^\*\s")),
    "Step 1: wrapped, whole": (each("**Step {i}:** {}\nSo it is.", sep="\n\n"), split(r"^\*\*Step \d+:\*\*")),
    "commas": (each("{}", ", "), split(",")),
    "a sentence": (each("{}", ", and ", after="."), lambda text: text.rstrip(".").split(", and ")),
    "semicolons": (each("{}", "; "), split(";")),
    "pipes": (each("{}", " | "), split(r"\|")),
    "tabs": (each("{}", "\t"), split("\t")),
    "slashes": (each("{}", " / "), split(" / ")),
    "arrows": (each("{}", " -> "), split("->")),
    "###": (each("{}", " ### "), split("###")),
    "<sep>": (each("{}\nof {topic}", "\n<sep>\n"), split("<sep>")),
    "paragraphs": (each("{}\nof {topic}", "\n\n"), split("\n\n")),
    "rules": (each("{}\nof {topic}", "\n---\n"), split("^---$")),
    "tags": (each("<item>{}</item>", before="Sure!"), found("<item>(.*?)</item>")),
    "tags with attributes": (
        each('<item id="{i}">\n{}\n</item>', before="<items>\n", after="\n</items>"),
        found(r"<item [^>]*>(.*?)</item>", re.DOTALL),
    ),
    "tags in tags": (each("<row><q>{}</q><why>so</why></row>"), found("<q>(.*?)</q>")),
    "fields": (lambda items, topic: f"Title: {items[0]}\nGoal: {items[1]}\nPlan: {items[2]}", fields),
    "fields in bold": (each("- **Aim {i}:** {}"), found(r"^- \*\*.*?:\*\* (.*)")),
    "sections": (
        lambda items, topic: f"Thought: {items[0]}\nSo much of {topic}.\nAnswer:\n{items[1]}",
        split(r"^(?:Thought|Answer):"),
    ),
    "headings": (each("## {}\nText on {topic}.", before="# All of it\n"), found("^## (.*)$")),
    "texts under headings": (each("## Part {i}\n{}\nof {topic}", before="# All\n"), split(r"^#.*\n")),
    "bold": (each("**{}**", " and "), found(r"\*\*(.*?)\*\*")),
    "code": (each("```sql\n{}\nof {topic}\n```"), found(r"```sql\n(.*?)```", re.DOTALL)),
    "JSON array": (lambda items, _: json.dumps(items), json.loads),
    "JSON in a fence": (
        lambda items, _: "```json\n" + json.dumps({"rows": [{"q": item} for item in items]}, indent=1) + "\n```",
        objects,
    ),
    "JSON lines": (
        lambda items, _: "\n".join(json.dumps({"q": item}) for item in items),
        lambda text: [json.loads(line)["q"] for line in text.splitlines()],
    ),
}  # fmt: skip
for bullet in "-*•–—+·▪◦‣●○■►✅🔹":
    KINDS[bullet] = (each(bullet + " {}", before="Sure:\n"), found(rf"^{re.escape(bullet)} (.*)"))

NUMBERED = each("{i}. {}", marks="1 2 3 4 5 6")
numbered = found(r"^\d+\.\s*(.*)")
SEEN_THROUGH: dict[str, tuple[Write, Parse]] = {
    "the first": (NUMBERED, lambda text: numbered(text)[:3]),
    "all but the last": (NUMBERED, lambda text: numbered(text)[:-1]),
    "sorted": (NUMBERED, lambda text: sorted(numbered(text))),
    "reversed": (NUMBERED, lambda text: numbered(text)[::-1]),
    "without repetitions": (
        lambda items, topic: NUMBERED([*items[:2], *items], topic), lambda text: list(dict.fromkeys(numbered(text)))
    ),
    "with text around": (NUMBERED, lambda text: [f"the {item} (in short)" for item in numbered(text)]),
    "clipped": (NUMBERED, lambda text: [item[:24] for item in numbered(text)]),
    "with one more before": (NUMBERED, lambda text: ["beginnings", *numbered(text)]),
    "all but the first": (NUMBERED, lambda text: numbered(text)[1:]),
    "upper case": (NUMBERED, lambda text: [item.upper() for item in numbered(text)]),
    "title case": (NUMBERED, lambda text: [item.title() for item in numbered(text)]),
    "with one more after": (NUMBERED, lambda text: [*numbered(text), "the end of it all"]),
}  # fmt: skip
NOT_SEEN_THROUGH: dict[str, Parse] = {
    "every other": lambda text: numbered(text)[::2],
    "by a word": lambda text: [item for item in numbered(text) if "archives" not in item],
    "by length": lambda text: [item for item in numbered(text) if len(item) > 35],
    "one of them edited": lambda text: [s.upper() if i == 1 else s for i, s in enumerate(numbered(text))],
    "words replaced": lambda text: [item.replace(" of ", " in ") for item in numbered(text)],
    "one with the next": lambda text: [" and ".join(two) for two in pairwise(numbered(text))],
}  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, *SEEN_THROUGH])
def test_items_are_asked_about_before_the_program_gets_to_them(kind: str) -> None:
    write, parse = (KINDS | SEEN_THROUGH)[kind]
    world = World()
    fast = trained(world, write, parse)
    asked = set(parse(write(items_of(TOPICS[2]), TOPICS[2])))
    world.hooks["each"] = lambda: world.wait(
        lambda: (
            {f"Tell me about {item}\nBe brief." for item in asked} <= {call.text for call in world.calls if call.early}
        )
    )
    assert fast.invoke({"q": TOPICS[2]})["b"] == expected(write, parse)
    assert world.texts("Tell", early=False) == []


@pytest.mark.parametrize("rule", NOT_SEEN_THROUGH)
def test_a_rule_that_nobody_sees_through_changes_no_result(rule: str) -> None:
    world = World()
    fast = trained(world, NUMBERED, NOT_SEEN_THROUGH[rule])
    assert fast.invoke({"q": TOPICS[2]})["b"] == expected(NUMBERED, NOT_SEEN_THROUGH[rule])
    assert fast.report().wasted == 0


STREAMED = (
    "1.", "1. wrapped, whole", "-", "* wrapped, whole", "Step 1:", "commas", "semicolons", "paragraphs", "rules",
    "tags with attributes", "fields in bold", "headings", "code", "JSON in a fence",
)  # fmt: skip


@pytest.mark.parametrize("kind", STREAMED)
def test_the_first_item_is_asked_about_while_the_last_one_is_being_written(kind: str) -> None:
    write, parse = KINDS[kind]

    def in_pieces(items: list[str], topic: str) -> str:
        before, last, after = write(items, topic).rpartition(items[-1])
        return f"{before}~{last}{after}"

    class Asked:
        """A gate that opens with the early call."""

        def wait(self, _: float) -> bool:
            world.wait_early(f"Tell me about {first}")
            return True

    world = World()
    fast = trained(world, in_pieces, parse, StreamingChat(world))
    first = parse(write(items_of(TOPICS[2]), TOPICS[2]))[0]
    world.gates["piece 1"] = Asked()  # type: ignore[assignment]
    assert fast.invoke({"q": TOPICS[2]})["b"] == expected(write, parse)
