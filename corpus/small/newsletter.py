"""Newsletter in the functional API: a task per source, their futures, a headline for each, an editorial and a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.func import entrypoint, task

SOURCES = {
    "town hall": "The council moves the {thing} to {place}. The works begin in spring and cost less than planned.",
    "fire brigade": "A small fire near {place} was put out within an hour. The {thing} was not damaged.",
    "sports club": "Ninety members ran from {place} to the river. The winner got a {thing} made of chocolate.",
    "reader's letter": "Why does nobody mend the {thing} at {place}? I have written three times.",
}
TOPICS = [
    ("the old mill", "weather vane"), ("the market square", "fountain"), ("the north gate", "clock"),
    ("the station", "bicycle rack"), ("the cemetery", "stone angel"), ("the school", "climbing wall"),
    ("the harbour", "lighthouse lamp"), ("the castle hill", "bench"),
    ("the town hall", "flagpole"), ("the river bridge", "lantern"), ("the library", "book box"),
    ("the playground", "swing"),
]  # fmt: skip
INPUTS = [
    {
        "week": 10 + number,
        "sources": {name: text.format(place=place, thing=thing) for name, text in SOURCES.items()},
    }
    for number, (place, thing) in enumerate(TOPICS)
]

SUMMARIZE = ChatPromptTemplate.from_messages(
    [
        ("system", "You write for the newsletter of a small town, in a friendly voice."),
        ("human", "Turn this report of the {source} into an item of about 45 words.\n\n{report}"),
    ]
)
HEADLINE = ChatPromptTemplate.from_messages(
    [
        ("system", "You write for the newsletter of a small town, in a friendly voice."),
        ("human", "Write a headline of about 7 words.\n\n{item}"),
    ]
)
EDITORIAL = ChatPromptTemplate.from_template(
    "Write an editorial of about 70 words for week {week}. Mention every headline.\n\n{headlines}"
)
CHECK = ChatPromptTemplate.from_template(
    "Is the tone of this editorial friendly enough for all readers? Answer yes or no.\n\n{editorial}"
)
SOFTEN = ChatPromptTemplate.from_template("Rewrite the editorial in a warmer tone, in about 70 words.\n\n{editorial}")


@dataclass
class Item:
    source: str
    headline: str
    text: str

    def render(self) -> str:
        return f"### {self.headline}\n{self.text}\n(from: {self.source})"


def build(parts: Any) -> Any:
    summarizer = SUMMARIZE | parts.llm | StrOutputParser()
    headliner = HEADLINE | parts.llm | StrOutputParser()
    checker = CHECK | parts.llm.bind(max_tokens=4) | StrOutputParser()

    @task
    def write_item(source: str, report: str) -> Item:
        text = summarizer.invoke({"source": source, "report": report})
        headline = headliner.invoke({"item": text})
        return Item(source, headline.strip().rstrip("."), text)

    @task
    def write_editorial(week: int, items: list[Item]) -> str:
        headlines = "\n".join(f"- {item.headline}" for item in items)
        return (EDITORIAL | parts.llm | StrOutputParser()).invoke({"week": week, "headlines": headlines})

    @task
    def soften(editorial: str) -> str:
        return (SOFTEN | parts.llm | StrOutputParser()).invoke({"editorial": editorial})

    @entrypoint()
    def newsletter(inputs: dict[str, Any]) -> dict[str, Any]:
        futures = [write_item(source, report) for source, report in inputs["sources"].items()]
        items = [future.result() for future in futures]
        editorial = write_editorial(inputs["week"], items).result()
        if "yes" not in checker.invoke({"editorial": editorial}).lower():
            editorial = soften(editorial).result()
        page = "\n\n".join([f"# Week {inputs['week']}", editorial, *(item.render() for item in items)])
        return {"page": page, "headlines": [item.headline for item in items]}

    return newsletter
