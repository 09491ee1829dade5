"""Corrective RAG: every document is graded, the question is rewritten once if none is relevant, then answered."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langgraph.graph import END, START, StateGraph

DOCUMENTS = [
    f"Section {number}. {who} may take {what} {when}."
    for number, (who, what, when) in enumerate(
        (who, what, when)
        for who in ("Full-time staff", "Part-time staff", "Interns", "Contractors")
        for what in ("paid leave", "unpaid leave", "study days", "a day at home")
        for when in ("after three months", "with two weeks of notice")
    )
]
INPUTS = [
    {"question": "How many study days do interns have?"},
    {"question": "When can part-time staff take paid leave?"},
    {"question": "Do contractors need to give notice?"},
    {"question": "Is working from home possible in the first month?"},
    {"question": "Who approves unpaid leave for full-time staff?"},
    {"question": "Can paid leave be moved to the next year?"},
    {"question": "What happens to study days that are not used?"},
    {"question": "May interns take unpaid leave in summer?"},
    {"question": "How long before a study day must full-time staff give notice?"},
    {"question": "Do part-time staff get a day at home every week?"},
    {"question": "Who pays contractors while they are ill?"},
    {"question": "When may interns work a day at home?"},
]

GRADE = PromptTemplate(
    template="You grade whether a retrieved document is relevant to a question.\n\n"
    "Document: {document}\n\nQuestion: {question}\n\nIs it relevant? Answer yes or no.",
    input_variables=["document", "question"],
)
REWRITE = PromptTemplate.from_template(
    "Rewrite the question in one sentence so that a search finds more.\n\nQuestion: {question}"
)
ANSWER = PromptTemplate.from_template(
    "Answer the question from the handbook in about 60 words.\n\nContext:\n{context}\n\nQuestion: {question}"
)


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    rewrites: int
    answer: str


def decide(state: State) -> str:
    if not state["documents"] and state.get("rewrites", 0) < 1:
        return "rewrite"
    return "generate"


def build(parts: Any) -> Any:
    retriever = parts.store.as_retriever(search_kwargs={"k": 2})
    grader = GRADE | parts.llm.bind(max_tokens=5) | StrOutputParser()
    rewriter = REWRITE | parts.llm | StrOutputParser()
    generator = ANSWER | parts.llm | StrOutputParser()

    def retrieve(state: State) -> State:
        return {"documents": retriever.invoke(state["question"])}

    def grade(state: State) -> State:
        relevant = []
        for document in state["documents"]:
            verdict = grader.invoke({"document": document.page_content, "question": state["question"]})
            if verdict.strip().lower().startswith("yes"):
                relevant.append(document)
        return {"documents": relevant}

    def rewrite(state: State) -> State:
        question = rewriter.invoke({"question": state["question"]}).strip()
        return {"question": question, "rewrites": state.get("rewrites", 0) + 1}

    def generate(state: State) -> State:
        context = "\n\n".join(document.page_content for document in state["documents"]) or "Nothing was found."
        return {"answer": generator.invoke({"context": context, "question": state["question"]})}

    workflow = StateGraph(State)
    workflow.add_node("retrieve", retrieve)
    workflow.add_node("grade", grade)
    workflow.add_node("rewrite", rewrite)
    workflow.add_node("generate", generate)
    workflow.add_edge(START, "retrieve")
    workflow.add_edge("retrieve", "grade")
    workflow.add_conditional_edges("grade", decide, {"rewrite": "rewrite", "generate": "generate"})
    workflow.add_edge("rewrite", "retrieve")
    workflow.add_edge("generate", END)
    return workflow.compile()
