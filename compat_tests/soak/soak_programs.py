"""The twenty programs: how each is built, run and streamed."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode

from compat_tests.soak import soak_graphs as graphs
from compat_tests.soak.soak_cases import WORDS, Case
from compat_tests.soak.soak_parts import Pairs, Penman

STREAMS = ("close", "abandon", "stall")
ASYNC = ("error", "timeout", "timeout", "cancel", "cancel", *STREAMS)
SYNC = ("error", *STREAMS)


@dataclass(frozen=True)
class Program:
    name: str
    build: Callable[[], Any]
    is_async: bool
    fates: tuple[str, ...]
    in_order: bool = True
    """Whether its updates come in one order only."""

    def run(self, target: Any, case: Case, config: Any) -> Any:
        return target.invoke(self.input(case), config)

    async def arun(self, target: Any, case: Case, config: Any) -> Any:
        return await target.ainvoke(self.input(case), config)

    def stream(self, target: Any, case: Case, config: Any) -> Iterator[Any]:
        return iter(target.stream(self.input(case), config, stream_mode="updates"))

    def astream(self, target: Any, case: Case, config: Any) -> AsyncIterator[Any]:
        return aiter(target.astream(self.input(case), config, stream_mode="updates"))

    def input(self, case: Case) -> Any:
        return {"question": case.question}


class Agent(Program):
    def input(self, case: Case) -> Any:
        return {"messages": [("user", case.question)]}


class Engine(Program):
    """A query engine of LlamaIndex."""

    def run(self, target: Any, case: Case, config: Any) -> Any:
        return str(target.query(case.question))

    async def arun(self, target: Any, case: Case, config: Any) -> Any:
        return str(await target.aquery(case.question))


class StreamingEngine(Engine):
    def stream(self, target: Any, case: Case, config: Any) -> Iterator[Any]:
        return iter(target.query(case.question).response_gen)

    def run(self, target: Any, case: Case, config: Any) -> Any:
        return list(self.stream(target, case, config))


def engine(mode: str, **options: Any) -> Callable[[], Any]:
    def build() -> Any:
        nodes = [TextNode(text=f"About {one}: {other}.", id_=one) for one, other in itertools.pairwise(WORDS)]
        index = VectorStoreIndex(nodes, embed_model=Pairs())
        return index.as_query_engine(llm=Penman(), response_mode=mode, similarity_top_k=4, **options)

    return build


_sync_graphs = [
    graphs.rag_sync,
    graphs.rag_nested_embeddings,
    graphs.rag_one_at_a_time,
    graphs.loop_sync,
    graphs.branches_sync,
    graphs.subgraph_sync,
    graphs.rounds_sync,
]
_async_graphs = [
    graphs.rag_async,
    graphs.rag_async_nested_embeddings,
    graphs.branches_async,
    graphs.gather_async,
    graphs.streaming_async,
    graphs.sync_nodes_awaited,
]
PROGRAMS: tuple[Program, ...] = (
    *(Program(build.__name__, build, False, SYNC) for build in _sync_graphs),
    *(Program(build.__name__, build, True, ASYNC) for build in _async_graphs),
    Program("send_sync", graphs.send_sync, False, SYNC, in_order=False),
    Program("send_async", graphs.send_async, True, ASYNC, in_order=False),
    Agent("agent_async", graphs.agent, True, ASYNC),
    Program("chain_sync", graphs.chain, False, ("error",)),
    Engine("engine_accumulate", engine("accumulate"), False, ("error",)),
    Engine("engine_accumulate_async", engine("accumulate", use_async=True), True, ("error", "timeout", "cancel")),
    StreamingEngine("engine_streaming", engine("compact", streaming=True), False, ("error", "close", "abandon")),
)


def tidy(value: Any) -> Any:
    """A result without what differs between equal runs: generated ids."""
    if isinstance(value, BaseMessage):
        calls = [(call["name"], call["args"]) for call in getattr(value, "tool_calls", ())]
        return value.type, value.content, calls
    if isinstance(value, Document):
        return value.page_content
    if isinstance(value, dict):
        return {key: tidy(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [tidy(part) for part in value]
    return value
