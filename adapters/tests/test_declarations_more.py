"""`report().declarations`: options of `accelerate`, streaming and plans of their own, each in a program in which it
helps."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator, Iterator
from typing import Any, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import START, StateGraph

import accel
from accel import accelerate
from accel.process.clock import replaced
from accel.reports.declarations import Declaration
from adapters.tests.core_fakes import Chat, State, World, after_thinking, chain, forked, train
from adapters.tests.test_sdk_clients import last_run
from adapters.tests.three_calls import program


@pytest.fixture
def world() -> Generator[World]:
    """Components take the seconds that stand in their question ("3 s"), else one. Nothing else takes any time."""
    world, lock, now = World(), threading.Lock(), [0.0]

    def answer(text: str) -> str:
        with lock:
            now[0] += 3.0 if "3 s" in text else 1.0
        return f"answer to <{text}>"

    world.answer = answer
    with replaced(lambda: now[0]):
        yield world


def suggested(fast: Any) -> dict[str, Declaration]:
    assert accel.settle()
    return {each.kind: each for each in fast.report().declarations}


def watch_once(graph: Any, fast: Any, topic: str) -> None:
    """A run without early calls, so that the clock of this test says what each call takes by itself."""
    accelerate(graph, plan=fast.plan, speculate="off").invoke({"q": topic})


COMMON = tuple(f"the question of {what}" for what in ("bees", "iron", "bread", "the moon", "salt"))


def branching(world: World) -> Any:
    """Thinks, then goes left unless it is asked something rare."""
    model = Chat(world)

    def think(state: State) -> State:
        world.node("think")
        return {"b": model.invoke(f"Alpha asks: {state['q']}").content}

    def choose(state: State) -> State:
        return {"a": "right" if "rare" in state["q"] else "left"}

    def left(state: State) -> State:
        world.node("left")
        first = model.invoke(f"Gamma asks: {state['b']}").content
        return {"c": [first, model.invoke(f"Beta asks for 3 s: {state['q']}").content]}

    def right(state: State) -> State:
        return {"c": "rare"}

    return forked(think, choose, left, right)


@pytest.mark.parametrize(
    "options",
    [{"speculate": "certain"}, {"budget": accel.Budget(waste=0.0)}],
    ids=["only what is certain", "no waste at all"],
)
def test_likely(world: World, options: dict[str, Any]) -> None:
    graph = branching(world)
    fast = accelerate(graph, **options)
    train(fast, (COMMON[0], "something rare", *COMMON[1:]))
    watch_once(graph, fast, COMMON[0])
    found = suggested(fast)
    assert found["likely"].line == 'accel.accelerate(graph, speculate="likely")'
    assert found["likely"].gain_s == pytest.approx(1.0)
    assert found["likely"].where.startswith("test_declarations_more.py:branching")
    likely = accelerate(graph, speculate="likely")
    train(likely, (COMMON[0], "something rare", *COMMON[1:]))
    assert "likely" not in suggested(likely)


def test_likely_is_not_told_of_what_is_rare(world: World) -> None:
    fast = accelerate(branching(world), speculate="certain")
    train(fast, ("something rare", COMMON[0], *(f"a rare {what}" for what in COMMON[1:]), COMMON[2]))
    assert "likely" not in suggested(fast)


def test_plan_scope(world: World) -> None:
    """Every request has a metadata value of its own, which no two runs have shown not to matter."""
    model = Chat(world)
    graph = after_thinking(world, lambda state: model.invoke(f"Beta asks: {state['q']}").content)
    fast = accelerate(graph)
    for topic in COMMON[:3]:
        fast.invoke({"q": topic}, {"metadata": {"tenant": "acme"}})
        assert accel.settle()
    fast.invoke({"q": COMMON[3]}, {"metadata": {"tenant": "globex"}})
    found = suggested(fast)
    assert found["plan_scope"].line == "accel.accelerate(graph, plan_scope=tenant)"
    assert found["plan_scope"].gain_s == pytest.approx(1.0)
    scoped = accelerate(graph, plan_scope="globex")
    for topic in COMMON[:4]:
        scoped.invoke({"q": topic}, {"metadata": {"tenant": "globex"}})
        assert accel.settle()
    assert "plan_scope" not in suggested(scoped)


class Lister(Chat):
    """Writes a list; streams it, if it is asked to."""

    streaming: bool = False

    def _lines(self, messages: Any) -> list[str]:
        text = self._world.serve(self.label, str(messages[-1].content))
        return [f"the {of} thing of all that is worth {text[-9:-1]}\n" for of in ("red", "green", "blue", "grey")]

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("".join(self._lines(messages))))])

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for line in self._lines(messages):
            yield ChatGenerationChunk(message=AIMessageChunk(content=line))


class Telling(Lister):
    """Tells of its tokens also where it is not asked to stream: then nothing else may stand for its answer."""

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        lines = self._lines(messages)
        for line in lines if run_manager is not None else ():
            run_manager.on_llm_new_token(line)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("".join(lines)))])


accel.register(Lister, pure=True, local=True, concurrency=8)
accel.register(Telling, pure=True, local=True, concurrency=8)


@pytest.mark.parametrize("kind", [Lister, Telling])
def test_streaming(world: World, kind: type[Lister]) -> None:
    lister, model = kind(world), Chat(world)

    def a(state: State) -> State:
        world.node("a")
        return {"a": lister.invoke(f"List things about {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": [model.invoke(f"Beta asks: {line}").content for line in str(state["a"]).splitlines()[:2]]}

    graph = chain(("a", a), ("b", b))
    fast = accelerate(graph)
    train(fast, COMMON)
    watch_once(graph, fast, COMMON[0])
    found = suggested(fast)
    assert ("streaming" in found) == (kind is Lister), "it is said only where it would help"
    if kind is Lister:
        assert found["streaming"].line == "Lister(..., streaming=True)" and found["streaming"].gain_s > 0.0


class Slow(BaseChatModel):
    """It has both kinds of methods."""

    @property
    def _llm_type(self) -> str:
        return "slow"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        time.sleep(0.05)  # what there is to gain
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"{messages[-1].content}, briefly"))])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


class Coroutines(Slow):
    """A program without an event loop of its own comes to its coroutines all the same."""


def test_twins() -> None:
    accel.register(Coroutines, pure=True, local=True, concurrency=8)
    model = Coroutines()
    graph = program(lambda state, prompt: asyncio.run(model.ainvoke(prompt)).content)
    fast = accelerate(graph)
    for topic in COMMON[:4]:
        fast.invoke({"topic": topic})
        assert accel.settle()
    assert fast.report().retired == 0
    assert suggested(fast)["twins"].line == "accel.register(Coroutines, twins=True)"
    accel.register(Coroutines, twins=True)
    demanded, retired = last_run(graph)
    assert demanded == 3 and retired >= 1
    assert "twins" not in suggested(fast)


class Topic(TypedDict, total=False):
    topic: str
    all: list[str]


class Narrow(Slow):
    """Nobody said how many calls it takes at a time."""


def test_concurrency_of_models_that_are_made_for_each_call() -> None:
    """Early calls go through one that was made before, all of them."""
    accel.register(Narrow, pure=True, local=True)

    def ask(prompt: str) -> str:
        return str(Narrow().invoke(prompt).content)

    graph = StateGraph(Topic)
    graph.add_node(
        "all", lambda state: {"all": [ask(f"{each} of {state['topic']}") for each in ("dates", "men", "war")]}
    )
    fast = accelerate(graph.add_edge(START, "all").compile())
    for topic in COMMON[:4]:
        fast.invoke({"topic": topic})
        assert accel.settle()
    assert suggested(fast)["concurrency"].line == "accel.register(Narrow, concurrency=8)"


PROMPTS = {"price": "What is the price of {c} when asked {q}", "news": "What is new of {c} when asked {q}"}


@pytest.mark.parametrize(("names", "helps"), [("ABCDE", False), ("ABABE", True)])
def test_no_plan_for_each_value_is_advised_where_each_run_has_another(world: World, names: str, helps: bool) -> None:
    """The prompts are looked up, so that a name of the input may choose them. A plan of one run has learnt nothing."""
    model, kinds = Chat(world), list(PROMPTS)

    def write(state: State) -> list[Any]:
        return [model.invoke(PROMPTS[kind].format(c=state["c"], q=state["q"])).content for kind in kinds]

    fast = accelerate(after_thinking(world, write))
    for name, topic in zip(names, COMMON, strict=True):
        fast.invoke({"q": topic, "c": name})
        assert accel.settle()
    assert any("the input's c is new" in late.why for row in fast.report().rows for late in row.late)
    assert ("plan_scope" in suggested(fast)) == helps
