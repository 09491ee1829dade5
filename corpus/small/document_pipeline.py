"""Document pipeline: a compiled subgraph extracts, classifies and summarizes each of 3 letters, then an index."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.prompts import PromptTemplate
from langgraph.graph import END, START, StateGraph

ASYNC = True
SENDERS = ["a tenant", "a supplier", "an insurance company", "a former employee", "a bank", "a neighbour"]
MATTERS = ["a leaking roof", "a late payment", "a broken contract", "a missing parcel", "a change of address"]


def _letter(number: int) -> str:
    sender, matter = SENDERS[number % len(SENDERS)], MATTERS[number % len(MATTERS)]
    return (
        f"Letter {number} from {sender}. I write to you because of {matter}. I have called your office on three days "
        f"and nobody could help me with {matter}. I expect an answer within {number % 7 + 7} days, or I will ask a "
        f"lawyer. A copy of the receipts, of which there are {number % 4 + 2}, is attached."
    )


INPUTS = [{"folder": f"folder {n}", "documents": [_letter(3 * n + k) for k in range(3)]} for n in range(1, 13)]

EXTRACT = PromptTemplate.from_template(
    "Extract the 3 facts that matter most, as bullet points.\n\nDocument: {document}"
)
CLASSIFY = PromptTemplate.from_template(
    "Classify the document as one of: complaint, invoice, notice, request.\n\n"
    "Document: {document}\n\nFacts:\n{facts}\n\nReply with the category only."
)
SUMMARIZE = PromptTemplate.from_template(
    "Summarize this {category} in about 45 words for the person who will answer it.\n\n"
    "Document: {document}\n\nFacts:\n{facts}"
)


class DocumentState(TypedDict, total=False):
    document: str
    facts: str
    category: str
    summary: str


class State(TypedDict, total=False):
    folder: str
    documents: list[str]
    processed: list[dict[str, str]]
    index: str


def document_graph(llm: Any) -> Any:
    async def extract(state: DocumentState) -> DocumentState:
        response = await llm.ainvoke(EXTRACT.format(document=state["document"]))
        return {"facts": response.content}

    async def classify(state: DocumentState) -> DocumentState:
        response = await llm.ainvoke(CLASSIFY.format(document=state["document"], facts=state["facts"]))
        return {"category": response.content.strip().lower()}

    async def summarize(state: DocumentState) -> DocumentState:
        prompt = SUMMARIZE.format(category=state["category"], document=state["document"], facts=state["facts"])
        return {"summary": (await llm.ainvoke(prompt)).content}

    graph = StateGraph(DocumentState)
    graph.add_sequence([extract, classify, summarize])
    graph.add_edge(START, "extract")
    graph.add_edge("summarize", END)
    return graph.compile()


def build(parts: Any) -> Any:
    pipeline = document_graph(parts.llm)

    async def process(state: State) -> State:
        processed = []
        for document in state["documents"]:
            result = await pipeline.ainvoke({"document": document})
            processed.append({"category": result["category"], "summary": result["summary"]})
        return {"processed": processed}

    async def write_index(state: State) -> State:
        entries = "\n".join(
            f"{number}. [{entry['category']}] {entry['summary']}" for number, entry in enumerate(state["processed"], 1)
        )
        prompt = f"Write an index of about 60 words for {state['folder']}, which holds these letters.\n\n{entries}"
        return {"index": (await parts.llm.ainvoke(prompt)).content}

    graph = StateGraph(State)
    graph.add_node("process", process)
    graph.add_node("write_index", write_index)
    graph.add_edge(START, "process")
    graph.add_edge("process", "write_index")
    graph.add_edge("write_index", END)
    return graph.compile()
