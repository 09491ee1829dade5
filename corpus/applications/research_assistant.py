"""Research assistant of the academy: analysts interview experts in parallel, and their memos become a report."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, get_buffer_string
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field

SOURCE = "Research assistant of LangChain Academy, module 4 (https://github.com/langchain-ai/langchain-academy)"
DOCUMENTS = [
    f"{kind} {fact}"
    for kind in ("Lighthouses", "Water towers", "Grain silos", "Windmills", "Gasometers", "Railway stations")
    for fact in (
        "are sold for one euro to those who promise to restore them.",
        "became flats for people who like round rooms.",
        "are surveyed from the air with cameras every five years.",
        "lost their keepers when sensors took over in the nineties.",
        "draw more visitors in a year than the museum of the same town.",
    )
]
INPUTS = [
    {"topic": topic, "max_analysts": 3}
    for topic in (
        "Living in a lighthouse", "What to do with empty gasometers", "Flats in grain silos",
        "Windmills and their visitors", "Stations without trains", "Who restores water towers",
        "Keepers and the sensors that replaced them", "Surveys of old buildings from the air",
        "Buildings for one euro", "Water towers as museums", "Round rooms and those who like them",
        "Cameras above grain silos",
    )
]  # fmt: skip


class Analyst(BaseModel):
    affiliation: str = Field(description="Primary affiliation of the analyst")
    name: str = Field(description="Name of the analyst", max_length=24)
    role: str = Field(description="Role of the analyst in the context of the topic")
    description: str = Field(description="Focus, concerns and motives of the analyst")

    @property
    def persona(self) -> str:
        return (
            f"Name: {self.name}\nRole: {self.role}\nAffiliation: {self.affiliation}\nDescription: {self.description}\n"
        )


class Perspectives(BaseModel):
    analysts: list[Analyst] = Field(min_length=2, max_length=3)


class SearchQuery(BaseModel):
    search_query: str = Field(description="Search query for retrieval")


class ResearchGraphState(TypedDict):
    topic: str
    max_analysts: int
    analysts: list[Analyst]
    sections: Annotated[list[str], operator.add]
    introduction: str
    content: str
    conclusion: str
    final_report: str


class InterviewState(MessagesState):
    topic: str
    max_num_turns: int
    context: Annotated[list[str], operator.add]
    analyst: Analyst
    interview: str
    sections: list[str]


class SectionOutput(TypedDict):
    sections: list[str]


ANALYSTS = """You create a set of analysts, as personas.

1. Review the topic of the research:
{topic}

2. Find the most interesting themes in it.

3. Pick the best {max_analysts} themes and assign an analyst to each of them."""
QUESTION = """You are an analyst who interviews an expert to learn about a specific topic. Boil it down to insights that
are surprising and specific.

Your focus and your goals: {goals}

Introduce yourself with a name that fits, then ask your question. Use about 40 words. Stay in character."""
SEARCH = SystemMessage(
    content="You will be given a conversation of an analyst and an expert. Look at the whole of it, in particular at "
    "the analyst's final question, and convert that into a well-structured query for a search."
)
EXPERT = """You are an expert who is interviewed by an analyst.

The analyst's focus: {goals}

Use this context and nothing else:

{context}

Answer the interviewer's question in about 80 words and put the number of a source, like [1], next to what it says."""
SECTION = """You are an expert technical writer. Write a short section of a report from a set of source documents, in
about 120 words: a title, a summary, and the sources. Make the title fit the focus of the analyst:

{focus}"""
REPORT = """You are a technical writer who finishes a report on this overall topic:

{topic}

Each of your analysts has interviewed an expert and written a memo. Consolidate them into one narrative of about 150
words. Do not name the analysts, and keep the numbers of sources.

Here are the memos:

{context}"""
FRAME = """You are a technical writer who finishes a report on {topic}. You will be given its sections. Write a crisp
introduction or conclusion, as the user says, of about 60 words.

Here are the sections: {formatted_str_sections}"""


def build(parts: Any) -> Any:
    llm = parts.llm.model_copy(update={"max_tokens": 500})

    def create_analysts(state: ResearchGraphState) -> dict[str, Any]:
        system_message = ANALYSTS.format(topic=state["topic"], max_analysts=state["max_analysts"])
        analysts = llm.with_structured_output(Perspectives).invoke(
            [SystemMessage(content=system_message), HumanMessage(content="Generate the set of analysts.")]
        )
        return {"analysts": analysts.analysts}

    def generate_question(state: InterviewState) -> dict[str, Any]:
        system_message = QUESTION.format(goals=state["analyst"].persona)
        return {"messages": [llm.invoke([SystemMessage(content=system_message)] + state["messages"])]}

    def search_web(state: InterviewState) -> dict[str, Any]:
        search_query = llm.with_structured_output(SearchQuery).invoke([SEARCH] + state["messages"])
        search_docs = parts.store.similarity_search(search_query.search_query, k=3)
        formatted = "\n\n---\n\n".join(
            f'<Document href="https://example.org/{number}"/>\n{doc.page_content}\n</Document>'
            for number, doc in enumerate(search_docs)
        )
        return {"context": [formatted]}

    def search_wikipedia(state: InterviewState) -> dict[str, Any]:
        search_query = llm.with_structured_output(SearchQuery).invoke([SEARCH] + state["messages"])
        search_docs = parts.store.similarity_search(f"{search_query.search_query} (encyclopedia)", k=2)
        formatted = "\n\n---\n\n".join(
            f'<Document source="encyclopedia" page=""/>\n{doc.page_content}\n</Document>' for doc in search_docs
        )
        return {"context": [formatted]}

    def generate_answer(state: InterviewState) -> dict[str, Any]:
        system_message = EXPERT.format(goals=state["analyst"].persona, context=state["context"])
        answer = llm.invoke([SystemMessage(content=system_message)] + state["messages"])
        answer.name = "expert"
        return {"messages": [answer]}

    def save_interview(state: InterviewState) -> dict[str, Any]:
        return {"interview": get_buffer_string(state["messages"])}

    def route_messages(state: InterviewState, name: str = "expert") -> str:
        messages = state["messages"]
        responses = [m for m in messages if isinstance(m, AIMessage) and m.name == name]
        if len(responses) >= state.get("max_num_turns", 2):
            return "save_interview"
        if "Thank you so much for your help" in messages[-2].content:
            return "save_interview"
        return "ask_question"

    def write_section(state: InterviewState) -> dict[str, Any]:
        system_message = SECTION.format(focus=state["analyst"].description)
        source = HumanMessage(content=f"Use this source to write your section: {state['context']}")
        section = llm.invoke([SystemMessage(content=system_message), source])
        return {"sections": [section.content]}

    def initiate_all_interviews(state: ResearchGraphState) -> list[Send]:
        opening = f"So you said you were writing an article on {state['topic']}?"
        return [
            Send("conduct_interview", {"analyst": analyst, "messages": [HumanMessage(content=opening)]})
            for analyst in state["analysts"]
        ]

    def write_report(state: ResearchGraphState) -> dict[str, Any]:
        formatted_str_sections = "\n\n".join(f"{section}" for section in state["sections"])
        system_message = REPORT.format(topic=state["topic"], context=formatted_str_sections)
        report = llm.invoke(
            [SystemMessage(content=system_message), HumanMessage(content="Write a report based on these memos.")]
        )
        return {"content": report.content}

    def write_introduction(state: ResearchGraphState) -> dict[str, Any]:
        formatted_str_sections = "\n\n".join(f"{section}" for section in state["sections"])
        instructions = FRAME.format(topic=state["topic"], formatted_str_sections=formatted_str_sections)
        intro = llm.invoke([SystemMessage(content=instructions), HumanMessage(content="Write the introduction.")])
        return {"introduction": intro.content}

    def write_conclusion(state: ResearchGraphState) -> dict[str, Any]:
        formatted_str_sections = "\n\n".join(f"{section}" for section in state["sections"])
        instructions = FRAME.format(topic=state["topic"], formatted_str_sections=formatted_str_sections)
        conclusion = llm.invoke([SystemMessage(content=instructions), HumanMessage(content="Write the conclusion.")])
        return {"conclusion": conclusion.content}

    def finalize_report(state: ResearchGraphState) -> dict[str, Any]:
        report = "\n\n---\n\n".join([state["introduction"], state["content"].strip(), state["conclusion"]])
        return {"final_report": report}

    interview = StateGraph(InterviewState, output_schema=SectionOutput)
    interview.add_node("ask_question", generate_question)
    interview.add_node("search_web", search_web)
    interview.add_node("search_wikipedia", search_wikipedia)
    interview.add_node("answer_question", generate_answer)
    interview.add_node("save_interview", save_interview)
    interview.add_node("write_section", write_section)
    interview.add_edge(START, "ask_question")
    interview.add_edge("ask_question", "search_web")
    interview.add_edge("ask_question", "search_wikipedia")
    interview.add_edge("search_web", "answer_question")
    interview.add_edge("search_wikipedia", "answer_question")
    interview.add_conditional_edges("answer_question", route_messages, ["ask_question", "save_interview"])
    interview.add_edge("save_interview", "write_section")
    interview.add_edge("write_section", END)

    builder = StateGraph(ResearchGraphState)
    builder.add_node("create_analysts", create_analysts)
    builder.add_node("conduct_interview", interview.compile())
    builder.add_node("write_report", write_report)
    builder.add_node("write_introduction", write_introduction)
    builder.add_node("write_conclusion", write_conclusion)
    builder.add_node("finalize_report", finalize_report)
    builder.add_edge(START, "create_analysts")
    builder.add_conditional_edges("create_analysts", initiate_all_interviews, ["conduct_interview"])
    builder.add_edge("conduct_interview", "write_report")
    builder.add_edge("conduct_interview", "write_introduction")
    builder.add_edge("conduct_interview", "write_conclusion")
    builder.add_edge(["write_conclusion", "write_report", "write_introduction"], "finalize_report")
    builder.add_edge("finalize_report", END)
    return builder.compile()
