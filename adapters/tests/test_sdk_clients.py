"""Clients of SDKs that nodes call themselves, as public programs do: real clients, against a server that answers."""

from __future__ import annotations

import asyncio
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import ollama
import openai
import pytest
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph
from openai.types.chat import ChatCompletionMessage

import accel
from accel import accelerate
from accel.errors import ConfigurationError
from accel.parts.components import facts_of
from accel.parts.identities.clients import is_closed
from accel.parts.identities.identity import identity_of
from accel.parts.methods import patches, sdks
from accel.text.values import snapshot, thaw
from adapters.tests import three_calls
from adapters.tests.three_calls import State, environment, url

__all__ = ["environment", "url"]
"""Fixtures."""

TOPICS = ("bees and their hives", "iron smelting in Sweden", "the far side of the moon", "bread of long ago")


pytestmark = pytest.mark.usefixtures("environment")

Ask = Callable[[str], Any]


def program(ask: Ask, is_async: bool = False) -> Any:
    return three_calls.program(lambda state, prompt: ask(prompt), is_async)


def last_run(graph: Any, run: Callable[[Any, State], Any] = lambda graph, value: graph.invoke(value)) -> Any:
    """How many calls the last of some runs demanded and how many of them were early; all results are the plain ones."""
    fast = accelerate(graph)
    before = fast.report()
    for topic in TOPICS:
        before = fast.report()
        assert run(fast, {"topic": topic}) == run(graph, {"topic": topic})
        assert accel.settle(10)
    after = fast.report()
    return after.demanded - before.demanded, after.retired - before.retired


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with openai.OpenAI() as made:
        yield made


def messages(prompt: str) -> Any:
    return [{"role": "system", "content": "You are brief."}, {"role": "user", "content": prompt}]


def test_calls_of_a_client_are_made_early(client: openai.OpenAI) -> None:
    def ask(prompt: str) -> str:
        answer = client.chat.completions.create(model="m", messages=messages(prompt), temperature=0)
        return str(answer.choices[0].message.content)

    demanded, retired = last_run(program(ask))
    assert demanded == 3 and retired >= 1


def test_calls_of_clients_made_per_call_are_made_early() -> None:
    def ask(prompt: str) -> str:
        answer = openai.OpenAI().chat.completions.create(model="m", messages=messages(prompt))
        return str(answer.choices[0].message.content)

    demanded, retired = last_run(program(ask))
    assert demanded == 3 and retired >= 1


def test_coroutines_of_a_client_are_started_early() -> None:
    with asyncio.Runner() as runner:
        client = openai.AsyncOpenAI()

        async def ask(prompt: str) -> str:
            answer = await client.chat.completions.create(model="m", messages=messages(prompt))
            return str(answer.choices[0].message.content)

        graph = program(ask, is_async=True)
        demanded, retired = last_run(graph, lambda program, value: runner.run(program.ainvoke(value)))
        runner.run(client.close())
    assert demanded == 3 and retired >= 1


def test_a_stream_is_the_program_s_own(client: openai.OpenAI) -> None:
    def ask(prompt: str) -> str:
        chunks = client.chat.completions.create(model="m", messages=messages(prompt), stream=True)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    assert last_run(program(ask)) == (3, 0)


def test_embeddings_of_a_client(client: openai.OpenAI) -> None:
    def ask(prompt: str) -> str:
        return str(len(client.embeddings.create(model="e", input=[prompt]).data[0].embedding))

    graph = program(ask)
    demanded, retired = last_run(graph)
    assert demanded == 3 and retired >= 2


def test_what_a_model_of_langchain_s_calls_is_a_part_of_its_call() -> None:
    model = ChatOpenAI(model="m", temperature=0)
    demanded, retired = last_run(program(lambda prompt: model.invoke(prompt).content))
    assert demanded == 3 and retired >= 1


def test_answers_of_a_model_are_rebuilt_as_they_were() -> None:
    """Agents put them into their next call's messages, with the calls of tools."""
    sdks.install_all()
    made = ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": None,
            "more": 1,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "find", "arguments": "{}"}}],
        }
    )
    again = thaw(snapshot([made], exact=True))[0]
    assert type(again) is type(made) and again == made
    assert again.model_dump(exclude_unset=True) == made.model_dump(exclude_unset=True)


def test_a_conversation_that_goes_on_with_the_model_s_own_messages(client: openai.OpenAI) -> None:
    def chat(state: State) -> State:
        said: list[Any] = messages(f"Write an outline about {state['topic']}.")
        for wish in ("Shorten it.", "Give keywords."):
            answer = client.chat.completions.create(model="m", messages=said)
            said += [answer.choices[0].message, {"role": "user", "content": wish}]
        found = client.chat.completions.create(model="m", messages=messages(f"Title for {state['topic']}?"))
        return {"both": str(said[-2].content), "keywords": str(found.choices[0].message.content)}

    graph = StateGraph(State).add_node("chat", chat).add_edge(START, "chat").compile()
    demanded, retired = last_run(graph)
    assert demanded == 3 and retired >= 1


def test_an_answer_of_one_key_is_none_of_another() -> None:
    """A program sets the key of its tenant on the client that all share."""
    client = openai.OpenAI(api_key="sk-of-nobody")
    alike = identity_of(client.chat.completions, False)
    client.api_key = "sk-of-a-tenant"
    assert identity_of(client.chat.completions, False) != alike
    client.api_key = "sk-of-nobody"
    assert identity_of(client.chat.completions, False) == alike

    def ask(prompt: str) -> str:
        client.api_key = "sk-of-a-tenant" if prompt.startswith("Give") else "sk-of-nobody"
        answer = client.chat.completions.create(model="m", messages=messages(prompt))
        return str(answer.choices[0].message.content)

    assert last_run(program(ask)) == (3, 0)
    client.close()


@pytest.mark.parametrize("make", [openai.OpenAI, lambda: anthropic.Anthropic(api_key="k")])
def test_a_closed_client_is_known(make: Callable[[], Any]) -> None:
    """Nothing more is called early where programs close what they call with."""
    with make() as client:
        parts = [part for part in (getattr(client, "messages", None), getattr(client, "embeddings", None)) if part]
        assert parts and not any(map(is_closed, [client, *parts]))
    assert all(map(is_closed, [client, *parts]))


def test_an_answer_that_the_program_reads_is_its_own(client: openai.OpenAI) -> None:
    """Unread, it keeps its connection."""

    def ask(prompt: str) -> str:
        completions = client.chat.completions.with_streaming_response
        with completions.create(model="m", messages=messages(prompt)) as response:
            return str(response.parse().choices[0].message.content)

    assert last_run(program(ask)) == (3, 0)


class Telling(openai.OpenAI):
    def _prepare_options(self, options: Any) -> Any:
        told.append("call")
        return super()._prepare_options(options)


told: list[str] = []


@pytest.mark.parametrize(
    "make",
    [
        Telling,
        lambda: openai.OpenAI(http_client=httpx.Client(event_hooks={"request": [lambda _: told.append("call")]})),
    ],
)
def test_no_code_of_the_programs_in_a_client_runs_early(make: Callable[[], openai.OpenAI]) -> None:
    with make() as client:

        def ask(prompt: str) -> str:
            told.append("node")
            answer = client.chat.completions.create(model="m", messages=messages(prompt))
            told.append("end")
            return str(answer.choices[0].message.content)

        assert last_run(program(ask))[1] == 0
    assert told == ["node", "call", "end"] * (2 * 3 * len(TOPICS))
    told.clear()


# --- methods that are declared ---


class Catalogue:
    """A client of nobody's list."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def search(self, query: str, *, most: int = 3) -> list[dict[str, str]]:
        time.sleep(0.03)  # what makes an early call worth while
        self.asked.append(query)
        return [{"title": f"{query} {number}"} for number in range(most)]

    async def asearch(self, query: str) -> list[dict[str, str]]:
        return self.search(query)

    def stream(self, query: str) -> Iterator[str]:
        yield query

    def buy(self, title: str) -> str:
        return f"bought {title}"


def finds(catalogue: Catalogue) -> Ask:
    return lambda prompt: ", ".join(hit["title"] for hit in catalogue.search(prompt, most=2))


def test_a_declared_method_is_called_early() -> None:
    catalogue = Catalogue()
    accel.register(catalogue, methods=["search"], readonly=True, concurrency=4)
    demanded, retired = last_run(program(finds(catalogue)))
    assert demanded == 3 and retired >= 1
    other = Catalogue()
    assert last_run(program(finds(other))) == (3, 0), "it was said of the one object"


def test_a_method_of_a_class_is_declared_for_its_subclasses_that_leave_it_alone() -> None:
    class Shop(Catalogue):
        pass

    class Same(Shop):
        colour = "red"

    class Other(Shop):
        def search(self, query: str, *, most: int = 3) -> list[dict[str, str]]:
            return super().search(query.upper(), most=most)

    accel.register(Shop, methods=("search",), readonly=True, concurrency=4)
    assert facts_of(Shop()).concurrency == 4 and facts_of(Same()).pure
    demanded, retired = last_run(program(finds(Same())))
    assert demanded == 3 and retired >= 1
    assert not facts_of(Other()).pure
    assert last_run(program(finds(Other())))[1] == 0


def test_a_method_is_declared_of_one_object_and_not_of_those_of_which_others_were() -> None:
    """Who may be searched early may not be bought from early, because one may buy from a sandbox."""

    class Shop(Catalogue):
        def buy(self, title: str) -> str:
            self.asked.append(f"buy {title}")
            return super().buy(title)

    real, sandbox = Shop(), Shop()
    accel.register(real, methods=["search"], readonly=True, concurrency=4)
    accel.register(sandbox, methods=["buy"], pure=True, concurrency=4)

    def look(state: State) -> State:
        return {"outline": finds(real)(f"look for {state['topic']}")}

    def order(state: State) -> State:
        return {"both": "" if state["topic"] == "nothing" else real.buy(f"one {state['topic']}")}

    graph = StateGraph(State).add_node("look", look).add_node("order", order).add_edge(START, "look")
    fast = accelerate(graph.add_edge("look", "order").compile())
    for topic in (*TOPICS, "nothing"):
        real.asked.clear()
        fast.invoke({"topic": topic})
        assert accel.settle(10)
        assert real.asked == [f"look for {topic}", f"buy one {topic}"][: 1 + (topic != "nothing")]
    assert fast.report().issued == 0


KEY = "sk-of-the-module-alone"


def test_no_key_that_a_call_is_given_is_in_a_plan(tmp_path: Path) -> None:
    class Service(Catalogue):
        def find(self, query: str, *, api_key: str, headers: dict[str, str]) -> str:
            time.sleep(0.03)
            return query.upper()

    accel.register(Service, methods=["find"], readonly=True, concurrency=4)
    service = Service()

    def ask(prompt: str) -> str:
        return service.find(prompt, api_key=KEY, headers={"Authorization": f"Bearer {KEY}"})

    fast = accelerate(program(ask))
    for topic in TOPICS:
        fast.invoke({"topic": topic})
        assert accel.settle(10)
    assert fast.report().retired > 0
    path = tmp_path / "plan.json"
    fast.save_plan(str(path))
    assert KEY not in path.read_text(encoding="utf-8")
    assert accelerate(program(ask), plan=str(path)).invoke({"topic": "bees"}) == program(ask).invoke({"topic": "bees"})


def test_what_can_not_be_declared_says_why() -> None:
    with pytest.raises(ConfigurationError, match="Nobody said what 'search' does"):
        accel.register(Catalogue, methods=["search"])
    with pytest.raises(ConfigurationError, match="Catalogue has no method 'find'"):
        accel.register(Catalogue, methods=["find"], readonly=True)
    with pytest.raises(ConfigurationError, match="Catalogue.stream yields"):
        accel.register(Catalogue, methods=["stream"], readonly=True)


# --- patches ---


def test_clients_made_alike_are_the_same() -> None:
    for make in (
        lambda: openai.OpenAI().chat.completions,
        lambda: openai.AsyncOpenAI().embeddings,
        lambda: anthropic.Anthropic(api_key="k").messages,
    ):
        assert identity_of(make(), by_object=False) == identity_of(make(), by_object=False)
    one, other = openai.OpenAI(api_key="a"), openai.OpenAI(api_key="b")
    assert identity_of(one.chat.completions, False) != identity_of(other.chat.completions, False)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: openai.OpenAI().chat.completions, "create"),
        (lambda: openai.AsyncOpenAI().chat.completions, "parse"),
        (lambda: openai.OpenAI().embeddings, "create"),
        (lambda: anthropic.Anthropic(api_key="k").messages, "create"),
        (lambda: anthropic.AsyncAnthropic(api_key="k").messages, "create"),
        (lambda: ollama.Client(), "chat"),
        (lambda: ollama.AsyncClient(), "embed"),
    ],
)
def test_listed_methods_are_patched_and_restored(make: Callable[[], Any], name: str) -> None:
    component = make()
    cls = type(component)
    accelerate(program(lambda prompt: prompt)).invoke({"topic": "bees"})
    assert patches.is_installed(cls, name) and sdks.is_leaf(component)
    assert facts_of(component).pure
    accel.uninstall()
    assert isinstance(cls.__dict__[name], types.FunctionType)


def test_a_method_that_somebody_has_wrapped_is_let_be(client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    """As instrumentation does, which has to hear of calls when the program makes them."""
    from openai.resources.chat.completions import Completions

    accel.uninstall()
    told: list[str] = []
    create = Completions.create

    def traced(self: Any, *args: Any, **kwargs: Any) -> Any:
        told.append(kwargs["messages"][-1]["content"])
        return create(self, *args, **kwargs)

    monkeypatch.setattr(Completions, "create", traced)

    def ask(prompt: str) -> str:
        answer = client.chat.completions.create(model="m", messages=messages(prompt))
        return str(answer.choices[0].message.content)

    assert last_run(program(ask)) == (0, 0)
    assert len(told) == 2 * 3 * len(TOPICS)
