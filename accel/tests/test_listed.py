"""The table of listed classes: each has a reason, exists, and is exactly itself."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel.components import facts_of
from accel.listed import LISTED, listed

ENTRIES = [(package, name) for package, classes in LISTED.items() for name in classes]


def called(name: str, module: str, *bases: type) -> type:
    return type(name, bases, {"__module__": module})


@pytest.mark.parametrize(("package", "name"), ENTRIES)
def test_every_entry_says_why(package: str, name: str) -> None:
    facts = LISTED[package][name]
    assert re.fullmatch(r"listed: .{10,}", facts.reason)
    assert facts.pure, "what is not pure needs no listing"
    assert not (facts.readonly and facts.local is None and not facts.concurrency), "a public service says how many"


def sources(package: str) -> Iterator[str]:
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        yield from (path.read_text(encoding="utf-8") for path in Path(folder).rglob("*.py"))


def is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of a package around it
        return False


@pytest.mark.parametrize("package", [package for package in LISTED if is_installed(package)])
def test_listed_classes_exist_where_their_package_is_installed(package: str) -> None:
    texts = list(sources(package))
    missing = [name for name in LISTED[package] if not any(f"\nclass {name}(" in text for text in texts)]
    assert missing == []


@pytest.mark.parametrize(("package", "name"), ENTRIES)
def test_a_listed_class_is_known_in_its_package_alone(package: str, name: str) -> None:
    facts = LISTED[package][name]
    for module in (package, f"{package}.some.module"):
        assert listed(called(name, module)) == facts
        assert facts_of(called(name, module)()).reason == facts.reason
    for module in ("my_app", f"my_{package}", f"{package}s", "__main__"):
        assert listed(called(name, module)) is None
    assert listed(called("My" + name, package, called(name, package))) is None, "a subclass may do anything"
    assert listed(called(name, "my_app", called(name, package))) is None


def test_what_remembers_draws_or_may_write_is_not_listed() -> None:
    names = {name for _, name in ENTRIES}
    for name in ("OpenAIResponses", "FakeEmbeddings", "QuerySQLDatabaseTool", "MultiQueryRetriever"):
        assert name not in names
    assert "CohereRerank" in LISTED["langchain_cohere"]
    assert not any("CohereRerank" in classes for package, classes in LISTED.items() if "llama" in package)


@pytest.mark.parametrize(("package", "name"), ENTRIES)
def test_nobody_claims_that_a_users_store_stays_as_it_is(package: str, name: str) -> None:
    if "Store" in name or name in ("Chroma", "FAISS", "PGVector", "BM25Retriever", "TFIDFRetriever"):
        assert LISTED[package][name].readonly is None
