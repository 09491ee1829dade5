"""Invariant 3 with components that a program declares, and whose code reads what nobody hands over."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar

import pytest
import wrapt
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import StructuredTool
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from llama_index.core import get_response_synthesizer
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import PrivateAttr
from tenacity import Retrying, retry, stop_after_attempt
from typing_extensions import TypedDict

import accel
from accel import accelerate
from accel.parts.components import facts_of
from accel.parts.identities import identity, reads
from accel.parts.identities.identity import Identities, identity_of
from accel.parts.identities.reads import Reads, reads_of
from accel.parts.identities.watch import Watch
from adapters.tests import core_fakes
from adapters.tests.catching_up import catch_up
from adapters.tests.core_fakes import TOPICS, Chat, UnknownChat, World, after_thinking, train

TOPIC = "beaches of Portugal"
REQUEST = threading.local()
Ask = Callable[[str], Any]


def tenant() -> str:
    return str(getattr(REQUEST, "tenant", "nobody"))


class Session:
    """What a program keeps its requests in."""

    def __init__(self) -> None:
        self._local = threading.local()

    @property
    def tenant(self) -> str:
        return str(getattr(self._local, "tenant", "nobody"))


SESSION = Session()


@pytest.fixture
def world() -> Iterator[World]:
    REQUEST.tenant = SESSION._local.tenant = "ann"
    yield World()
    del REQUEST.tenant, SESSION._local.tenant
    reads.forget_all()  # that a variable of `core_fakes` has changed would be remembered of its models for good


class ByFunction(UnknownChat):
    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": tenant()})


class ByObject(UnknownChat):
    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": SESSION.tenant})


class ByField(UnknownChat):
    _session: Any = PrivateAttr(default_factory=lambda: SESSION)

    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": self._session.tenant})


class ByClass(UnknownChat):
    of_request: ClassVar[Any] = REQUEST

    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"tenant": self.of_request.tenant})


class ByImport(UnknownChat):
    def _result(self, messages: Any, kwargs: Any) -> Any:
        from adapters.tests.test_declared_reads import REQUEST as request

        return super()._result(messages, {"tenant": getattr(request, "tenant", "nobody")})


class Desk:
    def __init__(self, world: World) -> None:
        self.world = world

    def find(self, topic: str) -> str:
        return f"{self.world.serve('desk', topic)} for {tenant()}"


class Shelf(BaseRetriever):
    desk: Any

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        return [Document(self.desk.find(query))]


accel.register(Desk, methods=["find"], readonly=True, local=True)
accel.register(Shelf, readonly=True, local=True)
for model in (ByFunction, ByObject, ByField, ByClass, ByImport):
    accel.register(model, pure=True, local=True, concurrency=8)


def early(world: World) -> list[str]:
    """What was asked early but by the first node, whose model reads nothing."""
    return [text for text in world.texts(early=True) if not text.startswith("Alpha")]


def asking(model: type[UnknownChat]) -> Callable[[World], tuple[Any, Ask]]:
    def made(world: World) -> tuple[Any, Ask]:
        component = model(world)
        return component, lambda q: component.invoke(f"Beta asks: {q}").content

    return made


def by_client(world: World) -> tuple[Any, Ask]:
    desk = Desk(world)
    return desk, desk.find


def by_retriever(world: World) -> tuple[Any, Ask]:
    shelf = Shelf(desk=Desk(world))
    return shelf, lambda q: shelf.invoke(q)[0].page_content


def by_tool(world: World) -> tuple[Any, Ask]:
    def find(q: str) -> str:
        """Find it."""
        return f"{world.serve('tool', q)} for {tenant()}"

    tool = accel.register(StructuredTool.from_function(find), readonly=True, local=True)
    return tool, lambda q: tool.invoke({"q": q})


def by_pure_function(world: World) -> tuple[Any, Ask]:
    def find(q: str) -> str:
        return f"{world.serve('function', q)} for {tenant()}"

    return find, accel.pure(find)


MODELS = (ByFunction, ByObject, ByField, ByClass, ByImport)


@pytest.mark.parametrize(
    "made",
    [*map(asking, MODELS), by_client, by_retriever, by_tool, by_pure_function],
    ids=lambda made: made.__qualname__,
)
def test_what_reads_a_thread_local_is_not_early(world: World, made: Callable[[World], tuple[Any, Ask]]) -> None:
    component, ask = made(world)
    plain = after_thinking(world, lambda state: ask(state["q"])).invoke({"q": TOPIC})
    fast = accelerate(after_thinking(world, lambda state: ask(state["q"])))
    train(fast, (*TOPICS, "lakes of Malawi"))
    world.forget()
    assert fast.invoke({"q": TOPIC}) == plain
    assert not early(world), "they would be nobody's"
    why = facts_of(component).reason
    assert "a threading.local" in why and "ContextVar" in why
    assert accel.settle() and any(why in str(reason) for reason in fast.plan.reasons.values())


def test_what_only_others_read_says_nothing(world: World) -> None:
    """Its nodes use one, and so do methods that no call of the component runs."""

    class Apart(Chat):
        def of_this_thread(self) -> str:
            return tenant()

    accel.register(Apart, pure=True, local=True, concurrency=8)
    model = Apart(world)
    fast = accelerate(after_thinking(world, lambda state: model.invoke(f"Beta asks: {state['q']}").content + tenant()))
    train(fast)
    world.hooks["b"] = lambda: world.wait_early(f"Beta asks: {TOPIC}")
    assert fast.invoke({"q": TOPIC})["b"].endswith("ann")
    assert facts_of(model).pure


def test_what_a_library_keeps_by_thread_says_nothing(world: World) -> None:
    """Its statistics are nobody's words, whoever holds its objects."""

    class Patient(UnknownChat):
        _retrying: Any = PrivateAttr(default_factory=lambda: Retrying(stop=stop_after_attempt(2)))

        def _result(self, messages: Any, kwargs: Any) -> Any:
            return self._retrying(super()._result, messages, kwargs)

    accel.register(Patient, pure=True, local=True, concurrency=8)
    model = Patient(world)
    assert any(isinstance(held, threading.local) for held in vars(model._retrying).values())
    assert facts_of(model).pure


# --- variables, and the environment

LANGUAGE = "English"
SETTINGS: dict[str, Any] = {"language": "English", "sizes": [1, 2]}
ASKED: list[str] = []
COUNTED, COUNTS = 0, dict[str, int]()


class Config:
    """Of a program: one object, and what its class says for all."""

    region = "Europe"

    def __init__(self) -> None:
        self.language = "English"


CONFIGURED = Config()


def language() -> str:
    return LANGUAGE


@retry(stop=stop_after_attempt(2))
def language_at_last() -> str:
    return LANGUAGE


@wrapt.decorator
def noted(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    return wrapped(*args, **kwargs)


@noted
def noted_language() -> str:
    return LANGUAGE


class Speaks(UnknownChat):
    """Its answer says in which language, if somebody tells."""

    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"in": self.spoken()})

    def spoken(self) -> str:
        return ""


class ByVariable(Speaks):
    def spoken(self) -> str:
        return LANGUAGE


class ByHelper(Speaks):
    def spoken(self) -> str:
        return language()


class ByRetry(Speaks):
    def spoken(self) -> str:
        return language_at_last()


class ByWrapper(Speaks):
    def spoken(self) -> str:
        return str(noted_language())


class ByItem(Speaks):
    def spoken(self) -> str:
        return str(SETTINGS["language"])


class ByAttribute(Speaks):
    def spoken(self) -> str:
        return CONFIGURED.language


class ByClassAttribute(Speaks):
    def spoken(self) -> str:
        return Config.region


class ByModule(Speaks):
    def spoken(self) -> str:
        import adapters.tests.core_fakes as fakes

        return str(fakes.WAIT_S)


class ByItemOfEnvironment(Speaks):
    def spoken(self) -> str:
        return os.environ["ACCEL_TEST_LANGUAGE"]


class ByGet(Speaks):
    def spoken(self) -> str:
        return os.environ.get("ACCEL_TEST_LANGUAGE", "")


class ByGetenv(Speaks):
    def spoken(self) -> str:
        return os.getenv("ACCEL_TEST_LANGUAGE", "")


class ByAnyName(Speaks):
    def spoken(self) -> str:
        return os.environ["ACCEL_TEST_" + "language".upper()]


def set_variable(patch: pytest.MonkeyPatch, value: str) -> None:
    patch.setitem(globals(), "LANGUAGE", value)


def set_item(patch: pytest.MonkeyPatch, value: str) -> None:
    patch.setitem(SETTINGS, "language", value)


def set_attribute(patch: pytest.MonkeyPatch, value: str) -> None:
    patch.setattr(CONFIGURED, "language", value)


def set_class_attribute(patch: pytest.MonkeyPatch, value: str) -> None:
    patch.setattr(Config, "region", value)


def set_module(patch: pytest.MonkeyPatch, value: str) -> None:
    patch.setattr(core_fakes, "WAIT_S", 20.0 + len(value) / 100)


def set_environment(patch: pytest.MonkeyPatch, value: str) -> None:
    patch.setenv("ACCEL_TEST_LANGUAGE", value)


READS: list[tuple[type[Speaks], Callable[[pytest.MonkeyPatch, str], None]]] = [
    (ByVariable, set_variable),
    (ByHelper, set_variable),
    (ByRetry, set_variable),
    (ByWrapper, set_variable),
    (ByItem, set_item),
    (ByAttribute, set_attribute),
    (ByClassAttribute, set_class_attribute),
    (ByModule, set_module),
    (ByItemOfEnvironment, set_environment),
    (ByGet, set_environment),
    (ByGetenv, set_environment),
    (ByAnyName, set_environment),
]
for speaks, _ in READS:
    accel.register(speaks, pure=True, local=True, concurrency=8)


@pytest.mark.parametrize(("model", "say"), READS, ids=lambda each: each.__name__)
def test_what_a_node_says_in_a_variable(
    world: World, model: type[Speaks], say: Callable[[pytest.MonkeyPatch, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked before it said so is another one's answer; where it says nothing new, calls are early."""
    component = model(world)
    says = ["English"]
    say(monkeypatch, "English")

    def b(state: Any) -> Any:
        say(monkeypatch, says[0])
        return component.invoke(f"Beta asks: {state['q']}").content

    fast = accelerate(after_thinking(world, b))
    train(fast)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early(f"Beta asks: {TOPIC}")
    known = fast.invoke({"q": TOPIC})
    assert world.texts("Beta") == [f"Beta asks: {TOPIC}"], "it was early, and it was the program's"
    world.forget()
    says[0] = "Icelandic"
    anew = fast.invoke({"q": TOPIC})
    assert world.texts("Beta") == 2 * [f"Beta asks: {TOPIC}"], "the early one is nobody's"
    assert anew == after_thinking(world, b).invoke({"q": TOPIC}) and anew["b"] != known["b"]


@pytest.mark.parametrize("model", [ByVariable, ByItemOfEnvironment])
def test_what_a_node_is_known_to_say_is_waited_for(
    world: World, model: type[Speaks], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much may be in vain: a question that is sent under another tenant's variable was not the program's."""
    say, says = dict(READS)[model], ["Norwegian"]
    say(monkeypatch, "nobody's")
    component = model(world)

    def b(state: Any) -> Any:
        say(monkeypatch, says[0])
        return component.invoke(f"Beta asks: {state['q']}").content

    plain = after_thinking(world, b)
    fast = accelerate(after_thinking(world, b), speculate="likely", budget=accel.Budget(waste=1.0))
    train(fast)
    world.hooks["b"] = catch_up
    for says[0] in ("Icelandic", "Faroese", "Faroese"):
        expected = plain.invoke({"q": TOPIC})
        world.forget()
        assert fast.invoke({"q": TOPIC}) == expected
        assert not early(world)


class Counting(Chat):
    """Counts, and keeps what it is asked, where nothing of that changes its answers."""

    def _result(self, messages: Any, kwargs: Any) -> Any:
        global COUNTED
        COUNTED += 1
        COUNTS["all"] = COUNTS.get("all", 0) + 1
        COUNTS["all"] += 1
        ASKED.append(str(messages))
        return super()._result(messages, {})


accel.register(Counting, pure=True, local=True, concurrency=8)


def test_what_calls_count_themselves_says_nothing(world: World) -> None:
    model = Counting(world)
    fast = accelerate(after_thinking(world, lambda state: model.invoke(f"Beta asks: {state['q']}").content))
    train(fast)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early(f"Beta asks: {TOPIC}")
    fast.invoke({"q": TOPIC})
    assert world.texts("Beta") == [f"Beta asks: {TOPIC}"]


def test_who_looks_at_the_same_time_sees_what_the_code_reads_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads may look at a component that nobody has looked at before."""
    component, identities, others = ByVariable(World()), Identities(), list[Any]()

    def meanwhile(given: Any, watch: Watch) -> Reads:
        if not others:
            others.append(None)
            others[0] = identities.of(given, by_object=False)
        return reads_of(given, watch)

    monkeypatch.setattr(identity, "reads_of", meanwhile)
    assert identities.of(component, by_object=False) == others[0] == identity_of(component, by_object=False)


def test_what_components_note_of_their_calls_outlives_no_run() -> None:
    """A plan keeps how its components were: of what one that tenants share has noted in a list, nothing."""

    class Prompt(str):  # to which there may be weak references
        pass

    class Clerk:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def invoke(self, prompt: str) -> str:
            self.asked.append(prompt)
            return prompt.title()

    clerk, identities = Clerk(), Identities()
    clerk.invoke(Prompt("what tenant a asked"))
    noted = weakref.ref(clerk.asked[0])
    identities.of(clerk, by_object=True)
    kept = identities.seen([clerk])
    del identities  # they are of one run
    clerk.asked.clear()
    assert kept and noted() is None


# --- ids of messages


class ById(UnknownChat):
    """Says to which messages it answers, of those that have been through the state of a graph."""

    def _result(self, messages: Any, kwargs: Any) -> Any:
        return super()._result(messages, {"to": [self.name_of(message)[:6] for message in messages]})

    def name_of(self, message: Any) -> str:
        return str(message.id)


class ByDump(ById):
    def name_of(self, message: Any) -> str:
        return str(message.model_dump().get("id"))


class ByName(ById):
    def name_of(self, message: Any) -> str:
        return str(getattr(message, "id"))  # noqa: B009


class Namer:
    def name(self, message: Any) -> str:
        return str(message.id)


class ByNamer(ById):
    _namer: Any = PrivateAttr(default_factory=Namer)

    def name_of(self, message: Any) -> str:
        return str(self._namer.name(message))


class Writes(Speaks):
    """Names what has nothing to do with ids of messages."""

    def _result(self, messages: Any, kwargs: Any) -> Any:
        texts = [message.text for message in messages]
        seen = {id(message): dict(text=text) for message, text in zip(messages, texts, strict=True)}  # noqa: C408
        digest = hashlib.blake2b(repr(texts).encode(), digest_size=4).hexdigest()
        return super()._result(messages, {"digest": digest, "json": json.dumps([*seen.values()])})


class Told(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    b: str


BY_ID: tuple[type[UnknownChat], ...] = (ById, ByDump, ByName, ByNamer)
for model in (*BY_ID, Speaks, Writes):
    accel.register(model, pure=True, local=True, concurrency=8)


def in_state(world: World, model: Any) -> Any:
    """An answer to the messages of the state, something else, and an answer to both of them."""

    def answers(state: Told) -> Any:
        catch_up()
        return {"messages": [model.invoke(state["messages"])]}

    def looks(state: Told) -> Any:
        return {"b": model.invoke(f"Beta asks: {world.node('b')}").text}

    return StateGraph(Told).add_sequence([("first", answers), looks, ("second", answers)]).add_edge(START, "first")


@pytest.mark.parametrize("model", BY_ID)
def test_what_looks_for_ids_of_messages_is_sent_them(world: World, model: type[UnknownChat]) -> None:
    program = in_state(world, model(world)).compile()
    fast = accelerate(program)
    for topic in (*TOPICS, *TOPICS, TOPIC):
        told = fast.invoke({"messages": [("user", topic)]})["messages"]
        assert "None" not in told[1].text + told[-1].text, "each has one by then"
    assert any(call.early for call in world.calls), "what is sent no message of the state goes early"


@pytest.mark.parametrize("model", [Speaks, Writes])
def test_what_looks_for_no_ids_is_early_with_messages_of_the_state(world: World, model: type[UnknownChat]) -> None:
    fast = accelerate(in_state(world, model(world)).compile())
    for topic in (*TOPICS, *TOPICS, TOPIC):
        fast.invoke({"messages": [("user", topic)]})
    assert any(call.early and TOPIC in call.text for call in world.calls)


# --- below what decorators made of it


def kept_apart(function: Any) -> Any:
    """A decorator of the program's, that doesn't say what it decorates."""

    def decorated(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return decorated


class Decorated(CustomLLM):
    """LlamaIndex keeps the decorated function in a closure."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=f"{prompt} in {language()}")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class OfThread(Decorated):
    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=f"{prompt} for {tenant()}")


class Twice(Decorated):
    @kept_apart
    @llm_completion_callback()
    @kept_apart
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=f"{prompt} in {LANGUAGE}")


for llm in (Decorated, OfThread, Twice):
    accel.register(llm, pure=True, local=True, concurrency=8)


@pytest.mark.parametrize("patched", [False, True])
def test_code_below_decorators_is_read(patched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if patched:
        accelerate(get_response_synthesizer(llm=Decorated()))
    for component in (Decorated(), Twice()):
        before = identity_of(component, by_object=False)
        monkeypatch.setitem(globals(), "LANGUAGE", f"{LANGUAGE} or so")
        assert identity_of(component, by_object=False) != before
    assert "a threading.local" in facts_of(OfThread()).reason
