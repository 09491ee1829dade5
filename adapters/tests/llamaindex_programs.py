"""Ordinary LlamaIndex programs on components that answer at once, and everything LlamaIndex tells about their runs."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass, field
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import TextNode

import accel
from adapters.tests.catching_up import catch_up

TOPICS = ("glaciers", "volcanoes", "lighthouses", "railways", "orchards", "bridges")
QUESTIONS = [f"What is known about {topic}?" for topic in TOPICS]
_WORDS = tuple("north coast stone early wooden narrow famous bright quiet ancient steep painted".split())


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _sentence(text: str) -> str:
    words = re.findall(r"[a-z]{6,}", text.lower())[-40:]
    drawn = [(*_WORDS, *words)[_number(f"{text}{place}") % (len(_WORDS) + len(words))] for place in range(9)]
    return " ".join(drawn).capitalize() + "."


class Scribe(CustomLLM):
    """A language model whose answer is a function of the prompt: lists where lists are asked for."""

    context_window: int = 4096

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=self.context_window, num_output=60, model_name="scribe")

    def _answer(self, prompt: str) -> str:
        catch_up()  # a demand takes time
        asked = re.search(r"Generate (\d+) search queries.*Query: ([^\n]+)", prompt, re.S)
        if asked is None:
            return _sentence(prompt)
        return "\n".join(f"{asked[2].strip('?')} {_WORDS[place]}" for place in range(int(asked[1])))

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self._answer(prompt))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        await asyncio.sleep(0)
        return CompletionResponse(text=self._answer(prompt))

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> Generator[CompletionResponse, None, None]:
        return self._parts(prompt)

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> AsyncGenerator[CompletionResponse, None]:
        async def parts() -> AsyncGenerator[CompletionResponse, None]:
            for part in self._parts(prompt):
                await asyncio.sleep(0)
                yield part

        return parts()

    def _parts(self, prompt: str) -> Generator[CompletionResponse, None, None]:
        text = ""
        for piece in re.findall(r"\s*\S+|\s+$", self._answer(prompt)):
            text += piece
            yield CompletionResponse(text=text, delta=piece)


def _pairs(text: str) -> list[float]:
    found = [0.0] * 64
    for pair in zip(text.lower(), text.lower()[1:], strict=False):
        found[_number("".join(pair)) % 64] += 1.0
    return found


class Letters(BaseEmbedding):
    """Counts of letter pairs."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        await asyncio.sleep(0)
        return self._get_text_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        catch_up()  # a demand takes time
        return _pairs(text)


class BatchedLetters(Letters):
    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        catch_up()  # a demand takes time
        return [_pairs(text) for text in texts]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return self._get_text_embeddings(texts)


accel.register(BatchedLetters, pure=True, local=True, concurrency=16, elementwise=True)
accel.register(Scribe, local=True, concurrency=16, streams_equal=True)
accel.register(Letters, pure=True, local=True, concurrency=16, elementwise=True)


class Spans(BaseSpanHandler[Any]):
    """Every span as class and method, with its parent's."""

    seen: list[str] = []
    open_ids: dict[str, str] = {}

    def new_span(
        self, id_: str, bound_args: Any, instance: Any = None, parent_span_id: str | None = None, **kw: Any
    ) -> Any:
        name = re.sub(r"-[0-9a-f-]{36}$", "", id_)
        catch_up()  # what a program does around its calls takes time
        parent = re.sub(r"-[0-9a-f-]{36}$", "", parent_span_id or "")
        self.seen.append(f"{parent} > {name} {sorted(bound_args.arguments)}")
        return None

    def prepare_to_exit_span(
        self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **kw: Any
    ) -> Any:
        self.seen.append(f"exit {re.sub(r'-[0-9a-f-]{36}$', '', id_)} {type(result).__name__}")
        return None

    def prepare_to_drop_span(self, id_: str, bound_args: Any, instance: Any = None, err: Any = None, **kw: Any) -> Any:
        self.seen.append(f"drop {re.sub(r'-[0-9a-f-]{36}$', '', id_)} {err!r}")
        return None


class Events(BaseEventHandler):
    """Every event with what it says, but for ids and times, and the span it belongs to."""

    seen: list[str] = []

    def handle(self, event: BaseEvent, **kwargs: Any) -> Any:
        told = event.model_dump(exclude={"id_", "timestamp", "span_id"}, warnings=False)
        span = re.sub(r"-[0-9a-f-]{36}$", "", event.span_id or "")
        self.seen.append(re.sub(r"0x[0-9a-f]+", "0x", f"{type(event).__name__} in {span}: {told}"))


SPANS, EVENTS = Spans(), Events()
_root = get_dispatcher()
_root.add_span_handler(SPANS)
_root.add_event_handler(EVENTS)


_IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,27}|(?<='llamaindex\.run_id': ')\w+")


def without_ids(text: str) -> str:
    """Without those that were made at random."""
    return _IDS.sub("id", text)


class Heard:
    """Everything that LlamaIndex tells of what runs, and the tokens that it counts. `counter`: a callback handler."""

    def __init__(self, counter: TokenCountingHandler) -> None:
        self.counter = counter

    def forget(self) -> None:
        self.counter.reset_counts()
        SPANS.seen.clear()
        EVENTS.seen.clear()

    def spans(self) -> list[str]:
        return [without_ids(span) for span in SPANS.seen]

    def events(self) -> list[str]:
        return [without_ids(event) for event in EVENTS.seen]

    def tokens(self) -> list[int]:
        return [
            self.counter.total_embedding_token_count,
            self.counter.prompt_llm_token_count,
            self.counter.completion_llm_token_count,
            len(self.counter.llm_token_counts),
            len(self.counter.embedding_token_counts),
        ]


def _node(topic: str, part: int) -> TextNode:
    sentences = [_sentence(f"{topic} {part} {number}") for number in range(9)]
    text = f"{' '.join(sentences)} About {topic}, part {part}."
    return TextNode(text=text, id_=f"{topic}-{part}", metadata={"n": part})


@dataclass
class Told:
    """All that a run gave and told."""

    answer: str
    sources: list[Any]
    metadata: Any
    kind: str
    spans: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    tokens: list[Any] = field(default_factory=list)


class Program:
    """A query engine as users build it, with a token counter."""

    def __init__(
        self,
        mode: str,
        *,
        fusion: int = 0,
        streaming: bool = False,
        embedding: type[Letters] = Letters,
        **options: Any,
    ) -> None:
        self.heard = Heard(TokenCountingHandler(tokenizer=str.split))
        manager = CallbackManager([self.heard.counter])
        window = 360 if mode == "tree_summarize" else 4096  # one node at a time
        self.llm = Scribe(context_window=window, callback_manager=manager)
        self.embedding = embedding(callback_manager=manager)
        self.nodes = [_node(topic, part) for topic in TOPICS for part in range(4)]
        self.index = VectorStoreIndex(self.nodes, embed_model=self.embedding, callback_manager=manager)
        common: dict[str, Any] = {"llm": self.llm, "response_mode": mode, "streaming": streaming, **options}
        if fusion:
            retriever = QueryFusionRetriever(
                [self.index.as_retriever(similarity_top_k=3) for _ in range(fusion)],
                llm=self.llm, num_queries=4, mode="reciprocal_rerank", similarity_top_k=4,
                use_async=bool(options.get("use_async", False)), callback_manager=manager,
            )  # fmt: skip
            self.engine = RetrieverQueryEngine.from_args(retriever, callback_manager=manager, **common)
        else:
            self.engine = self.index.as_query_engine(similarity_top_k=4, **common)

    def ask(self, engine: Any, question: str) -> Told:
        self.heard.forget()
        response = engine.query(question)
        parts = getattr(response, "response_gen", None)
        return self._told(response, "".join(parts) if parts is not None else str(response))

    async def aask(self, engine: Any, question: str) -> Told:
        self.heard.forget()
        response = await engine.aquery(question)
        if hasattr(response, "async_response_gen"):
            text = "".join([part async for part in response.async_response_gen()])
        else:
            text = str(response)
        return self._told(response, text)

    def _told(self, response: Any, answer: str) -> Told:
        sources = [node.model_dump() for node in response.source_nodes]
        kind = type(response).__name__
        heard = self.heard
        return Told(answer, sources, response.metadata, kind, heard.spans(), heard.events(), heard.tokens())
