"""Invariants 1 to 3: who runs what, and which results may answer which demands."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig, RunnableLambda, ensure_config
from langchain_core.runnables.config import var_child_runnable_config
from pydantic import SecretStr

import accel
from accel import accelerate
from accel.errors import AccelError
from accel.run.calls.call import Call
from accel.run.calls.calls import Calls
from adapters.tests.catching_up import catch_up
from adapters.tests.core_fakes import (
    TENANT,
    TOPICS,
    WAIT_S,
    Chat,
    CountingChat,
    ReadonlyStore,
    State,
    TenantChat,
    UnknownChat,
    World,
    as_text,
    chain,
    three,
    train,
)

TOPIC = "beaches of Portugal"
A, B = f"answer to <Alpha asks: {TOPIC}>", f"answer to <Beta asks: {TOPIC}>"
RESULT = {"q": TOPIC, "a": A, "b": B, "c": f"answer to <Gamma joins {A} with {B}.>"}


def ready(world: World, model: Any, other: Any = None, **options: Any) -> Any:
    """`three`, trained, with nothing in the log."""
    fast = accelerate(three(world, model, other), **options)
    train(fast)
    world.forget()
    return fast


def early_before(world: World, node: str, text: str) -> None:
    """Let `node` begin only after an early call with `text` is over."""
    world.hooks[node] = lambda: world.wait_early(text)


# --- 1. user code runs as written ---------------------------------------------------------------------------------


def test_each_node_runs_once_and_in_order_while_calls_run_early() -> None:
    world = World()
    fast = ready(world, Chat(world))
    early_before(world, "b", "Beta asks")
    assert fast.invoke({"q": TOPIC}) == RESULT
    assert world.visits == ["a", "b", "c"]
    assert len(world.calls) == 3, "the early call is the call: nothing is called twice"


def test_nodes_stay_in_the_callers_thread() -> None:
    world = World()
    fast = ready(world, Chat(world))
    threads: list[threading.Thread] = []
    for name in "abc":
        world.hooks[name] = lambda: threads.append(threading.current_thread())
    assert fast.invoke({"q": TOPIC}) == RESULT
    assert threads == [threading.current_thread()] * 3


async def test_async_nodes_stay_on_the_callers_loop() -> None:
    world = World()
    model = Chat(world)
    loops: list[object] = []

    async def a(state: State) -> State:
        loops.append(asyncio.get_running_loop())
        return {"a": (await model.ainvoke(f"Alpha asks: {state['q']}")).content}

    async def b(state: State) -> State:
        loops.append(asyncio.get_running_loop())
        return {"b": (await model.ainvoke(f"Beta asks: {state['q']}")).content}

    fast = accelerate(chain(("a", a), ("b", b)))
    for topic in ("volcanoes of Iceland", "glaciers of Norway", TOPIC):
        assert (await fast.ainvoke({"q": topic}))["b"] == f"answer to <Beta asks: {topic}>"
        assert await asyncio.to_thread(accel.settle)
    assert loops == [asyncio.get_running_loop()] * 6


def test_a_node_with_effects_only_never_runs_ahead() -> None:
    world = World()
    model = Chat(world)
    effects: list[str] = []

    def a(state: State) -> State:
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def effect(state: State) -> State:
        effects.append(state["a"])
        return {}

    def c(state: State) -> State:
        world.node("c")
        return {"c": model.invoke(f"Gamma ends {state['a']}").content}

    fast = accelerate(chain(("a", a), ("effect", effect), ("c", c)))
    train(fast)
    effects.clear()
    world.hooks["c"] = lambda: world.wait_early("Gamma ends")
    fast.invoke({"q": TOPIC})
    assert effects == [A]


# --- 2. only pure components are issued ----------------------------------------------------------------------------


def test_a_model_that_nobody_vouches_for_is_never_called_early() -> None:
    world = World()
    model = CountingChat(world)
    fast = accelerate(three(world, model), egress="inputs")
    train(fast, ("one topic", "two topics", "three topics", "four topics"))
    assert world.texts(early=True) == []
    assert model.count == 12
    assert fast.report().issued == 0
    assert "CountingChat is not called early: nobody vouches for it" in str(fast.report())


def test_a_model_that_overrides_a_leaf_is_never_called_early() -> None:
    class Louder(Chat):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            return super()._generate(messages, stop, run_manager, **kwargs)

    world = World()
    model = Louder(world)
    fast = accelerate(three(world, model), egress="inputs")
    train(fast, ("one topic", "two topics", "three topics", "four topics"))
    assert world.texts(early=True) == []


def test_what_is_said_of_an_object_goes_before_what_is_said_of_its_class() -> None:
    world = World()
    model = accel.register(Chat(world), pure=False)
    fast = accelerate(three(world, model))
    train(fast, ("one topic", "two topics", "three topics"))
    assert world.texts(early=True) == []


def test_an_impure_embedding_is_called_as_often_as_the_program_calls_it() -> None:
    numbers = itertools.count(1)

    class CountingEmbed(Embeddings):
        def embed_query(self, text: str) -> list[float]:
            return [float(next(numbers))]

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

    embed = CountingEmbed()

    def a(state: State) -> State:
        return {"a": embed.embed_query(state["q"]), "b": embed.embed_query(state["q"])}

    fast = accelerate(chain(("a", a)))
    assert fast.invoke({"q": TOPIC}) == {"q": TOPIC, "a": [1.0], "b": [2.0]}


def test_a_model_that_looks_at_its_callback_manager_is_found_out() -> None:
    class Telling(Chat):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            return self._result(messages, {} if run_manager.run_id else {"without": "an id"})

    accel.register(Telling, pure=True, local=True, concurrency=8)
    world = World()
    fast = ready(world, Telling(world))
    for _ in range(2):
        assert fast.invoke({"q": TOPIC}) == RESULT
        assert accel.settle()
    world.forget()
    fast.invoke({"q": TOPIC})
    assert world.texts(early=True) == []


class Tokens(BaseCallbackHandler):
    """Hears what is told of tokens, and of ends; `raises`: at a token."""

    def __init__(self, raises: str = "") -> None:
        self.heard: list[str] = []
        self.raise_error = bool(raises)
        self.raises = raises

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        self.heard.append(str(token))
        if token == self.raises:
            raise ValueError(token)

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        self.heard.append("end")


class TellsTokens(UnknownChat):
    """As Ollama's client: listeners hear of every token, also where nobody streams."""

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        result = self._result(messages, kwargs)
        for word in result.generations[0].text.split() if run_manager is not None else ():
            run_manager.on_llm_new_token(word)
        return result

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        result = self._result(messages, kwargs)
        for word in result.generations[0].text.split() if run_manager is not None else ():
            await run_manager.on_llm_new_token(word)
        return result


accel.register(TellsTokens, pure=True, local=True, concurrency=8)


def two(world: World, early: bool, awaited: bool) -> Any:
    """a and b ask a model about the question. `early`: b only after an early call has asked that."""
    model = TellsTokens(world)

    def a(state: State) -> State:
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        if early:
            world.wait_early(f"Beta asks: {state['q']}")
        return {"b": model.invoke(f"Beta asks: {state['q']}").content}

    async def aa(state: State) -> State:
        return {"a": (await model.ainvoke(f"Alpha asks: {state['q']}")).content}

    async def ab(state: State) -> State:
        if early:
            await asyncio.to_thread(world.wait_early, f"Beta asks: {state['q']}")
        return {"b": (await model.ainvoke(f"Beta asks: {state['q']}")).content}

    return chain(("a", aa), ("b", ab)) if awaited else chain(("a", a), ("b", b))


@pytest.mark.parametrize("raises", ["", "<Beta"])
@pytest.mark.parametrize("awaited", [False, True])
def test_tokens_that_an_early_call_told_of_are_told_where_the_program_makes_it(awaited: bool, raises: str) -> None:
    world, said = World(), []

    def ask(graph: Any, topic: str, tokens: Tokens) -> Any:
        config: Any = {"callbacks": [tokens]}
        try:
            return asyncio.run(graph.ainvoke({"q": topic}, config)) if awaited else graph.invoke({"q": topic}, config)
        except ValueError as error:
            return repr(error)

    fast = accelerate(two(world, early=False, awaited=awaited))
    for topic in TOPICS:
        ask(fast, topic, Tokens())
        assert accel.settle()
    patient = accelerate(two(world, early=True, awaited=awaited), plan=fast.plan)
    for graph in (two(world, early=False, awaited=awaited), patient):
        tokens = Tokens(raises)
        said.append((ask(graph, TOPIC, tokens), tokens.heard))
    assert said[0] == said[1] and said[0][1].count("end") == (1 if raises else 2)
    assert accel.settle() and world.texts("Beta", early=True)
    assert [call.retired for call in patient.plan.last.calls] == [False, not raises]


@pytest.mark.parametrize("swallows", [False, True])
def test_a_model_that_runs_a_runnable_of_its_own_is_found_out(swallows: bool) -> None:
    """Whoever listens to the program hears that runnable, in its place; also if it is run for the first time."""
    heard: list[str] = []
    loud = False
    polish = RunnableLambda(lambda text: text)

    class Composed(Chat):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            try:
                if loud:
                    polish.invoke("text")
            except Exception:
                if not swallows:
                    raise
            return self._result(messages, kwargs)

    class Listening(BaseCallbackHandler):
        def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            if outputs == "text":
                heard.append("polish")

    accel.register(Composed, pure=True, local=True, concurrency=8)
    world = World()
    fast = ready(world, Composed(world))
    early_before(world, "b", "Beta asks")
    fast.invoke({"q": TOPIC})
    world.hooks.clear()
    loud = True
    for _ in range(3):
        world.forget()
        heard.clear()
        assert fast.invoke({"q": TOPIC}, {"callbacks": [Listening()]}) == RESULT
        assert heard == ["polish"] * 3
        assert accel.settle()
    assert world.texts(early=True) == []


def test_a_model_that_catches_what_an_early_call_is_refused() -> None:
    """It makes something else of it, which is not what the program gets."""
    world = World()
    expert = CountingChat(world)

    class Consulting(Chat):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            result = self._result(messages, kwargs)
            if TOPIC in as_text(messages):
                try:
                    expert._generate(messages)
                except AccelError:
                    result.generations[0].message.content += " nobody knows"
            return result

    accel.register(Consulting, pure=True, local=True, concurrency=8)
    fast = ready(world, Consulting(world))
    early_before(world, "b", "Beta asks")
    assert fast.invoke({"q": TOPIC}) == RESULT
    assert expert.count == 3


# --- 3. exact match or nothing --------------------------------------------------------------------------------------


def issue_then(world: World, change: Any) -> None:
    """Before node b makes its call, which has been made early already, do `change`."""

    def hook() -> None:
        world.wait_early("Beta asks")
        change()

    world.hooks["b"] = hook


def test_a_field_changed_between_issue_and_demand_counts() -> None:
    world = World()
    model = Chat(world)
    fast = ready(world, model)

    def restyle() -> None:
        model.style = " loudly"

    issue_then(world, restyle)
    assert fast.invoke({"q": TOPIC})["b"] == B + " loudly"


def test_a_secret_changed_between_issue_and_demand_counts() -> None:
    world = World()
    model = Chat(world, secret=SecretStr("one"))
    fast = ready(world, model)

    def rotate() -> None:
        model.secret = SecretStr("two")

    issue_then(world, rotate)
    assert fast.invoke({"q": TOPIC})["b"] == B
    assert len(world.texts("Beta asks")) == 2, "the early call was made with the other secret"


def test_an_equal_secret_in_a_new_object_does_not_count() -> None:
    world = World()
    model = Chat(world, secret=SecretStr("one"))
    fast = ready(world, model)

    def rotate() -> None:
        model.secret = SecretStr("one")

    issue_then(world, rotate)
    assert fast.invoke({"q": TOPIC})["b"] == B
    assert len(world.texts("Beta asks")) == 1


def test_a_changed_keyword_is_another_call() -> None:
    world = World()
    model = Chat(world)
    options: dict[str, Any] = {"length": 5}

    def a(state: State) -> State:
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": model.invoke(f"Beta asks: {state['q']}", **options).content}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)

    def longer() -> None:
        options["length"] = 6

    issue_then(world, longer)
    assert fast.invoke({"q": TOPIC})["b"] == B + "{'length': 6}"


def test_an_object_in_the_input_changed_in_place_is_another_call() -> None:
    class Filter:
        level = 1

        def __repr__(self) -> str:
            return f"level {self.level}"

    world = World()
    model = Chat(world)
    wanted = Filter()

    def a(state: State) -> State:
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": model.invoke(f"Beta asks: {state['q']}", wanted=wanted).content}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)

    def higher() -> None:
        if world.texts("Beta asks", early=True):
            world.wait_early("Beta asks")
        wanted.level = 2

    # Node a is over only when the call of b, were it issued, is: no early call is also a pass.
    world.hooks["b"] = lambda: (accel.settle(), higher())  # type: ignore[func-returns-value]
    assert fast.invoke({"q": TOPIC})["b"] == B + "{'wanted': level 2}"


def test_a_context_variable_changed_between_issue_and_demand_counts() -> None:
    world = World()
    fast = ready(world, TenantChat(world))

    def become() -> None:
        TENANT.set("another")

    issue_then(world, become)
    result = fast.invoke({"q": TOPIC})
    assert (result["a"], result["b"]) == (f"nobody: {A}", f"another: {B}")


def asked_by(tenant: str, fast: Any, topic: str) -> Any:
    token = TENANT.set(tenant)
    try:
        result = fast.invoke({"q": topic})
    finally:
        TENANT.reset(token)
    assert accel.settle()
    return result


def test_an_early_call_sees_the_context_variables_of_its_run() -> None:
    world = World()
    fast = ready(world, TenantChat(world))
    asked_by("somebody", fast, "forests of Finland")
    world.forget()
    early_before(world, "b", "Beta asks")
    assert asked_by("another", fast, TOPIC)["b"] == f"another: {B}"
    assert len(world.texts("Beta asks")) == 1


def test_a_component_that_changes_while_it_is_called_early_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world, dropped, drop = World(), threading.Event(), Calls.drop
    model = Chat(world, style=" (plain)")
    fast = accelerate(three(world, model))
    train(fast)
    world.gates["Beta asks"] = gate = threading.Event()

    def meddle() -> None:
        world.wait_early("Beta asks", over=False)
        model.style = " (odd)"
        gate.set()
        assert dropped.wait(WAIT_S)
        model.style = " (plain)"

    def dropping(calls: Calls, call: Call) -> None:
        drop(calls, call)
        dropped.set()

    monkeypatch.setattr(Calls, "drop", dropping)
    world.hooks["b"] = meddle
    assert fast.invoke({"q": TOPIC})["b"] == f"answer to <Beta asks: {TOPIC}> (plain)"


def test_a_configurable_value_that_differs_at_the_demand_counts() -> None:
    world = World()
    model = Chat(world)

    def a(state: State) -> State:
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        here = var_child_runnable_config.get()
        config: RunnableConfig = {"configurable": {"user": "another"}}
        token = var_child_runnable_config.set(config if state["q"] == TOPIC else here)
        try:
            return {"b": model.invoke(f"Beta asks: {state['q']}").content}
        finally:
            var_child_runnable_config.reset(token)

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)
    world.forget()
    early_before(world, "b", "Beta asks")
    assert fast.invoke({"q": TOPIC})["b"] == B
    assert world.texts("Beta asks", early=False) != []


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_a_leaf_that_reads_the_configuration_reads_that_of_its_run(user: str) -> None:
    class Personal(Chat):
        def _result(self, messages: Any, kwargs: Any) -> Any:
            who = (ensure_config().get("configurable") or {}).get("user", "nobody")
            return super()._result(messages, {"user": who})

    world = World()
    fast = accelerate(three(world, Personal(world)))
    config: RunnableConfig = {"configurable": {"user": user}}
    train(fast, config=config)
    world.forget()
    world.hooks["b"] = lambda: accel.settle() and world.texts("Beta", early=True) and world.wait_early("Beta")  # type: ignore[assignment, return-value]
    assert fast.invoke({"q": TOPIC}, config)["b"] == B + str({"user": user})


def _of_metadata(config: Any) -> str:
    return str(config["metadata"].get("user", "nobody"))


def _of_tags(config: Any) -> str:
    return "".join(tag for tag in config["tags"] if tag in ("alice", "bob")) or "nobody"


READ = {
    "ensure_config": ensure_config,
    "variable": lambda: ensure_config(var_child_runnable_config.get()),
}


@pytest.mark.parametrize("how", sorted(READ))
@pytest.mark.parametrize("reads", [_of_metadata, _of_tags], ids=["metadata", "tags"])
def test_a_leaf_that_reads_what_a_call_is_labelled_with_reads_that_of_its_call(reads: Any, how: str) -> None:
    """It may say whose the call is; an early call has only what the run was given."""

    class Labelled(Chat):
        def _result(self, messages: Any, kwargs: Any) -> Any:
            return super()._result(messages, {"user": reads(READ[how]())})

    world = World()
    chain_b = RunnableLambda(lambda q: f"Beta asks: {q}") | Labelled(world)
    model = Labelled(world)

    def a(state: State) -> State:
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        catch_up()
        user = state["c"]
        return {"b": chain_b.invoke(state["q"], {"metadata": {"user": user}, "tags": [user]}).content}

    graph = chain(("a", a), ("b", b))
    fast = accelerate(graph)
    for number, topic in enumerate(("tides", "reefs", "foxes", "mills", "wells")):
        given = {"q": topic, "c": ("alice", "bob")[number % 2]}
        assert fast.invoke(given) == graph.invoke(given)
        assert accel.settle()


@pytest.mark.parametrize("within", ["chain", "subgraph"])
@pytest.mark.parametrize("component", [Chat, ReadonlyStore], ids=["model", "store"])
def test_what_the_program_calls_with_configurable_values_of_its_own_is_not_early(component: Any, within: str) -> None:
    """An early call has those of its run: it could not stand for the program's, which would be made once more."""
    world = World()
    model = Chat(world)
    other = component(world) if component is Chat else component(world, {"x": "found"})

    def asks(state: State) -> State:
        if component is Chat:
            return {"b": other.invoke(f"Beta asks: {state['q']}").content}
        return {"b": other.similarity_search(f"Beta asks: {state['q']}")[0].page_content}

    own = chain(("b", asks)) if within == "subgraph" else RunnableLambda(asks)

    def a(state: State) -> State:
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        catch_up()
        return {"b": own.invoke({"q": state["q"]}, {"configurable": {"thread_id": "1", "user": state["c"]}})["b"]}

    graph = chain(("a", a), ("b", b))
    fast = accelerate(graph)
    for topic in ("tides", "reefs", "foxes", "mills", "wells"):
        given = {"q": topic, "c": f"user of {topic}"}
        expected = graph.invoke(given)
        world.forget()
        assert fast.invoke(given) == expected
        assert accel.settle()
        assert len(world.texts("Beta")) == 1
    assert "configurable values" in str(accel.report(fast))


def test_another_object_of_the_same_store_class_is_another_store() -> None:
    world = World()
    second = ReadonlyStore(world, {"x": "second"})
    model = Chat(world)
    current = {"store": ReadonlyStore(world, {"x": "first"})}

    def a(state: State) -> State:
        return {"a": model.invoke(f"Alpha asks: {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        return {"b": current["store"].similarity_search(state["q"])[0].page_content}

    fast = accelerate(chain(("a", a), ("b", b)))
    train(fast)
    world.forget()

    def swap() -> None:
        world.wait(lambda: any(c.early and c.component == "store" and c.over for c in world.calls))
        current["store"] = second

    world.hooks["b"] = swap
    assert fast.invoke({"q": TOPIC})["b"] == "second"
