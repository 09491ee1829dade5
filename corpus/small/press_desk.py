"""Press desk: a team inside a desk inside the graph prepares numbered facts, which calls at every depth quote."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph

ASYNC = True
FIGURES = {
    "the tram": (["42 cars", "9 lines", "a depot from 1911"], "line 4 stands still"),
    "the swimming pool": (["2 basins", "a roof of glass", "600 visitors a day"], "the heating failed"),
    "the library": (["80,000 books", "a reading room", "3 branches"], "the roof leaks"),
    "the harbour": (["12 cranes", "a silo", "a school for pilots"], "the lock is being repaired"),
    "the zoo": (["300 animals", "an aviary", "a nursery"], "two lynxes are missing"),
    "the theatre": (["700 seats", "a turning stage", "a workshop"], "the curtain burnt"),
}
INPUTS = [
    {"subject": subject, "reader": reader}
    for reader in ("a newspaper", "the school children of the town")
    for subject in FIGURES
]

STATEMENT = ChatPromptTemplate.from_template(
    "Write a statement of about 60 words on {subject} for {reader}.\n\nFacts:\n{facts}"
)
QUESTIONS = ChatPromptTemplate.from_template(
    "Which 3 questions will {reader} ask? One per line.\n\nFacts:\n{facts}\n\nNews: {news}"
)
CHECK = ChatPromptTemplate.from_template(
    "You are a lawyer. Say in about 40 words whether these facts may be told.\n\nFacts:\n{facts}"
)
RELEASE = ChatPromptTemplate.from_template(
    "Write a press release of about 90 words.\n\n{statement}\n\nBe ready for:\n{questions}\n\nThe lawyer says: {check}"
)


class State(TypedDict, total=False):
    subject: str
    reader: str
    facts: str
    news: str
    statement: str
    questions: str
    check: str
    release: str


def team_graph(llm: Any) -> Any:
    def gather(state: State) -> State:
        figures, news = FIGURES[state["subject"]]
        lines = [f"({number}) {state['subject'].capitalize()} has {fact}." for number, fact in enumerate(figures, 1)]
        return {"facts": "\n".join(lines), "news": f"Since Monday {news}."}

    async def state_it(state: State) -> State:
        return {"statement": await (STATEMENT | llm | StrOutputParser()).ainvoke(state)}

    async def foresee(state: State) -> State:
        return {"questions": await (QUESTIONS | llm | StrOutputParser()).ainvoke(state)}

    graph = StateGraph(State)
    graph.add_sequence([gather, state_it, foresee])
    graph.add_edge(START, "gather")
    graph.add_edge("foresee", END)
    return graph.compile()


def desk_graph(llm: Any) -> Any:
    async def check_it(state: State) -> State:
        return {"check": await (CHECK | llm | StrOutputParser()).ainvoke({"facts": state["facts"]})}

    graph = StateGraph(State)
    graph.add_node("team", team_graph(llm))
    graph.add_node("check_it", check_it)
    graph.add_edge(START, "team")
    graph.add_edge("team", "check_it")
    graph.add_edge("check_it", END)
    return graph.compile()


def build(parts: Any) -> Any:
    async def write_release(state: State) -> State:
        return {"release": await (RELEASE | parts.llm | StrOutputParser()).ainvoke(state)}

    graph = StateGraph(State)
    graph.add_node("desk", desk_graph(parts.llm))
    graph.add_node("write_release", write_release)
    graph.add_edge(START, "desk")
    graph.add_edge("desk", "write_release")
    graph.add_edge("write_release", END)
    return graph.compile()
