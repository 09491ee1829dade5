"""Essay writer with reflection: a plan, searches for it, a draft, a critique, searches for that, and another draft."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, StateGraph
from pydantic import BaseModel, Field

SOURCE = (
    "Essay writer of the course 'AI Agents in LangGraph' "
    "(DeepLearning.AI, https://learn.deeplearning.ai/courses/ai-agents-in-langgraph)"
)
DOCUMENTS = [
    f"{trade} {fact}"
    for trade in ("Bakers", "Weavers", "Printers", "Shipbuilders", "Clockmakers", "Glassblowers", "Millers")
    for fact in (
        "formed guilds that set the price of bread, cloth and books for three hundred years.",
        "lost half of their apprentices within a decade of the first steam engines.",
        "wrote down their recipes late, because secrets were worth more than fame.",
        "are back in old town centres, where visitors pay to watch them.",
    )
]
INPUTS = [
    {"task": task, "max_revisions": 2, "revision_number": 1}
    for task in (
        "Why did guilds last for so long?", "What did steam engines do to apprentices?",
        "How do crafts keep their secrets?", "Is a craft for visitors still a craft?",
        "What is the difference between a printer and a publisher?", "Why do clocks matter more than engines?",
        "Should bread have a fixed price?", "What do shipbuilders and weavers have in common?",
        "Why were recipes written down so late?", "Is fame worth more than a secret?",
        "Who gained most from the end of the guilds?", "What can a town learn from its millers?",
    )
]  # fmt: skip

PLAN_PROMPT = """You are an expert writer. Write a high-level outline of an essay on what the user asks, in about 60 \
words, with notes for each section."""
WRITER_PROMPT = """You are an essay assistant who writes excellent essays of about 150 words. Write the best essay \
possible for the user's request and the outline. If the user has a critique, answer with a revised version of your \
previous attempts. Make use of all that follows, as you need it:

------

{content}"""
REFLECTION_PROMPT = """You are a teacher who grades an essay. Write a critique and recommendations in about 70 words. \
Be detailed about length, depth and style."""
RESEARCH_PLAN_PROMPT = """You are a researcher who gathers what is needed to write the following essay. Generate \
search queries, at most 3 of them."""
RESEARCH_CRITIQUE_PROMPT = """You are a researcher who gathers what is needed to make the requested revisions, as \
outlined below. Generate search queries, at most 3 of them."""


class AgentState(TypedDict):
    task: str
    plan: str
    draft: str
    critique: str
    content: list[str]
    revision_number: int
    max_revisions: int


class Queries(BaseModel):
    queries: list[str] = Field(min_length=1, max_length=3)


def build(parts: Any) -> Any:
    model = parts.llm

    def plan_node(state: AgentState) -> dict[str, Any]:
        messages = [SystemMessage(content=PLAN_PROMPT), HumanMessage(content=state["task"])]
        response = model.invoke(messages)
        return {"plan": response.content}

    def research_plan_node(state: AgentState) -> dict[str, Any]:
        queries = model.with_structured_output(Queries).invoke(
            [SystemMessage(content=RESEARCH_PLAN_PROMPT), HumanMessage(content=state["task"])]
        )
        content = state.get("content") or []
        for q in queries.queries:
            for r in parts.store.similarity_search(q, k=2):
                content.append(r.page_content)
        return {"content": content}

    def generation_node(state: AgentState) -> dict[str, Any]:
        content = "\n\n".join(state["content"] or [])
        user_message = HumanMessage(content=f"{state['task']}\n\nHere is my plan:\n\n{state['plan']}")
        messages = [SystemMessage(content=WRITER_PROMPT.format(content=content)), user_message]
        response = model.invoke(messages)
        return {"draft": response.content, "revision_number": state.get("revision_number", 1) + 1}

    def reflection_node(state: AgentState) -> dict[str, Any]:
        messages = [SystemMessage(content=REFLECTION_PROMPT), HumanMessage(content=state["draft"])]
        response = model.invoke(messages)
        return {"critique": response.content}

    def research_critique_node(state: AgentState) -> dict[str, Any]:
        queries = model.with_structured_output(Queries).invoke(
            [SystemMessage(content=RESEARCH_CRITIQUE_PROMPT), HumanMessage(content=state["critique"])]
        )
        content = state["content"] or []
        for q in queries.queries:
            for r in parts.store.similarity_search(q, k=2):
                content.append(r.page_content)
        return {"content": content}

    def should_continue(state: AgentState) -> str:
        if state["revision_number"] > state["max_revisions"]:
            return END
        return "reflect"

    builder = StateGraph(AgentState)
    builder.add_node("planner", plan_node)
    builder.add_node("generate", generation_node)
    builder.add_node("reflect", reflection_node)
    builder.add_node("research_plan", research_plan_node)
    builder.add_node("research_critique", research_critique_node)
    builder.set_entry_point("planner")
    builder.add_conditional_edges("generate", should_continue, {END: END, "reflect": "reflect"})
    builder.add_edge("planner", "research_plan")
    builder.add_edge("research_plan", "generate")
    builder.add_edge("reflect", "research_critique")
    builder.add_edge("research_critique", "generate")
    return builder.compile()
