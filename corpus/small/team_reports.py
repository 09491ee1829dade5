"""Hierarchical teams: a subgraph per team, one with bound tools and one that drafts and edits, under a small board."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from typing_extensions import TypedDict

ASYNC = True
SALES = {"umbrellas": (410, 380), "gloves": (95, 120), "sandals": (230, 310), "scarves": (150, 90), "hats": (77, 81)}
INPUTS = [
    {"task": task}
    for task in (
        "Explain why umbrellas sold worse in May than in April.", "Should we order more sandals for the summer?",
        "Are gloves worth a place in the window?", "Tell the owner how scarves and hats compare.",
        "Which product deserves a discount?", "Prepare the talk with the bank about our sales.",
        "What do we stop selling next year?", "Write to the supplier of hats about the autumn.",
        "Explain to the owner why fewer scarves were sold in May.", "Should gloves and hats share a shelf?",
        "Which product goes into the window in June?", "Write to the supplier of sandals about a larger order.",
    )
]  # fmt: skip

LOOK_UP = "You are the research team of a shop. Look up with the tools what the task needs."
SUM_UP = "You are the research team of a shop. Sum up what was found in about 50 words."
DRAFT = ChatPromptTemplate.from_messages(
    [
        ("system", "You are a writer in the office of a shop."),
        ("human", "Write a draft of about 80 words for this task: {task}\n\nFindings:\n{findings}"),
    ]
)
EDIT = ChatPromptTemplate.from_messages(
    [
        ("system", "You are an editor in the office of a shop."),
        ("human", "Make the draft plainer, in about 70 words.\n\nDraft:\n{draft}"),
    ]
)
BRIEF = ChatPromptTemplate.from_template("Give the research team of a shop a brief of about 25 words.\n\nTask: {task}")
NOTE = ChatPromptTemplate.from_template(
    "Write a covering note in two sentences for the owner.\n\nTask: {task}\n\n{text}"
)


@tool
def units_sold(product: str) -> str:
    """Units of a product sold in April and May."""
    found = [f"{name}: {april} in April, {may} in May" for name, (april, may) in SALES.items() if name in product]
    return "; ".join(found) or f"Nothing is known of {product}. Products: {', '.join(SALES)}"


@tool
def margin(product: str, price: float) -> str:
    """What a shop earns per unit of a product at a price."""
    return f"{max(price, 0.0) * 0.4:.2f} per unit of {product}"


class Research(MessagesState):
    findings: str


class Writing(TypedDict, total=False):
    task: str
    findings: str
    draft: str
    text: str


class Board(TypedDict, total=False):
    task: str
    assignment: str
    findings: str
    text: str
    note: str


def research_team(llm: Any) -> Any:
    tools = {one.name: one for one in (units_sold, margin)}
    researcher = llm.bind_tools(list(tools.values()))

    async def look_up(state: Research) -> dict[str, Any]:
        response = await researcher.ainvoke([SystemMessage(LOOK_UP), *state["messages"]])
        results = [
            ToolMessage(tools[call["name"]].invoke(call["args"]), tool_call_id=call["id"])
            for call in response.tool_calls
        ]
        return {"messages": [response, *results]}

    async def sum_up(state: Research) -> dict[str, Any]:
        response = await llm.ainvoke([SystemMessage(SUM_UP), *state["messages"]])
        return {"findings": response.text}

    graph = StateGraph(Research)
    graph.add_sequence([look_up, sum_up])
    graph.add_edge(START, "look_up")
    return graph.compile()


def writing_team(llm: Any) -> Any:
    async def write(state: Writing) -> Writing:
        return {"draft": await (DRAFT | llm | StrOutputParser()).ainvoke(state)}

    async def edit(state: Writing) -> Writing:
        return {"text": await (EDIT | llm | StrOutputParser()).ainvoke({"draft": state["draft"]})}

    graph = StateGraph(Writing)
    graph.add_sequence([write, edit])
    graph.add_edge(START, "write")
    return graph.compile()


def build(parts: Any) -> Any:
    team = research_team(parts.llm)

    async def brief(state: Board) -> Board:
        return {"assignment": await (BRIEF | parts.llm | StrOutputParser()).ainvoke({"task": state["task"]})}

    async def research(state: Board) -> Board:
        result = await team.ainvoke({"messages": [HumanMessage(state["assignment"])]})
        return {"findings": result["findings"]}

    async def sign_off(state: Board) -> Board:
        return {"note": await (NOTE | parts.llm | StrOutputParser()).ainvoke(state)}

    graph = StateGraph(Board)
    graph.add_sequence([brief, research, ("writing", writing_team(parts.llm)), sign_off])
    graph.set_entry_point("brief")
    graph.set_finish_point("sign_off")
    return graph.compile()
