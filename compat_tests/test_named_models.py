"""Named traps of calling models: caches, limits, retries, samples, batches; plain, accelerated and forced."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.exceptions import OutputParserException
from langchain_core.globals import set_llm_cache
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph

import accel
from accel_langgraph.testing.log import unlogged
from compat_tests.answers import ModelError
from compat_tests.fakes import LocalChat, Parts
from compat_tests.graphs import TOPICS, Topic
from compat_tests.named import asaid, asked, catch_up, in_a_row, in_a_row_async, said, was_early
from compat_tests.named_models import CountedChat, PoliteChat, ThoroughChat, declare

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]
MANY = (*TOPICS, "cedar 44", "river 55")


def one_node(node: Callable[[Topic], Any]) -> Any:
    graph = StateGraph(Topic)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile()


@pytest.fixture
def global_cache() -> Iterator[InMemoryCache]:
    cache = InMemoryCache()
    set_llm_cache(cache)
    yield cache
    set_llm_cache(None)


@pytest.mark.parametrize("where", ["model", "global"])
def test_model_caches(
    parts: Parts, accel_mode: str, compared: Compared, where: str, request: pytest.FixtureRequest
) -> None:
    """What the cache answers, nobody else is asked; nothing early fills it or bypasses it."""
    cache = InMemoryCache() if where == "model" else request.getfixturevalue("global_cache")
    parts.local.cache = cache if where == "model" else None
    fast = in_a_row(parts, "first second").compile()
    for topic in (*MANY, *MANY):
        fast.invoke({"topic": topic})
    assert len(asked(parts)) == len(set(asked(parts))) == len(cache._cache)
    compared(asked(parts), sorted(cache._cache))


def test_a_model_that_opts_out_of_the_global_cache(parts: Parts, accel_mode: str, global_cache: InMemoryCache) -> None:
    """`cache=False`: no cache may answer, so calls may be early."""
    parts.local.cache = False
    fast = in_a_row(parts, "first second").compile()
    for topic in MANY:
        fast.invoke({"topic": topic})
    assert global_cache._cache == {}
    was_early(fast, accel_mode, 2)


def test_rate_limiters(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """Every call that reaches the model has asked the limiter once, and none went past it."""

    class Counting(BaseRateLimiter):
        acquired = 0

        def acquire(self, *, blocking: bool = True) -> bool:
            self.acquired += 1
            return True

        async def aacquire(self, *, blocking: bool = True) -> bool:
            return self.acquire(blocking=blocking)

    limiter = parts.local.rate_limiter = Counting()
    fast = in_a_row(parts, "first second").compile()
    for topic in MANY:
        fast.invoke({"topic": topic})
        assert limiter.acquired == len(asked(parts))
    compared(limiter.acquired)


def test_fallbacks(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """The second model is asked when the first has failed, and only then."""
    backup = RunnableLambda(lambda text: text.replace("(fragile)", "")) | parts.follower
    model = parts.local.with_fallbacks([backup], exceptions_to_handle=(ModelError,))

    def node(state: Topic) -> Topic:
        catch_up()
        first = model.invoke(f"On {state['topic']}").text
        return {"notes": [first, model.invoke(f"(fragile) More on {state['topic']}").text]}

    fast = one_node(node)
    for number in range(8):
        parts.probe.calls.clear()
        fast.invoke({"topic": f"quartz {number}"})
        failed = {call.text for call in parts.probe.calls if call.component == "local" and call.answer is None}
        backed = [call for call in parts.probe.calls if call.component == "follower"]
        assert len(failed) == len(backed) and not any(call.early for call in backed)
        compared(bool(backed))
    was_early(fast, accel_mode, 1)


@pytest.mark.parametrize("kind", ["with_retry", "loop"])
def test_retries_take_new_samples(parts: Parts, accel_mode: str, kind: str) -> None:
    """Asking again gives another sample; each sample the program gets, it gets once."""
    seen: list[str] = []

    def parse(message: Any) -> str:
        seen.append(message.id)
        if len(seen) % 3:
            raise OutputParserException("not like that")
        return "parsed"

    chain = (parts.sampled | parse).with_retry(
        retry_if_exception_type=(OutputParserException,), stop_after_attempt=3, wait_exponential_jitter=False,
        exponential_jitter_params={"initial": 0.0, "max": 0.0},
    ) if kind == "with_retry" else None  # fmt: skip

    def ask(prompt: str) -> str:
        if chain is not None:
            return chain.invoke(prompt)
        while True:
            try:
                return parse(parts.sampled.invoke(prompt))
            except OutputParserException:
                continue

    def node(state: Topic) -> Topic:
        catch_up()
        return {"notes": [ask(f"Once {state['topic']}"), ask(f"Twice {state['topic']}")]}

    fast = one_node(node)
    with unlogged():  # samples differ
        for topic in MANY:
            fast.invoke({"topic": topic})
            accel.settle()
    assert len(seen) == len(set(seen)) == 6 * len(MANY)
    assert len(asked(parts)) >= len(seen)
    was_early(fast, accel_mode, 1)


def test_the_same_prompt_twice(parts: Parts, accel_mode: str) -> None:
    """Two equal questions are two samples, in a loop, side by side and across nodes."""
    ids: list[str] = []

    def node(state: Topic) -> Topic:
        catch_up()
        found = [parts.sampled.invoke(f"Sample {state['topic']}") for _ in range(3)]
        found += parts.sampled.batch([f"Sample {state['topic']}"] * 3)
        ids.extend(str(message.id) for message in found)
        return {"notes": ["done"]}

    graph = StateGraph(Topic)
    graph.add_node("one", node)
    graph.add_node("two", node)
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    fast = graph.compile()
    with unlogged():  # samples differ
        for topic in MANY:
            fast.invoke({"topic": topic})
            accel.settle()
    assert len(ids) == len(set(ids)) == 12 * len(MANY)
    was_early(fast, accel_mode, 2)


def test_several_choices_and_many_prompts(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """`n`, `generate`, `batch`, with outputs and usage of each."""
    declare(accel_mode, CountedChat)
    model = CountedChat(parts.probe)

    def node(state: Topic) -> Topic:
        catch_up()
        topic = state["topic"]
        many = model.generate([[HumanMessage(f"Prompt {i} on {topic}")] for i in range(3)], n=2)
        compared([[one.text for one in found] for found in many.generations], many.llm_output)
        other = model.generate([[HumanMessage(f"Prompt 1 on {topic}")]])
        assert len(other.generations[0]) == 1
        batch = model.batch([f"Batch {i} on {topic}" for i in range(3)], {"max_concurrency": 2})
        return {"notes": [message.text for message in batch], "answer": said(model.bind(n=3), f"Three on {topic}")}

    fast = one_node(node)
    for topic in MANY:
        fast.invoke({"topic": topic})
    was_early(fast, accel_mode, 2)


def test_models_with_invoke_or_generate_of_their_own(parts: Parts, accel_mode: str, compared: Compared) -> None:
    """What a class does around its leaves happens once per call, in the program's order."""
    declare(accel_mode, PoliteChat, ThoroughChat)
    polite, thorough = PoliteChat(parts.probe), ThoroughChat(parts.probe)

    def node(state: Topic) -> Topic:
        catch_up()
        topic = state["topic"]
        first = said(polite, f"polite on {topic}")
        found = [first, said(thorough, f"thorough on {topic}"), said(polite, f"again {first}")]
        return {"notes": [*found, (polite | StrOutputParser()).invoke(f"chained {topic}")]}

    fast = one_node(node)
    for topic in MANY:
        fast.invoke({"topic": topic})
    assert all(text.startswith("human: Please: ") for text in asked(parts, "olite on"))
    compared(len(set(asked(parts))))
    was_early(fast, accel_mode, 2)


async def test_an_undeclared_model_is_never_early(parts: Parts, accel_mode: str) -> None:
    """The probe knows that nobody vouches for it."""
    follower = parts.follower

    async def node(state: Topic) -> Topic:
        first = await asaid(follower, f"First {state['topic']}")
        return {"notes": [first, await asaid(follower, f"Second {state['topic']}"), await asaid(follower, first)]}

    fast = one_node(node)
    for topic in MANY:
        await fast.ainvoke({"topic": topic})
    assert parts.probe.violations == []


@pytest.mark.parametrize("mode", ["messages", "events"])
async def test_leaf_methods_by_mode(parts: Parts, accel_mode: str, compared: Compared, mode: str) -> None:
    """Who streams gets streams, who doesn't gets whole answers, in turns; early calls are of the right kind."""
    kinds: list[str] = []

    class Watched(LocalChat):
        """Whether it streams or not, is another method that is asked."""

        async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
            note("whole")
            return await super()._agenerate(*args, **kwargs)

        async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
            note("stream")
            async for chunk in super()._astream(*args, **kwargs):
                yield chunk

    note = kinds.append
    declare(accel_mode, Watched)
    parts.local = Watched(parts.probe)
    fast = in_a_row_async(parts, "first second").compile()
    for number, topic in enumerate((*MANY, "willow 66", "fjord 77")):
        kinds.clear()
        if number % 2:
            compared(await fast.ainvoke({"topic": topic}))
        elif mode == "messages":
            compared([chunk async for chunk in fast.astream({"topic": topic}, stream_mode="messages")])
        else:
            compared([event async for event in fast.astream_events({"topic": topic}, version="v2")])
        if number > 3:  # once each way is known, nothing is asked in the wrong one
            assert kinds == ["whole" if number % 2 else "stream"] * 4
    was_early(fast, accel_mode, 4)
