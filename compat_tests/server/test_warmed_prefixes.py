"""Servers that keep prefixes are asked for one token where their users say so, and nobody hears of it."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("langchain_openai")

import httpx
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_openai import ChatOpenAI, OpenAI
from langgraph.graph import END, START, StateGraph

import accel
from accel import accelerate
from accel.errors import ConfigurationError
from accel.parts import components
from accel.run.issued.served import _short
from compat_tests.server.serving import connections_of, serving
from examples.serving.model_server import Asked, Served

MANUAL = "Follow the manual of the harbour to the letter, and say which part you followed. " * 40
"""Longer than what is read in no time."""
QUESTIONS = [f"What is said about {what}?" for what in ("tides", "ropes", "copper", "lanterns")]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Served]]:
    with serving(scale=0.02) as address_and_served:
        yield address_and_served
    with warnings.catch_warnings():  # clients that were never closed say so when they are collected
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture
def served(server: tuple[str, Served]) -> Served:
    server[1].asked.clear()
    return server[1]


@pytest.fixture
def url(server: tuple[str, Served]) -> str:
    return f"{server[0]}/v1"


pytestmark = pytest.mark.filterwarnings("ignore")  # of packages about themselves


class State(TypedDict, total=False):
    question: str
    summary: str
    answers: list[str]


def text_of(answer: Any) -> str:
    return answer if isinstance(answer, str) else str(answer.content)


def prompts(state: State) -> list[str]:
    """They have a long beginning in common."""
    beginning = f"{MANUAL}\nQuestion: {state['question']}\n"
    return [f"{beginning}Answer after this summary: {state['summary']}", f"{beginning}Doubt this: {state['summary']}"]


def graph_of(llm: Any, before_answers: Callable[[], None] = lambda: None) -> Any:
    def summarise(state: State) -> State:
        summary = text_of(llm.invoke(f"Summarise: {state['question']}"))
        before_answers()
        return {"summary": summary}

    def answer(state: State) -> State:
        one, other = prompts(state)
        return {"answers": [text_of(llm.invoke(one)), text_of(llm.invoke(other))]}

    return wired(summarise, answer)


def async_graph_of(llm: Any, before_answers: Callable[[], None]) -> Any:
    async def summarise(state: State) -> State:
        summary = text_of(await llm.ainvoke(f"Summarise: {state['question']}"))
        await asyncio.to_thread(before_answers)
        return {"summary": summary}

    async def answer(state: State) -> State:
        one, other = prompts(state)
        return {"answers": [text_of(await llm.ainvoke(one)), text_of(await llm.ainvoke(other))]}

    return wired(summarise, answer)


def wired(summarise: Any, answer: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("summarise", summarise)
    graph.add_node("answer", answer)
    graph.add_edge(START, "summarise")
    graph.add_edge("summarise", "answer")
    graph.add_edge("answer", END)
    return graph.compile()


def prompt_of(asked: Asked) -> str:
    messages = asked.body.get("messages")
    if messages is not None:
        return "\n".join(str(message["content"]) for message in messages)
    prompt = asked.body["prompt"]
    return prompt if isinstance(prompt, str) else "\n".join(prompt)


def is_for_one_token(asked: Asked) -> bool:
    limits = asked.body.get("max_tokens"), asked.body.get("max_completion_tokens")
    return 1 in limits and set(limits) <= {1, None} and asked.body.get("n", 1) == 1


def warmed(served: Served) -> list[str]:
    return [prompt_of(asked) for asked in served.asked if is_for_one_token(asked)]


class Waiting:
    """Before a node returns: the beginning of the next prompts was asked for, in runs that know them."""

    def __init__(self, served: Served, known_from: int) -> None:
        self.served, self.known_from, self.runs = served, known_from, 0

    def __call__(self) -> None:
        self.runs += 1
        question = QUESTIONS[self.runs - 1]
        if self.runs > self.known_from:
            self.served.wait_for(lambda asked: is_for_one_token(asked) and question in prompt_of(asked))


KNOWN_FROM = 2


def chat(url: str, **given: Any) -> ChatOpenAI:
    connections = httpx.AsyncClient()  # by default one for all loops, which the first one that ends takes along
    return ChatOpenAI(model="m", base_url=url, api_key="k", http_async_client=connections, **given)


def completing(url: str) -> OpenAI:
    return OpenAI(model="m", base_url=url, api_key="k", max_tokens=64, http_async_client=httpx.AsyncClient())  # type: ignore[arg-type]


MODELS: dict[str, Callable[[str], Any]] = {
    "chat": chat,
    "chat with limits of its own": lambda url: chat(url, max_tokens=77, n=1, extra_body={"max_tokens": 77, "top_k": 5}),
    "chat with tools": lambda url: chat(url).bind_tools(
        [TOOL], tool_choice="none", max_tokens=77, extra_body={"n": 2, "top_k": 5}
    ),
    "completing": completing,
}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", MODELS)
def test_a_declared_server_is_asked_once_for_each_beginning(
    name: str, asynchronous: bool, url: str, served: Served
) -> None:
    llm = MODELS[name](url)
    accel.register(getattr(llm, "bound", llm), prefix_caching=True)
    waiting = Waiting(served, KNOWN_FROM)
    usage, own = UsageMetadataCallbackHandler(), UsageMetadataCallbackHandler()
    if asynchronous:
        plain, early = asyncio.run(ask_both(llm, waiting, own, usage))
    else:
        plain = [graph_of(llm).invoke({"question": each}, {"callbacks": [own]}) for each in QUESTIONS]
        fast = accelerate(graph_of(llm, waiting))
        early = [settled(fast.invoke({"question": each}, {"callbacks": [usage]})) for each in QUESTIONS]
    assert early == plain
    assert usage.usage_metadata == own.usage_metadata
    one = warmed(served)
    assert len(one) == len(set(one)) == len(QUESTIONS) - KNOWN_FROM
    for prompt, state in zip(one, early[KNOWN_FROM:], strict=True):
        assert any(each.startswith(prompt) for each in prompts(state))
        assert prompt.startswith(MANUAL) and state["question"] in prompt
    forms = {repr(sorted(_form(asked).items())) for asked in served.asked}
    assert len(forms) == 1, "beside its length, a beginning is asked for as the prompt is"


def _form(asked: Asked) -> dict[str, Any]:
    own = ("messages", "prompt", "max_tokens", "max_completion_tokens", "n")
    return {name: value for name, value in asked.body.items() if name not in own}


async def ask_both(llm: Any, waiting: Waiting, own: Any, usage: Any) -> tuple[list[Any], list[Any]]:
    graph, fast = async_graph_of(llm, lambda: None), accelerate(async_graph_of(llm, waiting))
    async with connections_of(getattr(llm, "bound", llm)):
        plain = [await graph.ainvoke({"question": each}, {"callbacks": [own]}) for each in QUESTIONS]
        return plain, [settled(await fast.ainvoke({"question": each}, {"callbacks": [usage]})) for each in QUESTIONS]


def settled(result: Any) -> Any:
    """What the run taught is learnt."""
    accel.settle()
    return result


def test_nobody_else_is(url: str, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "_by_class", dict(components._by_class))
    undeclared, remote = chat(url), chat(url)
    accel.register(remote, local=False)
    for llm in (undeclared, remote):
        fast = accelerate(graph_of(llm))
        for question in QUESTIONS:
            settled(fast.invoke({"question": question}))
        assert not warmed(served)
        accel.register(ChatOpenAI, prefix_caching=True)  # of a class it holds where the address is private


def test_a_public_address_must_be_said_to_be_the_user_s() -> None:
    llm = chat("https://models.example.com/v1")
    with pytest.raises(ConfigurationError, match="public address"):
        accel.register(llm, prefix_caching=True)
    accel.register(llm, prefix_caching=True, local=True)


def test_what_can_t_be_asked_for_one_token_is_not_declared() -> None:
    with pytest.raises(ConfigurationError, match="asked for one token"):
        accel.register(Waiting, prefix_caching=True)


def test_a_copy_is_asked_for_one_token_whatever_the_model_says() -> None:
    extra = {"max_tokens": 9, "n": 2, "top_k": 5}
    llm = chat("http://127.0.0.1:9/v1", max_tokens=9, n=3, streaming=False, extra_body=extra)
    short = _short(llm)
    assert (short.max_tokens, short.n, short.extra_body) == (1, 1, {"top_k": 5})
    assert short.client is llm.client and short.async_client is llm.async_client
    assert (llm.max_tokens, llm.n, llm.extra_body) == (9, 3, extra)


@pytest.mark.skipif(
    importlib.util.find_spec("llama_index.llms") is None
    or importlib.util.find_spec("llama_index.llms.openai_like") is None,
    reason="its package is not installed (see `make listed-check`)",
)
@pytest.mark.parametrize("chatting", [True, False])
def test_a_beginning_of_llamaindex_is_asked_for(chatting: bool, url: str, served: Served) -> None:
    from llama_index.core import PromptTemplate, VectorStoreIndex
    from llama_index.core.schema import TextNode

    from adapters.tests.llamaindex_programs import Letters

    like = importlib.import_module("llama_index.llms.openai_like").OpenAILike
    extra = {"extra_body": {"max_tokens": 50, "top_k": 5}}
    llm = like(model="m", api_base=url, api_key="k", is_chat_model=chatting, max_tokens=50, additional_kwargs=extra)
    accel.register(llm, prefix_caching=True)
    refine = PromptTemplate(f"{MANUAL}\nQuestion: {{query_str}}\nText: {{context_msg}}\nSo far: {{existing_answer}}")

    def engine() -> Any:
        nodes = [TextNode(text=f"Passage {n} is about {word}. " * 20, id_=f"p{n}") for n, word in enumerate("abc")]
        index = VectorStoreIndex(nodes, embed_model=Letters())
        accel.register(index.vector_store, readonly=True)
        return index.as_query_engine(llm=llm, similarity_top_k=2, response_mode="refine", refine_template=refine)

    plain, fast = engine(), accelerate(engine())
    expected = [str(plain.query(question)) for question in QUESTIONS]
    assert not warmed(served)
    assert [settled(str(fast.query(question))) for question in QUESTIONS] == expected
    one = warmed(served)
    assert one and len(one) == len(set(one))
    whole = [prompt_of(asked) for asked in served.asked if not is_for_one_token(asked)]
    assert all(prompt.startswith(MANUAL) and any(each.startswith(prompt) for each in whole) for prompt in one), one
