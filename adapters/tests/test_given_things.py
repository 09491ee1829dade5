"""Invariant 4: what components make of the objects that they are given is the program's, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import START, StateGraph
from llama_index.core.llms import ChatMessage, ChatResponse, CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import CustomQueryEngine

import accel
from accel import accelerate, settle
from adapters.tests.catching_up import catch_up

TOPICS = ("the tides of Brest", "moss on old walls", "granite in the north", "who keeps bees", "peat and its smoke")


class State(TypedDict, total=False):
    topic: str
    items: list[str]
    found: Any


def two_steps(first: Callable[[State], Any], second: Callable[[State], Any]) -> Any:
    graph = StateGraph(State)
    graph.add_sequence([("first", first), ("second", second)])
    graph.add_edge(START, "first")
    return graph.compile()


def told_apart(build: Callable[[], Any]) -> tuple[int, Any]:
    """In how many runs an accelerated program gives something else than the unmodified one; and the former."""
    plain, fast = build(), accelerate(build())
    differing = 0
    for topic in TOPICS:
        expected = plain.invoke({"topic": topic})["found"]
        differing += fast.invoke({"topic": topic})["found"] != expected
        assert settle()
    return differing, fast


class Marks(BaseChatModel):
    """Says in its messages that it has read them."""

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 8}

    @property
    def _llm_type(self) -> str:
        return "marks"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        messages[-1].content += " /read"
        text = "\n".join(f"a word on {messages[-1].content}, and {n}" for n in range(3))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


class MarksAndStreams(Marks):
    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 8, "streams_equal": True}

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        messages[-1].content += " /read"
        for n in range(3):
            yield ChatGenerationChunk(
                message=AIMessageChunk("\n" * (n > 0) + f"a word on {messages[-1].content}, and {n}")
            )


@pytest.mark.parametrize("model", [Marks, MarksAndStreams])
def test_messages_are_as_the_model_leaves_them(model: type[Marks]) -> None:
    def build() -> Any:
        llm = model()

        def first(state: State) -> Any:
            return {"items": llm.invoke(f"Parts of {state['topic']}").text.split("\n")}

        def second(state: State) -> Any:
            catch_up()
            asked: list[BaseMessage] = [HumanMessage(f"More on {item}") for item in state["items"]]
            answers = [llm.invoke([message]).text for message in asked]
            return {"found": [[message.text for message in asked], answers]}

        return two_steps(first, second)

    differing, fast = told_apart(build)
    assert differing == 0
    assert ["it changes what it is given" in why for why in fast.plan.disqualified.values()] == [True]


class Adds(Marks):
    """Puts a message of its own before those that it is given, into a list that LangChain has made for it."""

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 8}

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        messages.insert(0, SystemMessage("Be kind."))
        text = "\n".join(f"{len(messages)} words on {messages[-1].content}, and {n}" for n in range(3))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def test_what_a_model_adds_to_its_list_keeps_no_call_from_being_early() -> None:
    def build() -> Any:
        llm = Adds()

        def first(state: State) -> Any:
            return {"items": llm.invoke(f"Parts of {state['topic']}").text.split("\n")}

        def second(state: State) -> Any:
            catch_up()
            given = [[HumanMessage(f"More on {item}")] for item in state["items"]]
            return {"found": [[llm.invoke(messages).text for messages in given], list(map(len, given))]}

        return two_steps(first, second)

    differing, fast = told_apart(build)
    assert differing == 0
    assert fast.plan.total.retired > 0 and not fast.plan.disqualified


class MarksBlocks(CustomLLM):
    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 8}

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=f"a word on {prompt}")

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError

    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        messages[-1].additional_kwargs["read"] = True
        text = "\n".join(f"a word on {messages[-1].content}, and {n}" for n in range(3))
        return ChatResponse(message=ChatMessage(text, role="assistant"))


class Reads(CustomQueryEngine):
    llm: Any

    def custom_query(self, query_str: str) -> str:
        items = str(self.llm.chat([ChatMessage(f"Parts of {query_str}")]).message.content).split("\n")
        catch_up()
        asked = [ChatMessage(f"More on {item}") for item in items]
        answers = [self.llm.chat([message]).message.content for message in asked]
        return str([[message.additional_kwargs for message in asked], answers])


def test_messages_of_llamaindex_are_as_the_model_leaves_them() -> None:
    plain, fast = Reads(llm=MarksBlocks()), accelerate(Reads(llm=MarksBlocks()))
    for topic in TOPICS:
        assert str(fast.query(topic)) == str(plain.query(topic))
        assert settle()
    assert fast.plan.disqualified


class Client:
    """`search` fills in what it is given, `find` hands it back."""

    def ask(self, text: str) -> str:
        return f"{text}, in short"

    def search(self, query: str, options: dict[str, Any]) -> dict[str, Any]:
        options["asked"] = query
        return {"hits": [query.upper()]}

    def find(self, query: str, options: dict[str, Any]) -> dict[str, Any]:
        return {"hits": [query.upper()], "with": {"options": options}}


accel.register(Client, methods=["ask", "search", "find"], readonly=True, local=True, concurrency=8)


@pytest.mark.parametrize("method", ["search", "find"])
def test_arguments_of_a_declared_method_are_the_programs(method: str) -> None:
    def build() -> Any:
        made = Client()

        def first(state: State) -> Any:
            return {"items": [made.ask(state["topic"])]}

        def second(state: State) -> Any:
            catch_up()
            options = {"language": "de"}
            result = getattr(made, method)(state["topic"], options)
            if "with" in result:
                result["with"]["options"]["seen"] = True
            return {"found": [result, options]}

        return two_steps(first, second)

    assert told_apart(build)[0] == 0


class Dumps(BaseChatModel):
    """Goes by the fields that somebody has set."""

    __accel__: ClassVar[dict[str, Any]] = {"local": True, "concurrency": 8}
    way: str

    @property
    def _llm_type(self) -> str:
        return "dumps"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        text = str([self._told(message) for message in messages])
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    def _told(self, message: BaseMessage) -> Any:
        if self.way == "dump":
            return message.model_dump(exclude_unset=True, exclude={"id"})
        return sorted(message.model_fields_set - {"id"})


@pytest.mark.parametrize("way", ["dump", "names"])
def test_a_model_may_go_by_what_was_set(way: str) -> None:
    prompt = ChatPromptTemplate([("system", "Be kind."), ("human", "{what} of {topic}")])

    def build() -> Any:
        chain = prompt | Dumps(way=way)

        def first(state: State) -> Any:
            return {"items": [chain.invoke({"what": "parts", "topic": state["topic"]}).text]}

        def second(state: State) -> Any:
            catch_up()
            return {"found": [chain.invoke({"what": what, "topic": state["topic"]}).text for what in ("ends", "uses")]}

        return two_steps(first, second)

    differing, fast = told_apart(build)
    assert differing == 0
    assert "which fields of its input somebody has set" in str(fast.report())
