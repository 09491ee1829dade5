"""Adaptive RAG: a router picks the index or the web, documents, hallucinations and answers are graded, with retries."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

SOURCE = (
    "Adaptive RAG tutorial of LangGraph "
    "(https://langchain-ai.github.io/langgraph/tutorials/rag/langgraph_adaptive_rag/)"
)
DOCUMENTS = [
    f"{knot}: {note}"
    for knot in ("Bowline", "Clove hitch", "Figure eight", "Sheet bend", "Reef knot", "Rolling hitch")
    for note in (
        "holds under load, and is untied with one hand when the load is gone.",
        "slips when the rope is wet, so that sailors put another half hitch behind it.",
        "was first drawn in a manual for riggers in the eighteenth century.",
        "loses a third of the strength of the rope.",
    )
]
INPUTS = [
    {"question": question}
    for question in (
        "Which knot can I untie with one hand?", "How much strength does a rope lose in a figure eight?",
        "Who won the last regatta around the island?", "Why do sailors put a half hitch behind a clove hitch?",
        "Is the reef knot safe for climbing?", "What joins two ropes of different thickness?",
        "What does a new mainsail cost this year?", "Which knots were drawn in old manuals for riggers?",
        "What happens to a rolling hitch when the rope is wet?", "Where can I book a course for sailors in June?",
        "How much weaker is a rope with a sheet bend in it?", "When was the bowline first drawn?",
    )
]  # fmt: skip
MAX_ATTEMPTS = 2


class RouteQuery(BaseModel):
    """Route a question of a user to the most relevant source."""

    datasource: Literal["vectorstore", "web_search"] = Field(description="Where to look for an answer")


class GradeDocuments(BaseModel):
    """Whether a retrieved document is relevant."""

    binary_score: str = Field(description="Document is relevant to the question, 'yes' or 'no'")


class GradeHallucinations(BaseModel):
    """Whether a generation is free of hallucinations."""

    binary_score: str = Field(description="Answer is grounded in the facts, 'yes' or 'no'")


class GradeAnswer(BaseModel):
    """Whether an answer addresses the question."""

    binary_score: str = Field(description="Answer addresses the question, 'yes' or 'no'")


ROUTE = ChatPromptTemplate.from_messages(
    [
        ("system", "You route questions to a vectorstore with notes on knots, or to a web search for all the rest."),
        ("human", "{question}"),
    ]
)
GRADE_DOCUMENT = ChatPromptTemplate.from_messages(
    [
        ("system", "You grade whether a retrieved document has to do with a question. It need not be a strict test."),
        ("human", "Retrieved document:\n\n{document}\n\nUser question: {question}"),
    ]
)
GRADE_HALLUCINATIONS = ChatPromptTemplate.from_messages(
    [
        ("system", "You grade whether the generation of a model is supported by a set of retrieved facts."),
        ("human", "Set of facts:\n\n{documents}\n\nLLM generation: {generation}"),
    ]
)
GRADE_ANSWER = ChatPromptTemplate.from_messages(
    [
        ("system", "You grade whether an answer resolves a question."),
        ("human", "User question:\n\n{question}\n\nLLM generation: {generation}"),
    ]
)
RAG = ChatPromptTemplate.from_template(
    "You answer questions. Use the retrieved context, and say so if you don't know. Answer in about 50 words.\n\n"
    "Question: {question}\n\nContext: {context}\n\nAnswer:"
)
REWRITE = ChatPromptTemplate.from_messages(
    [
        ("system", "You rewrite a question into one that is better for retrieval from a vectorstore."),
        ("human", "Here is the initial question:\n\n{question}\n\nWrite an improved question in one sentence."),
    ]
)


class GraphState(TypedDict):
    question: str
    generation: str
    documents: list[Document]
    attempts: int


def build(parts: Any) -> Any:
    llm = parts.llm
    retriever = parts.store.as_retriever(search_kwargs={"k": 4})
    question_router = ROUTE | llm.with_structured_output(RouteQuery)
    retrieval_grader = GRADE_DOCUMENT | llm.with_structured_output(GradeDocuments)
    hallucination_grader = GRADE_HALLUCINATIONS | llm.with_structured_output(GradeHallucinations)
    answer_grader = GRADE_ANSWER | llm.with_structured_output(GradeAnswer)
    rag_chain = RAG | llm | StrOutputParser()
    question_rewriter = REWRITE | llm | StrOutputParser()

    def retrieve(state: GraphState) -> dict[str, Any]:
        question = state["question"]
        return {"documents": retriever.invoke(question), "question": question}

    def web_search(state: GraphState) -> dict[str, Any]:
        docs = parts.store.similarity_search(state["question"], k=3)
        web_results = "\n".join(d.page_content for d in docs)
        return {"documents": [Document(page_content=web_results)]}

    def generate(state: GraphState) -> dict[str, Any]:
        context = "\n\n".join(doc.page_content for doc in state["documents"])
        generation = rag_chain.invoke({"context": context, "question": state["question"]})
        return {"generation": generation, "attempts": state.get("attempts", 0) + 1}

    def grade_documents(state: GraphState) -> dict[str, Any]:
        filtered_docs = []
        for d in state["documents"]:
            score = retrieval_grader.invoke({"question": state["question"], "document": d.page_content})
            if score.binary_score == "yes":
                filtered_docs.append(d)
        return {"documents": filtered_docs}

    def transform_query(state: GraphState) -> dict[str, Any]:
        return {"question": question_rewriter.invoke({"question": state["question"]})}

    def route_question(state: GraphState) -> str:
        return question_router.invoke({"question": state["question"]}).datasource

    def decide_to_generate(state: GraphState) -> str:
        return "generate" if state["documents"] else "transform_query"

    def grade_generation(state: GraphState) -> str:
        question, generation = state["question"], state["generation"]
        facts = "\n\n".join(doc.page_content for doc in state["documents"])
        score = hallucination_grader.invoke({"documents": facts, "generation": generation})
        if state["attempts"] >= MAX_ATTEMPTS:
            return "useful"
        if score.binary_score != "yes":
            return "not supported"
        score = answer_grader.invoke({"question": question, "generation": generation})
        return "useful" if score.binary_score == "yes" else "not useful"

    workflow = StateGraph(GraphState)
    workflow.add_node("web_search", web_search)
    workflow.add_node("retrieve", retrieve)
    workflow.add_node("grade_documents", grade_documents)
    workflow.add_node("generate", generate)
    workflow.add_node("transform_query", transform_query)
    workflow.add_conditional_edges(START, route_question, {"web_search": "web_search", "vectorstore": "retrieve"})
    workflow.add_edge("web_search", "generate")
    workflow.add_edge("retrieve", "grade_documents")
    workflow.add_conditional_edges(
        "grade_documents", decide_to_generate, {"transform_query": "transform_query", "generate": "generate"}
    )
    workflow.add_edge("transform_query", "retrieve")
    workflow.add_conditional_edges(
        "generate", grade_generation, {"not supported": "generate", "useful": END, "not useful": "transform_query"}
    )
    return workflow.compile()
