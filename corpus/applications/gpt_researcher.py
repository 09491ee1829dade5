"""GPT Researcher's team: first research, a plan in JSON, a draft per section with reviews, a layout, and the report."""

from __future__ import annotations

import asyncio
import json
from typing import Any, TypedDict

from langgraph.graph import END, StateGraph

SOURCE = "Multi-agent workflow of GPT Researcher (https://github.com/assafelovic/gpt-researcher, multi_agents)"
ASYNC = True
DOCUMENTS = [
    f"{metal} {fact}"
    for metal in ("Copper", "Lithium", "Cobalt", "Nickel", "Tin", "Silver", "Zinc")
    for fact in (
        "is mined at depths where the rock is warmer than a summer's day.",
        "is recovered from old telephones at a cost close to that of mining.",
        "was traded by weight for two thousand years before coins had numbers.",
        "prices rose when two harbours closed in the same month.",
        "is replaced in batteries by iron and salt where weight does not matter.",
    )
]
GUIDELINES = ["Every claim has a source", "The tone is sober", "Numbers come with a year"]
INPUTS = [
    {"task": {"query": query, "max_sections": 3, "follow_guidelines": True, "guidelines": GUIDELINES}}
    for query in (
        "Will batteries do without cobalt?", "Is it worth while to mine old telephones?",
        "How deep can a copper mine go?", "Why did the price of tin rise?",
        "What did silver do before coins?", "Where does lithium come from in ten years?",
        "How do closed harbours change the price of nickel?", "Can salt replace lithium in batteries?",
        "How warm is the rock in a zinc mine?", "What does it cost to recover tin from old telephones?",
        "Which metals were traded before there were coins?", "Where does weight not matter in a battery?",
    )
]  # fmt: skip
MAX_REVISIONS = 2


class ResearchState(TypedDict):
    task: dict[str, Any]
    initial_research: str
    title: str
    sections: list[str]
    research_data: list[dict[str, str]]
    table_of_contents: str
    introduction: str
    conclusion: str
    sources: list[str]
    headers: dict[str, str]
    report: str


class DraftState(TypedDict):
    task: dict[str, Any]
    topic: str
    draft: dict[str, str]
    review: str | None
    revision_notes: str
    revisions: int


class Agent:
    def __init__(self, parts: Any) -> None:
        self.llm = parts.llm
        self.store = parts.store

    async def call_model(self, prompt: list[dict[str, str]], response_format: str | None = None) -> Any:
        response = await self.llm.ainvoke(prompt)
        if response_format == "json":
            return json.loads(response.content.strip("`\n").removeprefix("json"))
        return response.content


class ResearchAgent(Agent):
    async def research(self, query: str, parent_query: str = "") -> str:
        asked = f"{parent_query} - {query}" if parent_query else query
        prompt = f"Write 3 search queries to form an objective opinion on the task, as a JSON list.\n\nTask: {asked}"
        queries = await self.call_model([{"role": "user", "content": prompt}], response_format="json")
        found = await asyncio.gather(*[self.store.asimilarity_search(q, k=2) for q in [*queries, asked]])
        context = "\n".join(dict.fromkeys(f"Content: {d.page_content}" for documents in found for d in documents))
        return await self.call_model(
            [
                {"role": "system", "content": "You are a critical researcher who writes well and stays objective."},
                {
                    "role": "user",
                    "content": f'Information: "{context}"\n---\nUsing the above information, answer the following '
                    f'query in a report of about 110 words: "{asked}".',
                },
            ]
        )

    async def run_initial_research(self, research_state: ResearchState) -> dict[str, Any]:
        return {"initial_research": await self.research(research_state["task"]["query"])}

    async def run_depth_research(self, draft_state: DraftState) -> dict[str, Any]:
        topic = draft_state["topic"]
        return {"draft": {topic: await self.research(topic, draft_state["task"]["query"])}}


class ReviewerAgent(Agent):
    async def run(self, draft_state: DraftState) -> dict[str, Any]:
        guidelines = "- ".join(draft_state["task"]["guidelines"])
        notes = draft_state.get("revision_notes")
        revised = f"The reviser has changed the draft already, with these notes:\n{notes}\n" if notes else ""
        prompt = [
            {"role": "system", "content": "You are an expert reviewer of research articles."},
            {
                "role": "user",
                "content": "Review the draft of an author who is no expert. Does it meet all of the guidelines? Answer "
                f"yes or no, followed by your notes.\n{revised}\n"
                f"Guidelines: {guidelines}\n\nDraft: {draft_state['draft']}",
            },
        ]
        review = await self.call_model(prompt)
        return {"review": None if review.lower().startswith("yes") else review}


class ReviserAgent(Agent):
    async def run(self, draft_state: DraftState) -> dict[str, Any]:
        prompt = [
            {"role": "system", "content": "You are an expert writer who revises drafts by the notes of a reviewer."},
            {
                "role": "user",
                "content": f"Draft:\n{draft_state['draft']}\n\nReviewer's notes:\n{draft_state['review']}\n\n"
                "Revise the draft by the notes. Return nothing but JSON with the fields 'draft' (string) and "
                "'revision_notes' (string).",
            },
        ]
        revision = await self.call_model(prompt, response_format="json")
        return {
            "draft": {draft_state["topic"]: revision["draft"]},
            "revision_notes": revision["revision_notes"],
            "revisions": draft_state.get("revisions", 0) + 1,
        }


class EditorAgent(Agent):
    def __init__(self, parts: Any) -> None:
        super().__init__(parts)
        workflow = StateGraph(DraftState)
        workflow.add_node("researcher", ResearchAgent(parts).run_depth_research)
        workflow.add_node("reviewer", ReviewerAgent(parts).run)
        workflow.add_node("reviser", ReviserAgent(parts).run)
        workflow.set_entry_point("researcher")
        workflow.add_edge("researcher", "reviewer")
        workflow.add_edge("reviser", "reviewer")
        workflow.add_conditional_edges("reviewer", self.route, {"accept": END, "revise": "reviser"})
        self.chain = workflow.compile()

    @staticmethod
    def route(draft_state: DraftState) -> str:
        if draft_state["review"] is None or draft_state.get("revisions", 0) >= MAX_REVISIONS:
            return "accept"
        return "revise"

    async def plan_research(self, research_state: ResearchState) -> dict[str, Any]:
        most = research_state["task"]["max_sections"]
        prompt = [
            {"role": "system", "content": "You are a research editor who oversees a project from start to end."},
            {
                "role": "user",
                "content": f"Research summary: '{research_state['initial_research']}'\n\n"
                f"Outline the headers of the sections of the project, {most} at most, without an introduction, a "
                "conclusion and references. Return nothing but JSON with the fields 'title' (string) and 'sections' "
                "(list of headers).",
            },
        ]
        plan = await self.call_model(prompt, response_format="json")
        return {"title": plan["title"], "sections": plan["sections"][:most]}

    async def run_parallel_research(self, research_state: ResearchState) -> dict[str, Any]:
        task = research_state["task"]
        final_drafts = [self.chain.ainvoke({"task": task, "topic": topic}) for topic in research_state["sections"]]
        return {"research_data": [result["draft"] for result in await asyncio.gather(*final_drafts)]}


class WriterAgent(Agent):
    async def run(self, research_state: ResearchState) -> dict[str, Any]:
        data = research_state["research_data"]
        layout = await self.call_model(
            [
                {"role": "system", "content": "You are a research writer who writes reports from findings."},
                {
                    "role": "user",
                    "content": f"Query: {research_state['title']}\n\nResearch data: {data!s}\n\n"
                    "Write an introduction and a conclusion to the report. Return nothing but JSON with the fields "
                    "'table_of_contents' (string), 'introduction' (string), 'conclusion' (string) and 'sources' (list "
                    "of strings).",
                },
            ],
            response_format="json",
        )
        headers = {"title": research_state["title"], "introduction": "Introduction", "conclusion": "Conclusion"}
        if research_state["task"]["follow_guidelines"]:
            headers = await self.call_model(
                [
                    {"role": "system", "content": "You are a research writer who revises headers by guidelines."},
                    {
                        "role": "user",
                        "content": "Revise the headers by the guidelines. Return nothing but JSON with the fields "
                        "'title' (string), 'introduction' (string) and 'conclusion' (string).\n\n"
                        f"Guidelines: {research_state['task']['guidelines']}\n\nHeaders: {headers}",
                    },
                ],
                response_format="json",
            )
        return {**layout, "headers": headers}


class PublisherAgent(Agent):
    async def run(self, research_state: ResearchState) -> dict[str, Any]:
        headers = research_state["headers"]
        sections = "\n\n".join(f"{text}" for draft in research_state["research_data"] for text in draft.values())
        references = "\n".join(research_state["sources"])
        report = f"""# {headers["title"]}
## {headers["introduction"]}
{research_state["introduction"]}

{research_state["table_of_contents"]}

{sections}

## {headers["conclusion"]}
{research_state["conclusion"]}

## References
{references}"""
        return {"report": report}


def build(parts: Any) -> Any:
    research, editor = ResearchAgent(parts), EditorAgent(parts)
    workflow = StateGraph(ResearchState)
    workflow.add_node("browser", research.run_initial_research)
    workflow.add_node("planner", editor.plan_research)
    workflow.add_node("researcher", editor.run_parallel_research)
    workflow.add_node("writer", WriterAgent(parts).run)
    workflow.add_node("publisher", PublisherAgent(parts).run)
    workflow.add_edge("browser", "planner")
    workflow.add_edge("planner", "researcher")
    workflow.add_edge("researcher", "writer")
    workflow.add_edge("writer", "publisher")
    workflow.set_entry_point("browser")
    workflow.add_edge("publisher", END)
    return workflow.compile()
