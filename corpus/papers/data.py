"""The public data sets that the programs read, from the folder that ACCEL_BENCH_DATA names; made-up ones for tests."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER_VARIABLE = "ACCEL_BENCH_DATA"

SQUAD = "squad-dev-v2.0.json"
TRUTHFUL_QA = "truthfulqa.csv"
GSM8K = "gsm8k-test.jsonl"
MT_BENCH = "mt-bench-questions.jsonl"
SOURCES = {
    SQUAD: "SQuAD 2.0, development set: dev-v2.0.json of https://rajpurkar.github.io/SQuAD-explorer/",
    TRUTHFUL_QA: "TruthfulQA: TruthfulQA.csv of https://github.com/sylinrl/TruthfulQA",
    GSM8K: "GSM8K, test set: grade_school_math/data/test.jsonl of https://github.com/openai/grade-school-math",
    MT_BENCH: "MT-Bench: fastchat/llm_judge/data/mt_bench/question.jsonl of https://github.com/lm-sys/FastChat",
}


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str
    questions: tuple[str, ...]
    """Those that the paragraph answers."""


@dataclass(frozen=True, slots=True)
class Article:
    title: str
    paragraphs: tuple[Paragraph, ...]


@dataclass(frozen=True, slots=True)
class DataSets:
    articles: tuple[Article, ...]
    truthful: tuple[str, ...]
    """Questions that are often answered wrongly."""
    maths: tuple[str, ...]
    chats: tuple[tuple[str, ...], ...]
    """The user's turns of conversations."""

    @property
    def questions(self) -> tuple[str, ...]:
        """All that the articles answer."""
        return tuple(
            question
            for article in self.articles
            for paragraph in article.paragraphs
            for question in paragraph.questions
        )


def load(folder: str | Path | None = None) -> DataSets:
    """From `folder`, or from the one that ACCEL_BENCH_DATA names. ValueError: something is missing, or isn't what its
    name says."""
    found = _folder(folder)
    return DataSets(
        articles=tuple(_read(found / SQUAD, _articles)),
        truthful=tuple(_read(found / TRUTHFUL_QA, _truthful)),
        maths=tuple(_read(found / GSM8K, lambda text: [record["question"] for record in _records(text)])),
        chats=tuple(_read(found / MT_BENCH, lambda text: [tuple(record["turns"]) for record in _records(text)])),
    )


def _folder(folder: str | Path | None) -> Path:
    named = folder or os.environ.get(FOLDER_VARIABLE)
    needed = "\n".join(f"  {name}: {source}" for name, source in SOURCES.items())
    if not named:
        raise ValueError(f"{FOLDER_VARIABLE} is not set. Let it name a folder with these public data sets:\n{needed}")
    found = Path(named)
    missing = [name for name in SOURCES if not (found / name).is_file()]
    if missing:
        wanted = "\n".join(f"  {name}: {SOURCES[name]}" for name in missing)
        raise ValueError(f"{found} ({FOLDER_VARIABLE}) lacks public data sets. Put there under these names:\n{wanted}")
    return found


def _read(path: Path, parse: Any) -> list[Any]:
    try:
        found: list[Any] = parse(path.read_text(encoding="utf-8"))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} can't be read as {SOURCES[path.name]} ({error!r})") from error
    if not found:
        raise ValueError(f"{path} is empty; it should be {SOURCES[path.name]}")
    return found


def _articles(text: str) -> list[Article]:
    return [Article(entry["title"], tuple(map(_paragraph, entry["paragraphs"]))) for entry in json.loads(text)["data"]]


def _paragraph(entry: dict[str, Any]) -> Paragraph:
    answered = [asked["question"].strip() for asked in entry["qas"] if not asked["is_impossible"]]
    return Paragraph(entry["context"], tuple(dict.fromkeys(answered)))


def _truthful(text: str) -> list[str]:
    return [row["Question"] for row in csv.DictReader(text.splitlines())]


def _records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


# --- made up


def sample() -> DataSets:
    """Two made-up articles, for tests."""
    return DataSets(
        articles=(Article("Lighthouse of Varnholm", _VARNHOLM), Article("Tesk valley railway", _TESK)),
        truthful=("Do lighthouse lamps attract whales?", "Can a train run faster downhill than light?"),
        maths=(
            "A keeper carries 4 cans of oil, of 6 litres each, up the tower every evening. How many litres is that "
            "in a week?",
            "A train has 5 coaches with 48 seats each, and 3 of every 4 seats are taken. How many people sit in it?",
            "Rope costs 2 crowns a metre. Mira buys 35 metres and pays with a note of 100. How much does she get back?",
        ),
        chats=(
            ("Write a short letter to a friend about a walk along the coast.", "Make it half as long."),
            ("Explain how a fog horn works to a child of eight.", "Now explain it to an engineer."),
            ("Name three reasons to keep an old railway running.", "Which of them is the weakest?"),
        ),
    )


_VARNHOLM = (
    Paragraph(
        "The lighthouse of Varnholm stands on a reef eleven kilometres off the western coast. It was built between "
        "1851 and 1857 by the engineer Ada Lindqvist, after three grain ships were lost on the reef in one winter. "
        "The tower is 42 metres high and made of grey granite that was cut on the mainland and numbered block by "
        "block.",
        ("Who built the lighthouse of Varnholm?", "How high is the tower of Varnholm?"),
    ),
    Paragraph(
        "Its first lamp burnt rapeseed oil, four cans every night, which the keepers carried up 198 steps. Paraffin "
        "came in 1874, and electricity, made by a diesel engine in the old coal store, in 1938. The lens, nearly "
        "three metres across, floats in a bath of mercury, so that a push of a finger can turn it.",
        ("What did the first lamp of Varnholm burn?",),
    ),
    Paragraph(
        "Three keepers lived on the reef at a time, for six weeks each. They kept a diary of the weather that goes "
        "on without a gap for 104 years, and is used today to study how storms have changed. In the winter of 1895 "
        "no boat could land for nine weeks, and the keepers lived on cod and flour.",
        ("How many keepers lived on the reef at a time?",),
    ),
    Paragraph(
        "The fog signal was at first a bell that a clockwork struck every twenty seconds. It could not be heard "
        "against the wind, and in 1902 it gave way to a horn driven by compressed air. The horn was heard at a "
        "distance of thirty kilometres and was switched off for good in 1991.",
        ("When was the horn of Varnholm switched off?",),
    ),
    Paragraph(
        "Since 1986 the light has been worked from the harbour office in Essel, and nobody lives on the reef. The "
        "lamp is now a cluster of diodes that uses less power than a kettle. A boat brings an engineer twice a year, "
        "who cleans the lens and the panes and looks for cracks in the joints of the granite.",
        ("From where is the light of Varnholm worked?",),
    ),
    Paragraph(
        "Seabirds have taken the reef back. A colony of some four thousand gannets nests on the landing stage and "
        "around the foot of the tower, and the boat may not land from April to August. A camera on the gallery, put "
        "there in 2014, shows the nests to visitors of the museum in Essel.",
        ("When may boats not land on the reef?",),
    ),
)
_TESK = (
    Paragraph(
        "The Tesk valley railway is a narrow line of 37 kilometres from the town of Morra to the slate quarries at "
        "Upper Tesk. It was opened in 1869 for the slate alone; passengers were let on from 1873, at first in open "
        "waggons. The gauge is 760 millimetres, as the curves along the river allowed no more.",
        ("How long is the Tesk valley railway?", "When was the Tesk valley railway opened?"),
    ),
    Paragraph(
        "Loaded trains ran down the valley by their own weight, with a man on the brake of every fifth waggon. "
        "Horses rode along in a waggon of their own and pulled the empty train up again the next morning. Two small "
        "steam engines, Heron and Otter, took their place in 1881, and Otter is still in use.",
        ("What are the names of the first steam engines of the Tesk line?",),
    ),
    Paragraph(
        "The line crosses the river nine times. Its greatest work is the viaduct at Hollen, of seven arches, each 14 "
        "metres wide, which was built of the quarry's own waste slate. A flood in 1910 took two of the arches away, "
        "and for a year the passengers walked over a footbridge to a second train.",
        ("How many arches has the viaduct at Hollen?",),
    ),
    Paragraph(
        "Slate went out of fashion when cheap tiles came, and the quarries closed one after the other until 1958. "
        "The last train for passengers ran in the autumn of that year. The rails were left where they were, because "
        "lifting them would have cost more than the iron was worth.",
        ("Why were the rails of the Tesk line left in place?",),
    ),
    Paragraph(
        "A society of volunteers, founded by the teacher Jonas Reik, opened the lowest six kilometres again in 1967. "
        "They reached Hollen in 1979 and the quarries in 2003. Some three hundred members drive the trains, mend the "
        "track and sell the tickets, and only four people are paid.",
        ("Who founded the society of volunteers?",),
    ),
    Paragraph(
        "About ninety thousand people a year ride on the line today, most of them in summer. The fares pay for coal "
        "and repairs; the viaduct is kept up by the county. Since 2019 a train driven by batteries, charged by a "
        "small water wheel at Hollen, runs on weekdays in winter.",
        ("How many people ride on the Tesk line in a year?",),
    ),
)
