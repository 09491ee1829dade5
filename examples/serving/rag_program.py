"""A RAG program as people write it: rewrite the question, search with each rewriting, grade each document, answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.graph import END, START, StateGraph
from openai import DefaultAsyncHttpxClient, DefaultHttpxClient
from pydantic import SecretStr

REWRITE = "Write three search queries for this question, one on each line.\n\nQuestion: {question}"
GRADE = "Does this document help with the question? Say yes or no.\n\nDocument: {document}\n\nQuestion: {question}"
ANSWER = ChatPromptTemplate.from_messages(
    [("system", "Answer from these notes:\n{notes}"), ("human", "{question}")],
)
_SUBJECTS = "tide harbour signal meadow copper lantern orbit granite velvet summit ember willow prism cargo".split()


class State(TypedDict, total=False):
    question: str
    queries: list[str]
    documents: list[Document]
    kept: list[str]
    answer: str


def notes() -> list[str]:
    """What the answers come from."""
    pairs = zip(_SUBJECTS, _SUBJECTS[5:] + _SUBJECTS[:5], strict=True)
    return [f"About {one} and {other}: note {n}." for n, (one, other) in enumerate(pairs)]


class Parts:
    """The components that all graphs of the application share. `connections`: those of `own_connections`, instead of
    those that every model of the process shares."""

    def __init__(self, base_url: str, **connections: Any) -> None:
        to: dict[str, Any] = {"base_url": base_url, "api_key": SecretStr("local"), **connections}
        self.llm = ChatOpenAI(model="local-chat", temperature=0, **to)
        # Without the check no tokenizer is downloaded.
        self.embeddings = OpenAIEmbeddings(model="local-embedding", check_embedding_ctx_length=False, **to)
        self.store = InMemoryVectorStore(self.embeddings)

    def fill(self) -> None:
        texts = notes()
        self.store.add_texts(texts, ids=[f"note {number}" for number in range(len(texts))])


@asynccontextmanager
async def own_connections() -> AsyncIterator[dict[str, Any]]:
    """Closed at the end: a process that is forked must leave no open ones behind, which two would write to."""
    with DefaultHttpxClient() as plain:
        async with DefaultAsyncHttpxClient() as of_loop:
            yield {"http_client": plain, "http_async_client": of_loop}


def told(state: dict[str, Any]) -> dict[str, Any]:
    """Everything the program has worked out, so that two arms can be compared."""
    documents = [document.page_content for document in state["documents"]]
    return {"queries": state["queries"], "documents": documents, "kept": state["kept"], "answer": state["answer"]}


def merged(found: list[Document]) -> list[Document]:
    return list({document.page_content: document for document in found}.values())


def sync_graph(parts: Parts) -> Any:
    llm, store = parts.llm, parts.store
    answering = ANSWER | llm

    def rewrite(state: State) -> State:
        lines = str(llm.invoke(REWRITE.format(question=state["question"])).content).splitlines()
        return {"queries": [line.strip() for line in lines if line.strip()]}

    def search(state: State) -> State:
        found: list[Document] = []
        for query in state["queries"]:
            found.extend(store.similarity_search(query, k=2))
        return {"documents": merged(found)}

    def grade(state: State) -> State:
        kept = []
        for document in state["documents"]:
            prompt = GRADE.format(document=document.page_content, question=state["question"])
            if "yes" in str(llm.invoke(prompt).content).lower():
                kept.append(document.page_content)
        return {"kept": kept}

    def generate(state: State) -> State:
        message = answering.invoke({"notes": "\n".join(state["kept"]), "question": state["question"]})
        return {"answer": str(message.content)}

    return _wired(rewrite, search, grade, generate)


def async_graph(parts: Parts) -> Any:
    llm, store = parts.llm, parts.store
    answering = ANSWER | llm

    async def rewrite(state: State) -> State:
        lines = str((await llm.ainvoke(REWRITE.format(question=state["question"]))).content).splitlines()
        return {"queries": [line.strip() for line in lines if line.strip()]}

    async def search(state: State) -> State:
        found: list[Document] = []
        for query in state["queries"]:
            found.extend(await store.asimilarity_search(query, k=2))
        return {"documents": merged(found)}

    async def grade(state: State) -> State:
        kept = []
        for document in state["documents"]:
            prompt = GRADE.format(document=document.page_content, question=state["question"])
            if "yes" in str((await llm.ainvoke(prompt)).content).lower():
                kept.append(document.page_content)
        return {"kept": kept}

    async def generate(state: State) -> State:
        message = await answering.ainvoke({"notes": "\n".join(state["kept"]), "question": state["question"]})
        return {"answer": str(message.content)}

    return _wired(rewrite, search, grade, generate)


def _wired(rewrite: Any, search: Any, grade: Any, generate: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("rewrite", rewrite)
    graph.add_node("search", search)
    graph.add_node("grade", grade)
    graph.add_node("generate", generate)
    graph.add_edge(START, "rewrite")
    graph.add_edge("rewrite", "search")
    graph.add_edge("search", "grade")
    graph.add_edge("grade", "generate")
    graph.add_edge("generate", END)
    return graph.compile()
