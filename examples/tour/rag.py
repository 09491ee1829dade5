"""Corrective RAG, as LangGraph's tutorials have it: retrieve, grade each document, answer from those that help."""

from typing import Any, Literal, TypedDict

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

TEXTS = [
    "A spring tide follows the new moon: it turns the harbour's mud over and silts up the slipway.",
    "A neap tide is slow. Boats that draw two metres wait for the next one outside the harbour.",
    "The harbour lantern is copper. It darkens in winter, when smoke of the embers hangs low.",
    "Signals at the summit are seen from the harbour unless cloud lies on the granite.",
    "The meadow behind the mole floods twice a year; cargo is then stored on the upper quay.",
    "Willows on the quay hold the bank together. None of them may be cut within sight of the water.",
]

llm = ChatOpenAI(model="gpt-4o-mini", temperature=0)
# Without the check no tokenizer is downloaded.
embeddings = OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False)
vector_store = InMemoryVectorStore.from_texts(TEXTS, embeddings)
retriever = vector_store.as_retriever(search_kwargs={"k": 4})


class GradeDocument(BaseModel):
    """Whether a document helps to answer a question."""

    binary_score: Literal["yes", "no"] = Field(description="The document is relevant to the question, 'yes' or 'no'")


grade_prompt = ChatPromptTemplate.from_messages([
    ("system", "You grade the relevance of a retrieved document to a user's question."),
    ("human", "Retrieved document:\n\n{document}\n\nUser question: {question}"),
])  # fmt: skip
grader = grade_prompt | llm.with_structured_output(GradeDocument)

answer_prompt = ChatPromptTemplate.from_template(
    "Answer the question from the context alone.\n\nContext:\n{context}\n\nQuestion: {question}"
)
answering = answer_prompt | llm


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    answer: str


def retrieve(state: State) -> State:
    return {"documents": retriever.invoke(state["question"])}


def grade_documents(state: State) -> State:
    kept = []
    for document in state["documents"]:
        grade: Any = grader.invoke({"document": document.page_content, "question": state["question"]})
        if grade.binary_score == "yes":
            kept.append(document)
    return {"documents": kept}


def generate(state: State) -> State:
    context = "\n\n".join(document.page_content for document in state["documents"])
    answer = answering.invoke({"context": context, "question": state["question"]})
    return {"answer": answer.text}


workflow = StateGraph(State)
workflow.add_node("retrieve", retrieve)
workflow.add_node("grade_documents", grade_documents)
workflow.add_node("generate", generate)
workflow.add_edge(START, "retrieve")
workflow.add_edge("retrieve", "grade_documents")
workflow.add_edge("grade_documents", "generate")
workflow.add_edge("generate", END)
graph = workflow.compile()
