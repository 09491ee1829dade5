"""Models of a program's own that take or give what their framework's do not: nothing of Accel's is in their way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, SimpleChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, StateGraph
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.query_engine import CustomQueryEngine
from pydantic import PrivateAttr

import accel
from accel.tests.random_programs import words
from adapters.tests.core_fakes import World, as_text, three, train

QUESTIONS = [words(("unusual", n), 4) for n in range(6)]
PATIENCE_S = 0.1
HEARD: dict[str, list[Any]] = {}
"""What models of this name were asked."""


class Undecorated(CustomLLM):
    """Its methods are called as the program calls them. LlamaIndex's callbacks would make them all alike."""

    answer: Any = None
    """Made of a text."""
    name: str = ""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, *args: Any, **kwargs: Any) -> Any:
        HEARD[self.name].append((prompt, args, kwargs))
        return self.answer(f"{prompt} {args} {sorted(kwargs.items())}")

    def stream_complete(self, prompt: str, *args: Any, **kwargs: Any) -> Any:
        HEARD[self.name].append((prompt, args, kwargs))
        return iter([self.answer(part) for part in prompt.split()])


class Engine(CustomQueryEngine):
    llm: Any
    ask: Any

    def custom_query(self, query_str: str) -> str:
        return " | ".join(map(str, self.ask(self.llm, query_str)))


def compared(ask: Any, answer: Any = lambda text: CompletionResponse(text=text), **options: Any) -> Any:
    """The accelerated engine, once it has answered as the unmodified one does, and its model was asked the same."""
    HEARD.update(plain=[], fast=[])
    plain, fast = (Engine(llm=Undecorated(answer=answer, name=name), ask=ask) for name in HEARD)
    accel.register(fast.llm, concurrency=8, local=True)
    accelerated = accel.accelerate(fast, **options)
    for question in QUESTIONS:
        assert str(accelerated.query(question)) == str(plain.query(question))
        accel.settle()
    assert sorted(map(str, HEARD["fast"])) == sorted(map(str, HEARD["plain"]))
    return accelerated


def waiting_after(first: str) -> Any:
    """The answer of a model that takes its time with what begins like this."""
    asked = threading.Event()

    def answer(text: str) -> CompletionResponse:
        if text.startswith(first):
            asked.clear()
            asked.wait(PATIENCE_S)  # for an early call, if there is one
        else:
            asked.set()
        return CompletionResponse(text=text)

    return answer


def test_what_a_model_takes_beyond_its_base_class_counts() -> None:
    def ask(llm: Any, question: str) -> Iterator[Any]:
        yield llm.complete(f"Plan: {question}").text
        yield llm.complete(f"Write: {question}", False, "formal").text
        yield llm.complete(prompt=f"Sum up: {question}", style="plain").text
        yield llm.complete(f"Close: {question}", formatted=True).text

    fast = compared(ask, waiting_after("Plan"))
    assert fast.plan.total.retired


class Simple(SimpleChatModel):
    """LangChain makes the rest of a model of its one method."""

    _world: World = PrivateAttr()

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    @property
    def _llm_type(self) -> str:
        return "simple"

    def _call(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> str:
        return self._world.serve("chat", as_text(messages))


accel.register(Simple, pure=True, local=True, concurrency=8)


@pytest.mark.parametrize("on_a_loop", [False, True], ids=["plain", "on a loop"])
def test_a_chat_model_of_one_method(on_a_loop: bool) -> None:
    world = World()
    plain = three(World(), Simple(World()))
    fast = accel.accelerate(three(world, Simple(world)))
    train(fast)
    asked = {"q": "lakes of Japan"}
    assert (asyncio.run(fast.ainvoke(asked)) if on_a_loop else fast.invoke(asked)) == plain.invoke(asked)
    assert fast.plan.total.issued


def text_alone(text: str) -> Any:
    return SimpleNamespace(text=text)


class Shy:
    """Somebody's object that says nothing."""

    def __init__(self, text: str) -> None:
        vars(self)["text"] = text

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)

    def __str__(self) -> str:
        return str(vars(self)["text"])


class Counts:
    def __init__(self) -> None:
        self.asked = 0

    @property
    def usage(self) -> Any:
        self.asked += 1
        raise RuntimeError("nobody but the program may ask this")


def with_raw(raw: Any) -> Any:
    return lambda text: CompletionResponse(text=text, raw=raw)


@pytest.mark.parametrize(
    "answer",
    [
        str, text_alone, Shy, lambda text: {"text": text}, lambda text: None,
        with_raw({"usage": {}}), with_raw({"usage": {"prompt_tokens": None, "completion_tokens": None}}),
        with_raw({"usage": {"prompt_tokens": "3", "completion_tokens": "4"}}), with_raw({"usage": 7}),
        with_raw(SimpleNamespace(usage=None)),
        lambda text: CompletionResponse(text=text, additional_kwargs={"prompt_tokens": None, "completion_tokens": 2}),
    ],
    ids=[
        "text", "namespace", "shy", "dict", "nothing", "empty usage", "usage of None", "usage in words",
        "usage of another kind", "no usage", "None among the counts",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["complete", "stream_complete"])
def test_what_a_model_gives_may_be_anything(answer: Any, method: str) -> None:
    def ask(llm: Any, question: str) -> Iterator[Any]:
        for what in ("Plan", "Write", "Close"):
            given = getattr(llm, method)(f"{what}: {question}")
            yield (
                [getattr(each, "text", str(each)) if not isinstance(each, Shy) else str(each) for each in given]
                if (method == "stream_complete")
                else str(given)
            )

    compared(ask, answer)


def test_nothing_is_asked_of_an_answer_that_runs_code() -> None:
    counts = Counts()

    def ask(llm: Any, question: str) -> Iterator[Any]:
        for what in ("Plan", "Write"):
            yield llm.complete(f"{what}: {question}").text

    compared(ask, with_raw(counts))
    assert counts.asked == 0


class ByName(FunctionCallingLLM):
    """LlamaIndex' agents call such methods with all arguments by name."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    def _prepare_chat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any) -> Any:
        return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])]}

    def get_tool_calls_from_response(self, response: Any, error_on_no_tool_call: bool = True, **_: Any) -> list[Any]:
        return []

    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return ChatResponse(message=ChatMessage(role="assistant", content=f"Heard: {messages[-1].content}"))

    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return self.chat(messages)

    def stream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> Any:
        return iter([self.chat(messages)])

    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> Any:
        async def chunks() -> AsyncIterator[ChatResponse]:
            yield self.chat(messages)

        return chunks()

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise NotImplementedError

    acomplete = stream_complete = astream_complete = complete


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")  # workflows look at all attributes
def test_a_method_that_is_called_by_the_names_of_its_arguments() -> None:
    async def answers(agent: Any) -> list[str]:
        return [str(await agent.run(user_msg=question)) for question in QUESTIONS]

    agents = (FunctionAgent(tools=[], llm=ByName()) for _ in range(2))
    plain, fast = (asyncio.run(answers(agent)) for agent in (next(agents), accel.accelerate(next(agents))))
    assert plain == fast == [f"Heard: {question}" for question in QUESTIONS]


@pytest.mark.parametrize(
    "usage", [{"input_tokens": 3}, {"input_tokens": None, "output_tokens": None}, {"total_tokens": "many"}], ids=str
)
def test_usage_that_says_less_than_langchain_means_it_to(usage: dict[str, Any]) -> None:
    class Model(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "unusual"

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
            message = AIMessage(f"Heard: {messages[-1].content}")
            message.usage_metadata = usage  # type: ignore[assignment]
            return ChatResult(generations=[ChatGeneration(message=message)])

    model = Model()
    graph = StateGraph(dict).add_node("answer", lambda state: {"a": model.invoke(state["q"]).content})
    plain = graph.add_edge(START, "answer").compile()
    fast = accel.accelerate(plain)
    for question in QUESTIONS:
        assert fast.invoke({"q": question}) == plain.invoke({"q": question})


def test_what_a_program_that_raises_has_done_without_is_not_certain() -> None:
    """It raises after its first call, and never again are all of the others sent."""

    def ask(llm: Any, question: str) -> Iterator[Any]:
        yield llm.complete(f"Check: {question}").text
        if "refused" in question:
            raise ValueError(question)
        yield from (llm.complete(f"Part {part} of {question}").text for part in range(4))

    HEARD.update(fast=[])
    engine = Engine(llm=Undecorated(answer=waiting_after("Check"), name="fast"), ask=ask)
    accel.register(engine.llm, concurrency=8, local=True)
    fast = accel.accelerate(engine, speculate="certain")
    for question in QUESTIONS:
        fast.query(question)
        assert accel.settle()
    assert fast.plan.total.retired
    for question in QUESTIONS:
        with pytest.raises(ValueError, match="refused"):
            fast.query(f"{question} refused")
        assert accel.settle()
    assert sum("Part" in prompt and "refused" in prompt for prompt, *_ in HEARD["fast"]) <= 4
