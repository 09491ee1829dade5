"""Cassettes of clients as programs use them: what LangChain's and OpenAI's own make of a server's answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

import accel
from adapters.tests import three_calls
from adapters.tests.three_calls import environment, url

__all__ = ["environment", "url"]
"""Fixtures."""

TOPICS = [{"topic": topic} for topic in ("bees", "iron smelting", "the far side of the moon")]
pytestmark = pytest.mark.usefixtures("environment")


def served(url: str) -> int:
    """Requests since the last time."""
    return int(httpx.get(f"{url.removesuffix('/v1')}/served").json()["requests"])


def checked(graph: Any, tape: Path, **options: Any) -> Any:
    """Equal, recorded once, and replayed by another check, with calls that went early."""
    for _ in range(2):
        result = accel.check(graph, TOPICS, rounds=3, cassette=tape, **options)
        assert result, str(result)
        assert result.cassette is not None and not result.cassette.kept and not result.cassette.live
    assert result.cassette.recorded == 0 and result.counts["retired"] > 0
    return result


@pytest.mark.parametrize("options", [{}, {"streaming": True}, {"streaming": False}])
def test_a_chat_model_of_langchain(url: str, tmp_path: Path, options: dict[str, Any]) -> None:
    model = ChatOpenAI(model="m", temperature=0.9, **options)
    graph = three_calls.program(lambda state, prompt: model.invoke(prompt).content)
    served(url)
    checked(graph, tmp_path / "answers.jsonl")
    assert served(url) == 9
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert {line["component"] for line in lines[1:]} == {"langchain_openai.chat_models.base.ChatOpenAI"}
    streamed = options.get("streaming") is not False
    assert all(("chunks" in line) is streamed for line in lines[1:]), "streamed first, which has the whole, too"
    assert "sk-of-all" not in (tmp_path / "answers.jsonl").read_text()


def test_a_chat_model_of_langchain_awaited(url: str, tmp_path: Path) -> None:
    """With a client that lives as long as the check: connections belong to its loop."""

    @asynccontextmanager
    async def made() -> AsyncIterator[Any]:
        async with httpx.AsyncClient() as client:
            model = ChatOpenAI(model="m", http_async_client=client)

            async def ask(state: Any, prompt: str) -> Any:
                return (await model.ainvoke(prompt)).content

            yield three_calls.program(ask, is_async=True)

    served(url)
    checked(made, tmp_path / "answers.jsonl")
    assert served(url) == 9


def test_a_client_of_openai_and_its_models_of_answers(url: str, tmp_path: Path) -> None:
    client = openai.OpenAI()

    def ask(state: Any, prompt: str) -> str:
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": prompt}])
        assert answer.usage is not None and answer.usage.total_tokens > 0
        return str(answer.choices[0].message.content)

    served(url)
    checked(three_calls.program(ask), tmp_path / "answers.jsonl")
    assert served(url) == 9


def test_embeddings_are_recorded_and_the_store_is_the_program_s_own(url: str, tmp_path: Path) -> None:
    store = InMemoryVectorStore(OpenAIEmbeddings(model="e", check_embedding_ctx_length=False))
    store.add_texts([f"all about {each['topic']}" for each in TOPICS])
    accel.register(store, readonly=True)

    def ask(state: Any, prompt: str) -> str:
        return store.similarity_search(prompt, k=1)[0].page_content

    served(url)
    checked(three_calls.program(ask), tmp_path / "answers.jsonl")
    assert served(url) == len((tmp_path / "answers.jsonl").read_text().splitlines()) - 1


def test_a_stream_that_the_program_reads_itself_is_made_each_time(url: str, tmp_path: Path) -> None:
    client = openai.OpenAI()

    def ask(state: Any, prompt: str) -> str:
        chunks = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": prompt}], stream=True
        )  # fmt: skip
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    result = accel.check(three_calls.program(ask), TOPICS, rounds=1, cassette=tmp_path / "answers.jsonl")
    assert result, str(result)
    assert result.cassette is not None and result.cassette.recorded == 0
    assert "made each time" in str(result)


def test_two_settings_of_a_model_are_two_models(url: str, tmp_path: Path) -> None:
    models = {name: ChatOpenAI(model=name) for name in ("large", "small")}

    def ask(state: Any, prompt: str) -> str:
        return " ".join(f"{model.invoke('the same').response_metadata['model_name']}" for model in models.values())

    for _ in range(2):
        result = accel.check(three_calls.program(ask), TOPICS[:1], rounds=1, cassette=tmp_path / "answers.jsonl")
        assert result, str(result)
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()[1:]]
    assert len({line["as"] for line in lines}) == 2
