"""STORM: an outline and perspectives, an interview by each perspective, a better outline, sections and an article."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel, Field

SOURCE = "STORM tutorial of LangGraph (https://langchain-ai.github.io/langgraph/tutorials/storm/storm/)"
ASYNC = True
DOCUMENTS = [
    f"{what} of {where}. {text}"
    for where in ("the Faroe Islands", "Lake Titicaca", "the Camargue", "Kyoto", "Transylvania", "Zanzibar")
    for what, text in (
        ("Boats", "They are built without plans, by eye, and the builder signs the keel."),
        ("Houses", "Roofs of grass or reed are renewed by neighbours, who are fed for three days."),
        ("Songs", "Long ballads are danced in a ring, and a few hundred verses are known by heart."),
        ("Birds", "They were counted first by priests, later by schools, and today by telephones."),
        ("Salt", "It was taxed until the last century and made more people rich than gold."),
    )
]
INPUTS = [
    {"topic": topic}
    for topic in (
        "Boats built without plans", "Ring dances with ballads", "The tax on salt", "Roofs of grass",
        "How birds are counted", "Neighbours who build together", "Signs on keels", "Songs known by heart",
        "Priests who counted birds", "Salt and gold", "Roofs of reed by a lake", "Builders who work by eye",
    )
]  # fmt: skip
MAX_TURNS = 2
EXPERT = "Subject_Matter_Expert"


class Section(BaseModel):
    section_title: str = Field(description="Title of the section")
    description: str = Field(description="Content of the section")


class Outline(BaseModel):
    page_title: str = Field(description="Title of the page")
    sections: list[Section] = Field(min_length=2, max_length=4, description="Titles and descriptions of all sections")

    @property
    def as_str(self) -> str:
        sections = "\n\n".join(f"## {section.section_title}\n\n{section.description}" for section in self.sections)
        return f"# {self.page_title}\n\n{sections}".strip()


class RelatedSubjects(BaseModel):
    topics: list[str] = Field(max_length=3, description="Subjects whose pages are worth a look")


class Editor(BaseModel):
    affiliation: str = Field(description="Where the editor works")
    name: str = Field(description="Name of the editor", pattern=r"[A-Z][a-z]{2,8}_[A-Z][a-z]{3,8}")
    role: str = Field(description="Role of the editor in the context of the topic")
    description: str = Field(description="Focus, concerns and motives of the editor")

    @property
    def persona(self) -> str:
        return f"Name: {self.name}\nRole: {self.role}\nAffiliation: {self.affiliation}\nDescription: {self.description}"


class Perspectives(BaseModel):
    editors: list[Editor] = Field(min_length=2, max_length=3)


class Queries(BaseModel):
    queries: list[str] = Field(min_length=1, max_length=3, description="Searches that answer the user's question")


class InterviewState(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    references: Annotated[list[str], operator.add]
    editor: Editor


class ResearchState(TypedDict):
    topic: str
    outline: Outline
    editors: list[Editor]
    interview_results: list[InterviewState]
    sections: list[str]
    article: str


DIRECT_OUTLINE = ChatPromptTemplate.from_messages(
    [
        ("system", "You are a Wikipedia writer. Write an outline for a page about the user's topic."),
        ("user", "{topic}"),
    ]
)
RELATED = ChatPromptTemplate.from_template(
    "I write a Wikipedia page on the topic below. Name pages on closely related subjects.\n\nTopic of interest: {topic}"
)
PERSPECTIVES = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "Select a diverse group of Wikipedia editors who will write an article on the topic together. Each has "
            "another perspective, role or affiliation.\n\nPages on related topics for inspiration:\n{examples}",
        ),
        ("user", "Topic of interest: {topic}"),
    ]
)
ASK = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "You are a Wikipedia writer who talks with an expert, and you have a focus of your own:\n\n{persona}\n\n"
            "Ask one good question in about 30 words. Ask what you have not asked before.",
        ),
        MessagesPlaceholder(variable_name="messages", optional=True),
    ]
)
QUERIES = ChatPromptTemplate.from_messages(
    [
        ("system", "You are a research assistant. Query the search engine to answer the user's questions."),
        MessagesPlaceholder(variable_name="messages", optional=True),
    ]
)
ANSWER = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "You are an expert who chats with a Wikipedia writer. Answer in about 70 words, each sentence supported "
            "by what was found.\n\n{found}",
        ),
        MessagesPlaceholder(variable_name="messages", optional=True),
    ]
)
REFINE_OUTLINE = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "You are a Wikipedia writer. You have talked with experts and searched. Make the outline of the page "
            "comprehensive and specific.\n\nTopic: {topic}\n\nOld outline:\n\n{old_outline}",
        ),
        ("user", "Refine the outline from what the experts said:\n\n{conversations}\n\nWrite the refined outline."),
    ]
)
WRITE_SECTION = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "You are a Wikipedia writer. Write the section that you are given in about 90 words.\n\n{outline}\n\n"
            "Cite the following references:\n\n<Documents>\n{docs}\n</Documents>",
        ),
        ("user", "Write the full text of the section {section}."),
    ]
)
WRITE_ARTICLE = ChatPromptTemplate.from_template(
    "You are a Wikipedia author. Write the lead of the article on {topic} in about 120 words, from the drafts of its "
    "sections.\n\n{draft}\n\nWrite the lead in the manner of Wikipedia."
)


def swap_roles(messages: list[AnyMessage], name: str) -> list[AnyMessage]:
    return [
        AIMessage(content=m.content, name=m.name) if m.name == name else HumanMessage(content=m.content, name=m.name)
        for m in messages
    ]


def build(parts: Any) -> Any:
    fast_llm = parts.llm
    long_llm = parts.llm.model_copy(update={"max_tokens": 1000})
    references = InMemoryVectorStore(embedding=parts.embeddings)
    outline_direct = DIRECT_OUTLINE | long_llm.with_structured_output(Outline)
    expand_chain = RELATED | fast_llm.with_structured_output(RelatedSubjects)
    perspectives_chain = PERSPECTIVES | long_llm.with_structured_output(Perspectives)
    question_chain = ASK | fast_llm
    queries_chain = QUERIES | fast_llm.with_structured_output(Queries)
    answer_chain = ANSWER | fast_llm
    refine_chain = REFINE_OUTLINE | long_llm.with_structured_output(Outline)
    section_chain = WRITE_SECTION | long_llm | StrOutputParser()
    article_chain = WRITE_ARTICLE | long_llm | StrOutputParser()

    async def survey_subjects(topic: str) -> Perspectives:
        related = await expand_chain.ainvoke({"topic": topic})
        pages = await asyncio.gather(*[parts.store.asimilarity_search(subject, k=1) for subject in related.topics])
        examples = "\n\n".join(f"### {page[0].page_content.split('.')[0]}\n{page[0].page_content}" for page in pages)
        return await perspectives_chain.ainvoke({"examples": examples, "topic": topic})

    async def generate_question(state: InterviewState) -> dict[str, Any]:
        editor = state["editor"]
        messages = swap_roles(state["messages"], editor.name)
        question = await question_chain.ainvoke({"messages": messages, "persona": editor.persona})
        return {"messages": [AIMessage(content=question.content, name=editor.name)]}

    async def gen_answer(state: InterviewState) -> dict[str, Any]:
        messages = swap_roles(state["messages"], EXPERT)
        searches = await queries_chain.ainvoke({"messages": messages})
        results = await asyncio.gather(*[parts.store.asimilarity_search(query, k=2) for query in searches.queries])
        found = list(dict.fromkeys(document.page_content for documents in results for document in documents))
        answer = await answer_chain.ainvoke({"messages": messages, "found": "\n".join(found)})
        return {"messages": [AIMessage(content=answer.content, name=EXPERT)], "references": found}

    def route_messages(state: InterviewState) -> str:
        answers = [m for m in state["messages"] if isinstance(m, AIMessage) and m.name == EXPERT]
        return END if len(answers) > MAX_TURNS else "ask_question"

    interviews = StateGraph(InterviewState)
    interviews.add_node("ask_question", generate_question)
    interviews.add_node("answer_question", gen_answer)
    interviews.add_edge(START, "ask_question")
    interviews.add_edge("ask_question", "answer_question")
    interviews.add_conditional_edges("answer_question", route_messages, ["ask_question", END])
    interview_graph = interviews.compile()

    async def initialize_research(state: ResearchState) -> dict[str, Any]:
        topic = state["topic"]
        outline, perspectives = await asyncio.gather(outline_direct.ainvoke({"topic": topic}), survey_subjects(topic))
        return {"outline": outline, "editors": perspectives.editors}

    async def conduct_interviews(state: ResearchState) -> dict[str, Any]:
        opening = f"So you said you were writing an article on {state['topic']}?"
        initial_states = [
            {"editor": editor, "messages": [AIMessage(content=opening, name=EXPERT)]} for editor in state["editors"]
        ]
        return {"interview_results": await interview_graph.abatch(initial_states)}

    async def refine_outline(state: ResearchState) -> dict[str, Any]:
        conversations = "\n\n".join(
            f"Conversation with {interview['editor'].name}\n\n"
            + "\n".join(f"{m.name}: {m.content}" for m in interview["messages"])
            for interview in state["interview_results"]
        )
        outline = await refine_chain.ainvoke(
            {"topic": state["topic"], "old_outline": state["outline"].as_str, "conversations": conversations}
        )
        return {"outline": outline}

    async def index_references(state: ResearchState) -> dict[str, Any]:
        cited = dict.fromkeys(text for interview in state["interview_results"] for text in interview["references"])
        await references.aadd_documents([Document(id=text, page_content=text) for text in cited])
        return {}

    async def write_sections(state: ResearchState) -> dict[str, Any]:
        outline = state["outline"]

        async def write(section: Section) -> str:
            docs = await references.asimilarity_search(f"{state['topic']}: {section.section_title}", k=3)
            formatted = "\n".join(f"<Document>\n{doc.page_content}\n</Document>" for doc in docs)
            inputs = {"outline": outline.as_str, "section": section.section_title, "docs": formatted}
            return await section_chain.ainvoke(inputs)

        return {"sections": await asyncio.gather(*[write(section) for section in outline.sections])}

    async def write_article(state: ResearchState) -> dict[str, Any]:
        draft = "\n\n".join(state["sections"])
        return {"article": await article_chain.ainvoke({"topic": state["topic"], "draft": draft})}

    builder = StateGraph(ResearchState)
    nodes = [initialize_research, conduct_interviews, refine_outline, index_references, write_sections, write_article]
    builder.add_sequence([(node.__name__, node) for node in nodes])
    builder.add_edge(START, "initialize_research")
    builder.add_edge("write_article", END)
    return builder.compile()
