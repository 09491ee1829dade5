"""What the pages for users speak of without making it: a graph, models, stores and tools of a user's own. Small, in
this process, and the same for all pages; `adapters.tests.documents` says which page is given what.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool as as_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

import accel


class MyChatModel(BaseChatModel):
    """Answers at once, by what it is asked: three lines if lines are asked for."""

    @property
    def _llm_type(self) -> str:
        return "mine"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        text = str(messages[-1].content)
        about = " ".join(text.split()[-6:])
        said = "\n".join(f"{n} of {about}" for n in ("causes", "places", "names")) if "one per line" in text else about
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"Answer: {said}"))])


class MyClient:
    """Of some service, as nodes use it."""

    def search(self, text: str) -> list[str]:
        return [f"found {text}"]


class State(TypedDict, total=False):
    question: str
    found: list[str]
    grade: float
    answer: str


accel.register(MyChatModel, pure=True, concurrency=8, local=True, twins=True)
llm = MyChatModel()
store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
store.add_texts(["Tides follow the moon.", "Glaciers move stones.", "Reefs are made by corals."])


def _find(state: State) -> State:
    return {"found": [document.page_content for document in store.similarity_search(state["question"], k=2)]}


def _score(state: State) -> State:
    return {"grade": float(len(state["found"]))}


def _answer(state: State) -> State:
    notes = [llm.invoke(f"A note on {passage}").text for passage in state["found"]]
    return {"answer": llm.invoke(f"Answer {state['question']} from {' '.join(notes)}").text}


def _graph() -> CompiledStateGraph[State, None, State, State]:
    builder = StateGraph(State)
    builder.add_node("find", _find)
    builder.add_node("score", _score)
    builder.add_node("answer", _answer)
    builder.add_edge(START, "find")
    builder.add_edge("find", "score")
    builder.add_edge("score", "answer")
    builder.add_edge("answer", END)
    return builder.compile()


graph = _graph()
fast = accel.accelerate(graph)
inputs: list[State] = [{"question": "Why do tides differ?"}, {"question": "Who depends on glaciers?"}]
tenant, key = "ada", "none"


def _slow_score(text: str) -> float:
    return float(len(text))


slow_score: Callable[[str], float] = _slow_score


@as_tool
def search(query: str) -> str:
    """Search the handbook."""
    return f"what the handbook says about {query}"
