"""A program of three calls, the last one made of what the others gave, whose models a server of the tests' answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from examples.serving.processes import model_server

from .catching_up import catch_up


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of a server that speaks OpenAI's protocol."""
    server = model_server()
    try:
        yield f"{server.url}/v1"
    finally:
        server.kill()


@pytest.fixture
def environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that are told nothing else find this server, with a key of everybody's."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-all")
    monkeypatch.setenv("OPENAI_BASE_URL", url)


class State(TypedDict, total=False):
    topic: str
    key: str
    outline: str
    keywords: str
    both: str


def program(ask: Callable[[State, str], Any], is_async: bool = False) -> Any:
    """`ask`: an answer to a prompt; a coroutine of one if the nodes are coroutines."""

    def node(name: str, prompt: Callable[[State], str]) -> Any:
        def plain(state: State) -> Any:
            catch_up()  # a node takes time
            return {name: ask(state, prompt(state))}

        async def coroutine(state: State) -> Any:
            catch_up()
            return {name: await ask(state, prompt(state))}

        return coroutine if is_async else plain

    nodes = {
        "outline": lambda state: f"Write an outline about {state['topic']}.",
        "keywords": lambda state: f"Give keywords for {state['topic']}.",
        "both": lambda state: f"Combine {state['outline']} with {state['keywords']}.",
    }
    graph = StateGraph(State)
    for name, prompt in nodes.items():
        graph.add_node(f"{name}_node", node(name, prompt))
    names = [START, *(f"{name}_node" for name in nodes)]
    for before, after in zip(names, names[1:], strict=False):
        graph.add_edge(before, after)
    return graph.compile()
