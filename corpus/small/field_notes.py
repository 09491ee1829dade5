"""Field notes: a thread pool translates terms, each note is summarized, stored, and found again for the answer."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langgraph.graph import END, START, StateGraph

DOCUMENTS = [
    f"Note of {year}: the {bird} came {when} and stayed near the {place}."
    for year, bird, when, place in (
        (2019, "bittern", "in the second week of March", "old weir"), (2020, "crane", "with the first frost", "ditch"),
        (2021, "reed warbler", "at the end of April", "boat house"), (2022, "osprey", "for three days", "dead alder"),
    )
]  # fmt: skip
WALKS = [
    ("bittern", "the weir", "two otters"), ("crane", "the ditch", "a lame fox"), ("osprey", "the alder", "a gull"),
    ("reed warbler", "the boat house", "a cuckoo's egg"), ("lapwing", "the wet meadow", "a tractor"),
    ("kingfisher", "the bridge", "a shopping cart"), ("snipe", "the moor", "thin ice"), ("heron", "the lock", "an eel"),
    ("bittern", "the reeds", "a canoe"), ("crane", "the stubble field", "a drone"), ("curlew", "the dyke", "a cat"),
    ("osprey", "the power pole", "two crows"),
]  # fmt: skip
INPUTS = [
    {
        "question": f"What should we do for the {bird} near {place}?",
        "notes": [
            f"Monday. The {bird} called from {place} before sunrise; the water stood a hand higher than last week.",
            f"Wednesday. Saw {other} at {place}, twenty steps from the nest. The {bird} did not leave it.",
            f"Sunday. Three walkers with dogs at {place}. The {bird} flew off at noon and was back at dusk.",
        ],
    }
    for bird, place, other in WALKS
]

TERMS = PromptTemplate.from_template(
    "List 4 technical terms for a glossary of these notes on birds, separated by semicolons.\n\n{notes}"
)
TRANSLATE = PromptTemplate.from_template("Translate this term into French, in at most 5 words.\n\nTerm: {term}")
SUMMARIZE = PromptTemplate.from_template("Summarize the note on birds in about 30 words.\n\nNote: {note}")
ANSWER = PromptTemplate.from_template(
    "Answer the question in about 70 words, from old and new notes.\n\n"
    "Notes:\n{context}\n\nGlossary: {glossary}\n\nQuestion: {question}"
)


@dataclass
class Walk:
    question: str
    notes: list[str]
    glossary: dict[str, str] = field(default_factory=dict)
    summaries: list[str] = field(default_factory=list)
    found: list[Document] = field(default_factory=list)
    answer: str = ""


def build(parts: Any) -> Any:
    term_chain = TERMS | parts.llm | StrOutputParser() | (lambda text: re.split(r"\s*[;\n]\s*", text.strip()))
    translate_chain = TRANSLATE | parts.llm | StrOutputParser()
    summary_chain = SUMMARIZE | parts.llm | StrOutputParser()
    answer_chain = ANSWER | parts.llm | StrOutputParser()

    def make_glossary(walk: Walk) -> dict[str, Any]:
        terms = term_chain.invoke({"notes": "\n\n".join(walk.notes)})
        with ThreadPoolExecutor(max_workers=4) as pool:
            translations = list(pool.map(lambda term: translate_chain.invoke({"term": term}), terms))
        return {"glossary": dict(zip(terms, translations, strict=True))}

    def summarize(walk: Walk) -> dict[str, Any]:
        return {"summaries": [summary_chain.invoke({"note": note}) for note in walk.notes]}

    def remember(walk: Walk) -> dict[str, Any]:
        parts.store.add_texts(walk.summaries, [{"question": walk.question}] * len(walk.summaries))
        return {}

    def recall(walk: Walk) -> dict[str, Any]:
        return {"found": parts.store.similarity_search(walk.question, k=4)}

    def answer(walk: Walk) -> dict[str, Any]:
        context = "\n".join(f"- {document.page_content}" for document in walk.found)
        glossary = "; ".join(f"{term} = {translation}" for term, translation in walk.glossary.items())
        return {"answer": answer_chain.invoke({"context": context, "glossary": glossary, "question": walk.question})}

    graph = StateGraph(Walk)
    graph.add_sequence([make_glossary, summarize, remember, recall, answer])
    graph.add_edge(START, "make_glossary")
    graph.add_edge("answer", END)
    return graph.compile()
