"""Components that ask LangGraph where they are: the node's own surroundings answer, and none of that is early."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import langgraph.config
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.config import get_config, get_store, get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.store.memory import InMemoryStore

import accel
from accel import accelerate
from accel.run.calls.call import Call
from accel.run.calls.calls import Calls
from accel.run.demands import demands
from accel.run.run import Run
from adapters.tests.core_fakes import Chat, State, World, as_text, chain

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "islands of Greece")
TOPIC = "beaches of Portugal"


@dataclass
class Context:
    user: str = "ann"


def of_config() -> Any:
    config = get_config()
    return f"{config['metadata']['langgraph_node']} {sorted(config['configurable'])[0][:8]} {'callbacks' in config}"


def of_namespace() -> Any:
    return get_config()["configurable"]["checkpoint_ns"].split(":")[0]


def of_store() -> Any:
    return get_store().get(("facts",), "one").value["said"]


def of_writer() -> Any:
    get_stream_writer()("written")
    return "wrote"


def of_runtime() -> Any:
    return get_runtime(Context).context.user


def of_dict() -> Any:
    return len(dict(get_config()["configurable"])) > 3


ASKS: dict[str, Callable[[], Any]] = {
    function.__name__: function for function in (of_config, of_namespace, of_store, of_writer, of_runtime, of_dict)
}


def of_user() -> Any:
    """The user's own values: nothing that only the node has."""
    configurable = get_config()["configurable"]
    return f"{configurable['tenant']} {configurable.get('nothing')} {'tenant' in configurable}"


class Asking(Chat):
    """Asks after it has spoken, where `asks` holds a word of its input."""

    asks: Any = None
    word: str = ""

    def _waits(self) -> None:
        gate = self._world.gates.get("asking")
        assert gate is None or gate.wait(20)

    def _ends(self, text: str) -> str:
        return f" {self.asks()}" if self.word in text else " done"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        said = self._world.serve(self.label, as_text(messages))
        self._waits()
        message = AIMessage(said + self._ends(as_text(messages)))
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        said = self._world.serve(self.label, as_text(messages))
        await asyncio.to_thread(self._waits)
        message = AIMessage(said + self._ends(as_text(messages)))
        return ChatResult(generations=[ChatGeneration(message=message)])


def piece(text: str) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=text))


class AskingStream(Asking):
    """Asks after its first piece."""

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[Any]:
        yield piece(self._world.serve(self.label, as_text(messages)))
        self._waits()
        yield piece(self._ends(as_text(messages)))

    async def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kw: Any) -> AsyncIterator[Any]:
        yield piece(self._world.serve(self.label, as_text(messages)))
        await asyncio.to_thread(self._waits)
        yield piece(self._ends(as_text(messages)))


def fresh(base: type) -> type:
    """A class of its own for each test: what a class was seen to do is remembered."""
    cls = type(base.__name__, (base,), {"__module__": base.__module__})
    accel.register(cls, pure=True, local=True, concurrency=8, streams_equal=True)
    return cls


def program(world: World, cls: type, asks: Callable[[], Any], word: str = "", how: str = "sync") -> Any:
    """A graph: node a thinks, node b asks a model of this class about the question."""
    thinker, model = Chat(world), cls(world, asks=asks, word=word)

    def a(state: State) -> State:
        world.node("a")
        return {"a": thinker.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        asked = f"Beta asks: {state['q']}"
        if how == "stream":
            return {"b": "".join(str(part.content) for part in model.stream(asked))}
        return {"b": model.invoke(asked).content}

    async def aa(state: State) -> State:
        await asyncio.to_thread(world.node, "a")
        return {"a": (await thinker.ainvoke(f"Alpha asks: {state['q']}")).content}

    async def ab(state: State) -> State:
        await asyncio.to_thread(world.node, "b")
        asked = f"Beta asks: {state['q']}"
        if how == "astream":
            return {"b": "".join([str(part.content) async for part in model.astream(asked)])}
        return {"b": (await model.ainvoke(asked)).content}

    builder = StateGraph(State, context_schema=Context)
    builder.add_node("a", aa if how.startswith("a") else a)
    builder.add_node("b", ab if how.startswith("a") else b)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    store = InMemoryStore()
    store.put(("facts",), "one", {"said": "the fact"})
    return builder.compile(store=store)


def told(graph: Any, how: str, topic: str) -> list[Any]:
    """All parts of a run, what was written included."""
    config, modes = {"configurable": {"tenant": "x"}}, ["updates", "custom"]
    if not how.startswith("a"):
        return list(graph.stream({"q": topic}, config, stream_mode=modes, context=Context()))

    async def collected() -> list[Any]:
        return [part async for part in graph.astream({"q": topic}, config, stream_mode=modes, context=Context())]

    return asyncio.run(collected())


HOWS = ["sync", "async", "stream", "astream"]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("asks", ASKS)
def test_who_asks_is_never_early(asks: str, how: str) -> None:
    """Not once: the first call, the program's own, has shown it. So nothing is said twice."""
    base = AskingStream if "stream" in how else Asking
    before, world = World(), World()
    plain = program(before, fresh(base), ASKS[asks], how=how)
    expected = [told(plain, how, topic) for topic in (*TOPICS, TOPIC)]
    fast = accelerate(program(world, fresh(base), ASKS[asks], how=how))
    found = []
    for topic in (*TOPICS, TOPIC):
        found.append(told(fast, how, topic))
        assert accel.settle()
    assert found == expected
    assert sorted(world.texts()) == sorted(before.texts())
    assert world.texts("Beta", early=True) == []
    assert "asks LangGraph" in fast.explain() + str(fast.report())


@pytest.mark.parametrize("joined", [True, False], ids=["joined", "not joined"])
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("asks", ASKS)
def test_what_only_an_early_call_comes_to_ask_is_asked_by_the_programs_own(
    asks: str, how: str, joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs before did not ask. The early call does, before or while the program waits for it; the program gets what
    it would have got, from its own call."""
    base = AskingStream if "stream" in how else Asking
    plain = program(World(), fresh(base), ASKS[asks], "Portugal", how)
    expected = told(plain, how, TOPIC)
    world = World()
    fast = accelerate(program(world, fresh(base), ASKS[asks], "Portugal", how))
    for topic in TOPICS:
        told(fast, how, topic)
        assert accel.settle()
    world.forget()
    gate = world.gates["asking"] = threading.Event()
    opened, dropped = demands.open_call, threading.Event()
    drop = Calls.drop

    def opening(run: Run, *args: Any) -> Call:
        call = opened(run, *args)
        if call.joined and "Beta" in str(call.input):
            happened.append("joined")
            gate.set()
        return call

    def dropping(calls: Calls, call: Call) -> None:
        drop(calls, call)
        dropped.set()

    happened: list[str] = []
    monkeypatch.setattr(demands, "open_call", opening)
    monkeypatch.setattr(Calls, "drop", dropping)

    def starts() -> None:
        world.wait_early("Beta asks", over=False)
        if not joined:
            gate.set()
            assert dropped.wait(20)

    world.hooks["b"] = starts
    assert told(fast, how, TOPIC) == expected
    assert len(world.texts("Beta", early=True)) == len(world.texts("Beta", early=False)) == 1
    assert happened == (["joined"] if joined else [])
    assert accel.settle()
    world.forget()
    world.hooks.clear()
    told(fast, how, TOPIC)
    assert world.texts("Beta", early=True) == []


def test_the_users_own_values_are_there_early() -> None:
    world = World()
    fast = accelerate(program(world, fresh(Asking), of_user))
    for topic in TOPICS:
        told(fast, "sync", topic)
        assert accel.settle()
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    (_, (_, update)) = told(fast, "sync", TOPIC)
    assert update == {"b": {"b": f"answer to <Beta asks: {TOPIC}> x None True"}}


def test_a_pure_function_that_asks_is_not_early_and_another_one_is() -> None:
    world = World()
    model = Chat(world)

    def asking(text: str) -> str:
        world.serve("asking", text)
        return f"{text} {of_config()}"

    def silent(text: str) -> str:
        return world.serve("silent", text)

    pure, quiet = accel.pure(asking, concurrency=4), accel.pure(silent, concurrency=4)

    def a(state: State) -> State:
        world.node("a")
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": [pure(f"asking {state['q']}"), quiet(f"silent {state['q']}")]}

    graph = chain(("a", a), ("b", b))
    expected = graph.invoke({"q": TOPIC})
    fast = accelerate(graph)
    for topic in TOPICS:
        fast.invoke({"q": topic})
        assert accel.settle()
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("silent")
    assert fast.invoke({"q": TOPIC}) == expected
    assert world.texts("asking", early=True) == []


def test_what_a_component_does_to_its_configuration_is_done() -> None:
    def changes() -> Any:
        config = get_config()
        config["configurable"]["left"] = "here"
        config.setdefault("tags", []).append("x")
        return sorted(key for key in get_config()["configurable"] if not key.startswith("__"))

    plain = program(World(), fresh(Asking), changes)
    fast = accelerate(program(World(), fresh(Asking), changes))
    assert [told(fast, "sync", topic) for topic in TOPICS] == [told(plain, "sync", topic) for topic in TOPICS]


def test_the_node_itself_gets_langgraphs_own_configuration() -> None:
    seen: list[Any] = []

    def b(state: State) -> State:
        seen.append(type(get_config()))
        return {"b": "b"}

    accelerate(chain(("b", b))).invoke({"q": TOPIC})
    assert seen == [dict]


def test_uninstall_gives_the_variable_back() -> None:
    from langchain_core.runnables.config import var_child_runnable_config

    accelerate(chain(("b", lambda state: {"b": "b"})))
    assert langgraph.config.var_child_runnable_config is not var_child_runnable_config
    accel.uninstall()
    assert langgraph.config.var_child_runnable_config is var_child_runnable_config
