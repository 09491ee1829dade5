"""Named traps: components that nobody vouches for keep state that no reading of their code finds. They are never
entered early, so their programs give what they give without Accel."""

from __future__ import annotations

import itertools
import os
import queue
import random
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from pydantic import PrivateAttr

from compat_tests.traps import TOPICS, Chat, felt_by_nobody, result_of, text_of

pytestmark = pytest.mark.timeout(60)
WORDS = [f"word {number}" for number in range(99)]


def said(model: BaseChatModel) -> Any:
    return lambda text: model.invoke(text).content


def found(component: Any) -> Any:
    return lambda text: [document.page_content for document in component.invoke(text)]


def near(store: VectorStore) -> Any:
    return lambda text: [document.page_content for document in store.similarity_search(text, k=1)]


# --- state that a component keeps


class Dice(Chat):
    rng: Any = None

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return result_of(f"{text_of(messages)}: {self.rng.randint(0, 10**9)}")


def test_a_seeded_generator_in_a_field() -> None:
    felt_by_nobody(lambda: Dice(rng=random.Random(7)), said)


class RoundRobin(BaseRetriever):
    shelves: Any = None

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        self.shelves.rotate(1)
        return [Document(f"{query}: {self.shelves[0]}")]


def test_a_deque_that_rotates() -> None:
    felt_by_nobody(lambda: RoundRobin(shelves=deque(WORDS)), found)


def filled() -> queue.Queue[str]:
    made: queue.Queue[str] = queue.Queue()
    for word in WORDS:
        made.put(word)
    return made


class Tickets(Embeddings):
    def __init__(self) -> None:
        self.tickets = filled()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(self.tickets.get_nowait().split()[1]), float(len(text))]


def test_a_queue_that_is_emptied() -> None:
    felt_by_nobody(Tickets, lambda embeddings: embeddings.embed_query)


class Diary:
    def __init__(self) -> None:
        self.pages: list[str] = []

    def note(self, text: str) -> int:
        self.pages.append(text)
        return len(self.pages)


class Remembering(VectorStore):
    def __init__(self) -> None:
        self.diary = Diary()

    @classmethod
    def from_texts(cls, texts: list[str], embedding: Embeddings, *args: Any, **kwargs: Any) -> Remembering:
        return cls()

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [Document(f"search {self.diary.note(query)}: {query}")]


def test_a_list_behind_a_method() -> None:
    plain, fast = felt_by_nobody(Remembering, near)
    assert fast.diary.pages == plain.diary.pages


class Client(Chat):
    client: Any = None

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return result_of(self.client.complete(text_of(messages)))


def test_a_mock_as_client() -> None:
    """Its calls are counted, and its answers are given in turn."""
    plain, fast = felt_by_nobody(lambda: Client(client=Mock(**{"complete.side_effect": WORDS})), said)
    assert fast.client.mock_calls == plain.client.mock_calls


def test_a_function_with_a_counter_in_its_closure() -> None:
    def made() -> Client:
        numbers = itertools.count()
        client = Mock(spec=["complete"])
        client.complete = lambda text: f"{text} is number {next(numbers)}"
        return Client(client=client)

    felt_by_nobody(made, said)


class Reranked(BaseRetriever):
    rank: Any = None

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        return [Document(f"{query}: {self.rank()}")]


def test_a_counter_in_the_closure_of_a_field() -> None:
    def made() -> Reranked:
        numbers = itertools.count()
        return Reranked(rank=lambda: next(numbers))

    felt_by_nobody(made, found)


# --- state around a component, that the program's nodes set just before they call


LANGUAGE = "none"
SESSION = threading.local()


class Spoken(Chat):
    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return result_of(f"{text_of(messages)} in {LANGUAGE}")


def test_a_module_global() -> None:
    def ask(model: Spoken) -> Any:
        def asked(text: str) -> Any:
            global LANGUAGE
            LANGUAGE = f"language {text[:3]}"
            return model.invoke(text).content

        return asked

    felt_by_nobody(Spoken, ask)


class Configured(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(os.environ.get("ACCEL_TRAP_SIZE", "-1")), float(len(text))]


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(embeddings: Configured) -> Any:
        def asked(text: str) -> Any:
            monkeypatch.setenv("ACCEL_TRAP_SIZE", str(len(text)))
            return embeddings.embed_query(text)

        return asked

    felt_by_nobody(Configured, ask)


class Signed(Chat):
    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return result_of(f"{text_of(messages)} for {getattr(SESSION, 'user', 'nobody')}")


def test_a_thread_local() -> None:
    def ask(model: Signed) -> Any:
        def asked(text: str) -> Any:
            SESSION.user = "ann"
            return model.invoke(text).content

        return asked

    felt_by_nobody(Signed, ask)


class Archive(BaseRetriever):
    handle: Any = None
    faults: Any = None

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        try:
            rows = self.handle.execute("select text from notes where ? like '%' || word || '%'", (query,))
        except sqlite3.ProgrammingError as error:
            self.faults.append(error)
            raise
        return [Document(row[0]) for row in rows]


def test_a_handle_that_belongs_to_its_thread() -> None:
    """sqlite3 refuses another thread's calls."""
    handle = sqlite3.connect(":memory:", check_same_thread=True)
    handle.execute("create table notes (word, text)")
    handle.executemany("insert into notes values (?, ?)", [(topic.split()[0], f"on {topic}") for topic in TOPICS])
    try:
        _, fast = felt_by_nobody(lambda: Archive(handle=handle, faults=deque()), found)
        assert not fast.faults
    finally:
        handle.close()


# --- subclasses of what is listed


def store_of(cls: type[InMemoryVectorStore]) -> InMemoryVectorStore:
    store = cls(DeterministicFakeEmbedding(size=8))
    store.add_texts(WORDS[:9])
    return store


class Counted(InMemoryVectorStore):
    """Overrides a leaf."""

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        number = next(self.numbers)
        return [Document(f"{number}: {found.page_content}") for found in super().similarity_search(query, k, **kwargs)]

    @property
    def numbers(self) -> Iterator[int]:
        return self.__dict__.setdefault("counter", itertools.count())


class Numbered(InMemoryVectorStore):
    """Overrides a helper of a leaf."""

    def __init__(self, embedding: Embeddings) -> None:
        super().__init__(embedding)
        self.numbers = itertools.count()

    def _similarity_search_with_score_by_vector(self, *args: Any, **kwargs: Any) -> Any:
        number = next(self.numbers)
        hits = super()._similarity_search_with_score_by_vector(*args, **kwargs)
        return [(Document(f"{number}: {hit[0].page_content}"), *hit[1:]) for hit in hits]


class Shuffled(InMemoryVectorStore):
    """Overrides nothing, and brings a field with state that the leaf uses."""

    def __init__(self, embedding: Embeddings) -> None:
        super().__init__(Drifting(embedding))


class Drifting(Embeddings):
    def __init__(self, inner: Embeddings) -> None:
        self.inner, self.steps = inner, itertools.count()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.inner.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.inner.embed_query(f"{text} {next(self.steps)}")


@pytest.mark.parametrize("cls", [Counted, Numbered, Shuffled])
def test_a_subclass_of_a_listed_store(cls: type[InMemoryVectorStore]) -> None:
    felt_by_nobody(lambda: store_of(cls), near)


def test_a_listed_store_over_embeddings_that_nobody_vouches_for() -> None:
    def made() -> InMemoryVectorStore:
        store = InMemoryVectorStore(Drifting(DeterministicFakeEmbedding(size=8)))
        store.add_texts(WORDS[:50])
        return store

    felt_by_nobody(made, near)


class Sampling(DeterministicFakeEmbedding):
    """Of a listed embedding: a generator in a field, and a leaf that uses it."""

    _rng: random.Random = PrivateAttr(default_factory=lambda: random.Random(3))

    def embed_query(self, text: str) -> list[float]:
        return [self._rng.random(), *super().embed_query(text)]


def test_a_subclass_of_a_listed_embedding() -> None:
    felt_by_nobody(lambda: Sampling(size=2), lambda embeddings: embeddings.embed_query)


def test_a_subclass_of_a_listed_client_that_overrides_a_helper() -> None:
    """Each request is signed with a number; the server answers what it got."""
    openai = pytest.importorskip("langchain_openai")
    import httpx

    class Numbering(openai.ChatOpenAI):  # type: ignore[misc,name-defined]
        numbers: Any = None

        def _get_request_payload(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return {**super()._get_request_payload(*args, **kwargs), "user": f"request {next(self.numbers)}"}

    def answer(request: httpx.Request) -> httpx.Response:
        import json

        asked = json.loads(request.content)
        text = f"{asked['messages'][-1]['content']} by {asked['user']}"
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return httpx.Response(200, json=body)

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        felt_by_nobody(
            lambda: Numbering(
                model="m",
                api_key="sk-x",
                base_url="http://127.0.0.1:9/v1",
                http_client=client,
                numbers=itertools.count(),
            ),
            said,
        )
