"""RAG fusion: search queries as lines, a retrieval for each, reciprocal rank fusion, an answer from the best."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph

ASYNC = True
DOCUMENTS = [
    f"{part} of a bicycle: {advice}"
    for part in ("The chain", "The front brake", "The rear hub", "The saddle", "The tyres", "The gears", "The lights")
    for advice in (
        "clean it once a month and after every ride in the rain.",
        "listen for noises, which tell you what is worn.",
        "a replacement takes half an hour with two tools.",
        "most shops check it for free in spring.",
    )
]
INPUTS = [
    {"question": "Why does my chain skip on steep hills?"},
    {"question": "How often should I replace brake pads?"},
    {"question": "What pressure do wide tyres need?"},
    {"question": "Which noises mean that a hub is worn?"},
    {"question": "How do I set the height of the saddle?"},
    {"question": "Can I repair a puncture without a pump?"},
    {"question": "What should I clean after a ride in the rain?"},
    {"question": "Are dynamo lights worth the money?"},
    {"question": "What does it mean when the gears click under load?"},
    {"question": "Which parts are checked for free in spring?"},
    {"question": "Can I replace the front brake at home?"},
    {"question": "How long does a saddle of leather last in the rain?"},
]

QUERIES = ChatPromptTemplate.from_messages(
    [
        ("system", "You are a helpful assistant that generates several search queries from one question."),
        ("human", "Generate 4 search queries related to the question, one per line.\n\nQuestion: {question}"),
    ]
)
ANSWER = ChatPromptTemplate.from_template(
    "Answer the question in about 80 words. Use only the context.\n\nContext:\n{context}\n\nQuestion: {question}"
)


class State(TypedDict, total=False):
    question: str
    queries: list[str]
    results: list[list[Document]]
    documents: list[Document]
    answer: str


def reciprocal_rank_fusion(results: list[list[Document]], k: int = 60) -> list[Document]:
    scores: dict[str, float] = {}
    documents: dict[str, Document] = {}
    for found in results:
        for rank, document in enumerate(found):
            key = document.page_content
            documents[key] = document
            scores[key] = scores.get(key, 0.0) + 1 / (rank + k)
    return [documents[key] for key in sorted(scores, key=lambda key: scores[key], reverse=True)]


def build(parts: Any) -> Any:
    retriever = parts.store.as_retriever(search_kwargs={"k": 4})
    generate_queries = QUERIES | parts.llm | StrOutputParser() | (lambda text: text.split("\n"))

    async def write_queries(state: State) -> State:
        queries = await generate_queries.ainvoke({"question": state["question"]})
        return {"queries": [state["question"]] + [query.strip() for query in queries if query.strip()]}

    async def retrieve(state: State) -> State:
        return {"results": [await retriever.ainvoke(query) for query in state["queries"]]}

    async def fuse(state: State) -> State:
        return {"documents": reciprocal_rank_fusion(state["results"])[:5]}

    async def answer(state: State) -> State:
        context = "\n\n".join(document.page_content for document in state["documents"])
        chain = ANSWER | parts.llm | StrOutputParser()
        return {"answer": await chain.ainvoke({"context": context, "question": state["question"]})}

    graph = StateGraph(State)
    graph.add_sequence([write_queries, retrieve, fuse, answer])
    graph.add_edge(START, "write_queries")
    graph.add_edge("answer", END)
    return graph.compile()
