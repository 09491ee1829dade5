"""What LangChain computes between two calls: each step gives what LangChain's own function gives, and a call that uses
such a result begins before its node is reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_messages,
    filter_messages,
    get_buffer_string,
    merge_message_runs,
    trim_messages,
)
from langchain_core.output_parsers import (
    CommaSeparatedListOutputParser,
    JsonOutputParser,
    MarkdownListOutputParser,
    NumberedListOutputParser,
    PydanticOutputParser,
)
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate, format_document
from langchain_core.retrievers import BaseRetriever
from pydantic import BaseModel, PrivateAttr

import accel
from accel.run.plans.written import decode_step, encode_step
from accel.text.extract import extract
from accel.text.functions import Computed
from accel.text.paths import UNKNOWN, step_into
from accel.text.values import snapshot
from accel_langgraph.components import COMPUTES
from adapters.tests.core_fakes import Chat, State, Store, World, as_text, chain

# --- the table ------------------------------------------------------------------------------------------------------

_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=30)
_CALL = {"name": "look_up", "args": {"word": "sea"}, "id": "call-1", "type": "tool_call"}
_MESSAGES = st.one_of(
    st.builds(HumanMessage, _TEXTS),
    st.builds(HumanMessage, st.lists(st.builds(lambda text: {"type": "text", "text": text}, _TEXTS), max_size=2)),
    st.builds(SystemMessage, _TEXTS),
    st.builds(AIMessage, _TEXTS),
    st.builds(lambda text: AIMessage(text, tool_calls=[_CALL]), _TEXTS),
    st.builds(lambda text: ToolMessage(text, tool_call_id="call-1", name="look_up"), _TEXTS),
)
_TALKS = st.lists(_MESSAGES, min_size=1, max_size=9)
_COUNTERS = {"len": len, "approximate": "approximate"}


def shown(value: Any) -> Any:
    """As a step sees it."""
    return [snapshot(item) for item in value] if isinstance(value, list) else value


def step(name: str, *given: Any) -> Computed:
    assert name in COMPUTES
    made = Computed(name, given)
    assert decode_step(encode_step(made)) == made, "plans keep it by its name"
    return made


@given(
    _TALKS, st.integers(1, 60), st.sampled_from(sorted(_COUNTERS)), st.sampled_from([None, "human"]),
    st.sampled_from([None, ["human", "tool"], ["human"]]), st.booleans(),
)  # fmt: skip
def test_messages_from_the_end(
    talk: list[BaseMessage], n: int, counter: str, start: str | None, end: list[str] | None, system: bool
) -> None:
    expected = trim_messages(
        talk, max_tokens=n, token_counter=_COUNTERS[counter], strategy="last", start_on=start, end_on=end,
        include_system=system,
    )  # fmt: skip
    made = step("trim_messages", n, counter, "last", start or "", ",".join(end or ()), int(system))
    assert step_into(shown(talk), made) == shown(expected)


@given(_TALKS, st.integers(1, 60), st.sampled_from(sorted(_COUNTERS)))
def test_messages_from_the_beginning(talk: list[BaseMessage], n: int, counter: str) -> None:
    expected = trim_messages(talk, max_tokens=n, token_counter=_COUNTERS[counter], strategy="first")
    assert step_into(shown(talk), step("trim_messages", n, counter, "first", "", "", 0)) == shown(expected)


@given(_TALKS, st.lists(st.sampled_from(["human", "ai", "system", "tool"]), min_size=1, max_size=2, unique=True))
def test_messages_of_some_kinds(talk: list[BaseMessage], kinds: list[str]) -> None:
    names = ",".join(kinds)
    assert step_into(shown(talk), step("filter_messages", names, "", 0)) == shown(
        filter_messages(talk, include_types=kinds)
    )
    assert step_into(shown(talk), step("filter_messages", "", names, 0)) == shown(
        filter_messages(talk, exclude_types=kinds)
    )
    assert step_into(shown(talk), step("filter_messages", "", "", 1)) == shown(
        filter_messages(talk, exclude_tool_calls=True)
    )


@given(_TALKS, st.sampled_from(["\n", "\n\n", " ", ""]))
def test_messages_in_a_row(talk: list[BaseMessage], separator: str) -> None:
    expected = shown(merge_message_runs(talk, chunk_separator=separator))
    assert step_into(shown(talk), step("merge_message_runs", separator)) == expected


@given(_TALKS, st.sampled_from([("Human", "AI"), ("User", "Assistant")]), st.sampled_from(["\n", "\n\n"]))
def test_messages_as_text(talk: list[BaseMessage], names: tuple[str, str], separator: str) -> None:
    made = step("get_buffer_string", *names, separator, "prefix")
    assert step_into(shown(talk), made) == get_buffer_string(talk, *names, message_separator=separator)
    made = step("get_buffer_string", "Human", "AI", "\n", "xml")
    assert step_into(shown(talk), made) == get_buffer_string(talk, format="xml")


@given(_TALKS, st.sampled_from(["string", "block"]))
def test_messages_as_openai_takes_them(talk: list[BaseMessage], form: Any) -> None:
    expected = convert_to_openai_messages(talk, text_format=form)
    assert step_into(shown(talk), step("convert_to_openai_messages", form)) == expected


_FOUND = st.lists(st.sampled_from("abcdef"), max_size=5, unique=True).map(
    lambda texts: [Document(page_content=text, metadata={"rank": rank}) for rank, text in enumerate(texts)]
)


@given(st.lists(_FOUND, min_size=2, max_size=2), st.sampled_from([(), (0.3, 0.7), (0.5, 0.5)]))
def test_documents_in_one_order(found: list[list[Document]], weights: tuple[float, ...]) -> None:
    ensemble = pytest.importorskip("langchain_classic.retrievers.ensemble", reason="langchain-classic has it")
    shelves = [Shelf(World(), kind) for kind in ("books", "papers")]
    own = ensemble.EnsembleRetriever(retrievers=shelves, weights=list(weights) or [0.5, 0.5])
    made = step("weighted_reciprocal_rank", 60, *weights)
    assert step_into(snapshot(found), made) == shown(own.weighted_reciprocal_rank(found))


def test_messages_of_a_class_of_the_programs_are_left_alone() -> None:
    class Own(HumanMessage):
        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(*args, **fields)
            made.append(self)

    made: list[Own] = []
    talk = shown([Own("one"), AIMessage("two")])
    made.clear()
    for name, function in COMPUTES.items():
        for values in ((), ("\n",), ("", "human", 0), ("Human", "AI", "\n", "prefix"), (3, "len", "last", "", "", 0)):
            assert step_into(talk, Computed(name, values)) is UNKNOWN
        assert not list(function.ways(talk, accel.text.constants.Constants(whole=(2,))))
    assert not made


# --- parsers --------------------------------------------------------------------------------------------------------

_WORDS = st.lists(st.from_regex(r"[a-z]{3,8} [a-z]{3,8}", fullmatch=True), min_size=2, max_size=5)


@given(_WORDS)
def test_what_parsers_give_extractors_give(words: list[str]) -> None:
    """Those that need no step of their own."""
    numbered = "\n".join(f"{number}. {word}" for number, word in enumerate(words, 1))
    assert extract("numbered", numbered) == NumberedListOutputParser().parse(numbered) == words
    marked = "\n".join(f"- {word}" for word in words)
    assert extract("bullets", marked) == MarkdownListOutputParser().parse(marked) == words
    row = ", ".join(words)
    assert extract("commas", row) == CommaSeparatedListOutputParser().parse(row) == words
    said = '```json\n{"words": ' + str(words).replace("'", '"') + "}\n```"
    assert extract("json", said) == JsonOutputParser().parse(said) == {"words": words}


# --- programs -------------------------------------------------------------------------------------------------------

TOPICS = ("volcanoes of Iceland", "glaciers of Norway", "geysers of Chile", "fjords of Alaska", "deserts of Namibia")
LAST = "moors of Wales"


def size(topic: str) -> int:
    return sum(map(ord, topic)) % 5


def talk(topic: str) -> list[BaseMessage]:
    said: list[BaseMessage] = [SystemMessage(f"You know all about {topic}.")]
    for number in range(3 + 2 * size(topic)):
        kind = (HumanMessage, AIMessage)[number % 2]
        more = "word " * (sum(map(ord, topic)) * (number + 3) % 13)
        said.append(kind(f"Part {number} of what is said on {topic} {more}"))
    return [*said, HumanMessage(f"What else is there to say on {topic}?")]


def in_rows(topic: str) -> list[BaseMessage]:
    """Some messages of one kind follow each other."""
    kinds = (HumanMessage, AIMessage)
    long = 1 + len(topic) % 3
    return [kinds[number // long % 2](f"Part {number} on {topic}") for number in range(4 + size(topic))]


trimmer = trim_messages(
    max_tokens=100, token_counter="approximate", strategy="last", start_on="human", end_on=("human", "tool"),
    include_system=True,
)  # fmt: skip
summary = ChatPromptTemplate.from_messages([("human", "Summarize this:\n{talk}\nin one sentence.")])

MESSAGES: dict[str, tuple[Callable[[str], list[BaseMessage]], Callable[[list[BaseMessage]], Any]]] = {
    "the last ones": (talk, lambda said: said[-3:]),
    "trimmed": (
        talk,
        lambda said: trim_messages(
            said, max_tokens=100, token_counter="approximate", strategy="last", start_on="human", include_system=True
        ),
    ),
    "trimmed by their number": (
        in_rows, lambda said: trim_messages(said, max_tokens=4, token_counter=len, strategy="last", start_on="human")
    ),
    "trimmed from the beginning": (
        talk, lambda said: trim_messages(said, max_tokens=140, token_counter="approximate", strategy="first")
    ),
    "by a trimmer": (talk, trimmer.invoke),
    "of one kind": (talk, lambda said: filter_messages(said, include_types=["human"])),
    "without one kind": (talk, lambda said: filter_messages(said, exclude_types=["system"])),
    "chosen by the program": (talk, lambda said: [each for each in said if not isinstance(each, SystemMessage)]),
    "merged": (in_rows, merge_message_runs),
    "as text": (talk, lambda said: f"Summarize this:\n{get_buffer_string(said)}\nin one sentence."),
    "as text in a prompt": (talk, lambda said: summary.invoke({"talk": get_buffer_string(said)})),
    "trimmed, as text": (talk, lambda said: f"Summarize this:\n{get_buffer_string(trimmer.invoke(said))}\nnow."),
}  # fmt: skip


def made_ahead(world: World, graph: Any, prompt: str) -> Any:
    """The accelerated graph, of which the one call that begins so is made while node "look" runs, and asked once."""
    fast = accel.accelerate(graph)
    for topic in TOPICS:
        assert fast.invoke({"q": topic}) == graph.invoke({"q": topic})
        assert accel.settle()
    expected = graph.invoke({"q": LAST})
    world.forget()
    world.hooks["look"] = lambda: world.wait_early(prompt)
    assert fast.invoke({"q": LAST}) == expected
    assert len(world.texts(prompt)) == len(world.texts(prompt, early=True)) == 1
    return fast


def after_another(world: World, compute: Callable[[Any], Any]) -> Any:
    """What is computed is asked about in a node that comes after one with another call."""
    model = Chat(world)

    def look(state: State) -> State:
        world.node("look")
        return {"a": model.invoke("How is the weather?").content}

    def go_on(state: State) -> State:
        world.node("go on")
        return {"b": model.invoke(compute(state["c"])).content}

    return chain(("look", look), ("go on", go_on))


@pytest.mark.parametrize("name", MESSAGES)
def test_a_call_with_messages_is_made_before_its_node_is_reached(name: str) -> None:
    make, compute = MESSAGES[name]
    world = World()
    graph = after_another(world, compute)
    fast = accel.accelerate(graph)
    for topic in TOPICS:
        assert fast.invoke({"c": make(topic)}) == graph.invoke({"c": make(topic)})
        assert accel.settle()
    expected, asked = graph.invoke({"c": make(LAST)}), asked_of(compute(make(LAST)))
    world.forget()
    world.hooks["look"] = lambda: world.wait_early(asked)
    assert fast.invoke({"c": make(LAST)}) == expected
    assert [call.early for call in world.calls if call.text == asked] == [True] and len(world.calls) == 2
    assert f"|{STEPS[name]}" in str(fast.plan.graph)


STEPS = {name: "trim_messages" for name in MESSAGES} | {
    "the last ones": "last ones",
    "of one kind": "filter_messages",
    "without one kind": "filter_messages",
    "chosen by the program": "filter_messages",
    "merged": "merge_message_runs",
    "as text": "as one of",
    "as text in a prompt": "as one of",
    "trimmed, as text": "get_buffer_string",
}


def asked_of(prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    return as_text(prompt if isinstance(prompt, list) else prompt.to_messages())


# --- what needs no step of its own ----------------------------------------------------------------------------------


class Plan(BaseModel):
    topic: str
    sights: list[str]


def sights(topic: str) -> list[str]:
    parts = ("northern gate", "old harbour", "market", "tower")
    return [f"the {part} of {topic}" for part in parts[: 2 + size(topic) % 3]]


def in_json(topic: str) -> str:
    return "```json\n" + Plan(topic=topic[::-1], sights=sights(topic)).model_dump_json() + "\n```"


def numbered(topic: str) -> str:
    return "\n".join(f"{number}. {sight}" for number, sight in enumerate(sights(topic), 1))


def marked(topic: str) -> str:
    return "\n".join(f"- {sight}" for sight in sights(topic))


def in_a_row(topic: str) -> str:
    return ", ".join(sights(topic))


PARSERS: dict[str, tuple[Callable[[str], str], Callable[[str], Any]]] = {
    "pydantic": (in_json, lambda said: PydanticOutputParser(pydantic_object=Plan).parse(said).topic),
    "json": (in_json, lambda said: " and ".join(JsonOutputParser().parse(said)["sights"])),
    "numbered": (numbered, lambda said: " and ".join(NumberedListOutputParser().parse(said))),
    "markdown": (marked, lambda said: " and ".join(MarkdownListOutputParser().parse(said))),
    "commas": (in_a_row, lambda said: " and ".join(CommaSeparatedListOutputParser().parse(said))),
}


@pytest.mark.parametrize("name", PARSERS)
def test_a_call_with_what_a_parser_gave_is_made_before_its_node_is_reached(name: str) -> None:
    written, parsed = PARSERS[name]
    world = World(answer=lambda text: written(text[8:]) if text.startswith("Plan of ") else f"answer to <{text}>")
    model = Chat(world)

    def plan(state: State) -> State:
        return {"a": model.invoke(f"Plan of {state['q']}").content}

    def look(state: State) -> State:
        world.node("look")
        return {"b": model.invoke("How is the weather?").content}

    def go_on(state: State) -> State:
        return {"c": model.invoke(f"Tell me more about {parsed(state['a'])}.").content}

    graph = chain(("plan", plan), ("look", look), ("go on", go_on))
    made_ahead(world, graph, "Tell me more about")


class Library(Store):
    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self.world.serve("store", query)
        first = int(query[-1])
        return [Document(page_content=f"Page {number} on {query[:-2]}.") for number in range(first, first + 3)]


accel.register(Library, readonly=True, pure=True, local=True, concurrency=8)


def stuffed(documents: Sequence[Document]) -> str:
    """As `create_stuff_documents_chain` joins them."""
    page = PromptTemplate.from_template("{page_content}")
    return "\n\n".join(format_document(document, page) for document in documents)


def several_queries(world: World) -> Any:
    """As `MultiQueryRetriever` looks up: a model writes the queries, and of equal documents the first one counts."""
    model, library = Chat(world), Library(world)

    def look_up(state: State) -> State:
        queries = model.invoke(f"Queries on {state['q']}").content.split("\n")
        found = [document for query in queries for document in library.similarity_search(query)]
        return {"a": [each for number, each in enumerate(found) if each not in found[:number]]}

    def look(state: State) -> State:
        world.node("look")
        return {"b": model.invoke("How is the weather?").content}

    def go_on(state: State) -> State:
        return {"c": model.invoke(f"Answer from this:\n{stuffed(state['a'])}\n{state['q']}?").content}

    return chain(("look", look), ("look up", look_up), ("go on", go_on))


def test_a_call_with_what_several_queries_found_is_made_before_its_node_is_reached() -> None:
    def answer(text: str) -> str:
        about = text.removeprefix("Queries on ")
        return "\n".join(f"{about} {number}" for number in range(2 + size(about) % 3)) if about != text else f"<{text}>"

    world = World(answer=answer)
    graph = several_queries(world)
    made_ahead(world, graph, "Answer from this")


# --- retrievers and chains that are made of others ------------------------------------------------------------------


class Shelf(BaseRetriever):
    """Finds pages of one kind."""

    kind: str
    _world: World = PrivateAttr()

    def __init__(self, world: World, kind: str) -> None:
        super().__init__(kind=kind)
        self._world = world

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self._world.serve(self.kind, query)
        order = sorted(range(5), key=lambda number: sum(map(ord, f"{query}{self.kind}")) * (number + 3) % 7)
        return [Document(page_content=f"Page {number} on {query}.") for number in order[:3]]


accel.register(Shelf, readonly=True, pure=True, local=True, concurrency=8)


def ensemble(world: World, classic: Any) -> Any:
    return classic.EnsembleRetriever(retrievers=[Shelf(world, "books"), Shelf(world, "papers")], weights=[0.3, 0.7])


def compressed(world: World, classic: Any) -> Any:
    from langchain_classic.retrievers.document_compressors import LLMChainExtractor

    return classic.ContextualCompressionRetriever(
        base_retriever=Shelf(world, "books"), base_compressor=LLMChainExtractor.from_llm(Chat(world))
    )


def multi_query(world: World, classic: Any) -> Any:
    return classic.MultiQueryRetriever.from_llm(Shelf(world, "books"), Chat(world))


@pytest.mark.parametrize("make", [ensemble, compressed, multi_query], ids=lambda make: make.__name__)
def test_a_call_with_what_such_a_retriever_found_is_made_before_its_node_is_reached(make: Any) -> None:
    classic = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic has them")

    def answer(text: str) -> str:
        if "different versions" in text:
            about = text.rpartition("Original question: ")[2]
            return "\n".join(f"{about}, {way}" for way in ("early", "late", "now")[: 2 + size(about) % 2])
        return text.rpartition("Context:\n>>>\n")[2][:7] if "Context:" in text else f"<{text}>"

    world = World(answer=answer)
    retriever, model = make(world, classic), Chat(world)

    def look_up(state: State) -> State:
        return {"a": retriever.invoke(state["q"])}

    def look(state: State) -> State:
        world.node("look")
        return {"b": model.invoke("How is the weather?").content}

    def go_on(state: State) -> State:
        return {"c": model.invoke(f"Answer from this:\n{stuffed(state['a'])}\n{state['q']}?").content}

    graph = chain(("look", look), ("look up", look_up), ("go on", go_on))
    fast = made_ahead(world, graph, "Answer from this")
    assert ("weighted_reciprocal_rank(60, 0.3, 0.7)" in str(fast.plan.graph)) is (make is ensemble)
