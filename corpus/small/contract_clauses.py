"""Contract check: clauses by their section signs, a risk per clause as a pydantic object, advice for the risky ones."""

from __future__ import annotations

import re
from typing import Any, Literal, TypedDict

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

CLAUSES = [
    "Term. The agreement runs for {n} years and is renewed unless it is cancelled {n} months before.",
    "Payment. Invoices are due within {n}0 days; later payments bear interest of {n} percent a month.",
    "Liability. The supplier pays for damages up to {n} times the yearly fee, and never for lost profit.",
    "Secrecy. Both parties keep what they learn to themselves, for {n} years after the end.",
    "Audit. The customer may inspect the premises {n} times a year, announced or not.",
    "Delivery. Goods that come more than {n} days late may be sent back at the supplier's cost.",
    "Exclusivity. The customer buys from nobody else within {n}00 kilometres.",
    "Data. Personal data stay on the supplier's machines for {n} months after the end.",
]
PARTIES = [
    "a bakery and a mill", "a clinic and a laundry", "a school and a caterer", "a harbour and a crane maker",
    "a publisher and a printer", "a museum and an insurer", "a farm and a seed dealer", "a theatre and a tailor",
    "a hotel and a brewery", "a library and a binder", "a ferry line and a shipyard", "a vineyard and a cooper",
]  # fmt: skip


def _contract(number: int) -> str:
    chosen = [CLAUSES[(number + 3 * k) % len(CLAUSES)].format(n=number % 4 + number // 8 + k + 2) for k in range(4)]
    return "\n".join(f"§ {position} {clause}" for position, clause in enumerate(chosen, start=1))


INPUTS = [{"parties": parties, "contract": _contract(number)} for number, parties in enumerate(PARTIES)]

SYSTEM = "You are a careful lawyer who looks at contracts for the buyer."
ASSESS = ChatPromptTemplate.from_messages(
    [
        ("system", SYSTEM),
        ("human", "Assess the risk of this clause in a contract between {parties}.\n\nClause:\n{clause}"),
    ]
)
ADVISE = ChatPromptTemplate.from_messages(
    [
        ("system", SYSTEM),
        ("human", "Suggest in about 35 words how to change the clause.\n\nClause:\n{clause}\n\nConcern: {concern}"),
    ]
)
SUMMARY = ChatPromptTemplate.from_messages(
    [
        ("system", SYSTEM),
        ("human", "Tell your client in about 90 words what to ask of the other party.\n\n{proposals}"),
    ]
)


class Risk(BaseModel):
    """How risky a clause is."""

    level: Literal["low", "medium", "high"] = Field(description="The risk for the buyer")
    concern: str = Field(description="What may go wrong")


class Review(TypedDict, total=False):
    parties: str
    contract: str
    clauses: list[str]
    risks: list[Risk]
    proposals: list[str]
    summary: str


def split_clauses(contract: str) -> list[str]:
    return [clause.strip() for clause in re.split(r"\n(?=§ \d+ )", contract)]


def build(parts: Any) -> Any:
    assessor = ASSESS | parts.llm.with_structured_output(Risk)
    adviser = ADVISE | parts.llm | StrOutputParser()

    def split(state: Review) -> Review:
        return {"clauses": split_clauses(state["contract"])}

    def assess(state: Review) -> Review:
        risks = [assessor.invoke({"parties": state["parties"], "clause": clause}) for clause in state["clauses"]]
        return {"risks": risks}

    def advise(state: Review) -> Review:
        proposals = []
        for clause, risk in zip(state["clauses"], state["risks"], strict=True):
            if risk.level == "low":
                continue
            advice = adviser.invoke({"clause": clause, "concern": risk.concern})
            proposals.append(f"{clause.split('.')[0]} ({risk.level} risk): {advice}")
        return {"proposals": proposals}

    def summarize(state: Review) -> Review:
        chain = SUMMARY | parts.llm | StrOutputParser()
        return {"summary": chain.invoke({"proposals": "\n\n".join(state["proposals"])})}

    def nothing_to_do(state: Review) -> Review:
        return {"summary": f"The contract between {state['parties']} can be signed as it is."}

    graph = StateGraph(Review)
    graph.add_sequence([split, assess, advise])
    graph.add_node("summarize", summarize)
    graph.add_node("nothing_to_do", nothing_to_do)
    graph.add_edge(START, "split")
    graph.add_conditional_edges("advise", lambda state: "summarize" if state["proposals"] else "nothing_to_do")
    graph.add_edge("summarize", END)
    graph.add_edge("nothing_to_do", END)
    return graph.compile()
