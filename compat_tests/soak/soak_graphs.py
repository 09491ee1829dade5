"""LangGraph programs and a chain, as people write them: sequences, loops, branches, fan-outs, subgraphs, agents."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from compat_tests.soak.soak_parts import Nested, Plodder, Talker, lookup

FACTS = [f"{one} and {other} are kept together." for one, other in zip("abcdefghij", "klmnopqrst", strict=True)]


class State(TypedDict, total=False):
    question: str
    queries: list[str]
    documents: list[str]
    kind: str
    rounds: int
    notes: Annotated[list[str], operator.add]
    answer: str


class One(TypedDict):
    item: str


def said(model: Any, text: str) -> str:
    return str(model.invoke(text).content)


async def asaid(model: Any, text: str) -> str:
    return str((await model.ainvoke(text)).content)


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def store_of(embeddings: Any) -> InMemoryVectorStore:
    store = InMemoryVectorStore(embeddings)
    store.add_documents([Document(fact, id=str(n)) for n, fact in enumerate(FACTS)])
    return store


def sequence(*nodes: Any) -> Any:
    graph = StateGraph(State)
    before = START
    for node in nodes:
        graph.add_node(node.__name__, node)
        graph.add_edge(before, node.__name__)
        before = node.__name__
    graph.add_edge(before, END)
    return graph


def rag(embeddings: Any, model: Any) -> Any:
    store = store_of(embeddings)

    def rewrite(state: State) -> State:
        return {"queries": lines(said(model, f"Search queries, in lines: {state['question']}"))}

    def search(state: State) -> State:
        return {"documents": [store.similarity_search(query, k=1)[0].page_content for query in state["queries"]]}

    def grade(state: State) -> State:
        pairs = zip(state["queries"], state["documents"], strict=True)
        return {"notes": [said(model, f"Does {d!r} help with {q}? Say yes or no.") for q, d in pairs]}

    def generate(state: State) -> State:
        return {"answer": said(model, f"Answer {state['question']} with {state['documents']} and {state['notes']}")}

    return sequence(rewrite, search, grade, generate)


def rag_sync() -> Any:
    return rag(DeterministicFakeEmbedding(size=16), Talker()).compile()


def rag_nested_embeddings() -> Any:
    return rag(Nested(), Talker()).compile()


def rag_one_at_a_time() -> Any:
    return rag(Nested(), Plodder()).compile()


def arag(embeddings: Any, model: Any) -> Any:
    store = store_of(embeddings)

    async def rewrite(state: State) -> State:
        return {"queries": lines(await asaid(model, f"Search queries, in lines: {state['question']}"))}

    async def search(state: State) -> State:
        found = [(await store.asimilarity_search(query, k=1))[0] for query in state["queries"]]
        return {"documents": [document.page_content for document in found]}

    async def grade(state: State) -> State:
        pairs = zip(state["queries"], state["documents"], strict=True)
        return {"notes": [await asaid(model, f"Does {d!r} help with {q}? Say yes or no.") for q, d in pairs]}

    async def generate(state: State) -> State:
        notes = f"{state['documents']} and {state['notes']}"
        return {"answer": await asaid(model, f"Answer {state['question']} with {notes}")}

    return sequence(rewrite, search, grade, generate)


def rag_async() -> Any:
    return arag(DeterministicFakeEmbedding(size=16), Talker()).compile()


def rag_async_nested_embeddings() -> Any:
    return arag(Nested(), Talker()).compile()


def loop_sync() -> Any:
    model = Talker()

    def plan(state: State) -> State:
        return {"queries": lines(said(model, f"Topics, in lines, of {state['question']}"))}

    def write(state: State) -> State:
        return {"notes": [said(model, f"Write a note on {query}") for query in state["queries"]]}

    def merge(state: State) -> State:
        return {"answer": said(model, "Merge:\n" + "\n".join(state["notes"]))}

    return sequence(plan, write, merge).compile()


def _branching(short: Any, long: Any, choose: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("choose", choose)
    graph.add_node("short", short)
    graph.add_node("long", long)
    graph.add_edge(START, "choose")
    graph.add_conditional_edges("choose", lambda state: state["kind"], ["short", "long"])
    graph.add_edge("short", END)
    graph.add_edge("long", END)
    return graph.compile()


def branches_sync() -> Any:
    model = Talker()

    def choose(state: State) -> State:
        return {"kind": said(model, f"Should the answer be short or long? {state['question']}")}

    def short(state: State) -> State:
        return {"answer": said(model, f"In a word: {state['question']}")}

    def long(state: State) -> State:
        outline = lines(said(model, f"An outline, in lines, of {state['question']}"))
        return {"answer": " ".join(said(model, f"Write about {point}") for point in outline)}

    return _branching(short, long, choose)


def branches_async() -> Any:
    model = Talker()

    async def choose(state: State) -> State:
        return {"kind": await asaid(model, f"Should the answer be short or long? {state['question']}")}

    async def short(state: State) -> State:
        return {"answer": await asaid(model, f"In a word: {state['question']}")}

    async def long(state: State) -> State:
        outline = lines(await asaid(model, f"An outline, in lines, of {state['question']}"))
        return {"answer": " ".join([await asaid(model, f"Write about {point}") for point in outline])}

    return _branching(short, long, choose)


def _spreading(plan: Any, write: Any, merge: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("plan", plan)
    graph.add_node("write", write)
    graph.add_node("merge", merge)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges(
        "plan", lambda state: [Send("write", One(item=query)) for query in state["queries"]], ["write"]
    )
    graph.add_edge("write", "merge")
    graph.add_edge("merge", END)
    return graph.compile()


def send_sync() -> Any:
    model = Talker()

    def plan(state: State) -> State:
        return {"queries": lines(said(model, f"Topics, in lines, of {state['question']}"))}

    def write(state: One) -> State:
        draft = said(model, f"Write a note on {state['item']}")
        return {"notes": [said(model, f"Improve this: {draft}")]}

    def merge(state: State) -> State:
        return {"answer": said(model, "Merge:\n" + "\n".join(state["notes"]))}

    return _spreading(plan, write, merge)


def send_async() -> Any:
    model = Talker()

    async def plan(state: State) -> State:
        return {"queries": lines(await asaid(model, f"Topics, in lines, of {state['question']}"))}

    async def write(state: One) -> State:
        draft = await asaid(model, f"Write a note on {state['item']}")
        return {"notes": [await asaid(model, f"Improve this: {draft}")]}

    async def merge(state: State) -> State:
        return {"answer": await asaid(model, "Merge:\n" + "\n".join(state["notes"]))}

    return _spreading(plan, write, merge)


def gather_async() -> Any:
    model = Talker()

    async def both(query: str) -> str:
        return await asaid(model, f"Improve this: {await asaid(model, f'Write a note on {query}')}")

    async def plan(state: State) -> State:
        return {"queries": lines(await asaid(model, f"Topics, in lines, of {state['question']}"))}

    async def write(state: State) -> State:
        return {"notes": list(await asyncio.gather(*map(both, state["queries"])))}

    async def merge(state: State) -> State:
        return {"answer": await asaid(model, "Merge:\n" + "\n".join(state["notes"]))}

    return sequence(plan, write, merge).compile()


def sync_nodes_awaited() -> Any:
    """Ordinary functions in a graph that is awaited: LangGraph runs them in the loop's default executor."""
    return rag(Nested(), Plodder()).compile()


def subgraph_sync() -> Any:
    model = Talker()
    inner = loop_sync()

    def start(state: State) -> State:
        return {"question": said(model, f"Ask better: {state['question']}")}

    def check(state: State) -> State:
        return {"kind": said(model, f"Is this right? {state['answer']} Say yes or no.")}

    graph = StateGraph(State)
    graph.add_node("start", start)
    graph.add_node("inner", inner)
    graph.add_node("check", check)
    graph.add_edge(START, "start")
    graph.add_edge("start", "inner")
    graph.add_edge("inner", "check")
    graph.add_edge("check", END)
    return graph.compile()


def rounds_sync() -> Any:
    """A loop of the graph: three rounds, each on top of the one before."""
    model = Talker()

    def improve(state: State) -> State:
        draft = state.get("answer", state["question"])
        rounds = state.get("rounds", 0) + 1
        return {"answer": said(model, f"Improve this: {draft}"), "rounds": rounds}

    def more(state: State) -> str:
        return "improve" if state["rounds"] < 3 else END

    graph = StateGraph(State)
    graph.add_node("improve", improve)
    graph.add_edge(START, "improve")
    graph.add_conditional_edges("improve", more, ["improve", END])
    return graph.compile()


def streaming_async() -> Any:
    model = Talker()

    async def plan(state: State) -> State:
        text = ""
        async for chunk in model.astream(f"Topics, in lines, of {state['question']}"):
            text += str(chunk.content)
        return {"queries": lines(text)}

    async def write(state: State) -> State:
        notes = []
        for query in state["queries"]:
            notes.append("".join([str(chunk.content) async for chunk in model.astream(f"Write a note on {query}")]))
        return {"notes": notes}

    return sequence(plan, write).compile()


def agent() -> Any:
    return create_agent(Talker(), [lookup()], system_prompt="Look things up, then answer.")


def chain() -> Any:
    model = Talker()
    outline = ChatPromptTemplate.from_template("An outline of {question}") | model | StrOutputParser()
    risks = ChatPromptTemplate.from_template("What may go wrong with {question}?") | model | StrOutputParser()
    final = ChatPromptTemplate.from_template("Join {outline} and {risks} for {question}") | model | StrOutputParser()
    return (
        RunnablePassthrough.assign(outline=outline)
        | RunnableParallel(
            outline=lambda value: value["outline"],
            question=lambda value: value["question"],
            risks=risks,
        )
        | final
    )
