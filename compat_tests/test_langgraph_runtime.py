"""LangGraph's runtime features, plain, accelerated and forced (see `accel_langgraph.testing`): results are equal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel, FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.cache.memory import InMemoryCache as NodeCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command, interrupt

from compat_tests.answers import ModelError
from compat_tests.fakes import TENANT, Parts
from compat_tests.graphs import TOPICS, Topic, research

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]


def thread(name: str, **more: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": name, **more}}


def test_checkpointer_with_threads(parts: Parts, compared: Compared) -> None:
    fast = research(parts).compile(checkpointer=InMemorySaver())
    for number, topic in enumerate(TOPICS):
        fast.invoke({"topic": topic}, thread(str(number % 2)))
    compared([(s.values, s.next, s.metadata, s.tasks) for s in fast.get_state_history(thread("0"))])
    fast.update_state(thread("0"), {"answer": "mine"}, as_node="answer")
    compared(fast.get_state(thread("0")).values)
    with pytest.raises(ValueError, match="thread_id"):
        fast.invoke({"topic": "no thread"})


async def test_async_checkpointer_and_debug_stream(parts: Parts, compared: Compared) -> None:
    fast = research(parts).compile(checkpointer=InMemorySaver())
    for topic in TOPICS:
        compared([chunk async for chunk in fast.astream({"topic": topic}, thread(topic), stream_mode="debug")])
    compared((await fast.aget_state(thread(TOPICS[0]))).values)


def asking(parts: Parts) -> StateGraph[Any, Any, Any, Any]:
    def draft(state: Topic) -> Topic:
        return {"queries": [str(parts.local.invoke(f"Draft on {state['topic']}").content)]}

    def review(state: Topic) -> Topic:
        before = parts.local.invoke(f"Question on {state['queries']}").content
        said = interrupt({"question": before})
        return {"answer": str(parts.local.invoke(f"Revise {state['queries']} as {said}").content)}

    def publish(state: Topic) -> Topic:
        return {"notes": [str(parts.remote.invoke(f"Publish {state['answer']}").content)]}

    graph = StateGraph(Topic)
    graph.add_sequence([draft, review, publish])
    graph.add_edge(START, "draft")
    return graph


def test_interrupt_and_resume(parts: Parts) -> None:
    """The node that interrupts, and all after it, wait for the resume."""
    fast = asking(parts).compile(checkpointer=InMemorySaver())
    for number, topic in enumerate(TOPICS):
        config = thread(str(number))
        assert "__interrupt__" in fast.invoke({"topic": topic}, config)
        fast.invoke(Command(resume=f"shorter {number}"), config)


async def test_interrupt_and_resume_in_a_stream(parts: Parts) -> None:
    fast = asking(parts).compile(checkpointer=InMemorySaver())
    for number, topic in enumerate(TOPICS):
        config = thread(str(number))
        assert [chunk async for chunk in fast.astream({"topic": topic}, config, stream_mode=["updates", "values"])]
        assert [chunk async for chunk in fast.astream(Command(resume="ok"), config, stream_mode="updates")]


@pytest.mark.parametrize("where", [{"interrupt_before": ["answer"]}, {"interrupt_after": ["expand"]}])
def test_static_interrupts(parts: Parts, compared: Compared, where: Any) -> None:
    """Nothing after a static interrupt is asked before the run goes on."""
    fast = research(parts).compile(checkpointer=InMemorySaver(), **where)
    for number, topic in enumerate(TOPICS):
        config = thread(str(number))
        parts.probe.calls.clear()
        fast.invoke({"topic": topic}, config)
        compared(sorted({call.text for call in parts.probe.calls if "Answer" in call.text}))
        compared(fast.get_state(config).next)
        fast.invoke(None, config)


def test_predecessor_interrupts_only_sometimes(parts: Parts) -> None:
    def gate(state: Topic) -> Topic:
        parts.local.invoke(f"Look at {state['topic']}")
        return {"queries": [interrupt("sure?")]} if "33" in state["topic"] else {"queries": ["fine"]}

    graph = StateGraph(Topic)
    graph.add_node("gate", gate)
    graph.add_node("ask", lambda state: {"answer": parts.local.invoke(f"Ask {state['topic']}").content})
    graph.add_edge(START, "gate")
    graph.add_edge("gate", "ask")
    fast = graph.compile(checkpointer=InMemorySaver())
    for number, topic in enumerate(TOPICS):
        if "__interrupt__" in fast.invoke({"topic": topic}, thread(str(number))):
            fast.invoke(Command(resume="yes"), thread(str(number)))


def test_cache_policy(parts: Parts) -> None:
    graph = StateGraph(Topic)
    graph.add_node(
        "ask", lambda state: {"answer": parts.local.invoke(f"Ask {state['topic']}").content}, cache_policy=CachePolicy()
    )
    graph.add_node("more", lambda state: {"notes": [parts.local.invoke(f"More on {state['answer']}").content]})
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "more")
    fast = graph.compile(cache=NodeCache())
    for topic in TOPICS:
        list(fast.stream({"topic": topic}, stream_mode="updates"))


def test_model_cache(parts: Parts, compared: Compared) -> None:
    parts.local.cache = InMemoryCache()
    fast = research(parts).compile()
    for topic in TOPICS:
        fast.invoke({"topic": topic})
    compared(len(parts.local.cache._cache))


def test_store_and_runtime_context(parts: Parts, compared: Compared) -> None:
    store = InMemoryStore()

    def node(state: Topic, runtime: Runtime[Any], store: BaseStore) -> Topic:
        known = [item.value["said"] for item in store.search(("notes",))]
        who = runtime.context["user"]
        said = str(parts.local.invoke(f"Tell {who} of {state['topic']} beside {known}").content)
        store.put(("notes",), state["topic"], {"said": said})
        return {"answer": said}

    graph = StateGraph(Topic, context_schema=dict)  # type: ignore[type-var]
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    fast = graph.compile(store=store)
    for number, topic in enumerate(TOPICS):
        fast.invoke({"topic": topic}, context={"user": f"user {number % 2}"})
    compared([(item.key, item.value) for item in store.search(("notes",))])


def test_batch(parts: Parts, compared: Compared) -> None:
    fast = research(parts).compile()
    fast.invoke({"topic": "warm"})
    for size in (None, 2):
        inputs: list[Any] = [{"topic": topic} for topic in (*TOPICS, "cedar 44")]
        compared([found["answer"] for found in fast.batch(inputs, {"max_concurrency": size})])


async def test_abatch_and_gather(parts: Parts, compared: Compared) -> None:
    fast = research(parts).compile()
    await fast.ainvoke({"topic": "warm"})
    inputs: list[Any] = [{"topic": topic} for topic in TOPICS]
    compared([found["answer"] for found in await fast.abatch(inputs)])
    compared([found["answer"] for found in await asyncio.gather(*map(fast.ainvoke, inputs))])


def test_threads_with_tenants(parts: Parts, compared: Compared) -> None:
    graph = StateGraph(Topic)
    graph.add_node("ask", lambda state: {"answer": parts.tenant.invoke(f"Ask {state['topic']}").content})
    graph.add_node("more", lambda state: {"notes": [parts.tenant.invoke(f"More on {state['topic']}").content]})
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "more")
    fast = graph.compile()

    def run(tenant: str, topic: str) -> Any:
        TENANT.set(tenant)
        return fast.invoke({"topic": topic})

    with ThreadPoolExecutor(2) as pool:
        for topic in TOPICS:
            found = list(pool.map(run, ("a", "b"), (topic, topic)))
            assert found[0]["answer"].startswith("[a]") and found[1]["notes"][0].startswith("[b]")
            compared(found)


class Recorder(BaseCallbackHandler):
    """What a handler is told, in order; runs by the order in which they began."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.runs: dict[Any, int] = {}
        self.lock = threading.Lock()

    def told(self, what: str, value: Any, run_id: Any, parent_run_id: Any = None) -> None:
        with self.lock:
            number = self.runs.setdefault(run_id, len(self.runs))
            self.events.append((what, number, self.runs.get(parent_run_id), value))

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any, parent_run_id: Any = None, **k: Any) -> None:
        self.told("chain start", k.get("name"), run_id, parent_run_id)

    def on_chain_end(self, outputs: Any, *, run_id: Any, **k: Any) -> None:
        self.told("chain end", None, run_id)

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: Any, parent_run_id: Any = None, **k: Any
    ) -> None:
        self.told("model start", (messages, k.get("tags"), k.get("metadata")), run_id, parent_run_id)

    def on_llm_new_token(self, token: str, *, run_id: Any, **k: Any) -> None:
        self.told("token", token, run_id)

    def on_llm_end(self, response: Any, *, run_id: Any, **k: Any) -> None:
        self.told("model end", response.generations, run_id)

    def on_llm_error(self, error: BaseException, *, run_id: Any, **k: Any) -> None:
        self.told("model error", str(error), run_id)


@pytest.mark.parametrize("streaming", [False, True])
def test_callbacks_keep_their_order(parts: Parts, compared: Compared, streaming: bool) -> None:
    fast = research(parts).compile()
    for topic in TOPICS:
        recorder = Recorder()
        if streaming:
            list(fast.stream({"topic": topic}, {"callbacks": [recorder]}, stream_mode="messages"))
        else:
            fast.invoke({"topic": topic}, {"callbacks": [recorder], "tags": ["mine"], "metadata": {"who": "me"}})
        compared(recorder.events)


async def test_astream_events(parts: Parts, compared: Compared) -> None:
    fast = research(parts).compile()
    for topic in TOPICS:
        events = [event async for event in fast.astream_events({"topic": topic}, version="v2")]
        compared([(event["event"], event["name"], event["data"]) for event in events])


def test_model_errors_reach_handlers_and_callers(parts: Parts, compared: Compared) -> None:
    def node(state: Topic) -> Topic:
        try:
            return {"answer": str(parts.local.invoke(f"Explain (fragile) {state['topic']}").content)}
        except ModelError as error:
            return {"answer": f"failed: {error}"}

    graph = StateGraph(Topic)
    graph.add_node("node", node)
    graph.add_node("bare", lambda state: {"notes": [parts.local.invoke(f"(fragile) {state['topic']}").content]})
    graph.add_edge(START, "node")
    graph.add_edge("node", "bare")
    fast = graph.compile()
    for number in range(8):
        recorder = Recorder()
        try:
            fast.invoke({"topic": f"quartz {number}"}, {"callbacks": [recorder]})
        except ModelError as error:
            compared(error)
        compared(recorder.events)


def test_closing_a_stream_midway(parts: Parts, compared: Compared) -> None:
    """What the program hadn't asked for when its reader left isn't asked for."""
    fast = research(parts).compile()
    for topic in TOPICS:
        chunks = fast.stream({"topic": topic}, stream_mode="updates")
        compared(next(chunks))
        chunks.close()  # type: ignore[attr-defined]
    assert fast.invoke({"topic": "quartz"})["answer"]


async def test_cancelling_a_stream_midway(parts: Parts, compared: Compared) -> None:
    reached = asyncio.Event()

    async def node(state: Topic) -> Topic:
        said = (await parts.local.ainvoke(f"Explain {state['topic']}")).content
        if "33" in state["topic"]:
            reached.set()
            await asyncio.Event().wait()
        return {"answer": str(said)}

    async def after(state: Topic) -> Topic:
        return {"notes": [str((await parts.local.ainvoke(f"Shorten {state['answer']}")).content)]}

    graph = StateGraph(Topic)
    graph.add_sequence([node, after])
    graph.add_edge(START, "node")
    fast = graph.compile()

    async def read(topic: str) -> list[Any]:
        return [chunk async for chunk in fast.astream({"topic": topic}, stream_mode="updates")]

    for topic in TOPICS:
        task = asyncio.create_task(read(topic))
        if "33" in topic:
            await reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            compared(await task)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("kind", ["list", "messages", "iterator", "assigning"])
def test_scripted_models_keep_their_script(parts: Parts, kind: str) -> None:
    replies = [f"reply {number}" for number in range(40)]
    model: Any = {
        "list": lambda: FakeListChatModel(responses=replies),
        "messages": lambda: FakeMessagesListChatModel(responses=list(map(AIMessage, replies))),
        "iterator": lambda: GenericFakeChatModel(messages=iter(map(AIMessage, replies))),
        "assigning": lambda: parts.scripted,
    }[kind]()

    def node(state: Topic) -> Topic:
        return {"notes": [str(model.invoke(f"{state['topic']} {number}").content) for number in range(3)]}

    graph = StateGraph(Topic)
    graph.add_node("node", node)
    graph.add_node("last", lambda state: {"answer": model.invoke(f"Sum up {state['topic']}").content})
    graph.add_edge(START, "node")
    graph.add_edge("node", "last")
    fast = graph.compile()
    for topic in TOPICS:
        fast.invoke({"topic": topic})
