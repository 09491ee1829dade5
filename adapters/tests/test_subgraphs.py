"""What nodes of graphs inside graphs computed is known to the calls after them, at every depth."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langgraph.graph import START, StateGraph
from langgraph.pregel._read import PregelNode
from langgraph.types import Command
from typing_extensions import TypedDict

import accel
from accel import accelerate
from accel.run.scope import scope
from adapters.tests import subgraph_programs as programs
from adapters.tests.catching_up import over
from adapters.tests.core_fakes import WAIT_S, Chat, World


class Patient(Chat):
    """Inside a call of the program's it waits until all that may be issued is, and done."""

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        assert _is_early() or accel.settle()
        for end in _under_way():
            end.result(WAIT_S)
        return self._result(messages, kwargs)

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        assert _is_early() or await asyncio.to_thread(accel.settle)
        for end in _under_way():
            await asyncio.wait_for(asyncio.wrap_future(end), WAIT_S)
        return self._result(messages, kwargs)


def _is_early() -> bool:
    here = scope.get()
    return here is None or here.early


def _under_way() -> list[Future[None]]:
    """Of a call of the program's: the early calls that nobody has asked for yet, each resolved when it is over."""
    here, found = scope.get(), []
    for call in here.run.calls.all() if here is not None and not here.early else ():
        if call.early and not call.demanded and not call.over:
            found.append(over(call))
    return found


accel.register(Patient, pure=True, local=True, concurrency=64)


def said(prompt: str) -> str:
    """Nothing of the prompt's, and something else for every prompt."""
    words = "amber birch copper delta ember fjord grove haven inlet jetty knoll ledge marsh north ochre pearl".split()
    digest = hashlib.sha256(prompt.encode()).digest()
    return " ".join(words[byte % 16] + words[byte // 16] for byte in digest[:6]).capitalize() + "."


def early(fast: Any) -> list[str]:
    """Where calls of the last run were answered by early ones."""
    return [call.site for call in fast.plan.last.calls if call.retired]


def compared(
    build: Callable[[Any], Any],
    inputs: Sequence[Any],
    ask: Callable[[Any, Any], Any],
    answer: Callable[[str], str] = said,
) -> list[int]:
    """How many calls of each request were answered early. All results are the plain program's, and no model was asked
    anything that the plain program doesn't ask: nothing of one visit comes into a prompt of another one beside it."""
    own, world = World(answer=answer), World(answer=answer)
    plain, fast = build(Chat(own)), accelerate(build(Patient(world)))
    counts = []
    for value in inputs:
        own.forget(), world.forget()
        assert ask(fast, value) == ask(plain, value)
        assert accel.settle()
        assert set(world.texts()) <= set(own.texts())
        counts.append(len(early(fast)))
    return counts


def invoke(graph: Any, value: Any) -> Any:
    return graph.invoke(value)


def ainvoke(graph: Any, value: Any) -> Any:
    return asyncio.run(graph.ainvoke(value))


def streamed(graph: Any, value: Any) -> Any:
    """What each graph of them said, in order: several side by side may take turns in any."""
    said: dict[tuple[str, ...], list[Any]] = {}
    for names, update in graph.stream(value, stream_mode="updates", subgraphs=True):
        said.setdefault(tuple(name.partition(":")[0] for name in names), []).append(update)
    return {names: sorted(map(str, map(bare, updates))) for names, updates in said.items()}


async def _astreamed(graph: Any, value: Any) -> Any:
    said: dict[tuple[str, ...], list[Any]] = {}
    async for names, update in graph.astream(value, stream_mode="updates", subgraphs=True):
        said.setdefault(tuple(name.partition(":")[0] for name in names), []).append(update)
    return {names: sorted(map(str, map(bare, updates))) for names, updates in said.items()}


def astreamed(graph: Any, value: Any) -> Any:
    return asyncio.run(_astreamed(graph, value))


def bare(update: Any) -> Any:
    """Without the ids that LangChain draws for messages."""
    if isinstance(update, BaseMessage):
        return update.content
    if isinstance(update, dict):
        return {key: bare(value) for key, value in update.items()}
    return [bare(value) for value in update] if isinstance(update, list) else update


@pytest.mark.parametrize("ask", [invoke, ainvoke, streamed, astreamed])
@pytest.mark.parametrize(
    ("build", "inputs", "least"),
    [
        (programs.shared, programs.QUESTIONS, 2),
        (programs.called, programs.TOPICS, 4),
        (programs.deep, programs.QUESTIONS, 2),
    ],
)
def test_calls_after_a_node_inside(build: Any, inputs: Any, least: int, ask: Any) -> None:
    """Those that quote what it returned, but for the first one, which follows at once."""
    assert min(compared(build, inputs, ask)[3:]) >= least


def test_an_answer_that_repeats_what_it_was_asked_is_no_better_source() -> None:
    """It comes later."""
    assert min(compared(programs.shared, programs.QUESTIONS, invoke, "The question was: {}".format)[3:]) >= 2


@pytest.mark.parametrize("ask", [invoke, streamed])
def test_a_graph_per_send(ask: Any) -> None:
    """The sections of all interviews, and the report."""
    counts = compared(programs.sent, programs.PANELS, ask)
    assert all(count >= len(panel["experts"]) for count, panel in zip(counts[3:], programs.PANELS[3:], strict=True))


@pytest.mark.parametrize("ask", [ainvoke, astreamed])
def test_coroutines_per_send(ask: Any) -> None:
    counts = compared(lambda llm: programs.sent(llm, awaited=True), programs.PANELS, ask)
    assert all(count >= len(panel["experts"]) for count, panel in zip(counts[3:], programs.PANELS[3:], strict=True))


@pytest.mark.parametrize("ask", [ainvoke, astreamed])
def test_rounds_of_graphs_side_by_side(ask: Any) -> None:
    """A second call about each subject, and the report."""
    counts = compared(programs.supervised, programs.BRIEFS, ask)
    assert all(count > len(brief["subjects"]) for count, brief in zip(counts[3:], programs.BRIEFS[3:], strict=True))


def test_graphs_that_start_side_by_side_in_any_order() -> None:
    """What one of them found is not asked about with the topic of another."""
    names = list(programs.LIBRARY)
    questions: list[Any] = [{"question": ", ".join([names[n], names[n - 1], names[n - 3]])} for n in range(6)]
    starting: list[str] = []

    def build(llm: Any) -> Any:
        begun, happened = list[str](), threading.Condition()

        def look_up(state: Desk) -> Desk:
            with happened:
                begun.append(state["question"])
                happened.notify_all()
                assert happened.wait_for(lambda: len(begun) == len(starting), WAIT_S)
            return {"context": " / ".join(programs.found(state["question"][::-1]))}

        library = StateGraph(Desk)
        library.add_sequence([look_up])
        library.add_edge(START, "look_up")
        looked_up = library.compile()

        def research(topic: str) -> str:
            with happened:
                assert happened.wait_for(lambda: starting[len(begun)] == topic, WAIT_S)
            notes = looked_up.invoke({"question": topic[::-1]})["context"]
            return llm.invoke(f"What is new in {topic}? {notes}").content + llm.invoke(f"{topic}? {notes}").content

        def desk(state: Desk) -> Desk:
            begun.clear()
            topics = state["question"].split(", ")
            starting[:] = topics[::-1] if state["question"] == questions[-1]["question"] else topics
            with ThreadPoolExecutor() as pool:
                done = [pool.submit(contextvars.copy_context().run, research, topic) for topic in topics]
                return {"reply": "; ".join(one.result() for one in done)}

        graph = StateGraph(Desk)
        graph.add_sequence([desk])
        graph.add_edge(START, "desk")
        return graph.compile()

    compared(build, questions, invoke)


# --- control --------------------------------------------------------------------------------------------------------


class Desk(TypedDict, total=False):
    question: str
    context: str
    first: str
    second: str
    reply: str


def handed_over(llm: Any) -> Any:
    """A graph inside ends with a command to the graph around it."""

    def triage(state: Desk) -> Desk:
        return {"context": " / ".join(programs.found(state["question"]))}

    def first(state: Desk) -> Desk:
        return {"first": llm.invoke(f"In short: {state['context']}").content}

    def second(state: Desk) -> Any:
        said = llm.invoke(f"At length: {state['context']}").content
        return Command(goto="reply", update={"second": said, "context": state["context"]}, graph=Command.PARENT)

    inner = StateGraph(Desk)
    inner.add_sequence([triage, first, second])
    inner.add_edge(START, "triage")

    def reply(state: Desk) -> Desk:
        greeting = llm.invoke(f"Greet a reader who asks: {state['question']}").content
        return {"reply": greeting + llm.invoke(f"Reply from {state['context']}").content}

    graph = StateGraph(Desk)
    graph.add_node("desk", inner.compile(), destinations=("reply",))
    graph.add_node("reply", reply)
    graph.add_edge(START, "desk")
    return graph.compile()


def test_a_command_to_the_graph_around_is_no_failure() -> None:
    """The second call inside, and the reply, which quotes what the first node inside found."""
    assert min(compared(handed_over, programs.QUESTIONS, invoke)[3:]) >= 2


def rescued(llm: Any, errors: bool = True) -> Any:
    """A node of a graph inside raises, and the node around it goes on without."""

    def look_up(state: Desk) -> Desk:
        return {"context": " / ".join(programs.found(state["question"]))}

    def check(state: Desk) -> Desk:
        if errors and "salt" in state["question"]:
            raise ValueError("salt is a trade secret")
        return {}

    def tell(state: Desk) -> Desk:
        return {"first": llm.invoke(f"Tell: {state['context']}").content}

    def more(state: Desk) -> Desk:
        return {"second": llm.invoke(f"Tell more: {state['context']}").content}

    inner = StateGraph(Desk)
    inner.add_sequence([look_up, check, tell, more])
    inner.add_edge(START, "look_up")
    told = inner.compile()

    def desk(state: Desk) -> Desk:
        try:
            return {"reply": told.invoke({"question": state["question"]})["second"]}
        except ValueError as error:
            return {"reply": f"We can't say: {error}"}

    graph = StateGraph(Desk)
    graph.add_sequence([desk])
    graph.add_edge(START, "desk")
    return graph.compile()


def test_nothing_is_issued_past_a_node_inside_that_ever_raised() -> None:
    assert min(compared(lambda llm: rescued(llm, errors=False), programs.QUESTIONS, invoke)[3:]) > 0
    assert compared(rescued, programs.QUESTIONS, invoke)[-2:] == [0, 0], "the last but one raised"


def test_an_accelerated_graph_inside_another_one_is_seen_as_well() -> None:
    def build(llm: Any) -> Any:
        inner = accelerate(programs.shared(llm))

        def desk(state: Desk) -> Desk:
            return {"reply": inner.invoke({"question": state["question"]})["answer"]}

        graph = StateGraph(Desk)
        graph.add_sequence([desk])
        graph.add_edge(START, "desk")
        return graph.compile()

    assert min(compared(build, programs.QUESTIONS, invoke)[3:]) >= 2


def test_what_goes_on_beyond_the_end_of_a_run_is_no_part_of_it() -> None:
    """A node starts work in the background, which runs graphs as long as the process lives."""
    ended, told = threading.Event(), []
    library = StateGraph(Desk)
    library.add_node("look_up", lambda state: {"context": " / ".join(programs.found(state["question"]))})
    library.add_edge(START, "look_up")
    looked_up = library.compile()

    def watch_news() -> None:
        assert ended.wait(WAIT_S)
        told.extend(looked_up.invoke(value) for value in programs.QUESTIONS)

    def desk(state: Desk) -> Desk:
        threads.append(threading.Thread(target=contextvars.copy_context().run, args=(watch_news,)))
        threads[-1].start()
        return {"reply": looked_up.invoke(state)["context"]}

    threads: list[threading.Thread] = []
    graph = StateGraph(Desk)
    graph.add_sequence([desk])
    graph.add_edge(START, "desk")
    fast = accelerate(graph.compile())
    fast.invoke(programs.QUESTIONS[0])
    assert accel.settle()
    seen = fast.plan.last
    visits = list(seen.visits)
    ended.set()
    threads[0].join(WAIT_S)
    assert len(told) == len(programs.QUESTIONS)
    assert [visit.node for visit in seen.visits] == [visit.node for visit in visits] == ["desk", "desk:look_up"]


def test_uninstalling_gives_nodes_back() -> None:
    before = vars(PregelNode)["node"]
    accelerate(programs.shared(Chat(World())))
    accel.uninstall()
    try:
        assert type(vars(PregelNode)["node"]) is cached_property
    finally:
        accelerate(programs.shared(Chat(World())))
    assert type(vars(PregelNode)["node"]) is type(before) is not cached_property
