"""Open Deep Research: a report plan from searches, a subgraph that researches each section, and a compiled report."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send
from pydantic import BaseModel, Field

SOURCE = "Open Deep Research, the graph workflow (LangChain, https://github.com/langchain-ai/open_deep_research)"
ASYNC = True
DOCUMENTS = [
    f"{place}: {finding}"
    for place in ("Denmark", "Portugal", "Chile", "Kenya", "Japan", "Texas")
    for finding in (
        "wind parks at sea now deliver more power in winter than all coal plants together.",
        "heat pumps replaced every third oil heater after a grant was doubled.",
        "batteries the size of containers hold the evening peak for two hours.",
        "villages own their solar fields and sell what they don't use.",
        "new lines to the coast took eleven years from the first drawing to the first current.",
    )
]
INPUTS = [
    {"topic": topic}
    for topic in (
        "How heat pumps change the demand for power in winter", "Batteries in place of gas plants in the evening",
        "Why new power lines take so long to build", "Solar fields owned by villages and what they earn",
        "Wind parks at sea and the price of electricity", "Grants for oil heaters that are given up",
        "What islands do when the wind does not blow", "Electric buses as storage for the grid",
        "Who pays for power lines to the coast", "What villages do with the solar power that they don't use",
        "Coal plants in winter beside wind parks at sea", "Containers of batteries near towns",
    )
]  # fmt: skip

NUMBER_OF_QUERIES = 2
MAX_SEARCH_DEPTH = 2
REPORT_STRUCTURE = """1. An introduction, without research
2. Main body sections, one for each side of the topic
3. A conclusion that distils the main body, without research"""
PLAN_QUERIES = """You plan a technical report and look for background first.

<topic>{topic}</topic>

<organization>
{organization}
</organization>

Generate {number_of_queries} web searches that gather what is needed to plan the sections."""
PLAN_SECTIONS = """You want a plan for a report that is concise and does not repeat itself.

<topic>{topic}</topic>

<organization>
{organization}
</organization>

<sources>
{context}
</sources>

Name each section, describe it, and say whether it needs research."""
SECTION_QUERIES = """You write web searches for one section of a report.

<report topic>{topic}</report topic>

<section topic>{section_topic}</section topic>

Generate {number_of_queries} searches, each about another side of the section."""
WRITE_SECTION = """You write one section of a report in about 90 words, from the sources and nothing else. Start with
the most important insight and end with the sources that you used."""
WRITE_SECTION_INPUTS = """<report topic>{topic}</report topic>
<section name>{name}</section name>
<section topic>{description}</section topic>
<existing section>{content}</existing section>
<sources>
{context}
</sources>"""
GRADE_SECTION = """Review a section of a report on {topic}.

<section topic>{section_topic}</section topic>

<section content>
{section}
</section content>

Judge whether the content covers the section topic. If it fails, give {number_of_queries} searches for what
is missing."""
WRITE_FINAL_SECTION = """You write a section that draws on the rest of a report, in about 60 words.

<report topic>{topic}</report topic>
<section name>{name}</section name>

<finished sections>
{context}
</finished sections>"""


class SearchQuery(BaseModel):
    search_query: str = Field(description="Query for a web search")


class Queries(BaseModel):
    queries: list[SearchQuery] = Field(min_length=1, max_length=NUMBER_OF_QUERIES)


class Section(BaseModel):
    name: str = Field(max_length=60, description="Name of the section")
    description: str = Field(description="What the section covers")
    research: bool = Field(description="Whether to search the web for it")
    content: str = Field(default="", description="The text of the section, empty for now")


class Sections(BaseModel):
    sections: list[Section] = Field(min_length=3, max_length=5)


class Feedback(BaseModel):
    grade: Literal["pass", "fail"]
    follow_up_queries: list[SearchQuery] = Field(max_length=NUMBER_OF_QUERIES)


class SectionOutput(TypedDict):
    completed_sections: list[Section]


class ReportState(TypedDict):
    topic: str
    sections: list[Section]
    completed_sections: Annotated[list[Section], operator.add]
    report_sections_from_research: str
    final_report: str


class SectionState(TypedDict):
    topic: str
    section: Section
    search_iterations: int
    search_queries: list[SearchQuery]
    source_str: str
    report_sections_from_research: str
    completed_sections: list[Section]


def deduplicate_and_format(found: list[list[Document]]) -> str:
    unique = list({document.page_content: None for documents in found for document in documents})
    return "\n\n".join(f"Source {number}:\n===\n{content}" for number, content in enumerate(unique, start=1))


def format_sections(sections: list[Section]) -> str:
    return "\n\n".join(
        f"{'=' * 20}\n{section.name}\n{section.description}\n\n{section.content}" for section in sections
    )


def build(parts: Any) -> Any:
    writer_model = parts.llm
    planner_model = parts.llm.model_copy(update={"max_tokens": 800})

    async def search(queries: list[SearchQuery]) -> str:
        found = [parts.store.asimilarity_search(query.search_query, k=3) for query in queries]
        return deduplicate_and_format(await asyncio.gather(*found))

    async def generate_report_plan(state: ReportState) -> dict[str, Any]:
        topic = state["topic"]
        system = PLAN_QUERIES.format(topic=topic, organization=REPORT_STRUCTURE, number_of_queries=NUMBER_OF_QUERIES)
        results = await writer_model.with_structured_output(Queries).ainvoke(
            [SystemMessage(content=system), HumanMessage(content="Generate the searches that help to plan the report.")]
        )
        context = await search(results.queries)
        system = PLAN_SECTIONS.format(topic=topic, organization=REPORT_STRUCTURE, context=context)
        report_sections = await planner_model.with_structured_output(Sections).ainvoke(
            [SystemMessage(content=system), HumanMessage(content="Generate the sections of the report.")]
        )
        return {"sections": report_sections.sections}

    def initiate_section_writing(state: ReportState) -> list[Send] | str:
        return [
            Send("build_section_with_web_research", {"topic": state["topic"], "section": s, "search_iterations": 0})
            for s in state["sections"]
            if s.research
        ] or "gather_completed_sections"

    async def generate_queries(state: SectionState) -> dict[str, Any]:
        system = SECTION_QUERIES.format(
            topic=state["topic"], section_topic=state["section"].description, number_of_queries=NUMBER_OF_QUERIES
        )
        queries = await writer_model.with_structured_output(Queries).ainvoke(
            [SystemMessage(content=system), HumanMessage(content="Generate searches on the given topic.")]
        )
        return {"search_queries": queries.queries}

    async def search_web(state: SectionState) -> dict[str, Any]:
        source_str = await search(state["search_queries"])
        return {"source_str": source_str, "search_iterations": state["search_iterations"] + 1}

    async def write_section(state: SectionState) -> Command[Literal["__end__", "search_web"]]:
        topic, section = state["topic"], state["section"]
        inputs = WRITE_SECTION_INPUTS.format(topic=topic, context=state["source_str"], **section.model_dump())
        written = await writer_model.ainvoke([SystemMessage(content=WRITE_SECTION), HumanMessage(content=inputs)])
        section.content = written.content
        system = GRADE_SECTION.format(
            topic=topic,
            section_topic=section.description,
            section=section.content,
            number_of_queries=NUMBER_OF_QUERIES,
        )
        feedback = await writer_model.with_structured_output(Feedback).ainvoke(
            [SystemMessage(content=system), HumanMessage(content="Grade the section and ask for what is missing.")]
        )
        if feedback.grade == "pass" or state["search_iterations"] >= MAX_SEARCH_DEPTH:
            return Command(update={"completed_sections": [section]}, goto=END)
        return Command(update={"search_queries": feedback.follow_up_queries, "section": section}, goto="search_web")

    def gather_completed_sections(state: ReportState) -> dict[str, Any]:
        return {"report_sections_from_research": format_sections(state["completed_sections"])}

    def initiate_final_section_writing(state: ReportState) -> list[Send] | str:
        context = state["report_sections_from_research"]
        return [
            Send(
                "write_final_sections",
                {"topic": state["topic"], "section": section, "report_sections_from_research": context},
            )
            for section in state["sections"]
            if not section.research
        ] or "compile_final_report"

    async def write_final_sections(state: SectionState) -> dict[str, Any]:
        section = state["section"]
        system = WRITE_FINAL_SECTION.format(
            topic=state["topic"], name=section.name, context=state["report_sections_from_research"]
        )
        written = await writer_model.ainvoke(
            [SystemMessage(content=system), HumanMessage(content="Write this section from the finished ones.")]
        )
        section.content = written.content
        return {"completed_sections": [section]}

    def compile_final_report(state: ReportState) -> dict[str, Any]:
        contents = {section.name: section.content for section in state["completed_sections"]}
        written = [f"## {section.name}\n\n{contents.get(section.name, '')}" for section in state["sections"]]
        return {"final_report": "\n\n".join(written)}

    section_builder = StateGraph(SectionState, output_schema=SectionOutput)
    section_builder.add_node("generate_queries", generate_queries)
    section_builder.add_node("search_web", search_web)
    section_builder.add_node("write_section", write_section)
    section_builder.add_edge(START, "generate_queries")
    section_builder.add_edge("generate_queries", "search_web")
    section_builder.add_edge("search_web", "write_section")

    builder = StateGraph(ReportState)
    builder.add_node("generate_report_plan", generate_report_plan)
    builder.add_node("build_section_with_web_research", section_builder.compile())
    builder.add_node("gather_completed_sections", gather_completed_sections)
    builder.add_node("write_final_sections", write_final_sections)
    builder.add_node("compile_final_report", compile_final_report)
    builder.add_edge(START, "generate_report_plan")
    builder.add_conditional_edges(
        "generate_report_plan",
        initiate_section_writing,
        ["build_section_with_web_research", "gather_completed_sections"],
    )
    builder.add_edge("build_section_with_web_research", "gather_completed_sections")
    builder.add_conditional_edges(
        "gather_completed_sections", initiate_final_section_writing, ["write_final_sections", "compile_final_report"]
    )
    builder.add_edge("write_final_sections", "compile_final_report")
    builder.add_edge("compile_final_report", END)
    return builder.compile()
