"""`python -m bench llamaindex`: ordinary LlamaIndex programs, unmodified and accelerated, on simulated engines.

The programs are synchronous, as most are, so they take real time. Arms take turns request by request; equality is
checked from raw outputs (answer, sources, scores); the limit comes from a recorded run of the unmodified program.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from llama_index.core import StorageContext, VectorStoreIndex, get_response_synthesizer
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import TextNode
from rich.console import Console
from rich.table import Table

import accel
import accel_local
from accel.reports.limits.limit import limit
from accel_llamaindex import AccelEmbedding, AccelLLM, AccelVectorStore
from accel_sim import SimEmbeddingConfig, SimLLMConfig, SimStoreConfig, profile_of
from bench.machine import machine_name
from bench.recorder import recorder
from corpus.papers import data

DIMENSION = 64
KINDS = ("llm", "embedding", "searching")
WARM = 2
"""Requests from which programs are learnt; they are reported apart."""
QA = PromptTemplate(
    "Context information is below.\n{context_str}\n\nAnswer the query from the context in about 60 words.\n"
    "Query: {query_str}\nAnswer: "
)
REFINE = PromptTemplate(
    "New context is below.\n{context_msg}\n\nThe query is: {query_str}\nRefine the existing answer with the new "
    "context, in about 60 words.\nExisting answer: {existing_answer}\nRefined answer: "
)
SUMMARY_WINDOW = 2048
INGEST_S = 1 / 361
"""Seconds per record inserted into an existing HNSW index of pgvector, as measured on a small machine."""


@dataclass
class Parts:
    llm: AccelLLM
    index: VectorStoreIndex
    nodes: list[TextNode]
    embedding: AccelEmbedding

    def engine(self, mode: str, top_k: int = 5) -> Any:
        return self.index.as_query_engine(
            llm=self.llm, similarity_top_k=top_k, response_mode=mode, text_qa_template=QA, refine_template=REFINE,
            summary_template=QA,
        )  # fmt: skip

    def summary(self) -> Any:
        """Leaves of a few passages each, as the windows of small models make them."""
        helper = PromptHelper(context_window=SUMMARY_WINDOW, num_output=128)
        synthesizer = get_response_synthesizer(
            llm=self.llm, prompt_helper=helper, response_mode=ResponseMode.TREE_SUMMARIZE, summary_template=QA
        )
        return RetrieverQueryEngine(self.index.as_retriever(similarity_top_k=24), synthesizer)

    def fusion(self) -> Any:
        retriever = QueryFusionRetriever(
            [self.index.as_retriever(similarity_top_k=4), self.index.as_retriever(similarity_top_k=6)],
            llm=self.llm, num_queries=5, mode=FUSION_MODES.RECIPROCAL_RANK, similarity_top_k=4, use_async=False,
        )  # fmt: skip
        return RetrieverQueryEngine.from_args(
            retriever, llm=self.llm, response_mode=ResponseMode.COMPACT, text_qa_template=QA
        )


PROGRAMS: dict[str, tuple[str, Callable[[Parts], Any]]] = {
    "compact": ("control: one call after the other", lambda parts: parts.engine("compact")),
    "refine": ("contexts are prefilled while the answer before is written", lambda parts: parts.engine("refine", 3)),
    "tree_summarize": ("sequential leaves", Parts.summary),
    "accumulate": ("sequential leaves", lambda parts: parts.engine("accumulate")),
    "fusion": ("each query is embedded once, and while the list is written", Parts.fusion),
}
INDEXING, INDEXING_GAIN = "indexing", "embedding in batches, pipelined into insertion"


@dataclass
class Request:
    program: str
    number: int
    seconds: dict[str, float] = field(default_factory=dict)
    output: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    limit_s: float | None = None

    @property
    def ratio(self) -> float:
        return self.seconds["unmodified"] / self.seconds["accelerated"]

    @property
    def equal(self) -> bool:
        return bool(self.output["unmodified"] == self.output["accelerated"])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench llamaindex", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--profile", default="7b", help="published, by model size, or a file (default 7b)")
    parser.add_argument(
        "--programs", default=",".join((*PROGRAMS, INDEXING)), help="which (default: all); others keep their records"
    )
    parser.add_argument("--requests", type=int, default=3, help="per program, after those learnt from (default 3)")
    parser.add_argument("--out", type=Path, default=Path("bench-out/llamaindex"), help="folder for the raw records")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    names = options.programs.split(",")
    unknown = [name for name in names if name not in (*PROGRAMS, INDEXING)]
    if unknown:
        parser.error(f"{unknown[0]!r} is not known; there are {', '.join((*PROGRAMS, INDEXING))}")
    try:
        data_sets = data.load()
    except ValueError as error:
        console.print(str(error), style="red", markup=False)
        return 2
    found: list[Request] = []
    try:
        parts = make(options.profile, data_sets)
        for name in names:
            with console.status(name):
                found += indexing(parts, options) if name == INDEXING else program(name, parts, data_sets, options)
    finally:
        accel_local.shutdown()
    console.print(shown(found), highlight=False)
    options.out.mkdir(parents=True, exist_ok=True)
    gains = {**{name: gain for name, (gain, _) in PROGRAMS.items()}, INDEXING: INDEXING_GAIN}
    file, machine = options.out / "llamaindex.json", machine_name()
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    same = (before.get("machine"), before.get("profile")) == (machine, options.profile)
    kept = [one for one in before["requests"] if one["program"] not in names] if same else []
    requests = kept + [asdict(one) for one in found]
    record = {"machine": machine, "profile": options.profile, "warm": WARM, "gains": gains, "requests": requests}
    file.write_text(json.dumps(record, indent=1), encoding="utf-8")
    return 0 if all(one.equal for one in found) else 1


def make(profile: str, data_sets: data.DataSets) -> Parts:
    llm = AccelLLM(engine=SimLLMConfig(profile=profile), max_tokens=160)
    embedding = AccelEmbedding(engine=SimEmbeddingConfig(profile_of(profile, "embedding"), DIMENSION))
    texts = [paragraph.text for article in data_sets.articles for paragraph in article.paragraphs][:400]
    nodes = [TextNode(text=text, id_=f"passage {number}") for number, text in enumerate(texts)]
    return Parts(llm, build(VectorStoreIndex, "passages", nodes, embedding, profile), nodes, embedding)


def build(cls: Any, name: str, nodes: Sequence[TextNode], embedding: AccelEmbedding, profile: str) -> VectorStoreIndex:
    store = AccelVectorStore(engine=SimStoreConfig(name, DIMENSION, profile_of(profile, "searching"), INGEST_S))
    context = StorageContext.from_defaults(vector_store=store)
    index: VectorStoreIndex = cls(nodes, embed_model=embedding, storage_context=context, insert_batch_size=64)
    return index


def program(name: str, parts: Parts, data_sets: data.DataSets, options: argparse.Namespace) -> list[Request]:
    plain, fast = PROGRAMS[name][1](parts), accel.accelerate(PROGRAMS[name][1](parts))
    recorded = recorder(PROGRAMS[name][1](parts))
    profiles = {kind: profile_of(options.profile, kind) for kind in KINDS}
    found = []
    for number, question in enumerate(data_sets.questions[: WARM + options.requests]):
        request = Request(name, number)
        arms = [("unmodified", plain), ("accelerated", fast)]
        for arm, engine in arms if number % 2 == 0 else arms[::-1]:
            request.seconds[arm], request.output[arm] = asked(parts, engine, question)
            accel.settle()
        request.counts = asdict(fast.plan.history[-1])
        if number >= WARM:
            asked(parts, recorded, question)
            accel.settle()
            request.limit_s = limit(recorded.plan.last, profiles, topology=fast.plan.topology).makespan_s
        found.append(request)
    return found


def asked(parts: Parts, engine: Any, question: str) -> tuple[float, Any]:
    llm: Any = accel_local.engine(parts.llm.engine_config)
    accel_local.run(llm.reset_prefix_cache())
    began = time.perf_counter()
    response = engine.query(question)
    took_s = time.perf_counter() - began
    return took_s, [str(response), [[node.node_id, node.score] for node in response.source_nodes]]


def indexing(parts: Parts, options: argparse.Namespace) -> list[Request]:
    """Building an index: embeddings of the next nodes, in batches, while the last ones are inserted."""
    found = []
    for number in range(WARM + options.requests):
        request = Request(INDEXING, number)
        for arm, cls in (("unmodified", VectorStoreIndex), ("accelerated", accel.accelerate(VectorStoreIndex))):
            began = time.perf_counter()
            index = build(cls, f"{arm} {number}", parts.nodes, parts.embedding, options.profile)
            request.seconds[arm] = time.perf_counter() - began
            nodes = index.vector_store.get_nodes([node.node_id for node in parts.nodes])
            request.output[arm] = [len(nodes), sorted(node.node_id for node in nodes)]
            if arm == "accelerated":
                accel.settle()
                request.counts = asdict(index.plan.total)  # type: ignore[attr-defined]
        found.append(request)
    return found


def shown(found: Sequence[Request]) -> Table:
    table = Table(title="LlamaIndex programs, unmodified and accelerated", title_justify="left")
    for column in ("program", "gain", "unmodified", "ratio", "limit", "share of limit", "equal", "retired / wasted"):
        table.add_column(column, justify="left" if column in ("program", "gain") else "right")
    for name in dict.fromkeys(one.program for one in found):
        late = [one for one in found if one.program == name and one.number >= WARM]
        ratios = [one.ratio for one in late]
        limits = [one.seconds["unmodified"] / one.limit_s for one in late if one.limit_s]
        shares = [one.limit_s / one.seconds["accelerated"] for one in late if one.limit_s]
        every = [one for one in found if one.program == name]
        table.add_row(
            name,
            PROGRAMS[name][0] if name in PROGRAMS else INDEXING_GAIN,
            f"{median(one.seconds['unmodified'] for one in late):.2f} s",
            f"{median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})",
            f"{median(limits):.2f}x" if limits else "-",
            f"{median(shares):.2f}" if shares else "-",
            f"{sum(one.equal for one in every)} of {len(every)}",
            f"{sum(one.counts['retired'] for one in late)} / {sum(one.counts['wasted'] for one in late)}",
        )
    return table
