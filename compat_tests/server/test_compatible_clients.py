"""Clients of servers that speak OpenAI's protocol, of both frameworks: all are called early, and give what they give.

A row whose package is not in this environment runs in that of `make listed-check`.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import httpx
import pytest

pytest.importorskip("uvicorn")

from langgraph.graph import END, START, StateGraph
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode

import accel
from accel import accelerate
from accel.parts.listed.table import addresses_of
from adapters.tests.catching_up import catch_up
from adapters.tests.llamaindex_programs import Letters
from compat_tests.server.serving import connections_of, serving
from examples.serving.model_server import Served

pytestmark = pytest.mark.filterwarnings("ignore")  # of packages about themselves

KEY = {"api_key": "k"}
AZURE = {"api_version": "2024-10-21", **KEY}
Given = Callable[[str], dict[str, Any]]
"""What a class is made with, by the address of the server."""
LANGCHAIN: dict[str, Given] = {
    "langchain_openai.ChatOpenAI": lambda url: {"base_url": f"{url}/v1", "model": "m", **KEY},
    "langchain_openai.OpenAI": lambda url: {"base_url": f"{url}/v1", "model": "m", **KEY},
    "langchain_openai.AzureChatOpenAI": lambda url: {"azure_endpoint": url, "azure_deployment": "d", **AZURE},
    "langchain_openai.AzureOpenAI": lambda url: {"azure_endpoint": url, "azure_deployment": "d", **AZURE},
    "langchain_deepseek.ChatDeepSeek": lambda url: {"base_url": f"{url}/v1", "model": "m", **KEY},
    "langchain_xai.ChatXAI": lambda url: {"base_url": f"{url}/v1", "model": "m", **KEY},
    "langchain_together.ChatTogether": lambda url: {"base_url": f"{url}/v1", "model": "m", **KEY},
    "langchain_fireworks.ChatFireworks": lambda url: {"base_url": url, "model": "m", **KEY},
    "langchain_cerebras.ChatCerebras": lambda url: {"base_url": f"{url}/v1", "model": "m", **KEY},
    "langchain_groq.ChatGroq": lambda url: {"base_url": url, "model": "m", **KEY},
    "langchain_litellm.ChatLiteLLM": lambda url: {"api_base": f"{url}/v1", "model": "openai/m", **KEY},
}
LLAMAINDEX: dict[str, Given] = {
    "openai.OpenAI": lambda url: {"api_base": f"{url}/v1", "model": "gpt-4o", **KEY},
    "openai_like.OpenAILike": lambda url: {"api_base": f"{url}/v1", "model": "m", "is_chat_model": True, **KEY},
    "openai_like.OpenAILike, completing": lambda url: {"api_base": f"{url}/v1", "model": "m", **KEY},
    "azure_openai.AzureOpenAI": lambda url: {"azure_endpoint": url, "engine": "d", "model": "gpt-4o", **AZURE},
    "cerebras.Cerebras": lambda url: {"api_base": f"{url}/v1", "model": "m", **KEY},
    "databricks.Databricks": lambda url: {"api_base": f"{url}/v1", "model": "m", **KEY},
    "deepseek.DeepSeek": lambda url: {"api_base": f"{url}/v1", "model": "deepseek-chat", **KEY},
    "fireworks.Fireworks": lambda url: {"api_base": f"{url}/v1", "model": "m", **KEY},
    "groq.Groq": lambda url: {"api_base": f"{url}/v1", "model": "m", **KEY},
    "lmstudio.LMStudio": lambda url: {"base_url": f"{url}/v1", "model_name": "m"},
    "nebius.NebiusLLM": lambda url: {"api_base": f"{url}/v1", "model": "m", **KEY},
    "openllm.OpenLLM": lambda url: {"api_base": f"{url}/v1", "model": "m", "is_chat_model": True, **KEY},
    "openrouter.OpenRouter": lambda url: {"api_base": f"{url}/v1", "model": "m", **KEY},
    "together.TogetherLLM": lambda url: {"api_base": f"{url}/v1", "model": "m", **KEY},
    "litellm.LiteLLM": lambda url: {"api_base": f"{url}/v1", "model": "openai/gpt-4o", **KEY},
}
QUESTIONS = [f"What is said about {what}?" for what in ("tides", "harbours", "copper", "lanterns")]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Served]]:
    with serving(scale=0.3) as address_and_served:
        yield address_and_served
    with warnings.catch_warnings():  # clients that were never closed say so when they are collected
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(autouse=True)
def nobodys_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # a package around it
        return False


def made(package: str, name: str, given: dict[str, Any]) -> Any:
    if not _is_there(package):
        pytest.skip("its package is not installed (see `make listed-check`)")
    return getattr(importlib.import_module(package), name)(**given)


# --- LangChain ------------------------------------------------------------------------------------------------------


class State(TypedDict, total=False):
    question: str
    queries: list[str]
    notes: list[str]


def text_of(answer: Any) -> str:
    return answer if isinstance(answer, str) else str(answer.content)


def lines(answer: Any) -> list[str]:
    return [line.strip() for line in text_of(answer).splitlines() if line.strip()]


def learnt_from(ask: Callable[[Any], Any], given: Any) -> Any:
    """What a run gives; the next one begins when everything that it can teach was learnt."""
    answer = ask(given)
    assert accel.settle()
    return answer


REWRITE = "Write three search queries for this question, one on each line: {question}"
NOTE = "Write a note on this: {query}"


def sync_graph(llm: Any) -> Any:
    def rewrite(state: State) -> State:
        return {"queries": lines(llm.invoke(REWRITE.format(question=state["question"])))}

    def note(state: State) -> State:
        catch_up()
        return {"notes": [text_of(llm.invoke(NOTE.format(query=query))) for query in state["queries"]]}

    return wired(rewrite, note)


def async_graph(llm: Any) -> Any:
    async def rewrite(state: State) -> State:
        return {"queries": lines(await llm.ainvoke(REWRITE.format(question=state["question"])))}

    async def note(state: State) -> State:
        return {"notes": [text_of(await llm.ainvoke(NOTE.format(query=query))) for query in state["queries"]]}

    return wired(rewrite, note)


def wired(rewrite: Any, note: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("rewrite", rewrite)
    graph.add_node("note", note)
    graph.add_edge(START, "rewrite")
    graph.add_edge("rewrite", "note")
    graph.add_edge("note", END)
    return graph.compile()


async def ask_all(graph: Any) -> list[Any]:
    answers = []
    for question in QUESTIONS:
        answers.append(await graph.ainvoke({"question": question}))
        assert await asyncio.to_thread(accel.settle)
    return answers


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("key", LANGCHAIN)
def test_a_client_of_langchain_is_called_early(key: str, asynchronous: bool, server: tuple[str, Served]) -> None:
    address, served = server
    served.asked.clear()
    package, name = key.rsplit(".", 1)
    llm = made(package, name, LANGCHAIN[key](address))
    if asynchronous and "http_async_client" in type(llm).model_fields:
        # By default one for all tests, which keeps what the loops of the earlier ones have left in it.
        llm = type(llm)(**LANGCHAIN[key](address), http_async_client=httpx.AsyncClient())
    graph = async_graph(llm) if asynchronous else sync_graph(llm)
    fast = accelerate(graph)
    if asynchronous:
        plain, early = asyncio.run(both(graph, fast, llm))
    else:
        plain = [graph.invoke({"question": question}) for question in QUESTIONS]
        early = [learnt_from(fast.invoke, {"question": question}) for question in QUESTIONS]
    assert early == plain
    assert fast.report().counts.retired >= 3
    assert others(served) == 0


async def both(graph: Any, fast: Any, llm: Any) -> tuple[list[Any], list[Any]]:
    """On one loop: a client keeps the connections of its first."""
    async with connections_of(llm):
        return await ask_all(graph), await ask_all(fast)


def others(served: Served) -> int:
    """How many forms of requests there were beside the first one: what is in them but texts."""
    texts = ("messages", "prompt")
    forms = {repr((each.path, {k: v for k, v in each.body.items() if k not in texts})) for each in served.asked}
    return len(forms) - 1


# --- LlamaIndex -----------------------------------------------------------------------------------------------------


def query_engine(llm: Any) -> Any:
    nodes = [TextNode(text=f"Passage {n} is about {word} and the sea.", id_=f"p{n}") for n, word in enumerate(WORDS)]
    index = VectorStoreIndex(nodes, embed_model=Letters())
    accel.register(index.vector_store, readonly=True)
    return index.as_query_engine(llm=llm, similarity_top_k=4, response_mode="accumulate")


WORDS = "tides harbours signals meadows copper lanterns".split()


@pytest.mark.parametrize("key", LLAMAINDEX)
def test_a_client_of_llamaindex_is_called_early(key: str, server: tuple[str, Served]) -> None:
    address, served = server
    served.asked.clear()
    package, name = key.partition(",")[0].rsplit(".", 1)
    llm = made(f"llama_index.llms.{package}", name, LLAMAINDEX[key](address))
    egress: Any = "known" if addresses_of(llm) else "inputs"  # the passages are not the model's
    plain, fast = query_engine(llm), accelerate(query_engine(llm), egress=egress)
    expected = [str(plain.query(question)) for question in QUESTIONS]
    assert [str(learnt_from(fast.query, question)) for question in QUESTIONS] == expected
    assert fast.report().counts.retired >= 3
    assert others(served) == 0
