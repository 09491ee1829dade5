"""`report().declarations`: for every kind a program in which it helps, and does once its line is pasted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.tools import BaseTool

import accel
from accel import accelerate
from accel.process.clock import replaced
from accel.reports.declarations import Declaration
from accel.reports.limits.replay import Replay
from accel.run.settings import Settings
from adapters.tests.core_fakes import (
    Chat,
    CountingChat,
    NarrowChat,
    State,
    Store,
    UnknownChat,
    World,
    after_thinking,
    chain,
    train,
)
from adapters.tests.test_listed_reads import Posting

TOPIC = "beaches of Portugal"
Read = Callable[[str], Any]


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


def program(world: World, read: Read, *more: Read, needs: str = "q", **options: Any) -> Any:
    """a asks a model; then the others read about the question (or about the answer), which was known all along."""

    def reading(read: Read) -> Callable[[State], Any]:
        return lambda state: read(state[needs])  # type: ignore[literal-required]

    return after_thinking(world, *map(reading, (read, *more)), **options)


def suggested(fast: Any) -> list[Declaration]:
    assert accel.settle()
    found = fast.report().declarations
    assert isinstance(found, list)
    return found


def paste(line: str, cls: type) -> None:
    exec(line, {"accel": accel, cls.__name__: cls})  # noqa: S102 - as a user would


def searching(store: Store) -> Read:
    return lambda q: [d.page_content for d in store.similarity_search(q)]


def asking(model: Any) -> Read:
    return lambda q: model.invoke(f"Beta asks: {q}").content


def own(base: type, **facts: Any) -> Any:
    """A class of this test's own: what is declared of it is over with the test."""
    cls = type(f"My{base.__name__}", (base,), {"__module__": __name__})
    if facts:
        accel.register(cls, **facts)
    return cls


def test_readonly(world: World) -> None:
    MyStore = own(Store)
    store = MyStore(world, {"1": "one row", "2": "another row"})
    fast = accelerate(program(world, searching(store)))
    train(fast)
    (found,) = suggested(fast)
    assert (found.kind, found.component, found.calls, found.together) == ("readonly", "MyStore", 1, False)
    assert found.line == "accel.register(MyStore, readonly=True)"
    assert found.sure == "nobody changes what any MyStore reads during a run"
    assert found.where.startswith("test_declarations.py:searching.<locals>.<lambda>:")
    assert f"  {found.line}" in str(fast.report())
    paste(found.line, MyStore)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early(TOPIC)
    fast.invoke({"q": TOPIC})
    assert len(world.texts(TOPIC)) == 1, "the program's own search was spared"
    assert suggested(fast) == []
    assert "would gain" not in str(fast.report())


def test_readonly_of_a_tool_that_may_see_writes(world: World) -> None:
    class Lookup(BaseTool):
        name: str = "lookup"
        description: str = "Looks things up."

        def _run(self, query: str) -> str:
            return world.serve("lookup", query)

    accel.register(Lookup, pure=True, local=True)
    fast = accelerate(program(world, Lookup().invoke))
    train(fast)
    (found,) = suggested(fast)
    assert found.line == "accel.register(Lookup, readonly=True)"
    paste(found.line, Lookup)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early(TOPIC)
    fast.invoke({"q": TOPIC})
    assert len(world.texts(TOPIC)) == 1
    assert suggested(fast) == []


def test_readonly_of_a_tool_that_nobody_declared(world: World) -> None:
    """Its class is one of a listed tool's, so its calls are seen; what they do beside is not known."""
    tool = Posting(api_wrapper=world)
    accel.register(tool, local=True)
    fast = accelerate(program(world, tool.invoke))
    train(fast)
    (found,) = suggested(fast)
    assert found.line == "accel.register(Posting, readonly=True)"
    paste("accel.register(Posting, readonly=False)", Posting)
    fast.invoke({"q": TOPIC})
    assert suggested(fast) == [], "the user has said no"


def test_pure(world: World) -> None:
    MyCountingChat = own(CountingChat)
    fast = accelerate(program(world, asking(MyCountingChat(world))), egress="inputs")
    train(fast)
    (found,) = suggested(fast)
    assert found.line == "accel.register(MyCountingChat, pure=True)"
    assert found.calls == 1 and "don't depend on earlier calls" in found.sure
    paste(found.line, MyCountingChat)
    world.hooks["b"] = lambda: world.wait_early("Beta asks: beaches")
    fast.invoke({"q": TOPIC})
    assert suggested(fast) == []


def test_concurrency(world: World) -> None:
    MyNarrowChat = own(NarrowChat)
    model = MyNarrowChat(world)
    fast = accelerate(program(world, lambda q: [model.invoke(f"Part {n} of {q}").content for n in ("one", "two")]))
    train(fast)
    (found,) = suggested(fast)
    assert found.line == "accel.register(MyNarrowChat, concurrency=8)"
    assert found.sure.startswith("8 threads may be inside one MyNarrowChat: early calls begin while fewer are,")
    paste(found.line, MyNarrowChat)
    gate = world.gates["Part "] = threading.Event()

    def both() -> None:
        for part in ("one", "two"):
            world.wait_early(f"Part {part} of beaches", over=False)
        gate.set()

    world.hooks["b"] = both
    fast.invoke({"q": TOPIC})
    assert world.most["chat"] >= 2
    assert suggested(fast) == []


def test_egress(world: World) -> None:
    MyRemote = own(UnknownChat, pure=True, concurrency=8)
    graph = program(world, asking(MyRemote(world, base_url="https://api.example.com/v1")))
    fast = accelerate(graph)
    train(fast)
    (found,) = suggested(fast)
    assert found.line == 'accel.accelerate(graph, egress="inputs")'
    assert found.component == "MyUnknownChat"
    assert found.sure == "MyUnknownChat may get values before the program sends them, also if it then doesn't"
    faster = eval(found.line, {"accel": accel, "graph": graph})  # noqa: S307 - as a user would
    train(faster)
    world.hooks["b"] = lambda: world.wait_early("Beta asks: beaches")
    faster.invoke({"q": TOPIC})
    assert suggested(faster) == []


def test_a_value_that_the_endpoint_has_needs_no_egress(world: World) -> None:
    """The second question is held only by what the first one took there: no gain in allowing more."""
    MyRemote = own(UnknownChat, pure=True, concurrency=8)
    remote = MyRemote(world, base_url="https://api.example.com/v1")

    def a(state: State) -> State:
        world.node("a")
        return {"a": remote.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": remote.invoke(f"Beta asks: {state['q']}").content}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)
    assert suggested(fast) == []


def test_local(world: World) -> None:
    MyServer = own(UnknownChat, pure=True, concurrency=8)
    fast = accelerate(program(world, asking(MyServer(world, base_url="http://llm.internal:8000/v1"))))
    train(fast)
    (found,) = suggested(fast)
    assert found.line == "accel.register(MyUnknownChat, local=True)"
    assert found.sure == "what MyUnknownChat is sent stays on your own network (http://llm.internal:8000/v1)"
    paste(found.line, MyServer)
    world.hooks["b"] = lambda: world.wait_early("Beta asks: beaches")
    fast.invoke({"q": TOPIC})
    assert suggested(fast) == []


def test_two_kinds_are_ranked_by_what_they_gain(world: World) -> None:
    MyStore, MyRemote = own(Store), own(UnknownChat, pure=True, concurrency=8)
    remote = MyRemote(world, base_url="https://api.example.com/v1")
    store = MyStore(world, {"1": "a row", "2": "another row"})
    fast = accelerate(program(world, searching(store), lambda q: remote.invoke(f"Think for 3 s of {q}").content))
    train(fast)
    found = suggested(fast)
    assert [each.kind for each in found] == ["egress", "readonly"]
    assert found[0].gain_s > found[1].gain_s > 0
    text = str(fast.report())
    assert text.index("What would gain more") < text.index(found[0].line) < text.index(found[1].line)
    assert text.index("all of these lines together") < text.index(found[0].line)
    together_s = fast.report().to_dict()["gains_together_s"]
    assert together_s == pytest.approx(found[0].gain_s), "nobody waits for the search beside a model that thinks longer"


def test_what_is_held_twice_needs_both_lines(world: World) -> None:
    MyCountingChat = own(CountingChat)
    graph = program(world, asking(MyCountingChat(world)))
    fast = accelerate(graph)
    train(fast)
    found = suggested(fast)
    assert {each.kind for each in found} == {"egress", "pure"} and all(each.together for each in found)
    assert "with the other lines" in str(found[0])
    paste(next(each.line for each in found if each.kind == "pure"), MyCountingChat)
    fast.invoke({"q": TOPIC})
    (left,) = suggested(fast)
    assert left.kind == "egress" and not left.together


def test_what_waits_for_another_answer_gains_nothing(world: World) -> None:
    MyStore, MyCountingChat = own(Store), own(CountingChat)
    store = MyStore(world, {"1": "a row", "2": "another row"})
    fast = accelerate(program(world, searching(store), asking(MyCountingChat(world)), needs="a"), egress="inputs")
    train(fast)
    assert [each.kind for each in suggested(fast)] == ["pure"], "it needs not wait for the search"
    fast = accelerate(program(world, searching(store), needs="a"))
    train(fast)
    assert suggested(fast) == []
    assert "would gain" not in str(fast.report())


def test_who_wants_nothing_early_is_told_nothing(world: World) -> None:
    fast = accelerate(program(world, asking(own(CountingChat, local=True)(world))), speculate="off")
    train(fast)
    assert suggested(fast) == []


def test_a_store_that_the_program_writes_to_is_not_called_readonly(world: World) -> None:
    store = own(Store)(world, {"1": "a row", "2": "another row"})

    def read(q: str) -> list[str]:
        found = [d.page_content for d in store.similarity_search(q)]
        store.add_texts([f"a note on {q}"])
        return found

    fast = accelerate(program(world, read))
    train(fast)
    assert suggested(fast) == []


def test_nothing_past_a_guard_is_suggested(world: World) -> None:
    MyCountingChat = own(CountingChat, local=True)
    graph = program(world, asking(MyCountingChat(world)))
    graph.builder.nodes["a"].metadata = {"guard": True}
    fast = accelerate(graph.builder.compile())
    train(fast)
    assert suggested(fast) == []


def test_nothing_is_suggested_for_a_model_behind_a_rate_limiter(world: World) -> None:
    limiter = InMemoryRateLimiter(requests_per_second=1000)
    MyRemote = own(UnknownChat, pure=True, concurrency=8)
    fast = accelerate(program(world, asking(MyRemote(world, rate_limiter=limiter))))
    train(fast, ("one topic", "two topics", "three topics"))  # the third one shows what holds it
    assert suggested(fast) == []


def test_what_the_user_has_said_is_not_asked_again(world: World) -> None:
    MyStore, MyNarrowChat = own(Store, readonly=False), own(NarrowChat, concurrency=1, pure=False)
    store = MyStore(world, {"1": "a row", "2": "another row"})
    fast = accelerate(program(world, searching(store), asking(MyNarrowChat(world))))
    train(fast)
    assert suggested(fast) == []


def test_before_any_run_there_is_nothing(world: World) -> None:
    fast = accelerate(program(world, asking(Chat(world))))
    assert fast.report().declarations == []


def test_a_run_in_which_everything_is_held_takes_as_long_as_it_did(world: World) -> None:
    counting = own(CountingChat)(world)
    calls = program(world, asking(counting), lambda q: [asking(counting)(f"{n} of {q}") for n in "xyz"])
    fast = accelerate(calls, egress="inputs")
    train(fast)
    trace = fast.plan.last
    replay = Replay(fast.plan, trace, Settings(speculate="off"))
    assert replay.run(frozenset()).end_s == pytest.approx(trace.ended_s - trace.started_s)
    assert replay.run(replay.rules()).end_s < trace.ended_s - trace.started_s
