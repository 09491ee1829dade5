"""Reranking: the drop-in class on an engine made here, and compressors of any kind issued early."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import PrivateAttr, ValidationError

import accel
from accel import accelerate
from accel.engine import DEMAND, Priority
from accel.engine.profile import Profile
from accel.errors import RequestError
from accel.parts.components import facts_of
from accel.parts.methods.methods import METHODS
from accel.text.values import freeze
from accel_langgraph import AccelReranker
from adapters.tests.core_fakes import Chat, OwnedStore, State, World, chain, train

TOPIC = "beaches of Portugal"
PARTS = 4

# --- the drop-in class


@dataclass(frozen=True)
class CountedWords:
    """The config of an engine whose score is the number of words that query and text share."""

    label: str = "counted words"

    def create(self) -> CountingEngine:
        return CountingEngine()


class CountingEngine:
    known_profile: Profile | None = None

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def profile(self) -> Profile:
        raise NotImplementedError

    async def rerank(
        self, query: str, texts: Sequence[str], *, priority: Priority = DEMAND
    ) -> list[float | RequestError]:
        asked = set(query.split())
        return [RequestError("bad") if text == "bad" else float(len(asked & set(text.split()))) for text in texts]


def documents() -> list[Document]:
    texts = ("a dog", "a red cat", "one red cat", "nothing", "red")
    return [Document(page_content=text, id=str(n), metadata={"deep": {"n": n}}) for n, text in enumerate(texts)]


@pytest.fixture
def reranker() -> AccelReranker:
    return AccelReranker(engine=CountedWords(), top_n=3)


async def test_the_best_come_first_and_ties_stay_in_order(reranker: AccelReranker) -> None:
    best = reranker.compress_documents(documents(), "a red cat")
    assert [document.id for document in best] == ["1", "2", "0"]
    assert [document.metadata["relevance_score"] for document in best] == [3.0, 2.0, 1.0]
    assert await reranker.acompress_documents(documents(), "a red cat") == best
    alike = reranker.model_copy(update={"top_n": 9}).compress_documents(documents(), "zebra")
    assert [document.id for document in alike] == ["0", "1", "2", "3", "4"]
    assert reranker.compress_documents([], "a red cat") == []


def test_documents_are_copies(reranker: AccelReranker) -> None:
    class Scan(Document):
        page: int = 0

    given: list[Document] = [*documents(), Scan(page_content="a red cat", page=7, metadata={"deep": {}})]
    best = reranker.compress_documents(given, "a red cat")
    assert isinstance(best[1], Scan) and best[1].page == 7
    best[0].metadata["deep"]["n"] = best[1].metadata["deep"]["n"] = "changed"
    assert given[:-1] == documents() and given[-1].metadata == {"deep": {}}


def test_a_text_that_fails_fails_the_call(reranker: AccelReranker) -> None:
    with pytest.raises(RequestError, match="bad"):
        reranker.compress_documents([Document(page_content="bad")], "a red cat")


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValidationError):
        AccelReranker(top_n=0)
    with pytest.raises(ValidationError):
        AccelReranker(topn=2)  # type: ignore[call-arg]


# --- early calls


class Ranker(BaseDocumentCompressor):
    """A compressor of a user: reads no state. Documents whose text has a letter of the query, shortest first."""

    _world: World = PrivateAttr()

    def __init__(self, world: World, **fields: Any) -> None:
        super().__init__(**fields)
        self._world = world

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        self._world.serve("ranker", f"Rank {len(documents)} for {query}")
        found = [document for document in documents if set(query) & set(document.page_content)]
        best = sorted(found, key=lambda document: len(document.page_content))
        return [Document(page_content=document.page_content, metadata={"rank": n}) for n, document in enumerate(best)]


class NumberingRanker(Ranker):
    """What it answers depends on the order of calls; nobody declared it."""

    count: int = 0

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        self.count += 1
        self._world.serve("ranker", f"Rank {len(documents)} for {query}")
        return [Document(page_content=f"{self.count}")]


class HandedOn(Ranker):
    """Its answer is made by a chat model: a composite."""

    model: Any = None

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        said = self.model.invoke(f"Which of {len(documents)} fits {query}?").content
        return [Document(page_content=said)]


class HandingBack(Ranker):
    """Gives the documents it was given, in another order."""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        self._world.serve("ranker", f"Rank {len(documents)} for {query}")
        return sorted(documents, key=lambda document: len(document.page_content))


accel.register(Ranker, pure=True, local=True, concurrency=8)
accel.register(HandingBack, pure=True, local=True, concurrency=8)


def program(world: World, ranker: Any, callbacks: Any = None) -> Any:
    """a lists parts; b searches and ranks for each of them, then changes the documents it was given."""
    model = Chat(world)
    store = OwnedStore(world, {text: text for text in ("a long text about sand", "short", "sea and wind")})

    def a(state: State) -> State:
        return {"a": model.invoke(f"List parts of {state['q']}").content}

    def b(state: State) -> State:
        world.node("b")
        answers: list[Any] = []
        given: list[Any] = []
        for line in state["a"].split("\n"):
            found = store.similarity_search(line, k=3)
            ranked = ranker.compress_documents(found, line, callbacks)
            answers.append([(document.page_content, dict(document.metadata)) for document in ranked])
            ranked[0].metadata["used"] = True
            ranked.clear()
            given.extend(document.metadata for document in found)
        return {"b": answers, "c": given}

    return chain(("a", a), ("b", b))


def a_world() -> World:
    def say(text: str) -> str:
        if not text.startswith("List"):
            return text
        return "\n".join(f"part {n} of {text.removeprefix('List parts of ')}" for n in range(PARTS))

    return World(answer=say)


def ready(world: World, ranker: Any, callbacks: Any = None) -> Any:
    fast = accelerate(program(world, ranker, callbacks))
    train(fast)
    world.forget()
    return fast


def all_ranked(world: World) -> None:
    """Wait until every ranking has been made early."""
    world.wait(lambda: sum(call.over for call in world.calls if call.early and call.component == "ranker") == PARTS)


def expected() -> Any:
    world = a_world()
    return program(world, Ranker(world)).invoke({"q": TOPIC})


def test_rankings_in_a_loop_are_made_early_and_retire() -> None:
    world = a_world()
    fast = ready(world, Ranker(world))
    world.hooks["b"] = lambda: all_ranked(world)
    result = fast.invoke({"q": TOPIC})
    assert result == expected()
    assert result["c"] == [{}] * 3 * PARTS, "nobody's metadata changed but that of what the ranker made"
    assert len(world.texts("Rank", early=True)) == PARTS
    assert world.texts("Rank", early=False) == [], "the early call is the call: nothing is ranked twice"


async def test_the_drop_in_class_retires_early_from_coroutines(reranker: AccelReranker) -> None:
    world = a_world()
    model = Chat(world)
    given = documents()

    async def a(state: State) -> State:
        return {"a": (await model.ainvoke(f"List parts of {state['q']}")).content}

    async def b(state: State) -> State:
        await asyncio.to_thread(accel.settle)
        ranked = [await reranker.acompress_documents(given, line) for line in state["a"].split("\n")]
        return {"b": [[document.model_dump() for document in found] for found in ranked]}

    plain = chain(("a", a), ("b", b))
    fast = accelerate(plain)
    for topic in ("all red volcanoes", "a red glacier", "one red cat"):
        assert await fast.ainvoke({"q": topic}) == await plain.ainvoke({"q": topic})
        assert await asyncio.to_thread(accel.settle)
    assert fast.report().retired >= PARTS
    assert given == documents()


def test_a_ranker_whose_code_counts_is_never_called_early() -> None:
    world = a_world()
    ranker = NumberingRanker(world)
    assert not facts_of(ranker).pure
    fast = ready(world, ranker)
    assert [found[0][0] for found in fast.invoke({"q": TOPIC})["b"]] == ["9", "10", "11", "12"]
    assert world.texts("Rank", early=True) == []


def test_a_ranker_that_gives_back_what_it_was_given_answers_for_itself() -> None:
    plain = a_world()
    wanted = program(plain, HandingBack(plain)).invoke({"q": TOPIC})
    world = a_world()
    fast = ready(world, HandingBack(world))
    world.hooks["b"] = lambda: world.wait(lambda: len(world.texts("Rank", early=True)) > 0)
    assert fast.invoke({"q": TOPIC}) == wanted
    assert wanted["c"].count({"used": True}) >= PARTS, "the program's own documents have changed"
    assert len(world.texts("Rank", early=False)) == PARTS
    world.forget()
    world.hooks.clear()
    assert fast.invoke({"q": TOPIC}) == wanted
    assert world.texts("Rank", early=True) == [], "once found out, it is never called early again"


def test_of_a_ranker_that_asks_a_model_the_models_calls_are_made_early() -> None:
    world = a_world()
    fast = ready(world, HandedOn(world, model=Chat(world)))
    world.hooks["b"] = lambda: world.wait_early("Which of 3 fits part 3")
    answers = fast.invoke({"q": TOPIC})["b"]
    assert [found[0][0] for found in answers] == [f"Which of 3 fits part {n} of {TOPIC}?" for n in range(PARTS)]
    assert len(world.texts("Which")) == PARTS


@pytest.mark.parametrize(("handlers", "early"), [([], PARTS), ([BaseCallbackHandler()], 0)])
def test_callbacks_that_somebody_hears_keep_a_call_from_being_made_early(handlers: list[Any], early: int) -> None:
    world = a_world()
    fast = ready(world, Ranker(world), handlers)
    if early:
        world.hooks["b"] = lambda: all_ranked(world)
    assert fast.invoke({"q": TOPIC}) == expected()
    assert len(world.texts("Rank", early=True)) == early
    assert len(world.texts("Rank")) == PARTS


def test_inputs_are_the_same_by_position_and_by_name_and_can_be_built_again() -> None:
    world = a_world()
    ranker = Ranker(world)
    method = METHODS["reranker", "compress_documents"]
    given = documents()
    tree = method.read(ranker, (given, "red", None), {})
    assert tree == method.read(ranker, (), {"documents": given, "query": "red", "callbacks": []})
    args, kwargs = method.build(ranker, tree)
    assert kwargs == {"documents": given, "query": "red"} and kwargs["documents"][0] is not given[0]
    assert freeze(method.read(ranker, args, kwargs)) == freeze(tree)
