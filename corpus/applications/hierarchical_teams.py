"""Hierarchical agent teams: supervisors route to agents with tools, and a supervisor above them to the two teams."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

SOURCE = (
    "Hierarchical agent teams tutorial of LangGraph "
    "(https://langchain-ai.github.io/langgraph/tutorials/multi_agent/hierarchical_agent_teams/)"
)
ASYNC = True
PAGES = {
    f"https://{fruit}.example/{page}": f"{fruit.title()} trees {text}"
    for fruit in ("apple", "quince", "medlar", "plum", "mulberry")
    for page, text in (
        ("pruning", "are pruned in late winter, on a dry day, from the inside to the outside."),
        ("grafting", "are grafted on seedlings of a neighbour's orchard."),
        ("harvest", "give their best fruit in the tenth year, and the most in the thirtieth."),
    )
}
DOCUMENTS = [f"{url}: {text}" for url, text in PAGES.items()]
INPUTS = [
    {"messages": [("user", request)]}
    for request in (
        "When do medlars give fruit? Write a note.", "Compare the harvest of apples and mulberries in a table.",
        "Write a price list for the fruit of an orchard.", "Find out who grafts trees today and write a report.",
        "Research mulberries and write a letter to the council.", "What do grafters charge? Write an offer.",
        "Write an outline for a talk on orchards near towns.",
        "Research the pruning of quince trees and write a short guide.",
        "When are plum trees pruned? Write a poster.", "Compare the grafting of quinces and plums in a table.",
        "Write a speech for the first harvest of a medlar.",
        "Find out when apple trees give the most fruit and write a plan for thirty years.",
    )
]  # fmt: skip
RECURSION_LIMIT = 100


class State(MessagesState):
    next: str


def make_supervisor_node(llm: Any, members: list[str]) -> Callable[[State], Awaitable[Command[Any]]]:
    options = ["FINISH", *members]
    system_prompt = (
        f"You are a supervisor who manages a conversation of these workers: {members}. Given the request of the user, "
        "respond with the worker to act next. Each worker performs a task and reports on it. When all is done, respond "
        "with FINISH."
    )

    class Router(TypedDict):
        """Worker to route to next. If no workers are needed, route to FINISH."""

        next: Literal[*options]

    async def supervisor_node(state: State) -> Command[Literal[*members, "__end__"]]:
        messages = [{"role": "system", "content": system_prompt}, *state["messages"]]
        response = await llm.with_structured_output(Router).ainvoke(messages)
        goto = response["next"]
        if goto == "FINISH":
            goto = "__end__"
        return Command(goto=goto, update={"next": response["next"]})

    return supervisor_node


def make_worker_node(agent: Any, name: str) -> Callable[[State], Awaitable[Command[Any]]]:
    async def worker_node(state: State) -> Command[Literal["supervisor"]]:
        result = await agent.ainvoke(state)
        report = HumanMessage(content=result["messages"][-1].content, name=name)
        return Command(update={"messages": [report]}, goto="supervisor")

    return worker_node


def make_team(llm: Any, workers: dict[str, Any]) -> Any:
    builder = StateGraph(State)
    builder.add_node("supervisor", make_supervisor_node(llm, list(workers)))
    for name, agent in workers.items():
        builder.add_node(name, make_worker_node(agent, name))
    builder.add_edge(START, "supervisor")
    return builder.compile().with_config(recursion_limit=RECURSION_LIMIT)


def build(parts: Any) -> Any:
    llm = parts.llm
    files: dict[str, str] = {}

    @tool
    async def search_engine(query: str) -> str:
        """Search the web for pages on a query."""
        found = await parts.store.asimilarity_search(query, k=3)
        return "\n\n".join(document.page_content for document in found)

    @tool
    def scrape_webpages(urls: list[Literal[*PAGES]]) -> str:
        """Scrape the given web pages for details."""
        return "\n\n".join(f'<Document name="{url}">\n{PAGES[url]}\n</Document>' for url in urls)

    @tool
    def create_outline(
        points: Annotated[list[str], "Main points or sections"], file_name: Annotated[str, "File for the outline"]
    ) -> str:
        """Create and save an outline."""
        files[file_name] = "\n".join(f"{number}. {point}" for number, point in enumerate(points, start=1))
        return f"Outline saved to {file_name}"

    @tool
    def write_document(
        content: Annotated[str, "Text to be written"], file_name: Annotated[str, "File for the document"]
    ) -> str:
        """Create and save a text document."""
        files[file_name] = content
        return f"Document saved to {file_name}"

    @tool
    def read_document(file_name: Annotated[str, "File to read"]) -> str:
        """Read a document."""
        return files.get(file_name, f"There is no file {file_name}.")

    search_agent = create_agent(llm, tools=[search_engine])
    web_scraper_agent = create_agent(llm, tools=[scrape_webpages])
    research_graph = make_team(llm, {"search": search_agent, "web_scraper": web_scraper_agent})

    doc_writer_agent = create_agent(
        llm,
        tools=[write_document, read_document],
        system_prompt="You read, write and edit documents from the outlines of a note-taker. Don't ask questions.",
    )
    note_taking_agent = create_agent(
        llm,
        tools=[create_outline, read_document],
        system_prompt="You read documents and create outlines for the writer of documents. Don't ask questions.",
    )
    writing_graph = make_team(llm, {"doc_writer": doc_writer_agent, "note_taker": note_taking_agent})

    def make_team_node(team: Any, name: str) -> Callable[[State], Awaitable[Command[Any]]]:
        async def call_team(state: State) -> Command[Literal["supervisor"]]:
            response = await team.ainvoke({"messages": state["messages"][-1:]})
            report = HumanMessage(content=response["messages"][-1].content, name=name)
            return Command(update={"messages": [report]}, goto="supervisor")

        return call_team

    super_builder = StateGraph(State)
    super_builder.add_node("supervisor", make_supervisor_node(llm, ["research_team", "writing_team"]))
    super_builder.add_node("research_team", make_team_node(research_graph, "research_team"))
    super_builder.add_node("writing_team", make_team_node(writing_graph, "writing_team"))
    super_builder.add_edge(START, "supervisor")
    return super_builder.compile()
