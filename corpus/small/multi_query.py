"""Two views of a question: a broad and a narrow query by `RunnableParallel`, documents without twins, an answer."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langgraph.graph import END, START, StateGraph

ASYNC = True
DOCUMENTS = [
    f"{place}: {fact}"
    for place in ("Night bus 7", "The harbour ferry", "Tram line 2", "The airport train", "The funicular", "City bikes")
    for fact in (
        "a day ticket is valid until four in the morning.",
        "bicycles and prams travel for free outside the rush hours.",
        "on public holidays it runs as on Sundays.",
        "lost things are kept for three months at the main station.",
        "wheelchairs have two places near the middle door.",
    )
]
INPUTS = [
    {"question": "May I take my bicycle on the ferry at noon?"},
    {"question": "I left an umbrella in tram line 2, where is it?"},
    {"question": "Which lines run at three in the morning?"},
    {"question": "Is there a place for a wheelchair in the funicular?"},
    {"question": "Does the airport train run on New Year's Day?"},
    {"question": "How long does a day ticket last?"},
    {"question": "Where can I put a pram in the night bus?"},
    {"question": "Do city bikes cost more on public holidays?"},
    {"question": "May I bring a pram on the airport train at eight in the morning?"},
    {"question": "Where is the door for wheelchairs in tram line 2?"},
    {"question": "I forgot my phone on the ferry in May, is it still there?"},
    {"question": "Does night bus 7 take my day ticket after midnight?"},
]

BROAD = ChatPromptTemplate.from_template(
    "Write a broader search query of about 8 words for this question, without names.\n\nQuestion: {question}"
)
NARROW = ChatPromptTemplate.from_template(
    "Write a search query of about 5 words with the most telling words of this question.\n\nQuestion: {question}"
)
ANSWER = ChatPromptTemplate.from_messages(
    [
        ("system", "You work at the information desk of a city's public transport."),
        ("human", "Answer in about 60 words.\n\nContext:\n{context}\n\nQuestion: {question}"),
    ]
)
FOLLOW_UP = ChatPromptTemplate.from_template(
    "Write one question in one sentence that the traveller may ask next.\n\nQuestion: {question}\n\nAnswer: {answer}"
)


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    answer: str
    follow_up: str


def unique_union(found: dict[str, list[Document]]) -> list[Document]:
    seen: set[str] = set()
    unique = []
    for documents in found.values():
        for document in documents:
            if document.page_content not in seen:
                seen.add(document.page_content)
                unique.append(document)
    return unique


def format_documents(documents: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


def build(parts: Any) -> Any:
    retriever = parts.store.as_retriever(search_kwargs={"k": 3})
    text = parts.llm | StrOutputParser()
    gather = RunnableParallel(
        asked=itemgetter("question") | retriever,
        broad=BROAD | text | str.strip | retriever,
        narrow=NARROW | text | str.strip | retriever,
    ) | RunnableLambda(unique_union)
    respond = RunnablePassthrough.assign(
        context=lambda values: format_documents(values["documents"])
    ) | RunnablePassthrough.assign(answer=ANSWER | text)

    async def retrieve(state: State) -> State:
        return {"documents": await gather.ainvoke({"question": state["question"]})}

    async def generate(state: State) -> State:
        result = await respond.ainvoke({"question": state["question"], "documents": state["documents"]})
        return {"answer": result["answer"]}

    async def suggest(state: State) -> State:
        return {"follow_up": await (FOLLOW_UP | text).ainvoke(state)}

    graph = StateGraph(State)
    graph.add_node("retrieve", retrieve)
    graph.add_node("generate", generate)
    graph.add_node("suggest", suggest)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", "suggest")
    graph.add_edge("suggest", END)
    return graph.compile()
