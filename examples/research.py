"""An ordinary LangGraph program, on simulated engines: a model with the published times of a 7B model on one GPU.

Plan queries, search and write a note for each of them, and write a report of the notes. No GPU and no model is needed:
the simulated model takes the time and answers in made-up words. `docs/how.md` explains Accel by it; the picture there:

    accel timeline examples/research.py:graph --inputs examples/research.jsonl --measured \\
        --out docs/pictures/research.svg
"""

from __future__ import annotations

from typing import TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.vectorstores import VectorStore
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from accel_langgraph import AccelChatModel, AccelEmbeddings, AccelVectorStore
from accel_sim import SimEmbeddingConfig, SimLLMConfig, SimStoreConfig, profile_of

MODEL = "7b"
DIMENSION = 64
SUBJECTS = ("tides", "glaciers", "volcanoes", "reefs", "deserts", "rivers", "forests", "storms")
DETAILS = ("how they begin", "what they move", "who depends on them", "how they are measured")


class State(TypedDict, total=False):
    question: str
    queries: list[str]
    notes: list[str]
    report: str


def build(llm: BaseChatModel, store: VectorStore) -> CompiledStateGraph[State, None, State, State]:
    """Input: {"question": str}. Output: the whole state."""

    async def plan(state: State) -> State:
        prompt = f"Write 3 search queries, one per line and nothing else.\n\nQuestion: {state['question']}"
        answer = await llm.ainvoke(prompt)
        return {"queries": [line.strip() for line in answer.text.splitlines() if line.strip()]}

    async def take_notes(state: State) -> State:
        notes: list[str] = []
        for query in state["queries"]:
            passages = await store.asimilarity_search(query, k=3)
            found = "\n".join(passage.page_content for passage in passages)
            answer = await llm.ainvoke(f"Write a note of about 30 words.\n\nQuery: {query}\n\nPassages:\n{found}")
            notes.append(answer.text)
        return {"notes": notes}

    async def write(state: State) -> State:
        notes = "\n\n".join(state["notes"])
        prompt = f"Answer in about 40 words, from the notes.\n\nQuestion: {state['question']}\n\nNotes:\n{notes}"
        return {"report": (await llm.ainvoke(prompt)).text}

    builder = StateGraph(State)
    builder.add_node("plan", plan)
    builder.add_node("take_notes", take_notes)
    builder.add_node("write", write)
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "take_notes")
    builder.add_edge("take_notes", "write")
    builder.add_edge("write", END)
    return builder.compile()


async def graph() -> CompiledStateGraph[State, None, State, State]:
    """On simulated engines, with 32 passages in the store."""
    embeddings = AccelEmbeddings(engine=SimEmbeddingConfig(profile_of(MODEL, "embedding"), DIMENSION))
    records = SimStoreConfig("research", DIMENSION, profile_of(MODEL, "searching"))
    store = AccelVectorStore(embeddings, "research", dimension=DIMENSION, engine=records)
    await store.aadd_texts([f"About {subject}: {detail}." for subject in SUBJECTS for detail in DETAILS])
    llm = AccelChatModel(model=MODEL, engine=SimLLMConfig(profile=MODEL))
    return build(llm, store)
