"""Citation check: the claims of an article as bullets, a search and a yes or no for each claim, and a verdict."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langgraph.graph import END, START, StateGraph

ASYNC = True
DOCUMENTS = [
    f"Study {number}: {food} and {effect}. The authors followed {200 + 40 * number} people for {number % 5 + 2} years."
    for number, (food, effect) in enumerate(
        (food, effect)
        for food in ("Coffee", "Green tea", "Olive oil", "Red meat", "Oats", "Sugar", "Garlic")
        for effect in ("sleep", "blood pressure", "weight", "memory in old age")
    )
]
INPUTS = [
    {"article": "Coffee in the afternoon shortens sleep, but drinkers of coffee remember more when they are old."},
    {"article": "Green tea lowers blood pressure within weeks, and those who drink it weigh less."},
    {"article": "Olive oil is the reason why people by the sea live longer and stay slim."},
    {"article": "Who gives up red meat sleeps better, loses weight and has a lower blood pressure."},
    {"article": "A bowl of oats in the morning keeps the memory young, a new study says."},
    {"article": "Sugar makes children restless at night and parents forgetful in the day."},
    {"article": "Garlic lowers blood pressure as well as pills do, and costs almost nothing."},
    {"article": "Tea and oats together help with sleep, while coffee and sugar undo the effect."},
    {"article": "Coffee raises blood pressure in the morning, yet people who drink it stay slim."},
    {"article": "Red meat twice a week is bad for the memory in old age, doctors say."},
    {"article": "Olive oil before bed brings deep sleep, and garlic keeps the weight down."},
    {"article": "Who eats oats without sugar loses weight, sleeps longer and has a better memory."},
]

CLAIMS = ChatPromptTemplate.from_messages(
    [
        ("system", "You are a fact checker of a health magazine."),
        ("human", "List the claims of the article as at most 5 bullet points.\n\nArticle: {article}"),
    ]
)
CHECK = PromptTemplate.from_template(
    "Is the claim supported by the evidence? Answer with yes or no.\n\nClaim: {claim}\n\nEvidence:\n{evidence}"
)
VERDICT = PromptTemplate.from_template(
    "Write a verdict of about 70 words on the article, with the table of claims in mind.\n\n"
    "Article: {article}\n\n{table}"
)


class State(TypedDict, total=False):
    article: str
    claims: list[str]
    checks: list[dict[str, Any]]
    verdict: str


def parse_bullets(text: str) -> list[str]:
    return [line[2:].strip() for line in text.splitlines() if line.startswith(("- ", "* "))]


def format_evidence(documents: list[Document]) -> str:
    return "\n".join(f"[{number}] {document.page_content}" for number, document in enumerate(documents, start=1))


def build(parts: Any) -> Any:
    retriever = parts.store.as_retriever(search_kwargs={"k": 3})
    claims_chain = CLAIMS | parts.llm | StrOutputParser() | parse_bullets
    check_chain = CHECK | parts.llm.bind(max_tokens=4) | StrOutputParser()
    verdict_chain = VERDICT | parts.llm | StrOutputParser()

    async def extract_claims(state: State) -> State:
        return {"claims": await claims_chain.ainvoke({"article": state["article"]})}

    async def check_claims(state: State) -> State:
        checks: list[dict[str, Any]] = []
        for claim in state["claims"]:
            documents = await retriever.ainvoke(claim)
            said = await check_chain.ainvoke({"claim": claim, "evidence": format_evidence(documents)})
            checks.append({"claim": claim, "supported": "yes" in said.lower(), "first": documents[0].page_content})
        return {"checks": checks}

    async def give_verdict(state: State) -> State:
        rows = [f"| {check['claim']} | {'yes' if check['supported'] else 'no'} |" for check in state["checks"]]
        return {"verdict": await verdict_chain.ainvoke({"article": state["article"], "table": "\n".join(rows)})}

    graph = StateGraph(State)
    graph.add_node("extract_claims", extract_claims)
    graph.add_node("check_claims", check_claims)
    graph.add_node("give_verdict", give_verdict)
    graph.add_edge(START, "extract_claims")
    graph.add_edge("extract_claims", "check_claims")
    graph.add_edge("check_claims", "give_verdict")
    graph.add_edge("give_verdict", END)
    return graph.compile()
