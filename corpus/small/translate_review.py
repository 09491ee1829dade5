"""Translation with a review: translate, critique, improve, three prompt chains one after the other, and a glossary."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph

ASYNC = True
INPUTS = [
    {"source": "The museum is closed on Mondays, except in August.", "language": "French"},
    {"source": "Keep the lid on while the pot is on the stove.", "language": "German"},
    {"source": "Passengers with small children may board first.", "language": "Spanish"},
    {"source": "Please return the keys to the box by the door.", "language": "Italian"},
    {"source": "The cable must not be bent or covered by a carpet.", "language": "Dutch"},
    {"source": "Tickets bought online can be changed until noon.", "language": "Polish"},
    {"source": "The trail is steep and should not be walked in ice.", "language": "Czech"},
    {"source": "Milk the goats before sunrise and again at dusk.", "language": "Danish"},
    {"source": "The lift is out of order until the end of the week.", "language": "Swedish"},
    {"source": "Shake the bottle well before you open it.", "language": "Portuguese"},
    {"source": "Children must wear a helmet on the climbing wall.", "language": "Finnish"},
    {"source": "The last boat to the island leaves at half past six.", "language": "Greek"},
]

TRANSLATE = ChatPromptTemplate.from_messages(
    [
        ("system", "You are a professional translator from English to {language}."),
        ("human", "Translate the sentence in about 40 words, with a note on its tone.\n\nText: {source}"),
    ]
)
CRITIQUE = ChatPromptTemplate.from_messages(
    [
        ("system", "You are a strict reviewer of translations into {language}."),
        ("human", "Give 3 suggestions as bullet points.\n\nSource: {source}\n\nTranslation:\n{translation}"),
    ]
)
IMPROVE = ChatPromptTemplate.from_messages(
    [
        ("system", "You are a professional translator from English to {language}."),
        ("human", "Translate the sentence in about 40 words, with a note on its tone.\n\nText: {source}"),
        ("ai", "{translation}"),
        ("human", "A reviewer made suggestions. Write an improved version of about 40 words.\n\n{critique}"),
    ]
)
GLOSSARY = ChatPromptTemplate.from_template(
    "List the 3 hardest terms in this translation into {language}, separated by commas.\n\nText: {improved}"
)


class State(TypedDict, total=False):
    source: str
    language: str
    translation: str
    critique: str
    improved: str
    glossary: list[str]


def build(parts: Any) -> Any:
    translate_chain = TRANSLATE | parts.llm | StrOutputParser()
    critique_chain = CRITIQUE | parts.llm | StrOutputParser()
    improve_chain = IMPROVE | parts.llm | StrOutputParser()
    glossary_chain = GLOSSARY | parts.llm | StrOutputParser()

    async def translate(state: State) -> dict[str, Any]:
        return {"translation": await translate_chain.ainvoke(state)}

    async def critique(state: State) -> dict[str, Any]:
        return {"critique": await critique_chain.ainvoke(state)}

    async def improve(state: State) -> dict[str, Any]:
        return {"improved": await improve_chain.ainvoke(state)}

    async def glossary(state: State) -> dict[str, Any]:
        terms = await glossary_chain.ainvoke({"language": state["language"], "improved": state["improved"]})
        return {"glossary": [term.strip() for term in terms.split(",")]}

    graph = StateGraph(State)
    graph.add_node("translate", translate)
    graph.add_node("review", critique)
    graph.add_node("improve", improve)
    graph.add_node("terms", glossary)
    graph.add_edge(START, "translate")
    graph.add_edge("translate", "review")
    graph.add_edge("review", "improve")
    graph.add_edge("improve", "terms")
    graph.add_edge("terms", END)
    return graph.compile()
