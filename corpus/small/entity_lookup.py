"""Profile of a news item: its entities as a structured list, passages and a description for each, and a profile."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

ASYNC = True
DOCUMENTS = [
    f"{company} {fact}."
    for company in (
        "Northwind Turbines", "Sable Bank", "Ostrava Steel", "Lumen Optics", "Harrow Foods", "Delta Rail",
        "Kestrel Aviation", "Pinewood Paper",
    )
    for fact in (
        "was founded by two engineers in a former brewery", "employs four thousand people in three countries",
        "lost a lawsuit over patents last spring", "sells mostly to public buyers", "plans a plant near the coast",
    )
]  # fmt: skip
INPUTS = [
    {"news": news}
    for news in (
        "Northwind Turbines and Sable Bank agree on a loan for a wind park off Denmark.",
        "Ostrava Steel stops a furnace after a dispute with Delta Rail about ore trains.",
        "Lumen Optics delivers lenses to Kestrel Aviation for a new landing system.",
        "Harrow Foods packs its biscuits in paper by Pinewood Paper from next year.",
        "Sable Bank sells its shares in Ostrava Steel to a pension fund in Oslo.",
        "Kestrel Aviation tests a cargo drone above the harbour of Gdansk.",
        "Delta Rail orders forty electric engines, and Northwind Turbines supplies the power.",
        "Pinewood Paper and Lumen Optics share a laboratory in Tampere.",
        "Harrow Foods moves its biscuits by Delta Rail instead of lorries.",
        "Sable Bank pays for a new runway that Kestrel Aviation wants near Turku.",
        "Ostrava Steel builds the towers for Northwind Turbines in a plant near the coast.",
        "Lumen Optics loses a public order for cameras in Bergen.",
    )
]  # fmt: skip

DESCRIBE = PromptTemplate.from_template(
    "Describe {entity} in about 35 words. Use only the passages.\n\nPassages:\n{passages}"
)
PROFILE = PromptTemplate.from_template(
    "Write a profile of about 100 words of everyone in this news.\n\nNews: {news}\n\n{descriptions}"
)


class Entities(BaseModel):
    """The companies, places and people that a text names."""

    entities: list[str] = Field(min_length=1, max_length=4, description="Names as the text writes them")


class State(TypedDict, total=False):
    news: str
    entities: list[str]
    passages: dict[str, list[Document]]
    descriptions: list[str]
    profile: str


def joined(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def build(parts: Any) -> Any:
    retriever = parts.store.as_retriever(search_kwargs={"k": 3})
    extractor = parts.llm.with_structured_output(Entities)
    describer = DESCRIBE | parts.llm | StrOutputParser()
    profiler = PROFILE | parts.llm | StrOutputParser()

    async def extract(state: State) -> State:
        found = await extractor.ainvoke(f"Which entities does this news name?\n\n{state['news']}")
        return {"entities": list(dict.fromkeys(found.entities))}

    async def look_up(state: State) -> State:
        return {"passages": {entity: await retriever.ainvoke(entity) for entity in state["entities"]}}

    async def describe(state: State) -> State:
        descriptions = []
        for entity, documents in state["passages"].items():
            text = await describer.ainvoke({"entity": entity, "passages": joined(documents)})
            descriptions.append(f"{entity}: {text}")
        return {"descriptions": descriptions}

    async def write_profile(state: State) -> State:
        descriptions = "\n\n".join(state["descriptions"])
        return {"profile": await profiler.ainvoke({"news": state["news"], "descriptions": descriptions})}

    graph = StateGraph(State)
    graph.add_sequence([extract, look_up, describe, write_profile])
    graph.add_edge(START, "extract")
    graph.add_edge("write_profile", END)
    return graph.compile()
