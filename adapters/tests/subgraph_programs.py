"""Programs with graphs inside graphs, as one finds them: an inner node formats what was found, calls after it quote
that."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

LIBRARY = {
    "tides": ["The moon pulls the sea.", "Spring tides follow a full moon.", "Harbours print tables of high water."],
    "bees": ["A hive holds forty thousand bees.", "Smoke calms them.", "Honey keeps for centuries."],
    "glass": ["Sand melts at 1700 degrees.", "Soda lowers the melting point.", "Lime makes it last."],
    "rope": ["Hemp was retted in ponds.", "Three strands make a hawser.", "A ropewalk is very long."],
    "salt": ["Brine was boiled in lead pans.", "Salt roads cross the Alps.", "Tax on salt was hated."],
    "ink": ["Oak galls and iron make it black.", "Gum keeps it even.", "It eats into parchment."],
}


def found(topic: str) -> list[str]:
    """What a search in the author's own files brings; as yet nothing that Accel knows."""
    known = next((texts for name, texts in LIBRARY.items() if name in topic), [])
    return known or [f"Nothing is known of {topic}."]


# --- a compiled subgraph as a node, with the same state -------------------------------------------------------------


class Report(TypedDict, total=False):
    question: str
    context: str
    summary: str
    keywords: str
    doubts: str
    answer: str


def shared(llm: Any) -> Any:
    """Research is a graph of its own, on the same state."""

    def retrieve(state: Report) -> Report:
        docs = found(state["question"])
        return {"context": "\n\n".join(f"<Document source={i}>\n{doc}\n</Document>" for i, doc in enumerate(docs, 1))}

    def summarize(state: Report) -> Report:
        return {"summary": llm.invoke(f"Summarize for a busy reader.\n\n{state['context']}").content}

    def keywords(state: Report) -> Report:
        return {"keywords": llm.invoke(f"Give five keywords.\n\n{state['context']}").content}

    def doubt(state: Report) -> Report:
        prompt = f"What is missing here to answer '{state['question']}'?\n\n{state['context']}"
        return {"doubts": llm.invoke(prompt).content}

    research = StateGraph(Report)
    research.add_sequence([retrieve, summarize, keywords, doubt])
    research.add_edge(START, "retrieve")

    def answer(state: Report) -> Report:
        prompt = f"Answer {state['question']} from {state['summary']}, mind {state['doubts']}. {state['keywords']}"
        return {"answer": llm.invoke(prompt).content}

    graph = StateGraph(Report)
    graph.add_node("research", research.compile())
    graph.add_node("answer", answer)
    graph.add_edge(START, "research")
    graph.add_edge("research", "answer")
    return graph.compile()


# --- a subgraph that a node calls, with a state of its own ----------------------------------------------------------


class Article(TypedDict, total=False):
    topic: str
    sections: list[str]


class Section(TypedDict, total=False):
    heading: str
    sources: list[str]
    notes: str
    draft: str
    check: str
    title: str


def called(llm: Any) -> Any:
    """For each section a node runs another graph, on its own state."""

    def collect(state: Section) -> Section:
        return {"sources": found(state["heading"])}

    def number(state: Section) -> Section:
        return {"notes": "\n".join(f"[{i}] {source}" for i, source in enumerate(state["sources"], 1))}

    def draft(state: Section) -> Section:
        return {"draft": llm.invoke(f"Draft '{state['heading']}' from these notes:\n{state['notes']}").content}

    def check(state: Section) -> Section:
        return {"check": llm.invoke(f"Which of these notes need a second source?\n{state['notes']}").content}

    def name(state: Section) -> Section:
        messages = [SystemMessage("You write headlines."), HumanMessage(f"Headline for:\n{state['notes']}")]
        return {"title": llm.invoke(messages).content}

    inner = StateGraph(Section)
    inner.add_sequence([collect, number, draft, check, name])
    inner.add_edge(START, "collect")
    writer = inner.compile()

    def write(state: Article) -> Article:
        sections = []
        for part in ("history", "practice"):
            result = writer.invoke({"heading": f"{part} of {state['topic']}"})
            sections.append(f"{result['title']}\n{result['draft']}\n({result['check']})")
        return {"sections": sections}

    graph = StateGraph(Article)
    graph.add_node("write", write)
    graph.add_edge(START, "write")
    return graph.compile()


# --- a subgraph per Send --------------------------------------------------------------------------------------------


class Interview(MessagesState):
    topic: str
    expert: str
    context: str
    sections: list[str]


class Memos(TypedDict):
    sections: list[str]


class Panel(TypedDict, total=False):
    topic: str
    experts: list[str]
    sections: Annotated[list[str], operator.add]
    report: str


def interview_graph(llm: Any, awaited: bool = False) -> Any:
    def ask_prompt(state: Interview) -> list[Any]:
        return [SystemMessage(f"You interview {state['expert']} about {state['topic']}."), *state["messages"]]

    def look_up(state: Interview) -> dict[str, Any]:
        docs = found(state["expert"]) + [f"{state['expert']} asks about {state['topic']}."]
        return {"context": "\n\n---\n\n".join(f'<Document href="{i}"/>\n{doc}' for i, doc in enumerate(docs))}

    def answer_prompt(state: Interview) -> list[Any]:
        return [SystemMessage(f"Answer as {state['expert']} from:\n{state['context']}"), *state["messages"]]

    def section_prompt(state: Interview) -> list[Any]:
        return [SystemMessage(f"Write a memo for {state['expert']}."), HumanMessage(f"Sources: {state['context']}")]

    def caller(prompt: Callable[[Interview], list[Any]], put: Callable[[Any], dict[str, Any]]) -> Any:
        def call(state: Interview) -> dict[str, Any]:
            return put(llm.invoke(prompt(state)))

        async def acall(state: Interview) -> dict[str, Any]:
            return put(await llm.ainvoke(prompt(state)))

        return acall if awaited else call

    graph = StateGraph(Interview, output_schema=Memos)
    graph.add_node("ask_question", caller(ask_prompt, lambda said: {"messages": [said]}))
    graph.add_node("look_up", look_up)
    graph.add_node("answer_question", caller(answer_prompt, lambda said: {"messages": [said]}))
    graph.add_node("write_section", caller(section_prompt, lambda said: {"sections": [said.content]}))
    graph.add_edge(START, "ask_question")
    graph.add_edge("ask_question", "look_up")
    graph.add_edge("look_up", "answer_question")
    graph.add_edge("answer_question", "write_section")
    graph.add_edge("write_section", END)
    return graph.compile()


def sent(llm: Any, awaited: bool = False) -> Any:
    """Each expert is interviewed by a graph of its own, side by side."""

    def start(state: Panel) -> list[Send]:
        return [
            Send(
                "conduct_interview",
                {"topic": state["topic"], "expert": expert, "messages": [HumanMessage(f"So you write on {expert}?")]},
            )
            for expert in state["experts"]
        ]

    def report(state: Panel) -> Panel:
        joined = "\n\n".join(state["sections"])
        return {"report": llm.invoke(f"Write a report on {state['topic']}:\n\n{joined}").content}

    async def areport(state: Panel) -> Panel:
        joined = "\n\n".join(state["sections"])
        return {"report": (await llm.ainvoke(f"Write a report on {state['topic']}:\n\n{joined}")).content}

    graph = StateGraph(Panel)
    graph.add_node("conduct_interview", interview_graph(llm, awaited))
    graph.add_node("write_report", areport if awaited else report)
    graph.add_conditional_edges(START, start, ["conduct_interview"])
    graph.add_edge("conduct_interview", "write_report")
    return graph.compile()


# --- two levels deep ------------------------------------------------------------------------------------------------


class Desk(TypedDict, total=False):
    question: str
    facts: str
    short: str
    long: str
    review: str
    letter: str


def deep(llm: Any) -> Any:
    """A desk with a team in it: the team's first node prepares what the team and the desk ask about."""

    def gather(state: Desk) -> Desk:
        return {"facts": "; ".join(f"({chr(97 + i)}) {text}" for i, text in enumerate(found(state["question"])))}

    def short(state: Desk) -> Desk:
        return {"short": llm.invoke(f"In one line: {state['facts']}").content}

    def long(state: Desk) -> Desk:
        return {"long": llm.invoke(f"In ten lines: {state['facts']}").content}

    team = StateGraph(Desk)
    team.add_sequence([gather, short, long])
    team.add_edge(START, "gather")

    def review(state: Desk) -> Desk:
        return {"review": llm.invoke(f"Are these facts fit for print? {state['facts']}").content}

    desk = StateGraph(Desk)
    desk.add_node("team", team.compile())
    desk.add_node("review", review)
    desk.add_edge(START, "team")
    desk.add_edge("team", "review")

    def letter(state: Desk) -> Desk:
        prompt = (
            f"Write to the reader who asked {state['question']}: {state['short']} {state['long']} {state['review']}"
        )
        return {"letter": llm.invoke(prompt).content}

    graph = StateGraph(Desk)
    graph.add_node("desk", desk.compile())
    graph.add_node("letter", letter)
    graph.add_edge(START, "desk")
    graph.add_edge("desk", "letter")
    return graph.compile()


# --- rounds of a supervisor, each with graphs side by side ----------------------------------------------------------


class Research(TypedDict, total=False):
    topic: str
    raw: str
    notes: str
    quotes: str


class Supervision(TypedDict, total=False):
    brief: str
    subjects: list[str]
    round: int
    findings: Annotated[list[str], operator.add]
    report: str


def researcher(llm: Any) -> Any:
    def search(state: Research) -> Research:
        sources = [f"--- SOURCE {i} ---\n{text}\n" for i, text in enumerate(found(state["topic"]), 1)]
        return {"raw": "Search results:\n\n" + "\n".join(sources)}

    async def compress(state: Research) -> Research:
        messages = [SystemMessage("Clean up these findings."), HumanMessage(f"{state['topic']}\n{state['raw']}")]
        return {"notes": (await llm.ainvoke(messages)).content}

    async def quote(state: Research) -> Research:
        messages = [SystemMessage("Pick quotations."), HumanMessage(f"{state['topic']}\n{state['raw']}")]
        return {"quotes": (await llm.ainvoke(messages)).content}

    graph = StateGraph(Research)
    graph.add_sequence([search, compress, quote])
    graph.add_edge(START, "search")
    return graph.compile()


def supervised(llm: Any) -> Any:
    """A supervisor has subjects researched in two rounds; the researchers of a round work side by side."""
    researching = researcher(llm)

    async def supervise(state: Supervision) -> Supervision:
        so_far = "\n".join(state.get("findings", []))
        await llm.ainvoke(
            [SystemMessage(f"You lead research on: {state['brief']}"), HumanMessage(f"So far:\n{so_far}")]
        )
        return {"round": state.get("round", 0) + 1}

    async def delegate(state: Supervision) -> Supervision:
        subjects = state["subjects"][:2] if state["round"] == 1 else state["subjects"][2:]
        done = await asyncio.gather(*(researching.ainvoke({"topic": subject}) for subject in subjects))
        return {"findings": [f"{one['topic']}: {one['notes']} ({one['quotes']})" for one in done]}

    team = StateGraph(Supervision)
    team.add_node("supervise", supervise)
    team.add_node("delegate", delegate)
    team.add_edge(START, "supervise")
    team.add_edge("supervise", "delegate")
    team.add_conditional_edges("delegate", lambda state: "supervise" if state["round"] < 2 else END, ["supervise", END])

    async def write(state: Supervision) -> Supervision:
        joined = "\n".join(state["findings"])
        return {"report": (await llm.ainvoke(f"Report on {state['brief']} from:\n{joined}")).content}

    graph = StateGraph(Supervision)
    graph.add_node("team", team.compile())
    graph.add_node("write", write)
    graph.add_edge(START, "team")
    graph.add_edge("team", "write")
    return graph.compile()


BRIEFS = [
    {"brief": f"{first} and its trade", "subjects": [first, *rest]}
    for first, *rest in (
        ("rope", "tides", "salt", "ink"),
        ("bees", "ink", "glass"),
        ("glass", "salt", "bees", "rope"),
        ("ink", "rope", "tides"),
        ("tides", "bees", "rope", "salt"),
        ("salt", "glass", "ink", "bees"),
    )
]
QUESTIONS = [{"question": f"What should I know about {name}?"} for name in LIBRARY]
TOPICS = [{"topic": name} for name in LIBRARY]
PANELS = [
    {"topic": f"{first} and {last}", "experts": experts}
    for first, last, *experts in (
        ("ships", "trade", "rope", "tides", "salt"),
        ("kitchens", "letters", "bees", "ink", "salt"),
        ("windows", "lamps", "glass", "bees"),
        ("monks", "fishing", "ink", "rope", "tides", "glass"),
        ("markets", "tolls", "salt", "glass", "bees"),
        ("ferries", "maps", "tides", "ink", "rope"),
    )
]
