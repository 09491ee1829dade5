"""The table of listed classes: each has a reason and is itself, or a subclass that changes nothing of it."""

from __future__ import annotations

import gc
import re
import weakref
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, Field, PrivateAttr, computed_field, field_validator

from accel.parts.components import facts_of
from accel.parts.listed.table import DOCUMENT, LISTED, addresses_of, document, listed

ENTRIES = [(package, name) for package, classes in LISTED.items() for name in classes]


def called(name: str, module: str, *bases: type) -> type:
    return type(name, bases, {"__module__": module})


@pytest.mark.parametrize(("package", "name"), ENTRIES)
def test_every_entry_says_why(package: str, name: str) -> None:
    entry = LISTED[package][name]
    assert re.fullmatch(r"listed: .{10,}", entry.reason)
    assert entry.pure, "what is not pure needs no listing"
    assert entry.kind and entry.families
    assert not (entry.readonly and entry.local is None and not entry.concurrency), "a public service says how many"
    assert (entry.addresses == ()) or not entry.local, "what has an address is local by its address alone"
    assert (entry.families == ("public_retriever",)) == (entry.kind == "retriever" and bool(entry.readonly))


@pytest.mark.parametrize(("package", "name"), ENTRIES)
def test_a_listed_class_is_known_in_its_package_alone(package: str, name: str) -> None:
    entry = LISTED[package][name]
    for module in (package, f"{package}.some.module"):
        assert listed(called(name, module)) == entry
        no_embedder = "it embeds with what is no component"
        assert facts_of(called(name, module)()).reason == (no_embedder if entry.embeds else entry.reason)
    for module in ("my_app", f"my_{package}", f"{package}s", "__main__"):
        assert listed(called(name, module)) is None
        assert addresses_of(called(name, module)()) is None


def test_what_remembers_draws_or_may_write_is_not_listed() -> None:
    names = {name for _, name in ENTRIES}
    for name in (
        "OpenAIResponses",
        "FakeEmbeddings",
        "QuerySQLDatabaseTool",
        "MultiQueryRetriever",
        "WikipediaRetriever",
    ):
        assert name not in names
    assert "CohereRerank" in LISTED["langchain_cohere"]
    assert not any("CohereRerank" in classes for package, classes in LISTED.items() if "llama" in package)


@pytest.mark.parametrize(("package", "name"), ENTRIES)
def test_nobody_claims_that_a_users_store_stays_as_it_is(package: str, name: str) -> None:
    if LISTED[package][name].kind == "vector store" or name in ("BM25Retriever", "TFIDFRetriever"):
        assert LISTED[package][name].readonly is None


def test_the_table_for_people_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "write it anew: python -m accel.parts.listed.table"


# --- subclasses -----------------------------------------------------------------------------------------------------


class _Frame(BaseModel):
    """As a framework's base."""

    def invoke(self, text: str) -> str:
        return self._generate(text)

    def _generate(self, text: str) -> str:
        raise NotImplementedError


class ChatAnthropic(_Frame):
    __module__ = "langchain_anthropic.chat_models"
    anthropic_api_url: str = "https://api.example.com"
    anthropic_proxy: str | None = None
    model: str = "m"
    limits: ClassVar[int] = 3
    _held: list[str] = PrivateAttr(default_factory=list)

    def _generate(self, text: str) -> str:
        return text


class Chroma:
    __module__ = "langchain_chroma.vectorstores"
    default_name = "langchain"

    def similarity_search(self, text: str) -> list[str]:
        return [text]


class Named(ChatAnthropic):
    """Nothing but a name."""


class Greeting(ChatAnthropic):
    def greet(self) -> str:
        return self.invoke("hello")

    @property
    def short(self) -> str:
        return self.model[:3]

    @staticmethod
    def shout(text: str) -> str:
        return text.upper()


class Fixed(ChatAnthropic):
    model: str = "another"


class Greeter:
    def greet(self) -> str:
        return "hello"


class Mixed(Greeter, Named):
    pass


class MyChroma(Chroma):
    def first(self, text: str) -> str:
        return self.similarity_search(text)[0]


@pytest.mark.parametrize("cls", [Named, Greeting, Fixed, Mixed, MyChroma], ids=lambda cls: cls.__name__)
def test_a_subclass_that_changes_nothing_is_the_listed_class(cls: type) -> None:
    package, name = ("langchain_chroma", "Chroma") if cls is MyChroma else ("langchain_anthropic", "ChatAnthropic")
    assert listed(cls) == LISTED[package][name]


def _others() -> list[type]:
    def helper(self: Any) -> str:
        return "x"

    class Leaf(ChatAnthropic):
        def _generate(self, text: str) -> str:
            return text + "!"

    class Inherited(ChatAnthropic):
        def invoke(self, text: str) -> str:
            return "post " + text

    class Made(ChatAnthropic):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)

    class Read(ChatAnthropic):
        def __getattribute__(self, name: str) -> Any:
            return super().__getattribute__(name)

    class Collecting(ChatAnthropic):
        seen: list[str] = []

    class Private(ChatAnthropic):
        _seen: list[str] = PrivateAttr(default_factory=list)

    class Shared(ChatAnthropic):
        seen: ClassVar[list[str]] = []

    class Constant(ChatAnthropic):
        limits = 4

    class Factory(ChatAnthropic):
        model: str = Field(default_factory=lambda: "m")

    class Checked(ChatAnthropic):
        @field_validator("model")
        @classmethod
        def note(cls, value: str) -> str:
            return value

    class Computed(ChatAnthropic):
        @computed_field  # type: ignore[prop-decorator]
        @property
        def extra(self) -> int:
            return 1

    class Kept(ChatAnthropic):
        @cached_property
        def once(self) -> int:
            return 1

    class Cached(ChatAnthropic):
        answer = lru_cache(helper)

    class Started(ChatAnthropic):
        def model_post_init(self, context: Any) -> None:
            pass

    class Configured(ChatAnthropic):
        model_config = {"frozen": True}

    class Deep(Named):
        def _generate(self, text: str) -> str:
            return text

    class Between(_Frame):
        def invoke(self, text: str) -> str:
            return "post " + text

    class Late(ChatAnthropic, Between):
        """What it changes stands behind the listed class."""

    class Loud:
        def _generate(self, text: str) -> str:
            return "post " + text

    class Before(Loud, ChatAnthropic):
        pass

    class Default(Chroma):
        default_name = "other"

    class Slot(Chroma):
        __slots__ = ("seen",)

    class Told(Chroma):
        seen: list[str]

    class Meta(type):
        pass

    class OfMeta(Chroma, metaclass=Meta):
        pass

    return [cls for cls in locals().values() if isinstance(cls, type) and cls not in (Between, Loud, Meta)]


@pytest.mark.parametrize("cls", _others(), ids=lambda cls: cls.__name__)
def test_a_subclass_that_changes_or_keeps_anything_is_not_listed(cls: type) -> None:
    assert listed(cls) is None
    assert addresses_of(object.__new__(cls)) is None


def test_a_subclass_with_an_address_of_its_own_loses_what_hangs_on_the_address() -> None:
    class Elsewhere(ChatAnthropic):
        anthropic_api_url: str = "http://localhost:9"

    class ExaSearchResults(BaseModel):
        __module__ = "langchain_exa.tools"
        client: Any = None

        def _run(self, query: str) -> str:
            return query

    class Own(ExaSearchResults):
        client: Any = "mine"

    entry = listed(Elsewhere)
    assert entry is not None and (entry.local, entry.readonly, entry.pure) == (None, None, True)
    assert addresses_of(Elsewhere()) == ["http://localhost:9"]
    moved, kept = listed(Own), listed(ExaSearchResults)
    assert moved is not None and kept is not None and (moved.readonly, kept.readonly) == (None, True)


def test_classes_made_on_the_way_are_not_kept() -> None:
    reference = weakref.ref(made := type("Passing", (Chroma,), {}))
    assert listed(made) is LISTED["langchain_chroma"]["Chroma"]
    del made
    gc.collect()
    assert reference() is None


# --- addresses ------------------------------------------------------------------------------------------------------


def client(url: Any) -> Any:
    return SimpleNamespace(_client=SimpleNamespace(base_url=url))


def groq(**given: Any) -> Any:
    fields = {"groq_api_base": None, "groq_proxy": None, "client": client("https://a"), "async_client": None}
    component = called("ChatGroq", "langchain_groq")()
    vars(component).update({**fields, **given})
    return component


def test_all_addresses_that_are_set_are_given() -> None:
    assert addresses_of(groq()) == ["https://a"]
    assert addresses_of(groq(groq_api_base="http://b", async_client=client("http://c"))) == [
        "http://b",
        "https://a",
        "http://c",
    ]
    assert addresses_of(groq(client=None)) == []
    assert addresses_of(groq(groq_proxy="http://p")) == ["http://p", "https://a"]


def test_a_client_of_another_make_goes_nobody_knows_where() -> None:
    assert addresses_of(groq(client=SimpleNamespace(create=print))) is None
    assert addresses_of(groq(groq_api_base="http://localhost", async_client=object())) is None


def test_the_address_may_stand_in_a_dict() -> None:
    component = called("BedrockConverse", "llama_index.llms.bedrock_converse.base")()
    vars(component).update(endpoint_url=None, _client=None, _boto_client_kwargs={"endpoint_url": "http://b"})
    assert addresses_of(component) == ["http://b"]
    vars(component).update(_boto_client_kwargs={})
    assert addresses_of(component) == []
