"""Retrieve and grade: rewrite the question, search with each rewriting, grade each document, answer from the good ones.

Calls per request: 2 of the model, 3 searches (each embeds its query), and up to 6 grades.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore

import accel
from corpus.components import Model, Vectors, sequence
from corpus.served import ASYNC, questions

REWRITE = "Write 3 search queries for this question, one per line and nothing else.\n\nQuestion: {question}"
GRADE = "Does this document help with the question? Say yes or no.\n\nDocument: {document}\n\nQuestion: {question}"
ANSWER = ChatPromptTemplate.from_messages([("system", "Answer from these notes:\n{notes}"), ("human", "{question}")])
DOCUMENTS = 48


class State(TypedDict, total=False):
    question: str
    queries: list[str]
    documents: list[Document]
    kept: list[str]
    answer: str


def build(style: str, scale: float) -> Any:
    store = InMemoryVectorStore(Vectors(scale))
    store.add_texts([f"About this: {text}" for text in questions(DOCUMENTS, "documents")])
    accel.register(store, readonly=True)
    return (_awaited if style == ASYNC else _plain)(Model(scale=scale), store)


def _plain(llm: Model, store: InMemoryVectorStore) -> Any:
    answering = ANSWER | llm

    def rewrite(state: State) -> State:
        return {"queries": llm.invoke(REWRITE.format(question=state["question"])).text.splitlines()}

    def search(state: State) -> State:
        found: list[Document] = []
        for query in state["queries"]:
            found += store.similarity_search(query, k=2)
        return {"documents": _unique(found)}

    def grade(state: State) -> State:
        kept = []
        for document in state["documents"]:
            prompt = GRADE.format(document=document.page_content, question=state["question"])
            if llm.invoke(prompt).text == "yes":
                kept.append(document.page_content)
        return {"kept": kept}

    def generate(state: State) -> State:
        return {"answer": answering.invoke({"notes": "\n".join(state["kept"]), "question": state["question"]}).text}

    return sequence(State, rewrite, search, grade, generate)


def _awaited(llm: Model, store: InMemoryVectorStore) -> Any:
    answering = ANSWER | llm

    async def rewrite(state: State) -> State:
        return {"queries": (await llm.ainvoke(REWRITE.format(question=state["question"]))).text.splitlines()}

    async def search(state: State) -> State:
        found: list[Document] = []
        for query in state["queries"]:
            found += await store.asimilarity_search(query, k=2)
        return {"documents": _unique(found)}

    async def grade(state: State) -> State:
        kept = []
        for document in state["documents"]:
            prompt = GRADE.format(document=document.page_content, question=state["question"])
            if (await llm.ainvoke(prompt)).text == "yes":
                kept.append(document.page_content)
        return {"kept": kept}

    async def generate(state: State) -> State:
        message = await answering.ainvoke({"notes": "\n".join(state["kept"]), "question": state["question"]})
        return {"answer": message.text}

    return sequence(State, rewrite, search, grade, generate)


def _unique(found: list[Document]) -> list[Document]:
    return list({document.page_content: document for document in found}.values())


def _outcome(state: Any) -> Any:
    return {**state, "documents": [[document.id, document.page_content] for document in state["documents"]]}


def ask(app: Any, question: str) -> Any:
    return _outcome(app.invoke({"question": question}))


async def aask(app: Any, question: str) -> Any:
    return _outcome(await app.ainvoke({"question": question}))
