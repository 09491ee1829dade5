"""Named traps of what surrounds calls of models: callbacks, ids, credentials, contexts, threads; in three modes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler, get_usage_metadata_callback
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import SecretStr
from typing_extensions import TypedDict

from compat_tests.fakes import TENANT, LocalChat, Parts
from compat_tests.graphs import TOPICS, Topic
from compat_tests.named import acatch_up, asaid, asked, catch_up, said, was_early
from compat_tests.named_models import AgentChat, CountedChat, KeyedChat, declare

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]
MANY = (*TOPICS, "cedar 44", "river 55")


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def in_two(*nodes: Callable[..., Any], state: Any = Topic) -> Any:
    graph = StateGraph(state)
    graph.add_sequence(nodes)
    graph.add_edge(START, nodes[0].__name__)
    return graph.compile()


class Ear(BaseCallbackHandler):
    """Which models began and ended, with the ids of their runs."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.ended: list[Any] = []
        self.tokens = 0

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: Any, **kwargs: Any) -> None:
        self.begun.append((run_id, messages[0][-1].text))

    def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
        self.tokens += 1

    def on_llm_end(self, response: Any, *, run_id: Any, **kwargs: Any) -> None:
        self.ended.append((run_id, response.generations[0][0].message))


@pytest.mark.parametrize("streaming", [False, True])
def test_message_ids_are_those_of_their_runs(
    parts: Parts, accel_mode: str, compared: Compared, streaming: bool
) -> None:
    """An answer that came early carries the id of the run that the program's call has, and no other message does."""

    def one(state: Chat) -> Chat:
        catch_up()
        topic = state["messages"][0].text
        return {"messages": [parts.local.invoke(f"One {topic}"), parts.local.invoke(f"Two {topic}")]}

    def two(state: Chat) -> Chat:
        catch_up()
        topic = state["messages"][0].text
        return {"messages": [parts.local.invoke(f"Two {topic}"), parts.local.invoke(state["messages"])]}

    fast = in_two(one, two, state=Chat)
    for topic in MANY:
        ear = Ear()
        given: Any = {"messages": [("human", topic)]}
        if streaming:
            *_, (_, final) = fast.stream(given, {"callbacks": [ear]}, stream_mode=["messages", "values"])
        else:
            final = fast.invoke(given, {"callbacks": [ear]})
        ids = [message.id for message in final["messages"][1:]]
        assert len(set(ids)) == 4
        assert all(str(run_id) in message_id for (run_id, _), message_id in zip(ear.begun, ids, strict=True))
        assert [run for run, _ in ear.begun] == [run for run, _ in ear.ended]
        compared([text for _, text in ear.begun], [message for _, message in ear.ended], ear.tokens)
    was_early(fast, accel_mode, 2)


def test_usage_callbacks(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Usage is counted for what the program asked, once each, wherever the counter stands."""
    declare(accel_mode, CountedChat)
    model = CountedChat(parts.probe)
    inner: list[Any] = []

    def one(state: Topic) -> Topic:
        catch_up()
        return {"notes": [said(model, f"One {state['topic']}"), said(model, f"Two {state['topic']}")]}

    def two(state: Topic) -> Topic:
        catch_up()
        with get_usage_metadata_callback() as counter:
            found = said(model, f"Three {state['topic']}")
        inner.append(counter.usage_metadata)
        return {"answer": found, "notes": [said(model, f"Four {state['topic']}")]}

    fast = in_two(one, two)
    for topic in MANY:
        handler = UsageMetadataCallbackHandler()
        with get_usage_metadata_callback() as around:
            fast.invoke({"topic": topic}, {"callbacks": [handler]})
        assert handler.usage_metadata == around.usage_metadata != {}
        compared(handler.usage_metadata, inner[-1])
    was_early(fast, accel_mode, 2)


def test_empty_callbacks_silence_a_model(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """`callbacks=[]` drops what was inherited: such a call streams to nobody, the next one does."""

    def one(state: Topic) -> Topic:
        catch_up()
        hidden = parts.local.invoke(f"Hidden {state['topic']}", {"callbacks": []})
        return {"notes": [hidden.text, parts.local.invoke(f"Shown {state['topic']}").text]}

    def two(state: Topic) -> Topic:
        catch_up()
        return {"answer": parts.local.invoke(f"Also hidden {state['topic']}", {"callbacks": []}).text}

    fast = in_two(one, two)
    for topic in MANY:
        ear = Ear()
        list(fast.stream({"topic": topic}, {"callbacks": [ear]}, stream_mode=["messages", "updates"]))
        assert [text for _, text in ear.begun] == [f"Shown {topic}"]
        compared(ear.tokens)
    was_early(fast, accel_mode, 2)


def test_tool_calls_keep_their_ids(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """The ids of tool calls are those of the answer that the program got."""
    declare(accel_mode, AgentChat)

    def look(query: str) -> str:
        """Look something up."""
        return query

    model = AgentChat(parts.probe).bind_tools([look])

    def one(state: Chat) -> Chat:
        catch_up()
        first = model.invoke(f"First {state['messages'][0].text}")
        return {"messages": [first, model.invoke(f"Second {first.tool_calls[0]['args']['query']}")]}

    fast = in_two(one, state=Chat)
    for topic in MANY:
        found = fast.invoke({"messages": [("human", topic)]})["messages"]
        compared([(message.tool_calls[0]["id"], message.tool_calls[0]["args"]) for message in found[1:]])
    was_early(fast, accel_mode, 1)


def test_models_made_per_call(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """A node that makes its model anew, with fields that depend on the request, gets what that very model says."""

    def one(state: Topic) -> Topic:
        catch_up()
        style = state["topic"].split()[0] if "33" in state["topic"] else ""
        found = said(LocalChat(parts.probe, style=style), f"One {state['topic']}")
        catch_up()
        return {"notes": [found, said(LocalChat(parts.probe, style=style), f"Two {state['topic']}")]}

    def two(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(LocalChat(parts.probe), f"Three {state['topic']}")}

    fast = in_two(one, two)
    for topic in (*MANY, "amber 33"):
        fast.invoke({"topic": topic})
    compared(sorted(set(asked(parts))))
    was_early(fast, accel_mode, 1)


@pytest.mark.parametrize("made", ["before", "per call"])
def test_credentials_of_equal_looking_models(parts: Parts, accel_mode: str, compared: Compared, made: str) -> None:
    """Two models that differ in their key alone: each answers for its own, and no request goes out under another's."""
    declare(accel_mode, KeyedChat)
    held = {key: KeyedChat(parts.probe, api_key=SecretStr(key)) for key in ("ann", "bob")}

    def model(config: RunnableConfig) -> KeyedChat:
        key = config["configurable"]["user"]
        return held[key] if made == "before" else KeyedChat(parts.probe, api_key=SecretStr(key))

    def one(state: Topic, config: RunnableConfig) -> Topic:
        catch_up()
        first = said(model(config), f"One {state['topic']}")
        catch_up()
        return {"notes": [first, said(model(config), f"Two {state['topic']}")]}

    def two(state: Topic, config: RunnableConfig) -> Topic:
        catch_up()
        return {"answer": said(model(config), f"Three {state['topic']}")}

    fast = in_two(one, two)
    for number, topic in enumerate((*MANY, *MANY)):
        user = ("ann", "bob")[number % 2]
        parts.probe.calls.clear()
        found = fast.invoke({"topic": f"{topic} {number}"}, {"configurable": {"user": user}})
        assert all(text.startswith(f"[{user}]") for text in (*found["notes"], found["answer"]))
        if number > 2:  # by then it has shown that keys change
            assert all(text.startswith(f"system: key {user}\n") for text in asked(parts))
    was_early(fast, accel_mode, 2)


def test_tenants_in_context_variables(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Requests of several tenants at once, told apart by a ContextVar alone."""

    def one(state: Topic) -> Topic:
        return {"notes": [said(parts.tenant, f"{name} {state['topic']}") for name in ("One", "Two", "Three")]}

    def two(state: Topic) -> Topic:
        return {"answer": said(parts.tenant, f"Four {state['topic']}")}

    async def three(state: Topic) -> Topic:
        await acatch_up()
        return {"queries": [await asaid(parts.tenant, f"{name} {state['topic']}") for name in ("Five", "Six")]}

    async def serve(tenant: str, topic: str) -> Any:
        TENANT.set(tenant)
        return await fast.ainvoke({"topic": topic})

    async def all_at_once(topic: str) -> list[Any]:
        return await asyncio.gather(*(serve(tenant, topic) for tenant in ("a", "b", "c")))

    fast = in_two(one, two, three)
    for topic in MANY:
        for tenant, found in zip("abc", asyncio.run(all_at_once(topic)), strict=True):
            assert all(text.startswith(f"[{tenant}]") for text in (*found["notes"], found["answer"], *found["queries"]))
    was_early(fast, accel_mode, 1)


def test_a_loop_of_its_own_in_a_node(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """`asyncio.run` inside a sync node, with calls side by side."""

    async def gathered(topic: str) -> list[str]:
        first = await asaid(parts.local, f"First {topic}")
        return [first, *await asyncio.gather(*(asaid(parts.local, f"{name} {topic}") for name in ("a", "b", first)))]

    def one(state: Topic) -> Topic:
        catch_up()
        return {"notes": asyncio.run(gathered(state["topic"]))}

    def two(state: Topic) -> Topic:
        catch_up()
        return {"answer": asyncio.run(asaid(parts.local, f"Last {state['topic']}"))}

    fast = in_two(one, two)
    for topic in MANY:
        fast.invoke({"topic": topic})
    compared(sorted(set(asked(parts))))
    was_early(fast, accel_mode, 2)


@pytest.mark.parametrize("pool", ["per node", "lasting"])
def test_threads_without_a_context(parts: Parts, accel_mode: str, compared: Compared, pool: str) -> None:
    """A plain ThreadPoolExecutor knows nothing of the run: its calls are answered, and the rest goes on as ever."""
    lasting = ThreadPoolExecutor(2)

    def one(state: Topic) -> Topic:
        catch_up()
        prompts = [f"{name} {state['topic']}" for name in ("a", "b", "c")]
        if pool == "lasting":
            return {"notes": list(lasting.map(lambda prompt: said(parts.local, prompt), prompts))}
        with ThreadPoolExecutor(2) as executor:
            return {"notes": list(executor.map(lambda prompt: said(parts.local, prompt), prompts))}

    def two(state: Topic) -> Topic:
        catch_up()
        return {"answer": said(parts.local, "Join " + " ".join(state["notes"])), "queries": [
            said(parts.local, f"Aside {state['topic']}")]}  # fmt: skip

    fast = in_two(one, two)
    with lasting:
        for topic in MANY:
            fast.invoke({"topic": topic})
    assert len(set(asked(parts))) == 5 * len(set(MANY))
    was_early(fast, accel_mode, 1)
